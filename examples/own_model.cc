// Trains a libtorch module of your own in a region of a job whose config says `trainer: { model: custom }`:
//
//   isthmus server examples/own_model.yaml --region frankfurt &
//   own_model frankfurt 127.0.0.1 7100 2 0        # region, server, port, shards, worker
//
// It learns y = sin(x) on [-3, 3].

#include <torch/torch.h>

#include <cstdlib>
#include <iostream>

#include "isthmus/client.h"

using namespace isthmus;

struct Net : torch::nn::Module {
  torch::nn::Linear first{register_module("first", torch::nn::Linear(1, 32))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(32, 1))};
  torch::Tensor forward(const torch::Tensor& x) { return second(torch::tanh(first(x))); }
};

TensorView view(const torch::Tensor& t) { return {t.data_ptr<float>(), static_cast<std::size_t>(t.numel())}; }

Status train(const ClientConfig& config, Net& net, int steps) {
  auto connected = Client::connect(config);
  if (!connected.ok()) return connected.status();
  Client& client = **connected;
  std::vector<Gradient> initial, gradients;
  std::vector<Parameters> parameters;
  for (const torch::Tensor& p : net.parameters()) {
    p.mutable_grad() = torch::zeros_like(p);
    const TensorId id{static_cast<std::uint32_t>(parameters.size())};
    initial.push_back({id, view(p)});
    gradients.push_back({id, view(p.grad())});
    parameters.push_back({id, view(p)});
  }
  ISTHMUS_RETURN_IF_ERROR(client.create(initial));
  ISTHMUS_RETURN_IF_ERROR(client.pull(parameters).wait());
  for (int i = 0; i < steps; ++i) {
    const torch::Tensor x = torch::rand({64, 1}) * 6 - 3;
    for (const torch::Tensor& p : net.parameters()) p.mutable_grad().zero_();
    const torch::Tensor loss = torch::mse_loss(net.forward(x), torch::sin(x));
    loss.backward();
    ISTHMUS_RETURN_IF_ERROR(client.push_pull(gradients, 64, parameters).wait());
    if (i % 100 == 0) std::cout << "step " << client.step() << " loss " << loss.item<float>() << std::endl;
    ISTHMUS_RETURN_IF_ERROR(client.next_step());
  }
  std::cout << "loss "
            << torch::mse_loss(net.forward(torch::linspace(-3, 3, 61).unsqueeze(1)),
                               torch::sin(torch::linspace(-3, 3, 61)).unsqueeze(1))
                   .item<float>()
            << std::endl;
  return client.finish(/*wait_for_final=*/false);
}

int main(int argc, char** argv) {
  if (argc != 6) return std::cerr << "usage: own_model REGION HOST PORT SHARDS WORKER\n", 4;
  const auto number = [&](int i) { return static_cast<std::uint32_t>(std::atoi(argv[i])); };
  Net net;
  ClientConfig config;
  config.job = "own-model";
  config.region = argv[1];
  config.servers = {{argv[2], static_cast<std::uint16_t>(number(3)), number(4)}};
  config.worker = number(5);
  for (const auto& named : net.named_parameters())
    config.tensors.push_back({named.key(), {named.value().sizes().begin(), named.value().sizes().end()}});
  const Status status = train(config, net, 1000);
  if (!status.ok()) std::cerr << status.to_string() << "\n";
  return status.ok() ? 0 : 1;
}
