#include "node/partition/generate.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/core/strings.h"
#include "node/partition/select.h"
#include "node/partition/space.h"

namespace penstock::node::partition {
namespace {

using api::Layout;
using api::LayoutRule;
using api::PciModel;
using device::Facts;
using device::PartProfile;

/// Devices without PCI ids are of one model, which no filter can name.
using ModelKey = std::optional<PciModel>;

/// Without the subsystem, as in the filters that mig-parted generates.
ModelKey KeyOf(const Facts& device) {
  ModelKey model = ModelOf(device);
  if (model) model->subsystem.reset();
  return model;
}

std::string LayoutName(std::string_view profile) {
  std::string name = "all-" + std::string(profile);
  std::ranges::replace(name, '+', '.');
  return name;
}

/// How many parts of a profile there can be at once.
int MostOf(const PartProfile& profile) {
  if (profile.most > 0) return profile.most;
  return std::max<int>(1, static_cast<int>(profile.placements.size()));
}

/// Models with the profiles of their first device.
using Models = std::map<ModelKey, std::vector<const PartProfile*>>;

Models ModelsOf(std::span<const Facts* const> devices) {
  Models models;
  for (const Facts* device : devices) {
    auto& profiles = models[KeyOf(*device)];
    if (profiles.empty()) profiles = Space(device->profiles).profiles();
  }
  return models;
}

LayoutRule RuleFor(std::vector<PciModel> models, std::vector<api::LayoutParts> parts) {
  std::ranges::sort(parts, {}, &api::LayoutParts::profile);
  return {.models = std::move(models),
          .all_devices = true,
          .partitioned = true,
          .parts = std::move(parts)};
}

/// The models of devices that can be divided, as a filter; empty where all can.
std::vector<PciModel> DivisibleModels(std::span<const Facts* const> devices) {
  std::set<PciModel> divisible;
  bool all = true;
  for (const Facts* device : devices) {
    const bool can = !device->profiles.empty() || !device->modes.empty();
    all = all && can;
    if (const ModelKey model = KeyOf(*device); can && model) divisible.insert(*model);
  }
  if (all) divisible.clear();
  return {divisible.begin(), divisible.end()};
}

/// How many parts of each profile a device of each model can have at once.
using MostOfModels = std::map<ModelKey, std::map<std::string, int>>;

/// A layout of one profile, with a rule for each number of it that models can have.
Layout OfProfile(const std::string& name, const MostOfModels& models) {
  const bool filtered = models.size() > 1;
  std::map<int, std::vector<PciModel>> by_count;
  for (const auto& [model, most] : models) {
    const auto found = most.find(name);
    if (found == most.end() || (filtered && !model)) continue;
    auto& of_count = by_count[found->second];
    if (filtered) of_count.push_back(*model);
  }
  Layout layout{.name = LayoutName(name)};
  for (const auto& [count, of_count] : by_count)
    layout.rules.push_back(RuleFor(of_count, {{name, count}}));
  return layout;
}

void AddOfEachProfile(const MostOfModels& models, std::vector<Layout>& layouts) {
  std::set<std::string> names;
  for (const auto& [model, most] : models)
    for (const auto& [name, count] : most) names.insert(name);
  for (const std::string& name : names)
    if (Layout layout = OfProfile(name, models); !layout.rules.empty())
      layouts.push_back(std::move(layout));
}

/// Of the profiles that are created within others.
MostOfModels MostWithin(std::span<const Facts* const> devices) {
  MostOfModels models;
  for (const Facts* device : devices) {
    const auto [model, is_new] = models.try_emplace(KeyOf(*device));
    for (const PartProfile& profile : device->profiles) {
      const auto outer = std::ranges::find(device->profiles, profile.within, &PartProfile::name);
      if (is_new && !profile.within.empty() && outer != device->profiles.end())
        model->second[profile.name] = MostOf(*outer) * MostOf(profile);
    }
  }
  return models;
}

/// How many parts of how many slices a balanced layout has, by all slices of the device
/// (mig-parted, pkg/mig/builder/balanced.go).
const std::map<int, std::map<int, int>>& BalancedMixes() {
  static const std::map<int, std::map<int, int>> kMixes = {{7, {{1, 2}, {2, 1}, {3, 1}}},
                                                           {4, {{1, 2}, {2, 1}}}};
  return kMixes;
}

/// Of the profiles with so many slices the plainest: the one that there can be most of, which has
/// the least memory and no engines of its own, then the one with the shortest name.
const PartProfile* Plainest(const std::vector<const PartProfile*>& profiles, int slices) {
  const PartProfile* best = nullptr;
  const auto order = [](const PartProfile& profile) {
    return std::tuple(-MostOf(profile), profile.name.size());
  };
  for (const PartProfile* profile : profiles)
    if (profile->slices == slices && (best == nullptr || order(*profile) < order(*best)))
      best = profile;
  return best;
}

std::vector<api::LayoutParts> BalancedMix(const std::vector<const PartProfile*>& profiles) {
  int all = 0;
  for (const PartProfile* profile : profiles) all = std::max(all, profile->slices);
  const auto mix = BalancedMixes().find(all);
  if (mix == BalancedMixes().end()) return {};
  std::vector<api::LayoutParts> parts;
  for (const auto& [slices, count] : mix->second) {
    const PartProfile* profile = Plainest(profiles, slices);
    if (profile == nullptr) return {};
    parts.push_back({profile->name, count});
  }
  return parts;
}

}  // namespace

GeneratedLayouts GenerateLayouts(std::span<const Facts* const> devices) {
  GeneratedLayouts generated;
  auto& layouts = generated.layouts.layouts;
  const Models models = ModelsOf(devices);
  const bool filtered = models.size() > 1;
  layouts.push_back({"all-disabled", {{.all_devices = true}}});
  layouts.push_back({"all-enabled", {RuleFor(DivisibleModels(devices), {})}});
  MostOfModels most;
  for (const auto& [model, profiles] : models) {
    auto& of_model = most[model];
    for (const PartProfile* profile : profiles) of_model[profile->name] = MostOf(*profile);
  }
  AddOfEachProfile(most, layouts);

  Layout balanced{.name = "all-balanced"};
  for (const auto& [model, profiles] : models) {
    if (profiles.empty() || (filtered && !model)) continue;
    auto parts = BalancedMix(profiles);
    if (parts.empty()) {
      const auto largest = std::ranges::max_element(profiles, {}, &PartProfile::slices);
      generated.remarks.push_back("all-balanced has no rule for devices whose largest profile is " +
                                  (*largest)->name);
      continue;
    }
    std::vector<PciModel> filter;
    if (filtered) filter.push_back(*model);
    balanced.rules.push_back(RuleFor(std::move(filter), std::move(parts)));
  }
  if (!balanced.rules.empty()) layouts.push_back(std::move(balanced));
  return generated;
}

std::vector<api::LayoutParts> PartsOf(const Division& division) {
  std::map<std::string, int> counts;
  for (const ExistingPart& part : division.parts)
    if (!part.outer) ++counts[part.profile];
  std::vector<api::LayoutParts> parts;
  for (const auto& [profile, count] : counts) parts.push_back({profile, count});
  return parts;
}

Layout ExportLayout(const std::string& name, std::span<const DividedDevice> devices) {
  Layout layout{.name = name};
  for (const DividedDevice& one : devices) {
    LayoutRule rule{.partitioned = one.partitioned};
    if (one.partitioned) rule.parts = PartsOf(*one.division);
    auto same = std::ranges::find_if(layout.rules, [&](const LayoutRule& other) {
      return other.partitioned == rule.partitioned && other.parts == rule.parts;
    });
    if (same == layout.rules.end()) same = layout.rules.insert(same, std::move(rule));
    same->devices.push_back(one.device->index);
  }
  for (LayoutRule& rule : layout.rules) {
    std::ranges::sort(rule.devices);
    if (rule.devices.size() != devices.size()) continue;
    rule.devices.clear();
    rule.all_devices = true;
  }
  return layout;
}

api::Layouts ModeLayouts(std::span<const Facts* const> devices, const std::string& mode) {
  std::map<std::string, std::size_t> counts;
  std::size_t having = 0;
  for (const Facts* device : devices) {
    const auto found = std::ranges::find(device->modes, mode, &device::Mode::name);
    if (found == device->modes.end()) continue;
    ++having;
    for (const std::string& value : found->available) ++counts[value];
  }
  api::Layouts layouts;
  for (const auto& [value, count] : counts)
    if (count == having)
      layouts.layouts.push_back({.name = base::ToLower(value),
                                 .rules = {{.all_devices = true, .modes = {{mode, value}}}}});
  return layouts;
}

api::Layouts LayoutsFor(std::span<const Facts* const> devices, const device::PartTerms& terms) {
  if (terms.by_mode) return ModeLayouts(devices, terms.mode);
  std::vector<const Facts*> divisible;
  for (const Facts* device : devices)
    if (!device->profiles.empty()) divisible.push_back(device);
  api::Layouts layouts = GenerateLayouts(divisible).layouts;
  if (terms.program.empty()) AddOfEachProfile(MostWithin(divisible), layouts.layouts);
  return layouts;
}

}  // namespace penstock::node::partition
