#include "compression/delta.h"

#include "core/check.h"

namespace isthmus::compression {

Result<std::size_t> encode_delta(std::span<const float> a, std::span<const float> b, std::span<const float> c,
                                 const Codec& codec, CodecState& state, std::span<float> decoded,
                                 std::span<std::byte> out) {
  ISTHMUS_CHECK(b.size() == a.size() && decoded.size() == a.size());
  ISTHMUS_CHECK(c.empty() || c.size() == a.size());
  // `decoded` holds the difference until it is encoded, then what the record says of it.
  const std::span<float> delta = decoded;
  for (std::size_t i = 0; i < delta.size(); ++i) delta[i] = a[i] - b[i];
  if (!c.empty()) {
    for (std::size_t i = 0; i < delta.size(); ++i) delta[i] -= c[i];
  }
  if (!all_finite(delta)) return Status(ErrorCode::kInvalidArgument, "the change is not finite");
  const std::size_t bytes = codec.encode(delta, state, out);
  if (Status status = codec.decode(out.first(bytes), decoded); !status.ok()) return status;
  return bytes;
}

}  // namespace isthmus::compression
