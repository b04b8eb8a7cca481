#include "api/samples.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Samples Some() {
  SampledDevice device{.id = "GPU-1",
                       .vendor = "nvidia",
                       .model = "NVIDIA A100",
                       .index = 0,
                       .memory_bytes = 1ull << 36};
  device.health_state = "healthy";
  device.utilization = 0.25;
  device.memory_used = 12345678901.0;
  device.clock = 1410e6;
  device.history["utilization"] = {std::nullopt, 0.123456, 1.0};
  SampledProcess process{
      .device = "GPU-1", .index = 0, .pid = 4711, .user = "ann", .command = "python \"train\".py"};
  process.memory_bytes = 1ull << 30;
  process.compute = 0.5;
  Samples samples{.node = "n", .time = "2026-11-21T03:42:00.123Z", .interval_seconds = 1};
  samples.devices = {device};
  samples.processes = {process, {.device = "GPU-1", .kind = "pod"}};
  return samples;
}

TEST(Samples, SayTheSameAfterTheWire) {
  const std::string text = ToJson(Some());
  const auto read = ParseSamples(text);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(ToJson(*read), text);
  EXPECT_EQ(read->devices.at(0).memory_used, 12345678901.0);
  EXPECT_THAT(read->devices.at(0).history.at("utilization"),
              ElementsAre(std::nullopt, 0.1235, 1.0));
  EXPECT_EQ(read->processes.at(1).pid, 0);
}

TEST(Samples, WhatIsNotKnownIsNull) {
  const std::string text = ToJson(Some());
  EXPECT_THAT(text, HasSubstr(R"("temperatureCelsius":null)"));
  EXPECT_THAT(text, HasSubstr(R"("pid":null)"));
  EXPECT_THAT(text, HasSubstr(R"("clockHertz":1410000000)"));
  Samples odd = Some();
  odd.devices[0].power = std::numeric_limits<double>::infinity();
  EXPECT_THAT(ToJson(odd), HasSubstr(R"("powerWatts":null)"));
}

TEST(Samples, OtherAnswersAreRefused) {
  for (const char* text : {"", "[]", "{\"devices\":3}", "{\"devices\":[{\"history\":[]}]}",
                           "{\"devices\":[{\"utilization\":\"x\"}]}", "{\"processes\":[3]}"}) {
    const auto read = ParseSamples(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code(), base::Code::kDataLoss);
  }
}

TEST(Samples, KeysOfNewerAgentsArePassedOver) {
  const auto read = ParseSamples(R"({"later":1,"devices":[{"id":"A","later":{}}]})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->devices.at(0).id, "A");
}

}  // namespace
}  // namespace penstock::api
