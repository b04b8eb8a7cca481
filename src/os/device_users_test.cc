// Tests with this process, and with a tree that looks like /proc.
#include "os/process/device_users.h"

#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/core/fd.h"
#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class DeviceUsers : public testing::Test {
 protected:
  DeviceUsers() { std::filesystem::create_directories(folder_ / "dev"); }
  void Open(int pid, int number, const std::string& target) const {
    const std::string fd = folder_ / "proc/" + std::to_string(pid) + "/fd";
    std::filesystem::create_directories(fd);
    std::filesystem::create_symlink(target, fd + "/" + std::to_string(number));
  }
  std::vector<DeviceUser> Find() const {
    return FindDeviceUsers(folder_ / "proc", {"acme", "copy"});
  }
  const TemporaryFolder folder_;
};

TEST_F(DeviceUsers, AreThoseWithAnOpenFile) {
  const std::string file = folder_ / "dev/acme-test0";
  const UniqueFd open(::open(file.c_str(), O_CREAT | O_RDWR, 0600));
  ASSERT_TRUE(open);
  EXPECT_THAT(FindDeviceUsers("/proc", {"acme-test"}), Contains(DeviceUser{::getpid(), file}));
}

TEST_F(DeviceUsers, AreThoseWithAMappedFile) {
  const std::string file = folder_ / "dev/acme-test1";
  UniqueFd open(::open(file.c_str(), O_CREAT | O_RDWR, 0600));
  ASSERT_EQ(::ftruncate(open.get(), 4096), 0);
  void* mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, open.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  open.Reset();
  EXPECT_THAT(FindDeviceUsers("/proc", {"acme-test"}), Contains(DeviceUser{::getpid(), file}));
  ::munmap(mapped, 4096);
  EXPECT_THAT(FindDeviceUsers("/proc", {"acme-test"}), Not(Contains(DeviceUser{::getpid(), file})));
}

TEST_F(DeviceUsers, AreNotThoseWithOtherFiles) {
  Open(3, 0, "/dev/null");
  Open(4, 0, "/home/acme0");
  Open(5, 0, "/dev/shm/acme0");
  Open(6, 0, "/home/dev/x/acme0");
  EXPECT_THAT(Find(), IsEmpty());
  Open(20, 0, folder_ / "dev/acme-caps/cap1");
  Open(7, 0, "/elsewhere/dev/copy (deleted)");
  EXPECT_THAT(Find(), ElementsAre(DeviceUser{7, "/elsewhere/dev/copy (deleted)"},
                                  DeviceUser{20, folder_ / "dev/acme-caps/cap1"}));
}

// Any user can make plain files with such names, many, so that a real user is not seen among them.
TEST_F(DeviceUsers, PlainFilesHideNoDevice) {
  for (int pid = 100; pid < 200; ++pid) Open(pid, 0, "/tmp/dev/acme0");
  EXPECT_THAT(Find().size(), 100u);
  const std::string device = folder_ / "dev/acme0";
  std::filesystem::create_symlink("/dev/null", device);  // a character device of this name
  Open(300, 0, "/tmp/dev/acme0");
  Open(300, 1, device);
  EXPECT_THAT(Find(), ElementsAre(DeviceUser{300, device}));
}

// Several drivers have files in one folder, as in /dev/dri.
TEST_F(DeviceUsers, AreNotThoseWithFilesOfOtherDrivers) {
  const std::string ours = folder_ / "dev/acme1", theirs = folder_ / "dev/acme0";
  std::filesystem::create_symlink("/dev/null", theirs);
  std::filesystem::create_symlink("/dev/zero", ours);
  const auto find = [this] {
    return FindDeviceUsers(
        folder_ / "proc", {"acme"}, [](std::uint32_t major, std::uint32_t minor) {
          return major == 1 && minor == 5;  // Documentation/admin-guide/devices.txt: /dev/zero
        });
  };
  Open(3, 0, theirs);
  EXPECT_THAT(find(), IsEmpty());
  Open(4, 0, "/tmp/dev/acme0");
  EXPECT_THAT(find(), ElementsAre(DeviceUser{4, "/tmp/dev/acme0"}));
  Open(5, 0, theirs);
  Open(5, 1, ours);
  EXPECT_THAT(find(), ElementsAre(DeviceUser{5, ours})) << "of its files, the one that counts";
}

}  // namespace
}  // namespace penstock::os
