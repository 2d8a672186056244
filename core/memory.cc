#include "core/memory.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace isthmus::core {

void keep_freed_memory() noexcept {
#if defined(__GLIBC__)
  constexpr int kMi = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMi);  // The most that is allowed.
  mallopt(M_TRIM_THRESHOLD, 64 * kMi);
#endif
}

}  // namespace isthmus::core
