#include "adapter/cluster/pod_label_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "adapter/cluster/pod_labels.h"
#include "base/testing/manual_executor.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::adapter::cluster {
namespace {

using nlohmann::json;
using node::ledger::Lease;
using protocol::kube::FakeApi;
using protocol::kube::ReconcileLoop;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

using Labels = std::map<std::string, std::string>;

json Pod(const std::string& node, const json& labels) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"namespace", "lab"}, {"labels", labels}, {"annotations", {{"a", "b"}}}}},
          {"spec", {{"nodeName", node}}},
          {"status", {{"phase", "Running"}}}};
}

/// The server assigns pod uids, so only their presence is known.
std::map<std::string, Labels> LabelsOf(const PodsOfNode& pods) {
  std::map<std::string, Labels> labels;
  for (const auto& [name, facts] : pods) {
    EXPECT_NE(facts.uid, "") << name.second;
    labels[name.first + "/" + name.second] = facts.labels;
  }
  return labels;
}

class ClusterPodsTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> wanted) {
    pods_ = std::make_unique<PodLabelWatch>(
        api_, "n1", std::move(wanted),
        PodLabelWatch::Callbacks{
            .changed = [this](auto pods) { reported_.push_back(pods); },
            .problem =
                [this](protocol::kube::ReconcileLoop::Problem problem) { problem_ = problem; }});
    pods_->Start();
    Settle();
  }

  void Settle() {
    executor_.RunUntilIdle();
    executor_.Advance(std::chrono::milliseconds(20));
    executor_.RunUntilIdle();
  }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  std::vector<std::shared_ptr<const PodsOfNode>> reported_;
  protocol::kube::ReconcileLoop::Problem problem_;
  std::unique_ptr<PodLabelWatch> pods_;
};

TEST_F(ClusterPodsTest, ReportsUidsAndWantedLabelsOfThisNodesPods) {
  api_.Put("/api/v1/namespaces/lab/pods/a",
           Pod("n1", {{"app", "train"}, {"app.kubernetes.io/name", "x"}, {"secret", "y"}}));
  api_.Put("/api/v1/namespaces/lab/pods/b", Pod("n2", {{"app", "other"}}));
  api_.Put("/api/v1/namespaces/lab/pods/c", Pod("n1", json::object()));
  Start({"app", "app.kubernetes.io/*"});
  ASSERT_THAT(reported_, SizeIs(1));
  EXPECT_THAT(LabelsOf(*reported_[0]),
              ElementsAre(Pair("lab/a", Labels{{"app", "train"}, {"app.kubernetes.io/name", "x"}}),
                          Pair("lab/c", Labels{})));
}

TEST_F(ClusterPodsTest, AsksForMetadataOfThisNodeAlone) {
  Start({"app"});
  ASSERT_FALSE(api_.calls().empty());
  for (const protocol::kube::ApiCall& call : api_.calls()) {
    EXPECT_EQ(call.path, "/api/v1/pods");
    EXPECT_EQ(call.query.at("fieldSelector"), "spec.nodeName=n1");
    EXPECT_THAT(call.accept, HasSubstr("as=PartialObjectMetadata"));
  }
}

TEST_F(ClusterPodsTest, FollowsPodsThatComeChangeAndGo) {
  Start({"app"});
  ASSERT_THAT(reported_, SizeIs(1));
  EXPECT_THAT(*reported_[0], IsEmpty());
  api_.Put("/api/v1/namespaces/lab/pods/a", Pod("n1", {{"app", "x"}}));
  api_.Put("/api/v1/namespaces/lab/pods/b", Pod("n1", {{"app", "y"}}));
  Settle();
  ASSERT_THAT(reported_, SizeIs(2));
  EXPECT_THAT(*reported_[1], SizeIs(2));
  api_.Merge("/api/v1/namespaces/lab/pods/a", {{"metadata", {{"labels", {{"other", "x"}}}}}});
  Settle();
  EXPECT_THAT(reported_, SizeIs(2)) << "labels that are not requested are not reported";
  api_.Merge("/api/v1/namespaces/lab/pods/a", {{"metadata", {{"labels", {{"app", nullptr}}}}}});
  api_.Remove("/api/v1/namespaces/lab/pods/b");
  Settle();
  ASSERT_THAT(reported_, SizeIs(3));
  EXPECT_THAT(LabelsOf(*reported_[2]), ElementsAre(Pair("lab/a", Labels{})));
}

TEST_F(ClusterPodsTest, WhereNoLabelsAreWantedNoOneIsAsked) {
  Start({});
  EXPECT_EQ(api_.Requests(), 0u);
  ASSERT_THAT(reported_, SizeIs(1));
  EXPECT_EQ(reported_[0], nullptr);
}

TEST_F(ClusterPodsTest, SaysWhichRightIsMissing) {
  api_.Forbid("", "/api/v1/pods");
  Start({"app"});
  EXPECT_THAT(problem_.text, HasSubstr("cannot watch resource \"pods\""));
  EXPECT_TRUE(problem_.lasting);
}

Lease KubeletLease(const std::string& id, const std::string& pod, const std::string& uid = "") {
  return {.id = id,
          .allocator = "kubelet",
          .slots = {{.id = id, .device = id}},
          .state = node::ledger::LeaseState::kHeld,
          .pod = pod,
          .pod_uid = uid,
          .namespace_name = "lab"};
}

TEST(PodLabels, AreThoseOfThePodThatHoldsTheLease) {
  const PodsOfNode pods = {{{"lab", "a"}, {"uid-a", {{"app", "train"}}}}};
  EXPECT_EQ(WithPod(KubeletLease("1", "a"), pods).labels, (Labels{{"app", "train"}}));
  EXPECT_EQ(WithPod(KubeletLease("1", "a"), pods).pod_uid, "uid-a");
  EXPECT_THAT(WithPod(KubeletLease("1", "a", "uid-of-one-before"), pods).labels, IsEmpty());
  Lease gone = KubeletLease("1", "b");
  gone.labels = {{"app", "was"}};
  EXPECT_EQ(WithPod(gone, pods), gone);
  Lease local = KubeletLease("1", "a");
  local.allocator = "local";
  EXPECT_EQ(WithPod(local, pods), local);
}

TEST(PodLabels, AreInTheLedgerWhicheverIsKnownFirst) {
  base::ManualExecutor control;
  node::ledger::Ledger ledger;
  PodLabels labels(control, ledger);
  const auto subscription =
      ledger.published().Subscribe([&labels](const auto&) { labels.LedgerChanged(); });
  ASSERT_TRUE(ledger.Add(KubeletLease("GPU-1", "a")).ok());
  control.RunUntilIdle();
  labels.Take(std::make_shared<const PodsOfNode>(
      PodsOfNode{{{"lab", "a"}, {"1", {{"app", "x"}}}}, {{"lab", "b"}, {"2", {{"app", "y"}}}}}));
  control.RunUntilIdle();
  EXPECT_EQ(ledger.Get()->FindLease("GPU-1")->labels, (Labels{{"app", "x"}}));
  ASSERT_TRUE(ledger.Add(KubeletLease("GPU-2", "b")).ok());
  control.RunUntilIdle();
  EXPECT_EQ(ledger.Get()->FindLease("GPU-2")->labels, (Labels{{"app", "y"}}));
  const auto generation = ledger.Get()->generation;
  control.RunUntilIdle();
  EXPECT_EQ(ledger.Get()->generation, generation) << "known labels are not written again";
  labels.Take(nullptr);
  control.RunUntilIdle();
  EXPECT_THAT(ledger.Get()->FindLease("GPU-2")->labels, IsEmpty());
}

}  // namespace
}  // namespace penstock::adapter::cluster
