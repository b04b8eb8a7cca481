// Tests with this process, and with a tree that looks like /proc.
#include "os/process/open_files.h"

#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/core/fd.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(OpenFiles, AreFoundInThisProcess) {
  const TemporaryFolder folder;
  const std::string path = folder / "nvidia0";
  EXPECT_THAT(ProcessesWith("/proc", {path}), IsEmpty());
  const UniqueFd file(::open(path.c_str(), O_CREAT | O_RDWR, 0600));
  ASSERT_TRUE(file);
  EXPECT_THAT(ProcessesWith("/proc", {path}), Contains(::getpid()));
}

class OpenFilesOfATree : public testing::Test {
 protected:
  void Open(int pid, int number, const std::string& target) const {
    const std::string fd = folder_ / std::to_string(pid) + "/fd";
    std::filesystem::create_directories(fd);
    std::filesystem::create_symlink(target, fd + "/" + std::to_string(number));
  }
  const TemporaryFolder folder_;
};

TEST_F(OpenFilesOfATree, AreComparedByTheEndOfTheirPath) {
  Open(30, 0, "/dev/nvidia0");
  Open(4, 1, "/host/dev/nvidia0");
  Open(5, 1, "/dev/nvidia00");
  Open(6, 1, "/dev/nvidia1");
  EXPECT_THAT(ProcessesWith(folder_.path(), {"/dev/nvidia0", "/dev/x"}), ElementsAre(4, 30));
}

TEST_F(OpenFilesOfATree, AProcessWithVeryManyFilesEndsTheSearch) {
  for (int i = 0; i < 20; ++i) Open(4, i, "/dev/null");
  Open(5, 0, "/dev/nvidia0");
  EXPECT_THAT(ProcessesWith(folder_.path(), {"/dev/nvidia0"}, 20), IsEmpty());
  EXPECT_THAT(ProcessesWith(folder_.path(), {"/dev/nvidia0"}, 21), ElementsAre(5));
}

}  // namespace
}  // namespace penstock::os
