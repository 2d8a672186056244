#include "proto/meta.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace isthmus::proto
