#include "app/penstock/config/check_layouts.h"

#include <nlohmann/json.hpp>

#include "api/compat/nvidia/mig_parted.h"
#include "app/penstock/mig/mig_machine.h"
#include "base/core/printable.h"
#include "base/core/strings.h"
#include "node/partition/desired.h"
#include "node/partition/division.h"
#include "node/partition/plan.h"
#include "node/partition/select.h"

namespace penstock::app {
namespace {

using Json = nlohmann::ordered_json;
using device::Facts;

std::string PartsOf(const api::LayoutRule& rule) {
  if (!rule.partitioned) return "whole";
  std::vector<std::string> parts;
  for (const api::LayoutParts& one : rule.parts)
    parts.push_back(std::to_string(one.count) + " of " + one.profile);
  return parts.empty() ? "no parts" : base::Join(parts, ", ");
}

std::string WhyNot(const Facts& device, const api::LayoutRule& rule,
                   const std::vector<const Facts*>& all, std::vector<std::string>& remarks) {
  const auto desired = node::partition::DesiredOn(device, rule, MigDialect());
  if (!desired.ok()) return desired.error().message();
  for (const std::string& remark : desired->remarks) remarks.push_back(remark);
  const auto none_held = [](const std::string&) { return std::string(); };
  const auto plan = node::partition::MakePlan(node::partition::DivisionOf(device, all, none_held),
                                              desired->division, {});
  return plan.ok() ? "" : plan.error().message();
}

CheckedLayout CheckLayout(const api::Layout& layout, const std::vector<const Facts*>& all) {
  CheckedLayout checked{.name = layout.name};
  std::vector<const Facts*> whole;
  for (const Facts* device : all)
    if (device->parent.empty()) whole.push_back(device);
  const auto selection = node::partition::SelectDevices(layout, whole);
  if (!selection.ok()) {
    checked.problem = selection.error().message();
    return checked;
  }
  checked.remarks = selection->remarks;
  for (const auto& [device, rule] : selection->devices)
    if (rule != nullptr)
      checked.devices.push_back({.number = device::NumberOf(*device),
                                 .parts = PartsOf(*rule),
                                 .problem = WhyNot(*device, *rule, all, checked.remarks)});
  return checked;
}

std::string Lines(const std::string& problem) {
  std::string text;
  for (const std::string& line : base::Split(problem, '\n'))
    text += "    " + base::Printable(line) + "\n";
  return text;
}

}  // namespace

base::Result<api::Layouts> ReadLayouts(std::string_view text, std::string_view file) {
  return api::compat::TranslateMigParted(text, file, MigDialect().part_terms()->read_profile);
}

std::vector<CheckedLayout> CheckLayouts(const api::Layouts& layouts,
                                        const node::inventory::Snapshot& machine) {
  std::vector<const Facts*> all;
  for (const node::inventory::Entry& entry : machine.devices)
    if (entry.facts->vendor == MigDialect().vendor()) all.push_back(entry.facts.get());
  std::vector<CheckedLayout> checked;
  for (const api::Layout& layout : layouts.layouts) checked.push_back(CheckLayout(layout, all));
  return checked;
}

std::string ShowLayouts(const std::vector<CheckedLayout>& layouts) {
  std::string text;
  for (const CheckedLayout& layout : layouts) {
    const std::string head = "  layout " + base::Printable(layout.name) + ": ";
    if (!layout.problem.empty()) text += head + "impossible\n" + Lines(layout.problem);
    // Devices in the same case are named together.
    std::vector<bool> shown(layout.devices.size());
    for (std::size_t i = 0; i < layout.devices.size(); ++i) {
      if (shown[i]) continue;
      const CheckedLayout::Device& first = layout.devices[i];
      std::vector<std::string> numbers;
      for (std::size_t j = i; j < layout.devices.size(); ++j) {
        const CheckedLayout::Device& other = layout.devices[j];
        if (other.parts != first.parts || other.problem != first.problem) continue;
        shown[j] = true;
        numbers.push_back(other.number);
      }
      text += head + "GPU " + base::Join(numbers, ", ") + ": " + first.parts +
              (first.problem.empty() ? "\n" : ": impossible\n" + Lines(first.problem));
    }
    for (const std::string& remark : layout.remarks)
      text += "  remark: " + base::Printable(remark) + "\n";
  }
  return text;
}

Json JsonOf(const std::vector<CheckedLayout>& layouts) {
  Json list = Json::array();
  for (const CheckedLayout& layout : layouts) {
    Json devices = Json::array();
    bool possible = layout.problem.empty();
    for (const CheckedLayout::Device& device : layout.devices) {
      possible = possible && device.problem.empty();
      devices.push_back({{"number", device.number},
                         {"parts", device.parts},
                         {"possible", device.problem.empty()},
                         {"problem", device.problem}});
    }
    list.push_back({{"name", layout.name},
                    {"possible", possible},
                    {"problem", layout.problem},
                    {"devices", std::move(devices)},
                    {"remarks", layout.remarks}});
  }
  return list;
}

}  // namespace penstock::app
