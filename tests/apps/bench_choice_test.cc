#include "apps/bench_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compression/codec.h"
#include "compression/cuda/device.h"

namespace isthmus::apps {
namespace {

using Texts = std::vector<std::string>;

std::vector<std::string> names(const Result<std::vector<CodecChoice>>& choices) {
  EXPECT_TRUE(choices.ok()) << choices.status().message();
  std::vector<std::string> names;
  if (choices.ok()) {
    for (const CodecChoice& choice : *choices) names.push_back(choice.name);
  }
  return names;
}

TEST(BenchChoiceTest, NoNameIsEveryCodecOfTheConfig) {
  const auto choices = choose_codecs({}, std::vector<double>{0.01});
  const auto all = core::names_of(core::CodecKind{});
  ASSERT_TRUE(choices.ok());
  ASSERT_EQ(choices->size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ((*choices)[i].name, all[i]);
    EXPECT_EQ((*choices)[i].config.kind, static_cast<core::CodecKind>(i));
  }
}

TEST(BenchChoiceTest, SparseCodecsAreTakenOnceForEachShare) {
  const Texts texts{"int8", "topk", "{ codec: topk, keep: 5% }"};
  const auto one = choose_codecs(texts, std::vector<double>{0.02});
  EXPECT_EQ(names(one), (Texts{"int8", "topk", "{ codec: topk, keep: 5% }"}));
  EXPECT_EQ((*one)[1].config.keep, 0.02);
  EXPECT_EQ((*one)[2].config.keep, 0.05);
  const auto two = choose_codecs(texts, std::vector<double>{0.02, 0.001});
  EXPECT_EQ(names(two), (Texts{"int8", "topk 2%", "topk 0.1%", "{ codec: topk, keep: 5% }"}));
  EXPECT_EQ((*two)[2].config.keep, 0.001);
}

TEST(BenchChoiceTest, KnowsWhoHasAKeep) {
  EXPECT_TRUE(has_keep({core::CodecKind::kTopk}));
  EXPECT_FALSE(has_keep({core::CodecKind::kInt8}));
}

TEST(BenchChoiceTest, RefusesWhatTheConfigWouldRefuse) {
  for (const char* const text : {"topq", "{ codec: topk, keep: 200% }", "", "{ codec: int8"}) {
    const auto choices = choose_codecs(Texts{text}, {});
    EXPECT_EQ(choices.status().code(), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(BenchChoiceTest, TheBestBackendIsCalledCpu) {
  const auto best = choose_backends({});
  ASSERT_TRUE(best.ok());
  ASSERT_EQ(best->size(), 1u);
  EXPECT_EQ((*best)[0].name, "cpu");
  EXPECT_EQ((*best)[0].kernels, &compression::best_kernels());

  const auto all = choose_backends(Texts{"all"});
  ASSERT_TRUE(all.ok());
  const bool device = compression::device_name().ok();
  EXPECT_EQ(all->size(), compression::available_kernels().size() + (device ? 1 : 0));
  EXPECT_EQ(std::ranges::count(*all, "cpu", &BackendChoice::name), 1);

  // Asked for by name, a device that is not there says why.
  const auto cuda = choose_backends(Texts{"cuda"});
  EXPECT_EQ(cuda.ok(), device);
  if (!device) {
    EXPECT_EQ(cuda.status().code(), ErrorCode::kUnavailable);
  }

  EXPECT_EQ(choose_backends(Texts{"abacus"}).status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus::apps
