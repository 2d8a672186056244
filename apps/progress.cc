#include "apps/progress.h"

#include <algorithm>

#include "core/units.h"

namespace isthmus::apps {
namespace {

constexpr auto kPlainInterval = std::chrono::seconds(5);

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::optional<double> seconds_left(const core::JobConfig& config, const JobStatus& status, const Rates& rates,
                                   std::chrono::nanoseconds trained) {
  std::optional<double> left;
  const auto consider = [&](double seconds) {
    left = std::max(0.0, left ? std::min(*left, seconds) : seconds);
  };
  const core::StopConfig& stop = config.trainer.stop;
  if (stop.steps && rates.steps_per_second > 0)
    consider((static_cast<double>(*stop.steps) - static_cast<double>(status.clock)) / rates.steps_per_second);
  if (stop.time) consider(std::chrono::duration<double>(*stop.time - trained).count());
  return left;
}

}  // namespace

Rates rates_between(const JobStatus& before, const JobStatus& now, std::chrono::nanoseconds time) {
  Rates rates;
  const double seconds = std::chrono::duration<double>(time).count();
  if (seconds <= 0) return rates;
  const auto rate = [&](std::uint64_t from, std::uint64_t to) {
    return to > from ? static_cast<double>(to - from) / seconds : 0.0;
  };
  rates.steps_per_second = rate(before.clock, now.clock);
  rates.samples_per_second = rate(before.samples, now.samples);
  for (std::size_t i = 0; i < now.links.size(); ++i) {
    const std::uint64_t from = i < before.links.size() ? before.links[i].bytes : 0;
    rates.link_bits_per_second.push_back(8 * rate(from, now.links[i].bytes));
  }
  return rates;
}

std::string progress_text(const core::JobConfig& config, const JobStatus& status, const Rates& rates,
                          const std::optional<Judged>& judged, std::chrono::nanoseconds trained) {
  if (status.phase == proto::PHASE_WAITING) return "waiting for workers and their initial values";
  if (status.phase == proto::PHASE_DRAINED) return "the last sync is done";
  std::string text = "step " + std::to_string(status.clock);
  if (config.trainer.stop.steps) text += "/" + std::to_string(*config.trainer.stop.steps);
  if (judged) text += format("  accuracy %.2f %%  loss %.4f", 100 * judged->accuracy, judged->loss);
  text += format("  %.0f samples/s", rates.samples_per_second);
  for (std::size_t i = 0; i < rates.link_bits_per_second.size(); ++i) {
    text += "  " + status.links[i].from + ">" + status.links[i].to +
            format(" %.2f Mbit/s", rates.link_bits_per_second[i] / 1e6);
    if (status.links[i].up < status.links[i].links) text += " DOWN";
  }
  if (const auto staleness = percentile(status.staleness, 0.5))
    text += "  staleness " + std::to_string(*staleness);
  const bool halted =
      std::any_of(status.regions.begin(), status.regions.end(), [](const auto& r) { return r.halted; });
  if (halted) text += "  HALTED at the hard staleness bound";
  if (status.phase == proto::PHASE_DRAINING) return text + "  last sync";
  if (const auto left = seconds_left(config, status, rates, trained)) text += format("  ETA %.0f s", *left);
  return text;
}

void ProgressLine::show(const std::string& text, core::TimePoint now) {
  if (mode_ == Mode::kQuiet) return;
  if (mode_ == Mode::kPlain) {
    if (last_ && now - *last_ < kPlainInterval) return;
    last_ = now;
    std::fprintf(out_, "%s\n", text.c_str());
  } else {
    // Spaces over what is left of a longer line before.
    std::fprintf(out_, "\r%s%*s", text.c_str(),
                 static_cast<int>(width_ > text.size() ? width_ - text.size() : 0), "");
    width_ = text.size();
  }
  std::fflush(out_);
}

void ProgressLine::say(const std::string& line) {
  clear();
  std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
}

void ProgressLine::clear() {
  if (mode_ != Mode::kTerminal || width_ == 0) return;
  std::fprintf(out_, "\r%*s\r", static_cast<int>(width_), "");
  std::fflush(out_);
  width_ = 0;
}

}  // namespace isthmus::apps
