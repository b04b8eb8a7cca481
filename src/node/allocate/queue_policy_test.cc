// Tests what follows from terms, leases and limits, on a machine with four devices and a fake
// clock.
#include "node/allocate/queue_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "node/inventory/testing/acme_parts.h"

namespace penstock::node::allocate {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::SizeIs;

constexpr uid_t kAnn = 1000, kBob = 1001;

class QueuePolicyTest : public testing::Test {
 protected:
  QueuePolicyTest() {
    const auto facts = inventory::AcmeDevices(4, 4);
    inventory::ReportHealthy(inventory_, facts, executor_.clock().Wall());
    for (const auto& one : facts) inventory_.SetReading(one.id, {}, executor_.clock().Wall());
  }

  base::TimePoint Now() const { return executor_.clock().Now(); }
  std::string Hold(uid_t uid, std::initializer_list<int> devices,
                   std::optional<base::Duration> time = {}) {
    ledger::Lease lease;
    lease.id = "r-" + std::to_string(terms_.size());
    lease.allocator = "local";
    for (const int i : devices)
      lease.slots.push_back({"G" + std::to_string(i), "G" + std::to_string(i), "acme.com/gpu", {}});
    EXPECT_TRUE(ledger_.Add(lease).ok());
    terms_[lease.id] = {Now(), time ? std::optional(Now() + *time) : std::nullopt, {}, uid};
    return lease.id;
  }
  void Release(const std::string& lease) {
    ledger_.Release(lease);
    terms_.erase(lease);
  }
  static Waiting Of(uid_t uid, int count) {
    Waiting waiting;
    waiting.ticket = "q-1";
    waiting.request.allocator = "local";
    waiting.request.count = count;
    waiting.waiter.uid = uid;
    return waiting;
  }
  std::optional<base::TimePoint> ServedAt(const Waiting& waiting) {
    const auto claim = policy_.ClaimOf(waiting);
    return claim.served ? std::optional(claim.served->at) : std::nullopt;
  }

  base::ManualExecutor executor_;
  inventory::Inventory inventory_;
  ledger::Ledger ledger_;
  share::Offers offers_{inventory_, ledger_, device::testing::FindAcme, {"local"}};
  std::map<std::string, Term> terms_;
  std::vector<std::string> ended_;
  int changes_ = 0;
  QueuePolicy policy_{executor_,
                      {inventory_, ledger_, offers_, terms_, device::testing::FindAcme},
                      {[this](const std::string& lease, const std::string&) {
                         ended_.push_back(lease);
                         terms_.at(lease).killed = Now() + kKillWait;
                       },
                       [this] { ++changes_; }}};
};

TEST_F(QueuePolicyTest, CountsOnDevicesOnceTheirRunsAreCertainToHaveEnded) {
  const std::string run = Hold(kBob, {0, 1, 2, 3}, seconds(100));
  const base::TimePoint certain = Now() + LongestHeld(seconds(100));
  EXPECT_EQ(ServedAt(Of(kAnn, 4)), certain);
  executor_.Advance(seconds(100));
  terms_.at(run).killed = certain;  // it has been asked to end
  EXPECT_EQ(ServedAt(Of(kAnn, 4)), certain) << "the same";
  executor_.Advance(seconds(40));
  EXPECT_EQ(ServedAt(Of(kAnn, 4)), Now()) << "any moment";
}

TEST_F(QueuePolicyTest, AFlowOfRunsThatDoNotListenDelaysNoOne) {
  Queue::Callbacks callbacks;
  std::map<std::string, base::TimePoint> served;
  callbacks.attempt = [&](const Waiting& waiting, const Devices& kept_back) -> base::Status {
    const auto offers = WithoutDevices(*offers_.Get(), kept_back);
    ASSIGN(const auto slots,
           Reserve(waiting.request, *inventory_.published().Get(), *ledger_.Get(), offers));
    TRY(ledger_.Add({.id = waiting.ticket, .allocator = "local", .slots = slots}));
    terms_[waiting.ticket] = {Now(),
                              waiting.time ? std::optional(Now() + *waiting.time) : std::nullopt,
                              {},
                              waiting.waiter.uid};
    served[waiting.ticket] = Now();
    return {};
  };
  callbacks.could_use = [&](const Waiting& waiting) { return policy_.CouldUse(waiting); };
  callbacks.claim = [&](const Waiting& waiting) { return policy_.ClaimOf(waiting); };
  callbacks.held = [&](uid_t uid) { return policy_.HeldBy(uid); };
  callbacks.done = [](const Waiting&, const base::Status&) {};
  Queue queue(executor_, callbacks);
  const auto pass_a_second = [&] {
    executor_.Advance(seconds(1));
    for (auto [id, term] : std::map(terms_)) {
      if (term.killed && *term.killed <= Now()) {
        Release(id);
      } else if (term.ends && *term.ends <= Now() && !term.killed) {
        terms_.at(id).killed = Now() + kKillWait;
      }
    }
    queue.Try();
    executor_.RunUntilIdle();
  };
  Hold(kBob, {0, 1, 2}, seconds(20));
  const base::TimePoint promised = Now() + LongestHeld(seconds(20));
  const std::string large = *queue.Add(Of(kAnn, 4), Queue::kIndefinitely);
  Waiting run = Of(kBob, 1);
  run.time = seconds(14);
  while (!served.contains(large) && Now() < promised + seconds(1000)) {
    ASSERT_TRUE(queue.Add(run, seconds(0)).ok());
    pass_a_second();
  }
  EXPECT_EQ(served[large], promised);
  EXPECT_THAT(served, SizeIs(testing::Gt(1u))) << "some went ahead";
}

TEST_F(QueuePolicyTest, EndsNoOneForOneBeyondItsLimits) {
  policy_.Configure({.devices = 2, .time = seconds(10)});
  Hold(kBob, {0, 1});
  Hold(kBob, {2, 3});
  executor_.Advance(seconds(20));
  Waiting beyond = Of(kAnn, 4);
  beyond.beyond = true;
  EXPECT_EQ(ServedAt(beyond), std::nullopt);
  EXPECT_THAT(policy_.ExpectedStarts({beyond}), IsEmpty()) << "and no start is expected from it";
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_EQ(ServedAt(Of(kAnn, 2)), Now() + kKillWait);
  EXPECT_THAT(ended_, ElementsAre("r-0"));
}

TEST_F(QueuePolicyTest, EndsNoOneForOneWhoDoesNotWaitUntilThen) {
  policy_.Configure({.time = seconds(10)});
  Hold(kBob, {0, 1, 2, 3});
  Waiting hasty = Of(kAnn, 4);
  hasty.until = Now() + seconds(10) + kKillWait - seconds(1);
  EXPECT_EQ(ServedAt(hasty), std::nullopt);
  executor_.Advance(seconds(10));
  EXPECT_EQ(ServedAt(hasty), std::nullopt);
  EXPECT_THAT(ended_, IsEmpty());
  Waiting patient = Of(kAnn, 4);
  patient.until = Now() + kKillWait;
  EXPECT_EQ(ServedAt(patient), Now() + kKillWait);
  EXPECT_THAT(ended_, SizeIs(1));
}

TEST_F(QueuePolicyTest, LooksAgainWhenTheNextRunHasLastedTooLong) {
  policy_.Configure({.time = seconds(10)});
  Hold(kBob, {0, 1, 2, 3});
  EXPECT_EQ(ServedAt(Of(kAnn, 1)), Now() + seconds(10) + kKillWait);
  executor_.Advance(seconds(9));
  EXPECT_EQ(changes_, 0);
  executor_.Advance(seconds(1));
  EXPECT_EQ(changes_, 1);
}

TEST_F(QueuePolicyTest, LooksAgainWhenARunOfTheFirstsOwnUserHasLastedTooLong) {
  policy_.Configure({.time = seconds(10)});
  Hold(kAnn, {0, 1, 2, 3});
  EXPECT_EQ(ServedAt(Of(kAnn, 1)), std::nullopt);
  executor_.Advance(seconds(10));
  EXPECT_EQ(changes_, 1) << "those of other users come before her now";
}

TEST_F(QueuePolicyTest, DistinguishesUsersByNumberAndKnowsRoot) {
  policy_.Configure({.time = seconds(10)});
  const std::string by_root = Hold(0, {0});
  const std::string unknown = Hold(kBob, {1});
  terms_.at(unknown).uid.reset();
  Hold(kBob, {2});
  Hold(kAnn, {3});
  executor_.Advance(seconds(10));
  EXPECT_DOUBLE_EQ(policy_.HeldBy(kBob).devices, 1);
  EXPECT_TRUE(policy_.HeldBy(kBob).overdue);
  EXPECT_DOUBLE_EQ(policy_.HeldBy(0).devices, 1);
  EXPECT_FALSE(policy_.HeldBy(0).overdue);
  EXPECT_EQ(ServedAt(Of(kAnn, 2)), std::nullopt) << "only one may be ended for her";
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_EQ(ServedAt(Of(kAnn, 1)), Now() + kKillWait);
  EXPECT_THAT(ended_, ElementsAre("r-2"));
}

TEST_F(QueuePolicyTest, ExpectsStartsInTheOrderOfTheQueue) {
  Hold(kBob, {0, 1, 2, 3}, seconds(100));
  Waiting first = Of(kAnn, 4), second = Of(kAnn, 4);
  first.time = seconds(50);
  second.ticket = "q-2";
  const auto at = [&](base::Duration after) {
    return executor_.clock().Wall() + std::chrono::duration_cast<base::WallTime::duration>(after);
  };
  const auto& starts = policy_.ExpectedStarts({first, second});
  EXPECT_EQ(starts.at("q-1"), at(LongestHeld(seconds(100))));
  EXPECT_EQ(starts.at("q-2"), at(LongestHeld(seconds(100)) + LongestHeld(seconds(50))));
  second.absent = true;
  executor_.Advance(seconds(1));
  EXPECT_THAT(policy_.ExpectedStarts({first, second}), testing::Not(Contains(Key("q-2"))));
}

TEST_F(QueuePolicyTest, CountsPartsAsFractionsOfTheirDevice) {
  const auto facts = inventory::AcmeWithParts({{"1g.5gb", "3g.20gb"}, {}});
  inventory::ReportHealthy(inventory_, facts, executor_.clock().Wall());
  for (const auto& one : facts) inventory_.SetReading(one.id, {}, executor_.clock().Wall());
  Waiting part = Of(kAnn, 1);
  part.request.profile = "3G.20GB";
  EXPECT_DOUBLE_EQ(policy_.AmountOf(part), 0.5) << "by a name that the dialect reads";
  EXPECT_DOUBLE_EQ(policy_.AmountOf(Of(kAnn, 1)), 1);
  EXPECT_THAT(policy_.CouldUse(part), ElementsAre("G0.1"));
  ledger::Lease lease{.id = "r", .allocator = "local"};
  for (const auto& offer : *offers_.Get())
    for (const auto& slot : offer.slots)
      if (slot.slot.device == "G0.1") lease.slots.push_back(slot.slot);
  ASSERT_TRUE(ledger_.Add(lease).ok());
  terms_["r"] = {Now(), Now() + seconds(100), {}, kAnn};
  EXPECT_DOUBLE_EQ(policy_.HeldBy(kAnn).devices, 0.5);
  EXPECT_EQ(ServedAt(part), Now() + LongestHeld(seconds(100)));
}

/// Parts of "1g" can be created on G0 as long as no lease is on it.
TEST_F(QueuePolicyTest, ForeseesPartsThatAreCreatedAndEndsRunsForThem) {
  const auto create = [](const Request&, int missing,
                         const ledger::Snapshot& then) -> std::optional<std::vector<ledger::Slot>> {
    if (missing != 1 || then.HolderOf("G0") != nullptr) return std::nullopt;
    return std::vector<ledger::Slot>{{.id = "new", .device = "new", .ancestors = {{"G0", {}}}}};
  };
  std::set<std::string> preparing;
  QueuePolicy policy(
      executor_,
      {inventory_, ledger_, offers_, terms_, device::testing::FindAcme,
       [&]() -> Create { return create; },
       [&](const Waiting& waiting) { return preparing.contains(waiting.ticket); }},
      {[this](const std::string& lease, const std::string&) { ended_.push_back(lease); }, [] {}});
  policy.Configure({.time = seconds(100)});
  const std::string lease = Hold(kAnn, {0}), other = Hold(kAnn, {1});
  Waiting part = Of(kBob, 1);
  part.request.profile = "1g";
  const auto claim = policy.ClaimOf(part);
  ASSERT_TRUE(claim.served);
  EXPECT_EQ(claim.served->at, Now() + seconds(100) + kKillWait);
  EXPECT_THAT(claim.served->devices, ElementsAre("G0", "new"));
  EXPECT_THAT(policy.ExpectedStarts({part}), ElementsAre(Key("q-1")));
  EXPECT_THAT(ended_, IsEmpty());
  executor_.Advance(seconds(101));
  EXPECT_TRUE(policy.ClaimOf(part).others_end);
  EXPECT_THAT(ended_, ElementsAre(lease)) << "and not " << other;
  preparing.insert("q-1");
  EXPECT_EQ(policy.ExpectedStarts({part}).at("q-1"), executor_.clock().Wall());
}

/// What ends on the device meanwhile must not serve others who would keep it.
TEST_F(QueuePolicyTest, KeepsAllPartsOfADeviceOnWhichOneWillBeCreated) {
  const auto facts = inventory::AcmeWithParts({{"1g.5gb", "1g.5gb"}, {}});
  inventory::ReportHealthy(inventory_, facts, executor_.clock().Wall());
  for (const auto& one : facts) inventory_.SetReading(one.id, {}, executor_.clock().Wall());
  std::vector<int> missing;
  const auto create = [&](const Request&, int lacking,
                          const ledger::Snapshot&) -> std::optional<std::vector<ledger::Slot>> {
    missing.push_back(lacking);
    return std::vector<ledger::Slot>{{.id = "new", .device = "new", .ancestors = {{"G0", {}}}}};
  };
  QueuePolicy policy(executor_,
                     {inventory_, ledger_, offers_, terms_, device::testing::FindAcme,
                      [&]() -> Create { return create; }, nullptr},
                     {[](const std::string&, const std::string&) {}, [] {}});
  Waiting part = Of(kBob, 1);
  part.request.profile = "7g.40gb";
  const auto claim = policy.ClaimOf(part);
  ASSERT_TRUE(claim.served);
  EXPECT_THAT(claim.served->devices, ElementsAre("G0", "G0.0", "G0.1", "new"));
  missing.clear();
  part.request.profile = "1g.5gb";
  for (const int count : {3, 4, 9, 10}) {
    part.request.count = count;
    (void)policy.ClaimOf(part);
  }
  EXPECT_THAT(missing, ElementsAre(1, 2, 7, 8)) << "two of them are there";
}

}  // namespace
}  // namespace penstock::node::allocate
