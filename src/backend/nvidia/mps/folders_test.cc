// Tests the folders of a set on disk; tests/integration/mps_test.cc tests the mounts.
#include "backend/nvidia/mps/folders.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::backend::nvidia::mps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

constexpr char kSet[] = "nvidia.com/gpu";

class FoldersTest : public testing::Test {
 protected:
  static unsigned ModeOf(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }

  const os::TemporaryFolder folder_;
  const std::string root_ = folder_ / "mps";
  const Folders folders_ = FoldersOf(root_, kSet);
};

TEST_F(FoldersTest, AreOpenToProcessesOfAnyUserWhateverTheUmaskSays) {
  const mode_t before = ::umask(0077);
  const auto made = MakeFolders(folders_);
  ::umask(before);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(ModeOf(folders_.all), 0755u);
  EXPECT_EQ(ModeOf(folders_.daemon), 0711u);
  EXPECT_EQ(ModeOf(folders_.pipe), 0755u);
  EXPECT_EQ(ModeOf(folders_.log), 0755u);
  EXPECT_EQ(ModeOf(folders_.shm), 01777u);
}

TEST_F(FoldersTest, WhatADeadDaemonLeftIsClearedAwayAndItsLogsStay) {
  ASSERT_TRUE(MakeFolders(folders_).ok());
  folder_.Write("mps/nvidia.com-gpu/daemon/control_lock", "");
  folder_.Write("mps/nvidia.com-gpu/pipe/control", "");
  folder_.Write("mps/nvidia.com-gpu/shm/cuda/a", "");
  folder_.Write("mps/nvidia.com-gpu/log/control.log", "why it died");
  ASSERT_TRUE(MakeFolders(folders_).ok());
  EXPECT_TRUE(fs::is_empty(folders_.daemon));
  EXPECT_TRUE(fs::is_empty(folders_.pipe));
  EXPECT_TRUE(fs::is_empty(folders_.shm));
  EXPECT_EQ(*os::ReadFile(folders_.log + "/control.log"), "why it died");
}

TEST_F(FoldersTest, TheSocketForClientsIsInTheirFolderWhateverWasThere) {
  ASSERT_TRUE(MakeFolders(folders_).ok());
  EXPECT_FALSE(ShareSocket(folders_).ok()) << "there is no socket yet";
  folder_.Write("mps/nvidia.com-gpu/daemon/control", "");
  EXPECT_THAT(ShareSocket(folders_).error().message(), HasSubstr("is not a socket"));
  fs::remove(folders_.daemon + "/control");
  for (const char* name : {"/control", "/control_privileged"})
    ASSERT_EQ(::mknod((folders_.daemon + name).c_str(), S_IFSOCK | 0666, 0), 0);
  folder_.Write("elsewhere", "theirs");
  folder_.Link("mps/nvidia.com-gpu/pipe/control", folder_ / "elsewhere");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(ShareSocket(folders_).ok());
    struct stat own {
    }, shared{};
    ASSERT_EQ(::lstat((folders_.daemon + "/control").c_str(), &own), 0);
    ASSERT_EQ(::lstat((folders_.pipe + "/control").c_str(), &shared), 0);
    EXPECT_EQ(own.st_ino, shared.st_ino);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folders_.pipe), fs::directory_iterator()), 1)
      << "nothing else may be removed";
  EXPECT_EQ(*os::ReadFile(folder_ / "elsewhere"), "theirs");
}

TEST_F(FoldersTest, WhereNoneCanBeMadeTheChartsValueIsNamed) {
  folder_.Write("mps", "a file");
  const auto made = MakeFolders(folders_);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message(), HasSubstr("penstock.mps.enabled"));
  EXPECT_THAT(made.error().message(), HasSubstr(root_));
}

TEST_F(FoldersTest, ANoteIsReadBackFromTheFolderOfItsOwnSetAlone) {
  const ServerSpec spec{
      .set = kSet, .percentage = 25, .gpus = {{"GPU-1", 4, base::Mebibytes(1024)}}};
  EXPECT_THAT(ReadNotes(root_), IsEmpty());
  ASSERT_TRUE(MakeFolders(folders_).ok());
  ASSERT_TRUE(WriteNote(folders_, spec).ok());
  const Folders other = FoldersOf(root_, "nvidia.com/other"),
                damaged = FoldersOf(root_, "nvidia.com/damaged");
  ASSERT_TRUE(MakeFolders(other).ok());
  ASSERT_TRUE(WriteNote(other, spec).ok()) << "as in a copied folder";
  folder_.Write("mps/nvidia.com-damaged/started", "{");
  EXPECT_THAT(ReadNotes(root_), ElementsAre(spec));
  RemoveFolders(folders_);
  EXPECT_THAT(ReadNotes(root_), IsEmpty());
  EXPECT_FALSE(os::Exists(folders_.all));
  EXPECT_TRUE(os::Exists(other.all));
}

TEST_F(FoldersTest, OnlyALogThatGrewTooLargeBeginsAgain) {
  ASSERT_TRUE(MakeFolders(folders_).ok());
  const std::string large((4u << 20) + 1, 'x');
  folder_.Write("mps/nvidia.com-gpu/log/control.log", large);
  folder_.Write("mps/nvidia.com-gpu/log/elsewhere", large);
  folder_.Link("mps/nvidia.com-gpu/log/server.log", "elsewhere");
  TrimLogs(folders_);
  EXPECT_EQ(fs::file_size(folders_.log + "/control.log"), 0u);
  EXPECT_EQ(fs::file_size(folders_.log + "/elsewhere"), large.size())
      << "a link is not followed: users can write there";
  folder_.Write("mps/nvidia.com-gpu/log/control.log", large.substr(1));
  TrimLogs(folders_);
  EXPECT_EQ(fs::file_size(folders_.log + "/control.log"), large.size() - 1);
}

}  // namespace
}  // namespace penstock::backend::nvidia::mps
