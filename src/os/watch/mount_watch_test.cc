// In a mount namespace of its own, in a child process.
#include "os/watch/mount_watch.h"

#include <chrono>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using namespace std::chrono_literals;

/// Mounts twice at once; 0: one call followed.
int WatchMounts(const std::string& folder) {
  if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) return 10;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 11;
  Loop loop("mounts");
  int calls = 0;
  auto watch = MountWatch::Start(
      loop, [&] { ++calls, loop.Stop(); }, 10ms);
  if (!watch.ok()) return 12;
  int wanted = 0;
  loop.Post([&] {
    // Twice within the time that is gathered.
    if (::mount("none", folder.c_str(), "tmpfs", 0, nullptr) != 0 ||
        ::mount("none", folder.c_str(), "tmpfs", 0, nullptr) != 0)
      wanted = -1;
    loop.PostAfter(60s, [&] { loop.Stop(); });
  });
  loop.Run();
  return calls == wanted + 1 ? 0 : 13;
}

TEST(MountWatch, CallsAfterAMountOnce) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(WatchMounts(folder.path()));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace penstock::os
