// Tests the event loop, on its own thread and on the test's.
#include "os/loop.h"

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/core/testing/fake_clock.h"
#include "os/core/fd.h"
#include "os/testing/eventually.h"
#include "os/testing/turned_loop.h"

namespace penstock::os {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::ElementsAre;

struct Pipe {
  Pipe() {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
    out.Reset(fds[0]);
    in.Reset(fds[1]);
  }
  void Write() const { ASSERT_EQ(::write(in.get(), "x", 1), 1); }
  void Drain() const {
    std::array<char, 16> buffer{};
    ASSERT_GT(::read(out.get(), buffer.data(), buffer.size()), 0);
  }
  UniqueFd out, in;
};

TEST(Loop, RunsPostedFunctionsInOrder) {
  Loop loop("test");
  std::vector<int> order;
  loop.Post([&] {
    order.push_back(1);
    loop.Post([&] { order.push_back(3); });
    loop.Post([&] { loop.Stop(); });
  });
  loop.Post([&] { order.push_back(2); });
  loop.Run();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(Loop, RunsTimersInTheOrderOfTheirDeadlinesAndNeverEarly) {
  Loop loop("test");
  std::vector<int> order;
  const auto start = loop.clock().Now();
  // Far apart: this thread may be stopped between the two calls.
  loop.PostAfter(milliseconds(200), [&] {
    order.push_back(2);
    loop.Stop();
  });
  loop.PostAfter(milliseconds(1), [&] { order.push_back(1); });
  loop.PostAfter(base::Duration::max(), [&] { order.push_back(3); });
  loop.Run();
  EXPECT_THAT(order, ElementsAre(1, 2));
  EXPECT_GE(loop.clock().Now() - start, milliseconds(200));
}

TEST(Loop, NeverRunsATimerThatWasCancelledOnItsThreadEvenIfItWasDue) {
  Loop loop("test");
  bool ran = false;
  base::TimerId second = 0;
  loop.PostAfter(milliseconds(0), [&] { loop.Cancel(second); });
  second = loop.PostAfter(milliseconds(0), [&] { ran = true; });
  loop.PostAfter(milliseconds(1), [&] { loop.Stop(); });
  loop.Run();
  EXPECT_FALSE(ran);
}

TEST(Loop, TakesFunctionsAndTimersFromAnyThread) {
  Loop loop("test");
  loop.Start();
  std::promise<void> done;
  int count = 0;  // on the loop's thread only
  constexpr int kThreads = 4, kEach = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        const auto timer = loop.PostAfter(hours(1), [] {});
        loop.Post([&] {
          EXPECT_TRUE(loop.InLoop());
          if (++count == kThreads * kEach) done.set_value();
        });
        loop.Cancel(timer);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  done.get_future().get();
  EXPECT_FALSE(loop.InLoop());
}

TEST(Loop, WakesForATimerThatIsSoonerThanTheOneItSleepsFor) {
  Loop loop("test");
  loop.Start();
  loop.PostAfter(hours(1), [] {});
  std::promise<void> done;
  loop.PostAfter(milliseconds(1), [&] { done.set_value(); });
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST(Loop, CallsBackAsLongAsADescriptorIsReady) {
  Loop loop("test");
  const Pipe pipe;
  int calls = 0;
  ASSERT_TRUE(loop.Watch(pipe.out.get(), EPOLLIN,
                         [&](std::uint32_t events) {
                           EXPECT_EQ(events, static_cast<std::uint32_t>(EPOLLIN));
                           if (++calls == 3) loop.Stop();
                         })
                  .ok());
  pipe.Write();
  loop.Run();
  EXPECT_EQ(calls, 3);
}

TEST(Loop, GivesNoStaleEventToADescriptorOfTheSameNumber) {
  Loop loop("test");
  Pipe first, second;
  int stale = 0;
  // Both are ready at once; the one that runs first replaces the other, whose event is already
  // dequeued.
  const auto replace = [&](Pipe& self, Pipe& other) {
    return [&](std::uint32_t) {
      const int number = other.out.get();
      loop.Unwatch(number);
      loop.Unwatch(self.out.get());
      Pipe fresh;
      ASSERT_EQ(::dup3(fresh.out.get(), number, O_CLOEXEC), number);
      ASSERT_TRUE(loop.Watch(number, EPOLLIN, [&](std::uint32_t) { ++stale; }).ok());
      other.in = std::move(fresh.in);
      loop.PostAfter(milliseconds(1), [&] { loop.Stop(); });
    };
  };
  ASSERT_TRUE(loop.Watch(first.out.get(), EPOLLIN, replace(first, second)).ok());
  ASSERT_TRUE(loop.Watch(second.out.get(), EPOLLIN, replace(second, first)).ok());
  first.Write();
  second.Write();
  loop.Run();
  EXPECT_EQ(stale, 0);
}

TEST(Loop, ChangesTheEventsOfAWatchedDescriptor) {
  Loop loop("test");
  const Pipe pipe;
  std::uint32_t seen = 0;
  ASSERT_TRUE(loop.Watch(pipe.in.get(), 0,
                         [&](std::uint32_t events) {
                           seen = events;
                           loop.Stop();
                         })
                  .ok());
  loop.Post([&] { EXPECT_TRUE(loop.Rewatch(pipe.in.get(), EPOLLOUT).ok()); });
  loop.Run();
  EXPECT_EQ(seen, static_cast<std::uint32_t>(EPOLLOUT));
  EXPECT_FALSE(loop.Rewatch(pipe.out.get(), EPOLLIN).ok());
  EXPECT_FALSE(loop.Watch(-1, EPOLLIN, [](std::uint32_t) {}).ok());
}

TEST(Loop, DestroysUnrunWhatIsLeftWhenItStops) {
  auto token = std::make_shared<int>();
  std::weak_ptr<int> watched = token;
  bool ran = false;
  Loop loop("test");
  loop.Post([&] { loop.Stop(); });
  loop.Post([&ran, token] { ran = true; });
  loop.PostAfter(hours(1), [&ran, token] { ran = true; });
  token.reset();
  loop.Run();
  EXPECT_TRUE(watched.expired());
  token = std::make_shared<int>();
  watched = token;
  loop.Post([&ran, token] { ran = true; });
  token.reset();
  EXPECT_TRUE(watched.expired());
  EXPECT_FALSE(ran);
}

TEST(Loop, StopsFromItsOwnFunction) {
  Loop loop("test");
  bool ran_on = false;  // on the loop's thread, then on the test's
  std::promise<void> stopping;
  loop.Start();
  loop.Post([&] {
    loop.Stop();
    loop.Post([&] { ran_on = true; });
    stopping.set_value();
  });
  ASSERT_EQ(stopping.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready)
      << "the loop does not wait for itself";
  loop.Stop();  // joins
  EXPECT_FALSE(ran_on);
}

TEST(Loop, StopsFromOutsideAfterTheFunctionThatRuns) {
  Loop loop("test");
  std::promise<void> running, go;
  std::atomic<bool> ended = false, ran_on = false;
  loop.Start();
  loop.Post([&] {
    running.set_value();
    go.get_future().wait();
    ended = true;
  });
  running.get_future().wait();
  std::thread stopper([&] { loop.Stop(); });
  go.set_value();
  stopper.join();
  EXPECT_TRUE(ended);
  loop.Stop();
  loop.Post([&] { ran_on = true; });
  EXPECT_FALSE(ran_on);
}

TEST(Loop, SaysForHowLongItHasBeenBusy) {
  base::FakeClock clock;
  Loop loop("test", clock);
  EXPECT_EQ(loop.Busy(), base::Duration::zero()) << "the loop does not run yet";
  std::promise<void> began, may_end, idle;
  loop.Start();
  loop.Post([&] {
    clock.Advance(milliseconds(5));
    began.set_value();
    may_end.get_future().wait();
  });
  began.get_future().wait();
  EXPECT_EQ(loop.Busy(), milliseconds(5));
  clock.Advance(hours(1));
  EXPECT_EQ(loop.Busy(), hours(1) + milliseconds(5));
  may_end.set_value();
  loop.Post([&] { idle.set_value(); });
  idle.get_future().wait();
  EXPECT_TRUE(Eventually([&] { return loop.Busy() == base::Duration::zero(); }));
}

TEST(Loop, IsLeftAloneWhereWhatRunsDoesNotEnd) {
  std::promise<void> began, may_end, destroyed;
  auto ends = std::make_shared<std::shared_future<void>>(may_end.get_future());
  {
    Loop loop("test");
    loop.Start();
    loop.Post([&began, ends,
               at_end = std::shared_ptr<void>(nullptr, [&](void*) { destroyed.set_value(); })] {
      began.set_value();
      ends->wait();
    });
    began.get_future().wait();
    EXPECT_FALSE(loop.StopWithin(milliseconds(1)));
    EXPECT_GT(loop.Busy(), base::Duration::zero());
  }
  may_end.set_value();
  EXPECT_EQ(destroyed.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready)
      << "the thread of the loop exits cleanly";
}

TEST(Loop, IsStoppedWithinTheTimeWhereItCan) {
  Loop loop("test");
  loop.Start();
  EXPECT_TRUE(loop.StopWithin(std::chrono::seconds(60)));
  EXPECT_TRUE(loop.StopWithin(milliseconds(0))) << "the loop has already stopped";
}

TEST(Loop, FollowsAClockThatIsTurned) {
  TurnedLoop loop("test");
  std::vector<int> order;
  loop.loop().PostAfter(hours(2), [&] { order.push_back(2); });
  loop.loop().PostAfter(hours(1), [&] {
    order.push_back(1);
    loop.loop().PostAfter(milliseconds(0), [&] { order.push_back(10); });
  });
  loop.Start();
  loop.Advance(hours(1) - std::chrono::nanoseconds(1));
  EXPECT_THAT(order, ElementsAre());
  loop.Advance(std::chrono::nanoseconds(1));
  EXPECT_THAT(order, ElementsAre(1, 10));
  EXPECT_TRUE(loop.AdvanceUntil(std::chrono::minutes(10), [&] { return order.size() == 3; }));
  EXPECT_EQ(loop.loop().clock().Now().time_since_epoch(), hours(2));
  loop.Stop();
}

TEST(Loop, SleepsInTheKernelWhileThereIsNothingToDo) {
  Loop loop("test");
  loop.PostAfter(milliseconds(50), [&] { loop.Stop(); });
  timespec before{}, after{};
  ASSERT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before), 0);
  loop.Run();
  ASSERT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after), 0);
  const auto used =
      (after.tv_sec - before.tv_sec) * 1'000'000'000L + after.tv_nsec - before.tv_nsec;
  EXPECT_LT(used, 20'000'000L);
}

}  // namespace
}  // namespace penstock::os
