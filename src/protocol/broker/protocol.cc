// Converts lines of JSON to requests and answers, and back, with base's strict reader. Only this
// file of the folder uses nlohmann::json.
#include "protocol/broker/protocol.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/allocators.h"
#include "base/core/fields.h"
#include "base/core/printable.h"
#include "base/core/strings.h"
#include "os/process/process_text.h"

namespace penstock::protocol::broker {
namespace {

using base::MapReader;
using base::Value;
using nlohmann::json;

constexpr std::array<std::pair<std::string_view, Operation>, 13> kOperations = {{
    {"version", Operation::kVersion},
    {"run", Operation::kRun},
    {"queue", Operation::kQueue},
    {"cancel", Operation::kCancel},
    {"status", Operation::kStatus},
    {"ps", Operation::kPs},
    {"plan", Operation::kPreview},
    {"down", Operation::kDown},
    {"door", Operation::kAssign},
    {"samples", Operation::kSamples},
    {"usage", Operation::kUsage},
    {"divide", Operation::kDivide},
    {"release", Operation::kRelease},
}};
constexpr base::Duration kLongestWait = std::chrono::hours(24 * 3650);
constexpr base::Duration kShortestTime = std::chrono::seconds(1);
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kMaxCommandBytes = 4096;
constexpr std::size_t kMaxKeyBytes = 128;
constexpr std::int64_t kMaxIndex = 1 << 20;

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

void CheckDevices(MapReader& reader, const std::vector<std::string>& devices) {
  if (!reader.Has("devices")) return;
  if (devices.empty()) reader.Problem("devices", "names no device");
  if (devices.size() > kMaxDevices)
    reader.Problem("devices", "names more than " + std::to_string(kMaxDevices));
  for (const std::string& device : devices) CheckName(reader, "devices", device);
}

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

void CheckLabels(MapReader& reader, const std::map<std::string, std::string>& labels) {
  if (labels.size() > kMaxLabels)
    reader.Problem("labels", "has more than " + std::to_string(kMaxLabels));
  for (const auto& [key, value] : labels)
    if (const auto checked = CheckLabel(key, value); !checked.ok())
      reader.Problem("labels", checked.error().message());
}

void CheckTime(MapReader& reader, std::string_view key) {
  const auto text = reader.String(key);
  if (!text) return;
  if (base::FormatTime(base::ParseTime(*text)).substr(0, 19) != text->substr(0, 19) ||
      !text->ends_with('Z'))
    reader.Problem(key, "is not a time such as 2026-11-21T03:42:00.000Z");
}

void CheckUsage(MapReader& reader, const UsageRequest& usage) {
  if (usage.by.size() > kMaxLabels)
    reader.Problem("by", "names more than " + std::to_string(kMaxLabels));
  for (const std::string& key : usage.by) CheckName(reader, "by", key);
  for (const char* key : {"since", "until"}) CheckTime(reader, key);
  if (usage.idle && (reader.Has("by") || usage.since || usage.until))
    reader.Problem("idle", "cannot be combined with by, since or until: it reports the present");
}

void CheckRun(MapReader& reader, RunRequest& run) {
  CheckDevices(reader, run.devices);
  if (reader.Has("devices")) {
    if (reader.Has("gpus"))
      reader.Problem("gpus", "cannot be combined with devices, which already gives the number");
    for (const char* key : {"model", "profile", "minMemory"})
      if (reader.Has(key))
        reader.Problem(key, "cannot be combined with devices, which already selects them");
    run.count = static_cast<int>(run.devices.size());
  }
  if (reader.Has("minMemory") && run.share > 1)
    reader.Problem("minMemory", "cannot be combined with share: a share has no memory of its own");
  CheckName(reader, "model", run.model);
  CheckName(reader, "vendor", run.vendor);
  CheckName(reader, "profile", run.profile);
  if (reader.Has("profile") && run.profile.empty()) reader.Problem("profile", "is empty");
  CheckName(reader, "ticket", run.ticket);
  if (!run.command.empty())
    run.command =
        os::DescribeCommand(std::string_view(run.command).substr(0, kMaxCommandBytes), "");
  CheckLabels(reader, run.labels);
}

}  // namespace

template <typename Visit, base::Of<UsageRequest> T>
static void VisitFields(Visit& visit, T& usage) {
  visit("idle", usage.idle, {.if_any = true});
  visit("by", usage.by, {.if_any = true});
  visit("since", usage.since);
  visit("until", usage.until);
  if constexpr (Visit::kReads) CheckUsage(visit.map(), usage);
}

template <typename Visit, base::Of<RunRequest> T>
static void VisitFields(Visit& visit, T& run) {
  visit("devices", run.devices, {.if_any = true});
  if (Visit::kReads || run.devices.empty())
    visit("gpus", run.count, {.least = 1, .most = kMaxDevices});
  if (Visit::kReads || run.share > 1) visit("share", run.share, {.least = 1, .most = kMaxShares});
  visit("memory", run.memory, {.if_any = true});
  visit("computePercent", run.compute_percent, {.if_any = true, .most = 100});
  visit("model", run.model, {.if_any = true});
  visit("vendor", run.vendor, {.if_any = true});
  visit("profile", run.profile, {.if_any = true});
  visit("minMemory", run.min_memory, {.if_any = true});
  visit("wait", run.wait, {.most = kLongestWait.count()});
  visit("time", run.time, {.least = kShortestTime.count(), .most = kLongestWait.count()});
  visit("ticket", run.ticket, {.if_any = true});
  visit("command", run.command, {.if_any = true, .longest = kMaxCommandBytes});
  visit("labels", run.labels, {.if_any = true});
  if constexpr (Visit::kReads) CheckRun(visit.map(), run);
}

template <typename Visit, base::Of<PreviewRequest> T>
static void VisitFields(Visit& visit, T& preview) {
  visit("text", preview.text);
  visit("name", preview.name);
  visit("explain", preview.explain, {.if_any = true});
  if constexpr (Visit::kReads) CheckName(visit.map(), "name", preview.name);
}

template <typename Visit, base::Of<AssignRequest> T>
static void VisitFields(Visit& visit, T& assign) {
  visit("devices", assign.devices, {.required = true});
  visit("door", assign.allocator, {.required = true});
  visit("wait", assign.wait, {.most = kLongestWait.count()});
  visit("dryRun", assign.dry_run, {.if_any = true});
  if constexpr (Visit::kReads) {
    CheckDevices(visit.map(), assign.devices);
    (void)visit.map().OneOf("door", api::AllocatorWords({api::kConfiguredAllocator}));
  }
}

template <typename Visit, base::Of<DivideRequest> T>
static void VisitFields(Visit& visit, T& divide) {
  visit("layout", divide.layout, {.filled = true});
  visit("modeOnly", divide.mode_only, {.if_any = true});
  visit("skipReset", divide.skip_reset, {.if_any = true});
  visit("wait", divide.wait, {.most = kLongestWait.count()});
  visit("vendor", divide.vendor, {.if_any = true});
  if constexpr (Visit::kReads) CheckName(visit.map(), "vendor", divide.vendor);
}

template <typename Visit, base::Of<ReleaseRequest> T>
static void VisitFields(Visit& visit, T& release) {
  visit("vendor", release.vendor, {.filled = true});
  if constexpr (Visit::kReads) CheckName(visit.map(), "vendor", release.vendor);
}

template <typename Visit, base::Of<Request> T>
static void VisitFields(Visit& visit, T& request) {
  switch (request.operation) {
    case Operation::kRun: return VisitFields(visit, request.run);
    case Operation::kPreview: return VisitFields(visit, request.preview);
    case Operation::kAssign: return VisitFields(visit, request.assign);
    case Operation::kUsage: return VisitFields(visit, request.usage);
    case Operation::kDivide: return VisitFields(visit, request.divide);
    case Operation::kRelease: return VisitFields(visit, request.release);
    case Operation::kCancel:
      visit("ticket", request.ticket, {.required = true});
      if constexpr (Visit::kReads) CheckName(visit.map(), "ticket", request.ticket);
      return;
    default: return;
  }
}

template <typename Visit, base::Of<WaitingRun> T>
static void VisitFields(Visit& visit, T& run) {
  visit("ticket", run.ticket);
  visit("position", run.position);
  visit("reason", run.reason);
  visit("user", run.user);
  visit("command", run.command);
  visit("gpus", run.count);
  if (Visit::kReads || run.share > 1) visit("share", run.share, {.least = 1});
  visit("model", run.model, {.if_any = true});
  visit("vendor", run.vendor, {.if_any = true});
  visit("profile", run.profile, {.if_any = true});
  visit("minMemory", run.min_memory, {.if_any = true});
  visit("devices", run.devices, {.if_any = true});
  visit("since", run.since);
  visit("time", run.time, {.most = kLongestWait.count()});
  visit("expectedStart", run.expected_start, {.if_any = true});
  visit("resumable", run.resumable, {.if_any = true});
}

template <typename Visit, base::Of<GrantedDevice> T>
static void VisitFields(Visit& visit, T& device) {
  visit("id", device.id);
  visit("index", device.index, {.least = -1, .most = kMaxIndex});
  visit("number", device.number, {.if_any = true});
  visit("model", device.model);
  visit("profile", device.profile, {.if_any = true});
  if constexpr (Visit::kReads) device.slot = device.id;
  visit("slot", device.slot);
  visit("shares", device.shares, {.least = 1});
  if constexpr (Visit::kReads) device.sharing = "none";
  visit("sharing", device.sharing);
  visit("isolation", device.isolation);
  visit("memoryLimit", device.memory_limit, {.if_any = true});
  visit("memoryLimitBy", device.memory_limit_by, {.if_any = true});
  visit("computePercent", device.compute_percent, {.if_any = true, .most = 100});
  visit("computeBy", device.compute_by, {.if_any = true});
}

template <typename Visit, base::Of<GrantedRun> T>
static void VisitFields(Visit& visit, T& run) {
  visit("lease", run.lease, {.required = true});
  visit("devices", run.devices);
  visit("environment", run.environment, {.required = true});
  visit("enforcement", run.enforcement);
  visit("reason", run.reason, {.if_any = true});
  visit("time", run.time, {.most = kLongestWait.count()});
  visit("timeWhileOthersWait", run.time_while_others_wait, {.most = kLongestWait.count()});
}

template <typename Visit, base::Of<AssignProgress> T>
static void VisitFields(Visit& visit, T& move) {
  visit("device", move.device, {.required = true});
  visit("index", move.index, {.least = -1, .most = kMaxIndex});
  visit("number", move.number, {.if_any = true});
  visit("from", move.from);
  visit("to", move.to, {.required = true});
  visit("state", move.state, {.required = true});
  visit("reason", move.reason, {.if_any = true});
}

template <typename Visit, base::Of<DivideProgress> T>
static void VisitFields(Visit& visit, T& device) {
  visit("device", device.device, {.required = true});
  visit("number", device.number);
  visit("state", device.state, {.required = true});
  visit("reason", device.reason, {.if_any = true});
}

template <typename Visit, base::Of<ReleasedDriver> T>
static void VisitFields(Visit& visit, T& driver) {
  visit("vendor", driver.vendor, {.required = true});
  visit("remaining", driver.remaining, {.if_any = true});
}

namespace {

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

/// Reads an answer by a function of its reader.
template <typename Function>
base::Status ReadAnswerFields(std::string_view line, Function function) {
  ASSIGN(const Value value, ReadAnswer(line));
  base::Problems problems("answer");
  base::StructReader reader(value, "", problems, base::UnknownKeys::kIgnored);
  function(reader);
  return problems.empty() ? base::Status() : DamagedAnswer(problems.ToError());
}

/// An answer of one key.
template <typename T>
std::string AnswerLine(const char* key, const T& value) {
  json document;
  base::StructWriter<json>{document}(key, value);
  return base::JsonText(document);
}

}  // namespace

base::Status CheckLabel(const std::string& key, const std::string& value) {
  const bool plain = std::ranges::all_of(
      key, [](char c) { return IsAlphanumeric(c) || std::strchr("-_./", c) != nullptr; });
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

  base::StructReader reader(value, "", problems, base::UnknownKeys::kRefused);
  std::optional<std::string> word;
  reader("op", word, {.required = true});
  if (!word) return problems.ToError();
  Request request;
  ASSIGN(request.operation, FindOperation(*word));
  VisitFields(reader, request);
  reader.Finish();
  if (!problems.empty()) return problems.ToError();
  return request;
}

std::string EncodeRequest(const Request& request) {
  json document;
  base::StructWriter<json> writer(document);
  writer("op", std::string(NameOf(request.operation)));
  VisitFields(writer, request);
  return base::JsonText(document);
}

std::string EncodeError(const Error& error) {
  return base::JsonText(
      json{{"error", {{"code", base::Name(error.code())}, {"message", error.message()}}}});
}

std::string EncodeWaiting(const WaitingRun& waiting) { return AnswerLine("waiting", waiting); }

std::string EncodeGranted(const GrantedRun& granted) { return AnswerLine("granted", granted); }

std::string EncodeQueue(const std::vector<WaitingRun>& queue) { return AnswerLine("queue", queue); }

std::string EncodeMoving(const AssignProgress& move) { return AnswerLine("moving", move); }

std::string EncodeMoved(const std::vector<AssignProgress>& moves) {
  return AnswerLine("moved", moves);
}

std::string EncodeDividing(const DivideProgress& device) { return AnswerLine("dividing", device); }

std::string EncodeDivided(const std::vector<DivideProgress>& devices) {
  return AnswerLine("divided", devices);
}

std::string EncodeReleased(const ReleasedDriver& driver) { return AnswerLine("released", driver); }

std::string EncodeVersion(const VersionAnswer& version) {
  return base::JsonText(
      json{{"version", version.version}, {"protocol", version.protocol}, {"pid", version.pid}});
}

std::string EncodeDone(std::string_view what) { return AnswerLine("done", std::string(what)); }

base::Result<RunAnswer> DecodeRunAnswer(std::string_view line) {
  RunAnswer answer;
  TRY(ReadAnswerFields(line, [&answer](base::StructReader& read) {
    read("waiting", answer.waiting);
    read("granted", answer.granted);
  }));
  if (!answer.waiting && !answer.granted)
    return Error(Code::kDataLoss, "the agent's answer to \"run\" is neither waiting nor granted");
  return answer;
}

base::Result<AssignAnswer> DecodeAssignAnswer(std::string_view line) {
  AssignAnswer answer;
  TRY(ReadAnswerFields(line, [&answer](base::StructReader& read) {
    read("moving", answer.moving);
    read("moved", answer.moved);
  }));
  if (!answer.moving && !answer.moved)
    return Error(Code::kDataLoss, "the agent's answer has neither \"moving\" nor \"moved\"");
  return answer;
}

base::Result<DivideAnswer> DecodeDivideAnswer(std::string_view line) {
  DivideAnswer answer;
  TRY(ReadAnswerFields(line, [&answer](base::StructReader& read) {
    read("dividing", answer.dividing);
    read("divided", answer.divided);
  }));
  if (!answer.dividing && !answer.divided)
    return Error(Code::kDataLoss, "the agent's answer has neither \"dividing\" nor \"divided\"");
  return answer;
}

base::Result<ReleasedDriver> DecodeReleased(std::string_view line) {
  std::optional<ReleasedDriver> released;
  TRY(ReadAnswerFields(line, [&](base::StructReader& read) { read("released", released); }));
  if (!released) return Error(Code::kDataLoss, "the agent's answer has no \"released\"");
  return *std::move(released);
}

base::Result<std::vector<WaitingRun>> DecodeQueue(std::string_view line) {
  std::vector<WaitingRun> queue;
  TRY(ReadAnswerFields(
      line, [&queue](base::StructReader& read) { read("queue", queue, {.required = true}); }));
  return queue;
}

base::Result<std::string> DecodeAny(std::string_view line) {
  TRY(ReadAnswer(line));
  return std::string(line);
}

}  // namespace penstock::protocol::broker
