// Tests reading processes with small trees that look like /proc, and with real children.
#include "os/process/process.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/process/process_text.h"
#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

std::string Stat(const std::string& name) {
  return "42 (" + name + ") S 7 42 42 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 1 0 987654 1 2 3\n";
}

TEST(StatFields, SurviveAnyName) {
  for (const std::string name :
       {"bash", "a b", "evil) R 1 1 1", "((", "))", "", "tab\tnewline\n"}) {
    const auto fields = ParseStat(Stat(name));
    ASSERT_TRUE(fields) << name;
    EXPECT_EQ(fields->name, name);
    EXPECT_EQ(fields->parent, 7);
    EXPECT_EQ(fields->group, 42);
    EXPECT_EQ(fields->user, 250u);
    EXPECT_EQ(fields->system, 50u);
    EXPECT_EQ(fields->start, 987654u);
  }
}

TEST(StatFields, AreNothingWhereTheTextIsCut) {
  for (const std::string text :
       {"", "42", "42 (bash", "42 (bash)", "42 )bash( S 1", "42 (bash) S 7 42",
        "42 (bash) S -7 0 0 0 0 0 0 0 0 0 0 1 1 0 0 0 0 0 0 1"}) {
    EXPECT_FALSE(ParseStat(text)) << text;
  }
}

TEST(Cgroups, AreReadFromPureAndHybridMachines) {
  EXPECT_THAT(ParseCgroups("0::/user.slice/session-1.scope\n"),
              ElementsAre("/user.slice/session-1.scope"));
  EXPECT_THAT(ParseCgroups("12:pids:/kubepods/pod1\n1:name=systemd:/kubepods/pod1\n"),
              ElementsAre("/kubepods/pod1"));
  EXPECT_THAT(ParseCgroups("12:pids:/v1/a\n4:cpu,cpuacct:/v1/b\n0::/unified\n"),
              ElementsAre("/unified", "/v1/a", "/v1/b"));
  EXPECT_THAT(ParseCgroups("0::/gone (deleted)\n"), ElementsAre("/gone"));
  EXPECT_THAT(ParseCgroups("0::/with:colon\n"), ElementsAre("/with:colon"));
  EXPECT_THAT(ParseCgroups("\n:\n::\nrubbish\n0::relative\n"), IsEmpty());
}

TEST(Command, IsPrintableWhateverTheProcessWrote) {
  using namespace std::string_literals;
  EXPECT_EQ(DescribeCommand("python\0train.py\0"s, "python"), "python train.py");
  EXPECT_EQ(DescribeCommand("a\0\0b\0\0"s, "a"), "a  b");
  EXPECT_EQ(DescribeCommand("", "kworker/0:1"), "[kworker/0:1]");
  EXPECT_EQ(DescribeCommand("\0\0"s, "x"), "[x]");
  EXPECT_EQ(DescribeCommand("gr\xc3\xbc\xc3\x9f \xff\xc3 \xe2\x82"s, "x"),
            "gr\xc3\xbc\xc3\x9f ?? ??"s);
  EXPECT_EQ(DescribeCommand("\x1b[31mred\nline\x7f"s, "x"), "?[31mred line?");
  EXPECT_EQ(DescribeCommand("x \xc2\x9b"
                            "31m \xe2\x80\xae"
                            "drawer"s,
                            "x"),
            "x ?31m ?drawer")
      << "C1 characters and changes of the writing direction";
}

TEST(Process, IsReadFromATreeThatLooksLikeProc) {
  const TemporaryFolder proc;
  proc.Write("42/stat", Stat("python3"));
  proc.Write("42/status", "Name:\tpython3\nUid:\t1000\t0\t0\t0\n");
  proc.Write("42/cmdline", std::string(10'000, 'x'));
  proc.Write("42/cgroup", "0::/a\n");
  proc.Write("self", "");
  proc.Write("0/stat", "");
  proc.Write("42a/stat", "");
  const auto process = ReadProcess(proc.path(), 42);
  ASSERT_TRUE(process.ok()) << process.error().message();
  EXPECT_EQ(process->pid, 42);
  EXPECT_EQ(process->parent, 7);
  EXPECT_EQ(process->start, 987654u);
  EXPECT_EQ(process->uid, 1000u);
  EXPECT_EQ(process->command, std::string(4096, 'x'));
  EXPECT_EQ(process->cgroup, "/a");
  EXPECT_EQ(*ReadProcessStart(proc.path(), 42), 987654u);
  EXPECT_EQ(*ReadCpuTime(proc.path(), 42),
            300u * 1'000'000'000ull / static_cast<unsigned>(::sysconf(_SC_CLK_TCK)));
  EXPECT_THAT(ListProcesses(proc.path()), ElementsAre(42));
  EXPECT_EQ(ReadProcess(proc.path(), 43).error().code(), Code::kNotFound);
  EXPECT_THAT(ListProcesses(proc / "none"), IsEmpty());
  for (const char* other : {"7/stat", "1021/stat"}) proc.Write(other, "");
  EXPECT_THAT(ListProcesses(proc.path()), ElementsAre(7, 42, 1021));
}

TEST(Process, IsOfTheMachineInTheNamespacesOfTheFirstOne) {
  const TemporaryFolder proc;
  const auto link = [&](const std::string& pid, const std::string& kind, const std::string& what) {
    std::filesystem::create_directories(proc / (pid + "/ns"));
    std::filesystem::remove(proc / (pid + "/ns/" + kind));
    std::filesystem::create_symlink(what, proc / (pid + "/ns/" + kind));
  };
  for (const std::string pid : {"1", "42"})
    for (const std::string kind : {"user", "pid", "mnt"}) link(pid, kind, kind + ":[1]");
  EXPECT_TRUE(IsOfTheMachine(proc.path(), 42));
  for (const std::string kind : {"user", "pid", "mnt"}) {
    link("42", kind, kind + ":[2]");
    EXPECT_FALSE(IsOfTheMachine(proc.path(), 42)) << kind;
    link("42", kind, kind + ":[1]");
  }
  EXPECT_FALSE(IsOfTheMachine(proc.path(), 43)) << "the process has exited";
  link("42", "mnt", "mnt:[2]");
  link("self", "mnt", "mnt:[2]");
  EXPECT_TRUE(IsOfTheMachine(proc.path(), 42)) << "in the mount namespace of this process";
  link("self", "mnt", "mnt:[3]");
  link("42", "mnt", "mnt:[1]");
  std::filesystem::remove(proc / "1/ns/mnt");
  EXPECT_FALSE(IsOfTheMachine(proc.path(), 42)) << "there is no namespace to compare with";
}

TEST(Process, KnowsOurselves) {
  const auto self = ReadProcess("/proc", ::getpid());
  ASSERT_TRUE(self.ok()) << self.error().message();
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_EQ(self->uid, ::getuid());
  EXPECT_TRUE(self->cgroup.starts_with("/")) << self->cgroup;
  EXPECT_THAT(ListProcesses("/proc"), Contains(::getpid()));
  EXPECT_EQ(ReadBootId("/proc")->size(), 36u);
  EXPECT_THAT(OwnPath(), testing::HasSubstr("/os_test"));
  EXPECT_EQ(UserName(4'000'000'000u), "4000000000");
}

int Wait(const Child& child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child.pid, &status, 0), child.pid);
  return status;
}

struct Output {
  Output() {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), O_CLOEXEC) != 0) std::abort();
    out.Reset(fds[0]);
    in.Reset(fds[1]);
  }
  std::string Read() {
    in.Reset();
    return ReadAll(out.get(), "pipe").value_or("");
  }
  UniqueFd out, in;
};

TEST(Spawn, GivesTheDescriptorsAskedForAndNoOther) {
  Output stdout_pipe, a, b;
  const UniqueFd leaked(::open("/dev/null", O_RDONLY));  // not close-on-exec, and still not
                                                         // inherited
  SpawnOptions options;
  options.arguments = {"/bin/sh", "-c", "echo to3 >&3; echo to4 >&4; cd /proc/self/fd && echo *"};
  options.descriptors = {{a.in.get(), 4}, {b.in.get(), 3}};
  options.standard_output = stdout_pipe.in.get();
  const auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.error().message();
  EXPECT_EQ(a.Read(), "to4\n");
  EXPECT_EQ(b.Read(), "to3\n");
  EXPECT_EQ(base::Split(base::Trim(stdout_pipe.Read()), ' ').size(),
            6u);  // 0 to 4, and the directory that the shell lists
  EXPECT_EQ(Wait(*child), 0);
}

TEST(Spawn, SwapsNumbersThatAreInEachOthersWay) {
  Output first, second;
  const int low = std::min(first.in.get(), second.in.get());
  const int high = std::max(first.in.get(), second.in.get());
  SpawnOptions options;
  options.arguments = {"/bin/bash", "-c", "echo swapped >&" + std::to_string(low)};
  options.descriptors = {{low, high}, {high, low}};
  const auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.error().message();
  auto& got = first.in.get() == high ? first : second;
  auto& other = first.in.get() == high ? second : first;
  EXPECT_EQ(got.Read(), "swapped\n");
  EXPECT_EQ(other.Read(), "");
  EXPECT_EQ(Wait(*child), 0);
}

TEST(Spawn, GivesEnvironmentSessionAndUnblockedSignals) {
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
  Output output;
  SpawnOptions options;
  options.arguments = {"/bin/sh", "-c",
                       "echo $NAME $(cut -d' ' -f6 /proc/$$/stat) $$; kill -TERM $$; exit 3"};
  options.environment = {"NAME=value", "PATH=/usr/bin:/bin"};
  options.new_session = true;
  options.standard_output = output.in.get();
  const auto child = Spawn(options);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  ASSERT_TRUE(child.ok()) << child.error().message();
  const std::string pid = std::to_string(child->pid);
  EXPECT_EQ(output.Read(), "value " + pid + " " + pid + "\n");
  const int status = Wait(*child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

TEST(Spawn, ReportsByPidfdWhenAChildHasEnded) {
  const auto child = Spawn({.arguments = {"true"}});
  ASSERT_TRUE(child.ok()) << child.error().message();
  pollfd poll{child->pidfd.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&poll, 1, 60'000), 1);
  EXPECT_EQ(Wait(*child), 0);
  EXPECT_EQ(OpenPidfd(child->pid).error().code(), Code::kNotFound);
}

TEST(Spawn, SaysThatThereIsNoSuchProgram) {
  EXPECT_EQ(Spawn({}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Spawn({.arguments = {"/nonexistent/program"}}).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace penstock::os
