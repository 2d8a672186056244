#include "trainer/worker_loop.h"

#include "core/safetensors.h"
#include "trainer/job_client.h"

namespace isthmus::trainer {
namespace {

// One after the other, in vain: each takes as long as a shard does to come back.
constexpr int kMostReturns = 20;

class Loop {
 public:
  Loop(models::Workload& workload, Client& client, const WorkerOptions& options)
      : workload_(workload),
        client_(client),
        options_(options),
        parameters_(workload.table()),
        gradients_(workload.table()),
        pushed_(gradients_.gradients()),
        pulled_(parameters_.parameters()) {}

  // Success: the job's steps are done, or the job was told to end.
  Status run() {
    workload_.initial(options_.config.seed, parameters_.views());
    ISTHMUS_RETURN_IF_ERROR(come_in());
    const Step last = options_.config.trainer.stop.steps.value_or(~Step{0});
    while (client_.step() < last) {
      if (options_.stop.stop_requested()) return {ErrorCode::kCancelled, "stopped by a signal"};
      const Status status = step();
      if (status.code() == ErrorCode::kCancelled && !options_.stop.stop_requested()) return {};
      if (!status.ok()) return status;
    }
    return {};
  }

  Status save(const std::filesystem::path& path) {
    ISTHMUS_RETURN_IF_ERROR(client_.snapshot(Snapshot::kFinal, pulled_));
    return core::write_safetensors(path, workload_.table(), parameters_.const_views(),
                                   {{"job", options_.config.job}, {"format", "pt"}});
  }

 private:
  Status step() {
    const auto loss = workload_.compute(client_.step(), parameters_.const_views(), gradients_.views());
    if (!loss.ok()) return loss.status();
    Status status = client_.push_pull(pushed_, workload_.samples(), pulled_).wait();
    if (status.code() == ErrorCode::kRefused) {
      // The step is lost, the worker is not: its next gradient may be sound again.
      options_.log("step " + std::to_string(client_.step()) + ": " + status.to_string());
      status = client_.pull(pulled_).wait();
    }
    if (status.ok()) status = client_.next_step();
    if (status.code() == ErrorCode::kUnavailable) {
      options_.log(status.to_string());
      status = come_in();
    }
    return status;
  }

  // At the start, and when a shard has restarted or has dropped us. One without values takes ours; one that
  // has them from a checkpoint, or gets them from another region, lets us know when it is ready.
  Status come_in() {
    for (int tries = 0;; ++tries) {
      Status status = client_.create(parameters_.gradients());
      if (status.ok()) status = client_.pull(pulled_).wait();
      if (status.code() != ErrorCode::kUnavailable || tries == kMostReturns) return status;
      options_.log(status.to_string());
    }
  }

  models::Workload& workload_;
  Client& client_;
  const WorkerOptions& options_;
  TensorSet parameters_;
  TensorSet gradients_;
  const std::vector<Gradient> pushed_;
  const std::vector<Parameters> pulled_;
};

}  // namespace

Status run_worker(models::Workload& workload, const WorkerOptions& options) {
  auto config = client_config(options.config, options.region, options.worker, workload.table(), options.log);
  if (!config.ok()) return std::move(config).status();
  auto client = Client::connect(*config);
  if (!client.ok()) return std::move(client).status();
  options.log("joined at step " + std::to_string((*client)->step()));

  Loop loop(workload, **client, options);
  ISTHMUS_RETURN_IF_ERROR(loop.run());
  options.log("finished at step " + std::to_string((*client)->step()));
  ISTHMUS_RETURN_IF_ERROR((*client)->finish(options.save.has_value()));
  return options.save ? loop.save(*options.save) : Status();
}

}  // namespace isthmus::trainer
