#include "trainer/program.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/scratch_folder.h"
#include "trainer/synthetic.h"

namespace isthmus::trainer {
namespace {

int run(const std::vector<std::string>& arguments) {
  return run_program(arguments,
                     [](const core::JobConfig& config, models::WorkerPlace place,
                        std::stop_token stop) -> Result<std::unique_ptr<models::Workload>> {
                       auto workload =
                           models::SyntheticWorkload::create(config.trainer, place, std::move(stop));
                       if (!workload.ok()) return std::move(workload).status();
                       return std::unique_ptr<models::Workload>(*std::move(workload));
                     });
}

TEST(ProgramTest, ExitCodesSayWhatIsWrong) {
  const ScratchFolder scratch;
  const std::string config = (scratch.path() / "job.yaml").string();
  std::ofstream(config)
      << "job: test\nregions:\n  - { name: frankfurt, servers: [{ lan: 127.0.0.1:1 }] }\n"
         "trainer: { model: synthetic, stop: { steps: 1 } }\nlimits: { operation_timeout: 100ms }\n";
  EXPECT_EQ(run({}), 4);
  EXPECT_EQ(run({"sing", config}), 4);
  EXPECT_EQ(run({"worker", config, "frankfurt", "x"}), 4);
  EXPECT_EQ(run({"worker", config, "frankfurt", "7"}), 4);
  EXPECT_EQ(run({"worker", config, "frankfurt", "0", "-", "folder"}), 4);
  EXPECT_EQ(run({"worker", config, "frankfurt", "0", "-", "folder", "1", "x"}), 4);
  EXPECT_EQ(run({"worker", config, "frankfurt", "0", "-", config, "1"}), 4);  // A file is no folder.
  EXPECT_EQ(run({"worker", config, "paris", "0"}), 4);
  EXPECT_EQ(run({"worker", config, "frankfurt", "0", "--set=no.such.key=1"}), 4);
  EXPECT_EQ(run({"worker", config, "frankfurt", "7", "--set=regions[0].workers=8"}), 3);
  EXPECT_EQ(run({"worker", config + ".not-there", "frankfurt", "0"}), 4);
  EXPECT_EQ(run({"worker", config, "frankfurt", "0"}), 3);  // Nobody answers.
  EXPECT_EQ(run({"evaluate", config, "shared frankfurt"}), 3);
}

}  // namespace
}  // namespace isthmus::trainer
