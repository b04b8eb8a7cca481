// Defines the effect of each setting of the device plugin: a change of the NodeConfig, "not yet",
// or a remark. Reads nothing.
#include <algorithm>

#include "api/compat/nvidia/device_plugin_reader.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

namespace {

using Apply = void (*)(const TranslationContext& context, const Said& said);

void MigStrategy(const TranslationContext& context, const Said& said) {
  context.notes.mig_mixed = said.text == "mixed";
  if (!context.OneOf(said, said.text, {"none", "single", "mixed"}) || said.text == "none") return;
  context.NotYet(said, "\"" + said.text +
                           "\" is not supported yet; MIG devices are not offered, whole GPUs are");
}

void IdStrategy(const TranslationContext& context, const Said& said) {
  if (context.OneOf(said, said.text, {"uuid", "index"}))
    context.config.device_ids = said.text == "index" ? DeviceIds::kIndex : DeviceIds::kUuid;
}

void DiscoveryStrategy(const TranslationContext& context, const Said& said) {
  if (!context.OneOf(said, said.text, {"auto", "nvml", "tegra", "vfio"})) return;
  if (said.text == "tegra" || said.text == "vfio")
    context.NotYet(said, "\"" + said.text + "\" is not supported yet; NVML is used");
}

void AllocationPolicy(const TranslationContext& context, const Said& said) {
  if (context.OneOf(said, said.text, {"distributed", "packed"}))
    context.config.sharing.policy =
        said.text == "packed" ? SharePolicy::kPacked : SharePolicy::kDistributed;
}

void KubeletSocket(const TranslationContext& context, const Said& said) {
  static constexpr std::string_view kPlace = "/device-plugins/kubelet.sock";
  if (said.text.empty()) {
    context.config.kubelet_allocator = Switch::kOff;
  } else if (said.text.size() > kPlace.size() && said.text.ends_with(kPlace)) {
    context.config.paths.kubelet_dir = said.text.substr(0, said.text.size() - kPlace.size());
  } else {
    context.Problem(said,
                    "\"" + said.text +
                        "\" does not end with /device-plugins/kubelet.sock, the kubelet's socket");
  }
}

template <std::string PathsConfig::*kMember>
void SetPath(const TranslationContext& context, const Said& said) {
  if (!said.text.empty()) context.config.paths.*kMember = said.text;
}

/// "all" and "xids" mean all XIDs, and the rest of the list is then ignored, as in the plugin.
void ReadXids(const TranslationContext& context, const Said& said, std::vector<std::int64_t>& xids,
              bool& all) {
  xids.clear();
  all = false;
  for (const std::string& item : said.list) {
    const auto xid = base::ParseUint(item);
    if (const std::string word = base::ToLower(item); word == "all" || word == "xids") {
      all = true;
    } else if (!xid || *xid < 1 || *xid > 999) {
      context.Problem(
          said, "\"" + item +
                    "\" is not an XID: write numbers from 1 to 999, separated by commas, or all");
    } else {
      xids.push_back(static_cast<std::int64_t>(*xid));
    }
  }
}

void Ignored(const TranslationContext&, const Said&) {}

struct Setting {
  Kind kind;
  Apply apply;
};

const std::map<std::string_view, Setting>& Settings() {
  static const std::map<std::string_view, Setting> settings = {
      {"--mig-strategy", {Kind::kText, MigStrategy}},
      {"--fail-on-init-error",
       {Kind::kBool,
        [](const TranslationContext& context, const Said& said) {
          if (said.on)
            context.Remark(said,
                           "the agent does not exit if devices are unavailable: it serves the "
                           "healthy ones and tries again");
        }}},
      {"--nvidia-driver-root", {Kind::kPath, SetPath<&PathsConfig::host_driver_root>}},
      {"--nvidia-dev-root", {Kind::kPath, SetPath<&PathsConfig::host_dev_root>}},
      {"--driver-root-ctr-path", {Kind::kPath, SetPath<&PathsConfig::driver_root>}},
      {"--pass-device-specs", {Kind::kBool, PassDeviceSpecs}},
      {"--device-list-strategy", {Kind::kList, ListStrategy}},
      {"--device-id-strategy", {Kind::kText, IdStrategy}},
      {"--gdrcopy-enabled",
       {Kind::kBool, [](const TranslationContext& context,
                        const Said& said) { SetClass(context, said.on, "gdrcopy"); }}},
      {"--gds-enabled",
       {Kind::kBool, [](const TranslationContext& context,
                        const Said& said) { SetClass(context, said.on, "gds"); }}},
      {"--mofed-enabled",
       {Kind::kBool, [](const TranslationContext& context,
                        const Said& said) { SetClass(context, said.on, "mofed"); }}},
      {"--cdi-annotation-prefix", {Kind::kText, AnnotationPrefix}},
      {"--nvidia-cdi-hook-path", {Kind::kPath, HookPath}},
      {"--cdi-feature-flags", {Kind::kList, FeatureFlags}},
      {"--cdi-disable-hooks", {Kind::kList, DisableHooks}},
      {"--mps-root",
       {Kind::kPath, [](const TranslationContext& context,
                        const Said& said) { context.notes.mps_root = said.text; }}},
      {"--shared-devices-allocation-policy", {Kind::kText, AllocationPolicy}},
      {"--device-discovery-strategy", {Kind::kText, DiscoveryStrategy}},
      {"--imex-channel-ids", {Kind::kList, ImexChannels}},
      {"--imex-required",
       {Kind::kBool, [](const TranslationContext& context,
                        const Said& said) { context.notes.imex_required = said.on; }}},
      {"--kubelet-socket", {Kind::kText, KubeletSocket}},
      {"--config-file", {Kind::kText, Ignored}},
      {"--use-node-feature-api",
       {Kind::kBool,
        [](const TranslationContext& context, const Said& said) {
          context.config.labels.node_feature = said.on ? Switch::kOn : Switch::kOff;
        }}},
      {"--oneshot",
       {Kind::kBool,
        [](const TranslationContext& context, const Said& said) {
          if (said.on)
            context.Remark(said, "the agent keeps running and keeps the labels up to date");
        }}},
      {"--no-timestamp",
       {Kind::kBool, [](const TranslationContext& context,
                        const Said& said) { context.config.labels.timestamp = !said.on; }}},
      {"--sleep-interval",
       {Kind::kDuration,
        [](const TranslationContext& context, const Said& said) {
          if (said.text != "60s" && said.text != "1m")
            context.Remark(said, "labels are updated as soon as what they describe changes");
        }}},
      {"--output-file",
       {Kind::kPath, [](const TranslationContext& context,
                        const Said& said) { context.config.labels.features_file = said.text; }}},
      {"--machine-type-file",
       {Kind::kPath,
        [](const TranslationContext& context, const Said& said) {
          context.config.labels.machine_type_file = said.text;
        }}},
      {"--node-name",
       {Kind::kText,
        [](const TranslationContext& context, const Said& said) {
          if (!said.text.empty()) context.config.node_name = said.text;
        }}},
      {"DP_DISABLE_HEALTHCHECKS",
       {Kind::kList,
        [](const TranslationContext& context, const Said& said) {
          ReadXids(context, said, context.notes.xids_off, context.notes.all_xids_off);
        }}},
      {"DP_ENABLE_HEALTHCHECKS",
       {Kind::kList,
        [](const TranslationContext& context, const Said& said) {
          ReadXids(context, said, context.notes.xids_on, context.notes.all_xids_on);
        }}},
  };
  return settings;
}

void Forget(std::vector<std::string>& notes, const std::string& name) {
  notes.erase(
      std::remove_if(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.starts_with(name + ": "); }),
      notes.end());
}

}  // namespace

void TranslationContext::Problem(const Said& said, const std::string& message) const {
  const std::string line = said.name + ": " + message;
  if (said.in_file) {
    notes.problems.Add(said.mark, line);
  } else {
    notes.given.push_back(line);
  }
}

bool TranslationContext::OneOf(const Said& said, const std::string& text,
                               const std::vector<std::string>& names) const {
  if (std::find(names.begin(), names.end(), text) != names.end()) return true;
  const auto near = base::Nearest(text, names);
  Problem(said, "\"" + text + "\" is none of " + base::Join(names, ", ") +
                    (near ? "; did you mean \"" + *near + "\"?" : ""));
  return false;
}

std::optional<Kind> KindOf(std::string_view option) {
  const auto setting = Settings().find(option);
  return setting == Settings().end() ? std::nullopt : std::optional(setting->second.kind);
}

void ApplySaid(const TranslationContext& context, std::string_view option, const Said& said) {
  std::string& name = context.notes.said_as[std::string(option)];
  if (!name.empty()) {
    Forget(context.notes.not_yet, name);
    Forget(context.notes.remarks, name);
  }
  name = said.name;
  const Setting& setting = Settings().at(option);
  if (setting.kind == Kind::kPath && !said.text.empty() && said.text.front() != '/')
    return context.Problem(said, "\"" + said.text + "\" must be an absolute path");
  if (said.text.find('\0') != std::string::npos)
    return context.Problem(said, "has a zero byte in it");
  setting.apply(context, said);
}

void ApplyXids(const TranslationContext& context) {
  const Notes& notes = context.notes;
  std::vector<HealthRule>& policy = context.config.health.policy;
  const auto add = [&policy](std::vector<std::int64_t> codes, const char* action) {
    policy.push_back({.kind = "xid", .codes = std::move(codes), .action = action});
  };
  if (notes.all_xids_on) return add({}, "at-least-drain");
  if (notes.all_xids_off) {
    add({}, "ignore");
  } else if (!notes.xids_off.empty()) {
    add(notes.xids_off, "ignore");
  }
  if (!notes.xids_on.empty()) add(notes.xids_on, "at-least-drain");
}

void ApplyMps(const TranslationContext& context) {
  static const SharingConfig kDefaults;
  Notes& notes = context.notes;
  SharingConfig& sharing = context.config.sharing;
  const std::string& known =
      sharing.host_mps_root.empty() ? sharing.mps_root : sharing.host_mps_root;
  if (notes.mps_root && !notes.mps_root->empty() && *notes.mps_root != known) {
    // The option gives the host's path of the folder. If no other path was configured, the agent
    // opens the folder under the same path.
    if (sharing.mps_root == kDefaults.mps_root) {
      sharing.mps_root = *notes.mps_root;
    } else {
      sharing.host_mps_root = *notes.mps_root;
    }
  }
  const bool mps = std::any_of(sharing.rules.begin(), sharing.rules.end(), [](const auto& rule) {
    return rule.strategy == ShareStrategy::kMps;
  });
  if (mps && notes.mig_mixed)
    notes.remarks.emplace_back(
        "sharing.mps: the plugin refuses it with migStrategy mixed; here GPUs that are not in MIG "
        "mode are shared");
}

}  // namespace penstock::api::compat::internal
