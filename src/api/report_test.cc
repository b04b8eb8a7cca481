#include "api/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/testing/reference.h"

namespace penstock::api {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Report Sample() {
  Report report;
  report.generation = 7;
  report.node = "gpu-7";
  report.version = "0.1.0";
  report.agent_pid = 42;
  report.vendors = {{.vendor = "nvidia",
                     .driver = "550.54.15",
                     .runtime = "12.4",
                     .reason = "",
                     .driver_source = "container",
                     .driver_root = "/run/nvidia/driver",
                     .driver_since = "2026-11-21T03:42:00.000Z"}};
  DeviceReport device;
  device.id = "GPU-1";
  device.vendor = "nvidia";
  device.model = "NVIDIA A100-SXM4-40GB";
  device.index = 0;
  device.kind = "GPU";
  device.pci = "0000:07:00.0";
  device.numa = 3;
  device.memory_bytes = 42949672960;
  device.health_state = "healthy";
  device.health_since = "2026-11-21T03:42:00.000Z";
  device.allocator = "kubelet";
  device.serial = "1563221012345";
  device.resource = "nvidia.com/gpu.shared";
  device.sharing = "mps";
  device.shares = 4;
  device.free = 3;
  device.isolation = "memory-per-process";
  device.share_memory_bytes = 10737418240;
  device.share_compute_percent = 25;
  device.probation_until = "2026-11-21T03:43:00.000Z";
  device.relapses = 2;
  device.replaced = "GPU at 0000:07:00.0 was replaced: serial 1, now 2";
  device.holders = {{.slot = "GPU-1",
                     .device = "GPU-1",
                     .index = 0,
                     .state = "held",
                     .kind = "pod",
                     .lease = "k-1",
                     .pids = {100, 101},
                     .user = "root",
                     .command = "train",
                     .pod = "train-0",
                     .namespace_name = "ml",
                     .container = "main",
                     .enforcement = "devices",
                     .since = "2026-11-21T03:42:01.000Z"}};
  device.warning = "2 bad pages wait";
  device.telemetry_problem = "its measurements are missing";
  device.graphics = {{.device = "GPU-1",
                      .index = 0,
                      .state = "graphics",
                      .kind = "graphics",
                      .pids = {7},
                      .user = "root",
                      .command = "Xorg"}};
  report.removed = {{.slot = "GPU-0",
                     .device = "GPU-0",
                     .state = "held",
                     .kind = "run",
                     .lease = "r-1",
                     .note = "GPU-0 was replaced by GPU-1"}};
  report.devices = {device, {.id = "GPU-2"}};
  report.allocators = {{.name = "kubelet",
                        .state = "open",
                        .reason = "",
                        .resources = {"nvidia.com/gpu"},
                        .enforcement = "devices",
                        .device_list = {"envvar", "device-files"},
                        .device_list_reason = "containerd 1.6.20 has no CDI",
                        .closed_cgroups = {"/user.slice"},
                        .closed_problem = "/x: gone"}};
  report.servers = {{.set = "nvidia.com/gpu.shared",
                     .kind = "mps",
                     .state = "waiting",
                     .reason = "it ended",
                     .clients = 3,
                     .devices = {"GPU-1"}}};
  report.cdi = {.folder = "/var/run/cdi",
                .kinds = {"nvidia.com/gpu"},
                .problems = {"x.yaml gives them as well"},
                .remarks = {"no libcuda.so"}};
  report.configuration = {.origin = "file /etc/penstock/node.yaml",
                          .since = "2026-11-21T03:41:00.000Z",
                          .problem = "line 3: unknown key",
                          .problem_origin = "ConfigMap gpu/config, key any",
                          .not_yet = {"sharing.mps"}};
  report.unavailable_metrics = {
      {.name = "DCGM_FI_PROF_DRAM_ACTIVE", .models = {"A100"}, .reason = "only on: Hopper"}};
  report.validation = {{.name = "driver",
                        .state = "failed",
                        .reason = "it is gone",
                        .remedy = "load it",
                        .since = "2026-11-21T03:42:00.000Z"}};
  report.conditions = {{.type = "Ready",
                        .status = true,
                        .reason = "Ready",
                        .message = "",
                        .since = "2026-11-21T03:42:00.000Z"}};
  report.enforcement = {"devices"};
  report.next_kernel = "5.15.0-112-generic";
  return report;
}

TEST(Report, HasTheShapeThatIsPromised) {
  json document = json::parse(ToJson(Sample()));
  EXPECT_EQ(document.at("doors"), document.at("allocators")) << "the name in 0.1.0";
  document.erase("doors");
  EXPECT_EQ(document, json::parse(R"({
    "generation": 7, "node": "gpu-7", "version": "0.1.0", "agentPid": 42,
    "vendors": [{"vendor": "nvidia", "driver": "550.54.15", "runtime": "12.4", "reason": "",
                 "driverSource": "container", "driverRoot": "/run/nvidia/driver", "driverSince": "2026-11-21T03:42:00.000Z"}],
    "devices": [
      {"id": "GPU-1", "vendor": "nvidia", "model": "NVIDIA A100-SXM4-40GB", "index": 0, "kind": "GPU", "pci": "0000:07:00.0", "numa": 3, "memoryBytes": 42949672960,
       "health": {"state": "healthy", "reason": "", "since": "2026-11-21T03:42:00.000Z"}, "allocator": "kubelet", "door": "kubelet", "withheld": "",
       "serial": "1563221012345", "resource": "nvidia.com/gpu.shared", "sharing": "mps", "shares": 4, "free": 3, "isolation": "memory-per-process",
       "shareMemoryBytes": 10737418240, "shareComputePercent": 25, "probationUntil": "2026-11-21T03:43:00.000Z", "relapses": 2,
       "replaced": "GPU at 0000:07:00.0 was replaced: serial 1, now 2",
       "holders": [{"slot": "GPU-1", "device": "GPU-1", "index": 0, "state": "held", "kind": "pod", "lease": "k-1", "pids": [100, 101], "user": "root",
                    "command": "train", "pod": "train-0", "namespace": "ml", "container": "main", "enforcement": "devices",
                    "since": "2026-11-21T03:42:01.000Z", "note": ""}],
       "warning": "2 bad pages wait", "telemetryProblem": "its measurements are missing",
       "graphicsProcesses": [{"slot": "", "device": "GPU-1", "index": 0, "state": "graphics", "kind": "graphics", "lease": "", "pids": [7],
                    "user": "root", "command": "Xorg", "pod": "", "namespace": "", "container": "", "enforcement": "", "since": "", "note": ""}]},
      {"id": "GPU-2", "vendor": "", "model": "", "index": null, "kind": "", "pci": "", "numa": null, "memoryBytes": 0,
       "health": {"state": "", "reason": "", "since": ""}, "allocator": "", "door": "", "withheld": "",
       "serial": "", "resource": "", "sharing": "", "shares": 1, "free": 0, "isolation": "", "shareMemoryBytes": 0, "shareComputePercent": 0,
       "probationUntil": "", "relapses": 0, "replaced": "", "holders": [], "warning": "", "telemetryProblem": "", "graphicsProcesses": []}],
    "holdersOfRemovedDevices": [{"slot": "GPU-0", "device": "GPU-0", "index": null, "state": "held", "kind": "run", "lease": "r-1", "pids": [],
                    "user": "", "command": "", "pod": "", "namespace": "", "container": "", "enforcement": "", "since": "",
                    "note": "GPU-0 was replaced by GPU-1"}],
    "allocators": [{"name": "kubelet", "state": "open", "reason": "", "resources": ["nvidia.com/gpu"], "enforcement": "devices",
               "deviceList": ["envvar", "device-files"], "deviceListReason": "containerd 1.6.20 has no CDI",
               "closedCgroups": ["/user.slice"], "closedCgroupsProblem": "/x: gone"}],
    "servers": [{"set": "nvidia.com/gpu.shared", "kind": "mps", "state": "waiting", "reason": "it ended", "clients": 3, "devices": ["GPU-1"]}],
    "cdi": {"folder": "/var/run/cdi", "kinds": ["nvidia.com/gpu"], "problems": ["x.yaml gives them as well"], "remarks": ["no libcuda.so"]},
    "configuration": {"origin": "file /etc/penstock/node.yaml", "since": "2026-11-21T03:41:00.000Z", "problem": "line 3: unknown key",
                      "problemOrigin": "ConfigMap gpu/config, key any", "notYet": ["sharing.mps"]},
    "unavailableMetrics": [{"name": "DCGM_FI_PROF_DRAM_ACTIVE", "models": ["A100"], "reason": "only on: Hopper"}],
    "validation": [{"name": "driver", "state": "failed", "reason": "it is gone", "remedy": "load it", "since": "2026-11-21T03:42:00.000Z"}],
    "conditions": [{"type": "Ready", "status": true, "reason": "Ready", "message": "", "since": "2026-11-21T03:42:00.000Z"}],
    "enforcement": ["devices"], "nextKernel": "5.15.0-112-generic"})"));
}

TEST(Report, AllPassedWhereNoStepFailedOrWaitsAndOnePassed) {
  const auto passed = [](const std::vector<std::string>& states) {
    std::vector<ValidationStep> steps;
    for (const std::string& state : states) steps.push_back({.name = "x", .state = state});
    return AllPassed(steps);
  };
  EXPECT_TRUE(passed({"passed", "skipped", "passed"}));
  EXPECT_FALSE(passed({"passed", "waiting"}));
  EXPECT_FALSE(passed({"failed", "passed"}));
  EXPECT_FALSE(passed({"passed", "of a newer agent"}));
  EXPECT_FALSE(passed({"skipped"}));
  EXPECT_FALSE(passed({}));
}

TEST(Report, ReadsAllocatorsUnderTheNameThatTheyHaveIn010) {
  const auto report = ParseReport(
      R"({"generation": 1, "devices": [{"id": "x", "door": "local"}], "doors": [{"name": "local"}]})");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->devices[0].allocator, "local");
  ASSERT_EQ(report->allocators.size(), 1u);
  EXPECT_EQ(report->allocators[0].name, "local");
}

TEST(Report, AnEmptyNodeHasListsNotNulls) {
  const json document = json::parse(ToJson(Report{}));
  for (const char* key :
       {"vendors", "devices", "allocators", "doors", "servers", "conditions", "enforcement"})
    EXPECT_TRUE(document[key].is_array()) << key;
  EXPECT_FALSE(document.contains("unavailableMetrics"))
      << "as an agent says it that has nothing to say of it";
  EXPECT_FALSE(document.contains("nextKernel")) << "the running one boots again";
  EXPECT_EQ(HoldersToJson({}), R"({"holders":[],"graphicsProcesses":[]})");
}

TEST(Report, ListsHoldersFlat) {
  const json document = json::parse(HoldersToJson(Sample()));
  ASSERT_EQ(document["holders"].size(), 2u) << "that of a removed device too";
  EXPECT_EQ(document["graphicsProcesses"],
            json::parse(ToJson(Sample()))["devices"][0]["graphicsProcesses"]);
  EXPECT_EQ(document["holders"][0], json::parse(ToJson(Sample()))["devices"][0]["holders"][0]);
}

TEST(Report, ReadsBackWhatItWrote) {
  const auto report = ParseReport(ToJson(Sample()));
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(ToJson(*report), ToJson(Sample()));
  EXPECT_EQ(report->devices[1].index, -1);
  EXPECT_FALSE(report->devices[1].numa);
  // An agent older than sharing does not report it.
  EXPECT_EQ(
      ParseReport(R"({"generation": 1, "devices": [{"id": "x"}], "doors": []})")->devices[0].shares,
      1);
}

TEST(Report, ReadsANewerAgentsReportAndRefusesWhatIsNone) {
  EXPECT_TRUE(
      ParseReport(
          R"({"generation": 1, "devices": [{"id": "x", "new": 1}], "doors": [], "more": {}})")
          .ok());
  for (const char* bad :
       {"", "[]", "{", "null", "{}", R"({"generation": 1, "devices": 3, "doors": []})",
        R"({"generation": "x", "devices": [], "doors": []})",
        R"({"generation": 1, "devices": [{"id": 5}], "doors": []})",
        R"({"generation": 1, "devices": [5], "doors": []})",
        R"({"generation": 1, "devices": [], "doors": [], "configuration": 3})",
        R"({"generation": 1, "devices": [], "doors": [], "conditions": {}})",
        R"({"generation": 1, "devices": [], "doors": [], "servers": {}})",
        R"({"generation": 1, "devices": [], "doors": [], "cdi": []})",
        R"({"generation": 1, "devices": [{"shares": "4"}], "doors": []})",
        R"({"generation": 1, "devices": [{"health": []}], "doors": []})"}) {
    const auto report = ParseReport(bad);
    ASSERT_FALSE(report.ok()) << bad;
    EXPECT_EQ(report.error().code(), base::Code::kDataLoss);
  }
}

TEST(Report, ReplacesBytesThatAreNoUtf8) {
  Report report = Sample();
  report.devices[0].holders[0].command = "bad\xff";
  EXPECT_THAT(ToJson(report), HasSubstr("bad\xEF\xBF\xBD"));
}

TEST(Report, TheReferenceDocumentsEveryKey) {
  ExpectToDocument("report.md", json::parse(ToJson(Sample())));
}

}  // namespace
}  // namespace penstock::api
