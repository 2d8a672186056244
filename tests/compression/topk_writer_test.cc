#include "compression/topk_writer.h"

#include <gtest/gtest.h>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

using core::KeptValues;

TEST(TopkWriterTest, WritesBlocksOf256AndWhatIsLeft) {
  Bytes out(10000);
  TopkWriter writer(KeptValues::kFp16, best_kernels(), 257, out.data(), {});
  for (std::uint32_t i = 0; i < 257; ++i) writer.add(1000 + 2 * i, 1.0f);
  // 255 gaps of 1 with parameter 0: 510 bits.
  ASSERT_EQ(writer.finish(), (7u + 64 + 512) + (7 + 0 + 2));
  EXPECT_EQ(Bytes(out.begin(), out.begin() + 9), bytes({0xe8, 3, 0, 0, 64, 0, 0, 0xaa, 0xaa}));
  EXPECT_EQ(Bytes(out.begin() + 583, out.begin() + 592), bytes({0xe8, 5, 0, 0, 0, 0, 0, 0x00, 0x3c}));
}

TEST(TopkWriterTest, MovesTheViewByWhatIsDecodedAndTakesItBack) {
  const std::vector<float> before = gaussian(4000, 2);
  const std::vector<float> values = gaussian(4000, 3);
  for (const KeptValues kind : {KeptValues::kFp32, KeptValues::kFp16, KeptValues::kInt8}) {
    std::vector<float> view = before;
    Bytes out(30000);
    TopkWriter writer(kind, best_kernels(), 4000, out.data(), view);
    for (std::uint32_t i = 5; i < 4000; i += 3) writer.add(i, values[i]);
    writer.finish();
    EXPECT_EQ(view[4], before[4]);
    EXPECT_NE(view[5], before[5]);
    EXPECT_NEAR(view[3998], before[3998] + values[3998], 0.02);
    writer.undo();
    EXPECT_EQ(bits_of(view), bits_of(before));
    writer.add(7, 1.0f);
    EXPECT_EQ(writer.finish(), kTopkBlockHeader + kept_bytes(kind, 1));
  }
}

}  // namespace
}  // namespace isthmus::compression
