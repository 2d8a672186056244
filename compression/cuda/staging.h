// A record on its way to a device: its bytes, and what kernels must know of it that is only found by reading
// it from its start.
//
// Threads: pure functions.  Memory: the caller's.  Errors: none: records have been checked.

#pragma once

#include <cstddef>
#include <span>

#include "compression/cuda/device_kernels.h"

namespace isthmus::compression {

// The codec that decodes records of an id.
core::CodecConfig decoded_config(CodecId id) noexcept;

// The most that stage_record() writes for a record of so many bytes.
std::size_t staged_bytes(std::size_t record_bytes) noexcept;

// Writes to `out` what is to be copied to `device`, whence the job reads it; returns the bytes. Fills in all
// of the job that follows from the record. REQUIRES: a record that passed its codec's check.
std::size_t stage_record(CodecId id, std::span<const std::byte> record, std::span<std::byte> out,
                         const std::byte* device, AddJob& job) noexcept;

}  // namespace isthmus::compression
