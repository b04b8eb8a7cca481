// Fields and rules: ROCm, device-config-manager, pkg/config_manager/configmanager.go
// (validateProfile) and docs/configuration/configmap.md.
#include "api/compat/amd/dcm_profiles.h"

#include <algorithm>
#include <set>

#include "api/config/service_names.h"
#include "base/core/document.h"
#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::api::compat {
namespace {

using base::MapReader;
using base::Problems;
using base::Value;

/// More than any machine has.
constexpr int kMostGpus = 4096;

/// The kernel's words (Linux, amdgpu_gfx.c). DCM does not know TPX, of MI300A, NPS3 and NPS6.
const std::vector<std::string> kCompute{"SPX", "DPX", "TPX", "QPX", "CPX"};
const std::vector<std::string> kMemory{"NPS1", "NPS2", "NPS3", "NPS4", "NPS6", "NPS8"};

/// One profile.
class ProfileReader {
 public:
  ProfileReader(Problems& problems, WrongProfile& wrong) : problems_(problems), wrong_(wrong) {}

  Layout Read(const std::string& name, const Value& value) {
    Layout layout{.name = name};
    MapReader profile(value, "gpu-config-profiles." + name, problems_);
    const std::set<int> skipped = ReadSkipped(profile);
    std::vector<std::string> numbers;
    int next = 0, total = static_cast<int>(skipped.size());
    if (const Value* list = profile.List("profiles"); list != nullptr && !list->list->empty())
      base::ForEachMap(*list, profile.Path("profiles"), problems_,
                       [&](const Value& one, const std::string& where) {
                         const int count = ReadRule(one, where, skipped, next, layout);
                         numbers.push_back(std::to_string(count));
                         total += count;
                       });
    else if (list != nullptr || !profile.Has("profiles"))
      profile.Problem("profiles",
                      "says nothing; a profile has at least {\"computePartition\": "
                      "\"CPX\", \"memoryPartition\": \"NPS1\", \"numGPUsAssigned\": 8}");
    if (!numbers.empty() && layout.rules.empty())
      profile.Problem("profiles", "assigns no GPU: numGPUsAssigned is 0");
    profile.Finish();
    layout.total = total;
    layout.total_by = "numGPUsAssigned: " + base::Join(numbers, " + ") +
                      ", skippedGPUs.ids: " + std::to_string(skipped.size());
    if (total > kMostGpus)
      problems_.Add(value.mark, profile.Path("profiles") +
                                    ": numGPUsAssigned and skippedGPUs.ids "
                                    "are " +
                                    std::to_string(total) +
                                    " GPUs, and no machine has as many: correct the numbers");
    for (const int id : skipped)
      if (id >= total)
        profile.Problem("skippedGPUs", "ids has " + std::to_string(id) +
                                           ", and the profile is for " + std::to_string(total) +
                                           " GPUs, 0 to " + std::to_string(total - 1));
    return layout;
  }

 private:
  std::set<int> ReadSkipped(MapReader& profile) {
    std::set<int> skipped;
    const Value* map = profile.Map("skippedGPUs");
    if (map == nullptr) return skipped;
    MapReader reader(*map, profile.Path("skippedGPUs"), problems_);
    if (const Value* ids = reader.List("ids"))
      for (std::size_t i = 0; i < ids->list->size(); ++i) {
        const Value& id = (*ids->list)[i];
        const std::string where = base::Item(reader.Path("ids"), i);
        if (id.kind != Value::Kind::kInt || id.integer < 0 || id.integer >= kMostGpus)
          problems_.Add(id.mark, where + ": is no index of a GPU: indices are numbers from 0");
        else if (!skipped.insert(static_cast<int>(id.integer)).second)
          problems_.Add(id.mark, where + ": " + id.text + " is there twice");
      }
    reader.Finish();
    return skipped;
  }

  static std::string ReadWord(MapReader& rule, const char* key,
                              const std::vector<std::string>& words, bool& is_wrong) {
    rule.Require(key);
    const auto word = rule.String(key);
    if (!word) return "";
    if (std::ranges::find(words, *word) == words.end()) {
      is_wrong = true;
      rule.Problem(key,
                   "is \"" + base::Printable(*word) + "\"; it can be " + base::Join(words, ", "));
    }
    return *word;
  }

  /// Adds the rule for the next GPUs that are not skipped, and returns how many these are.
  int ReadRule(const Value& value, const std::string& where, const std::set<int>& skipped,
               int& next, Layout& layout) {
    MapReader reader(value, where, problems_);
    LayoutRule rule;
    rule.modes[kComputeMode] = ReadWord(reader, "computePartition", kCompute, wrong_.compute_mode);
    std::string& memory = rule.modes[kMemoryMode];
    memory = ReadWord(reader, "memoryPartition", kMemory, wrong_.memory_mode);
    const std::string first =
        layout.rules.empty() ? memory : layout.rules.front().modes.at(kMemoryMode);
    if (first != memory && !memory.empty())
      reader.Problem("memoryPartition", "is \"" + memory + "\", and \"" + first +
                                            "\" above: the GPUs of a machine have one memory mode");
    reader.Require("numGPUsAssigned");
    const int count = static_cast<int>(reader.Int("numGPUsAssigned", 0, kMostGpus).value_or(0));
    reader.Finish();
    for (int taken = 0; taken < count && next < 2 * kMostGpus; ++next)
      if (!skipped.contains(next)) {
        rule.devices.push_back(next);
        ++taken;
      }
    if (count > 0) layout.rules.push_back(std::move(rule));
    return count;
  }

  Problems& problems_;
  WrongProfile& wrong_;
};

/// A name that is none has no effect: the profiles beside it are applied.
std::vector<std::string> ReadServices(MapReader& top, Problems& problems) {
  std::vector<std::string> services;
  const Value* map = top.Map("gpuClientSystemdServices");
  if (map == nullptr) return services;
  MapReader reader(*map, top.Path("gpuClientSystemdServices"), problems);
  if (const Value* names = reader.List("names"))
    services = ReadServiceNames(*names, reader.Path("names"), ".service",
                                [&problems](base::Mark mark, const std::string& problem) {
                                  problems.Remark(mark, problem + "; it has no effect");
                                });
  reader.Finish();
  return services;
}

}  // namespace

Result<DcmProfiles> TranslateDcmProfiles(std::string_view text, std::string_view file) {
  ASSIGN(const Value document, base::ParseJson(text, file));
  Problems problems{std::string(file), base::ReadingMode::kLenient};
  MapReader top(document, "", problems);
  DcmProfiles read;
  const Value* profiles = top.Map("gpu-config-profiles");
  if (profiles == nullptr || profiles->map->empty())
    top.Problem(
        "gpu-config-profiles",
        "has no profiles; it is a map of names, as in {\"all-cpx\": {\"profiles\": [...]}}");
  read.services = ReadServices(top, problems);
  top.Finish();
  if (!problems.empty()) return problems.ToError();
  read.remarks = problems.Remarks();
  for (const auto& entry : *profiles->map) {
    Problems own{std::string(file), base::ReadingMode::kLenient};
    WrongProfile wrong;
    Layout layout = ProfileReader(own, wrong).Read(entry.key, entry.value);
    for (std::string& remark : own.Remarks()) read.remarks.push_back(std::move(remark));
    if (own.empty()) {
      read.layouts.layouts.push_back(std::move(layout));
    } else {
      wrong.text = own.ToError().message();
      read.wrong[entry.key] = std::move(wrong);
    }
  }
  return read;
}

}  // namespace penstock::api::compat
