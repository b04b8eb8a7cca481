#include "app/penstock/mig/mig_hooks.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/core/file.h"
#include "os/core/testing/temporary_folder.h"
#include "os/testing/eventually.h"

namespace penstock::app {
namespace {

using base::Code;
using ::testing::HasSubstr;

class MigHookTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

  /// A file with these hooks at apply-start, each a script of sh.
  std::string Hooks(const std::vector<std::string>& scripts, const std::string& more = "") const {
    std::ofstream file(Path("hooks.yaml"));
    file << "version: v1\nhooks:\n  apply-start:\n";
    for (const std::string& script : scripts)
      file << "  - {command: /bin/sh, args: [-c, '" << script << "']" << more << "}\n";
    return Path("hooks.yaml");
  }

  base::Status Run(const std::string& file, MigHookRunner::Options options = {}) const {
    const auto hooks = MigHookRunner::Open(file, std::move(options));
    return hooks.ok() ? hooks->Run(api::compat::kApplyStart) : base::Status(hooks.error());
  }

  std::string Read(const std::string& name) const {
    return os::ReadFile(Path(name)).ok() ? *os::ReadFile(Path(name)) : "";
  }

  /// Whether the process whose pid is in this file runs. One that was killed and is not reaped yet
  /// has no command line.
  bool Runs(const std::string& name) const {
    const std::string pid = Read(name);
    EXPECT_FALSE(pid.empty());
    const auto line = os::ReadFile("/proc/" + pid.substr(0, pid.find('\n')) + "/cmdline");
    return line.ok() && !line->empty();
  }

  os::TemporaryFolder folder_;
};

TEST_F(MigHookTest, RunsInOrderWithTheGivenEnvironmentAlone) {
  ::setenv("PENSTOCK_TEST_LEAKS", "1", 1);
  const std::string file =
      Hooks({"pwd > first; cat >> first", "/usr/bin/env | /usr/bin/sort > second"},
            ", workdir: " + folder_.path() + ", envs: {A: hook, B: hook}");
  ASSERT_TRUE(Run(file, {.environment = {{"A", "given"}, {"C", "d=e f"}}}).ok());
  ::unsetenv("PENSTOCK_TEST_LEAKS");
  EXPECT_EQ(Read("first"), std::filesystem::canonical(folder_.path()).string() + "\n");
  EXPECT_THAT(Read("second"), HasSubstr("A=given\nB=hook\nC=d=e f\n"));
  EXPECT_EQ(Read("second").find("LEAKS"), std::string::npos);
  EXPECT_EQ(Read("second").find("HOME="), std::string::npos);
  EXPECT_TRUE(MigHookRunner::Open(file, {})->Run(api::compat::kApplyExit).ok()) << "has none";
}

TEST_F(MigHookTest, EndsWithTheFirstThatFails) {
  const auto failed = Run(Hooks({"exit 0", "exit 3", "> third"}, ", workdir: " + folder_.path()));
  EXPECT_EQ(failed.error().code(), Code::kAborted);
  EXPECT_EQ(failed.error().message(), "hook apply-start: /bin/sh ended with status 3");
  EXPECT_FALSE(os::Exists(Path("third")));
  EXPECT_EQ(Run(Hooks({"kill -9 $$"})).error().message(),
            "hook apply-start: /bin/sh ended by signal 9");
  EXPECT_THAT(Run(Hooks({"exit 1"}), {.show_output = false}).error().message(),
              HasSubstr("--debug"));
  std::ofstream(Path("none.yaml")) << "{version: v1, hooks: {apply-start: [{command: /no/such}]}}";
  EXPECT_EQ(Run(Path("none.yaml")).error().code(), Code::kNotFound);
}

TEST_F(MigHookTest, KillsWhatDoesNotEndWithWhatItStarted) {
  const std::string file =
      Hooks({"/bin/sleep 1000 & echo $! > pid; wait"}, ", workdir: " + folder_.path());
  EXPECT_EQ(Run(file, {.deadline = std::chrono::seconds(10)}).error().code(),
            Code::kDeadlineExceeded);
  EXPECT_TRUE(os::Eventually([&] { return !Runs("pid"); }));
}

class MigHookSignalTest : public MigHookTest {
 protected:
  /// Runs the hooks at apply-start, and sends this process a signal once there is a file "pid".
  base::Status RunWithSignal(const std::string& file, int signal, MigHookRunner::Options options) {
    std::thread sender([&] {
      EXPECT_TRUE(os::Eventually([&] { return !Read("pid").empty(); }));
      ::kill(::getpid(), signal);
    });
    const base::Status status = Run(file, std::move(options));
    sender.join();
    return status;
  }
};

TEST_F(MigHookSignalTest, EndsTheHookWithWhatItStartedAndRunsOnlyTheLastOnes) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Interruption interruption;
    const std::string file =
        // The inner shell writes its pid itself, once it no longer has the trap of the outer one.
        Hooks({"trap \"echo ended > ended; exit\" TERM; "
               "/bin/sh -c \"echo \\$\\$ > pid; exec /bin/sleep 1000\" & wait",
               "> second"},
              ", workdir: " + folder_.path());
    std::ofstream(file, std::ios::app)
        << "  apply-exit: [{command: /bin/sh, args: [-c, \"> last\"], workdir: " << folder_.path()
        << "}]\n";
    const MigHookRunner::Options options{.interruption = &interruption};
    const auto status = RunWithSignal(file, signal, options);
    EXPECT_EQ(status.error().code(), Code::kCancelled) << status.error().message();
    EXPECT_EQ(interruption.signal(), signal);
    EXPECT_EQ(Read("ended"), "ended\n");
    EXPECT_FALSE(Runs("pid"));
    EXPECT_FALSE(os::Exists(Path("second")));
    std::filesystem::remove(Path("ended"));
    EXPECT_EQ(Run(file, options).error().code(), Code::kCancelled);
    EXPECT_FALSE(os::Exists(Path("ended"))) << "it was not started";
    EXPECT_TRUE(MigHookRunner::Open(file, options)->Run(api::compat::kApplyExit).ok());
    EXPECT_TRUE(os::Exists(Path("last")));
    std::filesystem::remove(Path("pid"));
    std::filesystem::remove(Path("last"));
  }
}

TEST_F(MigHookSignalTest, KillsWhatIgnoresItAfterAGrace) {
  Interruption interruption;
  // The program itself ends; what it started does not.
  const std::string file =
      Hooks({"trap \"\" TERM; /bin/sleep 1000 & echo $! > pid; trap - TERM; wait"},
            ", workdir: " + folder_.path());
  const auto status = RunWithSignal(
      file, SIGTERM, {.grace = std::chrono::milliseconds(100), .interruption = &interruption});
  EXPECT_EQ(status.error().code(), Code::kCancelled);
  EXPECT_TRUE(os::Eventually([&] { return !Runs("pid"); }));
}

TEST_F(MigHookSignalTest, LeavesSignalsThatAreIgnoredSo) {
  ::signal(SIGHUP, SIG_IGN);
  {
    const Interruption interruption;
    ::raise(SIGHUP);
    EXPECT_EQ(interruption.signal(), 0);
    ::raise(SIGTERM);
    EXPECT_EQ(interruption.signal(), SIGTERM);
  }
  EXPECT_EQ(::signal(SIGHUP, SIG_DFL), SIG_IGN);
  EXPECT_EQ(::signal(SIGTERM, SIG_DFL), SIG_DFL);
}

std::int64_t now = 1;

TEST_F(MigHookSignalTest, SignalsWithinASecondAreOneRequest) {
  Interruption interruption([] { return now; });
  ::raise(SIGTERM);
  ::raise(SIGTERM);
  now += 999'999'999;
  ::raise(SIGHUP);
  EXPECT_EQ(interruption.signal(), SIGTERM);
}

using MigHookSignalDeathTest = MigHookSignalTest;

TEST_F(MigHookSignalDeathTest, TheProgramEndsByTheSignal) {
  EXPECT_EXIT(
      {
        Interruption interruption;
        ::raise(SIGINT);
        interruption.End();
      },
      ::testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(
      {
        Interruption interruption([] { return now; });
        ::raise(SIGINT);
        now += 1'000'000'000;
        ::raise(SIGTERM);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST_F(MigHookTest, RefusesFilesThatOthersCanChange) {
  const std::string file = Hooks({"> ran"}, ", workdir: " + folder_.path());
  const auto refused = [&](const std::string& path, const std::string& why) {
    const auto status = Run(path);
    ASSERT_FALSE(status.ok()) << why;
    EXPECT_EQ(status.error().code(), Code::kPermissionDenied) << status.error().message();
    EXPECT_THAT(status.error().message(), HasSubstr(why));
    EXPECT_FALSE(os::Exists(Path("ran")));
  };
  ::chmod(file.c_str(), 0666);
  refused(file, "is writable by everyone");
  ::chmod(file.c_str(), 0664);
  refused(file, "is writable by its group");
  ::chmod(file.c_str(), 0644);
  std::filesystem::create_directory(Path("open"));
  ::chmod(Path("open").c_str(), 0777);
  std::filesystem::copy(file, Path("open/hooks.yaml"));
  refused(Path("open/hooks.yaml"), "open is writable by everyone");
  // Whoever can replace a link chooses what runs.
  std::filesystem::create_symlink(file, Path("open/link.yaml"));
  refused(Path("open/link.yaml"), "open is writable by everyone");
  std::filesystem::create_symlink(Path("open/hooks.yaml"), Path("link.yaml"));
  refused(Path("link.yaml"), "open is writable by everyone");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
    refused(file, "belongs to user 65534");
    ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
    std::filesystem::create_symlink(file, Path("theirs.yaml"));
    ASSERT_EQ(::lchown(Path("theirs.yaml").c_str(), 65534, 65534), 0);
    refused(Path("theirs.yaml"), "belongs to user 65534");
  }
  std::filesystem::create_symlink(file, Path("good.yaml"));
  EXPECT_TRUE(Run(Path("good.yaml")).ok());
  EXPECT_TRUE(os::Exists(Path("ran")));
}

TEST_F(MigHookTest, ReadsOnlyFiles) {
  EXPECT_EQ(Run(Path("missing")).error().code(), Code::kNotFound);
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(Run(Path("pipe")).error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(Run(folder_.path()).ok());
}

}  // namespace
}  // namespace penstock::app
