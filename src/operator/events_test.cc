// Tests that what is wrong with policies, and with what follows from them, is said in an Event
// about the object, once for each change.
#include "operator/testing/driver_rollout_fixture.h"

namespace penstock::cluster {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

constexpr char kServices[] = "/api/v1/namespaces/gpu-operator/services";

class PolicyEvents : public DriverRolloutTest {
 protected:
  PolicyEvents() {
    Run(30);
    api_.ForgetCalls();
  }

  void Change(const json& spec) {
    api_.Merge(kPolicyPath, {{"spec", spec}});
    Settle();
  }
  void Settle() { executor_.Advance(10s); }

  /// The messages about an object, with the reason.
  std::vector<std::string> EventsOf(const std::string& reason, const std::string& kind,
                                    const std::string& name) {
    std::vector<std::string> messages;
    for (const ApiCall& call : api_.calls()) {
      if (!call.path.ends_with("/events")) continue;
      const json event = json::parse(call.body);
      const json& about = event.at("involvedObject");
      if (event.at("reason") != reason || about.at("kind") != kind || about.at("name") != name)
        continue;
      EXPECT_EQ(event.at("type"), "Warning");
      messages.push_back(event.at("message"));
    }
    return messages;
  }
  std::vector<std::string> EventsOfPolicy(const std::string& reason) {
    return EventsOf(reason, "ClusterPolicy", "cluster-policy");
  }
};

TEST_F(PolicyEvents, ASecondClusterPolicyIsIgnored) {
  api_.Put("/apis/nvidia.com/v1/clusterpolicies/another",
           {{"apiVersion", "nvidia.com/v1"}, {"kind", "ClusterPolicy"}, {"spec", json::object()}});
  Settle();
  Start();
  Settle();
  EXPECT_THAT(EventsOf("Ignored", "ClusterPolicy", "another"),
              ElementsAre(HasSubstr("ClusterPolicy cluster-policy is in force")));
  EXPECT_THAT(EventsOfPolicy("Ignored"), IsEmpty());
}

TEST_F(PolicyEvents, APolicyThatCannotBeReadIsNamedForEachCause) {
  Change({{"migManager", {{"enabled", "perhaps"}}}});
  Change({{"gfd", {{"enabled", 7}}}});
  Start();
  Settle();
  EXPECT_THAT(EventsOfPolicy("ReconcileFailed"),
              ElementsAre(AllOf(HasSubstr("spec.migManager.enabled"), Not(HasSubstr("spec.gfd"))),
                          AllOf(HasSubstr("spec.migManager.enabled"), HasSubstr("spec.gfd"))));
}

TEST_F(PolicyEvents, ADriverThatCannotBeReadIsNamed) {
  PutDriver("red", "535.1", {{"driverType", "quantum"}});
  Settle();
  EXPECT_THAT(EventsOf("ReconcileFailed", "NVIDIADriver", "red"),
              ElementsAre(HasSubstr("spec.driverType")));
  EXPECT_THAT(EventsOf("ReconcileFailed", "NVIDIADriver", "blue"), IsEmpty());
}

TEST_F(PolicyEvents, OfTwoDefaultDriversBothSaySo) {
  for (const char* name : {"one", "two"})
    PutDriver(name, "550.1", {{"default", true}, {"nodeSelector", json::object()}});
  Settle();
  for (const char* name : {"one", "two"})
    EXPECT_THAT(EventsOf("ReconcileFailed", "NVIDIADriver", name),
                ElementsAre(HasSubstr("multiple default NVIDIADrivers found (one, two): ")))
        << name;
}

TEST_F(PolicyEvents, DriversThatSelectTheSameNodesBothSaySo) {
  PutDriver("other", "535.1", {{"nodeSelector", {{"team", "blue"}}}});
  Settle();
  Settle();
  for (const char* name : {"blue", "other"})
    EXPECT_THAT(EventsOf("ConflictingNodeSelector", "NVIDIADriver", name),
                ElementsAre(AllOf(HasSubstr("n1"), HasSubstr("blue"))))
        << name;
}

TEST_F(PolicyEvents, LabelsThatAnotherProgramTakesBackAreSaid) {
  const std::string present = "nvidia.com/gpu.present";
  for (int i = 0; i < 60; ++i) {
    if (LabelOf("n1", present.c_str()) == "true")
      api_.Merge(NodePath("n1"), {{"metadata", {{"labels", {{present, nullptr}}}}}});
    executor_.Advance(1s);
  }
  EXPECT_THAT(EventsOfPolicy("ReconcileFailed"),
              ElementsAre(AllOf(StartsWith("another program takes back labels"), HasSubstr("n1"))));
}

TEST_F(PolicyEvents, AFinalizerThatAnotherProgramRemovesIsSaidAndWrittenEverMoreRarely) {
  const auto is_held = [this] {
    return (*api_.Find(kPolicyPath))["metadata"].value("finalizers", json::array()) ==
           json({"penstock.io/cleanup"});
  };
  const auto play = [&](int seconds) {
    int times = 0;
    for (int i = 0; i < seconds; ++i) {
      if (is_held()) {
        ++times;
        api_.Merge(kPolicyPath,
                   {{"metadata", {{"finalizers", nullptr}, {"annotations", {{"team", "a"}}}}}},
                   "gitops");
      }
      executor_.Advance(1s);
    }
    return times;
  };
  EXPECT_THAT(play(60), AllOf(testing::Ge(4), testing::Le(10)));
  EXPECT_THAT(EventsOfPolicy("ReconcileFailed"),
              ElementsAre(AllOf(StartsWith("ClusterPolicy cluster-policy: another program"),
                                HasSubstr("gitops"), HasSubstr("metadata.finalizers"))));
  EXPECT_EQ((*api_.Find(kPolicyPath))["status"]["state"], "notReady");
  api_.Merge(kPolicyPath, {{"spec", {{"daemonsets", {{"labels", {{"team", "a"}}}}}}}});
  Settle();
  EXPECT_NE(TextAt(*api_.Find(kSets + std::string("penstock-agent")),
                   "/spec/template/metadata/labels/team"),
            "")
      << "the rest goes on";
  EXPECT_LE(play(1200), 8);
  executor_.Advance(6min);
  EXPECT_TRUE(is_held());
  executor_.Advance(10min);
  EXPECT_EQ((*api_.Find(kPolicyPath))["status"].dump().find("gitops"), std::string::npos);
}

TEST_F(PolicyEvents, AMissingRightIsSaidAlsoWhileSomethingElseIsWrong) {
  api_.Forbid("PATCH", kServices);
  Change({{"dcgmExporter", {{"service", {{"type", "NodePort"}}}}}});
  executor_.Advance(100s);
  EXPECT_THAT(EventsOfPolicy("ReconcileFailed"), ElementsAre(HasSubstr("services")));
  api_.Forbid("PATCH", "/api/v1/namespaces/gpu-operator/configmaps");
  Change({{"dcgmExporter", {{"enablePodUID", true}}}});
  EXPECT_THAT(EventsOfPolicy("ReconcileFailed"),
              Contains(AllOf(HasSubstr("services"), HasSubstr("configmaps"))));
  const std::size_t said = EventsOfPolicy("ReconcileFailed").size();
  executor_.Advance(10min);
  EXPECT_THAT(EventsOfPolicy("ReconcileFailed"), SizeIs(said)) << "the same is not said again";
}

TEST_F(PolicyEvents, AStatusThatIsRefusedIsSaidFromTimeToTime) {
  const std::string status = std::string(kPolicyPath) + "/status";
  const auto refuse = [&](int code, const char* reason) {
    api_.Heal();
    api_.Fail({.status = code, .times = -1, .method = "PATCH", .path = status, .reason = reason});
  };
  const auto written_again = [this] {
    return std::ranges::count_if(api_.calls(), [](const ApiCall& call) {
      return call.method == "PATCH" && call.path.find("/events/") != std::string::npos &&
             call.body.find("refuses the status") != std::string::npos;
    });
  };
  refuse(422, "Invalid");
  Change({{"gds", {{"enabled", true}}}});
  EXPECT_THAT(EventsOfPolicy("StatusNotWritten"),
              ElementsAre(AllOf(HasSubstr("PATCH " + status), HasSubstr("webhook"))));
  executor_.Advance(25min);
  EXPECT_THAT(EventsOfPolicy("StatusNotWritten"), SizeIs(1)) << "it is tried every minute";
  EXPECT_EQ(written_again(), 0);
  executor_.Advance(10min);
  EXPECT_EQ(EventsOfPolicy("StatusNotWritten").size() + written_again(), 2u)
      << "the server forgets Events after an hour";
  refuse(413, "RequestEntityTooLarge");
  executor_.Advance(5min);
  EXPECT_THAT(EventsOfPolicy("StatusNotWritten"), Contains(HasSubstr("413")));
  api_.Heal();
  executor_.Advance(5min);
  api_.ForgetCalls();
  executor_.Advance(40min);
  EXPECT_THAT(EventsOfPolicy("StatusNotWritten"), IsEmpty()) << "it could be written";
}

TEST_F(PolicyEvents, AStatusThatAServerRefusesWhileItStartsIsNotSaid) {
  api_.Forbid("PATCH", std::string(kPolicyPath) + "/status");
  Change({{"gds", {{"enabled", true}}}});
  executor_.Advance(60s);
  EXPECT_THAT(EventsOfPolicy("StatusNotWritten"), IsEmpty());
  executor_.Advance(2min);
  EXPECT_THAT(EventsOfPolicy("StatusNotWritten"),
              ElementsAre(HasSubstr("resources: [\"clusterpolicies/status\"]")));
}

TEST_F(PolicyEvents, AStatusThatAWebhookThatDoesNotRespondRefusesIsSaid) {
  api_.Fail({.status = 500,
             .times = -1,
             .method = "PATCH",
             .path = std::string(kPolicyPath) + "/status",
             .reason = "InternalError",
             .message = "Internal error occurred: failed calling webhook \"x.example.com\": "
                        "connection refused"});
  Change({{"gds", {{"enabled", true}}}});
  executor_.Advance(60s);
  EXPECT_THAT(EventsOfPolicy("StatusNotWritten"), IsEmpty()) << "the webhook may start";
  executor_.Advance(3min);
  EXPECT_THAT(EventsOfPolicy("StatusNotWritten"), ElementsAre(HasSubstr("x.example.com")));
}

TEST_F(PolicyEvents, AFinalizerThatTheServerDoesNotLetGoIsSaid) {
  const auto finalizers = [this] {
    return api_.Find(kPolicyPath)->at("metadata").value("finalizers", json::array()).size();
  };
  ASSERT_EQ(finalizers(), 1u);
  api_.Fail({.status = 422, .times = -1, .method = "PATCH", .path = kPolicyPath});
  api_.Merge(kPolicyPath, {{"metadata", {{"deletionTimestamp", "2026-03-03T00:00:00Z"}}}});
  executor_.Advance(5min);
  EXPECT_EQ(finalizers(), 1u);
  EXPECT_THAT(EventsOfPolicy("FinalizerNotWritten"),
              ElementsAre(AllOf(HasSubstr("to remove the finalizer penstock.io/cleanup"),
                                HasSubstr("PATCH " + std::string(kPolicyPath)))));
}

TEST_F(PolicyEvents, AFinalizerThatTheServerDoesNotTakeHoldsNoStatus) {
  api_.Fail({.status = 422, .times = -1, .method = "PATCH", .path = kPolicyPath});
  api_.Merge(kPolicyPath, {{"metadata", {{"finalizers", json::array()}}}});
  executor_.Advance(5s);
  EXPECT_THAT(EventsOfPolicy("FinalizerNotWritten"),
              ElementsAre(HasSubstr("whose deletion then does not wait")));
  api_.ForgetCalls();
  Change({{"gds", {{"enabled", true}}}});
  const auto tries = [this](const std::string& path) {
    return std::ranges::count_if(api_.calls(), [&path](const ApiCall& call) {
      return call.method == "PATCH" && call.path == path;
    });
  };
  executor_.Advance(1min);
  EXPECT_GT(tries(std::string(kPolicyPath) + "/status"), 0);
  EXPECT_GT(tries(kPolicyPath), 0);
  EXPECT_LT(tries(kPolicyPath), 10);
}

TEST_F(PolicyEvents, AnObjectThatIsNotServedSaysSoOnce) {
  api_.Put(
      "/apis/nvidia.com/v1alpha1/gpuclusters/claims",
      {{"apiVersion", "nvidia.com/v1alpha1"}, {"kind", "GPUCluster"}, {"spec", json::object()}});
  Settle();
  EXPECT_THAT(EventsOf("NotServed", "GPUCluster", "claims"), SizeIs(1));
  EXPECT_THAT(EventsOf("FieldsNotServed", "GPUCluster", "claims"), IsEmpty());
}

TEST_F(PolicyEvents, FieldsThatAreNotServedAreSaidWhenTheyAreSet) {
  Change({{"gds", {{"enabled", true}}}});
  EXPECT_THAT(EventsOfPolicy("FieldsNotServed"), ElementsAre(StartsWith("spec.gds.enabled: ")));
  api_.Merge(NodePath("n1"), {{"metadata", {{"labels", {{"zone", "a"}}}}}});
  Change({{"gfd", {{"enabled", false}}}, {"toolkit", {{"version", "v1"}}}});
  Start();
  Settle();
  EXPECT_THAT(EventsOfPolicy("FieldsNotServed"), SizeIs(1)) << "each is said once";
  Change({{"gdrcopy", {{"enabled", true}}}, {"futuer", 1}});
  EXPECT_THAT(EventsOfPolicy("FieldsNotServed"),
              ElementsAre(StartsWith("spec.gds.enabled: "),
                          AllOf(StartsWith("spec.gdrcopy.enabled: "), HasSubstr("spec.futuer: "),
                                Not(HasSubstr("spec.gds.enabled")))));
  Change({{"migManager", {{"enabled", "perhaps"}}}});
  Change({{"migManager", {{"enabled", true}}}});
  Change({{"gds", {{"enabled", false}}}});
  EXPECT_THAT(EventsOfPolicy("FieldsNotServed"), SizeIs(2));
}

}  // namespace
}  // namespace penstock::cluster
