#include "node/usage/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/usage/state.h"

namespace penstock::node::usage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

Record Example() {
  return {.ended = true,
          .node = "n1",
          .lease = "r-1",
          .allocator = "kubelet",
          .namespace_name = "ml",
          .pod = "train-0",
          .pod_uid = "u-1",
          .container = "main",
          .user = "eva",
          .command = "python \"train\".py",
          .labels = {{"experiment", "a\nb"}},
          .device = "GPU-1",
          .model = "NVIDIA A100",
          .slot = "GPU-1::3",
          .slots = 2,
          .sharing = "time-slicing",
          .shares = 4,
          .since = base::WallTime(1000s),
          .until = base::WallTime(1010s),
          .seconds = 10,
          .measured_seconds = 9.5,
          .busy_seconds = 4.25,
          .energy_joules = 1234.567,
          .memory_peak = base::Mebibytes(3),
          .cpu_seconds = 12.5,
          .host_memory_peak = base::Mebibytes(7)};
}

TEST(Record, ReadsTheLineThatItWrites) {
  const std::string line = EncodeRecord(Example());
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  const auto back = DecodeRecord(line);
  ASSERT_TRUE(back.ok()) << back.error().ToString();
  EXPECT_EQ(*back, Example());
}

TEST(Record, WhatIsNotKnownIsLeftOut) {
  Record record;
  record.lease = "r";
  record.device = "G";
  const std::string line = EncodeRecord(record);
  for (const char* key : {"cpuSeconds", "hostMemoryPeakBytes", "pod", "labels", "user"})
    EXPECT_THAT(line, Not(HasSubstr(key)));
  EXPECT_EQ(DecodeRecord(line)->cpu_seconds, std::nullopt);
  EXPECT_FALSE(DecodeRecord(line)->ended);
}

TEST(Record, PassesOverWhatANewerAgentAddsButNotItsVersion) {
  std::string line = EncodeRecord(Example());
  line.insert(1, "\"colour\":\"red\",");
  EXPECT_EQ(*DecodeRecord(line), Example());
  line.replace(line.find("\"version\":1"), 11, "\"version\":2");
  EXPECT_EQ(DecodeRecord(line).error().code(), base::Code::kDataLoss);
}

TEST(Record, NothingElseIsALine) {
  std::string far = EncodeRecord(Example()), long_ago = far;
  far.replace(far.find("1970-"), 4, "9999");
  long_ago.replace(long_ago.find("\"seconds\":10.0"), 14, "\"seconds\":1e99");
  for (const std::string& text : {far, long_ago})
    EXPECT_EQ(DecodeRecord(text).error().code(), base::Code::kDataLoss) << text;
  for (const char* text : {"", "{", "[]", "7", "{}", R"({"version":1,"kind":"other"})", "\xff",
                           R"({"version":1,"kind":"end","lease":"a"})"})
    EXPECT_EQ(DecodeRecord(text).error().code(), base::Code::kDataLoss) << text;
}

TEST(State, ReadsWhatItWrites) {
  State state{.boot_id = "b",
              .holders = {{Example(), base::TimePoint(5s), base::TimePoint(7s)}},
              .energy = {{"GPU-1", {0.125, base::TimePoint(9s)}}},
              .pending = {"line\n"}};
  const auto back = DecodeState(EncodeState(state), "usage.json");
  ASSERT_TRUE(back.ok()) << back.error().ToString();
  EXPECT_EQ(back->boot_id, "b");
  ASSERT_EQ(back->holders.size(), 1u);
  EXPECT_EQ(back->holders[0].record, Example());
  EXPECT_EQ(back->holders[0].began, base::TimePoint(5s));
  EXPECT_EQ(back->holders[0].last_busy, base::TimePoint(7s));
  EXPECT_EQ(back->energy.at("GPU-1").joules, 0.125);
  EXPECT_EQ(back->energy.at("GPU-1").at, base::TimePoint(9s));
  EXPECT_EQ(back->pending, state.pending);
}

TEST(State, ANewerOneIsLeftAloneAndADamagedOneIsSaid) {
  EXPECT_EQ(DecodeState(R"({"version":2,"strange":1})", "f").error().code(),
            base::Code::kFailedPrecondition);
  for (const char* text : {"", "{", R"({"version":1,"holders":[{}]})",
                           R"({"version":1,"holders":[{"record":"x","began":1,"lastBusy":1}]})"})
    EXPECT_EQ(DecodeState(text, "f").error().code(), base::Code::kDataLoss) << text;
}

}  // namespace
}  // namespace penstock::node::usage
