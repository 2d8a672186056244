// DeviceDecoder: a record is checked, copied to pinned memory, and added by the codec's kernels.

#include <array>
#include <map>

#include "compression/cuda/device_codec.h"
#include "compression/cuda/device_kernels.h"
#include "compression/cuda/staging.h"

namespace isthmus::compression {
namespace {

constexpr std::size_t kMaxElements = std::size_t{1} << 31;

class CudaDecoder final : public DeviceDecoder {
 public:
  static Result<std::unique_ptr<DeviceDecoder>> make(std::size_t max_record_bytes) {
    std::unique_ptr<CudaDecoder> decoder(new CudaDecoder(max_record_bytes));
    const std::size_t bytes = staged_bytes(max_record_bytes);
    for (Slot& slot : decoder->slots_) {
      ISTHMUS_RETURN_IF_ERROR(slot.pinned.allocate(bytes));
      ISTHMUS_RETURN_IF_ERROR(slot.device.allocate(bytes));
      ISTHMUS_RETURN_IF_ERROR(slot.added.create());
    }
    return std::unique_ptr<DeviceDecoder>(std::move(decoder));
  }

  Status accumulate(const Codec& codec, std::span<const std::byte> in, float weight, std::span<float> sum,
                    DeviceStream stream) override {
    return add(codec, in, {.weight = weight, .set = false, .sum = sum, .stream = stream});
  }

  Status decode(const Codec& codec, std::span<const std::byte> in, std::span<float> out,
                DeviceStream stream) override {
    return add(codec, in, {.weight = 1.0f, .set = true, .sum = out, .stream = stream});
  }

 private:
  struct Slot {
    PinnedMemory pinned;
    DeviceMemory device;
    OwnedEvent added;
  };

  explicit CudaDecoder(std::size_t max_record_bytes) : max_record_bytes_(max_record_bytes) {}

  Status add(const Codec& codec, std::span<const std::byte> in, AddJob job) {
    if (in.size() > max_record_bytes_) {
      return {ErrorCode::kCorruption, "record of " + std::to_string(in.size()) + " bytes, and at most " +
                                          std::to_string(max_record_bytes_) + " were expected"};
    }
    if (job.sum.size() >= kMaxElements)
      return {ErrorCode::kInvalidArgument, "a device decoder takes fewer than 2^31 elements"};
    ISTHMUS_RETURN_IF_ERROR(codec.check(in, job.sum.size()));
    Slot& slot = slots_[next_];
    ISTHMUS_RETURN_IF_ERROR(slot.added.synchronize());
    const std::size_t bytes = stage_record(codec.id(), in, slot.pinned.span(), slot.device.data(), job);
    ISTHMUS_RETURN_IF_ERROR(copy_to_device(slot.device.data(), slot.pinned.data(), bytes, job.stream));
    ISTHMUS_RETURN_IF_ERROR(kernels_of(codec.id()).add(job));
    next_ = (next_ + 1) % slots_.size();
    return slot.added.record(job.stream);
  }

  const DeviceKernels& kernels_of(CodecId id) {
    auto& kernels = kernels_[id];
    if (!kernels) kernels = make_device_kernels(decoded_config(id));
    return *kernels;
  }

  std::size_t max_record_bytes_;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
  std::map<CodecId, std::unique_ptr<const DeviceKernels>> kernels_;
};

}  // namespace

Result<std::unique_ptr<DeviceDecoder>> make_device_decoder(std::size_t max_record_bytes) {
  ISTHMUS_RETURN_IF_ERROR(device_name().status());
  return CudaDecoder::make(max_record_bytes);
}

}  // namespace isthmus::compression
