// The table of keys, and the items of its lists. Touches no file.
#include "api/config/node_config_keys.h"

#include <algorithm>
#include <type_traits>

#include "api/allocators.h"
#include "api/config/value_forms.h"

namespace penstock::api::internal {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;
using enum Effect;
using namespace std::chrono_literals;

constexpr base::Duration kDay = 24h;
constexpr std::int64_t kMaxPerUser = 1 << 20, kMaxDevices = 1024;

constexpr std::pair<std::string_view, ResetPolicy> kResets[] = {{"never", ResetPolicy::kNever},
                                                                {"idle", ResetPolicy::kIdle}};
constexpr std::pair<std::string_view, ShareStrategy> kStrategies[] = {
    {"none", ShareStrategy::kNone},
    {"time-slicing", ShareStrategy::kTimeSlicing},
    {"mps", ShareStrategy::kServer}};
constexpr std::pair<std::string_view, PartsStrategy> kPartsStrategies[] = {
    {"default", PartsStrategy::kDefault},
    {"none", PartsStrategy::kNone},
    {"single", PartsStrategy::kSingle},
    {"mixed", PartsStrategy::kMixed}};
constexpr std::pair<std::string_view, SharePolicy> kPolicies[] = {
    {"distributed", SharePolicy::kDistributed}, {"packed", SharePolicy::kPacked}};
constexpr std::pair<std::string_view, MetricNames> kNames[] = {
    {"accelerator", MetricNames::kAccelerator},
    {"dcgm", MetricNames::kExporter},
    {"dcgm-4.7", MetricNames::kExporterNew}};
constexpr std::pair<std::string_view, HostLabel> kHostLabels[] = {{"none", HostLabel::kNone},
                                                                  {"Hostname", HostLabel::kOld},
                                                                  {"hostname", HostLabel::kNew},
                                                                  {"both", HostLabel::kBoth}};
constexpr std::pair<std::string_view, DeviceIds> kDeviceIds[] = {{"uuid", DeviceIds::kUuid},
                                                                 {"index", DeviceIds::kIndex}};
constexpr std::pair<std::string_view, PluginFiles> kPluginFiles[] = {
    {"extended", PluginFiles::kExtended}, {"as-nvidia", PluginFiles::kAsNvidia}};
constexpr std::pair<std::string_view, DeviceList> kDeviceLists[] = {
    {"envvar", DeviceList::kEnvvar},
    {"volume-mounts", DeviceList::kVolumeMounts},
    {"cdi-annotations", DeviceList::kCdiAnnotations},
    {"cdi-cri", DeviceList::kCdiCri}};
constexpr std::pair<std::string_view, EngineSetup> kSetups[] = {
    {"off", EngineSetup::kOff}, {"cdi", EngineSetup::kCdi}, {"runtime", EngineSetup::kRuntime}};
const std::pair<std::string_view, std::string> kFallbacks[] = {
    {"named", "named"}, {"single", "single"}, {"empty", "empty"}};

const EvidenceTerm* UsualEvidence(const ConfigTerms& terms) {
  const auto found = std::ranges::find(terms.evidence, true, &EvidenceTerm::usual);
  return found == terms.evidence.end() ? nullptr : &*found;
}

/// Several vendors may have a kind; its codes are those of all of them.
bool IsCode(const Value& item, const std::string& kind, const ConfigTerms& terms) {
  return item.kind == Value::Kind::kInt &&
         std::ranges::any_of(terms.evidence, [&](const EvidenceTerm& term) {
           return term.kind == kind && item.integer >= term.least && item.integer <= term.most;
         });
}

std::vector<std::int64_t> ReadCodes(MapReader& reader, Problems& problems, const std::string& kind,
                                    const ConfigTerms& terms) {
  std::vector<std::int64_t> codes;
  const Value* list = reader.List("codes");
  if (list == nullptr) return codes;
  if (list->list->empty()) reader.Problem("codes", "is empty; leave the key out to mean all codes");
  const EvidenceTerm* usual = UsualEvidence(terms);
  for (const Value& item : *list->list) {
    if (IsCode(item, kind, terms)) {
      codes.push_back(item.integer);
    } else {
      problems.Add(
          item.mark,
          reader.Path("codes") + ": " + (item.text.empty() ? "an item" : "\"" + item.text + "\"") +
              " is not a code of " + kind + ", which are numbers" +
              (usual != nullptr && usual->kind == kind
                   ? " from " + std::to_string(usual->least) + " to " + std::to_string(usual->most)
                   : ""));
    }
  }
  return codes;
}

void ReadHealthRule(MapReader& reader, Problems& problems, const ConfigTerms& terms,
                    HealthRule& rule) {
  std::vector<std::string> kinds;
  for (const EvidenceTerm& term : terms.evidence)
    if (std::ranges::find(kinds, term.kind) == kinds.end()) kinds.push_back(term.kind);
  const EvidenceTerm* usual = UsualEvidence(terms);
  if (usual == nullptr) reader.Require("kind");
  rule.kind = reader.OneOf("kind", kinds).value_or(usual == nullptr ? "" : usual->kind);
  rule.codes = ReadCodes(reader, problems, rule.kind, terms);
  reader.Require("action");
  rule.action = reader
                    .OneOf("action", {"default", "ignore", "warn", "drain", "reset", "gone",
                                      "at-least-drain"})
                    .value_or("default");
}

std::vector<std::string> HealthRuleText(const HealthRule& rule) {
  std::vector<std::string> codes, parts = {"kind: " + rule.kind};
  for (const std::int64_t code : rule.codes) codes.push_back(std::to_string(code));
  if (!codes.empty()) parts.push_back("codes: [" + base::Join(codes, ", ") + "]");
  parts.push_back("action: " + rule.action);
  return parts;
}

/// The kinds that a rule may name are those of the vendors.
struct HealthRules : Form {
  void Read(MapReader& reader, std::string_view key, Problems& problems, const ConfigTerms& terms,
            std::vector<HealthRule>& target) const {
    const auto read = [&terms](MapReader& map, Problems& all, HealthRule& rule) {
      ReadHealthRule(map, all, terms, rule);
    };
    Maps<HealthRule>(read, HealthRuleText).Read(reader, key, problems, target);
  }
  std::string Text(const std::vector<HealthRule>& rules) const {
    return Maps<HealthRule>(nullptr, HealthRuleText).Text(rules);
  }
};

// In the section `doors` of 0.1.0 the key is `door`.
void ReadAssignment(MapReader& reader, Problems& problems, AssignmentRule& rule) {
  const std::string key =
      reader.Path("").find("doors.assign[") != std::string::npos ? "door" : "allocator";
  rule.devices = ReadSelectors(reader, problems);
  reader.Require(key);
  rule.allocator = reader.OneOf(key, AllocatorWords()).value_or(std::string(kNoAllocator));
}

std::vector<std::string> AssignmentText(const AssignmentRule& rule) {
  std::vector<std::string> parts;
  if (!rule.devices.empty()) parts.push_back("devices: " + QuotedList(rule.devices));
  parts.push_back("allocator: " + rule.allocator);
  return parts;
}

void ReadResource(MapReader& reader, Problems&, ResourceRule& rule) {
  for (const char* key : {"pattern", "name"}) reader.Require(key);
  rule = {reader.String("pattern").value_or("*"), reader.String("name").value_or("")};
  if (rule.pattern.empty()) reader.Problem("pattern", "is empty; write \"*\" to mean all models");
}

std::vector<std::string> ResourceText(const ResourceRule& rule) {
  return {"pattern: " + Quoted(rule.pattern), "name: " + Quoted(rule.name)};
}

/// Reads the number of shares and the strategy; each requires the other.
void ReadShape(MapReader& reader, SharingRule& rule) {
  const auto strategy = reader.OneOf("strategy", WordsOf<ShareStrategy>(kStrategies));
  const auto replicas = reader.Int("replicas", 1, kMaxReplicas);
  Translate<ShareStrategy>(kStrategies, strategy.value_or("none"), rule.strategy);
  rule.replicas = static_cast<int>(replicas.value_or(1));
  if (!reader.Has("strategy") && !reader.Has("replicas")) {
    reader.Require("strategy");
  } else if (rule.strategy == ShareStrategy::kNone && rule.replicas > 1 &&
             (strategy || !reader.Has("strategy"))) {
    reader.Problem("replicas",
                   "asks for " + std::to_string(rule.replicas) +
                       " shares without saying how: add strategy: time-slicing, or strategy: mps");
  } else if (rule.strategy != ShareStrategy::kNone && !reader.Has("replicas")) {
    reader.Require("replicas");
  }
}

void ReadSharingRule(MapReader& reader, Problems& problems, SharingRule& rule) {
  rule.resource = reader.String("resource").value_or("");
  if (reader.Has("resource") && rule.resource.empty())
    reader.Problem("resource", "is empty; leave the key out to mean any");
  rule.devices = ReadSelectors(reader, problems);
  rule.most = static_cast<int>(reader.Int("most", 1, kMaxDevices).value_or(0));
  ReadShape(reader, rule);
  rule.rename = reader.String("rename").value_or("");
  if (reader.Has("rename") && rule.rename.empty())
    reader.Problem("rename", "is empty; leave the key out to keep the resource's name");
  rule.fail_requests_greater_than_one = reader.Bool("failRequestsGreaterThanOne").value_or(false);
}

std::vector<std::string> SharingRuleText(const SharingRule& rule) {
  std::vector<std::string> parts;
  if (!rule.resource.empty()) parts.push_back("resource: " + Quoted(rule.resource));
  if (!rule.devices.empty()) parts.push_back("devices: " + QuotedList(rule.devices));
  if (rule.most > 0) parts.push_back("most: " + std::to_string(rule.most));
  parts.push_back("strategy: " + std::string(WordFor<ShareStrategy>(kStrategies, rule.strategy)));
  parts.push_back("replicas: " + std::to_string(rule.replicas));
  if (!rule.rename.empty()) parts.push_back("rename: " + Quoted(rule.rename));
  if (rule.fail_requests_greater_than_one) parts.emplace_back("failRequestsGreaterThanOne: true");
  return parts;
}

void ReadMetricRow(MapReader& reader, Problems&, MetricRow& row) {
  reader.Require("field");
  row.field = reader.String("field").value_or("?");
  reader.Require("type");
  row.type = reader.OneOf("type", {"gauge", "counter", "label"}).value_or("gauge");
  row.help = reader.String("help").value_or("");
}

std::vector<std::string> MetricRowText(const MetricRow& row) {
  return {"field: " + Quoted(row.field), "type: " + row.type, "help: " + Quoted(row.help)};
}

/// A path for each vendor, which CheckPathsOfVendors checks.
struct PathsOfVendors : Form {
  explicit PathsOfVendors(bool empty_is_none = true) : empty_is_none_(empty_is_none) {}
  void Read(MapReader& reader, std::string_view key, Problems& problems, const ConfigTerms& terms,
            ByVendor& target) const {
    const Value* map = reader.Map(key);
    if (map == nullptr) return;
    MapReader below(*map, reader.Path(key), problems);
    for (const std::string& vendor : terms.vendors) ReadOne(below, vendor, vendor, target);
    below.Finish();
  }
  void ReadOne(MapReader& reader, std::string_view leaf, std::string_view vendor,
               ByVendor& target) const {
    if (auto path = reader.String(leaf); path && !(path->empty() && empty_is_none_))
      target.insert_or_assign(std::string(vendor), *std::move(path));
  }
  std::string Text(const ByVendor& paths) const {
    std::vector<std::string> items;
    for (const auto& [vendor, path] : paths) items.push_back(Quoted(vendor) + ": " + Quoted(path));
    return " {" + base::Join(items, ", ") + "}\n";
  }

 private:
  bool empty_is_none_;
};

struct Cgroups : Plain {
  void Read(MapReader& reader, std::string_view key, Problems& problems,
            std::vector<std::string>& target) const {
    Plain::Read(reader, key, problems, target);
    for (std::string& cgroup : target)
      if (!cgroup.starts_with("/")) cgroup.insert(0, "/");
  }
};

/// Also notes that the names were configured.
struct Names : Some<MetricNames> {
  Names() : Some(kNames, true) {}
  void Read(MapReader& reader, std::string_view key, Problems& problems,
            TelemetryConfig& target) const {
    Some::Read(reader, key, problems, target.names);
    if (const Value* list = reader.Any(key); list != nullptr && list->kind == Value::Kind::kList)
      target.names_set = true;
  }
  std::string Text(const TelemetryConfig& config) const { return Some::Text(config.names); }
};

template <typename Config, typename... Members>
auto& At(Config& config, Members... members) {
  return (config.*....*members);
}

/// ConfigKey::read_of_vendor.
template <typename ValueForm, typename... Members>
decltype(ConfigKey::read_of_vendor) OfVendorBy(ValueForm form, Members... members) {
  if constexpr (std::is_same_v<ValueForm, PathsOfVendors>) {
    return [=](MapReader& reader, std::string_view leaf, std::string_view vendor,
               NodeConfig& config) { form.ReadOne(reader, leaf, vendor, At(config, members...)); };
  } else {
    return {};
  }
}

/// `members`: the way from the configuration to the value.
template <typename ValueForm, typename... Members>
ConfigKey Key(const std::string& path, Effect effect, ValueForm form, Members... members) {
  return {.path = path,
          .effect = effect,
          .read =
              [=](MapReader& reader, std::string_view leaf, Problems& problems,
                  [[maybe_unused]] const ConfigTerms& terms, NodeConfig& config) {
                auto& target = At(config, members...);
                if constexpr (requires { form.Read(reader, leaf, problems, terms, target); }) {
                  form.Read(reader, leaf, problems, terms, target);
                } else {
                  form.Read(reader, leaf, problems, target);
                }
              },
          .read_of_vendor = OfVendorBy(form, members...),
          .text = [=](const NodeConfig& config) { return form.Text(At(config, members...)); },
          .problem = [=](const NodeConfig& config) { return form.Problem(At(config, members...)); },
          .copy = [=](const NodeConfig& from,
                      NodeConfig& to) { At(to, members...) = At(from, members...); }};
}

/// What may be empty has a default that follows from other paths.
std::vector<ConfigKey> Paths() {
  std::vector<ConfigKey> keys;
  for (const PathOption& option : PathOptions()) {
    const bool of_host = option.key.starts_with("host");
    keys.push_back(
        Key("paths." + std::string(option.key), of_host ? kNow : kRestart,
            AbsolutePath(of_host || option.key == "devRoot" || option.key == "driverContainerRoot"),
            &NodeConfig::paths, option.member));
  }
  keys.push_back(Key("paths.libraries", kRestart, PathsOfVendors(), &NodeConfig::paths,
                     &PathsConfig::libraries));
  return keys;
}

std::vector<ConfigKey> Keys() {
  using N = NodeConfig;
  using H = HealthConfig;
  using T = TelemetryConfig;
  using C = ContainersConfig;
  using K = ClusterConfig;
  constexpr auto kMap = &K::config_map;
  std::vector<ConfigKey> keys = {Key("node.name", kRestart, Plain(), &N::node_name)};
  for (ConfigKey& key : Paths()) keys.push_back(std::move(key));
  const std::vector<ConfigKey> others = {
      Key("allocators.kubelet.enabled", kRestart, Plain(), &N::kubelet_allocator),
      Key("allocators.local.enabled", kRestart, Plain(), &N::local_allocator),
      Key("allocators.local.group", kRestart, Plain(), &N::local_group),
      Key("allocators.local.closedCgroups", kNow, Cgroups(), &N::closed_cgroups),
      Key("allocators.assign", kNow, Maps<AssignmentRule>(ReadAssignment, AssignmentText),
          &N::assignments),
      Key("queue.perUser.gpus", kNow, Numeric(0, kMaxPerUser), &N::queue, &QueueConfig::devices),
      Key("queue.perUser.waiting", kNow, Numeric(0, kMaxPerUser), &N::queue, &QueueConfig::waiting),
      Key("queue.perUser.time", kNow, Time{0s, 3650 * kDay}, &N::queue, &QueueConfig::time),
      Key("health.poll", kNow, Time{100ms, 1h}, &N::health, &H::poll),
      Key("health.probation", kNow, Time{0s, kDay}, &N::health, &H::probation),
      Key("health.probationMost", kNow, Time{0s, kDay}, &N::health, &H::probation_most),
      Key("health.reset", kNow, OneOf(kResets), &N::health, &H::reset),
      Key("health.policy", kNow, HealthRules(), &N::health, &H::policy),
      Key("resources.perModel", kNow, Plain(), &N::resource_per_model),
      Key("resources.names", kNow, Maps<ResourceRule>(ReadResource, ResourceText), &N::resources),
      Key("sharing.policy", kNow, OneOf(kPolicies), &N::sharing, &SharingConfig::policy),
      Key("sharing.rules", kNow, Maps<SharingRule>(ReadSharingRule, SharingRuleText), &N::sharing,
          &SharingConfig::rules),
      Key("sharing.serverRoots", kRestart, PathsOfVendors(false), &N::sharing,
          &SharingConfig::server_roots),
      Key("sharing.hostServerRoots", kRestart, PathsOfVendors(), &N::sharing,
          &SharingConfig::host_server_roots),
      Key("http.listen", kRestart, Plain(), &N::http, &HttpConfig::listen),
      Key("http.webConfigFile", kNow, AbsolutePath(), &N::http, &HttpConfig::web_config_file),
      Key("http.connections", kRestart, Numeric(1, 4096), &N::http, &HttpConfig::connections),
      Key("http.deadline", kRestart, Time{100ms, 10min}, &N::http, &HttpConfig::deadline),
      Key("page.nodes", kNow, Plain(), &N::page, &PageConfig::nodes),
      Key("page.credentialsFile", kNow, AbsolutePath(), &N::page, &PageConfig::credentials_file),
      Key("page.caFile", kNow, AbsolutePath(), &N::page, &PageConfig::ca_file),
      Key("telemetry.interval", kNow, Time{100ms, 1h}, &N::telemetry, &T::interval),
      Key("telemetry.names", kNow, Names(), &N::telemetry),
      Key("telemetry.processes", kNow, Plain(), &N::telemetry, &T::processes),
      Key("telemetry.exclude", kNow, Plain(), &N::telemetry, &T::exclude),
      Key("telemetry.include", kNow, Plain(), &N::telemetry, &T::include),
      Key("telemetry.counters", kNow, Maps<MetricRow>(ReadMetricRow, MetricRowText), &N::telemetry,
          &T::counters),
      Key("telemetry.countersFile", kNow, AbsolutePath(), &N::telemetry, &T::counters_file),
      Key("telemetry.countersConfigMap", kNow, Plain(), &N::telemetry, &T::counters_map),
      Key("telemetry.exporterFile", kNow, AbsolutePath(), &N::telemetry, &T::exporter_file),
      Key("telemetry.hostLabel", kNow, OneOf(kHostLabels), &N::telemetry, &T::host_label),
      Key("telemetry.oldNames", kNow, Plain(), &N::telemetry, &T::old_names),
      Key("telemetry.blanksReplaced", kNow, Plain(), &N::telemetry, &T::blanks_replaced),
      Key("telemetry.holders", kNow, Plain(), &N::telemetry, &T::holders),
      Key("telemetry.virtualGpus", kNow, Plain(), &N::telemetry, &T::virtual_gpus),
      Key("telemetry.podUid", kNow, Plain(), &N::telemetry, &T::pod_uid),
      Key("telemetry.errorsWindow", kNow, Time{1s, kDay}, &N::telemetry, &T::errors_window),
      Key("telemetry.clockEventsWindow", kNow, Time{1s, kDay}, &N::telemetry,
          &T::clock_events_window),
      Key("telemetry.holderLabels", kNow, Plain(), &N::telemetry, &T::holder_labels),
      Key("telemetry.keepEnded", kNow, Time{0s, kDay}, &N::telemetry, &T::keep_ended),
      Key("telemetry.jobDirectory", kNow, AbsolutePath(), &N::telemetry, &T::job_directory),
      Key("usage.records", kNow, Plain(), &N::usage, &UsageConfig::records),
      Key("usage.dir", kRestart, AbsolutePath(), &N::usage, &UsageConfig::dir),
      Key("usage.fileSize", kNow, Size{{64u << 10}, base::Mebibytes(4096)}, &N::usage,
          &UsageConfig::file_size),
      Key("usage.files", kNow, Numeric(1, 10'000), &N::usage, &UsageConfig::files),
      Key("usage.checkpoint", kNow, Time{1s, kDay}, &N::usage, &UsageConfig::checkpoint),
      Key("usage.idleAfter", kNow, Time{1s, 30 * kDay}, &N::usage, &UsageConfig::idle_after),
      Key("usage.idleBelow", kNow, Numeric(0, 1), &N::usage, &UsageConfig::idle_below),
      Key("parts.strategy", kNow, OneOf(kPartsStrategies), &N::parts),
      Key("parts.profiledStrategy", kNow, OneOf(kPartsStrategies), &N::profiled_parts),
      Key("parts.onDemand", kNow, Plain(), &N::parts_on_demand),
      Key("parts.byLabel", kNow, Plain(), &N::parts_by_label),
      Key("parts.layouts", kNow, AbsolutePath(), &N::layouts_file),
      Key("parts.defaultLayout", kNow, Plain(), &N::default_layout),
      Key("parts.modeProfiles", kNow, AbsolutePath(), &N::mode_profiles_file),
      Key("parts.clientServices", kNow, AbsolutePath(), &N::client_services_file),
      Key("parts.reloadDriver", kNow, OneOf(kResets), &N::reload_driver),
      Key("devicePlugin.deviceIDStrategy", kNow, OneOf(kDeviceIds), &N::device_ids),
      Key("devicePlugin.configFiles", kNow, OneOf(kPluginFiles), &N::plugin_files),
      Key("containers.deviceList", kNow, Some(kDeviceLists, false, true), &N::containers,
          &C::device_list),
      Key("containers.deviceFiles", kNow, Plain(), &N::containers, &C::device_files),
      Key("containers.cdiAnnotationPrefix", kNow, Plain(), &N::containers,
          &C::cdi_annotation_prefix),
      Key("containers.configureEngine", kNow, OneOf(kSetups), &N::containers, &C::configure_engine),
      Key("containers.engineSocket", kRestart, Plain(), &N::containers, &C::engine_socket),
      Key("containers.deviceClasses", kNow, Plain(), &N::containers, &C::device_classes),
      Key("containers.requiredClasses", kNow, Plain(), &N::containers, &C::required_classes),
      Key("cdi.enabled", kRestart, Plain(), &N::cdi, &CdiConfig::enabled),
      Key("cdi.hook", kNow, AbsolutePath(), &N::cdi, &CdiConfig::hook),
      Key("cdi.install", kRestart, AbsolutePath(), &N::cdi, &CdiConfig::install),
      Key("cdi.hostInstall", kRestart, AbsolutePath(), &N::cdi, &CdiConfig::host_install),
      Key("cdi.disableHooks", kNow, Plain(), &N::cdi, &CdiConfig::disable_hooks),
      Key("cdi.enableHooks", kNow, Plain(), &N::cdi, &CdiConfig::enable_hooks),
      Key("cdi.additionalGids", kNow, Plain(), &N::cdi, &CdiConfig::additional_gids),
      Key("labels.node", kNow, Plain(), &N::labels, &LabelsConfig::node),
      Key("labels.nodeFeature", kNow, Plain(), &N::labels, &LabelsConfig::node_feature),
      Key("labels.featuresFile", kNow, AbsolutePath(), &N::labels, &LabelsConfig::features_file),
      Key("labels.hostFeatures", kNow, Plain(), &N::labels, &LabelsConfig::host_features),
      Key("labels.timestamp", kNow, Plain(), &N::labels, &LabelsConfig::timestamp),
      Key("labels.machineTypeFile", kNow, AbsolutePath(), &N::labels,
          &LabelsConfig::machine_type_file),
      Key("cluster.enabled", kRestart, Plain(), &N::cluster, &K::enabled),
      Key("cluster.kubeconfig", kRestart, AbsolutePath(), &N::cluster, &K::kubeconfig),
      Key("cluster.namespace", kRestart, Plain(), &N::cluster, &K::namespace_name),
      Key("cluster.nodeState", kRestart, Plain(), &N::cluster, &K::node_state),
      Key("cluster.events", kRestart, Plain(), &N::cluster, &K::events),
      Key("cluster.nodeStatus", kRestart, Plain(), &N::cluster, &K::node_status),
      Key("cluster.readyCondition", kRestart, Plain(), &N::cluster, &K::ready_condition),
      Key("cluster.config.configMap", kNow, Plain(), &N::cluster, kMap, &ConfigMapConfig::name),
      Key("cluster.config.namespace", kNow, Plain(), &N::cluster, kMap,
          &ConfigMapConfig::namespace_name),
      Key("cluster.config.default", kNow, Plain(), &N::cluster, kMap,
          &ConfigMapConfig::default_key),
      Key("cluster.config.fallback", kNow, Some(kFallbacks), &N::cluster, kMap,
          &ConfigMapConfig::fallbacks),
      Key("cluster.config.nodeLabel", kNow, Plain(), &N::cluster, kMap,
          &ConfigMapConfig::node_label),
      Key("validation.directory", kNow, AbsolutePath(), &N::validation,
          &ValidationConfig::directory),
      Key("validation.compute", kNow, Plain(), &N::validation, &ValidationConfig::compute),
      Key("validation.container", kNow, Plain(), &N::validation, &ValidationConfig::container),
      Key("validation.exporterNames", kNow, Plain(), &N::validation,
          &ValidationConfig::exporter_names),
      Key("workers.restrictSystemCalls", kRestart, Plain(), &N::restrict_workers),
  };
  keys.insert(keys.end(), others.begin(), others.end());
  return keys;
}

}  // namespace

const std::vector<ConfigKey>& ConfigKeys() {
  static const std::vector<ConfigKey> keys = Keys();
  return keys;
}

}  // namespace penstock::api::internal

namespace penstock::api {

std::string_view ToString(DeviceList strategy) {
  return internal::WordFor<DeviceList>(internal::kDeviceLists, strategy);
}

std::string_view ToString(EngineSetup setup) {
  return internal::WordFor<EngineSetup>(internal::kSetups, setup);
}

std::string_view ToString(MetricNames names) {
  return internal::WordFor<MetricNames>(internal::kNames, names);
}

}  // namespace penstock::api
