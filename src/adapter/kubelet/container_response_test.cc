#include "adapter/kubelet/container_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"

namespace penstock::adapter::kubelet {
namespace {

using api::DeviceList;
using node::allocate::ConsumerKind;
using protocol::kubelet::ContainerEdits;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

/// "container:host" of each mount, "container:host:permissions" of each file.
std::vector<std::string> Mounts(const ContainerEdits& edits) {
  std::vector<std::string> mounts;
  for (const auto& mount : edits.mounts)
    mounts.push_back(mount.container_path + ":" + mount.host_path);
  return mounts;
}
std::vector<std::string> Files(const ContainerEdits& edits) {
  std::vector<std::string> files;
  for (const auto& file : edits.files)
    files.push_back(file.container_path + ":" + file.host_path + ":" + file.permissions);
  return files;
}

/// A container that gets G1, G3 and a server's pipe, on a machine whose specifications have the
/// class "extra" and the device 7 of "lane".
class ContainerAnswer : public testing::Test {
 protected:
  ContainerEdits Answer(std::vector<DeviceList> strategies, bool files = false) {
    const DeviceListChoice listing{.strategies = std::move(strategies), .files = files};
    const std::vector<const device::Facts*> devices = {&g1_, &g3_};
    device::Edits edits =
        acme_.ForContainer(devices, device::testing::AcmeDriver(), device::DeviceNames::kIds);
    edits.environment["PIPE"] = "/pipe";
    edits.mounts.push_back({"/pipe", "/run/pipe", false});
    return BuildContainerResponse(
        edits, {{&acme_, devices}},
        {.listing = listing,
         .config = config_,
         .consumer = consumer_,
         .written = nothing_written_ ? nullptr : &written_,
         .unique = [] { return std::string("u-1"); },
         .host_path = [](const std::string& path) { return "/host" + path; }});
  }

  const device::testing::AcmeDialect acme_;
  device::Facts g1_ = device::testing::AcmeDevice(1, 4), g3_ = device::testing::AcmeDevice(3, 4);
  node::cdi::Written written_{
      .devices = {"G1", "G3"},
      .others = {"k8s.device-plugin.acme.com/extra=all", "k8s.device-plugin.acme.com/lane=7"}};
  api::ContainersConfig config_;
  ConsumerKind consumer_ = ConsumerKind::kContainer;
  bool nothing_written_ = false;
};

TEST_F(ContainerAnswer, ByCriTheEngineIsGivenNamesAndNothingElse) {
  const ContainerEdits edits = Answer({DeviceList::kCdiCri});
  EXPECT_THAT(edits.cdi_devices, ElementsAre("k8s.device-plugin.acme.com/gpu=G1",
                                             "k8s.device-plugin.acme.com/gpu=G3"));
  EXPECT_THAT(edits.annotations, IsEmpty());
  EXPECT_THAT(edits.files, IsEmpty());
  // A wrapper of the runtime that saw the devices would inject them again; the server's edits are
  // added all the same.
  EXPECT_THAT(edits.environment, ElementsAre(Pair("ACME", "nothing"), Pair("PIPE", "/pipe")));
  EXPECT_THAT(Mounts(edits), ElementsAre("/pipe:/run/pipe"));
}

TEST_F(ContainerAnswer, AnIdThatIsNoNameIsNamedAsInTheSpecification) {
  g3_.id = "MIG-GPU-a/3/0";
  EXPECT_THAT(Answer({DeviceList::kCdiCri}).cdi_devices,
              ElementsAre("k8s.device-plugin.acme.com/gpu=G1",
                          "k8s.device-plugin.acme.com/gpu=MIG-GPU-a_3_0"));
}

TEST_F(ContainerAnswer, ByAnnotationTheSameNamesStandInOneValue) {
  config_.cdi_annotation_prefix = "x.io/";
  const ContainerEdits edits = Answer({DeviceList::kCdiAnnotations});
  EXPECT_THAT(
      edits.annotations,
      ElementsAre(Pair("x.io/acme-device-plugin_u-1",
                       "k8s.device-plugin.acme.com/gpu=G1,k8s.device-plugin.acme.com/gpu=G3")));
  EXPECT_THAT(edits.cdi_devices, IsEmpty());
  EXPECT_EQ(edits.environment.at("ACME"), "nothing");
}

TEST_F(ContainerAnswer, ByVariableWithDeviceFilesOrWithout) {
  EXPECT_EQ(Answer({DeviceList::kEnvvar}).environment.at("ACME"), "G1,G3");
  EXPECT_THAT(Answer({DeviceList::kEnvvar}).files, IsEmpty());
  EXPECT_THAT(Files(Answer({DeviceList::kEnvvar}, true)),
              ElementsAre("/dev/acme1:/host/dev/acme1:rw", "/dev/acme3:/host/dev/acme3:rw",
                          "/dev/acmectl:/host/dev/acmectl:rw"));
}

TEST_F(ContainerAnswer, ByMountsOfNothingWhosePlacesAreTheNames) {
  const ContainerEdits edits = Answer({DeviceList::kVolumeMounts});
  EXPECT_EQ(edits.environment.at("ACME"), "/run/acme");
  EXPECT_THAT(Mounts(edits),
              ElementsAre("/pipe:/run/pipe", "/run/acme/G1:/dev/null", "/run/acme/G3:/dev/null"));
  consumer_ = ConsumerKind::kContainerByIndex;
  EXPECT_THAT(Mounts(Answer({DeviceList::kVolumeMounts})),
              ElementsAre("/pipe:/run/pipe", "/run/acme/1:/dev/null", "/run/acme/3:/dev/null"));
}

TEST_F(ContainerAnswer, AllWaysTogetherSayTheSame) {
  const ContainerEdits edits = Answer({DeviceList::kEnvvar, DeviceList::kVolumeMounts,
                                       DeviceList::kCdiAnnotations, DeviceList::kCdiCri},
                                      true);
  EXPECT_EQ(edits.environment.at("ACME"),
            "/run/acme");  // the folder of the mounts, as in NVIDIA's plugin
  EXPECT_EQ(edits.mounts.size(), 3u);
  EXPECT_EQ(edits.files.size(), 3u);
  EXPECT_EQ(edits.cdi_devices.size(), 2u);
  EXPECT_EQ(edits.annotations.size(), 1u);
  EXPECT_EQ(Answer({DeviceList::kEnvvar, DeviceList::kCdiCri}).environment.at("ACME"), "G1,G3");
}

TEST_F(ContainerAnswer, FurtherDevicesComeByTheSameWays) {
  config_.device_classes = {"extra", "lane=7", "lane=8", "unheard-of"};
  EXPECT_THAT(
      Answer({DeviceList::kCdiCri}).cdi_devices,
      ElementsAre("k8s.device-plugin.acme.com/gpu=G1", "k8s.device-plugin.acme.com/gpu=G3",
                  "k8s.device-plugin.acme.com/extra=all", "k8s.device-plugin.acme.com/lane=7"));
  EXPECT_FALSE(Answer({DeviceList::kCdiCri}).environment.contains("ACME_EXTRA"));
  EXPECT_THAT(Answer({DeviceList::kEnvvar}).environment,
              ElementsAre(Pair("ACME", "G1,G3"), Pair("ACME_EXTRA", "enabled"),
                          Pair("ACME_LANES", "7"), Pair("PIPE", "/pipe")));
  EXPECT_THAT(Mounts(Answer({DeviceList::kVolumeMounts})),
              ElementsAre("/pipe:/run/pipe", "/run/acme/G1:/dev/null", "/run/acme/G3:/dev/null",
                          "/run/acme/lanes/7:/dev/null"));
  // Without written specifications, it is unknown which devices are present: the wrapper that reads
  // the variable checks that.
  nothing_written_ = true;
  EXPECT_EQ(Answer({DeviceList::kEnvvar}).environment.at("ACME_LANES"), "7,8");
}

TEST_F(ContainerAnswer, KnowsWhichClassesAreMissing) {
  const std::vector<std::string> classes = {"extra", "lane=7", "lane=8", "unheard-of"};
  EXPECT_THAT(MissingClasses(classes, {&acme_}, &written_), ElementsAre("lane=8", "unheard-of"));
  EXPECT_THAT(MissingClasses(classes, {&acme_}, nullptr),
              ElementsAre("extra", "lane=7", "lane=8", "unheard-of"));
  EXPECT_THAT(MissingClasses({"extra"}, {}, &written_), ElementsAre("extra"));
}

}  // namespace
}  // namespace penstock::adapter::kubelet
