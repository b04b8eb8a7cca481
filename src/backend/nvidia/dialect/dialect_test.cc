// Tests NVIDIA's environments, files and verdicts.
#include "backend/nvidia/dialect/dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/dialect/kinds.h"
#include "backend/nvidia/dialect/xid.h"

namespace penstock::backend::nvidia {
namespace {

using device::EvidenceSource;
using device::Facts;
using device::Severity;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

Facts Gpu(const std::string& id, std::uint32_t minor) {
  Facts facts;
  facts.id = id;
  facts.index = static_cast<int>(minor);
  facts.files = {{"/dev/nvidia" + std::to_string(minor), 195, minor}};
  return facts;
}

const device::Driver kInstalled{
    "nvidia", "550.54.15", "12.4", {{"/dev/nvidiactl", 195, 255}, {"/dev/nvidia-uvm", 511, 0}}, {}};

Severity Of(std::string_view kind, std::int64_t code, const std::string& text = "") {
  return TheDialect()
      .Judge({EvidenceSource::kEvent, "GPU-1", std::nullopt, std::string(kind), code, text, false})
      .severity;
}

TEST(NvidiaDialect, GivesAContainerItsDevicesInTheOrderAsked) {
  const Facts a = Gpu("GPU-a", 3), b = Gpu("GPU-b", 0);
  const std::vector<const Facts*> devices{&a, &b};
  const device::Edits edits =
      TheDialect().ForContainer(devices, kInstalled, device::DeviceNames::kIds);
  EXPECT_THAT(edits.environment, ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "GPU-a,GPU-b")));
  std::vector<std::string> paths;
  for (const auto& file : edits.files) {
    EXPECT_EQ(file.container_path, file.host_path);
    EXPECT_EQ(file.permissions, "rw");
    paths.push_back(file.container_path);
  }
  EXPECT_THAT(paths,
              ElementsAre("/dev/nvidia3", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"));
}

TEST(NvidiaDialect, NamesDevicesByIndexWhereThatIsWanted) {
  const Facts a = Gpu("GPU-a", 3), b = Gpu("GPU-b", 0);
  const std::vector<const Facts*> devices{&a, &b};
  EXPECT_THAT(
      TheDialect().ForContainer(devices, kInstalled, device::DeviceNames::kIndices).environment,
      ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "3,0")));
}

TEST(NvidiaDialect, GivesAProcessWhatCudaReads) {
  const Facts a = Gpu("GPU-a", 3);
  const std::vector<const Facts*> devices{&a};
  EXPECT_THAT(TheDialect().ForProcess(devices, kInstalled).environment,
              UnorderedElementsAre(Pair("CUDA_VISIBLE_DEVICES", "GPU-a"),
                                   Pair("NVIDIA_VISIBLE_DEVICES", "GPU-a"),
                                   Pair("CUDA_DEVICE_ORDER", "PCI_BUS_ID")));
}

TEST(NvidiaDialect, HidesAllDevicesFromAProcessWithNone) {
  const device::Edits edits = TheDialect().ForProcess({}, kInstalled);
  EXPECT_THAT(edits.environment, Contains(Pair("CUDA_VISIBLE_DEVICES", "-1")));
  EXPECT_THAT(edits.environment, Contains(Pair("NVIDIA_VISIBLE_DEVICES", "void")));
  EXPECT_TRUE(edits.files.empty());
}

TEST(NvidiaDialect, SharesByMpsWhatNvidiaSupports) {
  const auto why_not = [](const Facts& device, int shares) {
    return TheDialect().WhyNotShared(device, {device::Sharing::kServer, shares});
  };
  Facts gpu = Gpu("GPU-a", 0);
  gpu.architecture_version = "8.0";
  EXPECT_EQ(why_not(gpu, 48), "");
  EXPECT_THAT(why_not(gpu, 49), HasSubstr("the number of MPS clients (48)"));
  gpu.modes = {{"mig", "enabled", "enabled", {}}};
  EXPECT_THAT(why_not(gpu, 2), HasSubstr("MPS cannot share a GPU in MIG mode"));

  Facts mig = Gpu("MIG-a", 0);
  mig.parent = "GPU-a";
  mig.profile = "1g.5gb";
  mig.architecture_version = "8.0";
  mig.details = {{kMigSlicesOfCompute, "1"}};
  EXPECT_EQ(why_not(mig, 6), "");
  EXPECT_THAT(why_not(mig, 7), HasSubstr("the number of MPS clients (6 of a 1g.5gb)"));
  mig.details[kMigSlicesOfAll] = "4";
  EXPECT_EQ(why_not(mig, 12), "") << "a GPU with four slices";
  EXPECT_THAT(why_not(mig, 13), HasSubstr("(12 of"));
  mig.details[kMigSlicesOfCompute] = "4";
  EXPECT_EQ(why_not(mig, 48), "");
  mig.details.clear();
  EXPECT_THAT(why_not(mig, 7), HasSubstr("(6 of")) << "the size is unknown";
}

TEST(NvidiaDialect, FindsAProfileByTheNameOfAnotherDriver) {
  const std::vector<device::PartProfile> profiles = {{.name = "1g.10gb"}, {.name = "7g.80gb"}};
  const auto found = TheDialect().FindProfile("7g.79gb", profiles);
  ASSERT_TRUE(found.ok()) << found.error().ToString();
  EXPECT_EQ((*found)->name, "7g.80gb");
  EXPECT_EQ(TheDialect().FindProfile("3g.40gb", profiles).error().code(), Code::kNotFound);
  EXPECT_EQ(TheDialect().FindProfile("half", profiles).error().code(), Code::kInvalidArgument);
}

TEST(NvidiaDialect, KnowsWhereADriverComesAndGoes) {
  const auto plain = TheDialect().DriverPaths({});
  EXPECT_THAT(plain, Contains("/sys/module/nvidia"));
  EXPECT_THAT(plain, Contains("/sys/bus/pci/drivers/nvidia"));
  EXPECT_THAT(plain, Contains("/dev/nvidiactl"));
  EXPECT_THAT(plain, Contains("/sys/module/nvgpu"));
  EXPECT_THAT(plain, Contains("/dev/dxg"));
  EXPECT_THAT(plain, Contains("/usr/lib64/libnvidia-ml.so.1"));
  device::Paths paths;
  paths.driver_root = "/run/driver";
  EXPECT_THAT(TheDialect().DriverPaths(paths), Contains("/run/driver/usr/lib64/libnvidia-ml.so.1"));
  paths.library = "/opt/libnvidia-ml.so.1";
  EXPECT_THAT(TheDialect().DriverPaths(paths), Contains("/opt/libnvidia-ml.so.1"));
}

TEST(NvidiaDialect, NamesWhatADriverContainerInstalls) {
  const device::KernelDriver& driver = *TheDialect().kernel_driver();
  EXPECT_EQ(driver.module, "nvidia");
  EXPECT_THAT(driver.modules, Contains("nvidia_drm"));
  EXPECT_THAT(driver.libraries, Contains("/usr/lib64/libnvidia-ml.so.1"));
  EXPECT_EQ(driver.digest_file, "nvidia/nvidia-driver.state");
}

TEST(NvidiaDialect, JudgesXidsByNvidiasOwnWords) {
  for (const int number : {13, 31, 43, 45, 14, 162})
    EXPECT_EQ(Of(kXid, number), Severity::kIgnore) << number;
  for (const int number : {8, 32, 63, 68, 92, 94, 121, 142, 166, 5000})
    EXPECT_EQ(Of(kXid, number), Severity::kWarn) << number;
  for (const int number :
       {46, 48, 62, 64, 74, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158, 167, 175})
    EXPECT_EQ(Of(kXid, number), Severity::kReset) << number;
  for (const int number : {54, 79, 151}) EXPECT_EQ(Of(kXid, number), Severity::kGone) << number;
  EXPECT_EQ(Of(kXid, kUnknownXid), Severity::kWarn);
}

TEST(NvidiaDialect, HasEveryDocumentedXidOnce) {
  for (int number = 1; number <= 176; ++number) {
    const Xid& xid = FindXid(number);
    EXPECT_TRUE(xid.first <= number && number <= xid.last) << number;
    EXPECT_FALSE(xid.name.empty() || xid.source.empty()) << number;
  }
  EXPECT_EQ(FindXid(177).name, "not documented");
  EXPECT_EQ(FindXid(-1).name, "not documented");
}

TEST(NvidiaDialect, JudgesNvLink5ErrorsByTheirText) {
  EXPECT_EQ(Of(kXid, 145, "RLW_REMAP Nonfatal XC0 i0 Link 00 (0x1 0x2)"), Severity::kWarn);
  EXPECT_EQ(Of(kXid, 145, "RLW_REMAP Fatal XC0 i0 Link 00 (0x1 0x2)"), Severity::kReset);
  EXPECT_EQ(Of(kXid, 149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)"),
            Severity::kDrain);
  EXPECT_EQ(Of(kXid, 149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x028005c6 0x00000000)"),
            Severity::kWarn);
  EXPECT_EQ(Of(kXid, 149, "NETIR_BER_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)"),
            Severity::kIgnore);
  EXPECT_EQ(Of(kXid, 149), Severity::kWarn);
}

TEST(NvidiaDialect, DoesWhatXid154SaysTheDriverWants) {
  const auto to = [](const char* target) {
    return std::string("GPU recovery action changed from 0x0 (None) to ") + target;
  };
  EXPECT_EQ(Of(kXid, 154, to("0x0 (None)")), Severity::kIgnore);
  EXPECT_EQ(Of(kXid, 154, to("0x1 (GPU Reset Required)")), Severity::kReset);
  EXPECT_EQ(Of(kXid, 154, to("0x2 (Node Reboot Required)")), Severity::kGone);
  EXPECT_EQ(Of(kXid, 154, to("0x3 (Drain P2P)")), Severity::kDrain);
  EXPECT_EQ(Of(kXid, 154, to("0x4 (Drain and Reset)")), Severity::kReset);
  EXPECT_EQ(Of(kXid, 154, to("0xff (Something)")), Severity::kGone);
  EXPECT_EQ(Of(kXid, 154), Severity::kWarn);
}

TEST(NvidiaDialect, JudgesRecoveryActions) {
  const Severity expected[] = {Severity::kIgnore, Severity::kReset, Severity::kGone,
                               Severity::kDrain,  Severity::kReset, Severity::kWarn,
                               Severity::kReset,  Severity::kGone};
  for (int action = 0; action < 8; ++action)
    EXPECT_EQ(Of(kRecoveryAction, action), expected[action]) << action;
  EXPECT_EQ(Of(kRecoveryAction, 8), Severity::kGone) << "an unknown action counts as a reboot";
  EXPECT_EQ(Of(kRecoveryAction, -1), Severity::kGone);
}

TEST(NvidiaDialect, JudgesWhatThePollSees) {
  EXPECT_EQ(Of(kLost, 15), Severity::kGone);
  EXPECT_EQ(Of(kResetRequired, 16), Severity::kReset);
  EXPECT_EQ(Of(kUnavailable, 0), Severity::kReset);
  EXPECT_EQ(Of(kRemapFailure, 1), Severity::kReset);
  EXPECT_EQ(Of(kRemapPending, 1), Severity::kWarn);
  EXPECT_EQ(Of(kEccUncorrectable, 3), Severity::kWarn);
  EXPECT_EQ(Of(kPoison, 0), Severity::kWarn);
  EXPECT_EQ(Of(kPoison, 1), Severity::kReset);
  EXPECT_EQ(Of("of another kind", 1), Severity::kWarn);
}

TEST(NvidiaDialect, GivesAReasonForPeople) {
  const auto verdict = TheDialect().Judge(
      {EvidenceSource::kEvent, "GPU-1", std::nullopt, std::string(kXid), 79, "", false});
  EXPECT_EQ(verdict.reason, "XID 79: GPU has fallen off the bus");
  EXPECT_THAT(TheDialect()
                  .Judge({EvidenceSource::kPoll, "GPU-1", std::nullopt,
                          std::string(kRecoveryAction), 2, "", true})
                  .reason,
              HasSubstr("reboot the node"));
}

}  // namespace
}  // namespace penstock::backend::nvidia
