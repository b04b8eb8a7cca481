// Creating a device needs a right that not every process has; what is refused does not.
#include "os/device_file.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "os/core/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kNullMajor = 1, kNullMinor = 3, kZeroMinor = 5;

class DeviceFileTest : public testing::Test {
 protected:
  DeviceFileTest() { std::filesystem::create_directory(caps_); }

  Status Put(std::uint32_t minor = kNullMinor) {
    return PutDeviceFile(caps_, "cap1", kNullMajor, minor, 0444);
  }
  bool MayCreateDevices() {
    const std::string file = folder_ / "device";
    return ::mknod(file.c_str(), S_IFCHR | 0600, makedev(kNullMajor, kNullMinor)) == 0;
  }
  struct stat About(const std::string& file) {
    struct stat about {};
    EXPECT_EQ(::lstat(file.c_str(), &about), 0) << file;
    return about;
  }

  TemporaryFolder folder_;
  const std::string caps_ = folder_ / "caps", file_ = caps_ + "/cap1";
};

TEST_F(DeviceFileTest, CreatesAndReplacesDevices) {
  if (!MayCreateDevices()) {
    EXPECT_FALSE(Put().ok());
    EXPECT_TRUE(std::filesystem::is_empty(caps_)) << "nothing is left behind";
    return;
  }
  ASSERT_TRUE(Put().ok());
  EXPECT_EQ(About(file_).st_rdev, makedev(kNullMajor, kNullMinor));
  const ino_t before = About(file_).st_ino;
  ASSERT_TRUE(Put().ok());
  EXPECT_EQ(About(file_).st_ino, before) << "it stays";
  ASSERT_EQ(::mknod((caps_ + "/.cap1.new").c_str(), S_IFREG | 0600, 0), 0);
  ASSERT_TRUE(Put(kZeroMinor).ok());
  EXPECT_EQ(About(file_).st_rdev, makedev(kNullMajor, kZeroMinor));
  EXPECT_EQ(About(file_).st_mode, static_cast<mode_t>(S_IFCHR | 0444));
  EXPECT_FALSE(std::filesystem::exists(caps_ + "/.cap1.new"));
}

TEST_F(DeviceFileTest, RefusesWhatIsNoDevice) {
  folder_.Write("caps/cap1", "a file");
  EXPECT_THAT(Put().error().message(), HasSubstr("is not a device file"));
  EXPECT_EQ(std::filesystem::file_size(file_), 6u);
  std::filesystem::remove(file_);
  std::filesystem::create_symlink("/dev/null", file_);  // also to a device
  EXPECT_EQ(Put(kZeroMinor).error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::is_symlink(file_));
  std::filesystem::remove(file_);
  std::filesystem::create_directory(file_);
  EXPECT_EQ(Put().error().code(), Code::kFailedPrecondition);
}

TEST_F(DeviceFileTest, RefusesFoldersThatOthersControl) {
  std::filesystem::create_directory_symlink(caps_, folder_ / "link");
  EXPECT_FALSE(PutDeviceFile(folder_ / "link", "cap1", kNullMajor, kNullMinor, 0444).ok());
  ASSERT_EQ(::chmod(caps_.c_str(), 0777), 0);
  EXPECT_THAT(Put().error().message(), HasSubstr("others can write in this folder"));
  EXPECT_TRUE(std::filesystem::is_empty(caps_));
}

TEST(DeviceFile, AFolderHasThemBelowDevOrIsADev) {
  const TemporaryFolder folder;
  folder.Write("lib/firmware/acme", "");
  EXPECT_FALSE(HasDeviceFiles(folder.path()));
  folder.Write("root/dev/acmectl", "");
  EXPECT_TRUE(HasDeviceFiles(folder.path() + "/root"));
  folder.Write("dev-itself/null", "");
  EXPECT_TRUE(HasDeviceFiles(folder.path() + "/dev-itself"));
}

}  // namespace
}  // namespace penstock::os
