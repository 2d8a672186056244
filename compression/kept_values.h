// The values that a sparse record keeps, in blocks of up to 256.
//
// block := value:f32 × n | value:f16 × n | scale:f32 code:i8 × n
//
// Threads: any.  Memory: none allocated.  Errors: a check of hostile blocks that says no.

#pragma once

#include <cstddef>
#include <optional>

#include "compression/codec.h"
#include "compression/kernels/kernels.h"

namespace isthmus::compression {

inline constexpr std::size_t kKeptBlock = 256;

// round(keep * elements), at least 1 of them.
std::size_t kept_count(double keep, std::size_t elements) noexcept;

// In a record a kind of values is the id of the codec that is theirs.
std::byte kept_kind(core::KeptValues values) noexcept;
std::optional<core::KeptValues> read_kept_kind(std::byte kind) noexcept;

// Of any number of them.
std::size_t kept_bytes(core::KeptValues values, std::size_t n) noexcept;

// The smallest magnitude that is not encoded as zero (in int8: whatever its block holds).
float least_kept(core::KeptValues values) noexcept;

// One block. REQUIRES: n <= kKeptBlock.
void encode_kept(core::KeptValues values, const Kernels& kernels, const float* in, std::size_t n,
                 std::byte* out) noexcept;
bool check_kept(core::KeptValues values, const Kernels& kernels, const std::byte* in, std::size_t n) noexcept;
void decode_kept(core::KeptValues values, const Kernels& kernels, const std::byte* in, std::size_t n,
                 float* out) noexcept;

}  // namespace isthmus::compression
