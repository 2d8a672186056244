// Judges a job's model on the held-out samples, as an observer of its regions.
//
// Threads: the caller's.
// Memory:  two sets of parameters, beside the Clients'.
// Errors:  a region that does not answer, or values that are not there (yet).

#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/job_config.h"
#include "isthmus/client.h"
#include "isthmus/status.h"
#include "trainer/job_client.h"
#include "trainer/workload.h"

namespace isthmus::trainer {

class Evaluator {
 public:
  Evaluator(models::Workload& workload, const core::JobConfig& config,
            std::function<void(std::string_view)> log);

  struct Report {
    Step step = 0;  // The region's clock when the values were read.
    models::Evaluation evaluation;
  };
  // Reads the values from `region`'s servers, and saves them to `save` if that is not empty.
  Result<Report> evaluate(const std::string& region, Snapshot which, const std::filesystem::path& save = {});

  // The largest difference between any two regions' final parameters, and the largest parameter.
  struct Agreement {
    float difference = 0;
    float largest = 0;
  };
  Result<Agreement> compare_final();

  // A request is "shared REGION [FILE]", "own REGION [FILE]", "final REGION [FILE]" or "compare"; the answer
  // a JSON object.
  Result<std::string> answer(const std::string& request);

  // One request a line, one answer a line ({"error": ...} when it could not be done), until the input ends.
  void serve(std::istream& requests, std::ostream& answers);

 private:
  Status read(const std::string& region, Snapshot which, const TensorSet& into, Step* step);

  models::Workload& workload_;
  const core::JobConfig& config_;
  const std::function<void(std::string_view)> log_;
  std::map<std::string, std::unique_ptr<Client>> clients_;
  TensorSet values_;
};

}  // namespace isthmus::trainer
