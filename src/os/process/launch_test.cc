#include "os/process/launch.h"

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace penstock::os {
namespace {

using ::testing::ElementsAre;

TEST(Launch, SaysWhatItIsToDoAsArguments) {
  const LaunchOptions options{.cgroup = "group",
                              .binds = {{"/a", "/b"}},
                              .scratch = "/mnt",
                              .root = "/root",
                              .command = {"true", "-d"}};
  EXPECT_THAT(LaunchArguments("worker", options),
              ElementsAre("worker", "launch", "--cgroup", "group", "--scratch", "/mnt", "--bind",
                          "/a=/b", "--root", "/root", "--", "true", "-d"));
}

TEST(Launch, SeesWhatAnotherProcessSees) {
  EXPECT_THAT(LaunchArguments("worker", {.within = "/proc/7"}),
              ElementsAre("worker", "launch", "--within", "/proc/7", "--"));
}

/// The output and exit status of a child that launches with these options.
std::pair<std::string, int> Launched(const LaunchOptions& options) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  std::fflush(stdout);  // otherwise the child repeats buffered output
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    std::vector<std::string> arguments = LaunchArguments("launcher", options);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    ::_exit(LaunchMain(static_cast<int>(arguments.size()), pointers.data()));
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 256> part{};
  for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;)
    said.append(part.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return {said, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

TEST(Launch, BecomesTheProgramWithItsOwnArguments) {
  EXPECT_EQ(Launched({.command = {"printf", "%s|", "-d", "--root", "/x", "--", ""}}),
            std::pair(std::string("-d|--root|/x|--||"), 0));
  EXPECT_EQ(Launched({.command = {"/no/such/program"}}).second, 127);
  EXPECT_EQ(Launched({.within = "/proc/no-such-process", .command = {"true"}}).second, 126);
  EXPECT_EQ(Launched({.root = "/no/such/root", .command = {"true"}}).second, 126);
}

TEST(Launch, ReportsWhatItCouldNotDo) {
  const LaunchRemarks remarks = ReadLaunchRemarks(
      "launch: group: no groups\nwhat the program says\nlaunch: mounts: not permitted: a\n");
  EXPECT_EQ(remarks.group, "no groups");
  EXPECT_EQ(remarks.mounts, "not permitted: a");
  EXPECT_EQ(ReadLaunchRemarks("").mounts, "");
}

}  // namespace
}  // namespace penstock::os
