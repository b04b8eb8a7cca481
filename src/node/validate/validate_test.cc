// Tests the steps with tables: each row changes one thing of a node on which everything works.
#include "node/validate/validate.h"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "node/inventory/testing/acme_inventory.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::validate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Acme with a file that all devices share, a fabric and hooks.
class LinkedAcme final : public device::testing::AcmeDialect {
 public:
  device::ContainerDriver DriverForContainers(const device::Driver&) const override {
    device::ContainerDriver driver;
    driver.control_files = {{"/dev/acmectl", true, "acme-make ctl"},
                            {"/dev/acme-extra", false, ""}};
    driver.hooks = {{"ldcache", {}}};
    return driver;
  }
  std::string_view compute_program() const override { return "acme-compute"; }
  device::FabricPlace FabricOf(const device::Facts& device) const override {
    const auto state = device.details.find("fabric");
    if (state == device.details.end()) return {};
    using State = device::FabricPlace::State;
    if (state->second == "joined") return {.state = State::kJoined, .reason = {}, .remedy = {}};
    return {state->second == "joining" ? State::kJoining : State::kFailed,
            "its fabric is " + state->second, "start the manager"};
  }
};

const device::Dialect* FindLinked(std::string_view) {
  static const LinkedAcme acme;
  return &acme;
}

struct TestNode {
  TestNode() {
    inventory = inventory::AcmeSnapshot(2);
    auto driver = device::testing::AcmeDriver();
    driver.files = {{"/dev/acmectl", 195, 255}, {"/dev/acme-extra", 195, 254}};
    inventory.vendors[0].driver = std::make_shared<const device::Driver>(driver);
    report.vendors = {{.vendor = "acme", .driver = "1.0"}};
    for (const auto& entry : inventory.devices) {
      report.devices.push_back({.id = entry.facts->id,
                                .vendor = "acme",
                                .index = entry.facts->index,
                                .health_state = "healthy",
                                .allocator = "kubelet",
                                .resource = "acme.com/gpu"});
      named.insert(entry.facts->id);
    }
    report.allocators = {{.name = "kubelet",
                          .state = "open",
                          .resources = {"acme.com/gpu"},
                          .device_list = {"cdi-cri"},
                          .device_list_reason = "containerd 1.7.24 injects CDI devices"}};
    report.cdi = {.folder = "/var/run/cdi", .kinds = {"acme.com/gpu"}};
    using Kind = StandingFile::Kind;
    files = {{"/dev/acmectl", {Kind::kDevice, 195, 255}},
             {"/dev/acme0", {Kind::kDevice, 195, 0}},
             {"/dev/acme1", {Kind::kDevice, 195, 1}}};
    toolkit.named = &named;
    for (const auto& device : report.devices) compute.outcomes[device.id].computed = true;
  }
  TestNode(const TestNode&) = delete;

  void SetDetail(std::size_t device, const std::string& value) {
    device::Facts facts = *inventory.devices[device].facts;
    facts.details["fabric"] = value;
    inventory.devices[device].facts = std::make_shared<const device::Facts>(facts);
  }

  std::vector<api::ValidationStep> Steps() const { return Validate(report, Known()); }
  bool CanTry() const { return CanTryContainer(report, Known()); }

  Inputs Known() const {
    static const device::DialectOf dialect_of = FindLinked;
    return {.inventory = inventory,
            .dialect_of = dialect_of,
            .discovered = discovered,
            .on_bus = on_bus,
            .files = looked ? &files : nullptr,
            .toolkit = toolkit,
            .compute = compute,
            .container = container};
  }

  inventory::Snapshot inventory;
  api::Report report;
  std::map<std::string, int> on_bus = {{"acme", 2}};
  std::set<std::string> named;
  StandingFiles files;
  Toolkit toolkit;
  ComputeFacts compute;
  ContainerFacts container;
  bool discovered = true, looked = true;
};

/// "driver=passed device-nodes=failed ..."
std::string States(const std::vector<api::ValidationStep>& steps) {
  std::string text;
  for (const auto& step : steps) text += (text.empty() ? "" : " ") + step.name + "=" + step.state;
  return text;
}

const api::ValidationStep& Find(const std::vector<api::ValidationStep>& steps,
                                std::string_view name) {
  return *std::ranges::find(steps, name, &api::ValidationStep::name);
}

TEST(Validate, PassesWhereEverythingWorks) {
  const TestNode node;
  const auto steps = node.Steps();
  EXPECT_EQ(States(steps),
            "driver=passed device-nodes=passed fabric=skipped compute=passed toolkit=passed "
            "plugin=passed devices=passed");
  EXPECT_TRUE(api::AllPassed(steps));
  EXPECT_EQ(Find(steps, "driver").reason, "acme 1.0");
  EXPECT_EQ(Find(steps, "device-nodes").reason, "3 device files");
  EXPECT_EQ(Find(steps, "toolkit").reason,
            "acme.com/gpu in /var/run/cdi; containers get devices by cdi-cri (containerd 1.7.24 "
            "injects CDI devices)");
  EXPECT_EQ(Find(steps, "plugin").reason, "the kubelet has the list of acme.com/gpu");
  EXPECT_EQ(Find(steps, "devices").reason, "2 of 2 can be used");
}

TEST(Validate, SaysWhatAContainerHasShown) {
  using State = ContainerFacts::State;
  TestNode node;
  const std::string prepared = Find(node.Steps(), "toolkit").reason;
  const auto step = [&](State state, const std::vector<std::string>& why) {
    node.container = {.state = state, .why = why, .opened = 4};
    return Find(node.Steps(), "toolkit");
  };
  EXPECT_EQ(step(State::kWaiting, {}).state, "waiting");
  EXPECT_EQ(step(State::kOpened, {}).state, "passed");
  EXPECT_EQ(step(State::kOpened, {}).reason, prepared + "; a container opened 4 device files");
  node.container = {.state = State::kOpened, .opened = 1, .unserved = 2};
  EXPECT_EQ(Find(node.Steps(), "toolkit").reason,
            prepared + "; a container opened 1 device files, and may open 2 that no driver serves");
  EXPECT_EQ(step(State::kNotTried, {"no image"}).state, "passed");
  EXPECT_EQ(step(State::kNotTried, {"no image"}).reason,
            prepared + "; no container tried it: no image");
  const auto failed = step(State::kFailed, {"a", "b", "c", "d"});
  EXPECT_EQ(failed.state, "failed");
  EXPECT_EQ(failed.reason, "a; b; c; and 1 more");
  EXPECT_NE(failed.remedy, "");
  node.named.erase("G1");
  EXPECT_EQ(step(State::kFailed, {"a"}).state, "waiting") << "the specification comes first";
  node.report.allocators[0].device_list = {"envvar"};
  EXPECT_EQ(step(State::kFailed, {"a"}).state, "failed") << "by files or by a variable, too";
  const std::string listed =
      "containers get devices by envvar (containerd 1.7.24 injects CDI devices)";
  EXPECT_EQ(step(State::kOpened, {}).reason, listed + "; a container opened 4 device files");
  node.container = {.state = State::kOpened, .opened = 4, .remark = "by a handler"};
  EXPECT_EQ(Find(node.Steps(), "toolkit").reason,
            listed + "; a container opened 4 device files (by a handler)");
  EXPECT_EQ(step(State::kNone, {}).reason, listed + "; none is started to try that");
}

TEST(Validate, AContainerIsTriedOnceAllItNeedsIsThere) {
  EXPECT_TRUE(TestNode().CanTry());
  for (const auto& lacks : std::initializer_list<std::function<void(TestNode&)>>{
           [](TestNode& node) { node.report.vendors[0].driver = ""; },
           [](TestNode& node) { node.files["/dev/acme1"] = {}; },
           [](TestNode& node) { node.looked = false; },
           [](TestNode& node) { node.named.erase("G1"); },
           [](TestNode& node) { node.report.allocators[0].state = "waiting"; },
           [](TestNode& node) { node.report.allocators.clear(); }}) {
    TestNode node;
    lacks(node);
    EXPECT_FALSE(node.CanTry());
  }
  TestNode node;
  node.report.allocators[0].device_list = {"envvar"};
  EXPECT_TRUE(node.CanTry()) << "by whatever way";
  node.container.state = ContainerFacts::State::kFailed;
  EXPECT_TRUE(node.CanTry()) << "its own verdict does not keep it from being tried again";
}

TEST(Validate, SaysOnWhichDevicesAProgramHasComputed) {
  TestNode node;
  const auto now = [&] {
    const auto steps = node.Steps();
    const auto& step = Find(steps, "compute");
    return step.state + ": " + step.reason;
  };
  const std::string first = node.report.devices[0].id, second = node.report.devices[1].id;
  EXPECT_EQ(now(), "passed: 2 of 2 devices have computed");
  node.compute.outcomes[second] = {.computed = false, .why = "cuInit: 999"};
  EXPECT_EQ(now(), "passed: 1 of 2 devices have computed; not " + second + ": cuInit: 999");
  node.compute.outcomes.erase(second);
  EXPECT_EQ(now(), "waiting: 1 of 2 devices are being tried");
  node.compute.in_use = {second};
  EXPECT_EQ(now(), "passed: 1 of 2 devices have computed; 1 were in use");
  node.compute.outcomes[first] = {.computed = false, .why = "cuInit: 999"};
  EXPECT_EQ(now(), "failed: " + first + ": cuInit: 999");
  node.compute.outcomes.clear();
  node.compute.in_use = {first, second};
  EXPECT_EQ(now(), "passed: all devices are in use: none was tried");
  node.compute.off = "it is off";
  EXPECT_EQ(now(), "skipped: it is off");
  node.compute.off.clear();
  for (auto& device : node.report.devices) device.health_state = "gone";
  EXPECT_EQ(now(), "skipped: no device is there to compute on");
}

TEST(Validate, ComputesAfterTheFabricWasJoined) {
  TestNode node;
  node.SetDetail(0, "joining");
  EXPECT_THAT(States(node.Steps()), HasSubstr("fabric=waiting compute=waiting"));
}

struct ValidateCase {
  const char* what;
  std::function<void(TestNode&)> change;
  const char* step;
  const char* state;
  const char* reason;
  const char* remedy;
};

class OneChange : public testing::TestWithParam<ValidateCase> {};

TEST_P(OneChange, HasTheStateAndTheReason) {
  const ValidateCase& one = GetParam();
  TestNode node;
  one.change(node);
  const auto steps = node.Steps();
  const auto& step = Find(steps, one.step);
  EXPECT_EQ(step.state, one.state) << step.reason;
  EXPECT_THAT(step.reason, HasSubstr(one.reason));
  EXPECT_THAT(step.remedy, HasSubstr(one.remedy));
}

using Kind = StandingFile::Kind;

INSTANTIATE_TEST_SUITE_P(
    Validate, OneChange,
    testing::Values(
        ValidateCase{"missing driver",
                     [](TestNode& node) {
                       node.report.vendors = {{.vendor = "acme", .reason = "it is not loaded"}};
                     },
                     "driver", "failed", "acme: it is not loaded", "load the driver"},
        ValidateCase{"unusable driver",
                     [](TestNode& node) {
                       node.report.vendors[0].reason = "the libraries are of version 2.0";
                     },
                     "driver", "failed", "the libraries are of version 2.0", "reboot"},
        ValidateCase{"what depends on the driver waits",
                     [](TestNode& node) { node.report.vendors = {{.vendor = "acme"}}; }, "toolkit",
                     "waiting", "waits for the driver", ""},
        ValidateCase{"a driver only of accelerators on the bus",
                     [](TestNode& node) {
                       node.report.devices.clear();
                       node.report.vendors = {{.vendor = "acme", .reason = "it is not loaded"}};
                     },
                     "driver", "failed", "it is not loaded", ""},
        ValidateCase{"drivers are still being looked for",
                     [](TestNode& node) {
                       node.report.devices.clear();
                       node.report.vendors.clear();
                       node.on_bus.clear();
                       node.discovered = false;
                     },
                     "driver", "waiting", "not been looked for", ""},
        ValidateCase{"the bus is known before the drivers",
                     [](TestNode& node) {
                       node.report.devices.clear();
                       node.report.vendors.clear();
                       node.discovered = false;
                     },
                     "driver", "waiting", "not been looked for", ""},
        ValidateCase{"one of two drivers is known",
                     [](TestNode& node) {
                       node.report.devices.clear();
                       node.on_bus["other"] = 1;
                       node.discovered = false;
                     },
                     "driver", "waiting", "not been looked for", ""},
        ValidateCase{"no accelerator",
                     [](TestNode& node) {
                       node.report.devices.clear();
                       node.report.vendors = {{.vendor = "acme", .reason = "it is not loaded"}};
                       node.on_bus = {{"acme", 0}};
                     },
                     "devices", "skipped", "no accelerator", ""},
        ValidateCase{"a vendor without devices beside one with devices",
                     [](TestNode& node) {
                       node.report.vendors.push_back({.vendor = "other", .reason = "no driver"});
                       node.on_bus["other"] = 1;
                     },
                     "driver", "passed", "acme 1.0", ""},
        ValidateCase{"files that were not looked at", [](TestNode& node) { node.looked = false; },
                     "device-nodes", "waiting", "", ""},
        ValidateCase{"files of a new device",
                     [](TestNode& node) { node.files.erase("/dev/acme1"); }, "device-nodes",
                     "waiting", "new device files", ""},
        ValidateCase{"a missing file", [](TestNode& node) { node.files["/dev/acme1"] = {}; },
                     "device-nodes", "failed", "/dev/acme1 (device 1) does not exist", ""},
        ValidateCase{"a missing control file",
                     [](TestNode& node) { node.files["/dev/acmectl"] = {}; }, "device-nodes",
                     "failed", "/dev/acmectl does not exist", "create it: acme-make ctl"},
        ValidateCase{"a file that is no device",
                     [](TestNode& node) {
                       node.files["/dev/acme0"] = {Kind::kOther, 0, 0};
                     },
                     "device-nodes", "failed", "/dev/acme0 (device 0) is not a character device",
                     "remove it"},
        ValidateCase{"a device with other numbers",
                     [](TestNode& node) {
                       node.files["/dev/acme0"] = {Kind::kDevice, 195, 7};
                     },
                     "device-nodes", "failed", "has the numbers 195:7 and the driver has 195:0",
                     "remove it"},
        ValidateCase{"plain files alone",
                     [](TestNode& node) {
                       for (auto& [path, file] : node.files) file = {Kind::kOther, 0, 0};
                     },
                     "device-nodes", "passed", "3 device files", ""},
        ValidateCase{"the file of a device that is gone",
                     [](TestNode& node) {
                       node.files["/dev/acme1"] = {};
                       node.inventory.devices[1].health.state = device::HealthState::kGone;
                     },
                     "device-nodes", "passed", "2 device files", ""},
        ValidateCase{"a joined fabric",
                     [](TestNode& node) {
                       node.SetDetail(0, "joined");
                       node.SetDetail(1, "joined");
                     },
                     "fabric", "passed", "2 devices have joined", ""},
        ValidateCase{"a fabric that is being joined",
                     [](TestNode& node) {
                       node.SetDetail(0, "joined");
                       node.SetDetail(1, "joining");
                     },
                     "fabric", "waiting", "device 1: its fabric is joining", "start the manager"},
        ValidateCase{"a fabric that failed", [](TestNode& node) { node.SetDetail(1, "broken"); },
                     "fabric", "failed", "device 1: its fabric is broken", "start the manager"},
        ValidateCase{"an engine that was not asked",
                     [](TestNode& node) { node.report.allocators[0].device_list.clear(); },
                     "toolkit", "waiting", "containerd", ""},
        ValidateCase{
            "an engine that is not set up",
            [](TestNode& node) { node.toolkit.engine_problem = "containerd did not start"; },
            "toolkit", "failed", "containerd did not start", "doctor"},
        ValidateCase{"an engine without CDI",
                     [](TestNode& node) {
                       node.report.allocators[0].device_list = {"device-files"};
                       node.named.clear();
                     },
                     "toolkit", "passed", "by device-files", ""},
        ValidateCase{"CDI without specifications",
                     [](TestNode& node) { node.toolkit = {.off = "switched off"}; }, "toolkit",
                     "failed", "switched off", "cdi.enabled"},
        ValidateCase{"a device without a specification",
                     [](TestNode& node) { node.named.erase("G1"); }, "toolkit", "waiting", "G1",
                     ""},
        ValidateCase{"a specification that cannot be written",
                     [](TestNode& node) {
                       node.named.erase("G1");
                       node.toolkit.problems = {"the disk is full"};
                     },
                     "toolkit", "failed", "the disk is full", "doctor"},
        ValidateCase{"no hooks",
                     [](TestNode& node) { node.toolkit.why_no_hook = "there is no file"; },
                     "toolkit", "failed", "no hooks: there is no file", "cdi.hook"},
        ValidateCase{"a machine without a kubelet",
                     [](TestNode& node) { node.report.allocators[0].state = "closed"; }, "plugin",
                     "skipped", "", ""},
        ValidateCase{"a machine without a kubelet and CDI",
                     [](TestNode& node) {
                       node.report.allocators[0].state = "closed";
                       node.toolkit = {.off = "no permission"};
                     },
                     "toolkit", "skipped", "no permission", ""},
        ValidateCase{"devices of local users",
                     [](TestNode& node) {
                       for (auto& device : node.report.devices) device.allocator = "local";
                     },
                     "plugin", "skipped", "no device is assigned to the kubelet", ""},
        ValidateCase{"a kubelet that does not answer",
                     [](TestNode& node) {
                       node.report.allocators[0].state = "waiting";
                       node.report.allocators[0].reason = "no socket";
                     },
                     "plugin", "waiting", "no socket", ""},
        ValidateCase{"another plugin",
                     [](TestNode& node) {
                       node.report.allocators[0].state = "stepped-back";
                       node.report.allocators[0].reason = "another plugin serves acme.com/gpu";
                     },
                     "plugin", "failed", "another plugin serves", "remove the other"},
        ValidateCase{"one device that failed",
                     [](TestNode& node) {
                       node.report.devices[0].health_state = "unhealthy";
                       node.report.devices[0].health_reason = "it fell off";
                     },
                     "devices", "passed", "1 of 2 can be used; not G0: it fell off", ""},
        ValidateCase{"all devices failed",
                     [](TestNode& node) {
                       for (auto& device : node.report.devices) device.health_state = "unhealthy";
                     },
                     "devices", "failed", "no device can be used: G0: unhealthy; G1: unhealthy",
                     "penstock status"}),
    [](const auto& one) {
      std::string name;
      for (const char c : std::string(one.param.what)) name += c == ' ' ? '_' : c;
      return name;
    });

TEST(Validate, OneCauseHasOneFailure) {
  TestNode node;
  node.report.vendors = {{.vendor = "acme", .reason = "it is not loaded"}};
  for (auto& device : node.report.devices) device.health_state = "gone";
  EXPECT_EQ(States(node.Steps()),
            "driver=failed device-nodes=waiting fabric=waiting compute=waiting toolkit=waiting "
            "plugin=waiting devices=waiting");
  EXPECT_FALSE(api::AllPassed(node.Steps()));
}

TEST(Validate, WhatCannotBeInjectedWaitsForItsFiles) {
  TestNode node;
  node.files["/dev/acmectl"] = {};
  node.named.clear();
  node.toolkit.problems = {"/dev/acmectl is missing"};
  node.report.allocators[0].state = "waiting";
  EXPECT_EQ(States(node.Steps()),
            "driver=passed device-nodes=failed fabric=skipped compute=waiting toolkit=waiting "
            "plugin=waiting devices=passed");
}

TEST(Validate, ANodeWithoutAcceleratorsIsNotReady) {
  TestNode node;
  node.report.devices.clear();
  node.report.vendors.clear();
  node.on_bus.clear();
  EXPECT_FALSE(api::AllPassed(node.Steps()));
}

TEST(DeviceFiles, AreBelowDev) {
  TestNode node;
  device::Facts facts = *node.inventory.devices[0].facts;
  facts.files = {{"x", 1, 1}, {"/etc/passwd", 1, 1}, {"/dev", 1, 1}, {"/dev/dri/card0", 226, 0}};
  node.inventory.devices[0].facts = std::make_shared<const device::Facts>(facts);
  std::vector<std::string> paths;
  for (const WantedFile& file : WantedFiles(node.inventory, FindLinked)) paths.push_back(file.path);
  EXPECT_THAT(paths, ElementsAre("/dev/acmectl", "/dev/acme1"));
}

TEST(DeviceFiles, LookOnlyAtWhatStandsAtThePaths) {
  const std::vector<WantedFile> wanted = {{.path = "/dev/null", .of = {}, .remedy = {}},
                                          {.path = "/dev/no-such", .of = {}, .remedy = {}},
                                          {.path = "/dev/shm", .of = {}, .remedy = {}}};
  const auto below = LookAt("/", wanted, {}), itself = LookAt("/dev", wanted, {});
  EXPECT_EQ(below, itself);
  EXPECT_EQ(below.at("/dev/null"), (StandingFile{Kind::kDevice, 1, 3}));
  EXPECT_EQ(below.at("/dev/no-such").kind, Kind::kMissing);
  EXPECT_EQ(below.at("/dev/shm").kind, Kind::kOther);
  EXPECT_EQ(LookAt("/no-such-root", wanted, {}).at("/dev/null").kind, Kind::kMissing);
}

TEST(DeviceFiles, StandAsBeforeWhileTheirRootIsAway) {
  const os::TemporaryFolder folder;
  std::vector<WantedFile> wanted = {{.path = "/dev/acme0",
                                     .of = {},
                                     .remedy = {},
                                     .dev_root = folder / "root",
                                     .of_container = true}};
  const StandingFiles before = {{"/dev/acme0", {Kind::kDevice, 195, 0}}};
  const auto now = [&] { return LookAt("/", wanted, before).at("/dev/acme0").kind; };
  EXPECT_EQ(now(), Kind::kDevice);
  EXPECT_EQ(LookAt("/", wanted, {}).at("/dev/acme0").kind, Kind::kMissing);
  folder.Write("root/lib/firmware/acme", "");
  EXPECT_EQ(now(), Kind::kDevice);
  wanted[0].of_container = false;
  EXPECT_EQ(now(), Kind::kMissing) << "one of the host is not replaced like that";
  wanted[0].of_container = true;
  folder.Write("root/dev/acmectl", "");
  EXPECT_EQ(now(), Kind::kMissing);
}

}  // namespace
}  // namespace penstock::node::validate
