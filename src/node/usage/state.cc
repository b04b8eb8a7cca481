// Times of the steady clock are nanoseconds since the boot, so they are only valid in the same
// boot.
#include "node/usage/state.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/core/hash.h"
#include "os/core/file.h"
#include "os/kept_file.h"

namespace penstock::node::usage {
namespace {

using nlohmann::json;

constexpr int kStateVersion = 1;

/// A device's reading, as it is written.
struct Energy {
  std::string device;
  EnergyReading reading;
};

template <typename Visit, base::Of<Energy> T>
void VisitFields(Visit& visit, T& energy) {
  visit("device", energy.device);
  visit("joules", energy.reading.joules);
  visit("at", energy.reading.at, {.least = INT64_MIN});
}

/// Adds a list to the document, one element per line.
template <typename Elements, typename ToJson>
void AddList(std::string_view key, const Elements& elements, std::string& text, ToJson to_json) {
  text.append(",\n \"").append(key).append("\": [");
  std::string_view before = "\n  ";
  for (const auto& element : elements)
    text.append(std::exchange(before, ",\n  ")).append(base::JsonText(to_json(element)));
  text += ']';
}

/// The size of the text or a little more: quotes in lines are escaped and take two bytes.
std::size_t SizeOf(const State& state) {
  constexpr std::size_t kHolder = 800;
  std::size_t size = 1024 + (state.holders.size() + state.energy.size()) * kHolder;
  for (const std::string& line : state.pending) size += line.size() + line.size() / 3;
  return size;
}

}  // namespace

template <typename Visit, base::Of<Kept> T>
static void VisitFields(Visit& visit, T& kept) {
  std::string line = Visit::kReads ? "" : EncodeRecord(kept.record);
  visit("record", line, {.required = true});
  visit("began", kept.began, {.required = true, .least = INT64_MIN});
  visit("lastBusy", kept.last_busy, {.required = true, .least = INT64_MIN});
  if constexpr (Visit::kReads) {
    auto record = DecodeRecord(line);
    if (!record.ok()) return visit.map().Problem("record", record.error().message());
    kept.record = *std::move(record);
  }
}

// Builds the text piece by piece, since one JSON document of all holders would need many times its
// memory: after a burst there are thousands.
std::string EncodeState(const State& state) {
  std::string text;
  text.reserve(SizeOf(state));
  text += "{\n \"version\": " + std::to_string(kStateVersion) +
          ",\n \"bootId\": " + base::JsonText(json(state.boot_id));
  AddList("holders", state.holders, text, base::ToJsonObject<json, Kept>);
  AddList("energy", state.energy, text, [](const auto& one) {
    return base::ToJsonObject<json>(Energy{one.first, one.second});
  });
  AddList("pending", state.pending, text, [](const std::string& line) { return json(line); });
  text += "\n}\n";
  return text;
}

base::Result<State> DecodeState(std::string_view text, std::string_view file) {
  State state;
  std::vector<Energy> energy;
  TRY(os::DecodeKept(kStateVersion, text, file,
                     [&](base::StructReader& read) {
                       read("bootId", state.boot_id);
                       read("holders", state.holders);
                       read("energy", energy);
                       read("pending", state.pending);
                     },
                     {.bytes = os::kMaxFileBytes}));
  for (const Energy& one : energy) state.energy[one.device] = one.reading;
  return state;
}

template <typename Visit, base::Of<Hidden> T>
static void VisitFields(Visit& visit, T& hidden) {
  visit("device", hidden.device, {.required = true});
  visit("lease", hidden.lease, {.required = true});
  visit("busySeconds", hidden.busy_seconds);
  visit("energyJoules", hidden.energy_joules);
  visit("measuredSeconds", hidden.measured_seconds);
}

// The file names its state by hash, so that neither a crash between the two files nor an agent that
// only knows one of them pairs the wrong ones.
std::string EncodeCleanEnd(const std::vector<Hidden>& hidden, std::string_view state) {
  return os::EncodeKept<nlohmann::json>(kStateVersion, [&](auto& write) {
    write("state", std::to_string(base::Hash(state)));
    write("holders", hidden);
  });
}

base::Result<std::optional<std::vector<Hidden>>> DecodeCleanEnd(std::string_view text,
                                                                std::string_view state,
                                                                std::string_view file) {
  std::string of;
  std::vector<Hidden> hidden;
  TRY(os::DecodeKept(kStateVersion, text, file,
                     [&](base::StructReader& read) {
                       read("state", of);
                       read("holders", hidden);
                     },
                     {.bytes = os::kMaxFileBytes}));
  if (of != std::to_string(base::Hash(state))) return std::optional<std::vector<Hidden>>();
  return std::optional(std::move(hidden));
}

}  // namespace penstock::node::usage
