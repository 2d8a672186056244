#include "wan/endpoint.h"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <exception>
#include <future>
#include <thread>
#include <utility>

#include "wan/link_keeper.h"
#include "wan/tls.h"

namespace isthmus::wan {
namespace {

namespace asio = boost::asio;

// The thread, and the way onto it.
class ThreadedEndpoint final : public Endpoint {
 public:
  ThreadedEndpoint(EndpointOptions options, Handler& handler, std::optional<asio::ssl::context> tls)
      : options_(std::move(options)), keeper_(io_, options_, handler, std::move(tls)) {}
  ThreadedEndpoint(const ThreadedEndpoint&) = delete;
  ThreadedEndpoint& operator=(const ThreadedEndpoint&) = delete;

  ~ThreadedEndpoint() override {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] {
      keeper_.stop();
      work_.reset();
    });
    thread_.join();
  }

  Status begin() {
    ISTHMUS_RETURN_IF_ERROR(keeper_.listen());
    asio::post(io_, [this] { keeper_.start(); });
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      return {ErrorCode::kResourceExhausted, std::string("wan thread: ") + error.what()};
    }
    return {};
  }

  Status send(Peer to, proto::Message message) override {
    Link* link = keeper_.find(to);
    if (link == nullptr) return {ErrorCode::kNotFound, "no such peer"};
    if (message.meta.size() > proto::kMaxMetaBytes ||
        message.payload_bytes() > options_.config.limits.message_bytes)
      return {ErrorCode::kInvalidArgument,
              "a message of " + std::to_string(frame_bytes(message)) + " bytes is over limits.message_bytes"};
    if (!link->up()) return {ErrorCode::kUnavailable, "link to " + link->name() + " is down"};
    link->note_queued(frame_bytes(message));
    asio::post(io_, [link, message = std::move(message)]() mutable { link->send(std::move(message)); });
    return {};
  }

  void resume() override {
    asio::post(io_, [this] { keeper_.resume(); });
  }

  void set_clock(Step clock) override {
    keeper_.set_clock(clock);
    // Others may be waiting for us, and we shall never move again.
    if (clock == kFinishedClock) asio::post(io_, [this] { keeper_.tell_clock(); });
  }

  std::vector<LinkState> links() const override {
    return on_wan_thread([this] {
      std::vector<LinkState> states;
      for (const std::unique_ptr<Link>& link : keeper_.links()) states.push_back(link->state());
      return states;
    });
  }

  Status flush(std::chrono::nanoseconds timeout) override {
    if (is_wan_thread()) return {ErrorCode::kInvalidArgument, "flush: called by the Handler"};
    const core::TimePoint deadline = std::chrono::steady_clock::now() + timeout;
    std::promise<Status> done;
    std::future<Status> result = done.get_future();
    asio::post(io_, [&] {
      asio::co_spawn(io_, keeper_.flush(deadline), [&done](const std::exception_ptr& thrown, Status status) {
        done.set_value(thrown ? Status(ErrorCode::kInternal, "flush: failed") : std::move(status));
      });
    });
    return result.get();
  }

  std::uint16_t port() const override { return keeper_.port(); }

  std::uint64_t refused_strangers() const override {
    return on_wan_thread([this] { return keeper_.refused_strangers(); });
  }

 private:
  // The one place where exceptions of libraries end; the thread goes on.
  void run() {
    for (;;) {
      try {
        io_.run();
        return;
      } catch (const std::exception& error) {
        if (options_.log) options_.log(std::string("wan: ") + error.what());
      }
    }
  }

  bool is_wan_thread() const { return io_.get_executor().running_in_this_thread(); }

  template <typename Read>
  auto on_wan_thread(Read read) const -> decltype(read()) {
    if (is_wan_thread()) return read();
    std::promise<decltype(read())> done;
    auto result = done.get_future();
    asio::post(io_, [&] { done.set_value(read()); });
    return result.get();
  }

  const EndpointOptions options_;
  mutable asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  LinkKeeper keeper_;
  std::thread thread_;
};

Status check(const EndpointOptions& options) {
  const auto& regions = options.config.regions;
  if (options.region >= regions.size() || options.server >= regions[options.region].servers.size())
    return {ErrorCode::kInvalidArgument, "wan: no such region or server in the config"};
  if (options.config.links.streams == 0 || options.config.links.streams > 64)
    return {ErrorCode::kInvalidArgument, "links.streams: must be in [1, 64]"};
  return {};
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::start(EndpointOptions options, Handler& handler) {
  ISTHMUS_RETURN_IF_ERROR(check(options));
  std::optional<asio::ssl::context> tls;
  if (!options.config.security.plaintext) {
    Result<TlsContextHandle> context =
        make_tls_context(options.config.security, options.config.regions[options.region].name);
    if (!context.ok()) return context.status();
    tls.emplace(context->release());
  }
  auto endpoint = std::make_unique<ThreadedEndpoint>(std::move(options), handler, std::move(tls));
  ISTHMUS_RETURN_IF_ERROR(endpoint->begin());
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace isthmus::wan
