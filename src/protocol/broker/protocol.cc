// Converts lines of JSON to requests and answers, and back, with base's strict reader. Only this
// file of the folder uses nlohmann::json.
#include "protocol/broker/protocol.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/core/document.h"
#include "base/core/printable.h"
#include "base/core/strings.h"
#include "os/process/process_text.h"

namespace penstock::protocol::broker {
namespace {

using base::Code;
using base::Error;
using base::MapReader;
using base::Value;
using nlohmann::json;

constexpr std::array<std::pair<std::string_view, Operation>, 11> kOperations = {{
    {"version", Operation::kVersion},
    {"run", Operation::kRun},
    {"queue", Operation::kQueue},
    {"cancel", Operation::kCancel},
    {"status", Operation::kStatus},
    {"ps", Operation::kPs},
    {"plan", Operation::kPlan},
    {"down", Operation::kDown},
    {"door", Operation::kAssign},
    {"samples", Operation::kSamples},
    {"usage", Operation::kUsage},
}};
constexpr base::Duration kLongestWait = std::chrono::hours(24 * 3650);
constexpr base::Duration kShortestTime = std::chrono::seconds(1);
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kMaxCommandBytes = 4096;
constexpr std::size_t kMaxKeyBytes = 128;

// Invalid UTF-8 becomes U+FFFD: a name must not keep an answer from being sent.
std::string ToLine(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

Error UnknownOperation(const std::string& word) {
  std::vector<std::string> names;
  for (const auto& [name, operation] : kOperations) names.emplace_back(name);
  const auto meant = base::Nearest(word, names);
  return {Code::kUnimplemented, "unknown operation \"" + word + "\"" +
                                    (meant ? ": did you mean \"" + *meant + "\"?" : "") +
                                    " (known: " + base::Join(names, ", ") + ")"};
}

base::Result<Operation> FindOperation(const std::string& word) {
  for (const auto& [name, operation] : kOperations)
    if (name == word) return operation;
  return UnknownOperation(word.substr(0, kMaxNameBytes));
}

std::string_view NameOf(Operation operation) {
  for (const auto& [name, known] : kOperations)
    if (known == operation) return name;
  return "";
}

// Checks a name that other users will see on their terminals.
void CheckName(MapReader& reader, std::string_view key, const std::string& name) {
  if (name.size() > kMaxNameBytes)
    reader.Problem(key, "is longer than " + std::to_string(kMaxNameBytes) + " bytes");
  if (!base::IsPrintable(name)) reader.Problem(key, "contains control characters");
}

std::vector<std::string> ReadDevices(MapReader& reader) {
  const auto devices = reader.Strings("devices").value_or(std::vector<std::string>{});
  if (!reader.Has("devices")) return devices;
  if (devices.empty()) reader.Problem("devices", "names no device");
  if (devices.size() > kMaxDevices)
    reader.Problem("devices", "names more than " + std::to_string(kMaxDevices));
  for (const std::string& device : devices) CheckName(reader, "devices", device);
  return devices;
}

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::map<std::string, std::string> ReadLabels(MapReader& reader) {
  std::map<std::string, std::string> labels;
  const Value* map = reader.Map("labels");
  if (map == nullptr) return labels;
  if (map->map->size() > kMaxLabels)
    reader.Problem("labels", "has more than " + std::to_string(kMaxLabels));
  for (const auto& label : *map->map) {
    const auto checked =
        label.value.kind == Value::Kind::kString
            ? CheckLabel(label.key, label.value.text)
            : base::Status(Error(Code::kInvalidArgument, "a label's value must be a string"));
    if (!checked.ok()) reader.Problem("labels", checked.error().message());
    labels[label.key] = label.value.text;
  }
  return labels;
}

std::optional<base::WallTime> ReadTime(MapReader& reader, std::string_view key) {
  const auto text = reader.String(key);
  if (!text) return std::nullopt;
  const base::WallTime time = base::ParseTime(*text);
  if (base::FormatTime(time).substr(0, 19) != text->substr(0, 19) || !text->ends_with('Z'))
    reader.Problem(key, "is not a time such as 2026-11-21T03:42:00.000Z");
  return time;
}

UsageRequest ReadUsage(MapReader& reader) {
  UsageRequest usage;
  usage.idle = reader.Bool("idle").value_or(false);
  usage.by = reader.Strings("by").value_or(usage.by);
  if (usage.by.size() > kMaxLabels)
    reader.Problem("by", "names more than " + std::to_string(kMaxLabels));
  for (const std::string& key : usage.by) CheckName(reader, "by", key);
  usage.since = ReadTime(reader, "since");
  usage.until = ReadTime(reader, "until");
  if (usage.idle && (reader.Has("by") || usage.since || usage.until))
    reader.Problem("idle", "cannot be combined with by, since or until: it reports the present");
  return usage;
}

RunRequest ReadRun(MapReader& reader) {
  RunRequest run;
  run.devices = ReadDevices(reader);
  run.count = static_cast<int>(reader.Int("gpus", 1, kMaxDevices).value_or(1));
  if (reader.Has("devices")) {
    if (reader.Has("gpus"))
      reader.Problem("gpus", "cannot be combined with devices, which already gives the number");
    if (reader.Has("model"))
      reader.Problem("model", "cannot be combined with devices, which already selects them");
    run.count = static_cast<int>(run.devices.size());
  }
  run.share = static_cast<int>(reader.Int("share", 1, kMaxShares).value_or(1));
  run.model = reader.String("model").value_or("");
  CheckName(reader, "model", run.model);
  run.wait = reader.Time("wait", base::Duration::zero(), kLongestWait);
  run.time = reader.Time("time", kShortestTime, kLongestWait);
  run.ticket = reader.String("ticket").value_or("");
  CheckName(reader, "ticket", run.ticket);
  const std::string command = reader.String("command").value_or("");
  if (!command.empty())
    run.command = os::DescribeCommand(std::string_view(command).substr(0, kMaxCommandBytes), "");
  run.labels = ReadLabels(reader);
  return run;
}

PlanRequest ReadPlan(MapReader& reader) {
  PlanRequest plan;
  plan.text = reader.String("text");
  plan.name = reader.String("name").value_or(plan.name);
  CheckName(reader, "name", plan.name);
  plan.explain = reader.Bool("explain").value_or(false);
  return plan;
}

AssignRequest ReadAllocator(MapReader& reader) {
  AssignRequest request;
  for (const char* key : {"devices", "door"}) reader.Require(key);
  request.devices = ReadDevices(reader);
  request.allocator = reader.OneOf("door", {"kubelet", "local", "none", "default"}).value_or("");
  request.wait = reader.Time("wait", base::Duration::zero(), kLongestWait);
  request.dry_run = reader.Bool("dryRun").value_or(false);
  return request;
}

std::string InMilliseconds(base::Duration duration) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(duration).count()) + "ms";
}

json ToJson(const WaitingRun& run) {
  json document = {{"ticket", run.ticket}, {"position", run.position}, {"reason", run.reason},
                   {"user", run.user},     {"command", run.command},   {"gpus", run.count},
                   {"since", run.since}};
  if (!run.model.empty()) document["model"] = run.model;
  if (!run.devices.empty()) document["devices"] = run.devices;
  if (run.share > 1) document["share"] = run.share;
  if (run.time) document["time"] = InMilliseconds(*run.time);
  if (!run.expected_start.empty()) document["expectedStart"] = run.expected_start;
  if (run.resumable) document["resumable"] = true;
  return document;
}

json ToJson(const AssignProgress& move) {
  json document = {{"device", move.device},
                   {"index", move.index},
                   {"from", move.from},
                   {"to", move.to},
                   {"state", move.state}};
  if (!move.reason.empty()) document["reason"] = move.reason;
  return document;
}

Error DamagedAnswer(const Error& error) {
  return {Code::kDataLoss, "the agent's answer cannot be read: " + error.message()};
}

Code CodeNamed(std::string_view name) {
  for (int code = static_cast<int>(Code::kCancelled);
       code <= static_cast<int>(Code::kUnauthenticated); ++code)
    if (base::Name(static_cast<Code>(code)) == name) return static_cast<Code>(code);
  return Code::kUnknown;
}

// Returns the answer as a map, or the error that it carries.
base::Result<Value> ReadAnswer(std::string_view line) {
  auto parsed = base::ParseJson(line, "answer", {.bytes = 16u << 20});
  if (!parsed.ok()) return DamagedAnswer(parsed.error());
  if (parsed->kind != Value::Kind::kMap)
    return Error(Code::kDataLoss, "the agent's answer is not an object");
  const Value* error = parsed->Find("error");
  if (error == nullptr) return parsed;
  const Value* code = error->Find("code");
  const Value* message = error->Find("message");
  if (code == nullptr || message == nullptr || message->text.empty())
    return Error(Code::kDataLoss, "the agent's answer is an error without code or message");
  return Error(CodeNamed(code->text), message->text);
}

WaitingRun ReadWaiting(const Value& value, base::Problems& problems) {
  MapReader reader(value, "waiting", problems);
  WaitingRun run;
  run.ticket = reader.String("ticket").value_or("");
  run.position =
      static_cast<int>(reader.Int("position", 0, std::numeric_limits<int>::max()).value_or(0));
  run.reason = reader.String("reason").value_or("");
  run.user = reader.String("user").value_or("");
  run.command = reader.String("command").value_or("");
  run.count = static_cast<int>(reader.Int("gpus", 0, std::numeric_limits<int>::max()).value_or(1));
  run.share = static_cast<int>(reader.Int("share", 1, std::numeric_limits<int>::max()).value_or(1));
  run.model = reader.String("model").value_or("");
  run.devices = reader.Strings("devices").value_or(run.devices);
  run.since = reader.String("since").value_or("");
  run.time = reader.Time("time", base::Duration::zero(), kLongestWait);
  run.expected_start = reader.String("expectedStart").value_or("");
  run.resumable = reader.Bool("resumable").value_or(false);
  return run;
}

GrantedRun ReadGranted(const Value& value, base::Problems& problems) {
  MapReader reader(value, "granted", problems);
  GrantedRun run;
  reader.Require("lease");
  reader.Require("environment");
  run.lease = reader.String("lease").value_or("");
  run.enforcement = reader.String("enforcement").value_or("");
  run.reason = reader.String("reason").value_or("");
  run.time = reader.Time("time", base::Duration::zero(), kLongestWait);
  run.time_while_others_wait =
      reader.Time("timeWhileOthersWait", base::Duration::zero(), kLongestWait);
  if (const Value* environment = reader.Map("environment"))
    for (const auto& entry : *environment->map) run.environment[entry.key] = entry.value.text;
  if (const Value* devices = reader.List("devices")) {
    for (const Value& item : *devices->list) {
      MapReader device(item, "devices", problems);
      GrantedDevice granted{device.String("id").value_or(""),
                            static_cast<int>(device.Int("index", -1, 1 << 20).value_or(-1)),
                            device.String("model").value_or("")};
      granted.slot = device.String("slot").value_or(granted.id);
      granted.shares =
          static_cast<int>(device.Int("shares", 1, std::numeric_limits<int>::max()).value_or(1));
      granted.sharing = device.String("sharing").value_or("none");
      granted.isolation = device.String("isolation").value_or("");
      run.devices.push_back(std::move(granted));
    }
  }
  return run;
}

AssignProgress ReadMove(const Value& value, base::Problems& problems) {
  MapReader reader(value, "move", problems);
  for (const char* key : {"device", "to", "state"}) reader.Require(key);
  AssignProgress move;
  move.device = reader.String("device").value_or("");
  move.index = static_cast<int>(reader.Int("index", -1, 1 << 20).value_or(-1));
  move.from = reader.String("from").value_or("");
  move.to = reader.String("to").value_or("");
  move.state = reader.String("state").value_or("");
  move.reason = reader.String("reason").value_or("");
  return move;
}

}  // namespace

base::Status CheckLabel(const std::string& key, const std::string& value) {
  const bool plain = std::all_of(key.begin(), key.end(), [](char c) {
    return IsAlphanumeric(c) || std::strchr("-_./", c) != nullptr;
  });
  if (key.empty() || key.size() > kMaxKeyBytes || !plain || !IsAlphanumeric(key.front()) ||
      !IsAlphanumeric(key.back()))
    return Error(Code::kInvalidArgument,
                 "a label's key must be 1 to " + std::to_string(kMaxKeyBytes) +
                     " letters, digits, '-', '_', '.' and '/', with a letter or digit first and "
                     "last; not \"" +
                     os::DescribeCommand(key.substr(0, kMaxNameBytes), "") + "\"");
  if (value.size() > kMaxNameBytes || !base::IsPrintable(value))
    return Error(Code::kInvalidArgument, "the value of label " + key +
                                             " must be printable UTF-8 of at most " +
                                             std::to_string(kMaxNameBytes) + " bytes");
  return {};
}

base::Result<Request> DecodeRequest(std::string_view line) {
  if (line.size() > kMaxLineBytes)
    return Error(Code::kInvalidArgument, "a request is longer than 64 KiB");
  ASSIGN(const Value value, base::ParseJson(line, "request", {.bytes = kMaxLineBytes, .depth = 8}));
  base::Problems problems("request");
  if (value.kind != Value::Kind::kMap)
    problems.Add(value.mark,
                 "is " + std::string(Describe(value.kind)) + " where an object is expected");
  if (!problems.empty()) return problems.ToError();

  MapReader reader(value, "", problems);
  reader.Require("op");
  const auto word = reader.String("op");
  if (!word) return problems.ToError();
  Request request;
  ASSIGN(request.operation, FindOperation(*word));
  if (request.operation == Operation::kRun) request.run = ReadRun(reader);
  if (request.operation == Operation::kCancel) {
    reader.Require("ticket");
    request.ticket = reader.String("ticket").value_or("");
    CheckName(reader, "ticket", request.ticket);
  }
  if (request.operation == Operation::kPlan) request.plan = ReadPlan(reader);
  if (request.operation == Operation::kAssign) request.assign = ReadAllocator(reader);
  if (request.operation == Operation::kUsage) request.usage = ReadUsage(reader);
  reader.Finish();
  if (!problems.empty()) return problems.ToError();
  return request;
}

std::string EncodeRequest(const Request& request) {
  json document = {{"op", NameOf(request.operation)}};
  if (request.operation == Operation::kCancel) document["ticket"] = request.ticket;
  if (request.operation == Operation::kPlan) {
    if (request.plan.text) document["text"] = *request.plan.text;
    document["name"] = request.plan.name;
    if (request.plan.explain) document["explain"] = true;
  }
  if (request.operation == Operation::kAssign) {
    document["devices"] = request.assign.devices;
    document["door"] = request.assign.allocator;
    if (request.assign.wait) document["wait"] = InMilliseconds(*request.assign.wait);
    if (request.assign.dry_run) document["dryRun"] = true;
  }
  if (request.operation == Operation::kUsage) {
    if (request.usage.idle) document["idle"] = true;
    if (!request.usage.by.empty()) document["by"] = request.usage.by;
    if (request.usage.since) document["since"] = base::FormatTime(*request.usage.since);
    if (request.usage.until) document["until"] = base::FormatTime(*request.usage.until);
  }
  if (request.operation == Operation::kRun) {
    if (request.run.devices.empty())
      document["gpus"] = request.run.count;
    else
      document["devices"] = request.run.devices;
    if (!request.run.model.empty()) document["model"] = request.run.model;
    if (request.run.share > 1) document["share"] = request.run.share;
    if (request.run.wait) document["wait"] = InMilliseconds(*request.run.wait);
    if (request.run.time) document["time"] = InMilliseconds(*request.run.time);
    if (!request.run.ticket.empty()) document["ticket"] = request.run.ticket;
    if (!request.run.labels.empty()) document["labels"] = request.run.labels;
    if (!request.run.command.empty())
      document["command"] = request.run.command.substr(0, kMaxCommandBytes);
  }
  return ToLine(document);
}

std::string EncodeError(const Error& error) {
  return ToLine({{"error", {{"code", base::Name(error.code())}, {"message", error.message()}}}});
}

std::string EncodeWaiting(const WaitingRun& waiting) {
  return ToLine({{"waiting", ToJson(waiting)}});
}

std::string EncodeGranted(const GrantedRun& granted) {
  json devices = json::array();
  for (const GrantedDevice& device : granted.devices)
    devices.push_back({{"id", device.id},
                       {"index", device.index},
                       {"model", device.model},
                       {"slot", device.slot},
                       {"shares", device.shares},
                       {"sharing", device.sharing},
                       {"isolation", device.isolation}});
  json document = {{"lease", granted.lease},
                   {"devices", std::move(devices)},
                   {"environment", json(granted.environment)},
                   {"enforcement", granted.enforcement}};
  if (granted.environment.empty()) document["environment"] = json::object();
  if (!granted.reason.empty()) document["reason"] = granted.reason;
  if (granted.time) document["time"] = InMilliseconds(*granted.time);
  if (granted.time_while_others_wait)
    document["timeWhileOthersWait"] = InMilliseconds(*granted.time_while_others_wait);
  return ToLine({{"granted", std::move(document)}});
}

std::string EncodeQueue(const std::vector<WaitingRun>& queue) {
  json list = json::array();
  for (const WaitingRun& run : queue) list.push_back(ToJson(run));
  return ToLine({{"queue", std::move(list)}});
}

std::string EncodeMoving(const AssignProgress& move) { return ToLine({{"moving", ToJson(move)}}); }

std::string EncodeMoved(const std::vector<AssignProgress>& moves) {
  json list = json::array();
  for (const AssignProgress& move : moves) list.push_back(ToJson(move));
  return ToLine({{"moved", std::move(list)}});
}

std::string EncodeVersion(const VersionAnswer& version) {
  return ToLine(
      {{"version", version.version}, {"protocol", version.protocol}, {"pid", version.pid}});
}

std::string EncodeDone(std::string_view what) { return ToLine({{"done", what}}); }

base::Result<RunAnswer> DecodeRunAnswer(std::string_view line) {
  ASSIGN(const Value value, ReadAnswer(line));
  base::Problems problems("answer");
  RunAnswer answer;
  if (const Value* waiting = value.Find("waiting"))
    answer.waiting = ReadWaiting(*waiting, problems);
  if (const Value* granted = value.Find("granted"))
    answer.granted = ReadGranted(*granted, problems);
  if (!problems.empty()) return DamagedAnswer(problems.ToError());
  if (!answer.waiting && !answer.granted)
    return Error(Code::kDataLoss, "the agent's answer to \"run\" is neither waiting nor granted");
  return answer;
}

base::Result<AssignAnswer> DecodeAssignAnswer(std::string_view line) {
  ASSIGN(const Value value, ReadAnswer(line));
  base::Problems problems("answer");
  MapReader reader(value, "", problems);
  AssignAnswer answer;
  if (const Value* moving = value.Find("moving")) answer.moving = ReadMove(*moving, problems);
  if (const Value* moved = reader.List("moved")) {
    answer.moved.emplace();
    for (const Value& item : *moved->list) answer.moved->push_back(ReadMove(item, problems));
  }
  if (!problems.empty()) return DamagedAnswer(problems.ToError());
  if (!answer.moving && !answer.moved)
    return Error(Code::kDataLoss, "the agent's answer has neither \"moving\" nor \"moved\"");
  return answer;
}

base::Result<std::vector<WaitingRun>> DecodeQueue(std::string_view line) {
  ASSIGN(const Value value, ReadAnswer(line));
  base::Problems problems("answer");
  MapReader reader(value, "", problems);
  reader.Require("queue");
  std::vector<WaitingRun> queue;
  if (const Value* list = reader.List("queue"))
    for (const Value& item : *list->list) queue.push_back(ReadWaiting(item, problems));
  if (!problems.empty()) return DamagedAnswer(problems.ToError());
  return queue;
}

base::Result<VersionAnswer> DecodeVersion(std::string_view line) {
  ASSIGN(const Value value, ReadAnswer(line));
  base::Problems problems("answer");
  MapReader reader(value, "", problems);
  for (const char* key : {"version", "protocol", "pid"}) reader.Require(key);
  VersionAnswer answer;
  answer.version = reader.String("version").value_or("");
  answer.protocol = static_cast<int>(reader.Int("protocol", 1, 1 << 20).value_or(0));
  answer.pid = reader.Int("pid", 1, std::numeric_limits<pid_t>::max()).value_or(0);
  if (!problems.empty()) return DamagedAnswer(problems.ToError());
  return answer;
}

base::Result<std::string> DecodeAny(std::string_view line) {
  TRY(ReadAnswer(line));
  return std::string(line);
}

}  // namespace penstock::protocol::broker
