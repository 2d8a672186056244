// DeviceDecoder: a record is checked, copied to pinned memory, and added by the codec's kernels.

#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "compression/cuda/device_codec.h"
#include "compression/cuda/device_kernels.h"
#include "compression/kept_values.h"
#include "compression/randk_codec.h"
#include "compression/topk_codec.h"
#include "compression/topk_writer.h"

namespace isthmus::compression {
namespace {

constexpr std::size_t kMaxElements = std::size_t{1} << 31;

std::size_t rounded_up(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

// As many blocks as a record of so many bytes can have: each of a topk record has a header and a value.
std::size_t most_blocks(std::size_t record_bytes) { return record_bytes / (kTopkBlockHeader + 1) + 1; }

// What decodes records of an id.
core::CodecConfig config_of(CodecId id) {
  using core::CodecKind;
  switch (id) {
    case CodecId::kFp32: break;
    case CodecId::kFp16: return {.kind = CodecKind::kFp16};
    case CodecId::kBf16: return {.kind = CodecKind::kBf16};
    case CodecId::kInt8: return {.kind = CodecKind::kInt8};
    case CodecId::kTopk: return {.kind = CodecKind::kTopk};
    case CodecId::kInt4: return {.kind = CodecKind::kInt4};
    case CodecId::kRotatedInt4: return {.kind = CodecKind::kInt4, .rotate = true};
    case CodecId::kFp4: return {.kind = CodecKind::kFp4};
    case CodecId::kSign: return {.kind = CodecKind::kSign};
    case CodecId::kRandk: return {.kind = CodecKind::kRandk};
  }
  return {.kind = CodecKind::kFp32};
}

template <typename T>
T load(const std::byte* in) {
  T value;
  std::memcpy(&value, in, sizeof(T));
  return value;
}

class CudaDecoder final : public DeviceDecoder {
 public:
  static Result<std::unique_ptr<DeviceDecoder>> make(std::size_t max_record_bytes) {
    std::unique_ptr<CudaDecoder> decoder(new CudaDecoder(max_record_bytes));
    const std::size_t bytes =
        rounded_up(max_record_bytes) + most_blocks(max_record_bytes) * sizeof(std::uint64_t);
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
    std::memcpy(slot.pinned.data(), in.data(), in.size());
    std::size_t bytes = in.size();
    job.record = slot.device.data();
    if (codec.id() == CodecId::kTopk) {
      job.values = *read_kept_kind(in[0]);
      job.count = load<std::uint32_t>(in.data() + 1);
      const std::size_t at = rounded_up(in.size());
      bytes = at + write_blocks(in, job, slot.pinned.data() + at);
      job.blocks = reinterpret_cast<const std::uint64_t*>(slot.device.data() + at);
    } else if (codec.id() == CodecId::kRandk) {
      job.numbers = RandomNumbers::read(in.data());
      job.values = *read_kept_kind(in[kRandkKindAt]);
      job.count = load<std::uint32_t>(in.data() + kRandkKindAt + 1);
    } else if (codec.id() == CodecId::kRotatedInt4) {
      job.numbers = RandomNumbers::read(in.data());
    }
    ISTHMUS_RETURN_IF_ERROR(copy_to_device(slot.device.data(), slot.pinned.data(), bytes, job.stream));
    ISTHMUS_RETURN_IF_ERROR(kernels_of(codec.id()).add(job));
    next_ = (next_ + 1) % slots_.size();
    return slot.added.record(job.stream);
  }

  // Where each block of a checked topk record begins; the bytes that takes.
  static std::size_t write_blocks(std::span<const std::byte> in, const AddJob& job, std::byte* out) {
    std::uint64_t at = kTopkHeaderBytes;
    std::size_t bytes = 0;
    for (std::uint64_t done = 0; done < job.count; done += kTopkBlock) {
      std::memcpy(out + bytes, &at, sizeof(at));
      bytes += sizeof(at);
      const std::size_t n = std::min<std::size_t>(kTopkBlock, job.count - done);
      at += kTopkBlockHeader + load<std::uint16_t>(in.data() + at + 4) + kept_bytes(job.values, n);
    }
    return bytes;
  }

  const DeviceKernels& kernels_of(CodecId id) {
    auto& kernels = kernels_[id];
    if (!kernels) kernels = make_device_kernels(config_of(id));
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
