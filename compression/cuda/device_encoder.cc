// DeviceEncoder: memory, the codec's kernels, and the way back to the host.

#include <cstring>

#include "compression/cuda/device_codec.h"
#include "compression/cuda/device_kernels.h"
#include "compression/cuda/runtime.cuh"
#include "core/check.h"

namespace isthmus::compression {
namespace {

constexpr std::size_t kMaxElements = std::size_t{1} << 31;

class CudaEncoder final : public DeviceEncoder {
 public:
  static Result<std::unique_ptr<DeviceEncoder>> make(const core::CodecConfig& config,
                                                     std::size_t max_elements) {
    std::unique_ptr<CudaEncoder> encoder(new CudaEncoder(config, max_elements));
    const std::size_t record_bytes = encoder->codec_->max_encoded_bytes(max_elements);
    ISTHMUS_RETURN_IF_ERROR(encoder->outcome_.allocate(sizeof(EncodeOutcome)));
    ISTHMUS_RETURN_IF_ERROR(encoder->record_.allocate(record_bytes));
    ISTHMUS_RETURN_IF_ERROR(encoder->scratch_.allocate(encoder->kernels_->scratch_bytes(max_elements)));
    ISTHMUS_RETURN_IF_ERROR(encoder->pinned_.allocate(sizeof(EncodeOutcome) + record_bytes));
    ISTHMUS_RETURN_IF_ERROR(encoder->done_.create());
    return std::unique_ptr<DeviceEncoder>(std::move(encoder));
  }

  const Codec& codec() const noexcept override { return *codec_; }

  Status begin(const Change& change, const CodecState& state, DeviceStream stream) override {
    ISTHMUS_CHECK(!in_flight_ && change.size() <= max_elements_);
    ISTHMUS_RETURN_IF_ERROR(
        to_status(cudaMemsetAsync(outcome_.data(), 0, sizeof(EncodeOutcome), stream), "clearing an outcome"));
    auto* const outcome = reinterpret_cast<EncodeOutcome*>(outcome_.data());
    ISTHMUS_RETURN_IF_ERROR(
        kernels_->encode({change, state, record_.data(), outcome, scratch_.data(), stream}));
    // How long a sparse record is, is only known there.
    ISTHMUS_RETURN_IF_ERROR(copy_to_host(pinned_.data(), outcome, sizeof(EncodeOutcome), stream));
    ISTHMUS_RETURN_IF_ERROR(copy_to_host(pinned_.data() + sizeof(EncodeOutcome), record_.data(),
                                         codec_->max_encoded_bytes(change.size()), stream));
    ISTHMUS_RETURN_IF_ERROR(done_.record(stream));
    in_flight_ = true;
    return {};
  }

  bool ready() const override { return done_.passed(); }

  Result<std::span<const std::byte>> finish(CodecState& state) override {
    ISTHMUS_CHECK(in_flight_);
    in_flight_ = false;
    ISTHMUS_RETURN_IF_ERROR(done_.synchronize());
    EncodeOutcome outcome;
    std::memcpy(&outcome, pinned_.data(), sizeof(outcome));
    if (outcome.refused != 0) return not_finite();
    if (is_topk_) state.threshold = outcome.threshold;
    ++state.records;
    return std::span<const std::byte>(pinned_.data() + sizeof(EncodeOutcome), outcome.bytes);
  }

 private:
  CudaEncoder(const core::CodecConfig& config, std::size_t max_elements)
      : codec_(make_codec(config)),
        kernels_(make_device_kernels(config)),
        is_topk_(config.kind == core::CodecKind::kTopk),
        max_elements_(max_elements) {}

  std::unique_ptr<const Codec> codec_;
  std::unique_ptr<const DeviceKernels> kernels_;
  bool is_topk_;
  std::size_t max_elements_;
  bool in_flight_ = false;
  DeviceMemory outcome_, record_, scratch_;
  PinnedMemory pinned_;  // The outcome, then the record.
  OwnedEvent done_;
};

}  // namespace

Result<std::unique_ptr<DeviceEncoder>> make_device_encoder(const core::CodecConfig& config,
                                                           std::size_t max_elements) {
  if (max_elements >= kMaxElements) {
    return Status(ErrorCode::kInvalidArgument,
                  std::to_string(max_elements) + " elements, and a device encoder takes fewer than 2^31");
  }
  ISTHMUS_RETURN_IF_ERROR(device_name().status());
  return CudaEncoder::make(config, max_elements);
}

}  // namespace isthmus::compression
