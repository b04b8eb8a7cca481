// The line of those who wait, on an executor whose clock the test turns.
#include "node/allocate/queue.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::allocate {
namespace {

using base::Code;
using base::Error;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class QueueTest : public testing::Test {
 protected:
  // Serves who fits into `free_` devices.
  base::Status Attempt(const Waiting& waiting) {
    tried_.push_back(waiting.ticket);
    if (waiting.request.count > 8) return Error(Code::kFailedPrecondition, "there are 8");
    if (waiting.request.model == broken_) return Error(Code::kUnavailable, "it is broken");
    if (waiting.request.count > free_[waiting.request.door])
      return Error(Code::kResourceExhausted, std::to_string(free_[waiting.request.door]) + " are free");
    free_[waiting.request.door] -= waiting.request.count;
    return {};
  }

  std::string Add(int count, base::Duration wait = Queue::kForEver, const std::string& door = "local", const std::string& model = "any") {
    Waiting waiting;
    waiting.request.count = count;
    waiting.request.door = door;
    waiting.request.model = model;
    auto ticket = queue_.Add(waiting, wait);
    return ticket.ok() ? *ticket : "";
  }
  void Free(int count) {
    free_["local"] += count;
    queue_.Try();
    executor_.RunUntilIdle();
  }

  base::ManualExecutor executor_;
  std::map<std::string, int> free_;
  std::string broken_ = "none";  // the model of a device that nobody can be given
  std::vector<std::string> tried_, served_;
  std::map<std::string, Error> failed_;
  std::vector<std::string> told_;
  Queue queue_{executor_,
               {[this](const Waiting& waiting) { return Attempt(waiting); },
                [this](const Waiting& waiting, std::size_t position) {
                  told_.push_back(waiting.ticket + " at " + std::to_string(position) + ": " + waiting.reason);
                },
                [this](const Waiting& waiting, const base::Status& status) {
                  if (status.ok())
                    served_.push_back(waiting.ticket);
                  else
                    failed_.emplace(waiting.ticket, status.error());
                }}};
};

TEST_F(QueueTest, ServesAtOnceWhatFits) {
  free_["local"] = 2;
  EXPECT_EQ(Add(1), "q-1");
  EXPECT_THAT(served_, IsEmpty()) << "the answer comes through the executor";
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, ElementsAre("q-1"));
  EXPECT_THAT(queue_.List(), IsEmpty());
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(QueueTest, LetsASmallRequestWaitBehindALargeOne) {
  free_["local"] = 2;
  Add(4);
  Add(1);
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, IsEmpty());
  EXPECT_THAT(told_, ElementsAre("q-1 at 0: 2 are free", "q-2 at 1: 1 is before it in the line"));
  Free(2);
  EXPECT_THAT(served_, ElementsAre("q-1"));
  Free(1);
  EXPECT_THAT(served_, ElementsAre("q-1", "q-2"));
}

TEST_F(QueueTest, LetsOthersPassOneWhoWaitsForWhatNobodyCanBeGiven) {
  broken_ = "T4";
  free_["local"] = 1;
  Add(1, Queue::kForEver, "local", "T4");
  Add(1);
  Add(2);
  Add(1);
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, ElementsAre("q-2"));
  EXPECT_THAT(told_, ElementsAre("q-1 at 0: it is broken", "q-3 at 1: 0 are free", "q-4 at 2: 2 are before it in the line"))
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

TEST_F(QueueTest, DoesNotLetOneDoorHoldUpAnother) {
  free_["slurm"] = 1;
  Add(1);
  Add(1, Queue::kForEver, "slurm");
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
  EXPECT_EQ(told_.back(), "q-2 at 0: 0 are free") << "the one behind moved up";
  Free(1);
  EXPECT_THAT(served_, ElementsAre("q-2"));
}

TEST_F(QueueTest, NeverLetsARequestThatWillNotWaitStandInLine) {
  Add(1, seconds(0));
  executor_.RunUntilIdle();
  EXPECT_EQ(failed_.at("q-1").code(), Code::kDeadlineExceeded);
  EXPECT_THAT(told_, IsEmpty());

  Add(4);
  free_["local"] = 1;
  Add(1, seconds(0));
  executor_.RunUntilIdle();
  EXPECT_EQ(failed_.at("q-3").code(), Code::kDeadlineExceeded) << "free, but not its turn";

  ASSERT_TRUE(queue_.Cancel("q-2", "gives up").ok());
  Add(1, seconds(0));
  executor_.RunUntilIdle();
  EXPECT_THAT(served_, ElementsAre("q-4"));
}

TEST_F(QueueTest, CancelsByTicket) {
  Add(1);
  executor_.RunUntilIdle();
  EXPECT_TRUE(queue_.Cancel("q-1", "root said so").ok());
  EXPECT_EQ(failed_.at("q-1").code(), Code::kCancelled);
  EXPECT_EQ(failed_.at("q-1").message(), "root said so");
  EXPECT_EQ(queue_.Cancel("q-1", "").error().code(), Code::kNotFound);
  Free(1);
  EXPECT_THAT(served_, IsEmpty());
}

TEST_F(QueueTest, TellsOnlyWhatChanged) {
  Add(2);
  executor_.RunUntilIdle();
  Free(0);
  Free(0);
  EXPECT_THAT(told_, ElementsAre("q-1 at 0: 0 are free"));
  Free(1);
  EXPECT_EQ(told_.back(), "q-1 at 0: 1 are free");
  EXPECT_EQ(queue_.List().at(0).reason, "1 are free");
}

TEST_F(QueueTest, MakesOneTryOfManyChanges) {
  Add(1);
  executor_.RunUntilIdle();
  tried_.clear();
  for (int i = 0; i < 100; ++i) queue_.Try();
  executor_.RunUntilIdle();
  EXPECT_THAT(tried_, ElementsAre("q-1"));
}

TEST_F(QueueTest, RefusesMoreThanItsBound) {
  for (std::size_t i = 0; i < Queue::kMost; ++i) ASSERT_NE(Add(1), "");
  EXPECT_EQ(queue_.Add({}, Queue::kForEver).error().code(), Code::kResourceExhausted);
}

TEST(Queue, MayEndWhileATryIsOnItsWay) {
  base::ManualExecutor executor;
  int tries = 0;
  const auto refuse = [&](const Waiting&) -> base::Status {
    ++tries;
    return Error(Code::kResourceExhausted, "none");
  };
  const auto ignore_news = [](const Waiting&, std::size_t) {};
  const auto ignore_end = [](const Waiting&, const base::Status&) {};
  {
    Queue queue(executor, {refuse, ignore_news, ignore_end});
    ASSERT_TRUE(queue.Add({}, seconds(1)).ok());
    queue.Try();
  }
  executor.Advance(seconds(2));
  EXPECT_EQ(tries, 0);
  Queue lives(executor, {refuse, ignore_news, ignore_end});
  ASSERT_TRUE(lives.Add({}, seconds(1)).ok());
  executor.RunUntilIdle();
  EXPECT_GT(tries, 0) << "one that lives is tried";
}

TEST(Queue, MayBeCalledFromItsCallbacks) {
  base::ManualExecutor executor;
  Queue* line = nullptr;
  int done = 0;
  Queue queue(executor, {[&](const Waiting& waiting) -> base::Status {
                           if (waiting.ticket == "q-1") return line->Cancel("q-2", "by the first");
                           return Error(Code::kResourceExhausted, "none");
                         },
                         [&](const Waiting& waiting, std::size_t) { EXPECT_TRUE(line->Cancel(waiting.ticket, "by itself").ok()); },
                         [&](const Waiting& waiting, const base::Status&) {
                           ++done;
                           if (waiting.ticket == "q-1") (void)line->Add({}, Queue::kForEver);
                         }});
  line = &queue;
  ASSERT_TRUE(queue.Add({}, Queue::kForEver).ok());
  ASSERT_TRUE(queue.Add({}, Queue::kForEver).ok());
  executor.RunUntilIdle();
  EXPECT_EQ(done, 3);
  EXPECT_THAT(queue.List(), IsEmpty());
}

}  // namespace
}  // namespace penstock::node::allocate
