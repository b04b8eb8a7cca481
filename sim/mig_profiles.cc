#include "sim/mig_profiles.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

extern "C" {
#include "sim/nvml/nvml_abi.h"
}

namespace penstock::sim {
namespace {

// A profile as all models with as many slices have it. Its name is the key with the memory after
// its slices: "1g.5gb+me".
struct Row {
  const char* key;
  std::uint32_t number, id, slices, most, size, starts;
};

// A100, H100, H200, B200: seven compute slices, eight memory slices. "1g*2" has twice the memory.
constexpr Row kSevenSlices[] = {
    {"1g", NV_GI_1_SLICE, 19, 1, 7, 1, 0b01111111},
    {"1g+me", NV_GI_1_SLICE_REV1, 20, 1, 1, 1, 0b01111111},
    {"1g*2", NV_GI_1_SLICE_REV2, 15, 1, 4, 2, 0b01010101},
    {"2g", NV_GI_2_SLICE, 14, 2, 3, 2, 0b00010101},
    {"3g", NV_GI_3_SLICE, 9, 3, 2, 4, 0b00010001},
    {"4g", NV_GI_4_SLICE, 5, 4, 1, 4, 0b00000001},
    {"7g", NV_GI_7_SLICE, 0, 7, 1, 8, 0b00000001},
};

// A30 and RTX PRO 6000: four slices of both kinds. Placements of the profiles with suffixes, and
// the ids of 2g+me, 2g and 4g with +gfx, 2g+me.all and those without media engines, are derived.
constexpr Row kFourSlices[] = {
    {"1g", NV_GI_1_SLICE, 14, 1, 4, 1, 0b1111},
    {"1g+me", NV_GI_1_SLICE_REV1, 21, 1, 1, 1, 0b1111},
    {"1g+gfx", NV_GI_1_SLICE_GFX, 47, 1, 4, 1, 0b1111},
    {"1g+me.all", NV_GI_1_SLICE_ALL_ME, 65, 1, 1, 1, 0b1111},
    {"1g-me", NV_GI_1_SLICE_NO_ME, 67, 1, 4, 1, 0b1111},
    {"2g", NV_GI_2_SLICE, 5, 2, 2, 2, 0b0101},
    {"2g+me", NV_GI_2_SLICE_REV1, 6, 2, 1, 2, 0b0101},
    {"2g+gfx", NV_GI_2_SLICE_GFX, 35, 2, 2, 2, 0b0101},
    {"2g+me.all", NV_GI_2_SLICE_ALL_ME, 64, 2, 1, 2, 0b0101},
    {"2g-me", NV_GI_2_SLICE_NO_ME, 66, 2, 2, 2, 0b0101},
    {"4g", NV_GI_4_SLICE, 0, 4, 1, 4, 0b0001},
    {"4g+gfx", NV_GI_4_SLICE_GFX, 32, 4, 1, 4, 0b0001},
};

// Returns the first driver branch that knows a profile, as in NVIDIA's Python binding.
std::uint32_t FirstBranch(std::uint32_t number) {
  if (number > NV_GI_4_SLICE_GFX) return 575;
  if (number > NV_GI_1_SLICE_REV2) return 570;
  if (number > NV_GI_1_SLICE_REV1) return 525;
  return number == NV_GI_1_SLICE_REV1 ? 470 : 450;
}

std::uint32_t Number(base::MapReader& map, const char* key, std::int64_t most) {
  return static_cast<std::uint32_t>(map.Int(key, 0, most).value_or(0));
}

SimMigProfile ReadProfile(const Row& row, base::MapReader& map) {
  for (const auto* key : {"gb", "memory", "multiprocessors", "copy"}) map.Require(key);
  const std::string key = row.key;
  const std::size_t suffix = key.find_first_of("+-");
  const std::string name = key.substr(0, 2) + "." + std::to_string(Number(map, "gb", 999)) + "gb" +
                           (suffix == std::string::npos ? "" : key.substr(suffix));
  SimMigProfile profile{.id = row.id,
                        .slices = row.slices,
                        .most = row.most,
                        .multiprocessors = Number(map, "multiprocessors", 1024),
                        .copy_engines = Number(map, "copy", 64),
                        .decoders = Number(map, "decoders", 64),
                        .encoders = Number(map, "encoders", 64),
                        .jpegs = Number(map, "jpegs", 64),
                        .ofas = Number(map, "ofas", 64),
                        .graphics = key.ends_with("+gfx"),
                        .size = row.size,
                        .starts = row.starts,
                        .memory_mib = Number(map, "memory", 1 << 24)};
  std::memcpy(profile.name, name.data(), std::min(name.size(), sizeof profile.name - 1));
  return profile;
}

}  // namespace

MigModel ReadMig(base::MapReader& model, base::Problems& problems) {
  MigModel mig;
  const base::Value* value = model.Map("mig");
  if (!value) return mig;
  base::MapReader map(*value, model.Path("mig"), problems);
  for (const auto* key : {"slices", "profiles"}) map.Require(key);
  const std::int64_t slices = map.Int("slices", 4, 7).value_or(7);
  if (slices != 4 && slices != 7) map.Problem("slices", "is neither 4 nor 7");
  mig.devices = static_cast<std::uint32_t>(slices);
  const std::span<const Row> rows =
      slices == 7 ? std::span<const Row>(kSevenSlices) : std::span<const Row>(kFourSlices);
  if (const base::Value* profiles = map.Map("profiles")) {
    base::MapReader all(*profiles, map.Path("profiles"), problems);
    for (const Row& row : rows) {
      const base::Value* profile = all.Has(row.key) ? all.Map(row.key) : nullptr;
      if (!profile) continue;
      base::MapReader one(*profile, all.Path(row.key), problems);
      mig.profiles[row.number] = ReadProfile(row, one);
      one.Finish();
    }
    all.Finish();
  }
  map.Finish();
  return mig;
}

void ApplyProfiles(const MigModel& model, std::uint32_t branch, SimGpu& gpu) {
  for (std::uint32_t i = 0; i < kSimMigProfiles; i++)
    gpu.mig_profiles[i] = branch >= FirstBranch(i) ? model.profiles[i] : SimMigProfile{};
}

}  // namespace penstock::sim
