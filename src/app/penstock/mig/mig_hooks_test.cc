#include "app/penstock/mig/mig_hooks.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/core/file.h"
#include "os/core/testing/temporary_folder.h"

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
  EXPECT_EQ(Run(file, {.deadline = std::chrono::seconds(1)}).error().code(),
            Code::kDeadlineExceeded);
  const std::string pid = Read("pid");
  ASSERT_FALSE(pid.empty());
  // One that was killed and is not reaped yet has no command line.
  const auto line = [&] {
    const auto read = os::ReadFile("/proc/" + pid.substr(0, pid.find('\n')) + "/cmdline");
    return read.ok() ? *read : "";
  };
  for (int i = 0; i < 1000 && !line().empty(); ++i) ::usleep(10'000);
  EXPECT_EQ(line(), "");
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
