// Tests several candidates on one server.
#include "protocol/kube/lease.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::protocol::kube {
namespace {

using namespace std::chrono_literals;

const std::string kLease = "/apis/coordination.k8s.io/v1/namespaces/x/leases/l";

class LeaseTest : public ::testing::Test {
 protected:
  std::unique_ptr<LeaderElection> Candidate(const std::string& identity, Api& api) {
    auto candidate = std::make_unique<LeaderElection>(
        api, LeaderElection::Options{.namespace_name = "x", .name = "l", .identity = identity},
        LeaderElection::Callbacks{[this, identity] { leaders_.insert(identity), ++changes_; },
                                  [this, identity](const std::string& why) {
                                    leaders_.erase(identity);
                                    why_ = why;
                                  }});
    candidate->Start();
    return candidate;
  }
  // Advances the clock and checks at each step that there are never two leaders.
  void Run(base::Duration time) {
    for (base::Duration passed{}; passed < time; passed += 100ms) {
      executor_.Advance(100ms);
      ASSERT_LE(leaders_.size(), 1u);
    }
  }
  Json Spec() const { return (*api_.Find(kLease))["spec"]; }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  std::set<std::string> leaders_;
  int changes_ = 0;
  std::string why_;
};

TEST_F(LeaseTest, OneOfManyLeadsAndGoesOnLeading) {
  std::vector<std::unique_ptr<LeaderElection>> candidates;
  for (const char* name : {"a", "b", "c"}) candidates.push_back(Candidate(name, api_));
  Run(5min);
  EXPECT_EQ(changes_, 1);
  EXPECT_EQ(leaders_.size(), 1u);
  EXPECT_EQ(Spec()["holderIdentity"], *leaders_.begin());
  EXPECT_EQ(Spec()["leaseTransitions"], 0);
  EXPECT_NE(Spec()["renewTime"], Spec()["acquireTime"]);
}

TEST_F(LeaseTest, ALeaseGivenBackIsTakenAtOnce) {
  auto a = Candidate("a", api_);
  Run(1s);
  auto b = Candidate("b", api_);
  Run(10s);
  EXPECT_TRUE(a->leads());
  a.reset();
  leaders_.clear();
  Run(6s);
  EXPECT_TRUE(b->leads());
  EXPECT_EQ(Spec()["leaseTransitions"], 1);
}

TEST_F(LeaseTest, ADeadHoldersLeaseIsTakenByTheTimeSeenNotByTheTimeWritten) {
  api_.Put(kLease, {{"apiVersion", "coordination.k8s.io/v1"},
                    {"kind", "Lease"},
                    {"spec",
                     {{"holderIdentity", "dead"},
                      {"leaseDurationSeconds", 15},
                      {"renewTime", "2001-01-01T00:00:00.000000Z"}}}});
  auto a = Candidate("a", api_);
  Run(14s);
  EXPECT_FALSE(a->leads());
  Run(6s);
  EXPECT_TRUE(a->leads());
}

TEST_F(LeaseTest, WhoCannotRenewStopsBeforeOthersBegin) {
  auto a = Candidate("a", api_);
  Run(1s);
  ASSERT_TRUE(a->leads());
  api_.Fail({.status = 0, .times = -1, .method = "PUT"});
  Run(8s);
  EXPECT_TRUE(a->leads());
  Run(3s);
  EXPECT_FALSE(a->leads());
  EXPECT_THAT(why_, ::testing::HasSubstr("renewed"));
  api_.Heal();
  Run(10s);
  EXPECT_TRUE(a->leads());
}

TEST_F(LeaseTest, ALeaseThatAnotherTookIsLost) {
  auto a = Candidate("a", api_);
  Run(1s);
  api_.Merge(kLease, {{"spec", {{"holderIdentity", "thief"}}}});
  Run(4s);
  EXPECT_FALSE(a->leads());
  EXPECT_THAT(why_, ::testing::HasSubstr("thief"));
  EXPECT_EQ(Spec()["holderIdentity"], "thief");
}

TEST_F(LeaseTest, RenewalsWhoseAnswersAreLostDoNotEndIt) {
  auto a = Candidate("a", api_);
  Run(1s);
  for (int i = 0; i < 20; ++i) {
    api_.Fail({.status = 0, .method = "PUT", .after_the_deed = true});
    Run(6s);
  }
  EXPECT_EQ(changes_, 1);
  EXPECT_TRUE(a->leads());
}

TEST_F(LeaseTest, AnObjectOfTheWrongKindIsNoLease) {
  api_.Put(kLease, {{"spec", {"odd"}}});
  auto a = Candidate("a", api_);
  Run(1min);
  EXPECT_FALSE(a->leads());
  api_.Remove(kLease);
  Run(10s);
  EXPECT_TRUE(a->leads());
}

}  // namespace
}  // namespace penstock::protocol::kube
