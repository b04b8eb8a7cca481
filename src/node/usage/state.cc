// Times of the steady clock are nanoseconds since the boot, so they mean something in the same boot only.
#include "node/usage/state.h"

#include <nlohmann/json.hpp>

#include "os/core/file.h"
#include "os/kept_file.h"

namespace penstock::node::usage {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;

constexpr int kVersion = 1;

std::int64_t ToCount(base::TimePoint time) { return std::chrono::duration_cast<base::Duration>(time.time_since_epoch()).count(); }

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

void ReadEnergy(const base::Value& item, base::Problems& problems, State& state) {
  base::MapReader reader(item, "energy", problems);
  const std::string device = reader.String("device").value_or("");
  const double joules = reader.Number("joules", 0, 1e300).value_or(0);
  state.energy[device] = {joules, ReadTime(reader, "at")};
}

}  // namespace

std::string EncodeState(const State& state) {
  json holders = json::array(), energy = json::array();
  for (const Kept& kept : state.holders)
    holders.push_back({{"record", EncodeRecord(kept.record)}, {"began", ToCount(kept.began)}, {"lastBusy", ToCount(kept.last_busy)}});
  for (const auto& [device, reading] : state.energy)
    energy.push_back({{"device", device}, {"joules", reading.joules}, {"at", ToCount(reading.at)}});
  return json({{"version", kVersion}, {"bootId", state.boot_id}, {"holders", holders}, {"energy", energy}, {"pending", state.pending}})
             .dump(1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

base::Result<State> DecodeState(std::string_view text, std::string_view file) {
  const auto damaged = [](const Error& error) { return Error(Code::kDataLoss, error.message()); };
  auto document = base::ParseJson(text, file, {.bytes = os::kMostFileBytes});
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
