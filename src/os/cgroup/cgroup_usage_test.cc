#include "os/cgroup/cgroup_usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using namespace std::chrono_literals;

constexpr char kHybrid[] =
    "30 23 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro\n"
    "31 30 0:27 / /sys/fs/cgroup/unified rw,relatime shared:5 - cgroup2 cgroup2 rw\n"
    "32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "34 30 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";

TEST(CgroupUsage, FindsTheHierarchiesOfEitherVersion) {
  EXPECT_EQ(ParseCgroupMounts(kHybrid),
            (CgroupMounts{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu,cpuacct",
                          "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified", "/"}));
  EXPECT_EQ(ParseCgroupMounts("31 30 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            (CgroupMounts{"/sys/fs/cgroup", "", "", "/sys/fs/cgroup", "/"}));
  EXPECT_EQ(ParseCgroupMounts("31 30 0:27 / /my\\040groups rw - cgroup2 none rw\n").unified,
            "/my groups");
  EXPECT_EQ(ParseCgroupMounts("nonsense\n31 30 - \n"), CgroupMounts{});
}

TEST(CgroupUsage, OfTwoMountsInOnePlaceTheLaterIsToBeSeen) {
  const CgroupMounts mounts = ParseCgroupMounts(
      "31 30 0:27 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
      "45 31 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
      "46 30 0:27 /.. /elsewhere rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(mounts.own, "/sys/fs/cgroup");
  EXPECT_EQ(mounts.own_root, "/");
}

TEST(CgroupUsage, InAContainerTheMachinesOwnMountCounts) {
  const CgroupMounts mounts = ParseCgroupMounts(
      "31 30 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
      "45 30 0:27 /../../.. /host/cgroup rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(mounts.unified, "/host/cgroup");
  EXPECT_EQ(mounts.own, "/sys/fs/cgroup");
}

TEST(CgroupUsage, InAContainerWithoutANamespaceItsOwnMountsShowItsOwnGroupAlone) {
  const CgroupMounts mounts = ParseCgroupMounts(
      "543 541 0:30 /kubepods/pod1/c1 /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
      "553 551 0:30 / /host-cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n");
  EXPECT_EQ(mounts.cpu, "/host-cgroup/cpuacct");
}

std::string Whole(const std::string& path) { return path; }

TEST(CgroupUsage, AProcessIsInAGroupOfEachHierarchyThatCounts) {
  const CgroupMounts mounts = ParseCgroupMounts(kHybrid);
  EXPECT_EQ(
      FindCgroup("9:name=systemd:/user\n4:memory:/pods/a\n2:cpu,cpuacct:/pods/b\n0::/pods/c\n",
                 mounts, Whole),
      (CgroupPlace{"/sys/fs/cgroup/unified/pods/c", "/sys/fs/cgroup/cpu,cpuacct/pods/b",
                   "/sys/fs/cgroup/memory/pods/a"}));
  const auto first = [](const std::string& path) { return path == "/pods/a/b" ? "/pods" : ""; };
  EXPECT_EQ(FindCgroup("4:memory:/else\n0::/pods/a/b\n", mounts, first),
            (CgroupPlace{"/sys/fs/cgroup/unified/pods", "", ""}));
  EXPECT_TRUE(FindCgroup("", mounts, Whole).empty());
}

class CgroupFiles : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(CgroupFiles, APathThatLeadsOutOfOurNamespaceIsFoundAmongKubernetesGroups) {
  folder_.Write("kubepods.slice/kubepods-burstable.slice/pod1.slice/c1/cpu.stat", "usage_usec 5\n");
  const CgroupMounts mounts{.unified = folder_.path()};
  EXPECT_EQ(FindCgroup("0::/../../pod1.slice/c1\n", mounts, Whole).unified,
            folder_.path() + "/kubepods.slice/kubepods-burstable.slice/pod1.slice/c1");
  EXPECT_EQ(FindCgroup("0::/../../pod2.slice/c1\n", mounts, Whole).unified, "");
}

TEST_F(CgroupFiles, AGroupWhoseNameBeginsWithDotsIsBelowTheMount) {
  folder_.Write("unified/..x/cpu.stat", "usage_usec 5\n");
  folder_.Write("unifiedx/cpu.stat", "usage_usec 7\n");
  const CgroupMounts mounts{.unified = folder_ / "unified"};
  EXPECT_EQ(FindCgroup("0::/..x\n", mounts, Whole).unified, folder_ / "unified/..x");
}

TEST_F(CgroupFiles, ReadsTheUnifiedHierarchy) {
  folder_.Write("g/cpu.stat", "usage_usec 2500000\nuser_usec 2000000\n");
  folder_.Write("g/memory.current", "4096\n");
  folder_.Write("g/memory.peak", "8192\n");
  const CgroupUsage usage = ReadCgroupUsage({.unified = folder_.path() + "/g"}, "/proc");
  EXPECT_EQ(usage.cpu, 2500ms);
  EXPECT_EQ(usage.memory, base::Bytes{4096});
  EXPECT_EQ(usage.memory_peak, base::Bytes{8192});
}

TEST_F(CgroupFiles, ReadsTheSeparateHierarchies) {
  folder_.Write("cpu/cpuacct.usage", "1500000000\n");
  folder_.Write("memory/memory.usage_in_bytes", "100\n");
  folder_.Write("memory/memory.max_usage_in_bytes", "200\n");
  const CgroupUsage usage = ReadCgroupUsage(
      {.cpu = folder_.path() + "/cpu", .memory = folder_.path() + "/memory"}, "/proc");
  EXPECT_EQ(usage.cpu, 1500ms);
  EXPECT_EQ(usage.memory, base::Bytes{100});
  EXPECT_EQ(usage.memory_peak, base::Bytes{200});
}

TEST_F(CgroupFiles, WithoutAControllerTheMemoryIsThatOfTheProcesses) {
  folder_.Write("g/cpu.stat", "usage_usec 1\n");
  folder_.Write("g/cgroup.procs", "7\n");
  folder_.Write("g/below/cgroup.procs", "8\n0\n");
  folder_.Write("proc/7/statm", "1000 300 100 1 0 50 0\n");
  folder_.Write("proc/8/statm", "1000 10 10 1 0 50 0\n");
  const CgroupUsage usage =
      ReadCgroupUsage({.unified = folder_.path() + "/g"}, folder_.path() + "/proc");
  EXPECT_EQ(usage.memory, base::Bytes{200u * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))});
  EXPECT_EQ(usage.memory_peak, std::nullopt);
}

TEST_F(CgroupFiles, OfAGroupThatHasGoneNothingIsKnown) {
  const std::string gone = folder_.path() + "/gone";
  const CgroupUsage usage = ReadCgroupUsage({gone, gone, gone}, "/proc");
  EXPECT_FALSE(usage.cpu || usage.memory || usage.memory_peak);
  EXPECT_FALSE(ReadCgroupUsage({.unified = gone}, "/proc").memory);
}

}  // namespace
}  // namespace penstock::os
