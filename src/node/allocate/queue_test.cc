// Tests the queue, on an executor with a fake clock.
#include "node/allocate/queue.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "node/allocate/outlook.h"

namespace penstock::node::allocate {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uid_t kUid = 1000, kOtherUid = 1001;

class QueueTest : public testing::Test {
 protected:
  // Serves a request that fits into `free_` devices; devices of one allocator and model are
  // equivalent.
  base::Status Attempt(const Waiting& waiting, const Devices& kept_back) {
    tried_.push_back(waiting.ticket);
    if (waiting.request.count > 8) return Error(Code::kFailedPrecondition, "there are 8");
    if (waiting.request.model == broken_) return Error(Code::kUnavailable, "it is broken");
    if (kept_back.contains(waiting.request.allocator + "/" + waiting.request.model))
      return Error(Code::kResourceExhausted, "kept back");
    if (waiting.request.model == kept_free_) return {};
    if (waiting.request.count > free_[waiting.request.allocator])
      return Error(Code::kResourceExhausted,
                   std::to_string(free_[waiting.request.allocator]) + " are free");
    free_[waiting.request.allocator] -= waiting.request.count;
    if (waiting.time)
      ends_.emplace(executor_.clock().Now() + LongestHeld(*waiting.time), waiting.request.count);
    return {};
  }

  static Devices CouldUse(const Waiting& waiting) {
    return {waiting.request.allocator + "/" + waiting.request.model};
  }

  // The request is served once enough holders have ended.
  HeadClaim ClaimOf(const Waiting& waiting) {
    HeadClaim claim;
    claims_.push_back(waiting.ticket + (waiting.beyond ? " beyond" : ""));
    claim.others_end = waiting.ticket == ended_for_;
    int free = free_[waiting.request.allocator];
    for (const auto& [at, count] : ends_)
      if ((free += count) >= waiting.request.count && !claim.served)
        claim.served = {std::max(at, executor_.clock().Now()), CouldUse(waiting)};
    return claim;
  }

  // Releases the devices of holders whose time is over.
  void Pass(base::Duration time) {
    executor_.Advance(time);
    while (!ends_.empty() && ends_.begin()->first <= executor_.clock().Now()) {
      free_["local"] += ends_.begin()->second;
      ends_.erase(ends_.begin());
    }
    Free(0);
  }

  std::string Add(int count, base::Duration wait = Queue::kIndefinitely,
                  const std::string& allocator = "local", const std::string& model = "any") {
    Waiting waiting;
    waiting.request.count = count;
    waiting.request.share = share_;
    waiting.request.allocator = allocator;
    waiting.request.model = model;
    waiting.waiter = waiter_;
    waiting.time = time_;
    waiting.ticket = ticket_;
    auto ticket = queue_.Add(waiting, wait);
    return ticket.ok() ? *ticket : "";
  }
  /// Adds a request that says how long it runs.
  std::string AddFor(base::Duration time, int count = 1) {
    time_ = time;
    const std::string ticket = Add(count);
    time_.reset();
    return ticket;
  }
  /// Adds a request and serves what can be served.
  std::string AddAndTry(int count, base::Duration wait = Queue::kIndefinitely) {
    const std::string ticket = Add(count, wait);
    executor_.RunUntilIdle();
    return ticket;
  }
  void Free(int count) {
    free_["local"] += count;
    queue_.Try();
    executor_.RunUntilIdle();
  }

  base::ManualExecutor executor_;
  std::map<std::string, int> free_;
  std::multimap<base::TimePoint, int> ends_;  // of holders of devices
  std::map<uid_t, Holding> held_;
  std::vector<std::string> claims_;
  std::string ended_for_;  // the ticket for which a run is ended
  std::string ticket_;     // of requests that are added
  int share_ = 1;
  Waiter waiter_{kUid, 7, 77};
  std::optional<base::Duration> time_;
  std::string broken_ = "none";     // the model of a device that cannot be allocated
  std::string kept_free_ = "none";  // the model of a device that is free
  std::vector<std::string> tried_, served_;
  std::map<std::string, Error> failed_;
  std::vector<std::string> reported_;
  Queue queue_{executor_,
               {[this](const Waiting& waiting, const Devices& kept_back) {
                  return Attempt(waiting, kept_back);
                },
                CouldUse, [this](const Waiting& waiting) { return ClaimOf(waiting); },
                [this](uid_t uid) { return held_[uid]; },
                [](const Waiting& waiting) {
                  return static_cast<double>(waiting.request.count) / waiting.request.share;
                },
                [this](const Waiting& waiting, std::size_t position) {
                  reported_.push_back(waiting.ticket + " at " + std::to_string(position) + ": " +
                                      waiting.reason);
                },
                [this](const Waiting& waiting, const base::Status& status) {
                  if (status.ok())
                    served_.push_back(waiting.ticket);
                  else
                    failed_.emplace(waiting.ticket, status.error());
                },
                [this](const Waiting&) { return being_served_; }}};
  bool being_served_ = false;
};

TEST_F(QueueTest, ServesAtOnceWhatFits) {
  free_["local"] = 2;
  EXPECT_EQ(Add(1), "q-1");
  EXPECT_THAT(served_, IsEmpty()) << "the answer comes through the executor";
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, ElementsAre("q-1"));
  EXPECT_THAT(queue_.List(), IsEmpty());
  EXPECT_THAT(reported_, IsEmpty());
}

TEST_F(QueueTest, LetsASmallRequestWaitBehindALargeOne) {
  free_["local"] = 2;
  Add(4);
  AddAndTry(1);
  EXPECT_THAT(served_, IsEmpty());
  EXPECT_THAT(reported_,
              ElementsAre("q-1 at 0: 2 are free", "q-2 at 1: 1 run is ahead of it in the queue"));
  Free(2);
  EXPECT_THAT(served_, ElementsAre("q-1"));
  Free(1);
  EXPECT_THAT(served_, ElementsAre("q-1", "q-2"));
}

TEST_F(QueueTest, LetsOthersPassOneWhoWaitsForWhatNoOneCanBeGiven) {
  broken_ = "T4";
  free_["local"] = 1;
  Add(1, Queue::kIndefinitely, "local", "T4");
  Add(1);
  Add(2);
  AddAndTry(1);
  EXPECT_THAT(served_, ElementsAre("q-2"));
  EXPECT_THAT(reported_, ElementsAre("q-1 at 0: it is broken", "q-3 at 1: 0 are free",
                                     "q-4 at 2: 2 runs are ahead of it in the queue"))
      << "who waits for devices to be let go still holds up those behind";

  broken_ = "none";
  Free(1);
  EXPECT_THAT(served_, ElementsAre("q-2", "q-1")) << "it has kept its place";
}

TEST_F(QueueTest, ServesAllThatFitInOneTry) {
  Add(1);
  Add(2);
  Add(9);
  Add(1);
  Free(4);
  EXPECT_THAT(served_, ElementsAre("q-1", "q-2", "q-4"));
  EXPECT_EQ(failed_.at("q-3").code(), Code::kFailedPrecondition);
}

TEST_F(QueueTest, DoesNotLetOneAllocatorHoldUpAnother) {
  free_["slurm"] = 1;
  Add(1);
  Add(1, Queue::kIndefinitely, "slurm");
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, ElementsAre("q-2"));
}

TEST_F(QueueTest, EndsAWaitThatRanOut) {
  Add(4, seconds(60));
  Add(1);
  executor_.Advance(seconds(59));
  EXPECT_TRUE(failed_.empty());
  executor_.Advance(seconds(1));
  EXPECT_EQ(failed_.at("q-1").code(), Code::kDeadlineExceeded);
  EXPECT_THAT(failed_.at("q-1").message(), HasSubstr("0 are free"));
  EXPECT_EQ(reported_.back(), "q-2 at 0: 0 are free") << "the one behind moved up";
  Free(1);
  EXPECT_THAT(served_, ElementsAre("q-2"));
}

TEST_F(QueueTest, NeverLetsARequestThatWillNotWaitStandInLine) {
  AddAndTry(1, seconds(0));
  EXPECT_EQ(failed_.at("q-1").code(), Code::kDeadlineExceeded);
  EXPECT_THAT(reported_, IsEmpty());

  Add(4);
  free_["local"] = 1;
  AddAndTry(1, seconds(0));
  EXPECT_EQ(failed_.at("q-3").code(), Code::kDeadlineExceeded) << "free, but not its turn";

  ASSERT_TRUE(queue_.Cancel("q-2", "gives up").ok());
  AddAndTry(1, seconds(0));
  EXPECT_THAT(served_, ElementsAre("q-4"));
}

TEST_F(QueueTest, ARequestThatWillNotWaitStaysWhileWhatItGetsIsBeingPrepared) {
  being_served_ = true;
  AddAndTry(1, seconds(0));
  EXPECT_THAT(failed_, IsEmpty());
  EXPECT_THAT(reported_, IsEmpty());
  Free(1);
  EXPECT_THAT(served_, ElementsAre("q-1"));
  AddAndTry(1, seconds(0));
  being_served_ = false;
  queue_.Try();
  executor_.RunUntilIdle();
  EXPECT_EQ(failed_.at("q-2").code(), Code::kDeadlineExceeded) << "it could not be prepared";
}

TEST_F(QueueTest, CancelsByTicket) {
  AddAndTry(1);
  EXPECT_TRUE(queue_.Cancel("q-1", "root said so").ok());
  EXPECT_EQ(failed_.at("q-1").code(), Code::kCancelled);
  EXPECT_EQ(failed_.at("q-1").message(), "root said so");
  EXPECT_EQ(queue_.Cancel("q-1", "").error().code(), Code::kNotFound);
  Free(1);
  EXPECT_THAT(served_, IsEmpty());
}

TEST_F(QueueTest, ReportsOnlyWhatChanged) {
  AddAndTry(2);
  Free(0);
  Free(0);
  EXPECT_THAT(reported_, ElementsAre("q-1 at 0: 0 are free"));
  Free(1);
  EXPECT_EQ(reported_.back(), "q-1 at 0: 1 are free");
  EXPECT_EQ(queue_.List().at(0).reason, "1 are free");
}

TEST_F(QueueTest, MakesOneTryOfManyChanges) {
  AddAndTry(1);
  tried_.clear();
  for (int i = 0; i < 100; ++i) queue_.Try();
  executor_.RunUntilIdle();
  EXPECT_THAT(tried_, ElementsAre("q-1"));
}

TEST_F(QueueTest, LetsOneGoAheadThatUsesNothingOfWhatThoseInFrontCouldUse) {
  free_["local"] = 1;
  Add(4, Queue::kIndefinitely, "local", "A100");
  Add(1, Queue::kIndefinitely, "local", "A100");
  Add(1, Queue::kIndefinitely, "local", "T4");
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, ElementsAre("q-3"));
}

TEST_F(QueueTest, LetsOneGoAheadThatIsDoneBeforeTheFirstIsServed) {
  free_["local"] = 4;
  AddFor(seconds(100), 2);
  executor_.RunUntilIdle();
  Add(4);
  Add(1);
  AddFor(seconds(101));
  AddFor(seconds(100));
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, ElementsAre("q-1", "q-5"))
      << "q-3 says nothing, q-4 would not be done by then";
  Pass(LongestHeld(seconds(99)));
  AddFor(seconds(2));
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, SizeIs(2)) << "it is too late for two seconds";
  Pass(seconds(1));
  EXPECT_EQ(served_.at(2), "q-2");
}

TEST_F(QueueTest, LetsNoOneGoAheadWhereNoOneKnowsWhenTheFirstIsServed) {
  free_["local"] = 2;
  Add(4);
  AddFor(seconds(1));
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, IsEmpty());
}

TEST_F(QueueTest, ServesTheFirstBesideAFlowOfShortOnes) {
  free_["local"] = 4;
  AddFor(seconds(100), 2);
  executor_.RunUntilIdle();
  const std::string large = Add(4);
  for (auto left = LongestHeld(seconds(100)); left > seconds(1); left -= seconds(1)) {
    AddFor(seconds(7));
    Pass(seconds(1));
  }
  EXPECT_THAT(served_, testing::Not(testing::Contains(large)));
  AddFor(seconds(7));
  Pass(seconds(1));
  EXPECT_THAT(served_, testing::Contains(large))
      << "its time has come, and nobody delayed it, although nobody listened to SIGTERM";
  EXPECT_GT(served_.size(), 5u) << "others went ahead";
}

TEST_F(QueueTest, LetsNoOneGoAheadAnyMoreOnceThePromiseToTheFirstIsBroken) {
  free_["local"] = 4;
  AddFor(seconds(100), 2);
  executor_.RunUntilIdle();
  const std::string large = AddAndTry(4);
  ends_ = {{executor_.clock().Now() + seconds(1000), 2}};  // the run that was to end continues
  const auto serve_short_ones = [this] {
    const auto before = served_.size();
    for (int second = 0; second < 100; ++second) {
      AddFor(seconds(1));
      Pass(seconds(1));
    }
    return served_.size() - before;
  };
  EXPECT_GT(serve_short_ones(), 0u) << "they are done by the time that the first was promised";
  EXPECT_EQ(serve_short_ones(), 0u) << "they would be done before it is served now";
  Pass(seconds(800));
  EXPECT_EQ(served_.back(), large);
}

TEST_F(QueueTest, RemembersTheEarliestPromiseToTheFirst) {
  free_["local"] = 4;
  AddFor(seconds(100));
  AddFor(seconds(100));
  executor_.RunUntilIdle();
  AddAndTry(4);
  ends_.insert(
      {executor_.clock().Now() + seconds(500), ends_.begin()->second});  // one of them continues
  ends_.erase(ends_.begin());
  AddFor(seconds(100));
  AddFor(seconds(101));
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, ElementsAre("q-1", "q-2", "q-4"))
      << "q-5 fits in by what is known now, and not by what was promised";
}

TEST_F(QueueTest, ManyRequestsForOneDeviceKeepNoOneFromTheOthers) {
  free_["local"] = 0;
  for (int i = 0; i < 1000; ++i) Add(1, Queue::kIndefinitely, "local", "busy");
  executor_.RunUntilIdle();
  waiter_.uid = kOtherUid;
  free_["local"] = 1;
  broken_ = "busy";  // the model that cannot be allocated
  const std::string bob = Add(1, Queue::kIndefinitely, "local", "free");
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, ElementsAre(bob)) << "those before wait for what nobody can be given";

  broken_ = "none";
  free_["local"] = 0;
  Free(0);
  waiter_.uid = kUid;
  kept_free_ = "free";
  const std::string own = Add(1, Queue::kIndefinitely, "local", "free");
  for (int i = 0; i < 40; ++i) executor_.RunUntilIdle(), queue_.Try();
  EXPECT_EQ(served_.back(), own) << "not even its own user's other requests keep it";
}

TEST_F(QueueTest, TriesABoundedNumberInATurn) {
  time_ = seconds(1);  // so that each may go ahead on its own
  for (int i = 0; i < 1000; ++i) {
    waiter_.uid = kUid + static_cast<uid_t>(i % 4);
    Add(1, Queue::kIndefinitely, "local", "model " + std::to_string(i));
  }
  executor_.RunUntilIdle();
  tried_.clear();
  Free(0);
  EXPECT_THAT(tried_, SizeIs(64));
  waiter_.uid = kUid + 4;
  const std::string late = Add(1, Queue::kIndefinitely, "local", "another");
  executor_.RunUntilIdle();
  EXPECT_THAT(tried_, testing::Contains(late)) << "each user has as many";
}

TEST_F(QueueTest, ServesWhatIsBeyondAUsersLimitAfterAllOthers) {
  queue_.Configure({.devices = 2});
  Add(1);  // q-1 and q-2 are within the limit
  Add(1);
  Add(1);
  waiter_.uid = kOtherUid;
  AddAndTry(2);
  EXPECT_EQ(reported_.back(), "q-3 at 3: 3 runs are ahead of it in the queue");
  Free(4);
  EXPECT_THAT(served_, ElementsAre("q-1", "q-2", "q-4"));
  Free(1);
  EXPECT_THAT(served_, ElementsAre("q-1", "q-2", "q-4", "q-3")) << "nobody else waits";
}

TEST_F(QueueTest, KnowsThatALoneUserAsksForMoreThanTheLimits) {
  queue_.Configure({.devices = 2});
  held_[kUid] = {1, false};
  AddAndTry(2);
  EXPECT_THAT(claims_, ElementsAre("q-1 beyond"));
  held_[kUid] = {};
  Free(0);
  EXPECT_EQ(claims_.back(), "q-1");
  held_[kUid] = {1, true};
  Free(0);
  EXPECT_EQ(claims_.back(), "q-1 beyond") << "what it holds, it holds for too long";
  Free(2);
  EXPECT_THAT(served_, ElementsAre("q-1")) << "nobody else waits";
}

TEST_F(QueueTest, CountsWhatAUserHolds) {
  queue_.Configure({.devices = 2});
  held_[kUid] = {1.5, false};
  Add(1);
  waiter_.uid = kOtherUid;
  Add(1);
  Free(1);
  EXPECT_THAT(served_, ElementsAre("q-2"));
}

TEST_F(QueueTest, CountsAShareAsThatPartOfADevice) {
  queue_.Configure({.devices = 1});
  held_[kUid] = {0.5, false};
  share_ = 4;
  Add(1);  // together with q-2 it is a whole device
  Add(1);
  Add(1);
  waiter_.uid = kOtherUid;
  Add(4);  // one of four
  AddAndTry(1);
  Free(8);
  EXPECT_THAT(served_, ElementsAre("q-1", "q-2", "q-4", "q-3", "q-5"));
}

TEST_F(QueueTest, ServesWhoHoldsSomethingForTooLongAfterAllOthers) {
  queue_.Configure({.time = seconds(10)});
  held_[kUid] = {1, true};
  Add(1);
  waiter_.uid = kOtherUid;
  Add(1);
  Free(1);
  EXPECT_THAT(served_, ElementsAre("q-2"));
}

TEST_F(QueueTest, GivesWhatSomeoneWasEndedForToNoOneElse) {
  queue_.Configure({.time = seconds(10)});
  held_[kUid] = {1, true};
  Add(1);
  waiter_.uid = kOtherUid;
  ended_for_ = Add(1);
  executor_.RunUntilIdle();
  held_[kUid] = {};
  Free(1);
  EXPECT_THAT(served_, ElementsAre("q-2"));
}

TEST_F(QueueTest, KnowsNoLimitsForRootAndForWhoIsAlone) {
  queue_.Configure({.devices = 1, .waiting = 1});
  EXPECT_NE(Add(8), "");
  EXPECT_NE(Add(1), "") << "alone";
  waiter_.uid = 0;
  held_[0] = {8, true};
  EXPECT_NE(Add(4), "");
  EXPECT_NE(Add(1), "");
  Free(5);
  EXPECT_THAT(served_, ElementsAre("q-3", "q-4"))
      << "eight, and a second one, are beyond ann's limits";
}

TEST_F(QueueTest, RefusesMoreThanAUserMayHaveWaitingWhileOthersWait) {
  queue_.Configure({.waiting = 2});
  for (int i = 0; i < 3; ++i) EXPECT_NE(Add(1), "");
  waiter_.uid = kOtherUid;
  EXPECT_NE(Add(1), "");
  waiter_.uid = kUid;
  EXPECT_EQ(Add(1), "");
  EXPECT_NE(Add(1, seconds(0)), "") << "it does not wait";
  executor_.RunUntilIdle();
  std::vector<std::string> order;
  for (const Waiting& waiting : queue_.InOrder()) order.push_back(waiting.ticket);
  EXPECT_THAT(order, ElementsAre("q-1", "q-2", "q-4", "q-3")) << "the third was there before";
}

Waiting Kept(const std::string& ticket, const Waiter& waiter) {
  Waiting place{.ticket = ticket, .waiter = waiter, .user = "ann", .command = "", .reason = ""};
  place.request.allocator = "local";
  place.request.count = 1;
  return place;
}

TEST_F(QueueTest, KeepsPlacesForThoseWhoComeBack) {
  free_["local"] = 1;
  queue_.Restore({Kept("q-7", {1000, 7, 77}), Kept("q-8", {1000, 8, 88})}, 9, seconds(10));
  EXPECT_EQ(Add(1), "q-9") << "a new one";
  ticket_ = "q-8";
  EXPECT_EQ(Add(1), "q-10") << "another process's ticket";
  waiter_ = {1000, 8, 88};
  EXPECT_EQ(Add(1), "q-8");
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, IsEmpty()) << "one before them has not come back yet";
  EXPECT_EQ(reported_.back(), "q-10 at 3: 3 runs are ahead of it in the queue");
  ticket_ = "q-7";
  waiter_ = {1000, 7, 77};
  EXPECT_EQ(Add(1), "q-7");
  EXPECT_EQ(Add(1), "q-11") << "a place is taken once";
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, ElementsAre("q-7"));
  Free(1);
  EXPECT_THAT(served_, ElementsAre("q-7", "q-8"));
}

TEST_F(QueueTest, GivesAPlaceToNoOneWhoAsksForMoreThanItWasFor) {
  const auto kept = [](const std::string& ticket, pid_t pid, int count, int share) {
    Waiting place = Kept(ticket, {kUid, pid, 77});
    place.request.count = count;
    place.request.share = share;
    return place;
  };
  queue_.Restore(
      {kept("q-1", 1, 1, 1), kept("q-2", 2, 1, 2), kept("q-3", 3, 2, 1), kept("q-4", 4, 0, 1)}, 5,
      seconds(10));
  const auto come_back = [this](const std::string& ticket, pid_t pid, int count) {
    ticket_ = ticket;
    waiter_.pid = pid;
    return Add(count);
  };
  EXPECT_EQ(come_back("q-1", 1, 8), "q-5");
  EXPECT_EQ(come_back("q-2", 2, 1), "q-6") << "a whole one, where it was a share";
  EXPECT_EQ(come_back("q-3", 3, 1), "q-3") << "less";
  EXPECT_EQ(come_back("q-4", 4, 8), "q-4") << "an older file does not say";
  executor_.RunUntilIdle();
  std::vector<std::string> line;
  for (const Waiting& waiting : queue_.List()) line.push_back(waiting.ticket);
  EXPECT_THAT(line, ElementsAre("q-3", "q-4", "q-5", "q-6"))
      << "nobody waits for those who took no place";
}

TEST_F(QueueTest, GivesAPlaceForAPartToNoOneWhoAsksForAnother) {
  const auto of = [](std::string ticket, pid_t pid, std::string profile, std::uint64_t memory) {
    Waiting waiting = Kept(ticket, {kUid, pid, 77});
    waiting.request.profile = std::move(profile);
    waiting.request.least_memory = {memory};
    return waiting;
  };
  queue_.Restore({of("q-1", 1, "1g.5gb", 0), of("q-2", 2, "1g.5gb", 0), of("q-3", 3, "", 10),
                  of("q-4", 4, "", 10), of("q-5", 5, "1g.5gb", 0)},
                 6, seconds(10));
  const auto add = [this](const Waiting& waiting) {
    const auto ticket = queue_.Add(waiting, Queue::kIndefinitely);
    return ticket.ok() ? *ticket : ticket.error().ToString();
  };
  EXPECT_EQ(add(of("q-1", 1, "7g.40gb", 0)), "q-6") << "another profile";
  EXPECT_EQ(add(of("q-2", 2, "", 0)), "q-7") << "a whole device";
  EXPECT_EQ(add(of("q-3", 3, "", 11)), "q-8") << "more memory";
  EXPECT_EQ(add(of("q-4", 4, "", 9)), "q-4") << "less memory";
  EXPECT_EQ(add(of("q-5", 5, "1g.5gb", 0)), "q-5") << "the same";
}

TEST_F(QueueTest, DropsPlacesThatNoOneComesBackTo) {
  free_["local"] = 1;
  queue_.Restore({Kept("q-7", {1000, 7, 77})}, 8, seconds(10));
  Add(1);
  executor_.Advance(seconds(9));
  EXPECT_THAT(served_, IsEmpty());
  executor_.Advance(seconds(1));
  EXPECT_EQ(failed_.at("q-7").code(), Code::kCancelled);
  EXPECT_THAT(served_, ElementsAre("q-8"));
}

TEST(Queue, MayEndWhileATryIsOnItsWay) {
  base::ManualExecutor executor;
  int tries = 0;
  const auto refuse = [&](const Waiting&, const Devices&) -> base::Status {
    ++tries;
    return Error(Code::kResourceExhausted, "none");
  };
  const auto use_nothing = [](const Waiting&) { return Devices(); };
  const auto claim_nothing = [](const Waiting&) { return HeadClaim(); };
  const auto hold_nothing = [](uid_t) { return Holding(); };
  const auto ask_nothing = [](const Waiting&) { return 0.0; };
  const auto ignore_news = [](const Waiting&, std::size_t) {};
  const auto ignore_end = [](const Waiting&, const base::Status&) {};
  {
    Queue queue(executor, {refuse, use_nothing, claim_nothing, hold_nothing, ask_nothing,
                           ignore_news, ignore_end});
    ASSERT_TRUE(queue.Add({}, seconds(1)).ok());
    queue.Try();
  }
  executor.Advance(seconds(2));
  EXPECT_EQ(tries, 0);
  Queue lives(executor, {refuse, use_nothing, claim_nothing, hold_nothing, ask_nothing, ignore_news,
                         ignore_end});
  ASSERT_TRUE(lives.Add({}, seconds(1)).ok());
  executor.RunUntilIdle();
  EXPECT_GT(tries, 0) << "one that lives is tried";
}

TEST(Queue, MayBeCalledFromItsCallbacks) {
  base::ManualExecutor executor;
  Queue* line = nullptr;
  int done = 0;
  Queue queue(executor,
              {[&](const Waiting& waiting, const Devices&) -> base::Status {
                 if (waiting.ticket == "q-1") return line->Cancel("q-2", "by the first");
                 return Error(Code::kResourceExhausted, "none");
               },
               [](const Waiting&) { return Devices(); }, [](const Waiting&) { return HeadClaim(); },
               [](uid_t) { return Holding(); }, [](const Waiting&) { return 0.0; },
               [&](const Waiting& waiting, std::size_t) {
                 EXPECT_TRUE(line->Cancel(waiting.ticket, "by itself").ok());
               },
               [&](const Waiting& waiting, const base::Status&) {
                 ++done;
                 if (waiting.ticket == "q-1") (void)line->Add({}, Queue::kIndefinitely);
               }});
  line = &queue;
  ASSERT_TRUE(queue.Add({}, Queue::kIndefinitely).ok());
  ASSERT_TRUE(queue.Add({}, Queue::kIndefinitely).ok());
  executor.RunUntilIdle();
  EXPECT_EQ(done, 3);
  EXPECT_THAT(queue.List(), IsEmpty());
}

}  // namespace
}  // namespace penstock::node::allocate
