#include "os/process/command.h"

#include <optional>

#include <gtest/gtest.h>

#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using Result = base::Result<Command::Outcome>;

/// Runs a shell script to its end; the default deadline is a minute.
Result RunToEnd(const std::string& script, Command::Options options = {}) {
  if (options.deadline == Command::Options{}.deadline) options.deadline = std::chrono::minutes(1);
  Loop loop("test");
  std::optional<Result> result;
  options.spawn.arguments = {"/bin/sh", "-c", script};
  const Command command(loop, std::move(options), [&](Result got) {
    result = std::move(got);
    loop.Stop();
  });
  loop.Run();
  return *std::move(result);
}

TEST(RunningACommand, GivesInputAndTakesOutputAndStatus) {
  const auto result =
      RunToEnd("read line; echo \"got $line\"; echo oops >&2; exit 3", {.input = "hello\n"});
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(result->output, "got hello\noops\n");
  EXPECT_EQ(result->status, 3);
}

TEST(RunningACommand, KeepsErrorsApartWhereThatIsAskedFor) {
  const auto result = RunToEnd("echo one; echo two >&2; echo three", {.errors_apart = true});
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(result->output, "one\nthree\n");
  EXPECT_EQ(result->errors, "two\n");
}

TEST(RunningACommand, ReportsTheSignalThatEndedIt) {
  EXPECT_EQ(RunToEnd("kill -TERM $$")->status, 128 + 15);
}

TEST(RunningACommand, IsKilledWhenItIsLate) {
  const auto result = RunToEnd("exec sleep 600", {.deadline = std::chrono::milliseconds(50)});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::kDeadlineExceeded);
}

TEST(RunningACommand, DoesNotWaitForWhatItLeavesRunning) {
  const TemporaryFolder folder;
  const auto result = RunToEnd("sleep 600 & echo $!");
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(result->status, 0);
  ::kill(std::stoi(result->output), SIGKILL);
}

TEST(RunningACommand, DropsWhatIsTooMuch) {
  const auto result = RunToEnd("i=0; while [ $i -lt 2000 ]; do echo 0123456789; i=$((i+1)); done",
                               {.most_output = 100});
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(result->output.size(), 100u);
}

TEST(RunningACommand, SaysThatThereIsNoSuchProgram) {
  Loop loop("test");
  std::optional<Result> result;
  const Command command(loop, {.spawn = {.arguments = {"/no/such/program"}}}, [&](Result got) {
    result = std::move(got);
    loop.Stop();
  });
  EXPECT_FALSE(result) << "the result is reported later";
  loop.Run();
  EXPECT_EQ(result->error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace penstock::os
