#include "apps/metrics_text.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/job_status.h"

namespace isthmus::apps {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

std::string text_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    result += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return result;
}

std::string text_of(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    text += (text.empty() ? "{" : ",") + std::string(name) + "=\"" + escaped(value) + "\"";
  return text.empty() ? "" : text + "}";
}

Labels with(Labels labels, std::string_view name, std::string value) {
  labels.emplace_back(name, std::move(value));
  return labels;
}

// One metric's lines stand together, whatever the order in which they come.
class Metrics {
 public:
  void gauge(std::string_view name, std::string_view help, const Labels& labels, double value) {
    add(name, "gauge", help, "", labels, text_of(value));
  }
  void gauge(std::string_view name, std::string_view help, const Labels& labels, std::uint64_t value) {
    add(name, "gauge", help, "", labels, std::to_string(value));
  }
  void counter(std::string_view name, std::string_view help, const Labels& labels, std::uint64_t value) {
    add(name, "counter", help, "", labels, std::to_string(value));
  }
  void counter(std::string_view name, std::string_view help, const Labels& labels, double value) {
    add(name, "counter", help, "", labels, text_of(value));
  }
  // [i] counts the observations of the value i; the last those of all greater ones too.
  template <typename Counts>
  void histogram(std::string_view name, std::string_view help, const Labels& labels, const Counts& counts) {
    std::uint64_t below = 0;
    double sum = 0;
    int next = 0;
    for (int bound = 0; bound <= 256; bound = bound == 0 ? 1 : 2 * bound) {
      for (; next < counts.size() && next <= bound; ++next) {
        below += counts[next];
        sum += static_cast<double>(counts[next]) * next;
      }
      add(name, "histogram", help, "_bucket", with(labels, "le", std::to_string(bound)),
          std::to_string(below));
    }
    for (; next < counts.size(); ++next) {
      below += counts[next];
      sum += static_cast<double>(counts[next]) * next;
    }
    add(name, "histogram", help, "_bucket", with(labels, "le", "+Inf"), std::to_string(below));
    add(name, "histogram", help, "_sum", labels, text_of(sum));
    add(name, "histogram", help, "_count", labels, std::to_string(below));
  }

  std::string text() const {
    std::string text;
    for (const Family& family : families_) text += family.head + family.lines;
    return text;
  }

 private:
  struct Family {
    std::string name;
    std::string head;
    std::string lines;
  };

  void add(std::string_view name, std::string_view type, std::string_view help, std::string_view suffix,
           const Labels& labels, const std::string& value) {
    Family* family = nullptr;
    for (Family& each : families_) {
      if (each.name == name) family = &each;
    }
    if (family == nullptr) {
      const std::string named(name);
      family = &families_.emplace_back(Family{
          named,
          "# HELP " + named + " " + std::string(help) + "\n# TYPE " + named + " " + std::string(type) + "\n",
          ""});
    }
    family->lines += family->name + std::string(suffix) + text_of(labels) + " " + value + "\n";
  }

  std::vector<Family> families_;
};

void add_worker(const proto::WorkerStatus& worker, const Labels& of_server, Metrics& metrics) {
  const Labels labels = with(of_server, "worker", std::to_string(worker.worker()));
  metrics.gauge("isthmus_worker_step", "Steps that the worker has finished.", labels,
                std::uint64_t{worker.step()});
  metrics.gauge("isthmus_worker_living", "1 while the worker holds a lease.", labels,
                std::uint64_t{worker.lease_left_ms() > 0 && !worker.done() ? 1u : 0u});
  metrics.counter("isthmus_worker_refused_total", "Contributions that were refused.", labels,
                  std::uint64_t{worker.refused()});
  const std::pair<const char*, std::uint64_t> parts[] = {{"compute", worker.times().compute_us()},
                                                         {"encode", worker.times().encode_us()},
                                                         {"exchange", worker.times().exchange_us()},
                                                         {"barrier", worker.times().barrier_us()}};
  for (const auto& [part, us] : parts)
    metrics.counter("isthmus_worker_seconds_total", "What the worker's time went to.",
                    with(labels, "part", part), static_cast<double>(us) * 1e-6);
}

void add_link(const proto::LinkStatus& link, const Labels& of_server, Metrics& metrics) {
  const Labels labels =
      with(with(of_server, "peer_region", link.region()), "peer_server", std::to_string(link.server()));
  metrics.gauge("isthmus_link_up", "1 while the link is up.", labels, std::uint64_t{link.up() ? 1u : 0u});
  metrics.counter("isthmus_link_sent_bytes_total", "Under TLS, without TCP/IP headers.", labels,
                  std::uint64_t{link.sent_bytes()});
  metrics.counter("isthmus_link_received_bytes_total", "Under TLS, without TCP/IP headers.", labels,
                  std::uint64_t{link.received_bytes()});
  metrics.counter("isthmus_link_reconnects_total", "How often the link came up again.", labels,
                  std::uint64_t{link.reconnects()});
  metrics.counter("isthmus_link_refused_total", "Peers and messages that were refused.", labels,
                  std::uint64_t{link.refused()});
  if (link.rtt_us() > 0)
    metrics.gauge("isthmus_link_rtt_seconds", "Of heartbeats.", labels,
                  static_cast<double>(link.rtt_us()) * 1e-6);
}

void add_shard(const proto::ShardStatus& shard, const Labels& labels, Metrics& metrics) {
  for (const proto::Phase phase :
       {proto::PHASE_WAITING, proto::PHASE_TRAINING, proto::PHASE_DRAINING, proto::PHASE_DRAINED})
    metrics.gauge("isthmus_phase", "1 for the phase that the shard is in.",
                  with(labels, "phase", std::string(to_string(phase))),
                  std::uint64_t{shard.phase() == phase ? 1u : 0u});
  metrics.gauge("isthmus_step", "Steps that the slowest living worker has finished.", labels,
                std::uint64_t{shard.clock()});
  metrics.gauge("isthmus_halted", "1 while workers wait at the hard staleness bound.", labels,
                std::uint64_t{shard.halted() ? 1u : 0u});
  metrics.gauge("isthmus_elements", "Parameters that the shard holds.", labels,
                std::uint64_t{shard.elements()});
  metrics.counter("isthmus_commits_total", "Updates of slices.", labels, std::uint64_t{shard.commits()});
  metrics.counter("isthmus_samples_total", "Samples that were trained on.", labels,
                  std::uint64_t{shard.samples()});
  metrics.gauge("isthmus_round", "The newest round between regions.", labels,
                std::uint64_t{shard.newest_round()});
  metrics.counter("isthmus_lan_received_bytes_total", "From workers and observers.", labels,
                  std::uint64_t{shard.received_bytes()});
  metrics.counter("isthmus_lan_sent_bytes_total", "To workers and observers.", labels,
                  std::uint64_t{shard.sent_bytes()});
  metrics.counter("isthmus_refused_total", "Contributions and messages that were refused.",
                  with(labels, "why", "not_finite"), std::uint64_t{shard.refused_not_finite()});
  metrics.counter("isthmus_refused_total", "", with(labels, "why", "malformed"),
                  std::uint64_t{shard.refused_malformed()});
  metrics.counter("isthmus_folded_total", "Contributions of regions folded, as their home.", labels,
                  std::uint64_t{shard.contributions_folded()});
  metrics.counter("isthmus_duplicates_total", "Contributions of regions that came again.", labels,
                  std::uint64_t{shard.duplicates_ignored()});
  metrics.counter("isthmus_resets_total", "Anchors that had to be sent whole.", labels,
                  std::uint64_t{shard.resets()});
  metrics.counter("isthmus_checksum_mismatches_total", "Anchors that were not what their home said.", labels,
                  std::uint64_t{shard.checksum_mismatches()});
  metrics.counter("isthmus_overflows_total", "Rounds left out, their sum not being finite.", labels,
                  std::uint64_t{shard.overflows()});
  metrics.histogram("isthmus_staleness", "In commits; with several regions, in steps at a sync.", labels,
                    shard.staleness());
}

}  // namespace

std::string metrics_text(std::span<const proto::StatusReply> replies) {
  Metrics metrics;
  const proto::StatusReply* last = nullptr;
  for (const proto::StatusReply& reply : replies) {
    const Labels server = {
        {"job", reply.job()}, {"region", reply.region()}, {"server", std::to_string(reply.server())}};
    const Labels shard = with(server, "shard", std::to_string(reply.shard().shard()));
    add_shard(reply.shard(), shard, metrics);
    // A worker tells all shards the same; that of a server's first is enough.
    const bool same = last != nullptr && last->region() == reply.region() && last->server() == reply.server();
    last = &reply;
    if (!same)
      for (const proto::WorkerStatus& worker : reply.shard().workers()) add_worker(worker, server, metrics);
    for (const proto::LinkStatus& link : reply.links()) add_link(link, server, metrics);
  }
  return metrics.text();
}

std::string process_metrics() {
  Metrics metrics;
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  metrics.gauge("process_resident_memory_bytes", "Resident memory.", {},
                pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  metrics.counter("process_cpu_seconds_total", "User and system time.", {},
                  seconds(usage.ru_utime) + seconds(usage.ru_stime));
  return metrics.text();
}

}  // namespace isthmus::apps
