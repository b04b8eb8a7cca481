// Tests how containers of pods get devices, with an engine that is asked and specifications that
// appear and disappear.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapter/kubelet/testing/kubelet_adapter_fixture.h"
#include "base/core/testing/must.h"
#include "os/testing/eventually.h"
#include "protocol/engine/cri/fake/fake_engine.h"

namespace penstock::adapter::kubelet {
namespace {

using protocol::engine::cri::EngineWatcher;
using protocol::engine::cri::FakeEngine;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Pair;
using testing::SizeIs;

constexpr char kWithoutCdi[] = R"({"enableCDI":false})";

class KubeletContainersTest : public KubeletAdapterTest {
 protected:
  KubeletContainersTest() { written_.Set({.devices = {"G0", "G1", "G2", "G3"}}); }
  ~KubeletContainersTest() override {
    On([this] {
      on_engine_.Reset();
      on_written_.Reset();
      adapter_.reset();
      inquiry_.reset();
    });
  }

  /// Creates the adapter on a node with this engine and with specifications.
  void Begin(FakeEngine::Says says = {}) {
    engine_.Start(std::move(says));
    BeginWithoutEngine();
  }
  void BeginWithoutEngine() {
    On([this] {
      inquiry_ = std::make_unique<EngineWatcher>(
          control_, io_,
          EngineWatcher::Options{.socket = socket_,
                                 .retry = std::chrono::milliseconds(1),
                                 .retry_most = std::chrono::milliseconds(20)});
    });
    Make(inquiry_.get(), &written_);
    On([this] {
      const auto changed = [this](const auto&) { adapter_->ContainersChanged(); };
      on_engine_ = inquiry_->published().Subscribe(changed);
      on_written_ = written_.Subscribe(changed);
      adapter_->Open();
    });
  }

  void SetWritten(node::cdi::Written written) {
    On([&] { written_.Set(std::move(written)); });
  }
  void Configure(const api::ContainersConfig& config) {
    On([&] {
      containers_ = config;
      adapter_->ContainersChanged();
    });
  }
  api::AllocatorReport Report() {
    api::AllocatorReport report;
    On([&] { report = adapter_->Report(); });
    return report;
  }
  std::map<std::string, std::string> Withheld() {
    std::map<std::string, std::string> withheld;
    On([&] { withheld = adapter_->withheld(); });
    return withheld;
  }
  /// Waits until the adapter reports this device list.
  bool WaitForDeviceList(const std::vector<std::string>& words) {
    return os::Eventually([&] { return Report().device_list == words; });
  }

  const std::string socket_ = folder_ / "engine.sock";
  FakeEngine engine_{socket_};
  base::Published<node::cdi::Written> written_;
  std::unique_ptr<EngineWatcher> inquiry_;
  base::Subscription on_engine_, on_written_;
};

TEST_F(KubeletContainersTest, AnEngineThatInjectsCdiDevicesIsGivenTheirNames) {
  Begin();
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
  const auto answer = Must(kubelet_.Allocate(kGpu, {"G3", "G1"}));
  EXPECT_THAT(answer.cdi_devices, ElementsAre("k8s.device-plugin.acme.com/gpu=G1",
                                              "k8s.device-plugin.acme.com/gpu=G3"));
  EXPECT_THAT(answer.files, IsEmpty());
  EXPECT_THAT(answer.environment, ElementsAre(Pair("ACME", "nothing")));
  const api::AllocatorReport report = Report();
  EXPECT_THAT(report.device_list, ElementsAre("cdi-cri"));
  EXPECT_EQ(report.device_list_reason, "containerd 1.7.24 injects CDI devices");
}

TEST_F(KubeletContainersTest, AnyOtherIsGivenDeviceFiles) {
  Begin({.config = kWithoutCdi});
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
  const auto answer = Must(kubelet_.Allocate(kGpu, {"G1"}));
  EXPECT_THAT(answer.cdi_devices, IsEmpty());
  EXPECT_THAT(answer.files, Contains("/dev/acme1:/host/dev/acme1:rw"));
  EXPECT_EQ(answer.environment.at("ACME"), "G1");
  EXPECT_THAT(Report().device_list, ElementsAre("envvar", "device-files"));
  EXPECT_THAT(Report().device_list_reason,
              HasSubstr("CDI is disabled in containerd 1.7.24 (enable_cdi = false)"));
}

TEST_F(KubeletContainersTest, AnotherAnswerOfTheEngineCountsFromThenOn) {
  Begin({.config = kWithoutCdi});
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
  engine_.Stop();
  engine_.Start({});
  EXPECT_TRUE(WaitForDeviceList({"cdi-cri"}));
  EXPECT_THAT(kubelet_.Allocate(kGpu, {"G1"})->cdi_devices, SizeIs(1));
}

TEST_F(KubeletContainersTest, TheEngineIsAskedAgainWhenTheKubeletRestarts) {
  Begin();
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
  const int before = engine_.asked();
  kubelet_.Restart();
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
  EXPECT_TRUE(os::Eventually([&] { return engine_.asked() > before; }));
}

TEST_F(KubeletContainersTest, TheKubeletHearsOfADeviceOnceASpecificationNamesIt) {
  written_.Set({.devices = {"G0"}});
  Begin();
  ASSERT_TRUE(WaitForIds(kGpu, {"G0"}));
  EXPECT_THAT(Withheld(), Contains(Pair("G1", "no CDI specification names this device yet")));
  const auto refused = kubelet_.Allocate(kGpu, {"G1"});
  EXPECT_FALSE(refused.ok());
  SetWritten({.devices = {"G0", "G1", "G2", "G3"}});
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
  SetWritten({.devices = {"G0", "G1", "G2"}});
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 3));
  EXPECT_TRUE(WaitForIds(kGpu, {"G0", "G1", "G2", "G3"}));  // unhealthy, not gone
}

TEST_F(KubeletContainersTest, NothingIsGivenOutBeforeTheEngineHasAnsweredOnce) {
  engine_.Start({.silent = true});
  BeginWithoutEngine();
  EXPECT_THAT(Withheld(), SizeIs(4));
  EXPECT_EQ(Report().reason, "querying the capabilities of the container engine");
  EXPECT_THAT(Report().device_list, IsEmpty());
  Configure({.device_list = {api::DeviceList::kEnvvar}});
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
}

TEST_F(KubeletContainersTest, WithoutAnEngineDevicesAreGivenAsFiles) {
  BeginWithoutEngine();
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
  EXPECT_THAT(Report().device_list, ElementsAre("envvar", "device-files"));
  EXPECT_THAT(Report().device_list_reason,
              HasSubstr("the container engine at " + socket_ + " does not answer"));
}

TEST_F(KubeletContainersTest, WhatIsConfiguredCountsFromTheNextContainerOn) {
  Begin();
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
  Configure({.device_list = {api::DeviceList::kCdiAnnotations, api::DeviceList::kVolumeMounts},
             .device_files = api::Switch::kOn});
  const auto answer = Must(kubelet_.Allocate(kGpu, {"G2"}));
  ASSERT_THAT(answer.annotations, SizeIs(1));
  EXPECT_THAT(answer.annotations.begin()->first,
              MatchesRegex("cdi.k8s.io/"
                           "acme-device-plugin_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{"
                           "3}-[0-9a-f]{12}"));
  EXPECT_EQ(answer.annotations.begin()->second, "k8s.device-plugin.acme.com/gpu=G2");
  EXPECT_THAT(answer.mounts, ElementsAre("/run/acme/G2:/dev/null"));
  EXPECT_THAT(answer.files, SizeIs(2));
  EXPECT_THAT(Report().device_list,
              ElementsAre("cdi-annotations", "volume-mounts", "device-files"));
  const auto other = kubelet_.Allocate(kGpu, {"G3"});
  EXPECT_NE(other->annotations.begin()->first, answer.annotations.begin()->first);
}

TEST_F(KubeletContainersTest, ARequiredDeviceThatIsMissingKeepsAllBack) {
  containers_ = {.device_classes = {"extra", "lane=7"}, .required_classes = {"lane=7"}};
  Begin();
  EXPECT_TRUE(WaitForDeviceList({"cdi-cri"}));
  EXPECT_THAT(Withheld(),
              Contains(Pair(
                  "G0", "lane=7: required (containers.requiredClasses) but missing on this node")));
  SetWritten(
      {.devices = {"G0", "G1", "G2", "G3"}, .others = {"k8s.device-plugin.acme.com/lane=7"}});
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
  EXPECT_THAT(
      kubelet_.Allocate(kGpu, {"G0"})->cdi_devices,
      ElementsAre("k8s.device-plugin.acme.com/gpu=G0", "k8s.device-plugin.acme.com/lane=7"));
  EXPECT_EQ(Report().device_list_reason,
            "containerd 1.7.24 injects CDI devices; not on this node: extra");
}

}  // namespace
}  // namespace penstock::adapter::kubelet
