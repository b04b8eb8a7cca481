#include "node/lease/queue_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::lease {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;

QueueCheckpoint Full() {
  QueueCheckpoint memory;
  memory.next_ticket = 9;
  for (int i = 0; i < 2; ++i) {
    allocate::Waiting waiting;
    waiting.ticket = "q-" + std::to_string(7 + i);
    waiting.waiter = {1000, 42 + i, 4711};
    waiting.user = "ann";
    waiting.request.count = 4;
    waiting.request.share = 2;
    waiting.request.profile = "1g.5gb";
    waiting.request.least_memory = base::Mebibytes(20);
    waiting.since = base::ParseTime("2026-11-21T03:42:00.123Z");
    memory.waiting.push_back(waiting);
  }
  memory.runs = {{"r-1",
                  {base::TimePoint(seconds(5)), base::TimePoint(seconds(7)),
                   base::TimePoint(seconds(37)), 1000}},
                 {"r-2", {base::TimePoint(seconds(6))}}};
  return memory;
}

TEST(QueueFile, ReadsWhatItWrote) {
  const auto back =
      DecodeQueueCheckpoint(EncodeQueueCheckpoint(Full(), "boot"), "boot", "queue.json");
  ASSERT_TRUE(back.ok()) << back.error().ToString();
  EXPECT_EQ(back->next_ticket, 9u);
  EXPECT_EQ(back->runs, Full().runs);
  ASSERT_EQ(back->waiting.size(), 2u);
  EXPECT_EQ(back->waiting[1].ticket, "q-8");
  EXPECT_EQ(back->waiting[1].waiter, Full().waiting[1].waiter);
  EXPECT_EQ(back->waiting[1].user, "ann");
  EXPECT_EQ(back->waiting[1].since, Full().waiting[1].since);
  EXPECT_EQ(back->waiting[1].request.count, 4);
  EXPECT_EQ(back->waiting[1].request.share, 2);
  EXPECT_EQ(back->waiting[1].request.profile, "1g.5gb");
  EXPECT_EQ(back->waiting[1].request.least_memory, base::Mebibytes(20));
}

TEST(QueueFile, ReadsOlderFiles) {
  const auto back = DecodeQueueCheckpoint(R"({"version": 1, "bootId": "boot", "nextTicket": 2,
    "waiting": [{"ticket": "q-1", "uid": 1000, "pid": 42, "start": 4711, "user": "ann", "since": "2026-11-21T03:42:00.123Z"}],
    "runs": [{"lease": "r-1", "began": 5, "ends": 7}]})",
                                          "boot", "queue.json");
  ASSERT_TRUE(back.ok()) << back.error().ToString();
  EXPECT_EQ(back->waiting.at(0).request.count, 0) << "not known";
  EXPECT_EQ(back->runs.at("r-1"),
            (Term{base::TimePoint(base::Duration(5)), base::TimePoint(base::Duration(7))}));
}

TEST(QueueFile, KnowsNothingOfAnotherBoot) {
  const auto back =
      DecodeQueueCheckpoint(EncodeQueueCheckpoint(Full(), "boot"), "another", "queue.json");
  ASSERT_TRUE(back.ok());
  EXPECT_THAT(back->waiting, IsEmpty());
  EXPECT_THAT(back->runs, IsEmpty());
}

TEST(QueueFile, ReportsANewerFileFromADamagedOne) {
  const auto code = [](const char* text) {
    return DecodeQueueCheckpoint(text, "boot", "queue.json").error().code();
  };
  EXPECT_EQ(code(R"({"version": 2, "what": {}})"), Code::kFailedPrecondition);
  EXPECT_EQ(code("{"), Code::kDataLoss);
  EXPECT_EQ(code(R"({"version": 1, "bootId": "boot", "waiting": [{"ticket": "q-1"}]})"),
            Code::kDataLoss);
  EXPECT_EQ(
      code(
          R"({"version": 1, "bootId": "boot", "waiting": [{"ticket": "q-1", "uid": -1, "pid": 0, "start": 1}]})"),
      Code::kDataLoss);
}

}  // namespace
}  // namespace penstock::node::lease
