// Times of the steady clock are nanoseconds since the boot, so they are only valid in the same
// boot.
#include "node/usage/state.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "os/core/file.h"
#include "os/kept_file.h"

namespace penstock::node::usage {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;

constexpr int kVersion = 1;

std::int64_t ToCount(base::TimePoint time) {
  return std::chrono::duration_cast<base::Duration>(time.time_since_epoch()).count();
}

base::TimePoint ReadTime(base::MapReader& reader, const char* key) {
  return base::TimePoint(base::Duration(reader.Int(key, INT64_MIN, INT64_MAX).value_or(0)));
}

void ReadHolder(const base::Value& item, base::Problems& problems, State& state) {
  base::MapReader reader(item, "holders", problems);
  for (const char* key : {"record", "began", "lastBusy"}) reader.Require(key);
  Kept kept{.began = ReadTime(reader, "began"), .last_busy = ReadTime(reader, "lastBusy")};
  auto record = DecodeRecord(reader.String("record").value_or(""));
  if (!record.ok()) return problems.Add(item.mark, record.error().message());
  kept.record = *std::move(record);
  state.holders.push_back(std::move(kept));
}

std::string Text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Adds a list to the document, one element per line.
template <typename Elements, typename ToJson>
void AddList(std::string_view key, const Elements& elements, std::string& text, ToJson to_json) {
  text.append(",\n \"").append(key).append("\": [");
  std::string_view before = "\n  ";
  for (const auto& element : elements)
    text.append(std::exchange(before, ",\n  ")).append(Text(to_json(element)));
  text += ']';
}

/// The size of the text or a little more: quotes in lines are escaped and take two bytes.
std::size_t SizeOf(const State& state) {
  constexpr std::size_t kHolder = 800;
  std::size_t size = 1024 + (state.holders.size() + state.energy.size()) * kHolder;
  for (const std::string& line : state.pending) size += line.size() + line.size() / 3;
  return size;
}

void ReadEnergy(const base::Value& item, base::Problems& problems, State& state) {
  base::MapReader reader(item, "energy", problems);
  const std::string device = reader.String("device").value_or("");
  const double joules = reader.Number("joules", 0, 1e300).value_or(0);
  state.energy[device] = {joules, ReadTime(reader, "at")};
}

}  // namespace

// Builds the text piece by piece, since one JSON document of all holders would need many times its
// memory: after a burst there are thousands.
std::string EncodeState(const State& state) {
  std::string text;
  text.reserve(SizeOf(state));
  text += "{\n \"version\": " + std::to_string(kVersion) + ",\n \"bootId\": " + Text(state.boot_id);
  AddList("holders", state.holders, text, [](const Kept& kept) {
    return json{{"record", EncodeRecord(kept.record)},
                {"began", ToCount(kept.began)},
                {"lastBusy", ToCount(kept.last_busy)}};
  });
  AddList("energy", state.energy, text, [](const auto& one) {
    return json{
        {"device", one.first}, {"joules", one.second.joules}, {"at", ToCount(one.second.at)}};
  });
  AddList("pending", state.pending, text, [](const std::string& line) { return json(line); });
  text += "\n}\n";
  return text;
}

base::Result<State> DecodeState(std::string_view text, std::string_view file) {
  const auto damaged = [](const Error& error) { return Error(Code::kDataLoss, error.message()); };
  auto document = base::ParseJson(text, file, {.bytes = os::kMaxFileBytes});
  if (!document.ok()) return damaged(document.error());
  base::Problems problems{std::string(file)};
  base::MapReader reader(*document, "", problems);
  TRY(os::CheckKeptVersion(reader, file, kVersion));
  State state{.boot_id = reader.String("bootId").value_or("")};
  if (const base::Value* holders = reader.List("holders"))
    for (const base::Value& item : *holders->list) ReadHolder(item, problems, state);
  if (const base::Value* energy = reader.List("energy"))
    for (const base::Value& item : *energy->list) ReadEnergy(item, problems, state);
  state.pending = reader.Strings("pending").value_or(state.pending);
  reader.Finish();
  if (!problems.empty()) return damaged(problems.ToError());
  return state;
}

}  // namespace penstock::node::usage
