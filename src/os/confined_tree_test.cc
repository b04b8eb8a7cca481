// Tests a confined tree against escapes, obstacles, and concurrent changes.
#include "os/core/confined_tree.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/core/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

namespace fs = std::filesystem;

// A container's root, and next to it files that must not be touched.
class ConfinedTreeTest : public testing::Test {
 protected:
  ConfinedTreeTest() {
    folder_.Write("outside/secret", "the host's");
    fs::create_directories(folder_ / "root");
  }
  ~ConfinedTreeTest() override {
    EXPECT_EQ(*ReadFile(folder_ / "outside/secret"), "the host's");
    EXPECT_THAT(*ListDirectory(folder_ / "outside"), ElementsAre("secret"));
  }

  ConfinedTree Tree() { return *ConfinedTree::Open(folder_ / "root"); }
  std::vector<std::string> Names(const std::string& path) {
    return *ListDirectory(folder_ / ("root/" + path));
  }
  std::string Outside() { return folder_ / "outside"; }

  TemporaryFolder folder_;
};

TEST_F(ConfinedTreeTest, RefusesTheMachinesOwnRoot) {
  EXPECT_EQ(ConfinedTree::Open("/").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(ConfinedTree::Open("/proc/self/root").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(ConfinedTree::Open(folder_ / "none").error().code(), Code::kNotFound);
}

TEST_F(ConfinedTreeTest, TakesLinksForTheRootsOwn) {
  folder_.Write("root/inside/secret", "the image's");
  folder_.Link("root/absolute", "/inside");
  folder_.Link("root/up", "../../../../inside");
  EXPECT_EQ(*Tree().Read("/absolute/secret"), "the image's");
  EXPECT_EQ(*Tree().Read("up/secret"), "the image's");
  folder_.Link("root/out", Outside());
  EXPECT_EQ(Tree().Read("out/secret").error().code(), Code::kNotFound);
}

TEST_F(ConfinedTreeTest, FollowsNoLinkOfProc) {
  const UniqueFd proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto tree = ConfinedTree::Open("/proc");
  ASSERT_TRUE(tree.ok());
  EXPECT_FALSE(tree->Read("self/root/etc/passwd").ok());
  EXPECT_FALSE(tree->Exists("self/cwd"));
  EXPECT_FALSE(tree->Exists("self/fd/" + std::to_string(proc.get())));
  EXPECT_TRUE(tree->Exists("self/status"));
}

TEST_F(ConfinedTreeTest, ReadsRegularFilesOnly) {
  ASSERT_EQ(::mkfifo((folder_ / "root/fifo").c_str(), 0644), 0);
  fs::create_directories(folder_ / "root/folder");
  for (const std::string name : {"fifo", "folder"})
    EXPECT_EQ(Tree().Read(name).error().code(), Code::kInvalidArgument) << name;
  const UniqueFd file(
      ::open((folder_ / "root/huge").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::ftruncate(file.get(), off_t{1} << 40), 0);
  EXPECT_EQ(Tree().Read("huge", 1000).error().code(), Code::kResourceExhausted);
}

TEST_F(ConfinedTreeTest, BoundsHowMuchItLists) {
  for (const std::string name : {"a", "b", "c"}) folder_.Write("root/" + name, "");
  EXPECT_EQ(Tree().List("/", 3)->size(), 3u);
  EXPECT_EQ(Tree().List("/", 2).error().code(), Code::kResourceExhausted);
}

TEST_F(ConfinedTreeTest, WritesFilesWithTheDirectoriesOnTheWayAndLeavesNothingBeside) {
  ASSERT_TRUE(Tree().Write("/etc/deep/file", "one", 0600).ok());
  ASSERT_TRUE(Tree().Write("etc//deep/./file", "two").ok());
  EXPECT_EQ(*Tree().Read("/etc/deep/file"), "two");
  EXPECT_THAT(Names("etc/deep"), ElementsAre("file"));
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "root/etc/deep/file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
}

TEST_F(ConfinedTreeTest, ReplacesALinkInsteadOfWritingThroughIt) {
  folder_.Link("root/etc/file", Outside() + "/secret");
  folder_.Link("root/etc/inner", "/etc/other");
  ASSERT_TRUE(Tree().Write("/etc/file", "ours").ok());
  ASSERT_TRUE(Tree().Write("/etc/inner", "ours").ok());
  EXPECT_FALSE(fs::is_symlink(folder_ / "root/etc/file"));
  EXPECT_THAT(Names("etc"), ElementsAre("file", "inner"));
}

TEST_F(ConfinedTreeTest, ReplacesAHardLinkAndAFifoWithoutOpeningThem) {
  fs::create_directories(folder_ / "root/etc");
  fs::create_hard_link(folder_ / "outside/secret", folder_ / "root/etc/hard");
  ASSERT_EQ(::mkfifo((folder_ / "root/etc/fifo").c_str(), 0644), 0);
  EXPECT_TRUE(Tree().Write("/etc/hard", "ours").ok());
  EXPECT_TRUE(Tree().Write("/etc/fifo", "ours").ok());
  EXPECT_EQ(*Tree().Read("/etc/fifo"), "ours");
}

TEST_F(ConfinedTreeTest, SaysWhereADirectoryStandsInTheWay) {
  fs::create_directories(folder_ / "root/etc/file");
  const auto written = Tree().Write("/etc/file", "ours");
  EXPECT_EQ(written.error().code(), Code::kAlreadyExists);
  EXPECT_THAT(Names("etc"), ElementsAre("file"));
}

TEST_F(ConfinedTreeTest, MakesDirectoriesInsideWhateverLinksSay) {
  folder_.Link("root/var", "/data");
  fs::create_directories(folder_ / "root/data");
  folder_.Link("root/out", "../outside");
  ASSERT_TRUE(Tree().Write("/var/a/b/file", "").ok());
  EXPECT_THAT(Names("data/a/b"), ElementsAre("file"));
  // In the root, "../outside" is "/outside", which does not exist there.
  EXPECT_EQ(Tree().Write("/out/file", "").error().code(), Code::kFailedPrecondition);
  fs::create_directories(folder_ / "root/outside");
  EXPECT_TRUE(Tree().Write("/out/file", "").ok());
  EXPECT_THAT(Names("outside"), ElementsAre("file"));
}

TEST_F(ConfinedTreeTest, CreatesOnlyWhereNothingStands) {
  EXPECT_TRUE(Tree().Create("/etc/file", "first").ok());
  EXPECT_EQ(Tree().Create("/etc/file", "second").error().code(), Code::kAlreadyExists);
  folder_.Link("root/etc/link", Outside() + "/created");
  EXPECT_EQ(Tree().Create("/etc/link", "third").error().code(), Code::kAlreadyExists);
  EXPECT_EQ(*Tree().Read("/etc/file"), "first");
  EXPECT_THAT(Names("etc"), ElementsAre("file", "link"));
}

TEST_F(ConfinedTreeTest, LinksReplaceWhatStandsThereAndSayTheSameOnce) {
  folder_.Write("root/lib/libcuda.so.1", "a file");
  ASSERT_TRUE(Tree().WriteLink("libcuda.so.550", "/lib/libcuda.so.1").ok());
  EXPECT_EQ(*Tree().ReadLink("/lib/libcuda.so.1"), "libcuda.so.550");
  struct stat before {
  }, after{};
  ASSERT_EQ(::lstat((folder_ / "root/lib/libcuda.so.1").c_str(), &before), 0);
  ASSERT_TRUE(Tree().WriteLink("libcuda.so.550", "/lib/libcuda.so.1").ok());
  ASSERT_EQ(::lstat((folder_ / "root/lib/libcuda.so.1").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  ASSERT_TRUE(Tree().WriteLink("libcuda.so.5", "/lib/libcuda.so.1").ok());
  EXPECT_EQ(*Tree().ReadLink("/lib/libcuda.so.1"), "libcuda.so.5");
  EXPECT_THAT(Names("lib"), ElementsAre("libcuda.so.1"));
}

TEST_F(ConfinedTreeTest, RemovesALinkAndNotWhatItLeadsTo) {
  folder_.Link("root/link", Outside() + "/secret");
  EXPECT_TRUE(Tree().Remove("/link").ok());
  EXPECT_TRUE(Tree().Remove("/link").ok());
  EXPECT_TRUE(Tree().Remove("/none/at/all").ok());
  EXPECT_THAT(Names(""), IsEmpty());
}

TEST_F(ConfinedTreeTest, ChangesModesInside) {
  folder_.Write("root/dev/dri/card0", "");
  folder_.Link("root/dev/out", Outside() + "/secret");
  EXPECT_TRUE(Tree().ChangeMode("/dev/dri", 0711).ok());
  EXPECT_EQ(fs::status(folder_ / "root/dev/dri").permissions(), fs::perms{0711});
  EXPECT_EQ(Tree().ChangeMode("/dev/out", 0777).error().code(), Code::kNotFound);
}

TEST_F(ConfinedTreeTest, ThereIsNoFileNamedByTheRootItself) {
  for (const std::string path : {"", "/", "..", "a/.."})
    EXPECT_EQ(Tree().Write(path, "").error().code(), Code::kInvalidArgument) << path;
  EXPECT_TRUE(Tree().Write("../../outside/secret", "inside").ok());
  EXPECT_THAT(Names("outside"), ElementsAre("secret"));
}

TEST_F(ConfinedTreeTest, WhoSwapsADirectoryForALinkGetsNothingOutside) {
  fs::create_directories(folder_ / "root/etc");
  fs::create_directories(folder_ / "root/away");
  fs::create_symlink("../outside", folder_ / "root/link");
  fs::create_symlink(Outside(), folder_ / "root/absolute");
  std::atomic<bool> done = false;
  std::thread attacker([&] {
    const std::string root = folder_ / "root/";
    while (!done) {
      for (const char* link : {"link", "absolute"}) {
        ::renameat2(AT_FDCWD, (root + "etc").c_str(), AT_FDCWD, (root + link).c_str(),
                    RENAME_EXCHANGE);
        ::renameat2(AT_FDCWD, (root + "etc").c_str(), AT_FDCWD, (root + link).c_str(),
                    RENAME_EXCHANGE);
      }
      ::rename((root + "etc").c_str(), (root + "away/etc").c_str());
      ::rename((root + "away/etc").c_str(), (root + "etc").c_str());
    }
  });
  int written = 0;
  for (int i = 0; i < 3000; ++i) {
    written += Tree().Write("/etc/ld.so.cache", "ours").ok() ? 1 : 0;
    (void)Tree().WriteLink("target", "/etc/x/link").ok();
    (void)Tree().Create("/etc/created" + std::to_string(i % 10), "").ok();
    (void)Tree().ChangeMode("/etc/secret", 0777).ok();
    EXPECT_NE(Tree().Read("/etc/secret").value_or(""), "the host's");
  }
  done = true;
  attacker.join();
  EXPECT_GT(written, 0);
  EXPECT_NE(fs::status(folder_ / "outside/secret").permissions(), fs::perms{0777});
}

TEST(CleanPath, WorksOnTheText) {
  EXPECT_EQ(CleanPath(""), "/");
  EXPECT_EQ(CleanPath("a//./x/../b/"), "/a/b");
  EXPECT_EQ(CleanPath("/../../a"), "/a");
}

}  // namespace
}  // namespace penstock::os
