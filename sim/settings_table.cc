#include "sim/settings_table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::sim {
namespace {

// A field of the state: its unit and its maximum.
struct Field {
  const char* key;
  std::uint32_t SimGpu::*field;
  std::uint32_t most;
  const char* unit;
};
constexpr std::uint32_t kAny = SIM_NA - 1;
constexpr Field kFields[] = {
    {"memory-utilisation", &SimGpu::use_memory, 100, "percent"},
    {"encoder", &SimGpu::use_encoder, 100, "percent"},
    {"decoder", &SimGpu::use_decoder, 100, "percent"},
    {"jpeg", &SimGpu::use_jpeg, 100, "percent"},
    {"ofa", &SimGpu::use_ofa, 100, "percent"},
    {"temperature", &SimGpu::temperature, 150, "°C"},
    {"memory-temperature", &SimGpu::memory_temperature, 150, "°C"},
    {"fan", &SimGpu::fan_percent, 100, "percent"},
    {"sm-clock", &SimGpu::clock_sm, 10000, "MHz"},
    {"memory-clock", &SimGpu::clock_memory, 20000, "MHz"},
    {"video-clock", &SimGpu::clock_video, 10000, "MHz"},
    {"pstate", &SimGpu::pstate, 15, "P states"},
    {"pcie-generation", &SimGpu::pcie_gen_current, 6, "generations"},
    {"pcie-width", &SimGpu::pcie_width, 16, "lanes"},
    {"pcie-replays", &SimGpu::pcie_replays, kAny, "replays"},
    {"persistence", &SimGpu::persistence, 1, "on (1) or off (0)"},
    {"remapped-correctable", &SimGpu::remapped_correctable, kAny, "rows"},
    {"remapped-uncorrectable", &SimGpu::remapped_uncorrectable, kAny, "rows"},
    {"fabric-state", &SimGpu::fabric, 3, "states"},
    {"fabric-status", &SimGpu::fabric_status, 999, "codes"},
    {"fabric-health", &SimGpu::fabric_health, kAny, "bits"},
    {"fabric-summary", &SimGpu::fabric_summary, 3, "summaries"},
    {"licensed", &SimGpu::vgpu_licensed, 1, "yes (1) or no (0)"},
    {"retired-single", &SimGpu::retired_single, 63, "pages"},
    {"retired-double", &SimGpu::retired_double, 63, "pages"},
};

// A meter: its count, or its rate per second.
enum class Part { kCount, kRate, kPercent };
struct MeterKey {
  const char* key;
  SimMeterIndex meter;
  Part part;
};
constexpr MeterKey kMeterKeys[] = {
    {"pcie-tx", kSimPcieTx, Part::kRate},
    {"pcie-rx", kSimPcieRx, Part::kRate},
    {"nvlink-tx", kSimNvlinkTx, Part::kRate},
    {"nvlink-rx", kSimNvlinkRx, Part::kRate},
    {"pcie-tx-bytes", kSimPcieTx, Part::kCount},
    {"pcie-rx-bytes", kSimPcieRx, Part::kCount},
    {"nvlink-tx-bytes", kSimNvlinkTx, Part::kCount},
    {"nvlink-rx-bytes", kSimNvlinkRx, Part::kCount},
    {"energy", kSimEnergy, Part::kCount},
    {"limited-by-power", kSimLimitedByPower, Part::kCount},
    {"limited-by-heat", kSimLimitedByHeat, Part::kCount},
    {"limited-by-sync-boost", kSimLimitedBySyncBoost, Part::kCount},
    {"limited-by-board", kSimLimitedByBoard, Part::kCount},
    {"limited-by-low-use", kSimLimitedByLowUse, Part::kCount},
    {"limited-by-reliability", kSimLimitedByReliability, Part::kCount},
    {"limited-by-sw-heat", kSimLimitedBySwHeat, Part::kCount},
    {"limited-by-hw-heat", kSimLimitedByHwHeat, Part::kCount},
    {"limited-by-power-brake", kSimLimitedByPowerBrake, Part::kCount},
    {"gpm-graphics", kSimUseGraphics, Part::kPercent},
    {"gpm-sm", kSimUseSm, Part::kPercent},
    {"gpm-occupancy", kSimUseOccupancy, Part::kPercent},
    {"gpm-integer", kSimUseInteger, Part::kPercent},
    {"gpm-tensor", kSimUseTensor, Part::kPercent},
    {"gpm-dfma", kSimUseDfma, Part::kPercent},
    {"gpm-hmma", kSimUseHmma, Part::kPercent},
    {"gpm-dmma", kSimUseDmma, Part::kPercent},
    {"gpm-imma", kSimUseImma, Part::kPercent},
    {"gpm-dram", kSimUseDram, Part::kPercent},
    {"gpm-fp64", kSimUseFp64, Part::kPercent},
    {"gpm-fp32", kSimUseFp32, Part::kPercent},
    {"gpm-fp16", kSimUseFp16, Part::kPercent},
};

struct LinkKey {
  const char* key;
  int error;
};
constexpr LinkKey kLinkKeys[] = {{"nvlink-crc-flit", kSimLinkCrcFlit},
                                 {"nvlink-crc-data", kSimLinkCrcData},
                                 {"nvlink-replay", kSimLinkReplay},
                                 {"nvlink-recovery", kSimLinkRecovery}};

// In the order of NVML's fields.
const std::vector<std::string> kPcieErrors = {
    "l0-to-recovery", "correctable", "nak-received", "receiver",    "bad-tlp", "nak-sent",
    "bad-dllp",       "non-fatal",   "fatal",        "unsupported", "lcrc",    "lane"};

struct ReadingKey {
  const char* key;
  SimReading reading;
};
constexpr ReadingKey kReadings[] = {
    {"temperature", kSimReadTemperature},
    {"memory-temperature", kSimReadMemoryTemperature},
    {"power", kSimReadPower},
    {"utilisation", kSimReadUse},
    {"memory-utilisation", kSimReadMemoryUse},
    {"memory-used", kSimReadMemoryUsed},
    {"sm-clock", kSimReadSmClock},
    {"memory-clock", kSimReadMemoryClock},
    {"fan", kSimReadFan},
    {"encoder", kSimReadEncoder},
    {"decoder", kSimReadDecoder},
    {"process-utilisation", kSimReadProcessUse},
    {"process-memory", kSimReadProcessMemory},
    {"gpm", kSimReadGpm},
};

template <typename Table>
auto Find(const Table& table, const std::string& key) {
  const auto at = std::find_if(std::begin(table), std::end(table),
                               [&](const auto& row) { return key == row.key; });
  return at == std::end(table) ? nullptr : &*at;
}

Status Lacks(const SimGpu& gpu, const std::string& what) {
  return Error(Code::kFailedPrecondition, std::string(gpu.name) + " has no " + what);
}

Status SetField(SimGpu& gpu, const Field& row, const std::string& value) {
  if (gpu.*row.field == SIM_NA) return Lacks(gpu, row.key);
  ASSIGN(const std::uint64_t number, SettingNumber(row.key, value, row.most, row.unit));
  gpu.*row.field = static_cast<std::uint32_t>(number);
  return {};
}

// Reads bytes, "25Gi" or a plain number; for a rate, per second.
base::Result<std::uint64_t> Count(const std::string& key, const std::string& value) {
  if (const auto number = base::ParseUint(value)) return *number;
  const auto bytes = base::ParseBytes(value);
  if (!bytes.ok())
    return BadSetting(key, value, "expected a whole number, or a quantity such as 10Gi");
  return bytes->count;
}

Status SetMeter(SimGpu& gpu, const MeterKey& row, const std::string& value) {
  const bool of_links = row.meter == kSimNvlinkTx || row.meter == kSimNvlinkRx;
  if (of_links && gpu.nvlink_count == 0) return Lacks(gpu, "NVLink");
  SimMeter& meter = gpu.meters[row.meter];
  if (row.part == Part::kPercent) {
    char* end = nullptr;
    const double percent = std::strtod(value.c_str(), &end);
    if (value.empty() || *end || !(percent >= 0 && percent <= 100))
      return BadSetting(row.key, value, "expected a percentage from 0 to 100");
    meter.rate = static_cast<std::uint64_t>(std::llround(percent * 1000000));
    return {};
  }
  ASSIGN(const std::uint64_t count, Count(row.key, value));
  constexpr std::uint64_t kMostRate = 1ull << 43;  // a rate whose product with a million still fits
  if (row.part == Part::kRate && count > kMostRate)
    return BadSetting(row.key, value, "expected at most 8Ti per second");
  (row.part == Part::kRate ? meter.rate : meter.count) = count;
  return {};
}

// LINK:COUNT
Status SetLinkErrors(SimGpu& gpu, const LinkKey& row, const std::string& value) {
  const auto parts = base::Split(value, ':');
  const auto link = base::ParseUint(parts[0]);
  const auto count = parts.size() == 2 ? base::ParseUint(parts[1]) : std::nullopt;
  if (!link || !count) return BadSetting(row.key, value, "expected LINK:COUNT");
  if (*link >= gpu.nvlink_count || *link >= kSimMaxLinks) return Lacks(gpu, "NVLink " + parts[0]);
  gpu.nvlinks[*link].errors[row.error] = *count;
  return {};
}

// KIND:COUNT
Status SetPcieErrors(SimGpu& gpu, const std::string& value) {
  const auto parts = base::Split(value, ':');
  const auto kind = std::find(kPcieErrors.begin(), kPcieErrors.end(), parts[0]);
  const auto count = parts.size() == 2 ? base::ParseUint(parts[1]) : std::nullopt;
  if (kind == kPcieErrors.end() || !count || *count > kAny)
    return BadSetting("pcie-errors", value,
                      "expected KIND:COUNT with a kind of " + base::Join(kPcieErrors, ", "));
  gpu.pcie_errors[kind - kPcieErrors.begin()] = static_cast<std::uint32_t>(*count);
  return {};
}

}  // namespace

base::Error BadSetting(const std::string& key, const std::string& value,
                       const std::string& wanted) {
  return {Code::kInvalidArgument, key + "=" + value + ": " + wanted};
}

base::Result<std::uint64_t> SettingNumber(const std::string& key, const std::string& value,
                                          std::uint64_t most, const std::string& unit) {
  const auto number = base::ParseUint(value);
  if (!number || *number > most)
    return BadSetting(key, value,
                      "expected a whole number of " + unit + " from 0 to " + std::to_string(most));
  return *number;
}

std::vector<std::string> PlainSettings() {
  std::vector<std::string> keys = {"pcie-errors"};
  for (const Field& row : kFields) keys.emplace_back(row.key);
  for (const MeterKey& row : kMeterKeys) keys.emplace_back(row.key);
  for (const LinkKey& row : kLinkKeys) keys.emplace_back(row.key);
  return keys;
}

Status SetPlain(SimGpu& gpu, const std::string& key, const std::string& value) {
  if (key == "pcie-errors") return SetPcieErrors(gpu, value);
  if (const Field* row = Find(kFields, key)) return SetField(gpu, *row, value);
  if (const MeterKey* row = Find(kMeterKeys, key)) return SetMeter(gpu, *row, value);
  if (const LinkKey* row = Find(kLinkKeys, key)) return SetLinkErrors(gpu, *row, value);
  return Error(Code::kNotFound, "unknown setting \"" + key + "\"");
}

base::Result<SimReading> ReadingOf(const std::string& key) {
  if (const ReadingKey* row = Find(kReadings, key)) return row->reading;
  std::vector<std::string> keys;
  for (const ReadingKey& row : kReadings) keys.emplace_back(row.key);
  return Error(Code::kInvalidArgument,
               "unknown reading \"" + key + "\"; readings: " + base::Join(keys, ", "));
}

}  // namespace penstock::sim
