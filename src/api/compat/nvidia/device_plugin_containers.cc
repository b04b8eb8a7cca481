// Translates the device plugin's settings for how containers receive devices. Reads nothing.
#include <algorithm>
#include <array>

#include "api/compat/nvidia/device_plugin_reader.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

namespace {

constexpr const char* kImexChannel = "imex=0";

void SetItem(std::vector<std::string>& items, bool on, const std::string& item) {
  std::erase(items, item);
  if (on) items.push_back(item);
}

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

// The plugin, too, allows any combination of the four (api/config/v1/strategy.go); a repeated
// strategy counts once.
void ListStrategy(const Context& context, const GivenSetting& given) {
  constexpr std::array kAll = {DeviceList::kEnvvar, DeviceList::kVolumeMounts,
                               DeviceList::kCdiAnnotations, DeviceList::kCdiCri};
  std::vector<std::string> names;
  for (const DeviceList one : kAll) names.emplace_back(ToString(one));
  if (given.list.empty()) context.Problem(given, "names no strategy");
  std::vector<DeviceList> list;
  for (const std::string& text : given.list) {
    if (!context.OneOf(given, text, names)) continue;
    const auto* one = std::ranges::find_if(
        kAll, [&text](DeviceList candidate) { return text == ToString(candidate); });
    if (std::ranges::find(list, *one) == list.end()) list.push_back(*one);
  }
  context.config.containers.device_list = std::move(list);
}

void PassDeviceSpecs(const Context& context, const GivenSetting& given) {
  context.config.containers.device_files = given.on ? Switch::kOn : Switch::kAuto;
  if (!given.on)
    context.Remark(given,
                   "device files are passed if the engine does not inject devices by CDI; a "
                   "NodeConfig can set containers.deviceFiles: off");
}

void SetClass(const Context& context, bool on, const std::string& name) {
  SetItem(context.config.containers.device_classes, on, name);
  if (!on) std::erase(context.config.containers.required_classes, name);
}

void AnnotationPrefix(const Context& context, const GivenSetting& given) {
  if (!given.text.empty()) context.config.containers.cdi_annotation_prefix = given.text;
}

// The plugin's default, and the path that the GPU Operator passes
// (/usr/local/nvidia/toolkit/nvidia-cdi-hook), is NVIDIA's own program. It is gone once NVIDIA's
// toolkit is uninstalled.
void HookPath(const Context& context, const GivenSetting& given) {
  const std::string_view name = FileName(given.text);
  if (given.text.empty()) return;
  if (name != "nvidia-ctk" && name != "nvidia-cdi-hook") {
    context.config.cdi.hook = given.text;
  } else if (given.text != "/usr/bin/nvidia-ctk" && given.text != "/usr/bin/nvidia-cdi-hook") {
    context.Remark(given, "specifications run penstock-hook, which does what " + std::string(name) +
                              " does; a NodeConfig can set cdi.hook");
  }
}

// From NVIDIA container toolkit, pkg/nvcdi/api.go.
void FeatureFlags(const Context& context, const GivenSetting& given) {
  for (const std::string& flag : given.list) {
    if (flag == "no-additional-gids-for-device-nodes") {
      context.config.cdi.additional_gids = Switch::kOff;
    } else if (flag == "disable-nvsandboxutils") {
      context.Remark(given, "\"" + flag + "\": that library is not used here");
    } else if (flag == "disable-multiple-csv-devices" ||
               flag == "enable-explicit-driver-libraries") {
      context.Remark(
          given,
          "\"" + flag +
              "\" has no effect: specifications contain the libraries that the driver provides");
    } else if (flag == "enable-coherent-annotations" || flag == "disable-ipc-discoverer") {
      context.NotYet(
          given, "\"" + flag + "\" is not supported yet; specifications are written without it");
    } else {
      context.NotYet(given, "\"" + flag + "\" is not known; specifications are written without it");
    }
  }
}

void DisableHooks(const Context& context, const GivenSetting& given) {
  context.config.cdi.disable_hooks.clear();
  for (const std::string& name : given.list) {
    const bool known = name == "all" || std::ranges::find(HookNames(), name) != HookNames().end();
    if (known) {
      SetItem(context.config.cdi.disable_hooks, true, name);
      std::erase(context.config.cdi.enable_hooks, name);
    } else {
      const auto near = base::Nearest(name, HookNames());
      context.NotYet(given, "there is no hook \"" + name + "\" here" +
                                (near ? "; did you mean \"" + *near + "\"?" : ""));
    }
  }
}

void ImexChannels(const Context& context, const GivenSetting& given) {
  for (const std::string& channel : given.list)
    if (channel != "0")
      return context.Problem(
          given, "\"" + channel + "\" is not a channel that can be requested: only 0 can, or none");
  if (given.list.size() > 1) return context.Problem(given, "names a channel twice");
  SetClass(context, !given.list.empty(), kImexChannel);
}

void ApplyImex(const Context& context) {
  ContainersConfig& containers = context.config.containers;
  const auto& classes = containers.device_classes;
  if (!context.notes.imex_required) return;
  const bool requested = std::ranges::find(classes, kImexChannel) != classes.end();
  SetItem(containers.required_classes, *context.notes.imex_required && requested, kImexChannel);
  if (*context.notes.imex_required && !requested)
    context.notes.remarks.emplace_back(
        "imex.required: has no effect without a channel (imex.channelIDs)");
}

}  // namespace penstock::api::compat::internal
