#include "core/memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace isthmus::core {
namespace {

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(MemoryTest, PiecesOfAMebibyteAreNoMappingsOfTheirOwn) {
  const auto mapped = [] { return mallinfo2().hblks; };
  const auto piece = [] { return std::unique_ptr<void, void (*)(void*)>(std::malloc(1 << 20), &std::free); };
  const auto before = mapped();
  {
    const auto held = piece();
    EXPECT_EQ(mapped(), before + 1) << "glibc's default is another: is keep_freed_memory() still needed?";
  }
  keep_freed_memory();
  const auto held = piece();
  EXPECT_EQ(mapped(), before);
}
#else
TEST(MemoryTest, DoesNoHarmElsewhere) { keep_freed_memory(); }
#endif

}  // namespace
}  // namespace isthmus::core
