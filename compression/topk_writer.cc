#include "compression/topk_writer.h"

#include <cstring>

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
      before_.emplace_back(indices_[i], value);
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
  for (const auto& [index, value] : before_) moved_[index] = value;
  before_.clear();
  to_ = begin_;
  pending_ = 0;
}

}  // namespace isthmus::compression
