#include "compression/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "compression/kept_values.h"
#include "compression/randk_codec.h"
#include "compression/topk_codec.h"
#include "compression/topk_writer.h"

namespace isthmus::compression {
namespace {

// Where the table of blocks may begin.
std::size_t rounded_up(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

template <typename T>
T load(const std::byte* in) {
  T value;
  std::memcpy(&value, in, sizeof(T));
  return value;
}

// Where each block of a topk record begins; the bytes that takes.
std::size_t write_blocks(std::span<const std::byte> record, const AddJob& job, std::byte* out) {
  std::uint64_t at = kTopkHeaderBytes;
  std::size_t bytes = 0;
  for (std::uint64_t done = 0; done < job.count; done += kTopkBlock) {
    std::memcpy(out + bytes, &at, sizeof(at));
    bytes += sizeof(at);
    const std::size_t n = std::min<std::size_t>(kTopkBlock, job.count - done);
    at += kTopkBlockHeader + load<std::uint16_t>(record.data() + at + 4) + kept_bytes(job.values, n);
  }
  return bytes;
}

}  // namespace

core::CodecConfig decoded_config(CodecId id) noexcept {
  using core::CodecKind;
  core::CodecConfig config;
  switch (id) {
    case CodecId::kFp32: config.kind = CodecKind::kFp32; break;
    case CodecId::kFp16: config.kind = CodecKind::kFp16; break;
    case CodecId::kBf16: config.kind = CodecKind::kBf16; break;
    case CodecId::kInt8: config.kind = CodecKind::kInt8; break;
    case CodecId::kTopk: config.kind = CodecKind::kTopk; break;
    case CodecId::kInt4: config.kind = CodecKind::kInt4; break;
    case CodecId::kRotatedInt4:
      config.kind = CodecKind::kInt4;
      config.rotate = true;
      break;
    case CodecId::kFp4: config.kind = CodecKind::kFp4; break;
    case CodecId::kSign: config.kind = CodecKind::kSign; break;
    case CodecId::kRandk: config.kind = CodecKind::kRandk; break;
  }
  return config;
}

// Each block of a topk record has a header and a value at least.
std::size_t staged_bytes(std::size_t record_bytes) noexcept {
  return rounded_up(record_bytes) + (record_bytes / (kTopkBlockHeader + 1) + 1) * sizeof(std::uint64_t);
}

std::size_t stage_record(CodecId id, std::span<const std::byte> record, std::span<std::byte> out,
                         const std::byte* device, AddJob& job) noexcept {
  std::copy(record.begin(), record.end(), out.begin());
  job.record = device;
  if (id == CodecId::kRotatedInt4 || id == CodecId::kRandk) job.numbers = RandomNumbers::read(record.data());
  if (id != CodecId::kTopk && id != CodecId::kRandk) return record.size();
  const std::byte* const kind = record.data() + (id == CodecId::kRandk ? kRandkKindAt : 0);
  job.values = *read_kept_kind(*kind);
  job.count = load<std::uint32_t>(kind + 1);
  if (id == CodecId::kRandk) return record.size();
  const std::size_t at = rounded_up(record.size());
  job.blocks = reinterpret_cast<const std::uint64_t*>(device + at);
  return at + write_blocks(record, job, out.data() + at);
}

}  // namespace isthmus::compression
