#include "node/partition/select.h"

#include <algorithm>

#include "base/core/strings.h"

namespace penstock::node::partition {
namespace {

using api::LayoutRule;
using api::PciModel;
using device::Facts;

bool IsOfModel(const PciModel& wanted, const std::optional<PciModel>& model) {
  if (!model || model->vendor != wanted.vendor || model->device != wanted.device) return false;
  return !wanted.subsystem || model->subsystem == wanted.subsystem;
}

bool Filters(const LayoutRule& rule, const Facts& device) {
  const auto model = ModelOf(device);
  return rule.models.empty() || std::ranges::any_of(rule.models, [&](const PciModel& wanted) {
           return IsOfModel(wanted, model);
         });
}

std::string IndicesOf(std::span<const Facts* const> devices) {
  std::vector<std::string> indices;
  for (const Facts* device : devices) indices.push_back(std::to_string(device->index));
  return base::Join(indices, ", ");
}

class Selector {
 public:
  Selector(const api::Layout& layout, std::span<const Facts* const> devices)
      : layout_(layout), devices_(devices) {
    for (const Facts* device : devices) selection_.devices.push_back({device, nullptr});
  }

  Result<Selection> Run() {
    const auto count = static_cast<int>(devices_.size());
    if (layout_.total > 0 && layout_.total != count)
      return Error(Code::kInvalidArgument, "layout " + layout_.name + " is for " +
                                               std::to_string(layout_.total) + " devices (" +
                                               layout_.total_by + "), and this machine has " +
                                               std::to_string(count) + ": correct the numbers");
    for (std::size_t i = 0; i < layout_.rules.size(); ++i) Apply(i);
    std::vector<std::string> without;
    for (const SelectedDevice& one : selection_.devices)
      if (one.rule == nullptr) without.push_back(std::to_string(one.device->index));
    if (problems_.empty() && without.size() == devices_.size())
      problems_.push_back("layout " + layout_.name + ": no rule selects a device of this machine" +
                          (devices_.empty() ? ", which has none" : ""));
    if (!problems_.empty()) return Error(Code::kInvalidArgument, base::Join(problems_, "\n"));
    if (!without.empty())
      selection_.remarks.push_back(
          "layout " + layout_.name + ": no rule is for device " + base::Join(without, ", ") +
          (without.size() == 1 ? ", which stays" : ", which stay") + " as divided now");
    return std::move(selection_);
  }

 private:
  void Apply(std::size_t index) {
    const LayoutRule& rule = layout_.rules[index];
    const std::string where = base::Item("layout " + layout_.name + ", rules", index);
    std::vector<const Facts*> of_model;
    for (const Facts* device : devices_)
      if (Filters(rule, *device)) of_model.push_back(device);
    if (of_model.empty() && !rule.models.empty()) {
      selection_.remarks.push_back(where + ": there is no device of its models on this machine");
      return;
    }
    if (!rule.all_devices && rule.devices.empty() && rule.ids.empty())
      problems_.push_back(where + ": selects no device");
    for (const int wanted : rule.devices) {
      if (std::ranges::find(of_model, wanted, &Facts::index) != of_model.end()) continue;
      const bool exists = std::ranges::find(devices_, wanted, &Facts::index) != devices_.end();
      problems_.push_back(where + ": device " + std::to_string(wanted) +
                          (exists ? " is of another model than the rule is for"
                                  : " does not exist; the devices are " + IndicesOf(devices_)));
    }
    for (const std::string& wanted : rule.ids)
      if (std::ranges::find(of_model, wanted, &Facts::id) == of_model.end())
        problems_.push_back(where + ": device " + wanted + " is not on this machine");
    for (SelectedDevice& one : selection_.devices) {
      const bool selected =
          std::ranges::find(of_model, one.device) != of_model.end() &&
          (rule.all_devices ||
           std::ranges::find(rule.devices, one.device->index) != rule.devices.end() ||
           std::ranges::find(rule.ids, one.device->id) != rule.ids.end());
      if (selected) Take(one, rule, where);
    }
  }

  void Take(SelectedDevice& one, const LayoutRule& rule, const std::string& where) {
    if (one.rule != nullptr && (one.rule->partitioned != rule.partitioned ||
                                one.rule->parts != rule.parts || one.rule->modes != rule.modes)) {
      const auto first = static_cast<std::size_t>(one.rule - layout_.rules.data());
      problems_.push_back(where + ": divides device " + std::to_string(one.device->index) +
                          " otherwise than " + base::Item("rules", first));
      return;
    }
    one.rule = &rule;
  }

  const api::Layout& layout_;
  const std::span<const Facts* const> devices_;
  Selection selection_;
  std::vector<std::string> problems_;
};

}  // namespace

Result<Selection> SelectDevices(const api::Layout& layout, std::span<const Facts* const> devices) {
  return Selector(layout, devices).Run();
}

std::optional<PciModel> ModelOf(const Facts& device) {
  const auto number = [&](const char* name) -> std::optional<std::uint16_t> {
    const auto found = device.details.find(name);
    if (found == device.details.end() || !found->second.starts_with("0x")) return std::nullopt;
    const auto value = base::ParseUint(std::string_view(found->second).substr(2), 16);
    if (!value || *value > 0xffff) return std::nullopt;
    return static_cast<std::uint16_t>(*value);
  };
  const auto vendor = number("pci.vendor-id"), id = number("pci.device-id");
  if (!vendor || !id) return std::nullopt;
  PciModel model{.vendor = *vendor, .device = *id};
  const auto of_vendor = number("pci.subsystem-vendor-id"), of = number("pci.subsystem-device-id");
  if (of_vendor && of) model.subsystem = {.vendor = *of_vendor, .device = *of};
  return model;
}

}  // namespace penstock::node::partition
