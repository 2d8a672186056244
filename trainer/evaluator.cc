#include "trainer/evaluator.h"

#include <algorithm>
#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "core/safetensors.h"

namespace isthmus::trainer {

Evaluator::Evaluator(models::Workload& workload, const core::JobConfig& config,
                     std::function<void(std::string_view)> log)
    : workload_(workload), config_(config), log_(std::move(log)), values_(workload.table()) {}

Status Evaluator::read(const std::string& region, Snapshot which, const TensorSet& into, Step* step) {
  std::unique_ptr<Client>& client = clients_[region];
  if (!client) {
    auto config = client_config(config_, region, 0, workload_.table(), log_);
    if (!config.ok()) return std::move(config).status();
    auto connected = Client::observe(*config);
    if (!connected.ok()) return std::move(connected).status();
    client = *std::move(connected);
  }
  return client->snapshot(which, into.parameters(), step);
}

Result<Evaluator::Report> Evaluator::evaluate(const std::string& region, Snapshot which,
                                              const std::filesystem::path& save) {
  Report report;
  ISTHMUS_RETURN_IF_ERROR(read(region, which, values_, &report.step));
  if (!save.empty()) {
    ISTHMUS_RETURN_IF_ERROR(core::write_safetensors(save, workload_.table(), values_.const_views(),
                                                    {{"job", config_.job}, {"format", "pt"}}));
  }
  auto evaluation = workload_.evaluate(values_.const_views());
  if (!evaluation.ok()) return std::move(evaluation).status();
  report.evaluation = *evaluation;
  return report;
}

Result<Evaluator::Agreement> Evaluator::compare_final() {
  Agreement agreement;
  // The range over all regions, element by element: the largest difference between any two.
  TensorSet low(workload_.table());
  TensorSet high(workload_.table());
  for (std::size_t region = 0; region < config_.regions.size(); ++region) {
    ISTHMUS_RETURN_IF_ERROR(read(config_.regions[region].name, Snapshot::kFinal, values_, nullptr));
    for (std::size_t tensor = 0; tensor < values_.views().size(); ++tensor) {
      for (std::size_t i = 0; i < values_.views()[tensor].size(); ++i) {
        const float value = values_.views()[tensor][i];
        float& lowest = low.views()[tensor][i];
        float& highest = high.views()[tensor][i];
        lowest = region == 0 ? value : std::min(lowest, value);
        highest = region == 0 ? value : std::max(highest, value);
        agreement.difference = std::max(agreement.difference, highest - lowest);
        agreement.largest = std::max(agreement.largest, std::fabs(value));
      }
    }
  }
  return agreement;
}

void Evaluator::serve(std::istream& requests, std::ostream& answers) {
  std::string request;
  while (std::getline(requests, request)) {
    const auto text = answer(request);
    answers << (text.ok() ? *text : nlohmann::json{{"error", text.status().to_string()}}.dump()) << std::endl;
  }
}

Result<std::string> Evaluator::answer(const std::string& request) {
  std::istringstream words(request);
  std::string what;
  std::string region;
  words >> what >> region >> std::ws;
  if (what == "compare") {
    const auto agreement = compare_final();
    if (!agreement.ok()) return agreement.status();
    return nlohmann::json{{"difference", agreement->difference}, {"largest", agreement->largest}}.dump();
  }
  const std::map<std::string, Snapshot> sources = {
      {"shared", Snapshot::kShared}, {"own", Snapshot::kOwnBeforeFinal}, {"final", Snapshot::kFinal}};
  const auto source = sources.find(what);
  if (source == sources.end())

    return Status(ErrorCode::kInvalidArgument, "unknown request '" + request + "'");
  std::string save;
  std::getline(words, save);
  const auto report = evaluate(region, source->second, save);
  if (!report.ok()) return report.status();
  return nlohmann::json{{"step", report->step},
                        {"accuracy", report->evaluation.accuracy},
                        {"loss", report->evaluation.loss},
                        {"samples", report->evaluation.samples}}
      .dump();
}

}  // namespace isthmus::trainer
