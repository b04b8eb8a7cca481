// Tests which pods hold devices, and what is known of them.
#include "operator/driver/gpu_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cluster {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

json PodWith(const char* spec, const char* metadata = "{}", const char* status = "{}") {
  json pod = {{"metadata", json::parse(metadata)},
              {"spec", json::parse(spec)},
              {"status", json::parse(status)}};
  pod["metadata"]["namespace"] = "team";
  pod["metadata"]["name"] = "a";
  pod["metadata"]["uid"] = "u1";
  return pod;
}

TEST(GpuPods, HoldDevicesByResourceOrByClaim) {
  const DeviceClaims claims = {"team/big", "other/mine"};
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]})", "nvidia.com/gpu"},
      {R"({"containers": [{"resources": {"requests": {"nvidia.com/gpu.shared": 2}}}]})",
       "nvidia.com/gpu.shared"},
      {R"({"containers": [{}, {"resources": {"limits": {"nvidia.com/mig-1g.10gb": "1"}}}]})",
       "nvidia.com/mig-1g.10gb"},
      {R"({"initContainers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]})",
       "nvidia.com/gpu"},
      {R"({"resourceClaims": [{"name": "x", "resourceClaimName": "big"}]})", "claim big"},
      {R"({"resourceClaims": [{"name": "x", "resourceClaimName": "mine"}]})", ""},
      {R"({"containers": [{"resources": {"limits": {"nvidia.com/gpu": "0"}}}]})", ""},
      {R"({"containers": [{"resources": {"limits": {"cpu": "1", "amd.com/gpu": "1"}}}]})", ""},
      {R"({"containers": {"resources": 7}})", ""},
      {R"({"containers": [7, null, {"resources": []}]})", ""},
      {"[]", ""},
  };
  for (const auto& [spec, holds] : cases) {
    EXPECT_EQ(DevicesOf(PodWith(spec), claims), holds) << spec;
    EXPECT_EQ(DevicesOf(ReducedPod(PodWith(spec)), claims), holds) << spec;
  }
  const char* device = R"({"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]})";
  EXPECT_EQ(DevicesOf(PodWith(device, "{}", R"({"phase": "Succeeded"})"), claims), "");
  EXPECT_EQ(DevicesOf(PodWith("{}", "{}", R"({"resourceClaimStatuses": [
                                 {"name": "x", "resourceClaimName": "big"}]})"),
                      claims),
            "claim big");
}

TEST(GpuPods, AreTheSameAsBeforeWhereNothingHasChangedThatDecides) {
  const json pod = PodWith("{}", R"({"resourceVersion": "1"})", R"({"phase": "Running"})");
  EXPECT_EQ(ReducedPod(pod), ReducedPod(PodWith("{}", R"({"resourceVersion": "2"})",
                                                R"({"phase": "Running", "podIP": "10.0.0.1"})")));
  EXPECT_NE(ReducedPod(pod),
            ReducedPod(PodWith("{}", R"({"resourceVersion": "1"})", R"({"phase": "Failed"})")));
}

TEST(GpuPods, CountOnlyClaimsWithADeviceForWork) {
  const auto claim = [](const char* result) {
    return json::parse(std::string(R"({"status": {"allocation": {"devices": {"results": [)") +
                       result + "]}}}}");
  };
  EXPECT_TRUE(HoldsDevices(claim(R"({"driver": "gpu.nvidia.com"})")));
  EXPECT_FALSE(HoldsDevices(claim(R"({"driver": "gpu.nvidia.com", "adminAccess": true})")));
  EXPECT_FALSE(HoldsDevices(claim(R"({"driver": "net.example"})")));
  EXPECT_FALSE(HoldsDevices(json::object()));
}

TEST(GpuPods, SayWhatStandsInTheWayOfTheirEviction) {
  const char* device =
      R"({"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}],
          "volumes": [{"emptyDir": {}}]})";
  const auto one = [&](const char* metadata) {
    const auto found =
        HoldingPods({ReducedPod(PodWith(device, metadata))}, {}, {{"u1", "budget web"}});
    return found.empty() ? HoldingPod{} : found[0];
  };
  EXPECT_EQ(one("{}").name, "team/a");
  EXPECT_TRUE(one("{}").unmanaged);
  EXPECT_TRUE(one("{}").has_empty_dir);
  EXPECT_EQ(one("{}").refused, "budget web");
  EXPECT_TRUE(one(R"({"ownerReferences": [{"kind": "DaemonSet", "controller": true}]})").restarted);
  const HoldingPod replicated =
      one(R"({"ownerReferences": [{"kind": "ReplicaSet", "controller": true}]})");
  EXPECT_FALSE(replicated.restarted || replicated.unmanaged);
  EXPECT_TRUE(one(R"({"annotations": {"kubernetes.io/config.mirror": "x"}})").restarted);
  EXPECT_TRUE(one(R"({"labels": {"nvidia.com/gpu-driver-upgrade-drain.skip": "true"}})").skipped);
  EXPECT_TRUE(one(R"({"deletionTimestamp": "2026-01-01T00:00:00Z"})").terminating);
}

TEST(GpuPods, AreWaitedForByTheirLabels) {
  const json job = PodWith("{}", R"({"labels": {"job": "train"}})");
  const json ended = PodWith("{}", R"({"labels": {"job": "train"}})", R"({"phase": "Failed"})");
  EXPECT_THAT(*RunningPods({job, ended}, "job in (train)"), ElementsAre("team/a"));
  EXPECT_THAT(*RunningPods({job}, ""), IsEmpty());
  EXPECT_FALSE(RunningPods({job}, "a in b").ok());
}

}  // namespace
}  // namespace penstock::cluster
