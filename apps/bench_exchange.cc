#include "apps/bench_exchange.h"

#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "compression/codec.h"
#include "core/check.h"
#include "server/optimizer.h"
#include "transport/socket.h"

namespace isthmus::apps {
namespace {

constexpr char kRegion[] = "here";
constexpr std::uint64_t kMessageBytes = std::uint64_t{1} << 30;
constexpr float kGradient = 1e-3f;
constexpr float kRate = 1e-3f;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<TensorSpec> tensors_of(const ExchangeShape& shape) {
  std::vector<TensorSpec> tensors;
  for (std::size_t i = 0; i < shape.tensors; ++i)
    tensors.push_back({"tensor" + std::to_string(i), {shape.elements}});
  return tensors;
}

// A port that nobody had a moment ago.
Result<std::uint16_t> free_port() {
  transport::Context context;
  const auto socket = transport::Socket::router(context, {"127.0.0.1", 0}, {});
  if (!socket.ok()) return socket.status();
  return (*socket)->port();
}

core::JobConfig config_of(std::uint16_t port) {
  core::JobConfig config;
  config.job = "bench";
  core::RegionConfig region;
  region.name = kRegion;
  core::ServerConfig server;
  server.lan = server.lan_bind = {"127.0.0.1", port};
  region.servers = {server};
  config.regions = {region};
  config.optimizer.learning_rate = kRate;
  config.limits.message_bytes = kMessageBytes;
  return config;
}

}  // namespace

IsthmusExchange::IsthmusExchange(const ExchangeShape& shape)
    : shape_(shape),
      gradients_(std::make_shared<std::vector<float>>(shape.tensors * shape.elements, kGradient)) {
  for (auto& views : parameters_) views.resize(gradients_->size());
}

Result<std::unique_ptr<IsthmusExchange>> IsthmusExchange::start(const ExchangeShape& shape) {
  std::unique_ptr<IsthmusExchange> exchange(new IsthmusExchange(shape));
  const auto port = free_port();
  if (!port.ok()) return port.status();
  server::ServerOptions options;
  options.config = config_of(*port);
  options.hold = true;
  auto server = server::Server::start(std::move(options));
  if (!server.ok()) return std::move(server).status();
  exchange->server_ = *std::move(server);
  exchange->thread_ = std::thread([server = exchange->server_.get()] { (void)server->run(); });

  ClientConfig config;
  config.job = "bench";
  config.region = kRegion;
  config.servers = {{"127.0.0.1", *port, 1}};
  config.tensors = tensors_of(shape);
  config.max_message_bytes = kMessageBytes;
  auto client = Client::connect(config);
  if (!client.ok()) return std::move(client).status();
  exchange->client_ = *std::move(client);
  std::vector<Gradient> initial;
  for (std::uint32_t i = 0; i < shape.tensors; ++i) initial.push_back(exchange->gradient(i));
  ISTHMUS_RETURN_IF_ERROR(exchange->client_->create(initial));
  return exchange;
}

IsthmusExchange::~IsthmusExchange() {
  if (client_) (void)client_->finish(false);
  client_.reset();
  if (server_) server_->cancel();
  if (thread_.joinable()) thread_.join();
}

Gradient IsthmusExchange::gradient(std::uint32_t tensor) const {
  return {{tensor}, {gradients_->data() + tensor * shape_.elements, shape_.elements}, gradients_};
}

Status IsthmusExchange::exchange() {
  std::deque<Pending> in_flight;
  std::vector<float>& views = parameters_[turn_++ % 2];
  for (std::uint32_t first = 0; first < shape_.tensors;
       first += static_cast<std::uint32_t>(shape_.together)) {
    if (in_flight.size() == shape_.in_flight) {
      ISTHMUS_RETURN_IF_ERROR(in_flight.front().wait());
      in_flight.pop_front();
    }
    std::vector<Gradient> pushed;
    std::vector<Parameters> pulled;
    for (std::uint32_t i = first; i < std::min(first + shape_.together, shape_.tensors); ++i) {
      if (shape_.push) pushed.push_back(gradient(i));
      if (shape_.pull) pulled.push_back({{i}, {views.data() + i * shape_.elements, shape_.elements}});
    }
    in_flight.push_back(client_->push_pull(pushed, 1, pulled));
  }
  for (Pending& each : in_flight) ISTHMUS_RETURN_IF_ERROR(each.wait());
  return {};
}

Result<double> IsthmusExchange::run() {
  const auto start = std::chrono::steady_clock::now();
  ISTHMUS_RETURN_IF_ERROR(exchange());
  const double seconds = seconds_since(start);
  if (shape_.push) ISTHMUS_RETURN_IF_ERROR(client_->next_step());
  return seconds;
}

PlainExchange::PlainExchange(const ExchangeShape& shape)
    : shape_(shape),
      gradients_(shape.tensors * shape.elements, kGradient),
      parameters_(gradients_.size()),
      model_(gradients_.size()),
      mean_(shape.elements) {}

Result<std::unique_ptr<PlainExchange>> PlainExchange::start(const ExchangeShape& shape) {
  std::unique_ptr<PlainExchange> exchange(new PlainExchange(shape));
  auto server = transport::YardstickServer::start(
      [exchange = exchange.get()](std::span<const std::byte> request) { return exchange->serve(request); });
  if (!server.ok()) return std::move(server).status();
  exchange->server_ = *std::move(server);
  auto client = transport::YardstickClient::connect(exchange->server_->port());
  if (!client.ok()) return std::move(client).status();
  exchange->client_ = *std::move(client);
  return exchange;
}

// One pass that adds what came, and one that applies it.
std::span<const std::byte> PlainExchange::serve(std::span<const std::byte> request) {
  static const auto optimizer = server::make_optimizer({.learning_rate = kRate});
  static const auto codec = compression::make_codec(core::CodecConfig{core::CodecKind::kFp32});
  const std::span<float> model(model_.data() + next_ * shape_.elements, shape_.elements);
  next_ = (next_ + 1) % shape_.tensors;
  if (shape_.push) {
    ISTHMUS_CHECK(codec->decode(request, mean_).ok());
    ISTHMUS_CHECK(optimizer->apply(model, mean_, {}, kRate, 1));
  }
  return shape_.pull ? std::as_bytes(model) : std::span<const std::byte>(request).first(0);
}

Result<double> PlainExchange::run() {
  static const auto codec = compression::make_codec(core::CodecConfig{core::CodecKind::kFp32});
  static constexpr std::byte kQuestion[8] = {};
  const auto start = std::chrono::steady_clock::now();
  std::size_t received = 0;
  const auto receive = [&] {
    const std::span<const std::byte> answer = client_->receive();
    if (shape_.pull)
      ISTHMUS_CHECK(
          codec->decode(answer, {parameters_.data() + received * shape_.elements, shape_.elements}).ok());
    ++received;
  };
  for (std::size_t i = 0; i < shape_.tensors; ++i) {
    if (i - received == shape_.in_flight) receive();
    const std::span<const float> gradient(gradients_.data() + i * shape_.elements, shape_.elements);
    client_->send(shape_.push ? std::as_bytes(gradient) : std::span<const std::byte>(kQuestion));
  }
  while (received < shape_.tensors) receive();
  return seconds_since(start);
}

}  // namespace isthmus::apps
