#include "api/node_state.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/testing/reference.h"
#include "base/core/document.h"
#include "base/core/testing/must.h"
#include "base/testing/build_tree.h"
#include "base/yaml.h"

namespace penstock::api {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

DeviceReport Device(const std::string& id, int index) {
  DeviceReport device;
  device.id = id;
  device.vendor = "nvidia";
  device.model = "NVIDIA A100-SXM4-40GB";
  device.index = index;
  device.pci = "0000:07:00.0";
  device.numa = 3;
  device.memory_bytes = 42949672960;
  device.health_state = "healthy";
  device.health_since = "2026-11-21T03:42:00.123Z";
  device.allocator = "kubelet";
  device.resource = "nvidia.com/gpu";
  device.sharing = "none";
  device.free = 1;
  device.isolation = "hardware";
  return device;
}

Report NodeReport() {
  Report report;
  report.generation = 7;
  report.node = "gpu-7";
  report.version = "0.1.0";
  report.agent_pid = 42;
  report.vendors = {{.vendor = "nvidia",
                     .driver = "550.54.15",
                     .runtime = "12.4",
                     .driver_source = "host",
                     .driver_root = "/",
                     .driver_since = "2026-11-21T03:42:00.250Z"},
                    {.vendor = "other", .reason = "there is none"}};
  report.devices = {Device("GPU-0", 0), Device("GPU-1", 1)};
  report.devices[0].holders = {{.slot = "GPU-0",
                                .device = "GPU-0",
                                .state = "held",
                                .kind = "pod",
                                .lease = "k-1",
                                .pids = {100},
                                .user = "ann",
                                .command = "python secret.py",
                                .pod = "train-0",
                                .namespace_name = "ml",
                                .container = "main"}};
  report.devices[1].health_state = "unhealthy";
  report.devices[1].health_reason = "XID 79";
  report.devices[0].serial = "1563221012345";
  report.devices[0].resource = "nvidia.com/gpu.shared";
  report.devices[0].sharing = "mps";
  report.devices[0].shares = 4;
  report.devices[0].free = 3;
  report.devices[0].isolation = "memory-per-process";
  report.devices[0].share_memory_bytes = 10737418240;
  report.devices[0].share_compute_percent = 25;
  report.devices[1].free = 0;
  report.devices[1].probation_until = "2026-11-21T03:43:00.500Z";
  report.devices[1].relapses = 2;
  report.servers = {{.set = "nvidia.com/gpu.shared",
                     .kind = "mps",
                     .state = "ready",
                     .clients = 3,
                     .devices = {"GPU-0"}}};
  report.allocators = {{.name = "kubelet",
                        .state = "open",
                        .resources = {"nvidia.com/gpu"},
                        .enforcement = "devices",
                        .device_list = {"cdi-cri"},
                        .device_list_reason = "containerd 1.7.24 injects CDI devices"}};
  report.configuration = {.origin =
                              "ConfigMap gpu-operator/time-slicing-config, key a100 (label "
                              "nvidia.com/device-plugin.config)",
                          .since = "2026-11-21T03:41:00.000Z"};
  report.validation = {{.name = "driver",
                        .state = "failed",
                        .reason = "it is gone",
                        .remedy = "load it",
                        .since = "2026-11-21T03:42:00.123Z"},
                       {.name = "devices", .state = "waiting", .reason = "waits for the driver"}};
  report.conditions = {
      {.type = "Ready", .status = true, .reason = "Ready", .since = "2026-11-21T03:42:00.123Z"},
      {.type = "DevicesHealthy",
       .status = false,
       .reason = "DeviceUnhealthy",
       .message = "GPU-1: XID 79"}};
  report.enforcement = {"devices"};
  report.next_kernel = "5.15.0-112-generic";
  return report;
}

TEST(NodeState, HasTheShapeThatIsPromised) {
  json state = NodeStateOf(NodeReport());
  json& status = state.at("status");
  EXPECT_EQ(status.at("doors"), status.at("allocators")) << "the name in 0.1.0";
  status.erase("doors");
  EXPECT_EQ(state, json::parse(R"json({
    "apiVersion": "penstock.io/v1alpha1", "kind": "NodeState", "metadata": {"name": "gpu-7"},
    "status": {
      "version": "0.1.0",
      "summary": {"driver": "550.54.15", "models": "2 NVIDIA A100-SXM4-40GB", "devices": 2, "healthy": 1, "held": 1, "slots": 5, "free": 3, "sharing": "mps", "kubelet": "open", "door": "open",
                  "configuration": "a100"},
      "vendors": [{"vendor": "nvidia", "driver": "550.54.15", "runtime": "12.4", "reason": "", "driverSource": "host", "driverRoot": "/", "driverSince": "2026-11-21T03:42:00Z"},
                  {"vendor": "other", "driver": "", "runtime": "", "reason": "there is none"}],
      "devices": [
        {"id": "GPU-0", "serial": "1563221012345", "vendor": "nvidia", "model": "NVIDIA A100-SXM4-40GB", "index": 0, "pci": "0000:07:00.0", "numa": 3, "memoryBytes": 42949672960,
         "health": {"state": "healthy", "reason": "", "since": "2026-11-21T03:42:00Z"}, "allocator": "kubelet", "door": "kubelet", "withheld": "",
         "resource": "nvidia.com/gpu.shared", "sharing": "mps", "slots": 4, "free": 3, "isolation": "memory-per-process",
         "shareMemoryBytes": 10737418240, "shareComputePercent": 25, "relapses": 0,
         "holders": {"handed": 0, "held": 1, "outside": 0}},
        {"id": "GPU-1", "serial": "", "vendor": "nvidia", "model": "NVIDIA A100-SXM4-40GB", "index": 1, "pci": "0000:07:00.0", "numa": 3, "memoryBytes": 42949672960,
         "health": {"state": "unhealthy", "reason": "XID 79", "since": "2026-11-21T03:42:00Z"}, "allocator": "kubelet", "door": "kubelet", "withheld": "",
         "resource": "nvidia.com/gpu", "sharing": "none", "slots": 1, "free": 0, "isolation": "hardware", "shareMemoryBytes": 0,
         "shareComputePercent": 0, "relapses": 2, "probationUntil": "2026-11-21T03:43:00Z",
         "holders": {"handed": 0, "held": 0, "outside": 0}}],
      "allocators": [{"name": "kubelet", "state": "open", "reason": "", "resources": ["nvidia.com/gpu"], "enforcement": "devices",
                 "deviceList": ["cdi-cri"], "deviceListReason": "containerd 1.7.24 injects CDI devices"}],
      "servers": [{"set": "nvidia.com/gpu.shared", "kind": "mps", "state": "ready", "reason": "", "devices": ["GPU-0"]}],
      "enforcement": ["devices"],
      "nextKernel": "5.15.0-112-generic",
      "configuration": {"origin": "ConfigMap gpu-operator/time-slicing-config, key a100 (label nvidia.com/device-plugin.config)",
                        "since": "2026-11-21T03:41:00Z", "problem": "", "problemOrigin": "", "notYet": []},
      "validation": [{"name": "driver", "state": "failed", "reason": "it is gone", "remedy": "load it", "since": "2026-11-21T03:42:00Z"},
                     {"name": "devices", "state": "waiting", "reason": "waits for the driver"}],
      "conditions": [
        {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-11-21T03:42:00Z"},
        {"type": "DevicesHealthy", "status": "False", "reason": "DeviceUnhealthy", "message": "GPU-1: XID 79"}]}})json"));
}

TEST(NodeState, NamesNoOneAndNothingThatChangesWithoutMeaning) {
  Report report = NodeReport();
  const std::string text = NodeStateOf(report).dump();
  for (const char* secret : {"ann", "secret.py", "train-0", "k-1"})
    EXPECT_THAT(text, Not(HasSubstr(secret)));
  report.generation = 8;
  report.agent_pid = 43;
  report.servers[0].clients = 4;
  EXPECT_EQ(NodeStateOf(report).dump(), text);
}

TEST(NodeState, ReadsBackWhatItWrote) {
  const json object = NodeStateOf(NodeReport());
  const auto report = ReportOf(object);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->node, "gpu-7");
  EXPECT_EQ(report->devices[0].holders.size(), 1u);
  EXPECT_EQ(report->devices[0].holders[0].state, "held");
  EXPECT_TRUE(report->conditions[0].status);
  EXPECT_EQ(report->devices[0].shares, 4);
  EXPECT_EQ(report->servers[0].devices, std::vector<std::string>{"GPU-0"});
  EXPECT_EQ(NodeStateOf(*report), object);
}

TEST(NodeState, ReadsANewerAgentsAndAnEmptyOneAndRefusesWhatIsNone) {
  EXPECT_TRUE(ReportOf(json::parse(R"({"metadata": {"name": "x"}})")).ok());
  EXPECT_TRUE(
      ReportOf(
          json::parse(
              R"({"metadata": {"name": "x"}, "status": {"new": 1, "devices": [{"id": "y", "new": {}}]}})"))
          .ok());
  for (const char* bad :
       {"null", "[]", "3", "{}", R"({"kind": "Node", "metadata": {"name": "x"}})",
        R"({"metadata": {"name": 3}})", R"({"metadata": {"name": "x"}, "status": {"devices": {}}})",
        R"({"metadata": {"name": "x"}, "status": {"devices": [3]}})",
        R"({"metadata": {"name": "x"}, "status": []})"}) {
    const auto report = ReportOf(json::parse(bad));
    ASSERT_FALSE(report.ok()) << bad;
    EXPECT_EQ(report.error().code(), base::Code::kDataLoss);
  }
}

TEST(NodeState, BelievesNoAbsurdCounts) {
  const auto report = ReportOf(json::parse(
      R"({"metadata": {"name": "x"}, "status": {"devices": [{"id": "y", "holders": {"held": 2000000000, "handed": -5}}]}})"));
  ASSERT_TRUE(report.ok());
  EXPECT_LE(report->devices[0].holders.size(), 4096u);
}

TEST(NodeState, IsJsonWhateverADriverSays) {
  Report report = NodeReport();
  report.devices[1].health_reason = "bad\xff" + std::string(100'000, 'x');
  const std::string text = NodeStateOf(report).dump();
  EXPECT_THAT(text, HasSubstr("bad\xEF\xBF\xBDx"));
  EXPECT_LT(text.size(), 10'000u);
}

TEST(NodeState, NamesTheConfigurationInAColumnsWidth) {
  Report report = NodeReport();
  const auto configuration = [&report] {
    return NodeStateOf(report)["status"]["summary"]["configuration"].get<std::string>();
  };
  report.configuration.origin = "file /etc/penstock/node.yaml";
  EXPECT_EQ(configuration(), "node.yaml");
  report.configuration.problem = "line 3";
  EXPECT_EQ(configuration(), "node.yaml (newer one refused)");
  report.configuration = {.origin = "defaults"};
  EXPECT_EQ(configuration(), "defaults");
}

TEST(NodeState, CountsNoSlotsOfADeviceThatIsOfferedNowhere) {
  Report report = NodeReport();
  report.devices[0].resource = "";
  report.devices[0].free = 0;
  report.devices[1].sharing = "time-slicing";
  const json status = NodeStateOf(report)["status"];
  EXPECT_EQ(status["devices"][0]["slots"], 0);
  EXPECT_EQ(status["summary"]["slots"], 1);
  EXPECT_EQ(status["summary"]["sharing"], "mps, time-slicing");
  EXPECT_EQ(NodeStateOf({})["status"]["summary"]["sharing"], "none");
}

base::Value ReadDefinition() {
  const char* const path = "deploy/helm/penstock/files/penstock.io_nodestates.yaml";
  auto value = base::ParseYaml(base::ReadSource(path), path);
  EXPECT_TRUE(value.ok()) << value.error().message();
  return *value;
}

const base::Value& At(const base::Value& value, const std::string& key) {
  const base::Value* found = value.Find(key);
  static const base::Value kNone;
  EXPECT_NE(found, nullptr) << key;
  return found == nullptr ? kNone : *found;
}

/// Expects that the schema has the type of the value and of every value below it.
void ExpectDescribed(const base::Value& schema, const json& value, const std::string& path) {
  const std::string type = At(schema, "type").text;
  EXPECT_EQ(type, value.is_object()   ? "object"
                  : value.is_array()  ? "array"
                  : value.is_number() ? "integer"
                                      : "string")
      << path;
  if (value.is_array())
    for (const json& item : value) ExpectDescribed(At(schema, "items"), item, path + "[]");
  if (!value.is_object() || path == "/metadata") return;
  for (const auto& [key, below] : value.items()) {
    const base::Value* property = At(schema, "properties").Find(key);
    ASSERT_NE(property, nullptr) << path << "/" << key;
    ExpectDescribed(*property, below, path + "/" + key);
  }
}

TEST(NodeState, TheSchemaDescribesAllThatIsWritten) {
  const base::Value definition = ReadDefinition();
  EXPECT_EQ(At(At(definition, "spec"), "group").text, kNodeStateGroup);
  EXPECT_EQ(At(At(At(definition, "spec"), "names"), "plural").text, kNodeStatePlural);
  const base::Value& version = At(At(definition, "spec"), "versions").list->front();
  EXPECT_EQ(At(version, "name").text, kNodeStateVersion);
  Report report = NodeReport();
  report.configuration.not_yet = {"sharing.mps"};
  report.devices[0].warning = "2 bad pages wait";
  report.devices[0].telemetry_problem = "its measurements are missing";
  ExpectDescribed(At(At(version, "schema"), "openAPIV3Schema"), NodeStateOf(report), "");
}

TEST(NodeState, EveryColumnShowsSomethingThatIsWritten) {
  const json object = NodeStateOf(NodeReport());
  const base::Value definition = ReadDefinition();
  for (const base::Value& column :
       *At(At(At(definition, "spec"), "versions").list->front(), "additionalPrinterColumns").list) {
    std::string path = At(column, "jsonPath").text;
    if (path == ".metadata.creationTimestamp" || path.find("[?") != std::string::npos) continue;
    std::replace(path.begin(), path.end(), '.', '/');
    EXPECT_TRUE(object.contains(json::json_pointer(path))) << path;
  }
}

TEST(NodeState, TheReferenceDocumentsEveryKey) {
  ExpectToDocument("node-state.md", NodeStateOf(NodeReport())["status"]);
}

TEST(NodeDocument, IsTheObjectOfTheClusterWithWhatOnlyTheNodeKnows) {
  Report report = NodeReport();
  report.agent_pid = 4711;
  report.devices.front().holders.clear();
  report.devices.front().holders.push_back(
      {.slot = "GPU-0", .device = "GPU-0", .state = "held", .kind = "run", .lease = "l-1"});
  const json document = json::parse(NodeDocument(report)), object = NodeStateOf(report);
  EXPECT_EQ(document["kind"], "NodeState");
  EXPECT_EQ(document["metadata"], object["metadata"]);
  for (const auto& [key, value] : object["status"].items()) {
    if (!value.is_array()) { EXPECT_EQ(document["status"][key], value) << key; }
  }
  EXPECT_EQ(document["status"]["conditions"], object["status"]["conditions"]);
  EXPECT_EQ(document["status"]["agentPid"], 4711);
  EXPECT_EQ(document["status"]["holders"][0]["lease"], "l-1");
  EXPECT_EQ(document["status"]["devices"][0]["holders"], object["status"]["devices"][0]["holders"]);
  EXPECT_TRUE(document["status"]["devices"][0].contains("replaced")) << "only the node has it";
  EXPECT_TRUE(ReportOf(document).ok());
}

TEST(NodeDocument, HasTheKeysOf010Unchanged) {
  const json document = json::parse(NodeDocument(NodeReport())),
             old = json::parse(ToJson(NodeReport()));
  for (const auto& [key, value] : old.items()) EXPECT_EQ(document[key], value) << key;
  EXPECT_EQ(Must(ParseReport(NodeDocument(NodeReport()))).devices.size(),
            NodeReport().devices.size());
}

}  // namespace
}  // namespace penstock::api
