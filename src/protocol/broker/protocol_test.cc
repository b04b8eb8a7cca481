// Tests how the broker answers malformed and invalid requests, and how it encodes its answers.
#include "protocol/broker/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/testing/must.h"

namespace penstock::protocol::broker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Protocol, ReadsARun) {
  const auto request = Must(DecodeRequest(
      R"({"op":"run","gpus":2,"model":"A100*","wait":"10m","command":"python train.py"})"));
  EXPECT_EQ(request.operation, Operation::kRun);
  EXPECT_EQ(request.run.count, 2);
  EXPECT_EQ(request.run.model, "A100*");
  EXPECT_EQ(request.run.wait, std::chrono::minutes(10));
  EXPECT_EQ(request.run.command, "python train.py");
}

TEST(Protocol, ReadsHowLongARunLastsAndWhichPlaceItHad) {
  const auto request = Must(DecodeRequest(R"({"op":"run","time":"2h","ticket":"q-7"})"));
  EXPECT_EQ(request.run.time, std::chrono::hours(2));
  EXPECT_EQ(request.run.ticket, "q-7");
  EXPECT_EQ(*DecodeRequest(EncodeRequest(request)), request);
  for (const char* bad : {R"({"op":"run","time":"0s"})", R"({"op":"run","time":90})",
                          R"({"op":"run","ticket":"\u001b"})"})
    EXPECT_EQ(DecodeRequest(bad).error().code(), Code::kInvalidArgument) << bad;

  WaitingRun waiting{
      "q-7", 0, "none is free", "eva", "sh", 1, 1, "", {}, "2026-11-21T03:42:00.123Z"};
  EXPECT_EQ(EncodeWaiting(waiting).find("resumable"), std::string::npos);
  waiting.time = std::chrono::hours(2);
  waiting.expected_start = "2026-11-21T05:42:00.123Z";
  waiting.resumable = true;
  EXPECT_EQ(*DecodeRunAnswer(EncodeWaiting(waiting))->waiting, waiting);
  GrantedRun granted{"r-1", {}, {}, "devices", ""};
  granted.time = std::chrono::hours(2);
  granted.time_while_others_wait = std::chrono::hours(1);
  EXPECT_EQ(*DecodeRunAnswer(EncodeGranted(granted))->granted, granted);
}

TEST(Protocol, TakesOneDeviceAndWaitsIndefinitelyUnlessReported) {
  const auto request = Must(DecodeRequest(R"({"op":"run"})"));
  EXPECT_EQ(request.run.count, 1);
  EXPECT_EQ(request.run.wait, std::nullopt);
}

TEST(Protocol, ReadsSamples) {
  const auto request = Must(DecodeRequest(R"({"op":"samples"})"));
  EXPECT_EQ(request.operation, Operation::kSamples);
  EXPECT_EQ(EncodeRequest(request), R"({"op":"samples"})");
  EXPECT_FALSE(DecodeRequest(R"({"op":"samples","devices":["0"]})").ok());
}

TEST(Protocol, ReadsLabelsOfARun) {
  const auto request = Must(
      DecodeRequest(R"({"op":"run","labels":{"experiment":"lr = 0.1, ü","team.example/x":""}})"));
  EXPECT_EQ(request.run.labels, (std::map<std::string, std::string>{{"experiment", "lr = 0.1, ü"},
                                                                    {"team.example/x", ""}}));
  EXPECT_EQ(*DecodeRequest(EncodeRequest(request)), request);
}

TEST(Protocol, RefusesLabelsThatOthersCouldNotRead) {
  const std::string long_key(129, 'k'), long_value(257, 'v');
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"", "x"},
                                                        {"-a", "x"},
                                                        {"a-", "x"},
                                                        {"a b", "x"},
                                                        {"a\"b", "x"},
                                                        {"ü", "x"},
                                                        {long_key, "x"},
                                                        {"a", long_value},
                                                        {"a", "line\nfeed"},
                                                        {"a", "\x1b[2J"},
                                                        {"a", "\u009b2J"},
                                                        {"a", "\u202edrawer"},
                                                        {"a", "\xff"}})
    EXPECT_EQ(CheckLabel(key, value).error().code(), Code::kInvalidArgument) << key << "=" << value;
  EXPECT_TRUE(CheckLabel(long_key.substr(1), long_value.substr(1)).ok());
  EXPECT_FALSE(DecodeRequest(R"({"op":"run","labels":{"a":1}})").ok());
  EXPECT_FALSE(DecodeRequest(R"({"op":"run","labels":{"a\u001b":"x"}})").ok());
  std::string many = R"({"op":"run","labels":{)";
  for (int i = 0; i < 33; ++i) many += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":\"\"";
  EXPECT_THAT(DecodeRequest(many + "}}").error().message(), HasSubstr("more than 32"));
}

TEST(Protocol, ReadsWhatUsageIsWanted) {
  const auto request = Must(DecodeRequest(
      R"({"op":"usage","by":["namespace","day"],"since":"2026-11-20T00:00:00.000Z","until":"2026-11-21T00:00:00Z"})"));
  EXPECT_THAT(request.usage.by, ElementsAre("namespace", "day"));
  EXPECT_EQ(base::FormatTime(*request.usage.since), "2026-11-20T00:00:00.000Z");
  EXPECT_EQ(base::FormatTime(*request.usage.until), "2026-11-21T00:00:00.000Z");
  EXPECT_EQ(*DecodeRequest(EncodeRequest(request)), request);
  EXPECT_TRUE(DecodeRequest(R"({"op":"usage","idle":true})")->usage.idle);
  for (const char* bad :
       {R"({"op":"usage","since":"yesterday"})",
        R"({"op":"usage","since":"2026-11-20T00:00:00+01:00"})", R"({"op":"usage","until":""})",
        R"({"op":"usage","until":"9999-11-20T00:00:00.000Z"})",
        R"({"op":"usage","idle":true,"by":["day"]})", R"({"op":"usage","by":"day"})"})
    EXPECT_EQ(DecodeRequest(bad).error().code(), Code::kInvalidArgument) << bad;
}

TEST(Protocol, CountsTheDevicesThatAreNamed) {
  const auto request = Must(DecodeRequest(R"({"op":"run","devices":["0","GPU-1"]})"));
  EXPECT_EQ(request.run.count, 2);
  EXPECT_THAT(request.run.devices, ElementsAre("0", "GPU-1"));
}

struct Bad {
  std::string line;
  Code code;
  std::string says;
};

// Shows the test's name in lists of tests, instead of the object's bytes.
void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.says.substr(0, 40); }

class BadRequest : public testing::TestWithParam<Bad> {};

TEST_P(BadRequest, IsRefusedWithAReason) {
  const auto request = DecodeRequest(GetParam().line);
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.error().code(), GetParam().code);
  EXPECT_THAT(request.error().message(), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadRequest,
    testing::Values(
        Bad{"", Code::kInvalidArgument, "request"},
        Bad{"hello", Code::kInvalidArgument, "request:1"},
        Bad{R"({"op":"run")", Code::kInvalidArgument, "request:1"},
        Bad{R"({"op":"run"}{"op":"run"})", Code::kInvalidArgument, ""},
        Bad{"[]", Code::kInvalidArgument, "where an object is expected"},
        Bad{"null", Code::kInvalidArgument, "where an object"},
        Bad{"{}", Code::kInvalidArgument, "op"},
        Bad{R"({"op":7})", Code::kInvalidArgument, "op: is an integer"},
        Bad{"{\"op\":\"\xff\"}", Code::kInvalidArgument, "UTF-8"},
        Bad{std::string(70000, ' '), Code::kInvalidArgument, "64 KiB"},
        Bad{std::string(1000, '['), Code::kInvalidArgument, "request:1"},
        Bad{R"({"op":"stauts"})", Code::kUnimplemented, "did you mean \"status\""},
        Bad{R"({"op":"rm -rf"})", Code::kUnimplemented, "known: version, run"},
        Bad{R"({"op":"run","gpus":1,"gpus":2})", Code::kInvalidArgument, "gpus"},
        Bad{R"({"op":"run","gpu":1})", Code::kInvalidArgument, "did you mean"},
        Bad{R"({"op":"run","gpus":0})", Code::kInvalidArgument, "gpus"},
        Bad{R"({"op":"run","gpus":-1})", Code::kInvalidArgument, "gpus"},
        Bad{R"({"op":"run","gpus":1e99})", Code::kInvalidArgument, "gpus"},
        Bad{R"({"op":"run","gpus":99999999999999999999})", Code::kInvalidArgument, "gpus"},
        Bad{R"({"op":"run","gpus":"1"})", Code::kInvalidArgument, "gpus: is a string"},
        Bad{R"({"op":"run","devices":[]})", Code::kInvalidArgument, "names no device"},
        Bad{R"({"op":"run","devices":["0"],"gpus":1})", Code::kInvalidArgument,
            "combined with devices"},
        Bad{R"({"op":"run","devices":[0]})", Code::kInvalidArgument, "an item is an integer"},
        Bad{R"({"op":"run","model":"\u001b[2J"})", Code::kInvalidArgument, "control characters"},
        Bad{R"({"op":"run","profile":"1g.5gb\u001b[2J"})", Code::kInvalidArgument,
            "profile: contains control characters"},
        Bad{R"({"op":"run","profile":"1g\n.5gb"})", Code::kInvalidArgument, "control characters"},
        Bad{"{\"op\":\"run\",\"profile\":\"" + std::string(257, '1') + "\"}",
            Code::kInvalidArgument, "profile: is longer than 256 bytes"},
        Bad{R"({"op":"run","profile":""})", Code::kInvalidArgument, "profile: is empty"},
        Bad{R"({"op":"run","profile":["1g.5gb"]})", Code::kInvalidArgument, "profile: is a list"},
        Bad{R"({"op":"run","profile":"1g.5gb","devices":["0:1"]})", Code::kInvalidArgument,
            "profile: cannot be combined with devices"},
        Bad{R"({"op":"run","minMemory":1,"devices":["0:1"]})", Code::kInvalidArgument,
            "minMemory: cannot be combined with devices"},
        Bad{R"({"op":"run","minMemory":1,"share":2})", Code::kInvalidArgument,
            "minMemory: cannot be combined with share"},
        Bad{R"({"op":"run","minMemory":-1})", Code::kInvalidArgument, "minMemory"},
        Bad{R"({"op":"run","minMemory":1e30})", Code::kInvalidArgument, "minMemory"},
        Bad{R"({"op":"run","minMemory":"20Gi"})", Code::kInvalidArgument, "minMemory"},
        Bad{R"({"op":"run","wait":"10"})", Code::kInvalidArgument, "unit"},
        Bad{R"({"op":"run","wait":[]})", Code::kInvalidArgument, "wait"},
        Bad{R"({"op":"run","wait":"-5s"})", Code::kInvalidArgument, "wait"},
        Bad{R"({"op":"run","memory":"10Gi"})", Code::kInvalidArgument, "memory"},
        Bad{R"({"op":"run","memory":-1})", Code::kInvalidArgument, "memory"},
        Bad{R"({"op":"run","computePercent":101})", Code::kInvalidArgument, "computePercent"},
        Bad{R"({"op":"run","share":0})", Code::kInvalidArgument, "share"},
        Bad{R"({"op":"run","share":-2})", Code::kInvalidArgument, "share"},
        Bad{R"({"op":"run","share":1000000})", Code::kInvalidArgument, "share"},
        Bad{R"({"op":"door","door":"local"})", Code::kInvalidArgument, "devices"},
        Bad{R"({"op":"door","devices":["0"]})", Code::kInvalidArgument, "door"},
        Bad{R"({"op":"door","devices":[],"door":"local"})", Code::kInvalidArgument,
            "names no device"},
        Bad{R"({"op":"door","devices":["0"],"door":"back"})", Code::kInvalidArgument, "door"},
        Bad{R"({"op":"door","devices":["0"],"door":"local","gpus":1})", Code::kInvalidArgument,
            "gpus"},
        Bad{R"({"op":"cancel"})", Code::kInvalidArgument, "ticket"},
        Bad{R"({"op":"status","x":1})", Code::kInvalidArgument, "x"}));

TEST(Protocol, SaysEverythingThatIsWrongAtOnce) {
  const auto request = DecodeRequest(R"({"op":"run","gpus":"two","wait":"soon","colour":"red"})");
  ASSERT_FALSE(request.ok());
  for (const char* part : {"gpus", "wait", "colour"})
    EXPECT_THAT(request.error().message(), HasSubstr(part));
}

TEST(Protocol, LetsNoControlCharactersIntoACommand) {
  const auto request = DecodeRequest(R"({"op":"run","command":"\u001b[2Jls\nrm"})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->run.command, "?[2Jls rm");
}

TEST(Protocol, ReadsTheRequestsThatItWrites) {
  Request run;
  run.operation = Operation::kRun;
  run.run = {.count = 3,
             .model = "*T4",
             .wait = std::chrono::milliseconds(90),
             .command = "a \"b\" \xc3\xa9"};
  Request named;
  named.operation = Operation::kRun;
  named.run = {.count = 1, .devices = {"GPU-5"}};
  Request cancel;
  cancel.operation = Operation::kCancel;
  cancel.ticket = "q-4";
  Request share = run;
  share.run.share = 4;
  Request limited = run;
  limited.run.memory = base::Mebibytes(10);
  limited.run.compute_percent = 30;
  Request part = run;
  part.run.profile = "1c.3g.20gb";
  Request memory = run;
  memory.run.min_memory = base::Mebibytes(20);
  Request allocator{.operation = Operation::kAssign};
  allocator.assign = {{"0", "GPU-5"}, "local", std::chrono::minutes(5), true};
  Request now = allocator;
  now.assign = {{"1"}, "default", std::nullopt, false};
  for (const Request& request : {run, named, cancel, share, limited, part, memory, allocator, now,
                                 Request{Operation::kPs}}) {
    const auto read = Must(DecodeRequest(EncodeRequest(request)));
    EXPECT_EQ(read, request);
  }
}

TEST(Protocol, CarriesALayoutAndHowDevicesStandUnderIt) {
  Request request{.operation = Operation::kDivide};
  request.divide = {"{\"name\":\"a\"}", true, true, std::chrono::minutes(5), "acme"};
  EXPECT_EQ(*DecodeRequest(EncodeRequest(request)), request);
  request.divide = {.layout = "{}"};
  EXPECT_EQ(*DecodeRequest(EncodeRequest(request)), request);
  for (const char* line :
       {R"({"op":"divide"})", R"({"op":"divide","layout":""})", R"({"op":"divide","layout":{}})",
        R"({"op":"divide","layout":"x","wait":-1})", R"({"op":"divide","layout":"x","vendor":1})",
        R"({"op":"divide","layout":"x","modeOnly":"yes"})"})
    EXPECT_FALSE(DecodeRequest(line).ok()) << line;
  const DivideProgress dividing{"GPU-1", "1", "dividing", "create 1g.5gb at slice 3 (2 of 7)"};
  EXPECT_EQ(DecodeDivideAnswer(EncodeDividing(dividing))->dividing, dividing);
  EXPECT_EQ(DecodeDivideAnswer(EncodeDivided({dividing}))->divided->at(0), dividing);
  EXPECT_EQ(DecodeDivideAnswer("{}").error().code(), Code::kDataLoss);
  EXPECT_EQ(DecodeDivideAnswer(EncodeError(Error(Code::kAborted, "no"))).error().code(),
            Code::kAborted);
}

TEST(Protocol, CarriesAVendorWhoseDriverIsToBeReleasedAndWhatRemains) {
  Request request{.operation = Operation::kRelease};
  request.release = {"acme"};
  EXPECT_EQ(*DecodeRequest(EncodeRequest(request)), request);
  for (const char* line : {R"({"op":"release"})", R"({"op":"release","vendor":""})",
                           R"({"op":"release","vendor":"a\u001b[2J"})",
                           R"({"op":"release","vendor":"acme","force":true})"})
    EXPECT_FALSE(DecodeRequest(line).ok()) << line;
  const ReleasedDriver released{"acme", {"a worker hangs"}};
  EXPECT_EQ(*DecodeReleased(EncodeReleased(released)), released);
  EXPECT_EQ(DecodeReleased("{}").error().code(), Code::kDataLoss);
  EXPECT_EQ(DecodeReleased(EncodeError(Error(Code::kPermissionDenied, "no"))).error().code(),
            Code::kPermissionDenied);
}

TEST(Protocol, CarriesAConfigurationToPlanWith) {
  Request request{.operation = Operation::kPreview};
  EXPECT_EQ(*DecodeRequest(EncodeRequest(request)), request);
  request.preview = {"version: v1\n\t\"quoted\"\n", "/etc/config.yaml", true};
  EXPECT_EQ(*DecodeRequest(EncodeRequest(request)), request);
  EXPECT_FALSE(DecodeRequest(R"({"op":"plan","text":1})").ok());
  EXPECT_FALSE(DecodeRequest(R"({"op":"plan","ticket":"q-1"})").ok());
}

TEST(Protocol, WritesRequestsThatFitALineWhateverTheCommand) {
  Request request;
  request.operation = Operation::kRun;
  request.run.command = std::string(1u << 20, '\x01');
  EXPECT_LT(EncodeRequest(request).size(), kMaxLineBytes);
}

TEST(Protocol, ReadsTheAnswersThatItWrites) {
  WaitingRun waiting{"q-1",   2,  "8 of 8 are in use",       "eva", "sh", 4, 2,
                     "A100*", {}, "2026-11-21T03:42:00.123Z"};
  waiting.profile = "1g.5gb";
  waiting.min_memory = base::Mebibytes(20);
  const GrantedRun granted{
      "r-1",
      {{"GPU-1", 0, "A100", "GPU-1::3", 4, "mps", "memory-per-process", base::Mebibytes(512), 25,
        "server", "server"},
       {"MIG-1", -1, "A100", "MIG-1", 1, "none", "hardware", {}, 0, "", "", "0:1", "1g.5gb"}},
      {{"CUDA_VISIBLE_DEVICES", "GPU-1"}},
      "devices",
      ""};
  auto answer = DecodeRunAnswer(EncodeWaiting(waiting));
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_EQ(answer->waiting, waiting);
  answer = DecodeRunAnswer(EncodeGranted(granted));
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_EQ(answer->granted, granted);
  const auto queue = Must(DecodeQueue(EncodeQueue({waiting, waiting})));
  EXPECT_THAT(queue, ElementsAre(waiting, waiting));
  EXPECT_EQ(EncodeVersion({"1.2.3", 1, 77}), R"({"pid":77,"protocol":1,"version":"1.2.3"})");
}

TEST(Protocol, ReadsTheMovesThatItWrites) {
  const AssignProgress waiting{"GPU-1", 1, "kubelet", "local", "waiting", "held by ml/train-0"};
  const AssignProgress offered{"MIG-2", -1, "kubelet", "local", "offered", "", "0:1"};
  auto answer = DecodeAssignAnswer(EncodeMoving(waiting));
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_EQ(answer->moving, waiting);
  EXPECT_FALSE(answer->moved);
  answer = DecodeAssignAnswer(EncodeMoved({waiting, offered}));
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_THAT(*answer->moved, ElementsAre(waiting, offered));
  EXPECT_EQ(
      DecodeAssignAnswer(EncodeError(Error(Code::kFailedPrecondition, "held"))).error().code(),
      Code::kFailedPrecondition);
  for (const char* line : {"{}", "{\"moved\":1}", "{\"moving\":{}}", "{\"done\":\"x\"}"})
    EXPECT_EQ(DecodeAssignAnswer(line).error().code(), Code::kDataLoss) << line;
}

TEST(Protocol, AnOlderAgentsGrantIsOfWholeDevices) {
  const auto answer = Must(DecodeRunAnswer(
      R"({"granted":{"lease":"r","environment":{},"devices":[{"id":"G0","index":0,"model":"m"}]}})"));
  EXPECT_EQ(answer.granted->devices.at(0), (GrantedDevice{"G0", 0, "m", "G0", 1, "none", ""}));
}

TEST(Protocol, CarriesErrorsWithTheirCode) {
  const std::string line = EncodeError(Error(Code::kResourceExhausted, "none is free \xff"));
  EXPECT_EQ(
      line,
      "{\"error\":{\"code\":\"RESOURCE_EXHAUSTED\",\"message\":\"none is free \xef\xbf\xbd\"}}");
  for (const auto& error :
       {DecodeRunAnswer(line).error(), DecodeQueue(line).error(), DecodeAny(line).error()}) {
    EXPECT_EQ(error.code(), Code::kResourceExhausted);
    EXPECT_THAT(error.message(), HasSubstr("none is free"));
  }
}

TEST(Protocol, TakesNothingForAnAnswerThatIsNone) {
  for (const char* line :
       {"", "{}", "[]", "{\"granted\":1}", "{\"granted\":{}}", "{\"error\":{}}",
        R"({"error":{"code":[],"message":{}}})", "{\"waiting\":{\"position\":\"x\"}}"})
    EXPECT_EQ(DecodeRunAnswer(line).error().code(), Code::kDataLoss) << line;
}

TEST(Protocol, PassesOverWhatANewerAgentAdds) {
  EXPECT_TRUE(
      DecodeRunAnswer(R"({"granted":{"lease":"r","environment":{},"colour":"red"},"more":1})")
          .ok());
}

}  // namespace
}  // namespace penstock::protocol::broker
