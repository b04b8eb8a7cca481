// Strategy by strategy; what MPS and its like need comes with every one.
#include "door/container_answer.h"

#include <algorithm>
#include <utility>

#include "base/core/strings.h"

namespace penstock::door {
namespace {

using api::DeviceList;
using device::Dialect;
using device::ListForms;
using edge::kubelet::ContainerEdits;
using node::allocate::VendorDevices;

constexpr const char* kNothing = "/dev/null";

/// "imex=0" → {"imex", "0"}; "gds" → {"gds", "all"}.
std::pair<std::string, std::string> SplitClass(const std::string& text) {
  const auto equals = text.find('=');
  return {text.substr(0, equals), equals == std::string::npos ? "all" : text.substr(equals + 1)};
}

std::string Name(const FurtherDevice& device) { return device.kind + "=" + device.name; }

/// Names of devices as the older ways say them.
std::vector<std::string> NamesOf(const VendorDevices& devices, node::allocate::Consumer consumer) {
  std::vector<std::string> names;
  for (const device::Facts* facts : devices.devices)
    names.push_back(consumer == node::allocate::Consumer::kContainerByIndex ? std::to_string(facts->index) : facts->id);
  return names;
}

class Answer {
 public:
  Answer(device::Edits edits, const ContainerSay& say) : say_(say) {
    answer_.environment = std::move(edits.environment);
    for (auto& mount : edits.mounts) answer_.mounts.push_back({mount.container_path, mount.host_path, mount.read_only});
    if (!say.listing.files) return;
    for (auto& file : edits.files) answer_.files.push_back({file.container_path, say.host_path(file.host_path), file.permissions});
  }

  void Add(const VendorDevices& devices) {
    const ListForms forms = devices.dialect->ContainerListForms();
    const auto further = FurtherDevices(say_.config.device_classes, *devices.dialect, say_.written);
    if (say_.listing.cdi()) NameByCdi(devices, further);
    if (say_.listing.alone()) {
      if (!forms.variable.empty()) answer_.environment[forms.variable] = forms.nothing;
      return;
    }
    if (say_.listing.Has(DeviceList::kVolumeMounts) && !forms.folder.empty()) {
      answer_.environment[forms.variable] = forms.folder;
      for (const std::string& name : NamesOf(devices, say_.consumer)) Mount(forms.folder + "/" + name);
    }
    for (const auto& [mode, form] : forms.classes) AddClass(forms, mode, form, further);
  }

  ContainerEdits Take(const std::string& vendor) {
    if (say_.listing.Has(DeviceList::kCdiAnnotations))
      answer_.annotations[say_.config.cdi_annotation_prefix + vendor + "-device-plugin_" + say_.unique] = base::Join(cdi_, ",");
    if (say_.listing.Has(DeviceList::kCdiCri)) answer_.cdi_devices = std::move(cdi_);
    return std::move(answer_);
  }

 private:
  void NameByCdi(const VendorDevices& devices, const std::vector<FurtherDevice>& further) {
    const std::string kind = node::cdi::KubeletKind(devices.dialect->cdi_kind());
    for (const device::Facts* facts : devices.devices) cdi_.push_back(kind + "=" + facts->id);
    for (const FurtherDevice& one : further)
      if (one.named) cdi_.push_back(Name(one));
  }

  /// Where nobody looked whether a device is there, the wrapper that reads this does.
  void AddClass(const ListForms& forms, const std::string& mode, const ListForms::Class& form, const std::vector<FurtherDevice>& further) {
    std::vector<std::string> names;
    for (const FurtherDevice& one : further)
      if (one.mode == mode && (one.named || say_.written == nullptr || !form.value.empty())) names.push_back(one.name);
    if (names.empty()) return;
    answer_.environment[form.variable] = form.value.empty() ? base::Join(names, ",") : form.value;
    if (!say_.listing.Has(DeviceList::kVolumeMounts) || form.folder.empty()) return;
    for (const std::string& name : names) Mount(forms.folder + "/" + form.folder + "/" + name);
  }

  void Mount(std::string container_path) { answer_.mounts.push_back({std::move(container_path), kNothing, false}); }

  const ContainerSay& say_;
  ContainerEdits answer_;
  std::vector<std::string> cdi_;
};

}  // namespace

std::vector<FurtherDevice> FurtherDevices(const std::vector<std::string>& classes, const Dialect& dialect,
                                          const node::cdi::Written* written) {
  std::vector<FurtherDevice> devices;
  if (classes.empty()) return devices;
  const auto known = dialect.CdiClasses();
  for (const std::string& text : classes) {
    const auto [mode, name] = SplitClass(text);
    const auto one =
        std::find_if(known.begin(), known.end(), [&, mode = mode](const device::CdiClass& candidate) { return candidate.mode == mode; });
    if (one == known.end()) continue;
    FurtherDevice device{mode, name, false, node::cdi::KubeletKind(one->kind)};
    device.named = written != nullptr && written->others.contains(Name(device));
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<std::string> MissingClasses(const std::vector<std::string>& classes, const std::vector<const Dialect*>& dialects,
                                        const node::cdi::Written* written) {
  std::vector<std::string> missing;
  for (const std::string& text : classes) {
    const bool there = std::any_of(dialects.begin(), dialects.end(), [&](const Dialect* dialect) {
      const auto devices = FurtherDevices({text}, *dialect, written);
      return !devices.empty() && devices.front().named;
    });
    if (!there) missing.push_back(text);
  }
  return missing;
}

ContainerEdits AnswerFor(device::Edits edits, const std::vector<VendorDevices>& devices, const ContainerSay& say) {
  Answer answer(std::move(edits), say);
  for (const VendorDevices& one : devices) answer.Add(one);
  return answer.Take(devices.empty() ? "" : std::string(devices.front().dialect->vendor()));
}

}  // namespace penstock::door
