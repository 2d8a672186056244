#include "worker/versions.h"

#include <gtest/gtest.h>

namespace isthmus::worker {
namespace {

float view_a[1];
float view_b[1];

Part pull(core::SliceId slice, float* view, std::uint32_t shard = 0) {
  Part part;
  part.shard = shard;
  part.targets = {{slice, TensorView(view, 1)}};
  part.push_pull.add_pull()->set_slice(slice);
  return part;
}

std::uint64_t known(Versions& versions, Part& part) {
  versions.complete(part);
  return part.push_pull.pull(0).known_version();
}

void decoded(Versions& versions, const Part& part, std::uint64_t version) {
  const Held held{part.targets[0].slice, part.targets[0].to.data(), version, part.membership};
  versions.hold(std::span(&held, 1));
}

TEST(VersionsTest, AreThoseOfTheViewTheyWereDecodedInto) {
  Versions versions(1);
  Part first = pull(9, view_a);
  EXPECT_EQ(known(versions, first), 0u);
  decoded(versions, first, 4);
  Part other = pull(9, view_b);
  EXPECT_EQ(known(versions, other), 0u);
  decoded(versions, other, 5);
  Part same = pull(9, view_b);
  EXPECT_EQ(known(versions, same), 5u);
}

TEST(VersionsTest, APullThatIsNotDecodedHoldsNothing) {
  Versions versions(1);
  Part first = pull(0, view_a);
  versions.complete(first);
  decoded(versions, first, 4);
  Part failed = pull(0, view_a);
  EXPECT_EQ(known(versions, failed), 4u);
  Part next = pull(0, view_a);
  EXPECT_EQ(known(versions, next), 0u);
}

TEST(VersionsTest, AGradientWasComputedFromWhatWasPulledLast) {
  Versions versions(1);
  Part push;
  push.push_pull.add_push()->set_slice(3);
  Part before = push;
  versions.complete(before);
  EXPECT_EQ(before.push_pull.computed_from(0), 0u);
  Part first = pull(3, view_a);
  versions.complete(first);
  decoded(versions, first, 6);
  Part in_flight = pull(3, view_a);
  versions.complete(in_flight);
  versions.complete(push);
  EXPECT_EQ(push.push_pull.computed_from(0), 6u);
}

TEST(VersionsTest, AShardThatStartedAnewIsAskedAnew) {
  Versions versions(2);
  Part mine = pull(0, view_a, 0);
  Part others = pull(1, view_b, 1);
  versions.complete(mine);
  versions.complete(others);
  decoded(versions, mine, 100);
  decoded(versions, others, 100);
  Part late = pull(0, view_a, 0);
  versions.complete(late);
  versions.forget(0);
  decoded(versions, late, 101);  // Of the earlier life: must not hide version 50 of the present one.
  Part again = pull(0, view_a, 0);
  EXPECT_EQ(known(versions, again), 0u);
  Part same = pull(1, view_b, 1);
  EXPECT_EQ(known(versions, same), 100u);
}

}  // namespace
}  // namespace isthmus::worker
