#include "compression/topk_writer.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"

namespace isthmus::compression {

static_assert(kTopkBlock == kKeptBlock);

void TopkWriter::write_block() {
  const std::span<const std::uint32_t> indices(indices_, pending_);
  const unsigned parameter = best_rice_parameter(indices);
  const auto bit_bytes = static_cast<std::uint16_t>(rice_encode(indices, parameter, to_ + kTopkBlockHeader));
  std::memcpy(to_, indices_, sizeof(std::uint32_t));
  std::memcpy(to_ + 4, &bit_bytes, sizeof(bit_bytes));
  to_[6] = static_cast<std::byte>(parameter);
  to_ += kTopkBlockHeader + bit_bytes;
  encode_kept(values_, kernels_, values_in_, pending_, to_);
  if (!moved_.empty()) {
    float decoded[kTopkBlock];
    decode_kept(values_, kernels_, to_, pending_, decoded);
    for (std::size_t i = 0; i < pending_; ++i) {
      float& value = moved_[indices_[i]];
      before_.push_back(value);
      value += decoded[i];
    }
  }
  to_ += kept_bytes(values_, pending_);
  pending_ = 0;
}

std::size_t TopkWriter::finish() {
  if (pending_ > 0) write_block();
  return static_cast<std::size_t>(to_ - begin_);
}

void TopkWriter::undo() {
  // The indices are in the record.
  const std::byte* from = begin_;
  for (std::size_t done = 0; done < before_.size();) {
    const std::span<std::uint32_t> indices(indices_, std::min(kTopkBlock, before_.size() - done));
    std::uint16_t bit_bytes;
    std::memcpy(indices_, from, sizeof(std::uint32_t));
    std::memcpy(&bit_bytes, from + 4, sizeof(bit_bytes));
    from += kTopkBlockHeader;
    ISTHMUS_CHECK(rice_decode({from, bit_bytes}, static_cast<unsigned>(from[-1]), moved_.size(), indices));
    for (const std::uint32_t index : indices) moved_[index] = before_[done++];
    from += bit_bytes + kept_bytes(values_, indices.size());
  }
  before_.clear();
  to_ = begin_;
  pending_ = 0;
}

}  // namespace isthmus::compression
