// A Handler that keeps what it hears, and tests that wait for it.
//
// Threads: the Handler's side on the wan thread, the rest on the test's.
// Memory:  every message.  Errors: wait() gives false after its deadline.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "wan/endpoint.h"

namespace isthmus::wan {

class Recorder final : public Handler {
 public:
  struct Received {
    Peer from;
    proto::Message message;
  };
  struct Heard {
    std::vector<Received> messages;
    std::map<Peer, int> ups;
    std::map<Peer, int> downs;
    std::map<Peer, std::uint64_t> incarnations;
    std::map<Peer, Step> clocks;
    std::vector<Status> down_reasons;
    std::vector<Status> refusals;
    std::vector<std::string> log;
    int declined = 0;
    bool accepting = true;
  };

  bool on_message(Peer from, proto::Message& message) override {
    return change([&](Heard& heard) {
      if (!heard.accepting) return ++heard.declined, false;
      heard.messages.push_back({from, std::move(message)});
      return true;
    });
  }
  void on_link_up(Peer peer, std::uint64_t incarnation) override {
    change([&](Heard& heard) {
      heard.incarnations[peer] = incarnation;
      return ++heard.ups[peer];
    });
  }
  void on_link_down(Peer peer, const Status& why) override {
    change([&](Heard& heard) {
      heard.down_reasons.push_back(why);
      return ++heard.downs[peer];
    });
  }
  void on_clock(Peer peer, Step clock) override {
    change([&](Heard& heard) { return heard.clocks[peer] = clock; });
  }
  void on_refused(Peer, const Status& why) override {
    change([&](Heard& heard) {
      heard.refusals.push_back(why);
      return true;
    });
  }
  void log(const std::string& line) {
    change([&](Heard& heard) {
      heard.log.push_back(line);
      return true;
    });
  }

  template <typename Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return condition(heard_); });
  }
  bool wait_up(Peer peer, int times = 1) {
    return wait([&](Heard& heard) { return heard.ups[peer] >= times; });
  }
  bool wait_down(Peer peer, int times = 1) {
    return wait([&](Heard& heard) { return heard.downs[peer] >= times; });
  }
  // Until a refusal says this.
  bool wait_refusal(const std::string& part) {
    return wait([&](Heard& heard) {
      for (const Status& refusal : heard.refusals)
        if (refusal.code() == ErrorCode::kRefused && refusal.message().find(part) != std::string::npos)
          return true;
      return false;
    });
  }
  bool wait_log(const std::string& part) {
    return wait([&](Heard& heard) {
      for (const std::string& line : heard.log)
        if (line.find(part) != std::string::npos) return true;
      return false;
    });
  }
  bool wait_messages(std::size_t count) {
    return wait([&](Heard& heard) { return heard.messages.size() >= count; });
  }
  void accept(bool accepting) {
    change([&](Heard& heard) { return heard.accepting = accepting; });
  }
  Heard heard() {
    std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  template <typename Change>
  auto change(Change with) -> decltype(with(std::declval<Heard&>())) {
    std::lock_guard lock(mutex_);
    auto result = with(heard_);
    changed_.notify_all();
    return result;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Heard heard_;
};

}  // namespace isthmus::wan
