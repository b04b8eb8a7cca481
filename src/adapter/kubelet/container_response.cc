// The edits of a sharing server such as MPS are added under every strategy.
#include "adapter/kubelet/container_response.h"

#include <algorithm>
#include <utility>

#include "api/cdi/spec.h"
#include "base/core/strings.h"

namespace penstock::adapter::kubelet {
namespace {

using api::DeviceList;
using device::Dialect;
using device::ListForms;
using node::allocate::VendorDevices;
using protocol::kubelet::ContainerEdits;

constexpr const char* kNothing = "/dev/null";

/// "imex=0" → {"imex", "0"}; "gds" → {"gds", "all"}.
std::pair<std::string, std::string> SplitClass(const std::string& text) {
  const auto equals = text.find('=');
  return {text.substr(0, equals), equals == std::string::npos ? "all" : text.substr(equals + 1)};
}

std::string Name(const AuxiliaryDevice& device) { return device.kind + "=" + device.name; }

/// Device names for the strategies without CDI: indices for kContainerByIndex, else ids.
std::vector<std::string> NamesOf(const VendorDevices& devices,
                                 node::allocate::ConsumerKind consumer) {
  std::vector<std::string> names;
  for (const device::Facts* facts : devices.devices)
    names.push_back(consumer == node::allocate::ConsumerKind::kContainerByIndex ? NumberOf(*facts)
                                                                                : facts->id);
  return names;
}

class Answer {
 public:
  Answer(device::Edits edits, const InjectionMode& injection) : mode_(injection) {
    answer_.environment = std::move(edits.environment);
    for (auto& mount : edits.mounts)
      answer_.mounts.push_back({mount.container_path, mount.host_path, mount.read_only});
    if (!injection.listing.files) return;
    for (auto& file : edits.files)
      answer_.files.push_back(
          {file.container_path, injection.host_path(file.host_path), file.permissions});
  }

  void Add(const VendorDevices& devices) {
    const ListForms forms = devices.dialect->ContainerListForms();
    const auto auxiliary =
        AuxiliaryDevices(mode_.config.device_classes, *devices.dialect, mode_.written);
    if (mode_.listing.cdi()) NameByCdi(devices, auxiliary);
    if (mode_.listing.alone()) {
      if (!forms.variable.empty()) answer_.environment[forms.variable] = forms.nothing;
      return;
    }
    if (mode_.listing.Has(DeviceList::kVolumeMounts) && !forms.folder.empty()) {
      answer_.environment[forms.variable] = forms.folder;
      for (const std::string& name : NamesOf(devices, mode_.consumer))
        Mount(forms.folder + "/" + name);
    }
    for (const auto& [mode, form] : forms.classes) AddClass(forms, mode, form, auxiliary);
  }

  ContainerEdits Take(const std::string& vendor) {
    if (mode_.listing.Has(DeviceList::kCdiAnnotations))
      answer_.annotations[mode_.config.cdi_annotation_prefix + vendor + "-device-plugin_" +
                          mode_.unique()] = base::Join(cdi_, ",");
    if (mode_.listing.Has(DeviceList::kCdiCri)) answer_.cdi_devices = std::move(cdi_);
    return std::move(answer_);
  }

 private:
  void NameByCdi(const VendorDevices& devices, const std::vector<AuxiliaryDevice>& auxiliary) {
    const std::string kind = node::cdi::KubeletKind(devices.dialect->cdi_kind());
    for (const device::Facts* facts : devices.devices)
      cdi_.push_back(kind + "=" + api::cdi::DeviceNameOf(facts->id));
    for (const AuxiliaryDevice& one : auxiliary)
      if (one.named) cdi_.push_back(Name(one));
  }

  /// Without written specifications, it is unknown whether a device is present: the wrapper that
  /// reads the variable checks that.
  void AddClass(const ListForms& forms, const std::string& mode, const ListForms::Class& form,
                const std::vector<AuxiliaryDevice>& auxiliary) {
    std::vector<std::string> names;
    for (const AuxiliaryDevice& one : auxiliary)
      if (one.mode == mode && (one.named || mode_.written == nullptr || !form.value.empty()))
        names.push_back(one.name);
    if (names.empty()) return;
    answer_.environment[form.variable] = form.value.empty() ? base::Join(names, ",") : form.value;
    if (!mode_.listing.Has(DeviceList::kVolumeMounts) || form.folder.empty()) return;
    for (const std::string& name : names) Mount(forms.folder + "/" + form.folder + "/" + name);
  }

  void Mount(std::string container_path) {
    answer_.mounts.push_back({std::move(container_path), kNothing, false});
  }

  const InjectionMode& mode_;
  ContainerEdits answer_;
  std::vector<std::string> cdi_;
};

}  // namespace

std::vector<AuxiliaryDevice> AuxiliaryDevices(const std::vector<std::string>& classes,
                                              const Dialect& dialect,
                                              const node::cdi::Written* written) {
  std::vector<AuxiliaryDevice> devices;
  if (classes.empty()) return devices;
  const auto known = dialect.CdiClasses();
  for (const std::string& text : classes) {
    const auto [mode, name] = SplitClass(text);
    const auto one = std::find_if(
        known.begin(), known.end(),
        [&, mode = mode](const device::CdiClass& candidate) { return candidate.mode == mode; });
    if (one == known.end()) continue;
    AuxiliaryDevice device{mode, name, false, node::cdi::KubeletKind(one->kind)};
    device.named = written != nullptr && written->others.contains(Name(device));
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<std::string> MissingClasses(const std::vector<std::string>& classes,
                                        const std::vector<const Dialect*>& dialects,
                                        const node::cdi::Written* written) {
  std::vector<std::string> missing;
  for (const std::string& text : classes) {
    const bool there = std::any_of(dialects.begin(), dialects.end(), [&](const Dialect* dialect) {
      const auto devices = AuxiliaryDevices({text}, *dialect, written);
      return !devices.empty() && devices.front().named;
    });
    if (!there) missing.push_back(text);
  }
  return missing;
}

ContainerEdits BuildContainerResponse(device::Edits edits,
                                      const std::vector<VendorDevices>& devices,
                                      const InjectionMode& injection) {
  Answer answer(std::move(edits), injection);
  for (const VendorDevices& one : devices) answer.Add(one);
  return answer.Take(devices.empty() ? "" : std::string(devices.front().dialect->vendor()));
}

}  // namespace penstock::adapter::kubelet
