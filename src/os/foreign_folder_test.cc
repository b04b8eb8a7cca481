#include "os/foreign_folder.h"

#include <array>
#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/core/fd.h"
#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ForeignLimits kSmall{.entries = 20, .files = 4, .bytes = 8};

bool IsShort(std::string_view name) { return name.size() <= 2; }

class ForeignFolderTest : public testing::Test {
 protected:
  ForeignFolder Read() const {
    auto read = ReadForeignFolder(folder_.path(), kSmall, IsShort);
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message());
    return read.ok() ? *std::move(read) : ForeignFolder{};
  }

  /// Each file as "NAME: TEXT" or "NAME! why it was not read".
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const ForeignFile& file : Read().files)
      files.push_back(file.name +
                      (file.text.ok() ? ": " + *file.text : "! " + file.text.error().message()));
    return files;
  }

  TemporaryFolder folder_;
};

TEST_F(ForeignFolderTest, HasTheWantedFilesShorterNamesFirst) {
  folder_.Write("10", "ten");
  folder_.Write("2", "two");
  folder_.Write("1", "");
  folder_.Write("README", "");
  EXPECT_THAT(Files(), ElementsAre("1: ", "2: two", "10: ten"));
}

TEST_F(ForeignFolderTest, ReadsNothingThroughALink) {
  TemporaryFolder other;
  other.Write("secret", "secret");
  folder_.Link("1", other / "secret");
  folder_.Link("2", "nowhere");
  fs::create_hard_link(other / "secret", folder_ / "3");
  EXPECT_THAT(Files(), ElementsAre("1! is a symbolic link", "2! is a symbolic link",
                                   "3! has further names (hard links)"));
}

TEST_F(ForeignFolderTest, NeverWaitsForWhatIsNoFile) {
  ASSERT_EQ(::mkfifo((folder_ / "1").c_str(), 0600), 0);
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  (folder_ / "2").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  fs::create_directory(folder_ / "3");
  EXPECT_THAT(Files(), ElementsAre("1! is not a regular file", "2! is not a regular file",
                                   "3! is a directory"));
}

// The owner of two folders can move a file of another user from one to the other.
TEST_F(ForeignFolderTest, ReadsNoPrivateFileOfAnotherUserThanTheFolders) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs files of two users";
  constexpr uid_t kOwner = 4711;
  folder_.Write("1", "secret");
  folder_.Write("2", "public");
  folder_.Write("3", "own");
  ASSERT_EQ(::chown(folder_.path().c_str(), kOwner, kOwner), 0);
  ASSERT_EQ(::chown((folder_ / "3").c_str(), kOwner, kOwner), 0);
  ASSERT_EQ(::chmod((folder_ / "1").c_str(), 0640), 0);
  ASSERT_EQ(::chmod((folder_ / "2").c_str(), 0644), 0);
  ASSERT_EQ(::chmod((folder_ / "3").c_str(), 0600), 0);
  EXPECT_THAT(Files(), ElementsAre("1! is private to another user than the directory's owner",
                                   "2: public", "3: own"));
}

// Whoever holds a lease on a file is asked to give it up, and has 45 seconds for that.
TEST_F(ForeignFolderTest, NeverWaitsForTheHolderOfALease) {
  folder_.Write("1", "x");
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    ::signal(SIGIO, SIG_IGN);
    const int file = ::open((folder_ / "1").c_str(), O_RDWR | O_CLOEXEC);
    const char leased = ::fcntl(file, F_SETLEASE, F_WRLCK) == 0 ? 'y' : 'n';
    (void)!::write(ready[1], &leased, 1);
    for (;;) ::pause();
  }
  char leased = 0;
  EXPECT_EQ(::read(ready[0], &leased, 1), 1);
  EXPECT_EQ(leased, 'y');
  EXPECT_THAT(Files(), ElementsAre(HasSubstr("1! open: ")));
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  for (const int end : ready) ::close(end);
}

TEST_F(ForeignFolderTest, ReadsNoMoreThanItMay) {
  folder_.Write("1", "12345678");
  folder_.Write("2", "123456789");
  const ForeignFolder read = Read();
  ASSERT_EQ(read.files.size(), 2u);
  EXPECT_FALSE(read.files[0].cut);
  EXPECT_TRUE(read.files[1].cut);
  EXPECT_EQ(*read.files[1].text, "12345678");
  fs::resize_file(folder_ / "1", 1ull << 40);  // without a block on the disk
  EXPECT_THAT(Files(), ElementsAre("1: 12345678", "2: 12345678"));
}

TEST_F(ForeignFolderTest, HasNoMoreFilesThanItMay) {
  for (int i = 1; i <= 6; ++i) folder_.Write(std::to_string(7 - i), "");
  const ForeignFolder read = Read();
  EXPECT_THAT(Files(), ElementsAre("1: ", "2: ", "3: ", "4: "));
  EXPECT_EQ(read.more_files, 2u);
  EXPECT_FALSE(read.more_entries);
  for (int i = 0; i < 14; ++i) folder_.Write("other" + std::to_string(i), "");
  EXPECT_FALSE(Read().more_entries);
  folder_.Write("another", "");
  EXPECT_TRUE(Read().more_entries);
}

TEST_F(ForeignFolderTest, NamesTheFileThatThisUserMayNotRead) {
  folder_.Write("1", "x");
  ASSERT_EQ(::chmod((folder_ / "1").c_str(), 0), 0);
  if (::geteuid() == 0) {
    EXPECT_THAT(Files(), ElementsAre("1: x")) << "root may";
  } else {
    EXPECT_THAT(Files(), ElementsAre(HasSubstr("1! open: Permission denied")));
  }
}

TEST_F(ForeignFolderTest, MustNotBeALinkItselfButTheWayToItMayHaveOne) {
  folder_.Write("way/jobs/1", "x");
  folder_.Link("jobs", "way/jobs");
  folder_.Link("short", "way");
  for (const char* path : {"jobs", "jobs/", "jobs//"}) {
    const auto linked = ReadForeignFolder(folder_ / path, kSmall, IsShort);
    ASSERT_FALSE(linked.ok()) << path;
    EXPECT_THAT(linked.error().message(), HasSubstr("is a symbolic link; name the directory"));
  }
  const auto on_the_way = ReadForeignFolder(folder_ / "short/jobs/", kSmall, IsShort);
  ASSERT_TRUE(on_the_way.ok()) << on_the_way.error().message();
  EXPECT_EQ(on_the_way->files.size(), 1u);
}

TEST_F(ForeignFolderTest, MayBeMissingOrNoFolder) {
  const auto missing = ReadForeignFolder(folder_ / "missing", kSmall, IsShort);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), base::Code::kNotFound);
  folder_.Write("1", "");
  EXPECT_FALSE(ReadForeignFolder(folder_ / "1", kSmall, IsShort).ok());
  EXPECT_THAT(Read().files, testing::SizeIs(1));
}

}  // namespace
}  // namespace penstock::os
