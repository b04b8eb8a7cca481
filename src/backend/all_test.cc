// Tests that hold for every vendor; a forgotten step of docs/dev/add-a-vendor.md fails here.
#include "backend/all.h"

#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/build_tree.h"
#include "os/testing/temporary_folder.h"

namespace penstock::backend {
namespace {

TEST(Vendors, HaveABackendADialectAndAFolderEach) {
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(base::SourcePath("src/backend")))
    if (entry.is_directory()) folders.insert(entry.path().filename());
  std::set<std::string> named;
  for (const std::string_view vendor : Names()) {
    named.emplace(vendor);
    const auto backend = MakeBackend(vendor, {});
    ASSERT_NE(backend, nullptr) << vendor;
    EXPECT_EQ(backend->vendor(), vendor);
    ASSERT_NE(FindDialect(vendor), nullptr) << vendor;
    EXPECT_EQ(FindDialect(vendor)->vendor(), vendor);
  }
  EXPECT_EQ(named, folders);
  EXPECT_EQ(Dialects().size(), named.size());
  EXPECT_EQ(MakeBackend("none", {}), nullptr);
  EXPECT_EQ(FindDialect("none"), nullptr);
}

TEST(Vendors, SayWhatCanBeDoneToTheirDevices) {
  os::Loop loop("test");
  for (const std::string_view vendor : Names())
    EXPECT_NE(MakeActions(vendor, loop, {}), nullptr) << vendor;
  EXPECT_EQ(MakeActions("none", loop, {}), nullptr);
}

TEST(Vendors, SayWithoutAWorkerThatThereIsNoDriver) {
  for (const device::Dialect* dialect : Dialects())
    EXPECT_NE(dialect->SignOfDriver({}).absent, "") << dialect->vendor();
}

TEST(Vendors, OfferQualifiedResourcesThatDiffer) {
  std::set<std::string_view> resources;
  for (const device::Dialect* dialect : Dialects()) {
    EXPECT_THAT(std::string(dialect->resource()), testing::MatchesRegex("[a-z0-9.-]+/[a-z0-9.-]+"));
    EXPECT_TRUE(resources.insert(dialect->resource()).second);
  }
}

/// Otherwise the layout of one vendor would be in the file, in the changes and under the label of
/// another.
TEST(Vendors, KeepTheirLayoutsApart) {
  std::set<std::string> kept, labels;
  for (const device::Dialect* dialect : Dialects()) {
    const device::PartTerms* terms = dialect->part_terms();
    if (terms == nullptr) continue;
    EXPECT_TRUE(kept.insert(terms->kept_as).second) << dialect->vendor();
    for (const std::string& label : {terms->request_label, terms->state_label})
      EXPECT_TRUE(labels.insert(label).second) << dialect->vendor() << ": " << label;
  }
}

/// Most machines do not have the vendor's driver.
TEST(Vendors, SayWhatIsMissingOnAnEmptyMachine) {
  const os::TemporaryFolder machine;
  const std::string& nothing = machine.path();
  for (const char* folder : {"/sys", "/proc", "/dev"})
    std::filesystem::create_directories(nothing + folder);
  for (const std::string_view vendor : Names()) {
    const auto backend = MakeBackend(vendor, {.driver_root = nothing,
                                              .sysfs_root = nothing + "/sys",
                                              .dev_root = nothing,
                                              .proc_root = nothing + "/proc"});
    const auto driver = backend->Open();
    ASSERT_FALSE(driver.ok()) << vendor;
    EXPECT_EQ(driver.error().code(), base::Code::kNotFound) << vendor;
    EXPECT_GT(driver.error().message().size(), 30u)
        << "one sentence with the action to take: " << driver.error().message();
    EXPECT_FALSE(backend->List().ok()) << vendor;
    EXPECT_FALSE(backend->Describe("0").ok()) << vendor;
    EXPECT_FALSE(backend->Read("0").ok()) << vendor;
  }
}

TEST(Vendors, KnowTheServersThatTheyStartedThemselves) {
  const os::TemporaryFolder folder;
  const std::string& proc = folder.path();
  os::ProcessInfo process;
  process.pid = 42;
  process.uid = ::geteuid();
  process.command = "nvidia-cuda-mps-server";
  process.cgroups = {"/penstock-mps", "/"};
  folder.Write("42/root/usr/bin/nvidia-cuda-mps-server", "");
  folder.Link("42/exe", folder / "42/root/usr/bin/nvidia-cuda-mps-server");
  EXPECT_FALSE(IsServer(proc, process)) << "a user's own server is not Penstock's";
  using namespace std::string_literals;
  folder.Write("42/environ", "HOME=/\0PENSTOCK_MPS_FOLDER=/run/nvidia/mps/gpu\0"s);
  EXPECT_TRUE(IsServer(proc, process));
  process.cgroups = {"/../../penstock-mps"};
  EXPECT_TRUE(IsServer(proc, process)) << "read from a container with its own cgroup namespace";
  process.uid = ::geteuid() + 1;
  for (const char* group :
       {"/kubepods/pod1", "/kubepods/penstock-mps", "/../kubepods/pod1", "/penstock-mps/below"}) {
    process.cgroups = {"/", group};
    EXPECT_FALSE(IsServer(proc, process)) << "a container's process with that name: " << group;
  }
  process.cgroups = {"/penstock-mps"};
  EXPECT_TRUE(IsServer(proc, process)) << "servers run as the users of their clients";
  folder.Write("42/root/usr/bin/train", "");
  std::filesystem::remove(folder / "42/exe");
  folder.Link("42/exe", folder / "42/root/usr/bin/train");
  EXPECT_FALSE(IsServer(proc, process)) << "whatever its arguments say";
  folder.Write("42/root/usr/bin/nvidia-cuda-mps-control", "");
  std::filesystem::remove(folder / "42/exe");
  folder.Link("42/exe", folder / "42/root/usr/bin/nvidia-cuda-mps-control");
  EXPECT_TRUE(IsServer(proc, process)) << "their daemon";
}

TEST(Vendors, JudgeWhatTheyDoNotKnowWithoutTakingADeviceOut) {
  device::Evidence strange;
  strange.kind = "no such kind";
  strange.code = 123456789;
  for (const device::Dialect* dialect : Dialects()) {
    EXPECT_LE(dialect->Judge(strange).severity, device::Severity::kWarn) << dialect->vendor();
    EXPECT_EQ(dialect->FromKernelLog("usb 1-1: new high-speed USB device"), std::nullopt)
        << dialect->vendor();
  }
}

}  // namespace
}  // namespace penstock::backend
