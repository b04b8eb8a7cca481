#include "protocol/http/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::protocol::http::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RequestQueue, TakesTurns) {
  RequestQueue admission(2);
  EXPECT_TRUE(admission.Begin(1, "a"));
  EXPECT_TRUE(admission.Begin(2, "b"));
  EXPECT_FALSE(admission.Begin(3, "c"));
  EXPECT_FALSE(admission.Begin(4, "d"));
  EXPECT_TRUE(admission.crowded());
  EXPECT_THAT(admission.End(1), ElementsAre(3));
  EXPECT_THAT(admission.End(4), IsEmpty()) << "the request was abandoned";
  EXPECT_FALSE(admission.crowded());
  EXPECT_THAT(admission.End(2), IsEmpty());
  EXPECT_TRUE(admission.Begin(5, "a"));
}

TEST(RequestQueue, LeavesPlacesForOtherAddresses) {
  RequestQueue admission(8);
  for (std::uint64_t i = 1; i <= 6; ++i) EXPECT_TRUE(admission.Begin(i, "greedy"));
  EXPECT_FALSE(admission.Begin(7, "greedy"));
  EXPECT_TRUE(admission.Begin(8, "other"))
      << "it overtakes a client that waits for its own requests";
  EXPECT_THAT(admission.End(8), IsEmpty());
  EXPECT_THAT(admission.End(1), ElementsAre(7));
}

TEST(RequestQueue, DoesNotDistinguishClientsOfAUnixSocket) {
  RequestQueue admission(4);
  for (std::uint64_t i = 1; i <= 4; ++i) EXPECT_TRUE(admission.Begin(i, "unix"));
  EXPECT_FALSE(admission.Begin(5, "unix"));
}

TEST(RequestQueue, AlwaysHasAPlace) {
  RequestQueue admission(0);
  EXPECT_TRUE(admission.Begin(1, "a"));
}

}  // namespace
}  // namespace penstock::protocol::http::internal
