#include "apps/progress.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace isthmus::apps {
namespace {

using std::chrono::seconds;

JobStatus training(Step clock, std::uint64_t samples, std::uint64_t bytes) {
  JobStatus status;
  status.phase = proto::PHASE_TRAINING;
  status.clock = clock;
  status.samples = samples;
  DirectedLink link;
  link.from = "frankfurt";
  link.to = "virginia";
  link.links = link.up = 1;
  link.bytes = bytes;
  status.links = {link};
  return status;
}

core::JobConfig config_of(Step steps) {
  core::JobConfig config;
  config.trainer.stop.steps = steps;
  return config;
}

std::string text_of(const JobStatus& status, const Rates& rates = {}, std::optional<Judged> judged = {}) {
  return progress_text(config_of(200), status, rates, judged, seconds(10));
}

TEST(ProgressTest, RatesAreWhatChangedOverTheTime) {
  const Rates rates = rates_between(training(100, 1000, 0), training(150, 3000, 250'000), seconds(2));
  EXPECT_DOUBLE_EQ(rates.steps_per_second, 25);
  EXPECT_DOUBLE_EQ(rates.samples_per_second, 1000);
  ASSERT_EQ(rates.link_bits_per_second.size(), 1u);
  EXPECT_DOUBLE_EQ(rates.link_bits_per_second[0], 1e6);
}

TEST(ProgressTest, ACounterThatFellIsNoRate) {
  const Rates rates = rates_between(training(100, 1000, 9), training(50, 500, 0), seconds(1));
  EXPECT_EQ(rates.steps_per_second, 0);
  EXPECT_EQ(rates.link_bits_per_second[0], 0);
}

TEST(ProgressTest, SaysWhatAPersonWantsToKnow) {
  JobStatus status = training(150, 3000, 250'000);
  status.staleness = {1, 1, 8};
  const Rates rates{25, 1000, {1e6}};
  EXPECT_EQ(text_of(status, rates, Judged{100, 0.8712, 0.3621}),
            "step 150/200  accuracy 87.12 %  loss 0.3621  1000 samples/s  frankfurt>virginia 1.00 Mbit/s  "
            "staleness 2"
            "  ETA 2 s");
}

TEST(ProgressTest, SaysWhatIsWrong) {
  JobStatus status = training(150, 3000, 0);
  status.links[0].up = 0;
  status.regions.resize(1);
  status.regions[0].halted = true;
  const std::string text = text_of(status, Rates{0, 0, {0}});
  EXPECT_NE(text.find("frankfurt>virginia 0.00 Mbit/s DOWN"), std::string::npos) << text;
  EXPECT_NE(text.find("HALTED"), std::string::npos) << text;
  EXPECT_EQ(text.find("ETA"), std::string::npos) << text;  // Standing still has no end.
}

TEST(ProgressTest, EachPhaseHasItsWords) {
  JobStatus status = training(0, 0, 0);
  status.phase = proto::PHASE_WAITING;
  EXPECT_EQ(text_of(status), "waiting for workers and their initial values");
  status.phase = proto::PHASE_DRAINED;
  EXPECT_EQ(text_of(status), "the last sync is done");
}

class Output {
 public:
  Output() : file_(open_memstream(&text_, &size_)) {}
  ~Output() {
    std::fclose(file_);
    std::free(text_);
  }
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

TEST(ProgressLineTest, APipeGetsALineInFiveSeconds) {
  Output output;
  {
    ProgressLine line(ProgressLine::Mode::kPlain, output.file());
    for (int i = 0; i <= 10; ++i) line.show(std::to_string(i), core::TimePoint(seconds(i)));
  }
  EXPECT_EQ(output.text(), "0\n5\n10\n");
}

TEST(ProgressLineTest, ATerminalKeepsOneLineAndShorterTextLeavesNothingBehind) {
  Output output;
  {
    ProgressLine line(ProgressLine::Mode::kTerminal, output.file());
    line.show("abcdef", {});
    line.show("xy", {});
    line.say("news");
  }
  EXPECT_EQ(output.text(), "\rabcdef\rxy    \r  \rnews\n");
}

TEST(ProgressLineTest, QuietShowsOnlyWhatIsSaid) {
  Output output;
  {
    ProgressLine line(ProgressLine::Mode::kQuiet, output.file());
    line.show("progress", {});
    line.say("a worker died");
  }
  EXPECT_EQ(output.text(), "a worker died\n");
}

}  // namespace
}  // namespace isthmus::apps
