// The CUDA runtime's errors as Status, and launches without its own syntax, so that this code compiles as
// plain C++ too (tests/support/emulated_cuda).
//
// Threads: any.  Memory: none.  Errors: as device.h.

#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "isthmus/status.h"

namespace isthmus::compression {

inline Status to_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  const ErrorCode code =
      error == cudaErrorMemoryAllocation ? ErrorCode::kResourceExhausted : ErrorCode::kInternal;
  return {code, std::string(what) + ": CUDA says " + cudaGetErrorString(error)};
}

// Enqueues `kernel`; nothing when there are no blocks.
template <typename... Parameters>
Status launch(void (*kernel)(Parameters...), std::uint64_t blocks, unsigned threads, cudaStream_t stream,
              std::type_identity_t<Parameters>... arguments) {
  if (blocks == 0) return {};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(threads);
  config.stream = stream;
  return to_status(cudaLaunchKernelEx(&config, kernel, arguments...), "starting a kernel");
}

constexpr std::uint64_t blocks_of(std::uint64_t elements, std::uint64_t each) {
  return elements / each + (elements % each != 0);
}

}  // namespace isthmus::compression
