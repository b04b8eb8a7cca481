// Decoding validates sizes, types, ranges and spelling; unknown keys of a newer peer are ignored.
#include "device/codec.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "base/core/fields.h"

namespace penstock::device {
namespace {

constexpr std::int64_t kMaxCount = 1 << 20;

constexpr base::Names<Nearness, 7> kNearness{{{Nearness::kUnknown, "unknown"},
                                              {Nearness::kSystem, "system"},
                                              {Nearness::kNode, "node"},
                                              {Nearness::kHostBridge, "host-bridge"},
                                              {Nearness::kPciSwitches, "pci-switches"},
                                              {Nearness::kPciSwitch, "pci-switch"},
                                              {Nearness::kBoard, "board"}}};
constexpr base::Names<DeviceKind, 2> kKind{
    {{DeviceKind::kGpu, "gpu"}, {DeviceKind::kAccelerator, "accelerator"}}};
constexpr base::Names<ModeScope, 3> kScope{{{ModeScope::kDevice, "device"},
                                            {ModeScope::kLinkedDevices, "linked-devices"},
                                            {ModeScope::kNode, "node"}}};
constexpr base::Names<ModeEffect, 3> kEffect{
    {{ModeEffect::kNow, "now"},
     {ModeEffect::kAfterReset, "after-reset"},
     {ModeEffect::kAfterDriverReload, "after-driver-reload"}}};
constexpr base::Names<EvidenceSource, 3> kSource{{{EvidenceSource::kEvent, "event"},
                                                  {EvidenceSource::kKernelLog, "kernel-log"},
                                                  {EvidenceSource::kPoll, "poll"}}};

template <typename Visit, typename T>
void VisitPci(Visit& visit, T& pci) {
  std::optional<std::string> text;
  if (pci) text = ToString(*pci);
  visit("pci", text);
  if constexpr (Visit::kReads) {
    if (text) pci = ParsePciAddress(*text);
    if (text && !pci) visit.map().Problem("pci", "is not a PCI address");
  }
}

}  // namespace

template <typename Visit, base::Of<DeviceFile> T>
static void VisitFields(Visit& visit, T& file) {
  visit("path", file.path);
  visit("major", file.major);
  visit("minor", file.minor);
}

template <typename Visit, base::Of<DeviceNumbers> T>
static void VisitFields(Visit& visit, T& range) {
  visit("major", range.major);
  visit("first", range.first_minor);
  visit("last", range.last_minor);
}

template <typename Visit, base::Of<Evidence> T>
static void VisitFields(Visit& visit, T& evidence) {
  visit.Named("source", evidence.source, kSource);
  visit("device", evidence.device);
  VisitPci(visit, evidence.pci);
  visit("kind", evidence.kind);
  visit("code", evidence.code, {.least = std::numeric_limits<std::int64_t>::min()});
  visit("text", evidence.text);
  visit("standing", evidence.standing);
  visit("part", evidence.part);
}

template <typename Visit, base::Of<Mode> T>
static void VisitFields(Visit& visit, T& mode) {
  visit("name", mode.name);
  visit("current", mode.current);
  visit("pending", mode.pending);
  visit("available", mode.available);
  visit.Named("scope", mode.scope, kScope);
  visit.Named("effect", mode.effect, kEffect);
}

template <typename Visit, base::Of<Link> T>
static void VisitFields(Visit& visit, T& link) {
  visit("peer", link.peer);
  visit.Named("nearness", link.nearness, kNearness);
  visit("fabricLanes", link.fabric_lanes, {.most = kMaxCount});
  visit("score", link.score, {.most = kMaxCount});
}

template <typename Visit, base::Of<DeviceProcess> T>
static void VisitFields(Visit& visit, T& process) {
  visit("pid", process.pid);
  visit("memory", process.memory);
  visit("graphicsOnly", process.graphics_only);
}

template <typename Visit, base::Of<Placement> T>
static void VisitFields(Visit& visit, T& placement) {
  visit("start", placement.start, {.most = kMaxCount});
  visit("size", placement.size, {.most = kMaxCount});
}

template <typename Visit, base::Of<PartProfile> T>
static void VisitFields(Visit& visit, T& profile) {
  visit("name", profile.name, {.filled = true});
  visit("within", profile.within);
  visit("slices", profile.slices, {.most = kMaxCount});
  visit("most", profile.most, {.most = kMaxCount});
  visit("placements", profile.placements);
  visit("memory", profile.capacity.memory);
  visit("computeUnits", profile.capacity.compute_units, {.most = kMaxCount});
  visit("engines", profile.engines);
  visit("kind", profile.kind, {.least = -1, .most = kMaxCount});
}

template <typename Visit, base::Of<Driver> T>
static void VisitFields(Visit& visit, T& driver) {
  visit("vendor", driver.vendor);
  visit("version", driver.version);
  visit("runtimeVersion", driver.runtime_version);
  visit("files", driver.files);
  visit("guarded", driver.guarded);
}

template <typename Visit, base::Of<Facts> T>
static void VisitFields(Visit& visit, T& facts) {
  visit("id", facts.id, {.filled = true});
  visit("vendor", facts.vendor);
  visit.Named("kind", facts.kind, kKind);
  visit("model", facts.model);
  visit("index", facts.index, {.least = -1, .most = kMaxCount});
  visit("number", facts.number);
  visit("address", facts.address);
  VisitPci(visit, facts.pci);
  visit("numaNode", facts.numa_node, {.most = kMaxCount});
  visit("cpuAffinity", facts.cpu_affinity);
  visit("memory", facts.memory);
  visit("computeUnits", facts.compute_units, {.most = kMaxCount});
  visit("architecture", facts.architecture);
  visit("architectureVersion", facts.architecture_version);
  visit("serial", facts.serial);
  visit("files", facts.files);
  visit("links", facts.links);
  visit("parent", facts.parent);
  visit("part", facts.part);
  visit("profile", facts.profile);
  visit("placement", facts.placement);
  visit("parts", facts.parts);
  visit("profiles", facts.profiles);
  visit("modes", facts.modes);
  visit("details", facts.details);
  visit("withheld", facts.withheld);
}

template <typename Visit, base::Of<PartReading> T>
static void VisitFields(Visit& visit, T& part) {
  visit("address", part.address, {.filled = true});
  visit("processes", part.processes);
}

template <typename Visit, base::Of<Reading> T>
static void VisitFields(Visit& visit, T& reading) {
  visit("reachable", reading.reachable, {.required = true});
  visit("evidence", reading.evidence);
  visit("processes", reading.processes);
  visit("tellsRecovery", reading.reports_recovery);
  visit("factsChanged", reading.facts_changed);
  visit("parts", reading.parts);
}

template <typename Visit, base::Of<NewPart> T>
static void VisitFields(Visit& visit, T& part) {
  visit("profile", part.profile, {.filled = true});
  visit("placement", part.placement);
  visit("within", part.within);
  visit("outer", part.outer);
}

namespace codec {
namespace {

using nlohmann::json;

constexpr base::FieldLimits kLimits{.parse = {.bytes = kMaxFrameBytes, .depth = 8},
                                    .unknown = base::UnknownKeys::kIgnored};

template <typename T>
base::Result<T> Decode(std::string_view body, std::string_view what) {
  T value;
  TRY(base::ReadFields(body, what, kLimits,
                       [&](base::StructReader& reader) { VisitFields(reader, value); }));
  return value;
}

template <typename T>
std::string EncodeStruct(const T& value) {
  return base::JsonText(base::ToJsonObject<json>(value));
}

/// An object with one list.
template <typename T>
std::string EncodeList(const char* key, const std::vector<T>& items) {
  json body;
  base::StructWriter<json>{body}(key, items);
  return base::JsonText(body);
}

template <typename T>
base::Result<std::vector<T>> DecodeList(std::string_view body, const char* key) {
  std::vector<T> items;
  TRY(base::ReadFields(body, key, kLimits, [&](base::StructReader& reader) {
    reader(key, items, {.required = true});
  }));
  return items;
}

/// The first line of an argument, as in Encode of a SampleRequest, and the others.
std::pair<std::string_view, std::string_view> SplitAddress(std::string_view argument) {
  const auto end = argument.find('\n');
  if (end == std::string_view::npos) return {argument, ""};
  return {argument.substr(0, end), argument.substr(end + 1)};
}

}  // namespace

template <typename Visit, base::Of<WorkerRequest> T>
static void VisitFields(Visit& visit, T& request) {
  visit("id", request.id, {.required = true});
  visit("operation", request.operation, {.required = true});
  visit("argument", request.argument);
}

template <typename Visit, base::Of<WorkerAnswer> T>
static void VisitFields(Visit& visit, T& answer) {
  visit("id", answer.id, {.required = true});
  visit("body", answer.body);
  std::optional<int> code;
  std::string message;
  if (!answer.status.ok()) {
    code = static_cast<int>(answer.status.error().code());
    message = answer.status.error().message();
  }
  visit("code", code,
        {.least = static_cast<int>(base::Code::kCancelled),
         .most = static_cast<int>(base::Code::kUnauthenticated)});
  visit("message", message, {.if_any = true});
  if constexpr (Visit::kReads)
    if (code) answer.status = base::Error(static_cast<base::Code>(*code), std::move(message));
}

template <typename Visit, base::Of<ModeRequest> T>
static void VisitFields(Visit& visit, T& request) {
  visit("mode", request.mode, {.filled = true});
  visit("value", request.value, {.filled = true});
}

template <typename Visit, base::Of<PartRequest> T>
static void VisitFields(Visit& visit, T& request) {
  visit("part", request.part, {.required = true});
}

std::string EncodeRequest(const WorkerRequest& request) { return EncodeStruct(request); }
base::Result<WorkerRequest> DecodeRequest(std::string_view frame) {
  return Decode<WorkerRequest>(frame, "request");
}

std::string EncodeAnswer(const WorkerAnswer& answer) { return EncodeStruct(answer); }
base::Result<WorkerAnswer> DecodeAnswer(std::string_view frame) {
  return Decode<WorkerAnswer>(frame, "answer");
}

std::string Encode(const Driver& driver) { return EncodeStruct(driver); }
base::Result<Driver> DecodeDriver(std::string_view body) { return Decode<Driver>(body, "driver"); }

std::string Encode(const std::vector<std::string>& addresses) {
  return EncodeList("addresses", addresses);
}
base::Result<std::vector<std::string>> DecodeAddresses(std::string_view body) {
  return DecodeList<std::string>(body, "addresses");
}

std::string Encode(const Facts& facts) { return EncodeStruct(facts); }
base::Result<Facts> DecodeFacts(std::string_view body) { return Decode<Facts>(body, "facts"); }

std::string Encode(const Reading& reading) { return EncodeStruct(reading); }
base::Result<Reading> DecodeReading(std::string_view body) {
  return Decode<Reading>(body, "reading");
}

std::string Encode(const std::vector<Evidence>& evidence) {
  return EncodeList("evidence", evidence);
}
base::Result<std::vector<Evidence>> DecodeEvidence(std::string_view body) {
  return DecodeList<Evidence>(body, "evidence");
}

std::string Frame(std::string_view content) {
  const auto size = static_cast<std::uint32_t>(content.size());
  std::string frame;
  frame.reserve(content.size() + 4);
  for (const unsigned shift : {24u, 16u, 8u, 0u})
    frame += static_cast<char>((size >> shift) & 0xff);
  return frame.append(content);
}

base::Result<std::optional<std::string>> TakeFrame(std::string& buffer) {
  if (buffer.size() < 4) return std::optional<std::string>();
  std::size_t size = 0;
  for (int i = 0; i < 4; ++i)
    size = size << 8 | static_cast<unsigned char>(buffer[static_cast<std::size_t>(i)]);
  if (size == 0 || size > kMaxFrameBytes)
    return base::Error(base::Code::kDataLoss,
                       "a frame of invalid size: " + std::to_string(size) + " bytes");
  if (buffer.size() < size + 4) return std::optional<std::string>();
  std::string content = buffer.substr(4, size);
  buffer.erase(0, size + 4);
  return std::optional(std::move(content));
}

std::string Encode(const ModeRequest& request) {
  return request.address + '\n' + EncodeStruct(request);
}
base::Result<ModeRequest> DecodeModeRequest(std::string_view argument) {
  const auto [address, rest] = SplitAddress(argument);
  ASSIGN(auto request, Decode<ModeRequest>(rest, "request"));
  request.address = address;
  return request;
}

std::string Encode(const PartRequest& request) {
  return request.device + '\n' + EncodeStruct(request);
}
base::Result<PartRequest> DecodePartRequest(std::string_view argument) {
  const auto [device, rest] = SplitAddress(argument);
  ASSIGN(auto request, Decode<PartRequest>(rest, "request"));
  request.device = device;
  return request;
}

std::string EncodeAddress(const std::string& address) {
  return EncodeList<std::string>("addresses", {address});
}
base::Result<std::string> DecodeAddress(std::string_view body) {
  ASSIGN(auto addresses, DecodeAddresses(body));
  if (addresses.size() != 1) return Error(Code::kDataLoss, "one address is expected");
  return std::move(addresses.front());
}

}  // namespace codec
}  // namespace penstock::device
