#include "adapter/kubelet/allocatable_confirmation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"

namespace penstock::adapter::kubelet {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class KubeletListTest : public testing::Test {
 protected:
  base::ManualExecutor executor_;
  int asked_ = 0;
  base::Duration takes_{};
  AllocatableConfirmation::Answer answer_{std::map<std::string, std::vector<std::string>>{}};
  std::vector<KubeletAmounts> reported_;
  std::unique_ptr<AllocatableConfirmation> list_ = std::make_unique<AllocatableConfirmation>(
      executor_,
      [this](auto done) {
        ++asked_;
        executor_.PostAfter(takes_, [this, done] { done(answer_); });
      },
      [this](const KubeletAmounts& amounts) { reported_.push_back(amounts); });
};

TEST_F(KubeletListTest, AsksUntilTheKubeletHasWhatWasOffered) {
  answer_ = {{{"acme.com/gpu", {"G0"}}}};
  list_->Expect({{"acme.com/gpu", {.all = 3, .usable = {"G0", "G1"}}}});
  executor_.Advance(60ms);
  EXPECT_EQ(asked_, 3);
  EXPECT_THAT(reported_, IsEmpty());
  answer_ = {{{"acme.com/gpu", {"G0", "G1"}}, {"other.com/nic", {"N0"}}}};
  executor_.Advance(50ms);
  EXPECT_THAT(reported_,
              ElementsAre(KubeletAmounts{{"acme.com/gpu", {.capacity = 3, .allocatable = 2}}}));
  executor_.Advance(1h);
  EXPECT_EQ(asked_, 4);
}

TEST_F(KubeletListTest, GivesUpAfterTwoSeconds) {
  list_->Expect({{"acme.com/gpu", {.all = 1, .usable = {"G0"}}}});
  executor_.Advance(1h);
  EXPECT_THAT(reported_, IsEmpty());
  EXPECT_LE(asked_, 16);
  EXPECT_GE(asked_, 10);
}

TEST_F(KubeletListTest, AKubeletThatDoesNotAnswerIsAskedAgain) {
  answer_ = base::Error(base::Code::kUnavailable, "no kubelet");
  list_->Expect({{"acme.com/gpu", {.all = 1, .usable = {"G0"}}}});
  executor_.Advance(100ms);
  answer_ = {{{"acme.com/gpu", {"G0"}}}};
  executor_.Advance(1s);
  EXPECT_EQ(reported_.size(), 1u);
}

TEST_F(KubeletListTest, NothingLeftIsReported) {
  list_->Expect({{"acme.com/gpu", {.all = 0, .usable = {}}}});
  executor_.Advance(1s);
  EXPECT_THAT(reported_,
              ElementsAre(KubeletAmounts{{"acme.com/gpu", {.capacity = 0, .allocatable = 0}}}));
}

TEST_F(KubeletListTest, AnAnswerToAnOlderOfferIsNotReported) {
  answer_ = {{{"acme.com/gpu", {"G0"}}}};
  list_->Expect({{"acme.com/gpu", {.all = 1, .usable = {"G0"}}}});
  takes_ = 3ms;
  executor_.PostAfter(6ms, [this] {
    list_->Expect({{"acme.com/gpu", {.all = 2, .usable = {"G0", "G1"}}}});
  });
  executor_.Advance(1h);
  EXPECT_THAT(reported_, IsEmpty());
}

TEST_F(KubeletListTest, WhereNothingIsServedNoOneIsAsked) {
  list_->Expect({});
  executor_.Advance(1h);
  EXPECT_EQ(asked_, 0);
}

TEST_F(KubeletListTest, IsSilentOnceItIsGone) {
  answer_ = {{{"acme.com/gpu", {"G0"}}}};
  list_->Expect({{"acme.com/gpu", {.all = 1, .usable = {"G0"}}}});
  list_.reset();
  executor_.Advance(1h);
  EXPECT_THAT(reported_, IsEmpty());
}

}  // namespace
}  // namespace penstock::adapter::kubelet
