// Tests the limits of each user's connections and requests.
#include "protocol/broker/shares.h"

#include <gtest/gtest.h>

namespace penstock::protocol::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uid_t kRoot = 0, kAgent = 900, kAnn = 1001, kBob = 1002, kEve = 1003;
constexpr base::TimePoint kStart{std::chrono::hours(1)};

std::size_t EnterAll(ClientShares& shares, uid_t user) {
  std::size_t entered = 0;
  while (shares.Enter(user)) ++entered;
  return entered;
}

std::size_t WaitAll(ClientShares& shares, uid_t user) {
  std::size_t waiting = 0;
  while (shares.Enter(user) && shares.BeginWait(user)) ++waiting;
  return waiting;
}

TEST(ClientShares, LeaveRoomForEveryOtherUser) {
  ClientShares shares({.queries = 256, .for_root = 16}, kAgent);
  EXPECT_EQ(EnterAll(shares, kAnn), 192u) << "three quarters of all";
  EXPECT_EQ(EnterAll(shares, kBob), 48u) << "three quarters of the rest";
  EXPECT_EQ(EnterAll(shares, kEve), 12u);
  EXPECT_EQ(EnterAll(shares, kRoot), 256u + 16u - 192u - 48u - 12u);
  EXPECT_FALSE(shares.Enter(kAgent));
  shares.Leave(kRoot);
  EXPECT_TRUE(shares.Enter(kAgent));
}

TEST(ClientShares, GiveAPlaceBackToWhoeverComesFirst) {
  ClientShares shares({.queries = 4, .for_root = 0}, kAgent);
  EXPECT_EQ(EnterAll(shares, kAnn), 3u);
  shares.Leave(kAnn);
  EXPECT_TRUE(shares.Enter(kBob));
  EXPECT_TRUE(shares.Enter(kAnn)) << "the user has two, and one is free";
  EXPECT_FALSE(shares.Enter(kBob)) << "all are in use";
}

TEST(ClientShares, TakeNoPlaceFromThoseWhoAskForThoseWhoWait) {
  ClientShares shares({.queries = 8, .waiting = 352, .for_root = 0}, kAgent);
  EXPECT_EQ(WaitAll(shares, kAnn), 264u);
  EXPECT_EQ(WaitAll(shares, kRoot), 66u) << "root also leaves some to the others";
  for (int i = 0; i < 2; ++i)
    shares.Leave(i == 0 ? kAnn : kRoot);  // the last one of each could not wait
  EXPECT_EQ(EnterAll(shares, kBob), 6u) << "all request slots are free";
  shares.EndWait(kAnn);
  EXPECT_EQ(WaitAll(shares, kBob), 0u) << "a client that waited returns to its request slot";
}

TEST(ClientShares, BoundTheRequestsOfAUserButNotOfRoot) {
  ClientShares shares({.requests_per_second = 10, .burst = 5}, kAgent);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(shares.Take(kAnn, kStart), base::Duration::zero()) << i;
  EXPECT_EQ(shares.Take(kAnn, kStart), milliseconds(100));
  EXPECT_EQ(shares.Take(kBob, kStart), base::Duration::zero()) << "another user has its own budget";
  EXPECT_EQ(shares.Take(kAnn, kStart + milliseconds(100)), base::Duration::zero());
  EXPECT_GT(shares.Take(kAnn, kStart + milliseconds(100)), base::Duration::zero());
  int served = 0;
  for (int i = 0; i < 100; ++i)
    served += shares.Take(kAnn, kStart + seconds(60)) == base::Duration::zero();
  EXPECT_EQ(served, 5) << "unused budget does not accumulate indefinitely";
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(shares.Take(kRoot, kStart), base::Duration::zero());
    ASSERT_EQ(shares.Take(kAgent, kStart), base::Duration::zero());
  }
}

TEST(ClientShares, ForgetUsersWhoHaveGone) {
  ClientShares shares({.requests_per_second = 10, .burst = 5}, kAgent);
  for (uid_t user = 10000; user < 20000; ++user) (void)shares.Take(user, kStart + seconds(user));
  EXPECT_LE(shares.users(), 1100u);
}

}  // namespace
}  // namespace penstock::protocol::broker
