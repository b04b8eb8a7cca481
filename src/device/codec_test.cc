// What goes through the codec comes back; what never went through it is refused with a reason.
#include "device/codec.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::device::codec {
namespace {

using testing::HasSubstr;

Evidence SomeEvidence() { return {EvidenceSource::kKernelLog, "GPU-1", PciAddress{0, 7, 0, 0}, "xid", -79, "fell \"off\"\nthe bus", true}; }

Facts SomeFacts() {
  Facts facts;
  facts.id = "GPU-1";
  facts.vendor = "acme";
  facts.model = "Accelerator, 40 GB";
  facts.index = 3;
  facts.address = "3";
  facts.pci = PciAddress{0x10000, 0x3b, 0x1f, 7};
  facts.numa_node = 0;
  facts.cpu_affinity = "0-15,64-79";
  facts.memory = base::Mebibytes(40960);
  facts.architecture = "a";
  facts.architecture_version = "8.0";
  facts.serial = "132";
  facts.files = {{"/dev/acme3", 195, 3}};
  facts.links = {{"GPU-2", Nearness::kPciSwitches, 12}, {"GPU-3", Nearness::kSystem, 0}};
  facts.parent = "GPU-0";
  facts.modes = {{"split", "off", "on", {"off", "on"}, ModeScope::kLinkedDevices, ModeEffect::kAfterDriverReload}};
  facts.details = {{"vbios", "92.00"}, {"brand", ""}};
  facts.withheld = "split";
  return facts;
}

TEST(Codec, BringsFactsBackUnchanged) {
  const auto back = DecodeFacts(Encode(SomeFacts()));
  ASSERT_TRUE(back.ok()) << back.error().ToString();
  EXPECT_EQ(*back, SomeFacts());
}

TEST(Codec, TellsAnAbsentFactFromAZero) {
  Facts facts;
  facts.id = "x";
  const auto back = DecodeFacts(Encode(facts));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, facts);
  EXPECT_FALSE(back->numa_node.has_value());
  EXPECT_FALSE(back->pci.has_value());
}

TEST(Codec, BringsDriversReadingsEvidenceAndAddressesBackUnchanged) {
  const Driver driver{"acme", "550.54.15", "12.4", {{"/dev/acmectl", 195, 255}}, {{195, 0, 253}}};
  EXPECT_EQ(*DecodeDriver(Encode(driver)), driver);

  Reading reading;
  reading.reachable = false;
  reading.evidence = {SomeEvidence(), {}};
  reading.processes = {{4711, base::Mebibytes(10)}};
  reading.memory_used = base::Bytes{0};
  reading.utilization = 99.5;
  reading.power = 71.25;
  reading.tells_recovery = true;
  reading.facts_changed = true;
  EXPECT_EQ(*DecodeReading(Encode(reading)), reading);

  const std::vector<Evidence> evidence{SomeEvidence()};
  EXPECT_EQ(*DecodeEvidence(Encode(evidence)), evidence);

  const std::vector<std::string> addresses{"0", "0000:07:00.0"};
  EXPECT_EQ(*DecodeAddresses(Encode(addresses)), addresses);
}

TEST(Codec, BringsRequestsAndAnswersBackUnchanged) {
  const auto request = DecodeRequest(EncodeRequest({7, "describe", "3"}));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->id, 7u);
  EXPECT_EQ(request->operation, "describe");
  EXPECT_EQ(request->argument, "3");

  const auto good = DecodeAnswer(EncodeAnswer({8, {}, Encode(SomeFacts())}));
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(good->status.ok());
  EXPECT_EQ(*DecodeFacts(good->body), SomeFacts());

  const auto bad = DecodeAnswer(EncodeAnswer({9, base::Error(base::Code::kDataLoss, "GPU is lost"), ""}));
  ASSERT_TRUE(bad.ok());
  ASSERT_FALSE(bad->status.ok());
  EXPECT_EQ(bad->status.error().code(), base::Code::kDataLoss);
  EXPECT_EQ(bad->status.error().message(), "GPU is lost");
}

TEST(Codec, CarriesADriversBytesThatAreNoUtf8) {
  Facts facts;
  facts.id = "GPU-\xff\xfe";
  facts.model = std::string("a\0b", 3);
  const auto back = DecodeFacts(Encode(facts));
  ASSERT_TRUE(back.ok()) << back.error().ToString();
  EXPECT_EQ(back->id, "GPU-\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(back->model, facts.model);
}

TEST(Codec, CarriesNumbersThatJsonCannotHold) {
  Reading reading;
  reading.temperature = std::numeric_limits<double>::quiet_NaN();
  reading.memory_used = base::Bytes{std::numeric_limits<std::uint64_t>::max()};
  const auto back = DecodeReading(Encode(reading));
  ASSERT_TRUE(back.ok()) << back.error().ToString();
  EXPECT_FALSE(back->temperature.has_value());
}

TEST(Codec, RefusesWhatIsNoAnswerOfOurs) {
  for (const char* text : {"",
                           "null",
                           "[]",
                           "{",
                           "{}",
                           "{\"id\":\"GPU\",\"index\":\"3\"}",
                           "{\"id\":7}",
                           "{\"id\":\"\"}",
                           "{\"id\":\"a\",\"memory\":-1}",
                           "{\"id\":\"a\",\"memory\":18446744073709551615}",
                           "{\"id\":\"a\",\"memory\":1e300}",
                           "{\"id\":\"a\",\"pci\":\"zz\"}",
                           "{\"id\":\"a\",\"numaNode\":null,\"links\":{}}",
                           "{\"id\":\"a\",\"links\":[{\"nearness\":\"cosy\"}]}",
                           "{\"id\":\"a\",\"links\":[7]}",
                           "{\"id\":\"a\",\"details\":{\"a\":1}}",
                           "{\"id\":\"a\",\"id\":\"b\"}",
                           "{\"id\":\"\xff\"}",
                           "{\"id\":\"a\",\"files\":[{\"major\":4294967296}]}",
                           "{\"id\":\"a\",\"x\":[[[[[[[[[[1]]]]]]]]]]}"}) {
    const auto facts = DecodeFacts(text);
    ASSERT_FALSE(facts.ok()) << text;
    EXPECT_EQ(facts.error().code(), base::Code::kDataLoss) << text;
    EXPECT_FALSE(facts.error().message().empty()) << text;
  }
  EXPECT_THAT(DecodeFacts("{\"id\":\"a\",\"index\":\"3\"}").error().message(), HasSubstr("index"));
  EXPECT_FALSE(DecodeAnswer("{\"id\":1,\"code\":99}").ok());
  EXPECT_FALSE(DecodeAnswer("{\"code\":2}").ok());
  EXPECT_FALSE(DecodeReading("{}").ok());
}

TEST(Codec, IgnoresKeysThatANewerPeerMayKnow) { EXPECT_TRUE(DecodeFacts("{\"id\":\"a\",\"colour\":{\"r\":1}}").ok()); }

TEST(Codec, TakesFramesOutOfAStreamThatComesInPieces) {
  const std::string stream = Frame("one") + Frame("two");
  std::string buffer;
  std::vector<std::string> frames;
  for (const char c : stream) {
    buffer += c;
    const auto frame = TakeFrame(buffer);
    ASSERT_TRUE(frame.ok());
    if (*frame) frames.push_back(**frame);
  }
  EXPECT_EQ(frames, (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(buffer.empty());
}

TEST(Codec, RefusesAnImpossibleLengthBeforeTheContentCame) {
  std::string huge("\x7f\xff\xff\xff", 4), empty(4, '\0');
  EXPECT_EQ(TakeFrame(huge).error().code(), base::Code::kDataLoss);
  EXPECT_EQ(TakeFrame(empty).error().code(), base::Code::kDataLoss);
}

}  // namespace
}  // namespace penstock::device::codec
