#include "os/mounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kMountinfo[] =
    "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
    "30 22 0:25 / /run rw - tmpfs tmpfs rw\n"
    "40 30 0:40 / /run/acme/driver rw shared:9 - overlay overlay rw\n"
    "41 40 0:41 / /run/acme/driver/proc rw - proc proc rw\n"
    "42 40 0:42 / /run/acme/driver/a\\040b rw - tmpfs tmpfs rw\n"
    "43 42 0:43 / /run/acme/driver/a\\040b/c rw - tmpfs tmpfs rw\n"
    "44 40 0:44 / /run/acme/driver rw - overlay overlay rw\n"
    "45 30 0:45 / /run/acme/driver2 rw - tmpfs tmpfs rw\n";

TEST(Mounts, AreListedSoThatEachCanBeUnmounted) {
  EXPECT_THAT(MountsBelow(kMountinfo, "/run/acme/driver"),
              ElementsAre("/run/acme/driver/a b/c", "/run/acme/driver/proc", "/run/acme/driver/a b",
                          "/run/acme/driver", "/run/acme/driver"));
  EXPECT_THAT(MountsBelow(kMountinfo, "/run/acme/driv"), IsEmpty());
  EXPECT_THAT(MountsBelow("\n1 2 3\n", "/"), IsEmpty());
}

TEST(Mounts, AFolderWithoutAnyIsLeftAlone) {
  const TemporaryFolder folder;
  EXPECT_FALSE(IsMountPoint(folder.path()));
  const auto unmounted = UnmountBelow(folder.path());
  ASSERT_TRUE(unmounted.ok());
  EXPECT_EQ(unmounted->mounts, 0u);
  EXPECT_TRUE(IsMountPoint("/proc"));
}

}  // namespace
}  // namespace penstock::os
