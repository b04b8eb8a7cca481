#include "app/penstock/cluster/support_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/penstock/cluster/testing/cluster_sample.h"

namespace penstock::app {
namespace {

using namespace cluster_sample;
using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const base::WallTime kBundleTime = base::ParseTime("2026-11-27T01:02:03Z");

Json BundleAgent() {
  Json pod = PodOfAgent("penstock-x", "gpu-1", "");
  pod["metadata"]["managedFields"] = {{{"manager", "kubelet"}}};
  pod["metadata"]["annotations"] = {{"kubectl.kubernetes.io/last-applied-configuration", "{}"},
                                    {"kept", "yes"}};
  pod["spec"]["containers"] = {
      {{"name", "agent"},
       {"env",
        {{{"name", "API_TOKEN"}, {"value", "hush"}}, {{"name", "PLAIN"}, {"value", "shown"}}}}}};
  pod["status"]["containerStatuses"] = {{{"name", "agent"}, {"restartCount", 2}}};
  return pod;
}

Json BundleDriver() {
  Json pod = PodOfAgent("driver-x", "gpu-1", "");
  pod["metadata"]["labels"] = {{"penstock.io/driver-pool", "nvidia-gpu-driver-blue"}};
  pod["spec"]["initContainers"] = {{{"name", "k8s-driver-manager"}}};
  pod["spec"]["containers"] = {{{"name", "nvidia-driver-ctr"}}};
  pod["status"]["initContainerStatuses"] = {{{"name", "k8s-driver-manager"}, {"restartCount", 1}}};
  return pod;
}

/// A cluster with one node, its agent and its driver; it refuses Deployments, and has no kind of
/// another operator.
base::Result<ApiResponse> Answer(std::vector<ApiCall>& calls, const ApiCall& call) {
  calls.push_back(call);
  const auto list = [](std::vector<Json> items) -> base::Result<ApiResponse> {
    return ApiResponse{.body = Json{{"items", items}}.dump()};
  };
  if (call.path.ends_with("/log"))
    return ApiResponse{.body = call.query.contains("previous") ? "before\n" : "now\n"};
  if (call.path.ends_with("/nodes")) return list({Node("gpu-1", 8, 8)});
  if (call.path.ends_with("/nodestates")) return list({StateOf(Eight("gpu-1"))});
  const auto selector = call.query.find("labelSelector");
  const bool drivers =
      selector != call.query.end() && selector->second == "penstock.io/driver-pool";
  if (call.path.ends_with("/pods")) return list({drivers ? BundleDriver() : BundleAgent()});
  if (call.path.ends_with("/daemonsets") && drivers)
    return list({{{"metadata", {{"name", "nvidia-gpu-driver-blue"}}}}});
  const auto about = call.query.find("fieldSelector");
  if (about != call.query.end() && about->second == "involvedObject.kind=ClusterPolicy")
    return list({{{"message", "1 of 4 nodes not ready"}}});
  if (call.path.ends_with("/deployments"))
    return base::Error(base::Code::kPermissionDenied, "deployments: list is not allowed");
  if (call.path.find("/nvidia.com/") != std::string::npos)
    return base::Error(base::Code::kNotFound, "no such kind");
  return list({});
}

std::map<std::string, std::string> GatheredFiles(std::vector<ApiCall>& calls,
                                                 const BundleOptions& options = {}) {
  std::map<std::string, std::string> files;
  const ApiServer server = [&](const ApiCall& call) { return Answer(calls, call); };
  for (ArchivedFile& file : GatherBundle(
           server, options, [](const std::string&) {}, kBundleTime))
    files[file.path] = std::move(file.content);
  return files;
}

TEST(SupportBundle, HasObjectsExplanationsAndLogs) {
  std::vector<ApiCall> calls;
  auto files = GatheredFiles(calls);
  EXPECT_THAT(files["objects/nodes.json"], HasSubstr("gpu-1"));
  EXPECT_THAT(files["objects/nodestates.json"], HasSubstr("GPU-7"));
  EXPECT_THAT(files["nodes/gpu-1.txt"], HasSubstr("nvidia.com/gpu"));
  EXPECT_EQ(files["logs/penstock/penstock-x/agent.log"], "now\n");
  EXPECT_EQ(files["logs/penstock/penstock-x/agent.previous.log"], "before\n");
  EXPECT_TRUE(files.contains("events/penstock.json"));
  EXPECT_TRUE(files.contains("events/nodes.json"));
  EXPECT_THAT(files["events/clusterpolicies.json"], HasSubstr("1 of 4 nodes not ready"));
}

TEST(SupportBundle, HasTheDriversOfTheNodes) {
  std::vector<ApiCall> calls;
  auto files = GatheredFiles(calls);
  EXPECT_THAT(files["objects/daemonsets.json"], HasSubstr("nvidia-gpu-driver-blue"));
  EXPECT_THAT(files["objects/pods.json"], HasSubstr("driver-x"));
  EXPECT_THAT(files["objects/pods.json"], HasSubstr("penstock-x"));
  EXPECT_EQ(files["logs/penstock/driver-x/nvidia-driver-ctr.log"], "now\n");
  EXPECT_EQ(files["logs/penstock/driver-x/k8s-driver-manager.log"], "now\n");
  EXPECT_EQ(files["logs/penstock/driver-x/k8s-driver-manager.previous.log"], "before\n");
}

TEST(SupportBundle, ListsWhatCouldNotBeRead) {
  std::vector<ApiCall> calls;
  const std::string index = GatheredFiles(calls)["index.txt"];
  EXPECT_THAT(index, HasSubstr("1 nodes, 2 pods of Penstock"));
  EXPECT_THAT(index, HasSubstr("deployments: NOT READ: deployments: list is not allowed"));
  EXPECT_THAT(index, HasSubstr("clusterpolicies: the cluster has none"));
}

TEST(SupportBundle, HasNoSecretsAndNoObjectsOfUsers) {
  std::vector<ApiCall> calls;
  const std::string pods = GatheredFiles(calls)["objects/pods.json"];
  EXPECT_THAT(pods, Not(HasSubstr("hush")));
  EXPECT_THAT(pods, HasSubstr("shown"));
  EXPECT_THAT(pods, Not(HasSubstr("managedFields")));
  EXPECT_THAT(pods, Not(HasSubstr("last-applied-configuration")));
  EXPECT_THAT(pods, HasSubstr("kept"));
  for (const ApiCall& call : calls) {
    EXPECT_EQ(call.method, "GET");
    EXPECT_THAT(call.path, Not(HasSubstr("secrets")));
    if (call.path.ends_with("/pods") || call.path.ends_with("/configmaps")) {
      EXPECT_TRUE(call.query.contains("labelSelector")) << call.path;
    }
  }
}

TEST(SupportBundle, LeavesLogsOut) {
  std::vector<ApiCall> calls;
  EXPECT_FALSE(
      GatheredFiles(calls, {.logs = false}).contains("logs/penstock/penstock-x/agent.log"));
}

TEST(SupportBundle, KeepsNamesInsideTheArchive) {
  const ApiServer server = [](const ApiCall& call) -> base::Result<ApiResponse> {
    Json pod = BundleAgent();
    pod["metadata"]["namespace"] = "../../etc";
    pod["metadata"]["name"] = "a/b\n";
    const bool pods = call.path.ends_with("/pods");
    return ApiResponse{.body = Json{{"items", pods ? Json{pod} : Json::array()}}.dump()};
  };
  for (const ArchivedFile& file : GatherBundle(
           server, {}, [](const std::string&) {}, kBundleTime)) {
    EXPECT_THAT(file.path, Not(HasSubstr("..")));
    EXPECT_THAT(file.path, Not(HasSubstr("\n")));
  }
}

TEST(Tar, SplitsLongPathsAndRefusesThoseThatDoNotFit) {
  const std::string folder(120, 'd');
  const auto archive = Tar({{"short", "12345"}, {folder + "/file", ""}}, kBundleTime);
  ASSERT_TRUE(archive.ok());
  EXPECT_EQ(archive->size() % 512, 0u);
  EXPECT_EQ(archive->substr(0, 6), std::string("short\0", 6));
  EXPECT_EQ(archive->substr(124, 11), "00000000005");
  EXPECT_EQ(archive->substr(512, 5), "12345");
  EXPECT_EQ(archive->substr(1024, 5), std::string("file\0", 5));
  EXPECT_EQ(archive->substr(1024 + 345, 120), folder);
  EXPECT_FALSE(Tar({{std::string(300, 'x'), ""}}, kBundleTime).ok());
}

}  // namespace
}  // namespace penstock::app
