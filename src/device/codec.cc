// Decoding validates sizes, types, ranges and spelling; unknown keys of a newer peer are ignored.
#include "device/codec.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/core/document.h"

namespace penstock::device::codec {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxNumber = std::numeric_limits<std::uint32_t>::max();

/// Driver strings may contain any bytes; invalid UTF-8 becomes U+FFFD.
std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The JSON reader's numbers end at 2^63; a larger size is encoded as 0, unknown.
json Number(base::Bytes bytes) {
  return bytes.count > static_cast<std::uint64_t>(kMaxInt) ? json(0) : json(bytes.count);
}

template <typename T, std::size_t N>
using Names = std::array<std::pair<T, std::string_view>, N>;

constexpr Names<Nearness, 7> kNearness{{{Nearness::kUnknown, "unknown"},
                                        {Nearness::kSystem, "system"},
                                        {Nearness::kNode, "node"},
                                        {Nearness::kHostBridge, "host-bridge"},
                                        {Nearness::kPciSwitches, "pci-switches"},
                                        {Nearness::kPciSwitch, "pci-switch"},
                                        {Nearness::kBoard, "board"}}};
constexpr Names<ModeScope, 3> kScope{{{ModeScope::kDevice, "device"},
                                      {ModeScope::kLinkedDevices, "linked-devices"},
                                      {ModeScope::kNode, "node"}}};
constexpr Names<ModeEffect, 3> kEffect{{{ModeEffect::kNow, "now"},
                                        {ModeEffect::kAfterReset, "after-reset"},
                                        {ModeEffect::kAfterDriverReload, "after-driver-reload"}}};
constexpr Names<EvidenceSource, 3> kSource{{{EvidenceSource::kEvent, "event"},
                                            {EvidenceSource::kKernelLog, "kernel-log"},
                                            {EvidenceSource::kPoll, "poll"}}};

template <typename T, std::size_t N>
std::string NameOf(const Names<T, N>& names, T value) {
  for (const auto& [candidate, name] : names)
    if (candidate == value) return std::string(name);
  return std::string(names[0].second);
}

json ToJson(const DeviceFile& file) {
  return {{"path", file.path}, {"major", file.major}, {"minor", file.minor}};
}

json ToJson(const std::vector<DeviceFile>& files) {
  json list = json::array();
  for (const DeviceFile& file : files) list.push_back(ToJson(file));
  return list;
}

json ToJson(const Evidence& evidence) {
  json value{{"source", NameOf(kSource, evidence.source)},
             {"device", evidence.device},
             {"kind", evidence.kind},
             {"code", evidence.code},
             {"text", evidence.text},
             {"standing", evidence.standing}};
  if (evidence.pci) value["pci"] = ToString(*evidence.pci);
  return value;
}

json ToJson(const std::vector<Evidence>& evidence) {
  json list = json::array();
  for (const Evidence& one : evidence) list.push_back(ToJson(one));
  return list;
}

json ToJson(const Mode& mode) {
  return {{"name", mode.name},
          {"current", mode.current},
          {"pending", mode.pending},
          {"available", mode.available},
          {"scope", NameOf(kScope, mode.scope)},
          {"effect", NameOf(kEffect, mode.effect)}};
}

/// Reads the keys of one object; all problems go to one list.
class Reader {
 public:
  Reader(const base::Value& value, std::string where, base::Problems& problems)
      : map_(value, std::move(where), problems), problems_(problems) {}

  std::string Text(std::string_view key) { return map_.String(key).value_or(""); }
  bool Bool(std::string_view key) { return map_.Bool(key).value_or(false); }
  std::int64_t Int(std::string_view key, std::int64_t least, std::int64_t most) {
    return map_.Int(key, least, most).value_or(0);
  }
  std::uint32_t Uint32(std::string_view key) {
    return static_cast<std::uint32_t>(Int(key, 0, kMaxNumber));
  }
  base::Bytes Size(std::string_view key) {
    return {static_cast<std::uint64_t>(Int(key, 0, kMaxInt))};
  }
  std::vector<std::string> Texts(std::string_view key) {
    return map_.Strings(key).value_or(std::vector<std::string>{});
  }
  bool Has(std::string_view key) const { return map_.Has(key); }
  void Require(std::string_view key) { map_.Require(key); }
  void Problem(std::string_view key, std::string message) { map_.Problem(key, std::move(message)); }

  std::optional<PciAddress> Pci(std::string_view key) {
    const auto text = map_.String(key);
    if (!text) return std::nullopt;
    auto address = ParsePciAddress(*text);
    if (!address) map_.Problem(key, "is not a PCI address");
    return address;
  }

  template <typename T, std::size_t N>
  T Named(std::string_view key, const Names<T, N>& names) {
    std::vector<std::string> known;
    for (const auto& [value, name] : names) known.emplace_back(name);
    const auto chosen = map_.OneOf(key, known);
    for (const auto& [value, name] : names)
      if (chosen && *chosen == name) return value;
    return names[0].first;
  }

  /// Calls `item` with a reader for every item of a list.
  template <typename F>
  void Each(std::string_view key, F item) {
    const base::Value* list = map_.List(key);
    if (list == nullptr) return;
    for (const base::Value& value : *list->list) {
      Reader reader(value, map_.Path(key), problems_);
      item(reader);
    }
  }

  std::map<std::string, std::string> TextMap(std::string_view key) {
    std::map<std::string, std::string> texts;
    const base::Value* map = map_.Map(key);
    if (map == nullptr) return texts;
    Reader reader(*map, map_.Path(key), problems_);
    for (const auto& entry : *map->map) texts[entry.key] = reader.Text(entry.key);
    return texts;
  }

 private:
  base::MapReader map_;
  base::Problems& problems_;
};

DeviceFile ReadFile(Reader& reader) {
  return {reader.Text("path"), reader.Uint32("major"), reader.Uint32("minor")};
}

std::vector<DeviceFile> ReadFiles(Reader& reader, std::string_view key) {
  std::vector<DeviceFile> files;
  reader.Each(key, [&](Reader& item) { files.push_back(ReadFile(item)); });
  return files;
}

Evidence ReadEvidence(Reader& reader) {
  Evidence evidence;
  evidence.source = reader.Named("source", kSource);
  evidence.device = reader.Text("device");
  evidence.pci = reader.Pci("pci");
  evidence.kind = reader.Text("kind");
  evidence.code = reader.Int("code", std::numeric_limits<std::int64_t>::min(), kMaxInt);
  evidence.text = reader.Text("text");
  evidence.standing = reader.Bool("standing");
  return evidence;
}

Mode ReadMode(Reader& reader) {
  return {reader.Text("name"),           reader.Text("current"),
          reader.Text("pending"),        reader.Texts("available"),
          reader.Named("scope", kScope), reader.Named("effect", kEffect)};
}

/// Parses a text as one JSON object and reads it; kDataLoss with all problems if it is invalid.
template <typename F>
auto Decode(std::string_view text, std::string_view what, F read)
    -> base::Result<decltype(read(std::declval<Reader&>()))> {
  const auto lost = [&](const base::Error& error) {
    return base::Error(base::Code::kDataLoss, error.message());
  };
  auto value = base::ParseJson(text, what, {.bytes = kMaxFrameBytes, .depth = 8});
  if (!value.ok()) return lost(value.error());
  base::Problems problems{std::string(what)};
  if (value->kind != base::Value::Kind::kMap) problems.Add(value->mark, "not an object");
  Reader reader(*value, "", problems);
  auto result = read(reader);
  if (!problems.empty()) return lost(problems.ToError());
  return result;
}

}  // namespace

std::string EncodeRequest(const WorkerRequest& request) {
  return Dump(
      {{"id", request.id}, {"operation", request.operation}, {"argument", request.argument}});
}

base::Result<WorkerRequest> DecodeRequest(std::string_view frame) {
  return Decode(frame, "request", [](Reader& reader) {
    reader.Require("id");
    reader.Require("operation");
    return WorkerRequest{reader.Size("id").count, reader.Text("operation"),
                         reader.Text("argument")};
  });
}

std::string EncodeAnswer(const WorkerAnswer& answer) {
  json value{{"id", answer.id}, {"body", answer.body}};
  if (!answer.status.ok()) {
    value["code"] = static_cast<int>(answer.status.error().code());
    value["message"] = answer.status.error().message();
  }
  return Dump(value);
}

base::Result<WorkerAnswer> DecodeAnswer(std::string_view frame) {
  return Decode(frame, "answer", [](Reader& reader) {
    reader.Require("id");
    WorkerAnswer answer;
    answer.id = reader.Size("id").count;
    answer.body = reader.Text("body");
    if (!reader.Has("code")) return answer;
    const auto code = reader.Int("code", static_cast<int>(base::Code::kCancelled),
                                 static_cast<int>(base::Code::kUnauthenticated));
    answer.status = base::Error(static_cast<base::Code>(code), reader.Text("message"));
    return answer;
  });
}

std::string Encode(const Driver& driver) {
  json guarded = json::array();
  for (const DeviceNumbers& range : driver.guarded)
    guarded.push_back(
        {{"major", range.major}, {"first", range.first_minor}, {"last", range.last_minor}});
  return Dump({{"vendor", driver.vendor},
               {"version", driver.version},
               {"runtimeVersion", driver.runtime_version},
               {"files", ToJson(driver.files)},
               {"guarded", guarded}});
}

base::Result<Driver> DecodeDriver(std::string_view body) {
  return Decode(body, "driver", [](Reader& reader) {
    Driver driver;
    driver.vendor = reader.Text("vendor");
    driver.version = reader.Text("version");
    driver.runtime_version = reader.Text("runtimeVersion");
    driver.files = ReadFiles(reader, "files");
    reader.Each("guarded", [&](Reader& item) {
      driver.guarded.push_back({item.Uint32("major"), item.Uint32("first"), item.Uint32("last")});
    });
    return driver;
  });
}

std::string Encode(const std::vector<std::string>& addresses) {
  return Dump({{"addresses", addresses}});
}

base::Result<std::vector<std::string>> DecodeAddresses(std::string_view body) {
  return Decode(body, "addresses", [](Reader& reader) {
    reader.Require("addresses");
    return reader.Texts("addresses");
  });
}

std::string Encode(const Facts& facts) {
  json links = json::array(), modes = json::array();
  for (const Link& link : facts.links)
    links.push_back({{"peer", link.peer},
                     {"nearness", NameOf(kNearness, link.nearness)},
                     {"fabricLanes", link.fabric_lanes}});
  for (const Mode& mode : facts.modes) modes.push_back(ToJson(mode));
  json value{{"id", facts.id},
             {"vendor", facts.vendor},
             {"model", facts.model},
             {"index", facts.index},
             {"address", facts.address},
             {"cpuAffinity", facts.cpu_affinity},
             {"memory", Number(facts.memory)},
             {"architecture", facts.architecture},
             {"architectureVersion", facts.architecture_version},
             {"serial", facts.serial},
             {"files", ToJson(facts.files)},
             {"links", links},
             {"parent", facts.parent},
             {"modes", modes},
             {"details", facts.details},
             {"withheld", facts.withheld}};
  if (facts.pci) value["pci"] = ToString(*facts.pci);
  if (facts.numa_node) value["numaNode"] = *facts.numa_node;
  return Dump(value);
}

base::Result<Facts> DecodeFacts(std::string_view body) {
  return Decode(body, "facts", [](Reader& reader) {
    reader.Require("id");
    Facts facts;
    facts.id = reader.Text("id");
    facts.vendor = reader.Text("vendor");
    facts.model = reader.Text("model");
    facts.index = static_cast<int>(reader.Int("index", -1, 1 << 20));
    facts.address = reader.Text("address");
    facts.pci = reader.Pci("pci");
    if (reader.Has("numaNode"))
      facts.numa_node = static_cast<int>(reader.Int("numaNode", 0, 1 << 20));
    facts.cpu_affinity = reader.Text("cpuAffinity");
    facts.memory = reader.Size("memory");
    facts.architecture = reader.Text("architecture");
    facts.architecture_version = reader.Text("architectureVersion");
    facts.serial = reader.Text("serial");
    facts.files = ReadFiles(reader, "files");
    reader.Each("links", [&](Reader& item) {
      facts.links.push_back({item.Text("peer"), item.Named("nearness", kNearness),
                             static_cast<int>(item.Int("fabricLanes", 0, 1 << 20))});
    });
    facts.parent = reader.Text("parent");
    reader.Each("modes", [&](Reader& item) { facts.modes.push_back(ReadMode(item)); });
    facts.details = reader.TextMap("details");
    facts.withheld = reader.Text("withheld");
    if (reader.Has("id") && facts.id.empty()) reader.Problem("id", "is empty");
    return facts;
  });
}

std::string Encode(const Reading& reading) {
  json processes = json::array();
  for (const DeviceProcess& process : reading.processes)
    processes.push_back({{"pid", process.pid},
                         {"memory", Number(process.memory)},
                         {"graphicsOnly", process.graphics_only}});
  return Dump({{"reachable", reading.reachable},
               {"evidence", ToJson(reading.evidence)},
               {"processes", processes},
               {"tellsRecovery", reading.reports_recovery},
               {"factsChanged", reading.facts_changed}});
}

base::Result<Reading> DecodeReading(std::string_view body) {
  return Decode(body, "reading", [](Reader& reader) {
    reader.Require("reachable");
    Reading reading;
    reading.reachable = reader.Bool("reachable");
    reader.Each("evidence", [&](Reader& item) { reading.evidence.push_back(ReadEvidence(item)); });
    reader.Each("processes", [&](Reader& item) {
      const auto pid =
          static_cast<std::int32_t>(item.Int("pid", 0, std::numeric_limits<std::int32_t>::max()));
      // A missing key (from a worker of an earlier version, which this agent does not start) means
      // a computing process.
      reading.processes.push_back({pid, item.Size("memory"), item.Bool("graphicsOnly")});
    });
    reading.reports_recovery = reader.Bool("tellsRecovery");
    reading.facts_changed = reader.Bool("factsChanged");
    return reading;
  });
}

std::string Encode(const std::vector<Evidence>& evidence) {
  return Dump({{"evidence", ToJson(evidence)}});
}

base::Result<std::vector<Evidence>> DecodeEvidence(std::string_view body) {
  return Decode(body, "evidence", [](Reader& reader) {
    reader.Require("evidence");
    std::vector<Evidence> evidence;
    reader.Each("evidence", [&](Reader& item) { evidence.push_back(ReadEvidence(item)); });
    return evidence;
  });
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

}  // namespace penstock::device::codec
