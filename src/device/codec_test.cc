// Tests that encoded values decode unchanged and that invalid input is refused with a reason.
#include "device/codec.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::device::codec {
namespace {

using testing::HasSubstr;

Evidence SomeEvidence() {
  return {EvidenceSource::kKernelLog,
          "GPU-1",
          PciAddress{0, 7, 0, 0},
          "xid",
          -79,
          "fell \"off\"\nthe bus",
          true,
          "3/0"};
}

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
  facts.links = {{"GPU-2", Nearness::kPciSwitches, 12}, {"GPU-3", Nearness::kSystem, 0, 40}};
  facts.parent = "GPU-0";
  facts.part = "3/0";
  facts.profile = "1g.5gb";
  facts.placement = Placement{.start = 4, .size = 1};
  facts.number = "3:0";
  facts.parts = {"3/1", "3/2"};
  facts.profiles = {{.name = "1c.1g.5gb",
                     .within = "1g.5gb",
                     .slices = 1,
                     .most = 2,
                     .placements = {{0, 1}, {2, 1}},
                     .capacity = {.memory = base::Mebibytes(4864), .compute_units = 14},
                     .engines = {{"ofa", 1}},
                     .kind = 7}};
  facts.modes = {{"split",
                  "off",
                  "on",
                  {"off", "on"},
                  ModeScope::kLinkedDevices,
                  ModeEffect::kAfterDriverReload}};
  facts.details = {{"vbios", "92.00"}, {"brand", ""}};
  facts.withheld = "split";
  return facts;
}

TEST(Codec, BringsFactsBackUnchanged) {
  const auto back = DecodeFacts(Encode(SomeFacts()));
  ASSERT_TRUE(back.ok()) << back.error().ToString();
  EXPECT_EQ(*back, SomeFacts());
}

TEST(Codec, ReportsAnAbsentFactFromAZero) {
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
  reading.processes = {{4711, base::Mebibytes(10)}, {4712, base::Mebibytes(4), true}};
  reading.reports_recovery = true;
  reading.facts_changed = true;
  reading.parts = {{.address = "0/1", .processes = {{.pid = 42}}}, {.address = "0/2"}};
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

  const auto bad =
      DecodeAnswer(EncodeAnswer({9, base::Error(base::Code::kDataLoss, "GPU is lost"), ""}));
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

TEST(Codec, BringsSamplesBackUnchanged) {
  Sample sample;
  sample.values = {{0, -1, std::uint64_t{1410}},
                   {7, 17, 0.1},
                   {7, 0, -2.5e-300},
                   {9, -1, std::numeric_limits<std::uint64_t>::max()}};
  sample.processes = {{.pid = 4711, .memory = base::Bytes{0}, .compute = 12.5, .decoder = 0},
                      {.pid = 1}};
  sample.unsupported = {3, 65535};
  EXPECT_EQ(*DecodeSample(Encode(sample)), sample);
  EXPECT_EQ(*DecodeSample(Encode(Sample{})), Sample{});

  const SampleRequest request{.quantities = {1, 2, 300}, .processes = true};
  EXPECT_EQ(*DecodeSampleRequest(Encode("0000:07:00.0", request)),
            std::pair(std::string("0000:07:00.0"), request));
  EXPECT_EQ(*DecodeSampleRequest(Encode("", {})), std::pair(std::string(), SampleRequest{}));
}

TEST(Codec, BringsSamplesOfPartsBackUnchanged) {
  Sample sample;
  sample.values = {{0, -1, std::uint64_t{1410}}};
  sample.parts.resize(2);
  sample.parts[0].address = "0000:07:00.0/0";
  sample.parts[0].values = {{7, 1, std::uint64_t{35}}};
  sample.parts[1].address = "0000:07:00.0/1";
  sample.parts[1].processes = {{.pid = 1}};
  sample.parts[1].unsupported = {3};
  EXPECT_EQ(*DecodeSample(Encode(sample)), sample);

  SampleRequest request{.quantities = {1}};
  request.parts.resize(2);
  request.parts[0] = {.quantities = {2, 3}, .processes = true, .address = "0000:07:00.0/0"};
  request.parts[1].address = "0000:07:00.0/1";
  EXPECT_EQ(*DecodeSampleRequest(Encode("0000:07:00.0", request)),
            std::pair(std::string("0000:07:00.0"), request));
}

TEST(Codec, CarriesRequestsToChangeADevice) {
  const ModeRequest mode{"0", "mig", "enabled"};
  EXPECT_EQ(*DecodeModeRequest(Encode(mode)), mode);
  const PartRequest part{"0",
                         {.profile = "1c.3g.20gb",
                          .placement = Placement{.start = 2, .size = 1},
                          .within = "0/3",
                          .outer = true}};
  EXPECT_EQ(*DecodePartRequest(Encode(part)), part);
  const PartRequest anywhere{"1", {.profile = "1g.5gb"}};
  EXPECT_EQ(*DecodePartRequest(Encode(anywhere)), anywhere);
  EXPECT_EQ(*DecodeAddress(EncodeAddress("MIG-5a")), "MIG-5a");
  for (const char* text :
       {"", "0", "0\n", "0\n{}", "0\n{\"part\":{}}", "0\n{\"part\":{\"profile\":\"\"}}",
        "0\n{\"part\":{\"profile\":\"1g\",\"placement\":{\"start\":-1}}}"})
    EXPECT_FALSE(DecodePartRequest(text).ok()) << text;
  EXPECT_FALSE(DecodeModeRequest("0\n{\"mode\":\"mig\"}").ok());
  for (const char* text : {"{}", R"({"addresses":[]})", R"({"addresses":["a","b"]})"})
    EXPECT_FALSE(DecodeAddress(text).ok()) << text;
}

TEST(Codec, LeavesOutWhatIsNoNumber) {
  Sample sample;
  sample.values = {{1, -1, std::numeric_limits<double>::quiet_NaN()},
                   {2, -1, std::numeric_limits<double>::infinity()}};
  sample.processes = {{.pid = 1, .compute = std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_EQ(Encode(sample), "\n1:::::\n");
}

TEST(Codec, RefusesWhatIsNoSample) {
  for (const char* text : {"",
                           "\n",
                           "\n\n\n",
                           "x\n\n",
                           "1\n\n",
                           "1=\n\n",
                           "1=-1\n\n",
                           "1=rnan\n\n",
                           "1=rinf\n\n",
                           "65536=1\n\n",
                           "1.1024=1\n\n",
                           "1.=1\n\n",
                           "1=1  2=2\n\n",
                           "\n0:::::\n",
                           "\n1::::\n",
                           "\n1:x::::\n",
                           "\n1:::::x\n",
                           "\n4294967296:::::\n",
                           "\n\nx",
                           "\n\n\npart\n",
                           "\n\n\npart\n\n",
                           "\n\n\npart\nx\n\n"}) {
    const auto sample = DecodeSample(text);
    ASSERT_FALSE(sample.ok()) << text;
    EXPECT_EQ(sample.error().code(), base::Code::kDataLoss);
  }
  for (const char* text :
       {"", "0", "0\n", "0\nq", "0\np1", "0\np x", "0\np\n0/0", "0\np\n0/0\n", "0\np\n0/0\np x"})
    EXPECT_FALSE(DecodeSampleRequest(text).ok()) << text;
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

TEST(Codec, IgnoresKeysThatANewerPeerMayKnow) {
  EXPECT_TRUE(DecodeFacts("{\"id\":\"a\",\"colour\":{\"r\":1}}").ok());
}

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
