// Tests where the command of `penstock run` begins.
#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/penstock/common/verbs.h"

namespace penstock::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Words = std::vector<std::string>;

class CutCommandTest : public testing::Test {
 protected:
  CutCommandTest() {
    app_.add_option("-o,--output", output_);
    AddNodeOptions(app_, common_.settings);
    AddRun(app_, common_, exit_code_);
    AddQueue(app_, common_, exit_code_);
  }
  Words Cut(Words words) {
    Words command = CutCommand(app_, words);
    left_ = std::move(words);
    return command;
  }

  CLI::App app_;
  Common common_;
  std::string output_;
  int exit_code_ = 0;
  Words left_;
};

TEST_F(CutCommandTest, TakesWhatFollowsTheMark) {
  EXPECT_THAT(Cut({"run", "--gpus", "2", "--", "sh", "-c", "exit 7"}),
              ElementsAre("sh", "-c", "exit 7"));
  EXPECT_THAT(left_, ElementsAre("run", "--gpus", "2"));
}

TEST_F(CutCommandTest, TakesTheFirstWordThatIsNoOptionWhereThereIsNoMark) {
  EXPECT_THAT(Cut({"--run-dir", "/r", "run", "--gpus", "2", "--wait=0", "-o", "json", "python",
                   "--gpus", "3"}),
              ElementsAre("python", "--gpus", "3"));
  EXPECT_THAT(left_,
              ElementsAre("--run-dir", "/r", "run", "--gpus", "2", "--wait=0", "-o", "json"));
}

TEST_F(CutCommandTest, LeavesTheWordsOfTheCommandAlone) {
  EXPECT_THAT(Cut({"run", "--", "run", "--", "[a,b]", "", "queue"}),
              ElementsAre("run", "--", "[a,b]", "", "queue"));
  EXPECT_THAT(Cut({"run", "sh", "--", "x"}), ElementsAre("sh", "--", "x"));
}

TEST_F(CutCommandTest, TakesNothingFromOtherVerbs) {
  EXPECT_THAT(Cut({"queue", "cancel", "run"}), IsEmpty());
  EXPECT_THAT(left_, ElementsAre("queue", "cancel", "run"));
  EXPECT_THAT(Cut({"--run-dir", "run", "queue"}), IsEmpty());
  EXPECT_THAT(Cut({"--", "run", "x"}), IsEmpty());
  EXPECT_THAT(Cut({}), IsEmpty());
}

TEST_F(CutCommandTest, TakesNothingWhereNothingIsSaid) {
  EXPECT_THAT(Cut({"run"}), IsEmpty());
  EXPECT_THAT(Cut({"run", "--"}), IsEmpty());
  EXPECT_THAT(Cut({"run", "--gpus"}), IsEmpty());
  EXPECT_THAT(Cut({"run", "--help"}), IsEmpty());
  EXPECT_THAT(left_, ElementsAre("run", "--help"));
}

}  // namespace
}  // namespace penstock::app
