#include "api/compat/nvidia/mig_checkpoint.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/core/document.h"
#include "base/core/json_text.h"

namespace penstock::api::compat {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;

constexpr int kMaxMigProfiles = 255, kMaxMigSlices = 64;

/// Number of the profile and its slices, NVML_COMPUTE_INSTANCE_PROFILE_* of nvml.h 13. The last one
/// is a revision of the first.
constexpr std::array<std::pair<int, int>, 8> kComputeProfiles{
    {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 7}, {5, 8}, {6, 6}, {7, 1}}};

class CheckpointReader {
 public:
  explicit CheckpointReader(Problems& problems) : problems_(problems) {}

  MigCheckpoint Read(const Value& document) {
    MigCheckpoint checkpoint;
    MapReader top(document, "", problems_);
    top.Require("Version");
    if (const auto version = top.String("Version"); version && *version != "v1")
      top.Problem("Version", "is \"" + *version + "\"; this program reads \"v1\"");
    top.Require("MigState");
    if (const Value* state = top.Map("MigState")) {
      MapReader reader(*state, "MigState", problems_);
      ForEach(reader, "Devices", [&](const Value& value, const std::string& where) {
        checkpoint.gpus.push_back(ReadGpu(value, where));
      });
      reader.Finish();
    }
    top.Finish();
    return checkpoint;
  }

 private:
  /// Go writes a list without elements as null.
  template <typename Take>
  void ForEach(MapReader& reader, const char* key, const Take& take) {
    const Value* list = reader.Any(key);
    if (list == nullptr || list->kind == Value::Kind::kNull) return;
    if (list->kind != Value::Kind::kList)
      return reader.Problem(
          key, "is " + std::string(Describe(list->kind)) + " where a list is expected");
    base::ForEachMap(*list, reader.Path(key), problems_, take);
  }

  static int Number(MapReader& reader, const char* key, int least, int most) {
    reader.Require(key);
    return static_cast<int>(reader.Int(key, least, most).value_or(least));
  }

  static int Profile(MapReader& reader, const char* key, const char* older) {
    return Number(reader, reader.Has(older) && !reader.Has(key) ? older : key, 0, kMaxMigProfiles);
  }

  std::optional<MigCheckpoint::Placement> ReadPlacement(MapReader& reader) {
    const Value* placement = reader.Map("Placement");
    if (placement == nullptr) return std::nullopt;
    MapReader at(*placement, reader.Path("Placement"), problems_);
    const MigCheckpoint::Placement read{Number(at, "Start", 0, kMaxMigSlices),
                                        Number(at, "Size", 1, kMaxMigSlices)};
    at.Finish();
    return read;
  }

  MigCheckpoint::Gpu ReadGpu(const Value& value, const std::string& where) {
    MigCheckpoint::Gpu gpu;
    MapReader reader(value, where, problems_);
    reader.Require("UUID");
    gpu.uuid = reader.String("UUID").value_or("");
    if (!gpu.uuid.empty() && !uuids_.insert(gpu.uuid).second)
      reader.Problem("UUID", "occurs twice");
    gpu.enabled = Number(reader, "MigMode", 0, 1) == 1;
    ForEach(reader, "GpuInstances", [&](const Value& one, const std::string& place) {
      gpu.instances.push_back(ReadInstance(one, place));
    });
    if (!gpu.enabled && !gpu.instances.empty())
      reader.Problem("GpuInstances", "has instances although MigMode is 0");
    reader.Finish();
    return gpu;
  }

  MigCheckpoint::GpuInstance ReadInstance(const Value& value, const std::string& where) {
    MigCheckpoint::GpuInstance instance;
    MapReader reader(value, where, problems_);
    instance.profile = Profile(reader, "ProfileID", "ProfileId");
    reader.Require("Placement");
    if (const auto at = ReadPlacement(reader)) {
      instance.start = at->start;
      instance.size = at->size;
    }
    ForEach(reader, "ComputeInstances", [&](const Value& one, const std::string& place) {
      MapReader of(one, place, problems_);
      instance.compute_instances.push_back({.profile = Profile(of, "ProfileID", "ProfileId"),
                                            .engines = Profile(of, "EngProfileID", "EngProfileId"),
                                            .placement = ReadPlacement(of)});
      of.Finish();
    });
    reader.Finish();
    return instance;
  }

  Problems& problems_;
  std::set<std::string> uuids_;
};

}  // namespace

Result<MigCheckpoint> ReadMigCheckpoint(std::string_view text, std::string_view file) {
  ASSIGN(const Value document, base::ParseJson(text, file));
  Problems problems{std::string(file)};
  if (document.kind != Value::Kind::kMap)
    return Error(Code::kInvalidArgument, std::string(file) + ": is no checkpoint of mig-parted");
  MigCheckpoint checkpoint = CheckpointReader(problems).Read(document);
  if (!problems.empty()) return problems.ToError();
  return checkpoint;
}

std::string WriteMigCheckpoint(const MigCheckpoint& checkpoint) {
  using Json = nlohmann::ordered_json;
  Json devices;
  for (const MigCheckpoint::Gpu& gpu : checkpoint.gpus) {
    Json instances;
    for (const MigCheckpoint::GpuInstance& instance : gpu.instances) {
      Json computes;
      for (const MigCheckpoint::ComputeInstance& compute : instance.compute_instances) {
        Json& one = computes.emplace_back(
            Json{{"ProfileID", compute.profile}, {"EngProfileID", compute.engines}});
        if (compute.placement)
          one["Placement"] = {{"Start", compute.placement->start},
                              {"Size", compute.placement->size}};
      }
      instances.push_back({{"ProfileID", instance.profile},
                           {"Placement", {{"Start", instance.start}, {"Size", instance.size}}},
                           {"ComputeInstances", std::move(computes)}});
    }
    devices.push_back({{"UUID", gpu.uuid},
                       {"MigMode", gpu.enabled ? 1 : 0},
                       {"GpuInstances", std::move(instances)}});
  }
  return base::JsonText(Json{{"Version", "v1"}, {"MigState", {{"Devices", std::move(devices)}}}});
}

std::optional<int> SlicesOfComputeProfile(int profile) {
  const auto found = std::ranges::find(kComputeProfiles, profile, &std::pair<int, int>::first);
  if (found == kComputeProfiles.end()) return std::nullopt;
  return found->second;
}

std::optional<int> ComputeProfileOf(int slices) {
  const auto found = std::ranges::find(kComputeProfiles, slices, &std::pair<int, int>::second);
  if (found == kComputeProfiles.end()) return std::nullopt;
  return found->first;
}

}  // namespace penstock::api::compat
