// Counts what the operator asks and writes in a cluster of many nodes, against a fake API server.
// No test here measures time: what a request costs is measured by bench/run --only operator.
#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "operator/json_values.h"
#include "operator/operator.h"
#include "operator/testing/definitions.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using protocol::kube::ApiCall;
using protocol::kube::FakeApi;
using testing::AllOf;
using testing::Each;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr std::size_t kFleet = 200;
constexpr char kPolicyOfFleet[] = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy";
constexpr char kNodePaths[] = "/api/v1/nodes/";
constexpr char kReportPaths[] = "/apis/penstock.io/v1alpha1/nodestates/";

class ScaleTest : public testing::Test {
 protected:
  ScaleTest() {
    api_.Put("/api/v1/namespaces/gpu-operator", {{"kind", "Namespace"}});
    api_.Put(kPolicyOfFleet, {{"apiVersion", "nvidia.com/v1"},
                              {"kind", "ClusterPolicy"},
                              {"spec",
                               {{"driver",
                                 {{"enabled", true},
                                  {"repository", "nvcr.io/nvidia"},
                                  {"image", "driver"},
                                  {"version", "550.1"},
                                  {"upgradePolicy", {{"autoUpgrade", true}}}}}}}});
    operator_ = std::make_unique<Operator>(
        api_, Operator::Options{.installation = {.namespace_name = "gpu-operator",
                                                 .image = "localhost/penstock:1"},
                                .host = "pod-1"});
    operator_->Start();
    executor_.Advance(1s);
    Establish(api_);
    Rest();
  }

  static std::string NameOf(std::size_t i) { return "n" + std::to_string(1000 + i); }

  void Appear() {
    for (std::size_t i = 0; i < kFleet; ++i)
      api_.Put(kNodePaths + NameOf(i),
               {{"kind", "Node"},
                {"metadata",
                 {{"labels",
                   {{"feature.node.kubernetes.io/pci-10de.present", "true"},
                    {"feature.node.kubernetes.io/system-os_release.ID", "ubuntu"},
                    {"feature.node.kubernetes.io/system-os_release.VERSION_ID", "22.04"}}}}},
                {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }

  void Report(std::size_t i, const std::string& reason, const std::string& message) {
    api_.Put(kReportPaths + NameOf(i), {{"kind", "NodeState"},
                                        {"status",
                                         {{"vendors", json::array({{{"vendor", "nvidia"}}})},
                                          {"conditions",
                                           {{{"type", "Ready"},
                                             {"status", reason == "Ready" ? "True" : "False"},
                                             {"reason", reason},
                                             {"message", message}}}}}}});
  }

  void Rest() { executor_.Advance(30s); }

  /// Everything but watches since the calls were forgotten: method and path.
  std::map<std::string, std::size_t> Requests() {
    std::map<std::string, std::size_t> requests;
    for (const ApiCall& call : api_.calls())
      if (!call.query.contains("watch")) ++requests[call.method + " " + call.path];
    return requests;
  }
  /// Of Requests, those that begin so.
  std::map<std::string, std::size_t> Requests(const std::string& start) {
    auto requests = Requests();
    std::erase_if(requests, [&](const auto& one) { return !one.first.starts_with(start); });
    return requests;
  }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  std::unique_ptr<Operator> operator_;
};

TEST_F(ScaleTest, ANodeIsWrittenOnceForEachThingThatIsFoundOut) {
  api_.ForgetCalls();
  Appear();
  Rest();
  EXPECT_THAT(Requests("PATCH /api/v1/nodes/"), AllOf(SizeIs(kFleet), Each(Pair(testing::_, 1u))));
  EXPECT_THAT(Requests("GET"), IsEmpty()) << "the watch has said it all";

  api_.ForgetCalls();
  for (std::size_t i = 0; i < kFleet; ++i) Report(i, "NoDriver", "no driver");
  Rest();
  EXPECT_THAT(Requests("PATCH /api/v1/nodes/"), AllOf(SizeIs(kFleet), Each(Pair(testing::_, 1u))))
      << "they get the label of a driver's pool";
  EXPECT_THAT(Requests("GET /api/v1/nodes/"), Each(Pair(testing::_, 1u)));
  EXPECT_THAT(Requests("GET /apis/"), IsEmpty());
  EXPECT_THAT(Requests("PATCH /apis/apps/v1/"), SizeIs(1)) << "the DaemonSet of the pool";
}

TEST_F(ScaleTest, AStormOfReportsIsAFewSmallWritesOfTheStatus) {
  Appear();
  Rest();
  for (std::size_t i = 0; i < kFleet; ++i) Report(i, "NoDriver", "no driver");
  Rest();
  api_.ForgetCalls();
  constexpr int kSeconds = 6;
  for (int step = 0; step < 10 * kSeconds; ++step) {
    for (std::size_t i = 0; i < kFleet; i += 10)
      Report((i + static_cast<std::size_t>(step)) % kFleet, "Broken" + std::to_string(step),
             std::string(2000, 'x') + std::to_string(step));
    executor_.Advance(100ms);
  }
  Rest();
  const auto requests = Requests();
  const auto status = requests.find(std::string("PATCH ") + kPolicyOfFleet + "/status");
  ASSERT_NE(status, requests.end());
  EXPECT_LE(status->second, kSeconds + 2u) << "at most one in a second";
  EXPECT_THAT(Requests("PATCH /api/v1/nodes/"), IsEmpty());
  EXPECT_THAT(Requests("GET"), IsEmpty());
  const json written = (*api_.Find(kPolicyOfFleet))["status"];
  EXPECT_LT(written.dump().size(), 64u << 10);
  EXPECT_LE(written["nodes"]["notReady"].size(), 20u);
  EXPECT_LE(written["nodes"]["byReason"].size(), 21u);
  EXPECT_EQ(written["nodes"]["total"], kFleet);
}

TEST_F(ScaleTest, HeartbeatsOfAllKubeletsCauseNoWriteAndNoRequestForANode) {
  Appear();
  Rest();
  for (std::size_t i = 0; i < kFleet; ++i) Report(i, "NoDriver", "no driver");
  Rest();
  api_.ForgetCalls();
  for (int beat = 0; beat < 2; ++beat) {
    for (std::size_t i = 0; i < kFleet; ++i)
      api_.Merge(kNodePaths + NameOf(i), {{"status",
                                           {{"conditions",
                                             {{{"type", "Ready"},
                                               {"status", "True"},
                                               {"lastHeartbeatTime", std::to_string(beat)}}}}}}});
    executor_.Advance(5min);
  }
  for (const char* write : {"PATCH", "PUT", "POST", "DELETE"})
    EXPECT_THAT(Requests(write), IsEmpty());
  EXPECT_LE(Requests("GET").size(), 10u) << "our own objects are read again from time to time";
  EXPECT_THAT(Requests("GET /api/v1/nodes"), IsEmpty());
}

TEST_F(ScaleTest, AFieldOfThePolicyIsOneWriteOfEachObjectThatDiffers) {
  Appear();
  Rest();
  for (const bool automatic : {false, true}) {
    api_.ForgetCalls();
    api_.Merge(kPolicyOfFleet,
               {{"spec", {{"driver", {{"upgradePolicy", {{"autoUpgrade", automatic}}}}}}}});
    Rest();
    EXPECT_THAT(Requests("PATCH /api/v1/nodes/"),
                AllOf(SizeIs(kFleet), Each(Pair(testing::_, 1u))));
    EXPECT_THAT(Requests("GET"), Each(Pair(testing::_, 1u))) << "to see whose annotation it is";
    const json annotations =
        api_.Find(kNodePaths + NameOf(7))->at("metadata").value("annotations", json::object());
    EXPECT_EQ(annotations.contains("nvidia.com/gpu-driver-upgrade-enabled"), automatic);
  }
}

}  // namespace
}  // namespace penstock::cluster
