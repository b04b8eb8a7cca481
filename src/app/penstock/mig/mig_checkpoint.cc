#include "app/penstock/mig/mig_checkpoint.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/core/strings.h"

namespace penstock::app {
namespace {

using api::compat::MigCheckpoint;
using device::Facts;
using device::PartProfile;

constexpr char kCheckpointLayout[] = "checkpoint";

const PartProfile* FindProfile(const Facts& gpu, const std::string& name) {
  const auto found = std::ranges::find(gpu.profiles, name, &PartProfile::name);
  return found == gpu.profiles.end() ? nullptr : &*found;
}

const device::Mode* MigModeOf(const Facts& gpu) {
  const auto found =
      std::ranges::find(gpu.modes, MigDialect().part_terms()->mode, &device::Mode::name);
  return found == gpu.modes.end() ? nullptr : &*found;
}

/// The number of a GPU or compute instance: 3 and 0 of "3/0".
unsigned long long NumberIn(const Facts& part, std::size_t which) {
  const auto numbers = base::Split(part.part, '/');
  return which < numbers.size() ? base::ParseUint(numbers[which]).value_or(0) : 0;
}

bool HasComputeInstance(const Facts& part) { return part.part.find('/') != std::string::npos; }

/// Instances in the order in which mig-parted lists them, because it compares the files so: by the
/// number of their profile, then by their own.
class Recorder {
 public:
  Recorder(const MigMachine& machine, const Facts& gpu) : machine_(machine), gpu_(gpu) {}

  Result<std::vector<MigCheckpoint::GpuInstance>> Run() const {
    std::map<std::pair<int, unsigned long long>, MigCheckpoint::GpuInstance> instances;
    for (const Facts& part : machine_.devices) {
      if (part.parent != gpu_.id) continue;
      ASSIGN(MigCheckpoint::GpuInstance instance, InstanceOf(part));
      instances[{instance.profile, NumberIn(part, 0)}] = std::move(instance);
    }
    std::vector<MigCheckpoint::GpuInstance> ordered;
    for (auto& [order, instance] : instances) ordered.push_back(std::move(instance));
    return ordered;
  }

 private:
  Error Unknown(const Facts& part, const std::string& what) const {
    return {Code::kUnavailable, Named(gpu_) + ": the driver does not report " + what + " of " +
                                    Printable(part.id) + "; root may see more"};
  }

  Result<MigCheckpoint::GpuInstance> InstanceOf(const Facts& part) const {
    const PartProfile* profile = FindProfile(gpu_, part.profile);
    if (profile == nullptr || profile->kind < 0) return Unknown(part, "the profile");
    if (!part.placement) return Unknown(part, "the placement");
    MigCheckpoint::GpuInstance instance{
        .profile = profile->kind, .start = part.placement->start, .size = part.placement->size};
    std::map<std::pair<int, unsigned long long>, MigCheckpoint::ComputeInstance> computes;
    const auto add = [&](const Facts& compute, const PartProfile* of) -> base::Status {
      const auto kind = of == nullptr ? std::nullopt : api::compat::ComputeProfileOf(of->slices);
      if (!kind) return Unknown(compute, "the profile");
      MigCheckpoint::ComputeInstance& one = computes[{*kind, NumberIn(compute, 1)}];
      one.profile = *kind;
      if (compute.placement && of != profile)  // one that fills its GPU instance needs none
        one.placement = MigCheckpoint::Placement{compute.placement->start, compute.placement->size};
      return {};
    };
    if (HasComputeInstance(part)) TRY(add(part, profile));
    for (const Facts& within : machine_.devices)
      if (within.parent == part.id) TRY(add(within, FindProfile(gpu_, within.profile)));
    for (const auto& [order, one] : computes) instance.compute_instances.push_back(one);
    return instance;
  }

  const MigMachine& machine_;
  const Facts& gpu_;
};

/// Adds what one GPU shall have to its rule; returns what is wrong.
class Translator {
 public:
  Translator(const Facts& gpu, api::LayoutRule& rule) : gpu_(gpu), rule_(rule) {}

  std::vector<std::string> Run(const std::vector<MigCheckpoint::GpuInstance>& instances) {
    for (const MigCheckpoint::GpuInstance& instance : instances) Add(instance);
    return std::move(problems_);
  }

 private:
  void Problem(const std::string& text) { problems_.push_back(Named(gpu_) + ": " + text); }

  void Add(const MigCheckpoint::GpuInstance& instance) {
    const auto profile = std::ranges::find_if(gpu_.profiles, [&](const PartProfile& one) {
      return one.within.empty() && one.kind == instance.profile;
    });
    if (profile == gpu_.profiles.end())
      return Problem("it has no profile with the number " + std::to_string(instance.profile));
    const api::LayoutPlace place{instance.start, instance.size};
    if (instance.compute_instances.empty()) {
      rule_.parts.push_back({profile->name, 1, place, {}, true});
      return;
    }
    std::map<std::string, int> counts;  // of those anywhere
    std::vector<api::LayoutParts> placed;
    for (const MigCheckpoint::ComputeInstance& compute : instance.compute_instances) {
      const std::string name = NameOf(compute, *profile);
      if (name.empty())
        return Problem(profile->name + " cannot have compute instances with the profile " +
                       std::to_string(compute.profile) + " and engines " +
                       std::to_string(compute.engines));
      if (compute.placement && name != profile->name)
        placed.push_back(
            {name, 1, api::LayoutPlace{compute.placement->start, compute.placement->size}, place});
      else
        ++counts[name];
    }
    rule_.parts.insert(rule_.parts.end(), placed.begin(), placed.end());
    if (counts.contains(profile->name) && instance.compute_instances.size() > 1)
      return Problem("a compute instance that fills its " + profile->name + " is beside another");
    for (const auto& [name, count] : counts)
      rule_.parts.push_back(name == profile->name
                                ? api::LayoutParts{name, 1, place, {}, false}
                                : api::LayoutParts{name, count, {}, place, false});
  }

  /// The profile of the part that such a compute instance is: of the GPU instance, if it fills
  /// that.
  std::string NameOf(const MigCheckpoint::ComputeInstance& compute,
                     const PartProfile& outer) const {
    const auto slices = api::compat::SlicesOfComputeProfile(compute.profile);
    if (!slices || compute.engines != 0) return "";
    if (*slices == outer.slices) return outer.name;
    for (const PartProfile& one : gpu_.profiles)
      if (one.within == outer.name && one.slices == *slices) return one.name;
    return "";
  }

  const Facts& gpu_;
  api::LayoutRule& rule_;
  std::vector<std::string> problems_;
};

}  // namespace

Result<MigCheckpoint> CheckpointOf(const MigMachine& machine) {
  if (!machine.remarks.empty()) return Error(Code::kUnavailable, base::Join(machine.remarks, "\n"));
  MigCheckpoint checkpoint;
  for (const Facts* gpu : machine.gpus()) {
    const device::Mode* mode = MigModeOf(*gpu);
    if (mode == nullptr) continue;
    MigCheckpoint::Gpu recorded{.uuid = gpu->id,
                                .enabled = mode->current == MigDialect().part_terms()->on};
    if (recorded.enabled) { ASSIGN(recorded.instances, Recorder(machine, *gpu).Run()); }
    checkpoint.gpus.push_back(std::move(recorded));
  }
  return checkpoint;
}

Result<api::Layout> LayoutOf(const MigCheckpoint& checkpoint, const MigMachine& machine,
                             bool mode_only) {
  api::Layout layout{.name = kCheckpointLayout};
  std::vector<std::string> problems;
  const auto gpus = machine.gpus();
  for (const MigCheckpoint::Gpu& recorded : checkpoint.gpus) {
    const auto gpu =
        std::ranges::find(gpus, recorded.uuid, [](const Facts* one) { return one->id; });
    if (gpu == gpus.end()) {
      problems.push_back("GPU " + Printable(recorded.uuid) + " is not on this machine");
      continue;
    }
    api::LayoutRule rule{.ids = {recorded.uuid}, .partitioned = recorded.enabled};
    if (!mode_only && !recorded.instances.empty()) {
      if ((*gpu)->profiles.empty())
        return Error(Code::kFailedPrecondition,
                     Named(**gpu) +
                         ": the driver lists no profiles yet: restore the mode first, "
                         "with --mode-only");
      const auto wrong = Translator(**gpu, rule).Run(recorded.instances);
      problems.insert(problems.end(), wrong.begin(), wrong.end());
    }
    layout.rules.push_back(std::move(rule));
  }
  if (!problems.empty()) return Error(Code::kInvalidArgument, base::Join(problems, "\n"));
  return layout;
}

}  // namespace penstock::app
