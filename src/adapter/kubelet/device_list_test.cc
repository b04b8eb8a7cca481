#include "adapter/kubelet/device_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::adapter::kubelet {
namespace {

using api::DeviceList;
using api::Switch;
using protocol::engine::cri::EngineStatus;
using protocol::engine::cri::FromAnswers;
using testing::ElementsAre;

constexpr char kFolder[] = "/var/run/cdi";
constexpr char kOn[] = R"({"enableCDI":true,"cdiSpecDirs":["/etc/cdi","/run/cdi"]})";
constexpr char kCdiIsOff[] = R"({"enableCDI":false})";

EngineStatus Answered(const std::string& name, const std::string& version,
                      const std::string& config = "") {
  return {.engine = FromAnswers(name, version, config), .problem = "", .queried = true};
}

/// "cdi-cri: containerd 1.7.24 injects CDI devices", as in status.
std::string Said(const DeviceListChoice& listing) {
  std::string text;
  for (const std::string& word : listing.Names()) text += (text.empty() ? "" : ", ") + word;
  return text + ": " + listing.reason;
}

std::string Said(const EngineStatus& known, const std::string& folder = kFolder) {
  return Said(ChooseDeviceList({}, &known, folder));
}

TEST(DeviceList, FollowsTheEnginesWordWhereNothingIsConfigured) {
  EXPECT_EQ(Said(Answered("containerd", "1.7.24", kOn)),
            "cdi-cri: containerd 1.7.24 injects CDI devices");
  EXPECT_EQ(Said(Answered("cri-o", "1.31.0")), "cdi-cri: cri-o 1.31.0 injects CDI devices");
  EXPECT_EQ(Said(Answered("containerd", "1.7.1", kOn)),
            "cdi-annotations: containerd 1.7.1 injects CDI devices, and reads their names from "
            "annotations");
  EXPECT_EQ(Said(Answered("containerd", "1.7.24", kCdiIsOff)),
            "envvar, device-files: CDI is disabled in containerd 1.7.24 (enable_cdi = false); "
            "enable it with penstock runtime configure");
  EXPECT_EQ(Said(Answered("containerd", "1.6.20", "{}")),
            "envvar, device-files: containerd 1.6.20 does not support CDI (containerd supports it "
            "from 1.7 on)");
  EXPECT_EQ(Said(Answered("docker", "27.5.1")),
            "envvar, device-files: docker 27.5.1 does not report whether it injects CDI devices; "
            "if it does, set containers.deviceList");
}

TEST(DeviceList, AnEngineThatLooksElsewhereFindsNothing) {
  EXPECT_EQ(Said(Answered("containerd", "2.0.0",
                          R"({"enableCDI":true,"cdiSpecDirs":["/etc/cdi","/opt/cdi"]})")),
            "envvar, device-files: containerd 2.0.0 reads CDI specifications from /etc/cdi, "
            "/opt/cdi, but they are written to /var/run/cdi");
  EXPECT_EQ(Said(Answered("containerd", "2.0.0", kOn), ""),
            "envvar, device-files: no CDI specifications are written on this node");
}

TEST(DeviceList, WaitsForTheEnginesFirstAnswerAndForNoLaterOne) {
  const EngineStatus asking;
  EXPECT_FALSE(ChooseDeviceList({}, &asking, kFolder).decided);
  EXPECT_TRUE(ChooseDeviceList({.device_list = {DeviceList::kCdiCri}}, &asking, kFolder).decided);
  EXPECT_TRUE(ChooseDeviceList({}, &asking, "")
                  .decided);  // whatever the engine answers, there is nothing to inject
  EXPECT_TRUE(ChooseDeviceList({}, nullptr, kFolder).decided);
  const EngineStatus nobody{
      .engine = {}, .problem = "no container engine was found", .queried = true};
  EXPECT_EQ(Said(nobody), "envvar, device-files: no container engine was found");
  EngineStatus gone = Answered("containerd", "1.7.24", kOn);
  gone.problem = "the container engine at /run/x.sock is gone";
  EXPECT_EQ(Said(gone), "cdi-cri: containerd 1.7.24 injects CDI devices");
}

TEST(DeviceList, AConfiguredListIsObeyedAndWhatIsWrongWithItSaid) {
  const EngineStatus on = Answered("containerd", "1.7.24", kOn),
                     off = Answered("containerd", "1.7.24", kCdiIsOff);
  const auto said = [](std::vector<DeviceList> list, const EngineStatus* known,
                       Switch files = Switch::kAuto) {
    return Said(
        ChooseDeviceList({.device_list = std::move(list), .device_files = files}, known, kFolder));
  };
  EXPECT_EQ(said({DeviceList::kCdiCri}, &on), "cdi-cri: configured");
  EXPECT_EQ(said({DeviceList::kCdiAnnotations, DeviceList::kEnvvar}, &on),
            "cdi-annotations, envvar: configured");
  EXPECT_EQ(said({DeviceList::kCdiCri}, &off),
            "cdi-cri, device-files: configured, although CDI is disabled in containerd 1.7.24 "
            "(enable_cdi = false); enable it with penstock runtime configure");
  EXPECT_EQ(said({DeviceList::kEnvvar}, &on), "envvar, device-files: configured");
  EXPECT_EQ(said({DeviceList::kVolumeMounts}, nullptr), "volume-mounts, device-files: configured");
  EXPECT_EQ(said({DeviceList::kEnvvar}, &on, Switch::kOff), "envvar: configured");
  EXPECT_EQ(said({DeviceList::kCdiCri}, &on, Switch::kOn), "cdi-cri, device-files: configured");
}

TEST(DeviceList, DeviceFilesAreLeftOutWhereThatIsConfigured) {
  const EngineStatus off = Answered("containerd", "1.7.24", kCdiIsOff);
  EXPECT_THAT(ChooseDeviceList({.device_files = Switch::kOff}, &off, kFolder).Names(),
              ElementsAre("envvar"));
}

TEST(DeviceList, ReportsCdiAloneFromCdiBesideOthers) {
  DeviceListChoice listing{.strategies = {DeviceList::kCdiCri, DeviceList::kCdiAnnotations}};
  EXPECT_TRUE(listing.cdi());
  EXPECT_TRUE(listing.alone());
  listing.strategies.push_back(DeviceList::kEnvvar);
  EXPECT_TRUE(listing.cdi());
  EXPECT_FALSE(listing.alone());
  listing.strategies = {DeviceList::kVolumeMounts};
  EXPECT_FALSE(listing.cdi());
  EXPECT_FALSE(listing.alone());
}

}  // namespace
}  // namespace penstock::adapter::kubelet
