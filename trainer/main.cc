// isthmus-trainer: the reference worker program for models that need libtorch. `isthmus worker`,
// `isthmus evaluate` and `isthmus train` run it; it is a program of its own because libtorch takes a second
// to load and 160 MB.

#include "trainer/program.h"
#include "trainer/torch_workload.h"

int main(int argc, char** argv) {
  using namespace isthmus;
  return trainer::run_program(std::vector<std::string>(argv + 1, argv + argc),
                              [](const core::JobConfig& config, models::WorkerPlace place,
                                 const std::stop_token&) -> Result<std::unique_ptr<models::Workload>> {
                                auto workload =
                                    models::TorchWorkload::create(config.trainer, place, config.seed);
                                if (!workload.ok()) return std::move(workload).status();
                                return std::unique_ptr<models::Workload>(*std::move(workload));
                              });
}
