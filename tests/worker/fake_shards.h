// The shards of a region, scripted: real sockets, a thread of their own, answers by table.
//
// Unless told otherwise they welcome everybody, echo heartbeats, add what is pushed to what they hold, answer
// pulls of newer slices, and let every step begin.
//
// Threads: handlers and what is given to run() run on the fakes' thread; all else is the test's. What they
//          capture must outlive the fakes: declare it first.
// Memory:  keeps all messages received.
// Errors:  a test failure.

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/mailbox.h"
#include "isthmus/client.h"
#include "proto/meta.h"
#include "transport/socket.h"

namespace isthmus::testing {

class FakeShards {
 public:
  using Peer = transport::PeerName;
  using Handler = std::function<void(std::uint32_t shard, const Peer& from, const proto::Message& message)>;
  struct Held {
    std::uint64_t version = 0;
    std::vector<float> values;
  };

  explicit FakeShards(std::uint32_t count, std::vector<std::uint16_t> ports = {}) {
    for (std::uint32_t shard = 0; shard < count; ++shard) {
      const std::uint16_t port = ports.empty() ? 0 : ports[shard];
      auto made = transport::Socket::router(context_, {"127.0.0.1", port}, {});
      EXPECT_TRUE(made.ok()) << made.status().to_string();
      sockets_.push_back(std::move(*made));
      polled_.push_back(sockets_.back().get());
    }
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) turn();
    });
  }
  ~FakeShards() {
    thread_.request_stop();
    tasks_.wake();
    thread_.join();
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(sockets_.size()); }
  std::vector<std::uint16_t> ports() const {
    std::vector<std::uint16_t> ports;
    for (const auto& socket : sockets_) ports.push_back(socket->port());
    return ports;
  }
  ClientConfig config(std::vector<TensorSpec> tensors) const {
    ClientConfig config;
    config.job = "job";
    config.region = "here";
    config.tensors = std::move(tensors);
    for (const auto& socket : sockets_) config.servers.push_back({"127.0.0.1", socket->port(), 1});
    return config;
  }

  // On the fakes' thread; returns when it is done.
  void run(std::function<void()> task) {
    std::promise<void> done;
    std::function<void()> both = [&] {
      task();
      done.set_value();
    };
    ASSERT_TRUE(tasks_.try_push(both));
    done.get_future().wait();
  }
  // Replaces what is done with one kind of message.
  void on(proto::Kind kind, Handler handler) {
    run([&] { handlers_[kind] = std::move(handler); });
  }

  // ---- For handlers and run() ----
  void send(std::uint32_t shard, const Peer& to, proto::Message message) {
    (void)sockets_[shard]->send(std::move(message), to);  // Some tests' peers have gone.
  }
  void refuse(std::uint32_t shard, const Peer& to, std::uint64_t id, proto::RefuseReason reason,
              std::string text) {
    send(shard, to, proto::make_refusal(id, reason, std::move(text)));
  }
  void welcome(std::uint32_t shard, const Peer& to, std::uint64_t id) {
    proto::Welcome meta;
    meta.set_shard(shard);
    meta.set_shards(count());
    meta.set_start_step(start_step);
    meta.set_initialized(true);
    meta.set_lease_ms(lease_ms);
    if (layout) *meta.mutable_layout() = *layout;
    send(shard, to, proto::make_message(proto::Kind::kWelcome, id, meta));
  }
  void answer_push_pull(std::uint32_t shard, const Peer& to, const proto::Message& message) {
    const auto meta = proto::parse_meta<proto::PushPull>(message);
    std::vector<std::uint64_t> sizes;
    for (const auto& record : meta->push()) sizes.push_back(record.bytes());
    const auto records = proto::split_records(message, sizes);
    EXPECT_TRUE(records.ok()) << records.status().to_string();
    for (int i = 0; records.ok() && i < meta->push_size(); ++i)
      add(meta->push(i).slice(), (*records)[static_cast<std::size_t>(i)]);
    proto::PushPullReply reply;
    std::vector<core::SharedBytes> payload;
    for (const auto& pull : meta->pull()) {
      const Held& held = slices[pull.slice()];
      if (held.version <= pull.known_version()) continue;
      auto* record = reply.add_records();
      record->set_slice(pull.slice());
      record->set_codec(1);
      record->set_bytes(held.values.size() * sizeof(float));
      reply.add_versions(held.version);
      payload.push_back(core::copy_bytes(std::as_bytes(std::span(held.values))));
    }
    proto::Message out = proto::make_message(proto::Kind::kPushPullReply, message.request_id, reply);
    out.payload = std::move(payload);
    send(shard, to, std::move(out));
  }

  std::uint64_t start_step = 0;
  std::uint64_t lease_ms = 10000;
  std::optional<proto::LayoutTable> layout;  // In every Welcome.
  std::map<std::uint32_t, Held> slices;

  // ---- For tests ----
  // How many of a kind came to a shard so far.
  std::size_t received(std::uint32_t shard, proto::Kind kind) {
    std::lock_guard lock(mutex_);
    return messages_[{shard, kind}].size();
  }
  // The nth of a kind at a shard; waits for it.
  proto::Message wait_for(std::uint32_t shard, proto::Kind kind, std::size_t nth = 0) {
    std::unique_lock lock(mutex_);
    auto& of_kind = messages_[{shard, kind}];
    const bool came = arrived_.wait_for(lock, std::chrono::seconds(20), [&] { return of_kind.size() > nth; });
    EXPECT_TRUE(came) << "no " << to_string(kind) << " number " << nth << " at shard " << shard;
    return came ? of_kind[nth] : proto::Message();
  }
  template <typename Meta>
  Meta meta_of(std::uint32_t shard, proto::Kind kind, std::size_t nth = 0) {
    return *proto::parse_meta<Meta>(wait_for(shard, kind, nth));
  }

 private:
  void add(std::uint32_t slice, const core::SharedBytes& bytes) {
    Held& held = slices[slice];
    ++held.version;
    held.values.resize(bytes.size() / sizeof(float));
    for (std::size_t i = 0; i < held.values.size(); ++i) {
      float value = 0;
      std::memcpy(&value, bytes.view.data() + i * sizeof(float), sizeof(float));
      held.values[i] += value;
    }
  }
  void answer(std::uint32_t shard, const Peer& from, const proto::Message& message) {
    using proto::Kind;
    if (const auto scripted = handlers_.find(message.kind); scripted != handlers_.end())
      return scripted->second(shard, from, message);
    const std::uint64_t id = message.request_id;
    switch (message.kind) {
      case Kind::kHello: return welcome(shard, from, id);
      case Kind::kHeartbeat: return send(shard, from, message);
      case Kind::kPushPull: return answer_push_pull(shard, from, message);
      case Kind::kInitialize: {
        const auto meta = proto::parse_meta<proto::Initialize>(message);
        std::vector<std::uint64_t> sizes;
        for (const auto& record : meta->records()) sizes.push_back(record.bytes());
        const auto records = proto::split_records(message, sizes);
        EXPECT_TRUE(records.ok());
        for (int i = 0; i < meta->records_size(); ++i)
          add(meta->records(i).slice(), (*records)[static_cast<std::size_t>(i)]);
        return send(shard, from, {Kind::kInitializeReply, id, "", {}});
      }
      case Kind::kNextStep: return send(shard, from, {Kind::kNextStepReply, id, "", {}});
      case Kind::kLeave: return send(shard, from, {Kind::kLeaveReply, id, "", {}});
      default: return;
    }
  }
  void turn() {
    transport::wait(polled_, tasks_.fd(), std::chrono::hours(1));
    tasks_.clear_wake();
    while (auto task = tasks_.try_pop()) (*task)();
    for (std::uint32_t shard = 0; shard < count(); ++shard) {
      while (true) {
        auto got = sockets_[shard]->receive();
        EXPECT_TRUE(got.ok()) << got.status().to_string();
        if (!got.ok() || !*got) break;
        {
          std::lock_guard lock(mutex_);
          messages_[{shard, (*got)->message.kind}].push_back((*got)->message);
        }
        answer(shard, (*got)->from, (*got)->message);
        arrived_.notify_all();
      }
    }
  }

  transport::Context context_;
  std::vector<std::unique_ptr<transport::Socket>> sockets_;
  std::vector<transport::Socket*> polled_;
  core::Mailbox<std::function<void()>> tasks_{64};
  std::map<proto::Kind, Handler> handlers_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<std::uint32_t, proto::Kind>, std::vector<proto::Message>> messages_;
  std::jthread thread_;
};

}  // namespace isthmus::testing
