#include "worker/requests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "proto/meta.h"

namespace isthmus::worker {
namespace {

// One big tensor of two slices, and many small ones.
class RequestsTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kSmall = 1000;
  static constexpr std::size_t kSlice = 20000;

  static std::vector<TensorSpec> tensors() {
    std::vector<TensorSpec> all = {{"big", {2 * kSlice}}};
    for (std::size_t i = 0; i < kSmall; ++i) all.push_back({"bias " + std::to_string(i), {3}});
    return all;
  }
  RequestsTest() {
    for (const TensorSpec& tensor : layout.layout().tensors()) {
      const auto id = static_cast<std::uint32_t>(values.size());
      values.emplace_back(tensor.elements(), static_cast<float>(id));
    }
    for (std::uint32_t id = 0; id < values.size(); ++id) {
      gradients.push_back({{id}, values[id]});
      parameters.push_back({{id}, values[id]});
    }
  }
  static std::unique_ptr<const compression::Codec> codec(core::CodecKind kind) {
    return compression::make_codec({kind});
  }
  // Each record of a part. [slice]
  template <typename Records>
  static std::map<std::uint32_t, std::pair<proto::Record, core::SharedBytes>> split(const Part& part,
                                                                                    const Records& records) {
    std::vector<std::uint64_t> sizes;
    for (const auto& record : records) sizes.push_back(record.bytes());
    const auto bytes = proto::split_records({proto::Kind::kPushPull, 0, "", part.payload}, sizes);
    EXPECT_TRUE(bytes.ok());
    std::map<std::uint32_t, std::pair<proto::Record, core::SharedBytes>> all;
    for (int i = 0; i < records.size(); ++i)
      all[records[i].slice()] = {records[i], (*bytes)[static_cast<std::size_t>(i)]};
    return all;
  }
  // What they decode to. [slice]
  template <typename Records>
  std::map<std::uint32_t, std::vector<float>> decode(const Part& part, const Records& records) const {
    std::map<std::uint32_t, std::vector<float>> decoded;
    for (const auto& [slice, record] : split(part, records)) {
      std::vector<float> out(layout.layout().slices()[slice].elements);
      const auto decoder = compression::find_decoder(static_cast<std::uint8_t>(record.first.codec()));
      EXPECT_TRUE((*decoder)->decode(record.second.view, out).ok());
      decoded[slice] = out;
    }
    return decoded;
  }
  static float float_at(const core::SharedBytes& bytes, std::size_t i) {
    float value = 0;
    std::memcpy(&value, bytes.view.data() + i * sizeof value, sizeof value);
    return value;
  }

  ShardedLayout layout{*core::Layout::create(tensors(), kSlice), 2};
  std::vector<std::vector<float>> values;
  std::vector<Gradient> gradients;
  std::vector<Parameters> parameters;
};

TEST_F(RequestsTest, EachShardGetsItsSlicesAndBigOnesAPieceOfTheirOwn) {
  const auto parts = make_push_pull(layout, *codec(core::CodecKind::kFp32), gradients, 5, parameters);
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  ASSERT_EQ(parts->size(), 2u);
  std::size_t records = 0;
  for (const Part& part : *parts) {
    EXPECT_EQ(part.payload.size(), 2u);  // 500 biases, one big slice.
    EXPECT_EQ(part.push_pull.samples(), 5u);
    for (const auto& [slice, decoded] : decode(part, part.push_pull.push())) {
      EXPECT_EQ(layout.shard_of(slice), part.shard);
      EXPECT_EQ(decoded.front(), static_cast<float>(layout.layout().slices()[slice].tensor.value));
      ++records;
    }
    ASSERT_EQ(part.targets.size(), static_cast<std::size_t>(part.push_pull.pull_size()));
    for (std::size_t i = 0; i < part.targets.size(); ++i) {
      const core::Slice& slice = layout.layout().slices()[part.targets[i].slice];
      EXPECT_EQ(part.push_pull.pull(static_cast<int>(i)).slice(), slice.id);
      EXPECT_EQ(part.targets[i].to.data(), values[slice.tensor.value].data() + slice.offset);
      EXPECT_EQ(part.targets[i].to.size(), slice.elements);
      EXPECT_TRUE(i == 0 || part.targets[i - 1].slice < slice.id);
    }
  }
  EXPECT_EQ(records, kSmall + 2);
}

TEST_F(RequestsTest, AShardWithoutAShareGetsNothing) {
  const std::vector<Gradient> one = {gradients[5]};
  const auto parts = make_push_pull(layout, *codec(core::CodecKind::kFp16), one, 1, {});
  ASSERT_TRUE(parts.ok());
  ASSERT_EQ(parts->size(), 1u);
  EXPECT_EQ(parts->front().shard, layout.shard_of(layout.layout().slices_of({5})[0].id));
  EXPECT_TRUE(make_push_pull(layout, *codec(core::CodecKind::kFp16), {}, 0, {})->empty());
}

TEST_F(RequestsTest, WhatIsNotFiniteTravelsAsItIs) {
  values[0][kSlice] = std::numeric_limits<float>::infinity();
  values[7][1] = std::numeric_limits<float>::quiet_NaN();
  const auto parts = make_push_pull(layout, *codec(core::CodecKind::kInt8), gradients, 1, {});
  ASSERT_TRUE(parts.ok());
  const core::SliceId with_inf = layout.layout().slices_of({0})[1].id;
  const core::SliceId with_nan = layout.layout().slices_of({7})[0].id;
  int fp32 = 0;
  for (const Part& part : *parts) {
    for (const auto& [slice, record] : split(part, part.push_pull.push())) {
      if (record.first.codec() != 1) continue;
      ++fp32;
      if (slice == with_inf) {
        EXPECT_TRUE(std::isinf(float_at(record.second, 0)));
      } else {
        EXPECT_EQ(slice, with_nan);
        EXPECT_TRUE(std::isnan(float_at(record.second, 1)));
      }
    }
  }
  EXPECT_EQ(fp32, 2);
}

TEST_F(RequestsTest, EachSliceAndStepDrawsNumbersOfItsOwnAndTheSameAgain) {
  const auto int8 =
      compression::make_codec({.kind = core::CodecKind::kInt8, .rounding = core::Rounding::kStochastic});
  for (auto& of_tensor : values) {
    for (std::size_t i = 0; i < of_tensor.size(); ++i) of_tensor[i] = 0.01f * static_cast<float>(i % 7);
  }
  const auto payload_of = [&](std::uint64_t step) {
    std::vector<std::byte> bytes;
    const auto parts = make_push_pull(layout, *int8, gradients, 1, {}, {.key = 9, .records = step});
    EXPECT_TRUE(parts.ok());
    for (const Part& part : *parts) {
      for (const auto& piece : part.payload) bytes.insert(bytes.end(), piece.view.begin(), piece.view.end());
    }
    return bytes;
  };
  EXPECT_EQ(payload_of(1), payload_of(1));
  EXPECT_NE(payload_of(1), payload_of(2));
}

TEST_F(RequestsTest, DeepCompressionSendsTheLargestAndKeepsTheRest) {
  DeepCompression deep(layout.layout(),
                       {.keep = 5e-5, .momentum = 0, .warmup_steps = 0, .dense_below_elements = 2});
  for (auto& of_tensor : values) std::fill(of_tensor.begin(), of_tensor.end(), 1.0f);
  values[0][5] = 3.0f;
  const core::SliceId slice = layout.layout().slices_of({0})[0].id;
  const auto sent = [&] {
    const auto parts = make_push_pull(layout, *codec(core::CodecKind::kFp32), gradients, 1, {}, {}, &deep);
    EXPECT_TRUE(parts.ok());
    std::vector<float> found;
    for (const Part& part : *parts) {
      auto of_part = decode(part, part.push_pull.push());
      if (of_part.contains(slice)) found = of_part[slice];
    }
    return found;
  };
  const std::vector<float> first = sent();
  EXPECT_EQ(first[5], 3.0f);
  EXPECT_EQ(std::count(first.begin(), first.end(), 0.0f), static_cast<std::ptrdiff_t>(first.size()) - 1);
  // A push with a NaN goes alone, as it is, and gathers nothing.
  const std::vector<float> before = values[0];
  values[0][0] = std::numeric_limits<float>::quiet_NaN();
  const auto refused = make_push_pull(layout, *codec(core::CodecKind::kFp32), gradients, 1, {}, {}, &deep);
  std::size_t records = 0;
  for (const Part& part : *refused) records += static_cast<std::size_t>(part.push_pull.push_size());
  EXPECT_EQ(records, layout.layout().slices_of({0}).size()) << "of the others nothing is applied either";
  values[0] = before;
  values[0][5] = 0.0f;
  values[0][7] = 9.0f;
  EXPECT_EQ(sent()[7], 10.0f) << "what it had gathered once, and this";
}

// 1 MiB a message, so that a shard works while more is on its way; of much, at most about 64 of them.
TEST_F(RequestsTest, MuchIsCutIntoMessages) {
  constexpr std::size_t kElements = 256 << 10;
  std::vector<float> one(kElements);  // The same behind all tensors.
  for (const std::size_t tensors : {8, 200}) {
    std::vector<TensorSpec> specs;
    std::vector<Gradient> pushed;
    std::vector<Parameters> pulled;
    for (std::uint32_t id = 0; id < tensors; ++id) {
      specs.push_back({"t" + std::to_string(id), {kElements}});
      if (id % 2 == 0) pushed.push_back({{id}, one});
      if (id % 4 != 0) pulled.push_back({{id}, one});
    }
    const ShardedLayout many{*core::Layout::create(specs, kElements), 1};
    const auto parts = make_push_pull(many, *codec(core::CodecKind::kFp32), pushed, 1, pulled);
    ASSERT_TRUE(parts.ok());
    if (tensors == 8) {
      EXPECT_EQ(parts->size(), 8u);
    } else {
      EXPECT_GT(parts->size(), 60u);
      EXPECT_LE(parts->size(), 128u);  // Pieces of 3.9 MiB at most, in whole slices.
    }
    std::map<core::SliceId, std::size_t> pushed_in, pulled_in;
    for (std::size_t i = 0; i < parts->size(); ++i) {
      for (const auto& record : (*parts)[i].push_pull.push())
        EXPECT_TRUE(pushed_in.emplace(record.slice(), i).second);
      for (const Target& target : (*parts)[i].targets) EXPECT_TRUE(pulled_in.emplace(target.slice, i).second);
    }
    EXPECT_EQ(pushed_in.size(), pushed.size());
    EXPECT_EQ(pulled_in.size(), pulled.size());
    for (const auto& [slice, part] : pulled_in) {
      if (pushed_in.contains(slice)) {
        EXPECT_EQ(pushed_in[slice], part) << "a pull comes after its push";
      }
    }
  }
}

TEST_F(RequestsTest, BigValuesWithAnOwnerAreSentFromWhereTheyAre) {
  const auto owner = std::make_shared<int>(0);
  for (Gradient& gradient : gradients) gradient.owner = owner;
  auto parts = make_push_pull(layout, *codec(core::CodecKind::kFp32), gradients, 1, {});
  ASSERT_TRUE(parts.ok());
  const long held = owner.use_count() - 1 - static_cast<long>(gradients.size());
  EXPECT_EQ(held, 2);  // The two slices of the big one; the small ones are gathered.
  for (const Part& part : *parts) {
    for (const auto& [slice, record] : split(part, part.push_pull.push())) {
      const core::Slice& of = layout.layout().slices()[slice];
      const auto* from = reinterpret_cast<const std::byte*>(values[of.tensor.value].data() + of.offset);
      EXPECT_EQ(record.second.view.data() == from, of.elements == kSlice);
      EXPECT_EQ(float_at(record.second, 0), values[of.tensor.value][0]);
    }
  }
  parts = make_push_pull(layout, *codec(core::CodecKind::kFp16), gradients, 1, {});
  EXPECT_EQ(owner.use_count() - 1, static_cast<long>(gradients.size()));
}

// Lengths 3, 4 and 12: 13 in all. Nothing is copied: the scale travels beside the record.
TEST_F(RequestsTest, LongGradientsTravelWithAScale) {
  const ShardedLayout three{*core::Layout::create({{{"a", {1}}, {"b", {1}}, {"c", {1}}}}, kSlice), 1};
  const std::vector<float> a{3}, b{-4}, c{12};
  const std::vector<Gradient> pushed{{{0}, a}, {{1}, b}, {{2}, c}};
  const auto fp32 = codec(core::CodecKind::kFp32);
  const auto scales = [&](const ClipConfig& clip) {
    const auto parts = make_push_pull(three, *fp32, pushed, 1, {}, {}, nullptr, clip);
    EXPECT_TRUE(parts.ok());
    const proto::PushPull& meta = parts->front().push_pull;
    EXPECT_EQ(float_at(split(parts->front(), meta.push()).at(2).second, 0), 12.0f);
    std::map<std::uint32_t, float> of;
    for (int i = 0; i < meta.scale_size(); ++i) of[meta.push(i).slice()] = meta.scale(i);
    return of;
  };
  using Scales = std::map<std::uint32_t, float>;
  EXPECT_EQ(scales({}), Scales());
  EXPECT_EQ(scales({.norm = 13.0f}), Scales());
  EXPECT_EQ(scales({.norm = 6.5f}), (Scales{{0, 0.5f}, {1, 0.5f}, {2, 0.5f}}));
  EXPECT_EQ(scales({.tensor_norm = 6.0f}), (Scales{{0, 1.0f}, {1, 1.0f}, {2, 0.5f}}));
}

TEST_F(RequestsTest, InitialValuesAreAllTensorsLossless) {
  values[0][1] = 0.1234567f;
  std::swap(gradients.front(), gradients.back());  // Whatever the order in which they are given.
  const auto parts = make_initialize(layout, gradients);
  ASSERT_TRUE(parts.ok());
  ASSERT_EQ(parts->size(), 2u);
  std::size_t records = 0;
  for (const Part& part : *parts) {
    proto::Initialize meta;
    ASSERT_TRUE(meta.ParseFromString(part.meta));
    for (int i = 1; i < meta.records_size(); ++i)
      EXPECT_LT(meta.records(i - 1).slice(), meta.records(i).slice());
    EXPECT_EQ(part.payload.size(), 2u);
    auto decoded = decode(part, meta.records());
    records += decoded.size();
    if (decoded.contains(0)) {
      EXPECT_EQ(decoded[0][1], 0.1234567f);
    }
  }
  EXPECT_EQ(records, kSmall + 2);
  gradients.pop_back();
  EXPECT_EQ(make_initialize(layout, gradients).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(RequestsTest, RefusesWhatDoesNotFit) {
  const auto code = [&](Gradient gradient, std::uint64_t samples) {
    const std::vector<Gradient> given = {gradients[1], gradient};
    return make_push_pull(layout, *codec(core::CodecKind::kFp32), given, samples, {}).status().code();
  };
  EXPECT_EQ(code(gradients[2], 1), ErrorCode::kOk);
  EXPECT_EQ(code(gradients[2], 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(gradients[1], 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({{2}, values[0]}, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({{kSmall + 1}, values[1]}, 1), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus::worker
