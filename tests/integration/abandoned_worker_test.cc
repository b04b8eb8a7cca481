// A worker that even kill -9 does not end, as one in a hung driver call: played by the freezer of cgroup v1, out of which a frozen process
// does not die. Needs root and a kernel with that freezer.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/testing/build_tree.h"
#include "device/testing/asking.h"
#include "os/core/file.h"
#include "os/temporary_folder.h"

namespace penstock {
namespace {

using base::Code;
using std::chrono::milliseconds;

/// A group of the freezer, in the machine's own hierarchy or in one that is mounted for the test.
class Freezer {
 public:
  Freezer() {
    std::string hierarchy = "/sys/fs/cgroup/freezer";
    if (!os::Exists(hierarchy + "/cgroup.procs")) {
      hierarchy = mount_.path();
      mounted_ = ::mount("penstock-test", hierarchy.c_str(), "cgroup", 0, "freezer") == 0;
    }
    group_ = hierarchy + "/penstock-test-" + std::to_string(::getpid());
    std::error_code failed;
    usable_ = std::filesystem::create_directory(group_, failed);
  }
  ~Freezer() {
    (void)Thaw();
    // The group is busy for a moment while its process goes.
    for (int attempt = 0; attempt < 1000 && ::rmdir(group_.c_str()) != 0 && errno == EBUSY; ++attempt) ::usleep(1000);
    if (mounted_) ::umount2(mount_.path().c_str(), MNT_DETACH);
  }

  bool usable() const { return usable_; }

  /// Freezes a process, and returns when it is frozen.
  base::Status Freeze(pid_t pid) const {
    TRY(os::WriteControlFile(group_ + "/cgroup.procs", std::to_string(pid)));
    TRY(os::WriteControlFile(group_ + "/freezer.state", "FROZEN"));
    for (;;) {
      ASSIGN(const std::string state, os::ReadFile(group_ + "/freezer.state"));
      if (state == "FROZEN\n") return {};
    }
  }
  base::Status Thaw() const { return os::WriteControlFile(group_ + "/freezer.state", "THAWED"); }

 private:
  os::TemporaryFolder mount_;
  std::string group_;
  bool mounted_ = false;
  bool usable_ = false;
};

TEST(AbandonedWorker, IsLeftBehindAndAnotherServesUntilItCanDie) {
  const Freezer freezer;
  ASSERT_TRUE(freezer.usable()) << "this test needs root and the cgroup v1 freezer";
  device::Asking worker;
  worker.Make({.command = {base::BuildPath("tests/scripted_worker")}, .call_deadline = milliseconds(500)});
  ASSERT_TRUE(worker.Open().ok());
  const pid_t frozen = worker.pid();
  const auto status = freezer.Freeze(frozen);
  ASSERT_TRUE(status.ok()) << status.error().ToString();

  EXPECT_EQ(worker.Describe("0").error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(worker.Ended().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(worker.abandoned(), 1);
  EXPECT_TRUE(os::Exists("/proc/" + std::to_string(frozen))) << "kill -9 did not end it";

  ASSERT_TRUE(worker.Open().ok());
  EXPECT_TRUE(worker.Describe("0").ok());
  EXPECT_EQ(worker.abandoned(), 1);

  ASSERT_TRUE(freezer.Thaw().ok());
  EXPECT_TRUE(worker.NoneAbandonedAtLast());
  EXPECT_FALSE(os::Exists("/proc/" + std::to_string(frozen))) << "it was reaped";
  EXPECT_TRUE(worker.Describe("0").ok()) << "and its end disturbed nobody";
}

TEST(AbandonedWorker, IsNotFollowedByMoreThanEight) {
  const Freezer freezer;
  ASSERT_TRUE(freezer.usable()) << "this test needs root and the cgroup v1 freezer";
  device::Asking worker;
  worker.Make({.command = {base::BuildPath("tests/scripted_worker")}});
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(worker.Open().ok()) << i;
    const auto status = freezer.Freeze(worker.pid());
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    worker.Stop();
  }
  EXPECT_EQ(worker.abandoned(), 8);
  EXPECT_EQ(worker.Open().error().code(), Code::kUnavailable);
  ASSERT_TRUE(freezer.Thaw().ok());
  EXPECT_TRUE(worker.NoneAbandonedAtLast());
  EXPECT_TRUE(worker.Open().ok());
}

}  // namespace
}  // namespace penstock
