#include "proto/meta.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace isthmus::proto {
namespace {

core::SharedBytes bytes_of(std::string_view text) { return core::copy_bytes(std::as_bytes(std::span(text))); }

std::string text_of(const core::SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.view.data()), bytes.size()};
}

TEST(MetaTest, RecordsFollowOneAnotherThroughThePieces) {
  const Message message{Kind::kPushPull, 0, "", {bytes_of("aabbb"), bytes_of(""), bytes_of("c")}};
  const std::vector<std::uint64_t> sizes = {2, 3, 0, 1};
  const auto records = split_records(message, sizes);
  ASSERT_TRUE(records.ok());
  ASSERT_EQ(records->size(), 4u);
  EXPECT_EQ(text_of((*records)[0]), "aa");
  EXPECT_EQ(text_of((*records)[1]), "bbb");
  EXPECT_EQ((*records)[2].size(), 0u);
  EXPECT_EQ(text_of((*records)[3]), "c");
}

TEST(MetaTest, RecordsThatDoNotFillThePayloadAreRefused) {
  const Message message{Kind::kPushPull, 0, "", {bytes_of("aab"), bytes_of("b")}};
  for (const std::vector<std::uint64_t>& sizes :
       {std::vector<std::uint64_t>{2}, {2, 2}, {2, 1, 2}, {3, 1, 1}, {}, {~0ull}, {3, ~0ull}}) {
    EXPECT_EQ(split_records(message, sizes).status().code(), ErrorCode::kProtocol);
  }
}

TEST(MetaTest, AHostileMetaIsAStatus) {
  EXPECT_EQ(parse_meta<Hello>({Kind::kHello, 0, "\xff\xff\xff", {}}).status().code(), ErrorCode::kProtocol);
}

TEST(MetaTest, ARefusalSaysWhy) {
  const Status status = refusal_status(make_refusal(7, REFUSE_JOB, "this is job 'a', not 'b'"));
  EXPECT_EQ(status.code(), ErrorCode::kRefused);
  EXPECT_EQ(status.message(), "this is job 'a', not 'b'");
}

TEST(MetaTest, ALayoutTravels) {
  const auto layout = core::Layout::create({{"a", {3, 4}}, {"b", {}}}, 5);
  ASSERT_TRUE(layout.ok());
  const auto back = from_table(to_table(*layout));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->hash(), layout->hash());
}

TEST(MetaTest, AHostileLayoutIsAStatus) {
  LayoutTable table;
  EXPECT_EQ(from_table(table).status().code(), ErrorCode::kProtocol);
  table.set_slice_elements(1);
  auto* tensor = table.add_tensors();
  tensor->set_name("a");
  tensor->add_shape(1ull << 39);
  EXPECT_EQ(from_table(table).status().code(), ErrorCode::kProtocol);
}

TEST(MetaTest, SmallPiecesTravelTogether) {
  std::vector<core::SharedBytes> pieces;
  std::string all;
  std::vector<std::uint64_t> sizes;
  const auto add = [&](std::size_t bytes) {
    const std::string text(bytes, static_cast<char>('a' + pieces.size() % 26));
    all += text;
    sizes.push_back(bytes);
    pieces.push_back(core::copy_bytes(std::as_bytes(std::span(text))));
  };
  for (int i = 0; i < 40; ++i) add(50'000);  // 20 of them are the most that fit into 1 MiB.
  add(65'536);
  add(3);
  add(70'000);
  add(0);
  add(5);
  const std::byte* const big = pieces[40].view.data();
  const std::byte* const alone = pieces[41].view.data();
  const auto joined = join_small(pieces);
  std::vector<std::size_t> joined_sizes;
  for (const auto& piece : joined) joined_sizes.push_back(piece.size());
  EXPECT_EQ(joined_sizes, (std::vector<std::size_t>{1'000'000, 1'000'000, 65'536, 3, 70'000, 5}));
  EXPECT_EQ(joined[2].view.data(), big);  // Not copied.
  EXPECT_EQ(joined[3].view.data(), alone);
  std::string together;
  for (const auto& piece : joined)
    together.append(reinterpret_cast<const char*>(piece.view.data()), piece.size());
  EXPECT_EQ(together, all);
  EXPECT_TRUE(split_records({Kind::kPushPull, 0, "", joined}, sizes).ok());
}

}  // namespace
}  // namespace isthmus::proto
