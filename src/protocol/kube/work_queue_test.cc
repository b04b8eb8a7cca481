// Tests the queue with a clock that the test advances.
#include "protocol/kube/work_queue.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"

namespace penstock::protocol::kube {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

class WorkQueueTest : public ::testing::Test {
 protected:
  void Make(WorkQueue::Options options) {
    queue_ = std::make_unique<WorkQueue>(
        executor_, options, [this](const std::string& key, std::function<void(base::Status)> done) {
          begun_.push_back(key);
          times_.push_back(executor_.clock().Now());
          if (keep_) {
            kept_[key] = std::move(done);
          } else {
            done(fail_ ? base::Status(base::Error(base::Code::kUnavailable, "no"))
                       : base::Status());
          }
        });
  }

  std::vector<std::string> Run(base::Duration time = 0s) {
    executor_.Advance(time);
    return std::exchange(begun_, {});
  }

  base::ManualExecutor executor_;
  std::unique_ptr<WorkQueue> queue_;
  bool keep_ = false, fail_ = false;
  std::vector<std::string> begun_;
  std::vector<base::TimePoint> times_;
  std::map<std::string, std::function<void(base::Status)>> kept_;
};

TEST_F(WorkQueueTest, AKeyThatWaitsIsWorkedOnOnce) {
  Make({});
  for (const char* key : {"a", "b", "a", "a"}) queue_->Add(key);
  EXPECT_EQ(queue_->size(), 2u);
  EXPECT_THAT(Run(), ElementsAre("a", "b"));
}

TEST_F(WorkQueueTest, AKeyAddedWhileItIsWorkedOnComesOnceMoreAfterwards) {
  Make({});
  keep_ = true;
  queue_->Add("a");
  Run();
  queue_->Add("a");
  queue_->Add("a");
  EXPECT_THAT(Run(1s), ElementsAre());
  kept_["a"]({});
  EXPECT_THAT(Run(), ElementsAre("a"));
  kept_["a"]({});
  kept_["a"]({});
  EXPECT_THAT(Run(), ElementsAre());
}

TEST_F(WorkQueueTest, WorksOnAFewAtOnce) {
  Make({.at_once = 2});
  keep_ = true;
  for (const char* key : {"a", "b", "c"}) queue_->Add(key);
  EXPECT_THAT(Run(), ElementsAre("a", "b"));
  kept_["b"]({});
  EXPECT_THAT(Run(), ElementsAre("c"));
}

TEST_F(WorkQueueTest, FailedKeysComeBackLaterAndLaterUntilTheyAreWell) {
  Make({.retry_first = 100ms, .retry_most = 300ms});
  fail_ = true;
  queue_->Add("a");
  EXPECT_EQ(Run(0s).size(), 1u);
  EXPECT_EQ(Run(99ms).size(), 0u);
  EXPECT_EQ(Run(1ms).size(), 1u);
  EXPECT_EQ(Run(199ms).size(), 0u);
  EXPECT_EQ(Run(1ms).size(), 1u);
  EXPECT_EQ(Run(299ms).size(), 0u);
  fail_ = false;
  EXPECT_EQ(Run(1ms).size(), 1u);
  EXPECT_EQ(Run(1h).size(), 0u);
  fail_ = true;
  queue_->Add("a");
  EXPECT_EQ(Run().size(), 1u);
  EXPECT_EQ(Run(100ms).size(), 1u) << "the back-off was reset";
  queue_->Forget("a");
}

TEST_F(WorkQueueTest, TheEarliestOfSeveralDelaysCounts) {
  Make({});
  queue_->AddAfter("a", 10s);
  queue_->AddAfter("a", 2s);
  queue_->AddAfter("a", 5s);
  EXPECT_EQ(Run(1999ms).size(), 0u);
  EXPECT_EQ(Run(1ms).size(), 1u);
  EXPECT_EQ(Run(1h).size(), 0u);
}

TEST_F(WorkQueueTest, AfterABurstKeysComeAtTheirRate) {
  Make({.per_second = 10, .burst = 5, .at_once = 100});
  for (int i = 0; i < 100; ++i) queue_->Add(std::to_string(i));
  EXPECT_EQ(Run().size(), 5u);
  EXPECT_EQ(Run(1s).size(), 10u);
  EXPECT_EQ(Run(10s).size(), 85u);
}

TEST_F(WorkQueueTest, MayBeDestroyedByItsOwnWork) {
  queue_ = std::make_unique<WorkQueue>(executor_, WorkQueue::Options{},
                                       [this](const std::string& key, auto done) {
                                         begun_.push_back(key);
                                         queue_.reset();
                                         done(base::Error(base::Code::kInternal, "no"));
                                       });
  queue_->Add("a");
  queue_->Add("b");
  EXPECT_THAT(Run(1h), ElementsAre("a"));
}

}  // namespace
}  // namespace penstock::protocol::kube
