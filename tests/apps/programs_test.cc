#include "apps/programs.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace isthmus::apps {
namespace {

TEST(ProgramsTest, TheTrainerLiesBesideThisProgram) {
  EXPECT_EQ(std::filesystem::path(this_program()).filename(), "programs_test");
  EXPECT_EQ(std::filesystem::path(trainer_program()).parent_path(),
            std::filesystem::path(this_program()).parent_path());
}

}  // namespace
}  // namespace isthmus::apps
