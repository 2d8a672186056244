#include "core/versioned_floats.h"

#include <gtest/gtest.h>

namespace isthmus::core {
namespace {

TEST(VersionedFloatsTest, WritesInPlaceWhileNobodyElseHoldsThem) {
  VersionedFloats values(3);
  const float* before = values.read().data();
  values.write()[1] = 5.0f;
  EXPECT_EQ(values.read().data(), before);
  EXPECT_EQ(values.read()[1], 5.0f);
}

TEST(VersionedFloatsTest, ASnapshotDoesNotChange) {
  VersionedFloats values(2);
  values.write()[0] = 1.0f;
  VersionedFloats::Reference snapshot = values.share();
  values.write()[0] = 2.0f;
  EXPECT_EQ(snapshot[0], 1.0f);
  EXPECT_EQ(values.read()[0], 2.0f);
  snapshot.reset();
  const float* before = values.read().data();
  values.write()[0] = 3.0f;
  EXPECT_EQ(values.read().data(), before);
}

}  // namespace
}  // namespace isthmus::core
