// What the verbs of `penstock mig` print.
#include <algorithm>
#include <iostream>
#include <map>

#include <nlohmann/json.hpp>

#include "api/compat/nvidia/mig_parted.h"
#include "app/penstock/common/table.h"
#include "app/penstock/mig/mig_machine.h"
#include "base/core/json_text.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "node/partition/generate.h"
#include "node/partition/plan.h"
#include "node/partition/select.h"
#include "node/partition/space.h"

namespace penstock::app {
namespace {

using device::Facts;
using device::PartProfile;
using Json = nlohmann::ordered_json;
using node::partition::Division;
using node::partition::ExistingPart;
using node::partition::PartitionPlan;
using node::partition::PlanStep;

std::string SlicesOf(const std::optional<device::Placement>& at) {
  if (!at) return "-";
  const std::int64_t last = std::int64_t{at->start} + at->size - 1;
  return std::to_string(at->start) + (at->size > 1 ? "-" + std::to_string(last) : "");
}

Json JsonOf(const std::optional<device::Placement>& at) {
  if (!at) return nullptr;
  return {{"start", at->start}, {"size", at->size}};
}

Json JsonOf(const PartProfile& profile) {
  Json placements = Json::array();
  for (const device::Placement& at : profile.placements) placements.push_back(JsonOf(at));
  Json json = {{"name", profile.name}};
  if (!profile.within.empty()) json["within"] = profile.within;
  json.update({{"slices", profile.slices},
               {"most", profile.most},
               {"memoryBytes", profile.capacity.memory.count},
               {"placements", placements},
               {"engines", Json(profile.engines)}});
  return json;
}

Json JsonOf(const Facts& gpu, const Division& division) {
  Json profiles = Json::array(), parts = Json::array();
  for (const PartProfile& profile : gpu.profiles) profiles.push_back(JsonOf(profile));
  for (const ExistingPart& part : division.parts)
    parts.push_back({{"id", part.id},
                     {"profile", part.profile},
                     {"within", part.parent},
                     {"placement", JsonOf(part.placement)},
                     {"outer", part.outer},
                     {"holder", part.holder}});
  const device::Mode* mode = division.FindMode(MigDialect().part_terms()->mode);
  return {{"index", gpu.index},
          {"id", gpu.id},
          {"model", gpu.model},
          {"mode", mode == nullptr ? "" : mode->current},
          {"pendingMode", mode == nullptr ? "" : mode->pending},
          {"holder", division.holder},
          {"parts", parts},
          {"profiles", profiles}};
}

std::string PartsTable(const MigMachine& machine, const Style& style) {
  Table table({"GPU", "MODEL", "MIG", "PART", "PROFILE", "SLICES", "HOLDER"});
  for (const Facts* gpu : machine.gpus()) {
    const Division division = machine.DivisionOf(*gpu);
    const device::Mode* mode = division.FindMode(MigDialect().part_terms()->mode);
    std::string state = mode == nullptr ? "unavailable" : mode->current;
    if (mode != nullptr && mode->pending != mode->current)
      state += " (" + mode->pending + " pending)";
    const std::vector<Cell> first = {std::to_string(gpu->index), gpu->model, state};
    if (division.parts.empty()) {
      auto row = first;
      row.insert(row.end(), {"-", "-", "-", division.holder.empty() ? "-" : division.holder});
      table.Add(std::move(row));
    }
    for (const ExistingPart& part : division.parts) {
      auto row = first;
      row.insert(row.end(), {part.id, part.profile + (part.outer ? " (outer)" : ""),
                             SlicesOf(part.placement), part.holder.empty() ? "-" : part.holder});
      table.Add(std::move(row));
    }
  }
  return table.Render(style);
}

/// GPUs with the same profiles share their rows.
std::string ProfilesTable(const MigMachine& machine, const Style& style) {
  std::vector<std::pair<const std::vector<PartProfile>*, std::vector<std::string>>> groups;
  for (const Facts* gpu : machine.gpus()) {
    if (gpu->profiles.empty()) continue;
    auto same = std::ranges::find_if(
        groups, [&](const auto& group) { return *group.first == gpu->profiles; });
    if (same == groups.end()) same = groups.insert(same, {&gpu->profiles, {}});
    same->second.push_back(std::to_string(gpu->index));
  }
  Table table({"GPU", "PROFILE", "MOST", "COMPUTE", "MEMORY", "SLICES"});
  for (const auto& [profiles, gpus] : groups)
    for (const PartProfile& profile : *profiles) {
      std::vector<std::string> places;
      for (const device::Placement& at : profile.placements) places.push_back(SlicesOf(at));
      const std::uint64_t memory = profile.capacity.memory.count;
      table.Add({base::Join(gpus, ","), profile.name,
                 profile.most > 0 ? std::to_string(profile.most) : "-",
                 profile.slices > 0 ? std::to_string(profile.slices) : "-",
                 memory > 0 ? base::FormatBytes(profile.capacity.memory) : "-",
                 places.empty() ? "-" : base::Join(places, " ")});
    }
  return table.empty() ? "" : table.Render(style);
}

/// The driver lists the profiles of a GPU.
bool HasProfiles(const Facts& gpu) { return !gpu.profiles.empty(); }

constexpr char kNoProfiles[] =
    "no GPU of this machine can be divided: the driver lists no profiles of parts. GPUs without "
    "MIG "
    "have none, and some drivers list them only in MIG mode";

struct PlanOfGpu {
  const Facts* gpu = nullptr;
  std::vector<std::string> remarks;
  Result<PartitionPlan> plan = PartitionPlan();
};

Result<std::vector<PlanOfGpu>> PlanAll(const MigMachine& machine, const api::Layout& layout,
                                       std::vector<std::string>& remarks) {
  ASSIGN(const auto selection, node::partition::SelectDevices(layout, machine.gpus()));
  remarks.insert(remarks.end(), selection.remarks.begin(), selection.remarks.end());
  std::vector<PlanOfGpu> plans;
  for (const auto& [gpu, rule] : selection.devices) {
    if (rule == nullptr) continue;
    PlanOfGpu plan{.gpu = gpu};
    auto desired = node::partition::DesiredOn(*gpu, *rule, MigDialect());
    if (const std::string why = machine.WhyNotKnown(*gpu); !why.empty()) {
      plan.plan = Error(Code::kUnavailable, why);
    } else if (desired.ok()) {
      plan.remarks = std::move(desired->remarks);
      const Division now = machine.DivisionOf(*gpu);
      if (machine.on_demand.contains(gpu->id)) {
        plan.remarks.push_back(
            "only its MIG mode counts, because parts are created on it on demand");
        desired->division.parts.clear();
        if (WhyNotAsDesired(now, desired->division, true).empty())
          desired->division = node::partition::AsItIs(now, {});
      }
      plan.plan = node::partition::MakePlan(now, desired->division, {});
    } else {
      plan.plan = desired.error();
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

Json JsonOf(const PlanStep& step) {
  Json json = {{"action", ToString(step.kind)}};
  if (!step.part.empty()) json["part"] = step.part;
  if (!step.profile.empty()) json["profile"] = step.profile;
  if (step.placement) json["placement"] = JsonOf(step.placement);
  if (step.outer) json["outer"] = true;
  if (!step.within.empty()) json["within"] = step.within;
  if (step.within_created >= 0) json["withinCreated"] = step.within_created;
  if (!step.mode.empty()) json.update({{"mode", step.mode}, {"value", step.value}});
  json["text"] = step.text;
  return json;
}

Json JsonOf(const PlanOfGpu& one) {
  Json json = {{"index", one.gpu->index}, {"id", one.gpu->id}, {"possible", one.plan.ok()}};
  if (!one.plan.ok()) {
    json["problems"] = base::Split(one.plan.error().message(), '\n');
  } else {
    Json steps = Json::array();
    for (const PlanStep& step : one.plan->steps) steps.push_back(JsonOf(step));
    json.update({{"kept", one.plan->kept}, {"steps", steps}});
  }
  json["remarks"] = one.remarks;
  return json;
}

std::string TextOf(const PlanOfGpu& one) {
  std::string text = Named(*one.gpu) + ": ";
  if (!one.plan.ok()) {
    text += "impossible\n";
    for (const std::string& problem : base::Split(one.plan.error().message(), '\n'))
      text += "  " + Printable(problem) + "\n";
    return text;
  }
  const auto& steps = one.plan->steps;
  text += steps.empty() ? "no change"
                        : std::to_string(steps.size()) + (steps.size() == 1 ? " step" : " steps");
  if (!one.plan->kept.empty())
    text += ", " + std::to_string(one.plan->kept.size()) +
            (one.plan->kept.size() == 1 ? " part stays" : " parts stay");
  text += "\n";
  for (std::size_t i = 0; i < steps.size(); ++i)
    text += "  " + std::to_string(i + 1) + ". " + Printable(steps[i].text) + "\n";
  for (const std::string& remark : one.remarks) text += "  Note: " + Printable(remark) + ".\n";
  return text;
}

}  // namespace

Result<Shown> ShowMigList(const MigMachine& machine, bool json, const Style& style) {
  const auto gpus = machine.gpus();
  if (json) {
    Json devices = Json::array();
    for (const Facts* gpu : gpus) devices.push_back(JsonOf(*gpu, machine.DivisionOf(*gpu)));
    return Shown(base::JsonText(Json{{"devices", devices},
                                     {"holdersKnown", machine.holders_known},
                                     {"remarks", machine.remarks}}));
  }
  for (const std::string& remark : machine.remarks) Remark(machine.program, remark);
  if (gpus.empty()) return Shown("This machine has no NVIDIA GPUs.");
  const std::string profiles = ProfilesTable(machine, style);
  if (profiles.empty()) Remark(machine.program, kNoProfiles);
  return Shown(PartsTable(machine, style) + (profiles.empty() ? "" : "\n" + profiles));
}

Result<Shown> ShowMigPlan(const MigMachine& machine, const api::Layout& layout, bool json) {
  std::vector<std::string> remarks = machine.remarks;
  ASSIGN(const auto plans, PlanAll(machine, layout, remarks));
  const bool possible =
      std::ranges::all_of(plans, [](const PlanOfGpu& one) { return one.plan.ok(); });
  const int status = possible ? command::kDone : command::kNo;
  if (json) {
    Json devices = Json::array();
    for (const PlanOfGpu& one : plans) devices.push_back(JsonOf(one));
    return Shown(base::JsonText(Json{{"layout", layout.name},
                                     {"possible", possible},
                                     {"devices", devices},
                                     {"holdersKnown", machine.holders_known},
                                     {"remarks", remarks}}),
                 status);
  }
  for (const std::string& remark : remarks) Remark(machine.program, remark);
  std::string text;
  for (const PlanOfGpu& one : plans) text += TextOf(one);
  return Shown(text, status);
}

Result<Shown> AssertMigLayout(const MigMachine& machine, const api::Layout& layout,
                              bool mode_only) {
  std::vector<std::string> remarks = machine.remarks;
  ASSIGN(const auto differences, WhyNotApplied(machine, layout, mode_only, remarks));
  for (const std::string& remark : remarks) Remark(machine.program, remark);
  for (const std::string& difference : differences) Remark(machine.program, difference);
  if (!differences.empty())
    return Error(Code::kFailedPrecondition, "layout " + layout.name + " is not applied");
  return Shown(mode_only ? "The MIG modes are those of layout " + layout.name + "."
                         : "Layout " + layout.name + " is applied.");
}

Result<Shown> ExportMigLayout(const MigMachine& machine, const std::string& name) {
  for (const std::string& remark : machine.remarks) Remark(machine.program, remark);
  const auto gpus = machine.gpus();
  std::vector<Division> divisions;
  for (const Facts* gpu : gpus) {
    if (const std::string why = machine.WhyNotKnown(*gpu); !why.empty())
      return Error(Code::kUnavailable, Named(*gpu) + ": " + why);
    divisions.push_back(machine.DivisionOf(*gpu));
  }
  std::vector<node::partition::DividedDevice> devices;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const device::Mode* mode = divisions[i].FindMode(MigDialect().part_terms()->mode);
    devices.push_back({gpus[i], &divisions[i],
                       mode != nullptr && mode->current == MigDialect().part_terms()->on});
  }
  if (devices.empty()) return Error(Code::kNotFound, "this machine has no NVIDIA GPUs");
  return Shown(api::compat::WriteMigParted({{node::partition::ExportLayout(name, devices)}}));
}

Result<Shown> GenerateMigLayouts(const MigMachine& machine) {
  for (const std::string& remark : machine.remarks) Remark(machine.program, remark);
  const auto gpus = machine.gpus();
  if (std::ranges::none_of(gpus, [](const Facts* gpu) { return HasProfiles(*gpu); }))
    return Error(Code::kFailedPrecondition, kNoProfiles);
  const auto generated = node::partition::GenerateLayouts(gpus);
  for (const std::string& remark : generated.remarks) Remark(machine.program, remark);
  return Shown(api::compat::WriteMigParted(generated.layouts));
}

}  // namespace penstock::app
