// Tests machine facts with a tree of files; the processor's with the machine that runs the test.
#include "os/machine_facts.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

MachinePaths Below(const TemporaryFolder& folder) {
  return {.sysfs_root = folder / "sys",
          .proc_root = folder / "proc",
          .os_release = folder / "os-release",
          .product_file = folder / "sys/class/dmi/id/product_name"};
}

void WritePci(const TemporaryFolder& folder, const std::string& address, const std::string& id,
              const std::string& class_code, const std::string& config) {
  const std::string path = "sys/bus/pci/devices/" + address + "/";
  folder.Write(path + "vendor", "0x" + id.substr(0, 4) + "\n");
  folder.Write(path + "device", "0x" + id.substr(5) + "\n");
  folder.Write(path + "class", class_code + "\n");
  folder.Write(path + "config", config);
}

TEST(MachineFacts, AreReadFromTheMachinesFiles) {
  const TemporaryFolder folder;
  folder.Write("sys/class/dmi/id/product_name", "DGXA100 920-23687-2531-001\n");
  folder.Write("os-release",
               "# a remark=1\nPRETTY_NAME=\"Ubuntu 22.04.4 "
               "LTS\"\nID=ubuntu\nVERSION_ID=\"22.04\"\nVERSION_CODENAME='jammy'\nodd\n");
  for (const char* node : {"node0", "node1", "node12"})
    folder.Write(std::string("sys/devices/system/node/") + node + "/cpulist", "0\n");
  folder.Write("sys/devices/system/node/online", "0-1,12\n");
  folder.Write("sys/bus/cpu/devices/cpu0/topology/thread_siblings_list", "0,64\n");
  WritePci(folder, "0000:07:00.0", "10de:20b0", "0x030200", std::string(4096, 'x'));
  WritePci(folder, "0000:00:00.0", "8086:1237", "0x060000", std::string(256, 'x'));

  const MachineFacts facts = ReadMachineFacts(Below(folder));
  EXPECT_EQ(facts.product, "DGXA100 920-23687-2531-001");
  EXPECT_EQ(facts.os_id, "ubuntu");
  EXPECT_EQ(facts.os_version_id, "22.04");
  EXPECT_EQ(facts.os_codename, "jammy");
  EXPECT_EQ(facts.numa_nodes, 3);
  EXPECT_EQ(facts.multithreading, true);
  ASSERT_THAT(facts.pci, SizeIs(2));
  EXPECT_EQ(facts.pci[0].address, "0000:00:00.0");
  EXPECT_EQ(facts.pci[0].config, "") << "read for accelerators only";
  EXPECT_EQ(facts.pci[1].vendor, 0x10de);
  EXPECT_EQ(facts.pci[1].device, 0x20b0);
  EXPECT_EQ(facts.pci[1].class_code, 0x030200u);
  EXPECT_EQ(facts.pci[1].config, std::string(256, 'x'));
  struct utsname name {};
  ASSERT_EQ(::uname(&name), 0);
  EXPECT_EQ(facts.kernel, name.release);
}

TEST(MachineFacts, AreEmptyWhereNothingCanBeRead) {
  const TemporaryFolder folder;
  const MachineFacts facts = ReadMachineFacts(Below(folder));
  EXPECT_EQ(facts.product + facts.os_id + facts.os_version_id, "");
  EXPECT_EQ(facts.numa_nodes, 0);
  EXPECT_FALSE(facts.multithreading.has_value());
  EXPECT_THAT(facts.pci, IsEmpty());
}

TEST(MachineFacts, KnowCoresWithOneThread) {
  const TemporaryFolder folder;
  folder.Write("sys/bus/cpu/devices/cpu0/topology/thread_siblings_list", "0\n");
  folder.Write("sys/bus/cpu/devices/cpu1/topology/thread_siblings_list", "1\n");
  folder.Write("sys/bus/cpu/devices/cpu2/online", "0\n");
  EXPECT_EQ(ReadMachineFacts(Below(folder)).multithreading, false);
}

TEST(MachineFacts, PassOverAFunctionThatWentAway) {
  const TemporaryFolder folder;
  folder.Write("sys/bus/pci/devices/0000:07:00.0/class", "");
  EXPECT_THAT(ReadPciFunctions(folder / "sys"), IsEmpty());
}

TEST(PciDriver, IsThatOfTheFunctionNow) {
  const TemporaryFolder folder;
  const std::string sys = folder / "sys";
  folder.Write("sys/bus/pci/devices/0000:07:00.0/class", "0x030200\n");
  EXPECT_EQ(ReadPciDriver(sys, "0000:07:00.0"), "");
  EXPECT_EQ(ReadPciDriver(sys, "0000:08:00.0"), std::nullopt);
  std::filesystem::create_directories(folder / "sys/bus/pci/drivers/vfio-pci");
  std::filesystem::create_symlink("../../../bus/pci/drivers/vfio-pci",
                                  folder / "sys/bus/pci/devices/0000:07:00.0/driver");
  EXPECT_EQ(ReadPciDriver(sys, "0000:07:00.0"), "vfio-pci");
}

}  // namespace
}  // namespace penstock::os
