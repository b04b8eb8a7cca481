// Tests that specifications follow inventory and files, with a fictitious vendor, on real loops and
// a real folder. The tests wait for what is published.
#include "node/cdi/spec_writer.h"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "node/inventory/testing/acme_inventory.h"
#include "os/core/file.h"
#include "os/testing/eventually.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::cdi {
namespace {

using device::testing::FindAcme;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr char kForPeople[] = "/cdi/penstock-acme.com-gpu.json",
               kForKubelet[] = "/cdi/k8s.device-plugin.acme.com-gpu.json";

class CdiSpecWriterTest : public testing::Test {
 protected:
  CdiSpecWriterTest() {
    control_.Start();
    io_.Start();
    for (const char* file : {"dev/acmectl", "dev/acme0", "dev/acme1"}) folder_.Write(file, "");
  }
  ~CdiSpecWriterTest() override {
    OnLoop([this] {
      on_inventory_.Reset();
      heard_.Reset();
      keeper_.reset();
    });
    io_.Stop();
    control_.Stop();
  }

  void OnLoop(const std::function<void()>& function) {
    std::promise<void> done;
    control_.Post([&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }

  /// Sets the existing devices and the driver; without devices the driver is gone.
  void SetDevices(int count) {
    OnLoop([&] {
      inventory_.SetVendor(count == 0 ? inventory::VendorEntry{"acme", nullptr, ""}
                                      : inventory::AcmeVendor());
      inventory_.SetFacts("acme", inventory::AcmeDevices(count, 2), "pulled", base::WallTime{});
    });
  }

  void PutRoot(const std::string& root, const std::vector<std::string>& devices) const {
    for (const std::string& device : devices) folder_.Write(root + "/dev/" + device, "");
  }

  /// The driver is that of the root in run/driver, which a container put there.
  void OpenInContainer(const std::string& instance) {
    const std::string root = folder_ / "run/driver";
    inventory::VendorEntry vendor = inventory::AcmeVendor();
    vendor.place = std::make_shared<const inventory::DriverLocation>(
        inventory::DriverLocation{.container = true,
                                  .driver_root = root,
                                  .host_driver_root = "/run/driver",
                                  .dev_root = root,
                                  .host_dev_root = "/run/driver",
                                  .instance = instance});
    OnLoop([&] { inventory_.SetVendor(std::move(vendor)); });
  }

  /// One device that is divided into two, and has no file of its own.
  void SetDivided() {
    auto devices = inventory::AcmeDevices(3, 3);
    devices[2].files.clear();
    for (int part : {0, 1}) {
      devices[part].parent = devices[2].id;
      devices[part].part = std::to_string(part);
    }
    OnLoop([&] {
      inventory_.SetVendor(inventory::AcmeVendor());
      inventory_.SetFacts("acme", devices, "pulled", base::WallTime{});
    });
  }

  /// The device files of each name in the specification for users.
  std::map<std::string, std::vector<std::string>> FilesForPeople() const {
    const auto spec =
        api::cdi::Parse(os::ReadFile(folder_.path() + kForPeople).value_or(""), "spec");
    EXPECT_TRUE(spec.ok()) << spec.error().message();
    std::map<std::string, std::vector<std::string>> files;
    if (!spec.ok()) return files;
    for (const auto& device : spec->devices)
      for (const auto& node : device.edits.nodes) files[device.name].push_back(node.path);
    return files;
  }

  void Begin(bool for_kubelet = true) {
    OnLoop([this, for_kubelet] {
      const Places places{.driver_root = folder_.path(),
                          .dev_root = folder_.path(),
                          .sysfs_root = folder_ / "sys",
                          .proc_root = folder_ / "proc"};
      keeper_.emplace(control_, io_, inventory_, FindAcme,
                      CdiSpecWriter::Settings{.folder = folder_ / "cdi",
                                              .places = places,
                                              .options = {.hook = ""},
                                              .for_kubelet = for_kubelet});
      heard_ = keeper_->published().Subscribe([this](const auto&) { changed_.notify_all(); });
      on_inventory_ =
          inventory_.published().Subscribe([this](const auto&) { keeper_->DevicesChanged(); });
      keeper_->Begin();
    });
  }

  /// Waits for the expected state and returns what is published then, or at the timeout.
  Written WaitFor(const std::function<bool(const Written&)>& wanted) {
    std::unique_lock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!wanted(*keeper_->published().Get()) && std::chrono::steady_clock::now() < deadline)
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    return *keeper_->published().Get();
  }
  Written WaitForDevices(std::set<std::string> ids) {
    return WaitFor(
        [ids = std::move(ids)](const Written& written) { return written.devices == ids; });
  }

  os::TemporaryFolder folder_;
  os::Loop control_{"control"}, io_{"io"};
  inventory::Inventory inventory_;
  std::optional<CdiSpecWriter> keeper_;
  base::Subscription heard_, on_inventory_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

TEST_F(CdiSpecWriterTest, FilesAreThereBeforeSubscribersAreNotified) {
  SetDevices(2);
  Begin();
  const Written written = WaitForDevices({"G0", "G1"});
  EXPECT_THAT(written.devices, ElementsAre("G0", "G1"));
  EXPECT_THAT(written.kinds, ElementsAre("acme.com/gpu", "k8s.device-plugin.acme.com/gpu"));
  EXPECT_THAT(written.problems, IsEmpty());
  EXPECT_TRUE(os::Exists(folder_.path() + kForPeople));
}

TEST_F(CdiSpecWriterTest, SaysThatATextForTheKubeletDiffersAlsoWhereItsDevicesDoNot) {
  SetDevices(2);
  Begin();
  const Written first = WaitForDevices({"G0", "G1"});
  auto devices = inventory::AcmeDevices(2, 2);
  devices[1].files.push_back({"/dev/acme-more", 195, 7});
  folder_.Write("dev/acme-more", "");
  OnLoop([&] { inventory_.SetFacts("acme", devices, "pulled", base::WallTime{}); });
  const Written second = WaitFor([&](const Written& now) { return now.text != first.text; });
  EXPECT_NE(second.text, first.text);
  EXPECT_EQ(second.devices, first.devices);
}

TEST_F(CdiSpecWriterTest, FilesAreThoseOfThePlaceWhereTheDriverWasOpened) {
  SetDevices(1);
  Begin();
  WaitForDevices({"G0"});
  PutRoot("run/driver", {"acmectl", "acme0"});
  OpenInContainer("1");
  EXPECT_TRUE(os::Eventually([&] {
    const auto text = os::ReadFile(folder_.path() + kForPeople);
    return text.ok() && text->find("\"/run/driver/dev/acme0\"") != std::string::npos;
  }));
}

TEST_F(CdiSpecWriterTest, WhatWasMadeFromADriversRootStaysWhileItIsAway) {
  PutRoot("run/driver", {"acmectl", "acme0"});
  SetDevices(1);
  OpenInContainer("1");
  Begin();
  WaitForDevices({"G0"});
  std::filesystem::rename(folder_ / "run/driver", folder_ / "run/before");
  folder_.Write("run/driver/lib/firmware/acme", "");
  std::filesystem::remove(folder_.path() + kForPeople);
  EXPECT_TRUE(os::Eventually([&] { return os::Exists(folder_.path() + kForPeople); }))
      << "updated meanwhile, from what it had";
  EXPECT_THAT(keeper_->published().Get()->devices, ElementsAre("G0"));
  SetDevices(0);
  EXPECT_THAT(WaitForDevices({}).kinds, IsEmpty());
}

TEST_F(CdiSpecWriterTest, TheFilesOfARootThatReplacedAnotherAreFollowed) {
  PutRoot("first", {"acmectl", "acme0", "acme1"});
  PutRoot("second", {"acmectl", "acme0"});
  // Replaced without a word to who watches it, as by a mount: what it leads to is another link.
  folder_.Link("run/driver", folder_ / "current");
  folder_.Link("current", folder_ / "first");
  SetDevices(2);
  OpenInContainer("1");
  Begin();
  WaitForDevices({"G0", "G1"});
  folder_.Link("next", folder_ / "second");
  std::filesystem::rename(folder_ / "next", folder_ / "current");
  OpenInContainer("2");
  EXPECT_THAT(WaitForDevices({"G0"}).devices, ElementsAre("G0"));
  // Until the updates have ended that follow its own writing of specifications.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  folder_.Write("second/dev/acme1", "");
  EXPECT_THAT(WaitForDevices({"G0", "G1"}).devices, ElementsAre("G0", "G1"));
}

TEST_F(CdiSpecWriterTest, TheKubeletNamesDevicesByIdAndHasNoAll) {
  SetDevices(2);
  Begin();
  WaitForDevices({"G0", "G1"});
  const std::string path = folder_.path() + kForKubelet;
  const auto spec = api::cdi::Parse(os::ReadFile(path).value_or(""), path);
  ASSERT_TRUE(spec.ok()) << spec.error().message();
  std::vector<std::string> names;
  for (const auto& device : spec->devices) names.push_back(device.name);
  EXPECT_THAT(names, ElementsAre("G0", "G1"));
}

// NVIDIA's drivers before 470 name MIG devices so.
TEST_F(CdiSpecWriterTest, AnIdThatIsNoNameIsWrittenAsOneAndPublishedAsItIs) {
  OnLoop([&] {
    auto devices = inventory::AcmeDevices(1, 1);
    devices[0].id = "MIG-GPU-a/3/0";
    inventory_.SetVendor(inventory::AcmeVendor());
    inventory_.SetFacts("acme", devices, "pulled", base::WallTime{});
  });
  Begin();
  const Written written = WaitForDevices({"MIG-GPU-a/3/0"});
  EXPECT_THAT(written.devices, ElementsAre("MIG-GPU-a/3/0"));
  EXPECT_THAT(written.remarks, IsEmpty());
  const std::string path = folder_.path() + kForKubelet;
  const auto spec = api::cdi::Parse(os::ReadFile(path).value_or(""), path);
  ASSERT_TRUE(spec.ok()) << spec.error().message();
  ASSERT_EQ(spec->devices.size(), 1u);
  EXPECT_EQ(spec->devices[0].name, "MIG-GPU-a_3_0");
}

// A driver may give a device that is divided no files of its own.
TEST_F(CdiSpecWriterTest, TheNameOfADividedDeviceMeansAllItsParts) {
  SetDivided();
  Begin();
  EXPECT_THAT(WaitForDevices({"G0", "G1", "G2"}).remarks, IsEmpty());
  auto files = FilesForPeople();
  EXPECT_THAT(files["G0"], ElementsAre("/dev/acme0"));
  EXPECT_THAT(files["G2"], ElementsAre("/dev/acme0", "/dev/acme1"));
  EXPECT_THAT(files["all"], ElementsAre("/dev/acme0", "/dev/acme1"));
}

TEST_F(CdiSpecWriterTest, OfADividedDeviceWithAnIncompletePartTheOtherPartsHaveNames) {
  SetDivided();
  ASSERT_EQ(::unlink((folder_ / "dev/acme1").c_str()), 0);
  Begin();
  const Written written = WaitForDevices({"G0"});
  EXPECT_THAT(written.devices, ElementsAre("G0"));
  EXPECT_THAT(
      written.remarks,
      testing::UnorderedElementsAre(
          AllOf(StartsWith("device G1 is omitted "), HasSubstr("/dev/acme1")),
          AllOf(StartsWith("device G2 is omitted "), HasSubstr("G1"), HasSubstr("/dev/acme1"))));
  auto files = FilesForPeople();
  EXPECT_EQ(files.count("G2"), 0u) << "it would be less than was asked for";
  EXPECT_THAT(files["all"], ElementsAre("/dev/acme0"));
}

TEST_F(CdiSpecWriterTest, FollowsDevicesThatComeAndGoAndLeavesNothingOfADriverThatIsGone) {
  SetDevices(1);
  Begin();
  EXPECT_THAT(WaitForDevices({"G0"}).devices, ElementsAre("G0"));
  SetDevices(2);
  EXPECT_THAT(WaitForDevices({"G0", "G1"}).devices, ElementsAre("G0", "G1"));
  SetDevices(0);
  EXPECT_THAT(WaitForDevices({}).kinds, IsEmpty());
  EXPECT_FALSE(os::Exists(folder_.path() + kForPeople));
}

// NVIDIA's device plugin has a file of the same name.
TEST_F(CdiSpecWriterTest, AnAgentWithoutPodsLeavesTheFilesOfAnotherDevicePluginAlone) {
  const std::string others =
      R"({"cdiVersion":"0.5.0","kind":"k8s.device-plugin.acme.com/gpu","devices":[]})";
  folder_.Write(kForKubelet, others);
  const auto text = [this] { return os::ReadFile(folder_.path() + kForKubelet).value_or("none"); };
  SetDevices(1);
  Begin(false);
  const Written written = WaitForDevices({"G0"});
  EXPECT_THAT(written.devices, ElementsAre("G0")) << "the validation asks for them";
  EXPECT_THAT(written.kinds, ElementsAre("acme.com/gpu"));
  EXPECT_TRUE(os::Exists(folder_.path() + kForPeople));
  EXPECT_EQ(text(), others);
  SetDevices(0);
  EXPECT_THAT(WaitForDevices({}).kinds, IsEmpty());
  EXPECT_FALSE(os::Exists(folder_.path() + kForPeople));
  EXPECT_EQ(text(), others);
}

TEST_F(CdiSpecWriterTest, AnAgentWithoutPodsThatCannotWriteNamesNoDevices) {
  folder_.Write("cdi", "a file");
  SetDevices(1);
  Begin(false);
  const Written written = WaitFor([](const Written& now) { return !now.problems.empty(); });
  EXPECT_THAT(written.problems, ElementsAre(HasSubstr(folder_ / "cdi")));
  EXPECT_THAT(written.devices, IsEmpty());
}

TEST_F(CdiSpecWriterTest, DevicesThatComeBackAsTheyWereAreWrittenAgain) {
  SetDevices(2);
  Begin();
  WaitForDevices({"G0", "G1"});
  SetDevices(0);
  EXPECT_THAT(WaitForDevices({}).kinds, IsEmpty());
  SetDevices(2);
  EXPECT_THAT(WaitForDevices({"G0", "G1"}).devices, ElementsAre("G0", "G1"));
}

TEST_F(CdiSpecWriterTest, AFileThatSomeoneRemovesComesBack) {
  SetDevices(1);
  Begin();
  WaitForDevices({"G0"});
  const std::string path = folder_.path() + kForPeople;
  ASSERT_EQ(::unlink(path.c_str()), 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!os::Exists(path) && std::chrono::steady_clock::now() < deadline) OnLoop([] {});
  EXPECT_TRUE(os::Exists(path));
}

TEST_F(CdiSpecWriterTest, AnotherFilesDevicesAreLeftToItWhileItIsThere) {
  SetDevices(1);
  Begin();
  WaitForDevices({"G0"});
  const std::string other =
      "---\ncdiVersion: 0.5.0\nkind: acme.com/gpu\ndevices: [{name: all, containerEdits: {env: "
      "[A=b]}}]\n";
  ASSERT_TRUE(os::WriteFileAtomically(folder_ / "cdi/acme.yaml", other).ok());
  const Written without = WaitFor([](const Written& written) { return !written.problems.empty(); });
  EXPECT_THAT(without.problems, ElementsAre(HasSubstr("acme.yaml")));
  EXPECT_THAT(without.kinds, ElementsAre("k8s.device-plugin.acme.com/gpu"));
  ASSERT_EQ(::unlink((folder_ / "cdi/acme.yaml").c_str()), 0);
  EXPECT_THAT(WaitFor([](const Written& written) { return written.problems.empty(); }).kinds,
              testing::SizeIs(2));
}

}  // namespace
}  // namespace penstock::node::cdi
