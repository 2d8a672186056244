#include "worker/deep_compression.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace isthmus::worker {
namespace {

core::Layout layout_of(std::uint64_t elements) {
  return *core::Layout::create({{"weight", {elements}}, {"bias", {3}}}, 1 << 20);
}

class Sender {
 public:
  Sender(std::uint64_t elements, DeepCompressionConfig config) : compression_(layout_of(elements), config) {}

  // What the shard decodes of slice 0, or 1, after this gradient.
  std::vector<float> push(const std::vector<float>& gradient, Step step = 1000, core::SliceId slice = 0) {
    const ConstTensorView values = compression_.gather(slice, gradient);
    const compression::Codec& codec = compression_.codec(slice, step);
    std::vector<std::byte> record(codec.max_encoded_bytes(values.size()));
    record.resize(codec.encode(values, compression_.state(slice), record));
    compression_.sent(slice, record);
    std::vector<float> decoded(values.size());
    EXPECT_TRUE(codec.decode(record, decoded).ok());
    return decoded;
  }
  std::size_t sent_of(const std::vector<float>& gradient, Step step) {
    const std::vector<float> decoded = push(gradient, step);
    return static_cast<std::size_t>(
        std::count_if(decoded.begin(), decoded.end(), [](float x) { return x != 0; }));
  }

 private:
  DeepCompression compression_;
};

using Floats = std::vector<float>;

// By hand, with momentum 1/2 and one of four elements a step:
//   gradient (4, 3, 1, 0): u = v = (4, 3, 1, 0); sends 4; u = v = (0, 3, 1, 0)
//   gradient (1, 1, 1, 1): u = (1, 2.5, 1.5, 1), v = (1, 5.5, 2.5, 1); sends 5.5; u = (1, 0, 1.5, 1)
//   gradient (0, 0, 0, 0): u = (.5, 0, .75, .5), v = (1.5, 0, 3.25, 1.5); sends 3.25
TEST(DeepCompressionTest, GathersCorrectsAndMasksMomentum) {
  Sender sender(4, {.keep = 0.25, .momentum = 0.5f, .warmup_steps = 0, .dense_below_elements = 4});
  EXPECT_EQ(sender.push({4, 3, 1, 0}), (Floats{4, 0, 0, 0}));
  EXPECT_EQ(sender.push({1, 1, 1, 1}), (Floats{0, 5.5f, 0, 0}));
  EXPECT_EQ(sender.push({0, 0, 0, 0}), (Floats{0, 0, 3.25f, 0}));
}

// Without masking and leaving out, what all steps send is what momentum adds up to.
TEST(DeepCompressionTest, SmallTensorsAreSentWholeWithMomentum) {
  Sender sender(4, {.keep = 0.25, .momentum = 0.5f, .warmup_steps = 0, .dense_below_elements = 4});
  EXPECT_EQ(sender.push({1, 2, -4}, 1000, 1), (Floats{1, 2, -4}));
  EXPECT_EQ(sender.push({1, 0, 0}, 1000, 1), (Floats{1.5f, 1, -2}));
}

TEST(DeepCompressionTest, SumsThatOverflowBeginAnew) {
  Sender sender(4, {.keep = 0.25, .momentum = 0.9f, .warmup_steps = 0, .dense_below_elements = 4});
  (void)sender.push({3e38f, 0, 0, 3e38f});
  (void)sender.push({3e38f, 0, 0, 3e38f});
  // Fourth element: 3e38, then 3e38 and 0.9 of it more, which no float holds.
  EXPECT_EQ(sender.push({0, 7, 0, 0}, 1000, 0).size(), 4u);
  for (const Step step : {0, 1}) {
    const Floats whole = sender.push({3e38f, 1, 1}, step, 1);
    EXPECT_EQ(whole[0], 3e38f) << "0.9 of it more would be infinite";
  }
}

TEST(DeepCompressionTest, NothingIsLostWithoutMomentum) {
  constexpr std::size_t kElements = 500;
  Sender sender(kElements, {.keep = 0.01, .momentum = 0.0f, .warmup_steps = 0, .dense_below_elements = 1});
  std::vector<double> given(kElements), got(kElements);
  const auto add = [](std::vector<double>& sum, const Floats& values) {
    for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
  };
  for (int step = 0; step < 3; ++step) {
    Floats gradient(kElements);
    for (std::size_t i = 0; i < kElements; ++i) gradient[i] = std::sin(static_cast<float>(i * 7 + 3) * 1.7f);
    add(given, gradient);
    add(got, sender.push(gradient));
  }
  for (int step = 0; step < 200; ++step) add(got, sender.push(Floats(kElements)));
  for (std::size_t i = 0; i < kElements; ++i) EXPECT_NEAR(got[i], given[i], 1e-3) << i;
}

TEST(DeepCompressionTest, TheWarmUpSendsLessFromStageToStage) {
  constexpr std::size_t kElements = 100'000;
  Sender sender(kElements, {.keep = 0.001, .momentum = 0.0f, .warmup_steps = 400, .dense_below_elements = 1});
  Floats gradient(kElements);
  for (std::size_t i = 0; i < kElements; ++i) gradient[i] = std::sin(static_cast<float>(i) * 1.7f);
  // The paper's 25 %, 6.3 %, 1.6 %, 0.4 %, and 0.1 %, of which a record has 0.9 to 1.1.
  const double shares[] = {0.2512, 0.0631, 0.01585, 0.00398, 0.001};
  for (int stage = 0; stage < 5; ++stage) {
    const double sent = static_cast<double>(sender.sent_of(gradient, static_cast<Step>(stage) * 100));
    EXPECT_NEAR(sent / kElements, shares[stage], 0.11 * shares[stage]) << stage;
  }
}

}  // namespace
}  // namespace isthmus::worker
