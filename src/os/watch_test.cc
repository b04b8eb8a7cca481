// Watching paths, with a real inotify. Waits are for a call, with a deadline.
#include "os/watch.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "os/temporary_folder.h"

namespace penstock::os {
namespace {

namespace fs = std::filesystem;

class PathWatchTest : public testing::Test {
 protected:
  ~PathWatchTest() override { loop_.Stop(); }

  void Watch(const std::string& path) {
    watch_ = std::make_unique<PathWatch>(loop_, path, [this] { Called(); });
    loop_.Start();
  }

  void Called() {
    std::lock_guard lock(mutex_);
    ++calls_;
    called_.notify_all();
  }

  /// Runs the change and waits for a call after it.
  bool Sees(const std::function<void()>& change) {
    std::unique_lock lock(mutex_);
    const int before = calls_;
    lock.unlock();
    change();
    lock.lock();
    return called_.wait_for(lock, std::chrono::seconds(20), [&] { return calls_ > before; });
  }

  /// Waits until nothing is on the way: two debounce times on the loop itself.
  void Settle() {
    std::promise<void> settled;
    loop_.PostAfter(std::chrono::milliseconds(25), [&] { settled.set_value(); });
    settled.get_future().get();
  }

  TemporaryFolder folder_;
  std::mutex mutex_;
  std::condition_variable called_;
  int calls_ = 0;
  Loop loop_{"watch-test"};
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

TEST_F(PathWatchTest, MakesOneCallOfABurst) {
  Watch(folder_ / "file");
  EXPECT_TRUE(Sees([&] {
    loop_.Post([&] {
      for (int i = 0; i < 200; ++i) folder_.Write("file", std::to_string(i));
    });
  }));
  Settle();
  std::lock_guard lock(mutex_);
  EXPECT_EQ(calls_, 1);
}

TEST_F(PathWatchTest, IsNotCalledForWhatHappensBesideTheWay) {
  fs::create_directory(folder_ / "a");
  Watch(folder_ / "a/b/file");
  folder_.Write("beside", "");
  folder_.Write("a/beside", "");
  Settle();
  std::lock_guard lock(mutex_);
  EXPECT_EQ(calls_, 0);
}

/// Instances of inotify that this process has open.
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
    PathWatch other(loop_, folder_ / "other", [&] { ++beside; });
    PathWatch of_the_folder(loop_, folder_.path(), [] {});
    watch_ = std::make_unique<PathWatch>(loop_, folder_ / "a/file", [this] { Called(); });
    EXPECT_EQ(Instances(), before + 1);
    loop_.Start();
    fs::create_directory(folder_ / "a");
    Settle();
    const int so_far = beside;  // a folder of its way has changed
    EXPECT_TRUE(Sees([this] { folder_.Write("a/file", "1"); }));
    EXPECT_TRUE(Sees([this] { folder_.Write("a/file", "2"); }));
    Settle();
    EXPECT_EQ(beside, so_far) << "what happens at a/file is no news of other";
    loop_.Stop();
  }
}

TEST_F(PathWatchTest, OneThatEndsLeavesTheOthersTheirs) {
  auto other = std::make_unique<PathWatch>(loop_, folder_ / "file", [] {});
  Watch(folder_ / "file");
  std::promise<void> gone;
  loop_.Post([&] {
    other.reset();
    gone.set_value();
  });
  gone.get_future().get();
  EXPECT_TRUE(Sees([this] { folder_.Write("file", ""); }));
}

TEST_F(PathWatchTest, MayBeDestroyedByItsOwnCallback) {
  std::promise<void> done;
  loop_.Start();
  loop_.Post([&] {
    watch_ = std::make_unique<PathWatch>(loop_, folder_ / "file", [&] {
      watch_.reset();
      done.set_value();
    });
    folder_.Write("file", "");
  });
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  folder_.Write("file", "again");
  Settle();
}

TEST_F(PathWatchTest, LooksEverySecondWhereThereIsNoInotifyAndTakesItWhenItComes) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  watch_ = std::make_unique<PathWatch>(loop_, folder_ / "file", [this] { Called(); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(Sees([&] { loop_.Start(); }));
  EXPECT_TRUE(Sees([&] { folder_.Write("file", ""); }));
}

}  // namespace
}  // namespace penstock::os
