// Tests watching paths with real inotify and a fake clock.
#include "os/watch/watch.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "os/core/fd.h"
#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"

namespace penstock::os {
namespace {

namespace fs = std::filesystem;

class PathWatchTest : public testing::Test {
 protected:
  ~PathWatchTest() override { loop_.Stop(); }

  void Watch(const std::string& path) {
    watch_ = std::make_unique<PathWatch>(loop_.loop(), path, [this] { ++calls_; });
    loop_.Start();
  }

  /// Makes the change and waits for a call after it.
  bool Sees(const std::function<void()>& change) {
    const int before = calls_;
    change();
    return loop_.AdvanceUntil(kDebounce, [&] { return calls_ > before; });
  }

  /// Delivers all notifications of earlier changes: the kernel queues an event before the call that
  /// causes it returns.
  void Settle() { loop_.Advance(kDebounce); }

  static constexpr auto kDebounce = std::chrono::milliseconds(10);
  TemporaryFolder folder_;
  std::atomic<int> calls_ = 0;
  TurnedLoop loop_{"watch-test"};
  std::unique_ptr<PathWatch> watch_;
};

TEST_F(PathWatchTest, SeesAFileComeChangeAndGo) {
  Watch(folder_ / "config");
  EXPECT_TRUE(Sees([&] { folder_.Write("config", "1"); }));
  Settle();
  EXPECT_TRUE(Sees([&] { folder_.Write("config", "2"); }));
  Settle();
  EXPECT_TRUE(Sees([&] { ::chmod((folder_ / "config").c_str(), 0600); }));
  Settle();
  EXPECT_TRUE(Sees([&] { fs::remove(folder_ / "config"); }));
}

TEST_F(PathWatchTest, SeesAPathWhoseFoldersComeOneByOne) {
  Watch(folder_ / "kubelet/device-plugins/kubelet.sock");
  EXPECT_TRUE(Sees([&] { fs::create_directory(folder_ / "kubelet"); }));
  Settle();
  EXPECT_TRUE(Sees([&] { fs::create_directory(folder_ / "kubelet/device-plugins"); }));
  Settle();
  EXPECT_TRUE(Sees([&] { folder_.Write("kubelet/device-plugins/kubelet.sock", ""); }));
}

TEST_F(PathWatchTest, SeesAFolderRemovedAndMadeAgain) {
  folder_.Write("kubelet/device-plugins/kubelet.sock", "");
  Watch(folder_ / "kubelet/device-plugins/kubelet.sock");
  EXPECT_TRUE(Sees([&] { fs::remove_all(folder_ / "kubelet"); }));
  Settle();
  EXPECT_TRUE(Sees([&] { folder_.Write("kubelet/device-plugins/kubelet.sock", ""); }));
  Settle();
  EXPECT_TRUE(Sees([&] { fs::remove(folder_ / "kubelet/device-plugins/kubelet.sock"); }));
}

TEST_F(PathWatchTest, SeesAFolderFurtherUpReplaced) {
  folder_.Write("a/b/file", "old");
  folder_.Write("other/b/file", "new");
  Watch(folder_ / "a/b/file");
  EXPECT_TRUE(Sees([&] {
    fs::rename(folder_ / "a", folder_ / "old");
    fs::rename(folder_ / "other", folder_ / "a");
  }));
  Settle();
  EXPECT_TRUE(Sees([&] { folder_.Write("a/b/file", "newer"); }));
}

TEST_F(PathWatchTest, SeesAMountedConfigMapSwapped) {
  folder_.Write("..1/config.yaml", "1");
  folder_.Write("..2/config.yaml", "2");
  folder_.Link("..data", "..1");
  folder_.Link("config.yaml", "..data/config.yaml");
  Watch(folder_ / "config.yaml");
  EXPECT_TRUE(Sees([&] {
    folder_.Link("..data_tmp", "..2");
    fs::rename(folder_ / "..data_tmp", folder_ / "..data");
  }));
  Settle();
  EXPECT_TRUE(Sees([&] { folder_.Write("..2/config.yaml", "3"); }));
}

TEST_F(PathWatchTest, SeesTheEntriesOfAFolder) {
  fs::create_directory(folder_ / "dev");
  Watch(folder_ / "dev");
  EXPECT_TRUE(Sees([&] { folder_.Write("dev/nvidia0", ""); }));
}

TEST_F(PathWatchTest, TheUseOfADeviceIsNoChange) {
  // A folder further down, because all entries beside the watched path count, and other programs
  // have theirs beside `folder_`. Without the right to create device files, the machine's serve.
  fs::create_directory(folder_ / "dev");
  const bool made = ::mknod((folder_ / "dev/null").c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0;
  const auto use = [](const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    return file && ::write(file.get(), "x", 1) == 1;
  };
  const std::string device = made ? folder_ / "dev/null" : "/dev/null";
  if (!use(device)) GTEST_SKIP() << "no device can be opened here";
  Watch(made ? folder_ / "dev" : device);
  Settle();
  const int before = calls_;
  EXPECT_TRUE(use(device));
  Settle();
  EXPECT_EQ(calls_, before);
  if (made) {
    EXPECT_TRUE(Sees([&] { ::chmod(device.c_str(), 0600); })) << "its mode is a change";
    EXPECT_TRUE(Sees([&] { folder_.Write("dev/file", "1"); }));
    Settle();
    EXPECT_TRUE(Sees([&] { ::unlink(device.c_str()); }));
  }
}

TEST_F(PathWatchTest, MakesOneCallOfABurst) {
  Watch(folder_ / "file");
  for (int i = 0; i < 200; ++i) folder_.Write("file", std::to_string(i));
  loop_.Settle();
  EXPECT_EQ(calls_, 0) << "more changes may follow";
  Settle();
  EXPECT_EQ(calls_, 1);
  loop_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(calls_, 1);
}

TEST_F(PathWatchTest, MayBeCalledAtOnce) {
  std::atomic<int> at_once = 0;
  const PathWatch watch(
      loop_.loop(), folder_.path(), [&] { ++at_once; }, base::Duration::zero());
  Watch(folder_.path());
  folder_.Write("kubelet.sock", "");
  EXPECT_TRUE(loop_.AdvanceUntil(base::Duration::zero(), [&] { return at_once > 0; }));
  EXPECT_EQ(calls_, 0) << "within a burst";
  loop_.Stop();  // before the watch ends
}

TEST_F(PathWatchTest, ManyEventsLeaveTheLoopTimeForOtherWork) {
  std::atomic<int> at_once = 0;
  const PathWatch watch(
      loop_.loop(), folder_.path(), [&] { ++at_once; }, base::Duration::zero());
  for (int i = 0; i < 3000; ++i) folder_.Write("f" + std::to_string(i), "");
  loop_.Start();
  EXPECT_TRUE(loop_.AdvanceUntil(base::Duration::zero(), [&] { return at_once > 1; }))
      << "they are not all in one batch";
  loop_.Stop();  // before the watch ends
}

TEST_F(PathWatchTest, IsNotCalledForWhatHappensBesideTheWay) {
  fs::create_directory(folder_ / "a");
  Watch(folder_ / "a/b/file");
  folder_.Write("beside", "");
  folder_.Write("a/beside", "");
  Settle();
  EXPECT_EQ(calls_, 0);
  EXPECT_TRUE(Sees([&] { fs::create_directory(folder_ / "a/b"); }));
  Settle();
  EXPECT_EQ(calls_, 1);
}

/// The number of inotify instances that this process has open.
int Instances() {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (fs::read_symlink(entry.path(), error) == "anon_inode:inotify") ++count;
  }
  return count;
}

TEST_F(PathWatchTest, AllOfALoopShareOneInstanceAndEachSeesItsOwn) {
  std::atomic<int> beside = 0;
  {
    const int before = Instances();
    PathWatch other(loop_.loop(), folder_ / "other", [&] { ++beside; });
    PathWatch of_the_folder(loop_.loop(), folder_.path(), [] {});
    watch_ = std::make_unique<PathWatch>(loop_.loop(), folder_ / "a/file", [this] { ++calls_; });
    EXPECT_EQ(Instances(), before + 1);
    loop_.Start();
    fs::create_directory(folder_ / "a");
    Settle();
    const int so_far = beside;  // a folder on its way has changed
    EXPECT_TRUE(Sees([this] { folder_.Write("a/file", "1"); }));
    EXPECT_TRUE(Sees([this] { folder_.Write("a/file", "2"); }));
    Settle();
    EXPECT_EQ(beside, so_far) << "a change of a/file is not a change of other";
    loop_.Stop();
  }
}

TEST_F(PathWatchTest, OneThatEndsLeavesTheOthersTheirs) {
  auto other = std::make_unique<PathWatch>(loop_.loop(), folder_ / "file", [] {});
  Watch(folder_ / "file");
  loop_.Run([&] { other.reset(); });
  EXPECT_TRUE(Sees([this] { folder_.Write("file", ""); }));
}

TEST_F(PathWatchTest, MayBeDestroyedByItsOwnCallback) {
  loop_.Start();
  EXPECT_TRUE(Sees([&] {
    loop_.Run([&] {
      watch_ = std::make_unique<PathWatch>(loop_.loop(), folder_ / "file", [&] {
        watch_.reset();
        ++calls_;
      });
    });
    folder_.Write("file", "");
  }));
  folder_.Write("file", "again");
  Settle();
  EXPECT_EQ(calls_, 1);
}

/// From now on the kernel refuses this thread an inotify instance, as for a user who has too many.
void RefuseInotify() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_inotify_init1, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EMFILE),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

TEST_F(PathWatchTest, Issue29LooksEverySecondWhereThereIsNoInotifyAndTakesItWhenItComes) {
  std::thread([this] {
    RefuseInotify();
    watch_ = std::make_unique<PathWatch>(loop_.loop(), folder_ / "file", [this] { ++calls_; });
  }).join();
  loop_.Start();
  loop_.Advance(std::chrono::milliseconds(999));
  EXPECT_EQ(calls_, 0);
  loop_.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(calls_, 1);
  EXPECT_TRUE(Sees([&] { folder_.Write("file", ""); }));
}

}  // namespace
}  // namespace penstock::os
