#include "adapter/pages/page_state_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"

namespace penstock::adapter::pages {
namespace {

using api::PageDetail;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

class PageStateCacheTest : public testing::Test {
 protected:
  std::string State(PageDetail detail = PageDetail::kHolders,
                    const std::vector<std::string>& nodes = {}) {
    return *cache_.State(detail, "b", nodes).body;
  }

  int states_ = 0, histories_ = 0;
  base::ManualExecutor control_;
  PageStateCache cache_{
      control_,
      {.state =
           [this] {
             api::PageState state{.node = "n" + std::to_string(++states_)};
             api::PageDevice& device = state.devices.emplace_back();
             device.report.id = "G";
             device.holders.resize(1);
             device.holders[0].holder.pids = {4711};
             return state;
           },
       .history =
           [this] { return api::PageHistory{.step_seconds = static_cast<double>(++histories_)}; }}};
};

TEST_F(PageStateCacheTest, MakesOneStateForManyReaders) {
  EXPECT_THAT(State(), HasSubstr("\"n1\""));
  control_.Advance(2900ms);
  EXPECT_THAT(State(), HasSubstr("\"n1\""));
  EXPECT_THAT(State(PageDetail::kProcesses), AllOf(HasSubstr("\"n1\""), HasSubstr("4711")));
  EXPECT_THAT(State(), Not(HasSubstr("4711")));
  EXPECT_THAT(*cache_.Queue(PageDetail::kHolders, 0).body, HasSubstr("\"count\":0"));
  EXPECT_EQ(states_, 1);
  control_.Advance(100ms);
  EXPECT_THAT(State(), HasSubstr("\"n2\""));
}

TEST_F(PageStateCacheTest, TagsWhatIsTheSame) {
  const auto one = cache_.State(PageDetail::kHolders, "b", {});
  EXPECT_EQ(one.tag, cache_.State(PageDetail::kHolders, "b", {}).tag);
  EXPECT_NE(one.tag, cache_.State(PageDetail::kHolders, "b", {"gpu2"}).tag);
  control_.Advance(3s);
  EXPECT_NE(one.tag, cache_.State(PageDetail::kHolders, "b", {"gpu2"}).tag);
  EXPECT_FALSE(one.kept) << "browsers write nothing to their disks";
}

TEST_F(PageStateCacheTest, DropsWhatIsNotRead) {
  const std::weak_ptr<const std::string> state = cache_.State(PageDetail::kHolders, "b", {}).body;
  const std::weak_ptr<const std::string> history = cache_.History().body;
  control_.Advance(59s);
  EXPECT_FALSE(state.expired());
  control_.Advance(2min);
  EXPECT_TRUE(state.expired());
  EXPECT_TRUE(history.expired());
  EXPECT_THAT(State(), HasSubstr("\"n2\""));
}

TEST_F(PageStateCacheTest, MakesTheHistoryLessOften) {
  EXPECT_THAT(*cache_.History().body, HasSubstr(":1,"));
  control_.Advance(9s);
  EXPECT_THAT(*cache_.History().body, HasSubstr(":1,"));
  control_.Advance(1s);
  EXPECT_THAT(*cache_.History().body, HasSubstr(":2,"));
}

TEST_F(PageStateCacheTest, HasNoHoldersOfADeviceThatDoesNotExist) {
  EXPECT_EQ(cache_.Holders(PageDetail::kHolders, "G", 0).status, 200);
  EXPECT_EQ(cache_.Holders(PageDetail::kHolders, "../G", 0).status, 404);
}

}  // namespace
}  // namespace penstock::adapter::pages
