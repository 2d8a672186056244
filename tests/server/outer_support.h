// What the tests of both sides of the `outer` protocol share.

#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <vector>

#include "compression/codec.h"
#include "server/outer_home.h"
#include "server/outer_record.h"
#include "server/outer_region.h"

namespace isthmus::server {

inline core::SharedBytes bytes_of(const std::vector<float>& values) {
  return core::copy_bytes(std::as_bytes(std::span(values)));
}
inline constexpr std::uint8_t kFp32 = static_cast<std::uint8_t>(compression::CodecId::kFp32);

inline std::unique_ptr<const compression::Codec> codec_of(core::CodecKind kind, double keep = 0.25) {
  return compression::make_codec({.kind = kind, .keep = keep});
}

inline std::vector<float> decoded(std::uint8_t codec, const core::SharedBytes& record, std::size_t elements) {
  std::vector<float> values(elements);
  const auto decoder = compression::find_decoder(codec);
  const Status status = decoder.ok() ? (*decoder)->decode(record.view, values) : decoder.status();
  EXPECT_TRUE(status.ok()) << status.to_string();
  return values;
}

inline std::vector<float> floats_of(const core::VersionedFloats::Reference& reference, std::size_t elements) {
  return {reference.get(), reference.get() + elements};
}

// The message of an Outgoing; fails the test when it is the other one.
inline GlobalDelta delta_of(const OuterHome::Outgoing& outgoing) {
  const auto* delta = std::get_if<GlobalDelta>(&outgoing.message);
  EXPECT_NE(delta, nullptr);
  return delta ? *delta : GlobalDelta{};
}
inline Reset reset_of(const OuterHome::Outgoing& outgoing) {
  const auto* reset = std::get_if<Reset>(&outgoing.message);
  EXPECT_NE(reset, nullptr);
  return reset ? *reset : Reset{};
}

}  // namespace isthmus::server
