#include "trainer/job_client.h"

namespace isthmus::trainer {
namespace {

GradientCodec lan_codec(const core::CodecConfig& codec) {
  switch (codec.kind) {
    case core::CodecKind::kFp16: return GradientCodec::kFp16;
    case core::CodecKind::kBf16: return GradientCodec::kBf16;
    case core::CodecKind::kInt8:
      return codec.rounding == core::Rounding::kStochastic ? GradientCodec::kInt8Stochastic
                                                           : GradientCodec::kInt8;
    default: return GradientCodec::kFp32;
  }
}

}  // namespace

Result<ClientConfig> client_config(const core::JobConfig& config, std::string_view region,
                                   std::uint32_t worker, std::span<const TensorSpec> tensors,
                                   std::function<void(std::string_view)> log) {
  const core::RegionConfig* found = config.find_region(region);
  if (found == nullptr)
    return Status(ErrorCode::kInvalidArgument,
                  "job '" + config.job + "' has no region '" + std::string(region) + "'");
  ClientConfig client;
  client.job = config.job;
  client.region = found->name;
  client.worker = worker;
  for (const core::ServerConfig& server : found->servers)
    client.servers.push_back({server.lan.host, server.lan.port, server.shards});
  client.tensors.assign(tensors.begin(), tensors.end());
  client.slice_elements = config.slice_elements;
  client.codec = lan_codec(config.compression.lan);
  if (config.compression.deep)
    client.deep = {.keep = config.compression.deep->keep,
                   .momentum = config.compression.deep->momentum,
                   .warmup_steps = config.compression.deep->warmup_steps,
                   .dense_below_elements = config.compression.dense_below_elements};
  client.clip = {.norm = config.optimizer.clip.norm, .tensor_norm = config.optimizer.clip.tensor_norm};
  client.timeout = config.limits.operation_timeout;
  client.max_message_bytes = config.limits.message_bytes;
  client.log = std::move(log);
  return client;
}

TensorSet::TensorSet(std::span<const TensorSpec> table) {
  for (const TensorSpec& tensor : table) values_.emplace_back(tensor.elements());
  for (auto& values : values_) {
    views_.emplace_back(values);
    const_views_.emplace_back(values);
  }
}

std::vector<Gradient> TensorSet::gradients() const {
  std::vector<Gradient> gradients;
  for (std::uint32_t i = 0; i < views_.size(); ++i) gradients.push_back({{i}, const_views_[i]});
  return gradients;
}

std::vector<Parameters> TensorSet::parameters() const {
  std::vector<Parameters> parameters;
  for (std::uint32_t i = 0; i < views_.size(); ++i) parameters.push_back({{i}, views_[i]});
  return parameters;
}

}  // namespace isthmus::trainer
