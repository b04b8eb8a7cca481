// Defines the effect of each setting of the device plugin: a change of the NodeConfig, "not yet",
// or a remark. Reads nothing.
#include <algorithm>

#include "api/compat/nvidia/device_plugin_reader.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

namespace {

using Apply = void (*)(const Context& context, const GivenSetting& given);

void MigStrategy(const Context& context, const GivenSetting& given) {
  if (!context.OneOf(given, given.text, {"none", "single", "mixed"})) return;
  context.notes.mig_mixed = given.text == "mixed";
  context.config.profiled_parts = given.text == "none"     ? PartsStrategy::kNone
                                  : given.text == "single" ? PartsStrategy::kSingle
                                                           : PartsStrategy::kMixed;
}

void IdStrategy(const Context& context, const GivenSetting& given) {
  if (context.OneOf(given, given.text, {"uuid", "index"}))
    context.config.device_ids = given.text == "index" ? DeviceIds::kIndex : DeviceIds::kUuid;
}

void DiscoveryStrategy(const Context& context, const GivenSetting& given) {
  if (!context.OneOf(given, given.text, {"auto", "nvml", "tegra", "vfio"})) return;
  if (given.text == "tegra" || given.text == "vfio")
    context.NotYet(given, "\"" + given.text + "\" is not supported yet; NVML is used");
}

void AllocationPolicy(const Context& context, const GivenSetting& given) {
  if (context.OneOf(given, given.text, {"distributed", "packed"}))
    context.config.sharing.policy =
        given.text == "packed" ? SharePolicy::kPacked : SharePolicy::kDistributed;
}

void KubeletSocket(const Context& context, const GivenSetting& given) {
  static constexpr std::string_view kPlace = "/device-plugins/kubelet.sock";
  if (given.text.empty()) {
    context.config.kubelet_allocator = Switch::kOff;
  } else if (given.text.size() > kPlace.size() && given.text.ends_with(kPlace)) {
    context.config.paths.kubelet_dir = given.text.substr(0, given.text.size() - kPlace.size());
  } else {
    context.Problem(given,
                    "\"" + given.text +
                        "\" does not end with /device-plugins/kubelet.sock, the kubelet's socket");
  }
}

template <std::string PathsConfig::*kMember>
void SetPath(const Context& context, const GivenSetting& given) {
  if (!given.text.empty()) context.config.paths.*kMember = given.text;
}

template <std::string LabelsConfig::*kMember>
void SetFile(const Context& context, const GivenSetting& given) {
  context.config.labels.*kMember = given.text;
}

constexpr char kGdrcopy[] = "gdrcopy", kGds[] = "gds", kMofed[] = "mofed";

template <const char* kClass>
void SetDeviceClass(const Context& context, const GivenSetting& given) {
  SetClass(context, given.on, kClass);
}

constexpr char kServesHealthyOnes[] =
    "the agent does not exit if devices are unavailable: it serves the healthy ones and tries "
    "again";
constexpr char kKeepsRunning[] = "the agent keeps running and keeps the labels up to date";

template <const char* kRemark>
void RemarkIfOn(const Context& context, const GivenSetting& given) {
  if (given.on) context.Remark(given, kRemark);
}

/// "all" and "xids" mean all XIDs, and the rest of the list is then ignored, as in the plugin.
void ReadXids(const Context& context, const GivenSetting& given, std::vector<std::int64_t>& xids,
              bool& all) {
  xids.clear();
  all = false;
  for (const std::string& item : given.list) {
    const auto xid = base::ParseUint(item);
    if (const std::string word = base::ToLower(item); word == "all" || word == "xids") {
      all = true;
    } else if (!xid || *xid < 1 || *xid > 999) {
      context.Problem(
          given, "\"" + item +
                     "\" is not an XID: write numbers from 1 to 999, separated by commas, or all");
    } else {
      xids.push_back(static_cast<std::int64_t>(*xid));
    }
  }
}

void Ignored(const Context&, const GivenSetting&) {}

struct Definition {
  Kind kind;
  Apply apply;
};

const std::map<std::string_view, Definition>& Definitions() {
  static const std::map<std::string_view, Definition> definitions = {
      {"--mig-strategy", {Kind::kText, MigStrategy}},
      {"--fail-on-init-error", {Kind::kBool, RemarkIfOn<kServesHealthyOnes>}},
      {"--nvidia-driver-root", {Kind::kPath, SetPath<&PathsConfig::host_driver_root>}},
      {"--nvidia-dev-root", {Kind::kPath, SetPath<&PathsConfig::host_dev_root>}},
      {"--driver-root-ctr-path", {Kind::kPath, SetPath<&PathsConfig::driver_root>}},
      {"--pass-device-specs", {Kind::kBool, PassDeviceSpecs}},
      {"--device-list-strategy", {Kind::kList, ListStrategy}},
      {"--device-id-strategy", {Kind::kText, IdStrategy}},
      {"--gdrcopy-enabled", {Kind::kBool, SetDeviceClass<kGdrcopy>}},
      {"--gds-enabled", {Kind::kBool, SetDeviceClass<kGds>}},
      {"--mofed-enabled", {Kind::kBool, SetDeviceClass<kMofed>}},
      {"--cdi-annotation-prefix", {Kind::kText, AnnotationPrefix}},
      {"--nvidia-cdi-hook-path", {Kind::kPath, HookPath}},
      {"--cdi-feature-flags", {Kind::kList, FeatureFlags}},
      {"--cdi-disable-hooks", {Kind::kList, DisableHooks}},
      {"--mps-root",
       {Kind::kPath, [](const Context& context,
                        const GivenSetting& given) { context.notes.mps_root = given.text; }}},
      {"--shared-devices-allocation-policy", {Kind::kText, AllocationPolicy}},
      {"--device-discovery-strategy", {Kind::kText, DiscoveryStrategy}},
      {"--imex-channel-ids", {Kind::kList, ImexChannels}},
      {"--imex-required",
       {Kind::kBool, [](const Context& context,
                        const GivenSetting& given) { context.notes.imex_required = given.on; }}},
      {"--kubelet-socket", {Kind::kText, KubeletSocket}},
      {"--config-file", {Kind::kText, Ignored}},
      {"--use-node-feature-api",
       {Kind::kBool,
        [](const Context& context, const GivenSetting& given) {
          context.config.labels.node_feature = given.on ? Switch::kOn : Switch::kOff;
        }}},
      {"--oneshot", {Kind::kBool, RemarkIfOn<kKeepsRunning>}},
      {"--no-timestamp",
       {Kind::kBool,
        [](const Context& context, const GivenSetting& given) {
          context.config.labels.timestamp = !given.on;
        }}},
      {"--sleep-interval",
       {Kind::kDuration,
        [](const Context& context, const GivenSetting& given) {
          if (given.text != "60s" && given.text != "1m")
            context.Remark(given, "labels are updated as soon as what they describe changes");
        }}},
      {"--output-file", {Kind::kPath, SetFile<&LabelsConfig::features_file>}},
      {"--machine-type-file", {Kind::kPath, SetFile<&LabelsConfig::machine_type_file>}},
      {"--node-name",
       {Kind::kText,
        [](const Context& context, const GivenSetting& given) {
          if (!given.text.empty()) context.config.node_name = given.text;
        }}},
      {"DP_DISABLE_HEALTHCHECKS",
       {Kind::kList,
        [](const Context& context, const GivenSetting& given) {
          ReadXids(context, given, context.notes.xids_off, context.notes.all_xids_off);
        }}},
      {"DP_ENABLE_HEALTHCHECKS",
       {Kind::kList,
        [](const Context& context, const GivenSetting& given) {
          ReadXids(context, given, context.notes.xids_on, context.notes.all_xids_on);
        }}},
  };
  return definitions;
}

void Forget(std::vector<std::string>& notes, const std::string& name) {
  notes.erase(
      std::remove_if(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.starts_with(name + ": "); }),
      notes.end());
}

}  // namespace

void Context::Problem(const GivenSetting& given, const std::string& message) const {
  const std::string line = given.name + ": " + message;
  if (given.in_file) {
    notes.problems.Add(given.mark, line);
  } else {
    notes.given.push_back(line);
  }
}

bool Context::OneOf(const GivenSetting& given, const std::string& text,
                    const std::vector<std::string>& names) const {
  if (std::ranges::find(names, text) != names.end()) return true;
  const auto near = base::Nearest(text, names);
  Problem(given, "\"" + text + "\" is none of " + base::Join(names, ", ") +
                     (near ? "; did you mean \"" + *near + "\"?" : ""));
  return false;
}

std::optional<Kind> KindOf(std::string_view option) {
  const auto definition = Definitions().find(option);
  return definition == Definitions().end() ? std::nullopt : std::optional(definition->second.kind);
}

void ApplySetting(const Context& context, std::string_view option, const GivenSetting& given) {
  std::string& name = context.notes.set_as[std::string(option)];
  if (!name.empty()) {
    Forget(context.notes.not_yet, name);
    Forget(context.notes.remarks, name);
  }
  name = given.name;
  const Definition& definition = Definitions().at(option);
  if (definition.kind == Kind::kPath && !given.text.empty() && given.text.front() != '/')
    return context.Problem(given, "\"" + given.text + "\" must be an absolute path");
  if (given.text.find('\0') != std::string::npos)
    return context.Problem(given, "has a zero byte in it");
  definition.apply(context, given);
}

void ApplyXids(const Context& context) {
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

void ApplyMps(const Context& context) {
  const std::string vendor = "nvidia", usual = "/run/nvidia/mps";
  Notes& notes = context.notes;
  SharingConfig& sharing = context.config.sharing;
  const std::string root = OfVendor(sharing.server_roots, vendor);
  std::string known = OfVendor(sharing.host_server_roots, vendor);
  if (known.empty()) known = root.empty() ? usual : root;
  if (notes.mps_root && !notes.mps_root->empty() && *notes.mps_root != known) {
    // The option gives the host's path of the folder. If no other path was configured, the agent
    // opens the folder under the same path.
    const bool moves = root.empty() || root == usual;
    (moves ? sharing.server_roots : sharing.host_server_roots)[vendor] = *notes.mps_root;
  }
  const bool mps = std::ranges::any_of(
      sharing.rules, [](const auto& rule) { return rule.strategy == ShareStrategy::kServer; });
  if (mps && notes.mig_mixed)
    notes.remarks.emplace_back(
        "sharing.mps: the plugin refuses it with migStrategy mixed; here GPUs that are not in MIG "
        "mode and MIG devices are shared");
}

}  // namespace penstock::api::compat::internal
