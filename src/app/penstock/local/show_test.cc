#include "app/penstock/local/show.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/strings.h"

namespace penstock::app {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const base::WallTime kNow = base::ParseTime("2026-11-21T04:00:00.000Z");

api::DeviceReport Device(int index) {
  api::DeviceReport device;
  device.id = "GPU-5d3e1a52-0000-4000-8000-00000000000" + std::to_string(index);
  device.vendor = "nvidia";
  device.model = "NVIDIA A100-SXM4-40GB";
  device.index = index;
  device.pci = "0000:07:00.0";
  device.numa = 3;
  device.memory_bytes = 42949672960;
  device.health_state = "healthy";
  device.health_since = "2026-11-21T03:00:00.000Z";
  device.allocator = "local";
  return device;
}

api::Report Sample() {
  api::Report report;
  report.vendors = {{.vendor = "nvidia", .driver = "550.54.15", .runtime = "12.4"}};
  report.devices = {Device(0), Device(1), Device(2), Device(3)};
  report.devices[1].holders = {{.device = report.devices[1].id,
                                .index = 1,
                                .state = "held",
                                .kind = "run",
                                .pids = {10, 11, 12, 13},
                                .user = "ann",
                                .command = "python train.py",
                                .enforcement = "devices",
                                .since = "2026-11-21T03:56:00.000Z"}};
  report.devices[2].holders = {{.index = 2,
                                .state = "handed",
                                .kind = "pod",
                                .pod = "train-0",
                                .namespace_name = "ml",
                                .container = "main"},
                               {.index = 2,
                                .state = "outside",
                                .kind = "outside",
                                .pids = {77},
                                .user = "bob",
                                .command = "x\033[2Jy"}};
  report.devices[3].health_state = "unhealthy";
  report.devices[3].health_reason = "XID 79: GPU has fallen off the bus";
  report.devices[3].health_since = "2026-11-21T03:58:00.000Z";
  report.allocators = {
      {.name = "kubelet", .state = "closed", .reason = "there is no /var/lib/kubelet"},
      {.name = "local", .state = "open", .resources = {"nvidia.com/gpu"}}};
  return report;
}

std::size_t Widest(const std::string& text) {
  std::size_t widest = 0;
  for (const std::string& line : base::Split(text, '\n')) widest = std::max(widest, line.size());
  return widest;
}

TEST(Show, MetricsWithoutAValueStandWithTheirReason) {
  api::Report report = Sample();
  EXPECT_THAT(ShowStatus(report, true, {}, kNow), Not(HasSubstr("metrics:")));
  report.unavailable_metrics = {{"DCGM_A", {"A100", "T4"}, "only on: Hopper and newer"},
                                {"DCGM_B", {}, "of NVSwitches"},
                                {"DCGM_C", {"A100", "T4"}, "only on: Hopper and newer"}};
  EXPECT_THAT(ShowStatus(report, false, {}, kNow),
              HasSubstr("\nmetrics:\n  no value for DCGM_A, DCGM_C on A100, T4: only on: Hopper "
                        "and newer\n  no value for DCGM_B here: of NVSwitches\n"));
}

TEST(Show, ReportsWhatWasFoundAndWhichAllocatorsAreOpen) {
  const std::string text = ShowFound(Sample(), {}, kNow);
  EXPECT_THAT(text,
              StartsWith("INDEX  MODEL           MEMORY  UUID                                      "
                         "PCI           NUMA  HEALTH\n"
                         "0      A100-SXM4-40GB  40 GiB  GPU-5d3e1a52-0000-4000-8000-000000000000  "
                         "0000:07:00.0  3     healthy\n"));
  EXPECT_THAT(text, HasSubstr("3: unhealthy for 2m: XID 79: GPU has fallen off the bus\n"));
  EXPECT_THAT(text, HasSubstr("nvidia driver 550.54.15 (API 12.4)\n"));
  EXPECT_THAT(
      text,
      HasSubstr("kubelet    pods          closed  -               there is no /var/lib/kubelet\n"));
  EXPECT_THAT(text, EndsWith("local      penstock run  open    nvidia.com/gpu  -\n"));
  EXPECT_LE(Widest(text), 102u);
}

TEST(Show, SaysWithoutADriverWhatIsMissingAndOffersASimulation) {
  api::Report report;
  report.vendors = {
      {.vendor = "nvidia", .reason = "libnvidia-ml.so.1 is not in /: install the driver"}};
  const std::string text = ShowFound(report, {}, kNow);
  EXPECT_THAT(text,
              StartsWith("no nvidia driver: libnvidia-ml.so.1 is not in /: install the driver\n"));
  EXPECT_THAT(text, HasSubstr("penstock up --simulate dgx-a100"));
}

TEST(Show, ReportsHealthAllocatorAndHolder) {
  const std::string text = ShowStatus(Sample(), false, {}, kNow);
  EXPECT_THAT(text, HasSubstr("healthy    local      free\n"));
  EXPECT_THAT(text, HasSubstr("healthy    local      ann: python train.py\n"));
  EXPECT_THAT(text, HasSubstr("healthy    local      ml/train-0/main (and 1 more)\n"));
  EXPECT_THAT(text, HasSubstr("\n3: unhealthy for 2m: XID 79"));
  EXPECT_THAT(text, Not(HasSubstr("GPU-5d3e1a52")));
  EXPECT_LE(Widest(text), 104u);
  EXPECT_THAT(ShowStatus(Sample(), true, {}, kNow),
              AllOf(HasSubstr("GPU-5d3e1a52-0000-4000-8000-000000000000"), HasSubstr("1h")));
}

TEST(Show, ReportsHowFarLimitsAreEnforcedAtEachAllocator) {
  api::Report report = Sample();
  report.allocators[1].enforcement = "visibility";
  EXPECT_THAT(ShowStatus(report, true, {}, kNow),
              HasSubstr("local      penstock run  open    nvidia.com/gpu  visibility  -\n"));
}

TEST(Show, ReportsHowContainersGetDevicesAndWhy) {
  api::Report report = Sample();
  EXPECT_THAT(ShowStatus(report, false, {}, {}), Not(HasSubstr("containers get devices")));
  report.allocators[0] = {.name = "kubelet",
                          .state = "open",
                          .device_list = {"envvar", "device-files"},
                          .device_list_reason = "containerd 1.6.20 has no CDI"};
  EXPECT_THAT(
      ShowStatus(report, false, {}, {}),
      HasSubstr(
          "\ncontainers get devices by envvar, device-files: containerd 1.6.20 has no CDI\n"));
}

TEST(Show, SaysWhyAWellDeviceIsNotOffered) {
  api::Report report = Sample();
  report.devices[0].withheld = "MIG mode is enabled";
  EXPECT_THAT(ShowStatus(report, false, {}, kNow),
              AllOf(HasSubstr("local      withheld\n"),
                    HasSubstr("0: not offered: MIG mode is enabled\n")));
}

TEST(Show, SaysThatADeviceIsAssignedToNoneUnlessItHasAFault) {
  api::Report report = Sample();
  report.devices[0].allocator = report.devices[3].allocator = "";
  EXPECT_THAT(ShowStatus(report, false, {}, kNow),
              AllOf(HasSubstr("not offered\n"),
                    HasSubstr("\n0: not offered: assigned to none, by the configuration or with "
                              "penstock assign\n"),
                    HasSubstr("\n3: unhealthy for 2m: XID 79: GPU has fallen off the bus\n")));
}

TEST(Show, AnUnhealthyDeviceWithoutAHolderIsNotFree) {
  const auto lines = base::Split(ShowStatus(Sample(), false, {}, kNow), '\n');
  EXPECT_THAT(lines, Contains(AllOf(StartsWith("0 "), EndsWith(" free"))));
  EXPECT_THAT(lines, Contains(AllOf(StartsWith("3 "), EndsWith(" -"))));
}

TEST(Show, ReportsTheConfigurationWhatOfItIsNotInForceAndWhatIsNotSo) {
  api::Report report = Sample();
  report.configuration = {.origin = "defaults"};
  report.conditions = {
      {.type = "Ready", .status = true, .reason = "Serving", .since = "2026-11-21T03:00:00Z"},
      {.type = "DevicesHealthy",
       .reason = "DeviceUnhealthy",
       .message = "3 is not",
       .since = "2026-11-21T03:58:00Z"}};
  std::string text = ShowStatus(report, false, {}, kNow);
  EXPECT_THAT(text, Not(HasSubstr("configuration:"))) << "nobody asked for anything";
  EXPECT_THAT(text, HasSubstr("DevicesHealthy  false   2m   DeviceUnhealthy  3 is not\n"));
  EXPECT_THAT(text, Not(HasSubstr("Ready ")));
  EXPECT_THAT(ShowStatus(report, true, {}, kNow), AllOf(HasSubstr("configuration: defaults\n"),
                                                        HasSubstr("Ready           true    1h ")));

  report.configuration = {.origin = "ConfigMap gpu/cfg, key any",
                          .since = "2026-11-21T03:55:00.000Z",
                          .problem = "any:3:1: unknown key \"shring\"\nany:4:1: version: v2",
                          .problem_origin = "ConfigMap gpu/cfg, key new",
                          .not_yet = {"sharing.timeSlicing: comes later"}};
  text = ShowStatus(report, false, {}, kNow);
  EXPECT_THAT(text, HasSubstr("configuration: ConfigMap gpu/cfg, key any, in force for 5m\n"
                              "not in force: ConfigMap gpu/cfg, key new\n"
                              "  any:3:1: unknown key \"shring\"\n  any:4:1: version: v2\n"
                              "not supported yet: sharing.timeSlicing: comes later\n"));
}

TEST(Show, ReportsWhoHoldsWhat) {
  const std::string text = ShowHolders(Sample(), false, {}, kNow);
  EXPECT_THAT(text,
              HasSubstr("1      held     4m   devices  10,11,12,+1  ann   python train.py\n"));
  EXPECT_THAT(text, HasSubstr("ml/train-0/main\n"));
  EXPECT_THAT(text, HasSubstr("2      outside  -    -        77           bob   x?[2Jy\n"))
      << "a name must not drive the terminal";
  EXPECT_EQ(ShowHolders({}, false, {}, kNow), "no devices are held\n");
}

TEST(Show, ReportsWhoOnlyDrawsAndWhoHoldsWhatIsNotThereAnyMore) {
  api::Report report = Sample();
  EXPECT_THAT(ShowHolders(report, false, {}, kNow), Not(HasSubstr("NOTE")));
  report.devices[0].graphics = {{.index = 0,
                                 .state = "graphics",
                                 .kind = "graphics",
                                 .pids = {7},
                                 .user = "root",
                                 .command = "Xorg"}};
  report.removed = {{.state = "held",
                     .kind = "run",
                     .pids = {8},
                     .user = "ann",
                     .command = "old",
                     .note = "GPU-6 was replaced by GPU-7"}};
  const std::string text = ShowHolders(report, false, {}, kNow);
  EXPECT_THAT(text, HasSubstr("0      graphics  -    -        7            root  Xorg"));
  EXPECT_THAT(text, HasSubstr("-      held      -    -        8            ann   old"));
  EXPECT_THAT(text, HasSubstr("GPU-6 was replaced by GPU-7\n"));
}

TEST(Show, ReportsToWhomDevicesAreClosed) {
  api::Report report = Sample();
  EXPECT_THAT(ShowStatus(report, false, {}, kNow), Not(HasSubstr("closed to")));
  report.allocators[1].closed_cgroups = {"/user.slice"};
  report.allocators[1].closed_problem = "/x: no such group";
  const std::string text = ShowStatus(report, false, {}, kNow);
  EXPECT_THAT(text, HasSubstr("closed to /user.slice: processes there can open only devices that "
                              "were allocated to them\n"));
  EXPECT_THAT(text, HasSubstr("not closed as configured: /x: no such group\n"));
}

/// GPU 0 is shared by MPS, GPU 1 is time-sliced, the others are whole.
api::Report Shared() {
  api::Report report = Sample();
  for (api::DeviceReport& device : report.devices) {
    device.resource = "nvidia.com/gpu";
    device.sharing = "none";
    device.isolation = "hardware";
  }
  api::DeviceReport &mps = report.devices[0], &sliced = report.devices[1];
  mps.sharing = "mps";
  mps.shares = 3;
  mps.free = 1;
  mps.isolation = "memory-per-process";
  mps.share_memory_bytes = 14316208128;
  mps.share_compute_percent = 33;
  sliced.sharing = "time-slicing";
  sliced.shares = 4;
  sliced.free = 3;
  sliced.isolation = "none";
  sliced.holders[0].slot = sliced.id + "::2";
  report.servers = {{.set = "nvidia.com/gpu",
                     .kind = "mps",
                     .state = "waiting",
                     .reason = "it ended; a new one starts in 4s",
                     .clients = 2,
                     .devices = {mps.id}}};
  return report;
}

TEST(Show, ReportsTheIsolationOfSharesAndTheServerBehindThem) {
  const std::string text = ShowStatus(Shared(), false, {}, kNow);
  EXPECT_THAT(text, HasSubstr("local      1/3 free  memory-per-process  free\n"));
  EXPECT_THAT(text, HasSubstr("local      3/4 free  none                ann: python train.py\n"));
  EXPECT_THAT(text,
              HasSubstr("local      -         hardware            ml/train-0/main (and 1 more)\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "nvidia.com/gpu  mps   waiting  2        0        it ended; a new one starts in 4s\n"));
  EXPECT_LE(Widest(text), 111u);
  const std::string wide = ShowStatus(Shared(), true, {}, kNow);
  EXPECT_THAT(wide, HasSubstr("  nvidia.com/gpu  mps           13.3 GiB, 33 %  free\n"));
  EXPECT_THAT(ShowStatus(Sample(), false, {}, kNow), Not(HasSubstr("ISOLATION")))
      << "nothing is shared";
}

TEST(Show, ReportsWhichShareSomeoneHolds) {
  const std::string text = ShowHolders(Shared(), false, {}, kNow);
  EXPECT_THAT(text, StartsWith("INDEX  SHARE  STATE    AGE"));
  EXPECT_THAT(text, HasSubstr("\n1      2      held     4m"));
  EXPECT_THAT(text, HasSubstr("\n2      -      handed")) << "a whole one";
  EXPECT_THAT(ShowHolders(Shared(), true, {}, kNow),
              HasSubstr("GPU-5d3e1a52-0000-4000-8000-000000000001::2"));
  EXPECT_THAT(ShowHolders(Sample(), false, {}, kNow), Not(HasSubstr("SHARE")));
}

TEST(Show, ReportsWhenADeviceComesBackAndHowOftenItFailed) {
  api::Report report = Sample();
  report.devices[3].probation_until = "2026-11-21T04:00:06.400Z";
  report.devices[3].relapses = 2;
  EXPECT_THAT(
      ShowStatus(report, false, {}, kNow),
      HasSubstr("3: unhealthy for 2m: XID 79: GPU has fallen off the bus; probation ends in 7s; "
                "relapsed 2 times\n"));
  report.devices[3].probation_until = "2026-11-21T03:59:59.000Z";
  EXPECT_THAT(ShowStatus(report, false, {}, kNow), HasSubstr("; probation ends shortly; "));
  report.devices[0].relapses = 1;
  report.devices[2].replaced = "GPU at 0000:07:00.0 was replaced: serial 1, now 2";
  EXPECT_THAT(ShowStatus(report, false, {}, kNow),
              HasSubstr("\n2: GPU at 0000:07:00.0 was replaced: serial 1, now 2\n"));
  EXPECT_THAT(ShowStatus(report, false, {}, kNow),
              HasSubstr("\n0: healthy again; relapsed 1 time\n"));
}

TEST(Show, ReportsADeviceThatIsOfferedOtherwiseThanConfiguredFromOneThatIsNot) {
  api::Report report = Shared();
  report.devices[0].withheld = "held in 2 shares until its holders end";
  report.devices[0].holders.clear();
  EXPECT_THAT(ShowStatus(report, false, {}, kNow),
              AllOf(HasSubstr("0: not as configured: held in 2 shares until its holders end\n"),
                    Not(HasSubstr("withheld"))));
}

TEST(Show, ReportsWhichAllocatorEachDeviceIsAt) {
  api::Report report = Shared();
  report.devices[2].allocator = "";
  report.devices[2].resource = "";
  report.devices[2].withheld = "moves to local users; waits for the kubelet";
  const std::string text = ShowAllocators(report, {});
  EXPECT_THAT(
      text,
      HasSubstr(
          "1      A100-SXM4-40GB  local      nvidia.com/gpu  3/4 free  ann: python train.py"));
  EXPECT_THAT(text, HasSubstr("2      A100-SXM4-40GB  none       -               -         "
                              "ml/train-0/main (and 1 more)  moves to local users"));
  EXPECT_THAT(text, HasSubstr("kubelet    pods          closed"));
  report.devices[3].allocator = report.devices[3].resource = "";
  EXPECT_THAT(ShowAllocators(report, {}),
              HasSubstr("3      A100-SXM4-40GB  none       -               -         not offered"))
      << "manually";
}

TEST(Table, CutsTheLastColumnToTheTerminal) {
  Table table({"A", "B"});
  table.Add({"1", std::string(100, 'x')});
  table.Add({"2", "é"});
  EXPECT_EQ(table.Render({.width = 40}), "A  B\n1  " + std::string(36, 'x') + "…\n2  é\n");
}

TEST(Table, ShowsNothingThatATerminalWouldActOn) {
  Table table({"A"});
  table.Add({"x\u009b31m \u202ey \x1b[2J"});
  EXPECT_EQ(table.Render({}), "A\nx?31m ?y ?[2J\n");
}

TEST(Table, UsesColoursOnlyWhereTheyAreWanted) {
  Table table({"A"});
  table.Add({Cell("1", Color::kRed)});
  EXPECT_EQ(table.Render({}), "A\n1\n");
  EXPECT_THAT(table.Render({.color = true}), HasSubstr("\033[31m1\033[0m"));
}

}  // namespace
}  // namespace penstock::app
