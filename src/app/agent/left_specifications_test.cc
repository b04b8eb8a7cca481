// Tests which specifications of an earlier agent go, and when, as Containers removes them.
#include "app/agent/left_specifications.h"

#include <filesystem>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/agent/containers.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"

namespace penstock::app {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

/// Specifications are switched off, and an earlier agent has left some.
class LeftSpecificationsTest : public testing::Test {
 protected:
  LeftSpecificationsTest() {
    config_.paths.cdi_root = folder_ / "cdi";
    config_.cdi.enabled = api::Switch::kOff;
    // The kubelet's engine is none of this machine's.
    config_.containers.engine_socket = folder_ / "no.sock";
    config_.paths.state_dir = folder_ / "state";
    config_.paths.kubelet_dir = folder_ / "kubelet";
    for (const char* file :
         {"penstock-nvidia.com-gpu.json", "k8s.device-plugin.nvidia.com-gpu.json", "nvidia.yaml"})
      folder_.Write(std::string("cdi/") + file, "");
    loop_.Start();
  }
  ~LeftSpecificationsTest() override {
    loop_.Run([this] { containers_.reset(); });
    loop_.Stop();
  }

  void Start(bool for_pods) {
    loop_.Run([&] {
      containers_.emplace(loop_.loop(), loop_.loop(), config_, inventory_, ledger_, folder_ / "own",
                          for_pods, [] {});
    });
  }
  void HoldersKnown() {
    loop_.Run([this] { containers_->HoldersKnown(); });
    loop_.Settle();
  }
  void Hold(const std::string& lease) {
    loop_.Run([&] {
      EXPECT_TRUE(ledger_.Add({.id = lease, .slots = {{.id = lease, .device = lease}}}).ok());
      containers_->LedgerChanged();
    });
    loop_.Settle();
  }
  void Release(const std::string& lease) {
    loop_.Run([&] {
      ledger_.Release(lease);
      containers_->LedgerChanged();
    });
    loop_.Settle();
  }
  std::vector<std::string> Problems() {
    std::vector<std::string> problems;
    loop_.Run([&] { problems = containers_->Report(true).problems; });
    return problems;
  }
  std::vector<std::string> Files() const {
    return os::ListDirectory(config_.paths.cdi_root).value_or({});
  }

  const os::TemporaryFolder folder_;
  os::TurnedLoop loop_{"test"};
  api::NodeConfig config_;
  node::inventory::Inventory inventory_;
  node::ledger::Ledger ledger_;
  std::optional<Containers> containers_;
};

TEST_F(LeftSpecificationsTest, GoOnceItIsKnownThatNoDeviceIsHeld) {
  Start(true);
  loop_.Settle();
  EXPECT_THAT(Files(), SizeIs(3)) << "the kubelet may know of pods that the ledger does not";
  HoldersKnown();
  EXPECT_THAT(Files(), ElementsAre("nvidia.yaml"));
  EXPECT_THAT(Problems(), ElementsAre("switched off"));
}

TEST_F(LeftSpecificationsTest, OfAnotherPluginStay) {
  folder_.Write("cdi/k8s.device-plugin.nvidia.com-gpu.json",
                R"({"hooks": [{"path": "/usr/bin/nvidia-cdi-hook"}]})");
  Start(true);
  HoldersKnown();
  EXPECT_THAT(Files(), ElementsAre("k8s.device-plugin.nvidia.com-gpu.json", "nvidia.yaml"));
}

TEST_F(LeftSpecificationsTest, OfTheKubeletStayWhereThisAgentServesNoPods) {
  Start(false);
  HoldersKnown();
  EXPECT_THAT(Files(), ElementsAre("k8s.device-plugin.nvidia.com-gpu.json", "nvidia.yaml"));
  EXPECT_THAT(Problems(), ElementsAre("switched off"));
}

TEST_F(LeftSpecificationsTest, StayAndAreNamedUntilWhoHeldDevicesHasReleasedThem) {
  Start(true);
  Hold("GPU-a");
  HoldersKnown();
  Hold("GPU-b");  // got its device from this agent, which names none of these files
  EXPECT_THAT(Files(), SizeIs(3));
  EXPECT_THAT(Problems(), Contains(AllOf(HasSubstr(config_.paths.cdi_root),
                                         HasSubstr("penstock-nvidia.com-gpu.json"),
                                         HasSubstr("k8s.device-plugin.nvidia.com-gpu.json"),
                                         HasSubstr("released"), Not(HasSubstr("nvidia.yaml")))));
  Release("GPU-a");
  EXPECT_THAT(Files(), ElementsAre("nvidia.yaml"));
  EXPECT_THAT(Problems(), Not(Contains(HasSubstr("penstock-nvidia"))));
}

TEST_F(LeftSpecificationsTest, ThatCannotBeRemovedAreNamedWithTheReason) {
  std::filesystem::remove(folder_ / "cdi/penstock-nvidia.com-gpu.json");
  folder_.Write("cdi/penstock-nvidia.com-gpu.json/file", "");
  Start(false);
  HoldersKnown();
  EXPECT_THAT(Problems(), Contains(AllOf(HasSubstr("penstock-nvidia.com-gpu.json"),
                                         HasSubstr("until they can be removed (remove "))));
}

}  // namespace
}  // namespace penstock::app
