// With one region and bsp, N workers are one process with the N-fold batch; and one seed is one run.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "core/safetensors.h"
#include "tests/support/scratch_folder.h"
#include "tests/trainer/one_region.h"
#include "trainer/job_client.h"
#include "trainer/torch_workload.h"
#include "trainer/worker_loop.h"

namespace isthmus::trainer {
namespace {

constexpr std::uint32_t kWorkers = 4;
constexpr Step kSteps = 50;
constexpr float kLearningRate = 0.05f;
constexpr float kMomentum = 0.9f;

using Values = std::vector<std::vector<float>>;

void settings(core::JobConfig& config, core::OptimizerKind kind) {
  config.trainer = {};
  config.trainer.model = "mlp";
  config.trainer.batch = 16;
  config.trainer.stop.steps = kSteps;
  config.optimizer.kind = kind;
  config.optimizer.learning_rate = kLearningRate;
  config.optimizer.momentum = kMomentum;
}

std::unique_ptr<models::TorchWorkload> workload(const core::JobConfig& config, std::uint32_t worker) {
  auto made = models::TorchWorkload::create(config.trainer, {worker, kWorkers}, config.seed);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return *std::move(made);
}

// What the server holds after four workers, each a thread with a real client, have trained.
Values trained_by_workers(core::OptimizerKind kind) {
  testing::OneRegion region(kWorkers, [&](core::JobConfig& config) { settings(config, kind); });
  const ScratchFolder scratch;
  const auto file = scratch / "model.safetensors";
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([&, worker] {
        const auto work = workload(region.config, worker);
        WorkerOptions options{region.config, "frankfurt", worker, {}, {}, [](std::string_view) {}};
        if (worker == 0) options.save = file;
        const Status status = run_worker(*work, options);
        EXPECT_TRUE(status.ok()) << status.to_string();
      });
    }
  }
  const auto saved = core::read_safetensors(file);
  EXPECT_TRUE(saved.ok()) << saved.status().to_string();
  return saved.ok() ? saved->values : Values();
}

// PyTorch's rule on the four workers' samples as one batch, in double precision, without a server.
Values trained_by_one(core::OptimizerKind kind) {
  core::JobConfig config;
  config.regions.resize(1);
  settings(config, kind);
  std::vector<std::unique_ptr<models::TorchWorkload>> workers;
  for (std::uint32_t worker = 0; worker < kWorkers; ++worker) workers.push_back(workload(config, worker));
  TensorSet parameters(workers[0]->table());
  TensorSet gradient(workers[0]->table());
  workers[0]->initial(config.seed, parameters.views());
  std::vector<std::vector<double>> exact, velocity, sum;
  for (const auto view : parameters.views()) {
    exact.emplace_back(view.begin(), view.end());
    velocity.emplace_back(view.size(), 0.0);
  }
  for (Step step = 0; step < kSteps; ++step) {
    sum = std::vector<std::vector<double>>(exact.size());
    for (auto& work : workers) {
      EXPECT_TRUE(work->compute(step, parameters.const_views(), gradient.views()).ok());
      for (std::size_t t = 0; t < exact.size(); ++t) {
        sum[t].resize(exact[t].size());
        for (std::size_t i = 0; i < exact[t].size(); ++i)
          sum[t][i] += gradient.views()[t][i] / double{kWorkers};
      }
    }
    const double momentum = kind == core::OptimizerKind::kMomentum ? kMomentum : 0.0;
    for (std::size_t t = 0; t < exact.size(); ++t) {
      for (std::size_t i = 0; i < exact[t].size(); ++i) {
        velocity[t][i] = momentum * velocity[t][i] + sum[t][i];
        exact[t][i] -= kLearningRate * velocity[t][i];
        parameters.views()[t][i] = static_cast<float>(exact[t][i]);
      }
    }
  }
  Values values;
  for (const auto view : parameters.views()) values.emplace_back(view.begin(), view.end());
  return values;
}

double largest_difference(const Values& a, const Values& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t t = 0; t < std::min(a.size(), b.size()); ++t) {
    EXPECT_EQ(a[t].size(), b[t].size());
    for (std::size_t i = 0; i < std::min(a[t].size(), b[t].size()); ++i)
      largest = std::max(largest, std::fabs(double{a[t][i]} - double{b[t][i]}));
  }
  return largest;
}

TEST(EquivalenceTest, FourWorkersAreOneProcessWithTheFourfoldBatch) {
  for (const auto kind : {core::OptimizerKind::kSgd, core::OptimizerKind::kMomentum}) {
    const Values workers = trained_by_workers(kind);
    const Values one = trained_by_one(kind);
    EXPECT_LE(largest_difference(workers, one), 1e-5);
    // They did learn: the parameters are far from where they began.
    core::JobConfig config;
    settings(config, kind);
    const auto work = workload(config, 0);
    TensorSet initial(work->table());
    work->initial(config.seed, initial.views());
    Values start;
    for (const auto view : initial.views()) start.emplace_back(view.begin(), view.end());
    EXPECT_GT(largest_difference(one, start), 1e-2);
  }
}

TEST(EquivalenceTest, OneSeedIsOneRunToTheBit) {
  EXPECT_EQ(trained_by_workers(core::OptimizerKind::kMomentum),
            trained_by_workers(core::OptimizerKind::kMomentum));
}

}  // namespace
}  // namespace isthmus::trainer
