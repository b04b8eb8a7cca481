// Defines the effect of each setting of dcgm-exporter, in one table. Most of its switches concern
// DCGM, which Penstock does not use. Reads nothing.
#include <algorithm>

#include "api/compat/label_patterns.h"
#include "api/compat/nvidia/exporter_reader.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

namespace {

constexpr std::string_view kNoDcgm = "has no effect: DCGM is not used, the driver is read directly";

template <bool TelemetryConfig::*kMember>
void SetBool(ExporterWork& work, const GivenValue& given) {
  work.config.telemetry.*kMember = given.on;
}

template <base::Duration TelemetryConfig::*kMember>
void SetMilliseconds(ExporterWork& work, const GivenValue& given) {
  constexpr std::uint64_t kMax = 86'400'000;
  const auto number = base::ParseUint(given.value);
  if (!number || *number == 0 || *number > kMax)
    return given.Problem(work, "\"" + given.value +
                                   "\" is not a number of milliseconds from 1 to " +
                                   std::to_string(kMax));
  work.config.telemetry.*kMember = std::chrono::milliseconds(*number);
}

void Collectors(ExporterWork& work, const GivenValue& given) {
  if (given.value.empty()) return given.Problem(work, "must not be empty");
  work.config.telemetry.counters_file = given.value;
  work.config.telemetry.counters.clear();
}

void ConfigMapData(ExporterWork& work, const GivenValue& given) {
  const bool none = given.value.empty() || given.value == "none";
  work.config.telemetry.counters_map = none ? "" : given.value;
  if (!none) work.config.telemetry.counters.clear();
}

void WriteTimeout(ExporterWork& work, const GivenValue& given) {
  const auto deadline = base::ParseDuration(given.value);
  if (!deadline.ok()) return given.Problem(work, deadline.error().message());
  work.config.http.deadline = *deadline;
}

void PodLabels(ExporterWork& work, const GivenValue& given) {
  work.pod_labels = given.on;
  if (!given.on) work.config.telemetry.holder_labels.clear();
}

void LabelPatterns(ExporterWork& work, const GivenValue& given) {
  for (const std::string& item : base::Split(given.value, ',')) {
    const std::string_view pattern = base::Trim(item);
    if (pattern.empty()) continue;
    if (auto globs = GlobsOf(pattern); globs.ok()) {
      work.label_globs.insert(work.label_globs.end(), globs->begin(), globs->end());
    } else {
      given.Problem(work, globs.error().message());
    }
  }
  work.label_globs_where = given.where;
}

void IdType(ExporterWork& work, const GivenValue& given) {
  if (given.value != "uid" && given.value != "device-name")
    return given.Problem(work, "\"" + given.value + "\" is none of uid, device-name");
  if (given.value != "uid")
    given.Remark(
        work, "has no effect: the agent allocates the devices itself and knows them by every ID");
}

void SetDevices(ExporterWork& work, const GivenValue& given) {
  const DeviceChoice choice = ReadDeviceChoice(given.value);
  if (!choice.wellformed)
    return given.Problem(
        work,
        "\"" + given.value +
            "\" is not a choice of devices: write f, g, i or g+i, with numbers as in g:0,2-4");
  if (choice.some) {
    given.NotYet(work, "\"" + given.value +
                           "\": selection by number is not supported; all devices are shown. Drop "
                           "series by their label \"gpu\" with metric_relabel_configs");
  } else if (given.value != "f") {
    given.Remark(work, "has no effect: GPUs are shown, and their instances if they have any");
  }
}

/// Whether the address is on this machine: "localhost:5555", "tcp://[::1]:5555", "unix:///run/...".
bool IsOfThisMachine(std::string_view engine) {
  if (engine.starts_with("unix://") || engine.starts_with('/')) return true;
  if (engine.starts_with("tcp://")) engine.remove_prefix(6);
  const std::string_view host = engine.starts_with('[') ? engine.substr(0, engine.find(']') + 1)
                                                        : engine.substr(0, engine.rfind(':'));
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

void HostEngine(ExporterWork& work, const GivenValue& given) {
  if (given.value.empty()) return;
  if (IsOfThisMachine(given.value)) return given.Remark(work, std::string(kNoDcgm));
  given.NotYet(work, "\"" + given.value +
                         "\": DCGM is not used; the page shows the GPUs of this machine. For "
                         "another machine, run an agent there");
}

void OtherDevices(ExporterWork& work, const GivenValue& given) {
  if (!ReadDeviceChoice(given.value).wellformed)
    return given.Problem(
        work,
        "\"" + given.value +
            "\" is not a choice of devices: write f, g, i or g+i, with numbers as in g:0,2-4");
  if (given.value != "f")
    given.Remark(work, "has no effect: NVML does not report NVSwitches and CPUs");
}

void PodResources(ExporterWork& work, const GivenValue& given) {
  static constexpr std::string_view kPlace = "/pod-resources/kubelet.sock";
  if (given.value.size() <= kPlace.size() || !given.value.ends_with(kPlace))
    return given.Problem(work, "\"" + given.value + "\" does not end with " + std::string(kPlace) +
                                   ", the kubelet's socket");
  work.config.paths.kubelet_dir = given.value.substr(0, given.value.size() - kPlace.size());
}

void LogFormat(ExporterWork& work, const GivenValue& given) {
  if (given.value != "text" && given.value != "json")
    return given.Problem(work, "\"" + given.value + "\" is none of text, json");
  if (given.value == "json")
    given.Remark(work, "has no effect: log lines are a message and key=value pairs");
}

constexpr std::string_view kNewestOnly =
    "has no effect: the newest of each value is kept, and two minutes of history";
constexpr std::string_view kNoDumps = "has no effect: /debug/state shows what the agent knows";

/// "0,2-4": numbers and ascending ranges.
bool IsRange(std::string_view text) {
  constexpr std::uint64_t kMax = 4096;
  const auto items = base::Split(text, ',');
  return std::ranges::all_of(items, [](const std::string& item) {
    const auto dash = item.find('-');
    const auto first = base::ParseUint(std::string_view(item).substr(0, dash));
    const auto last = dash == std::string::npos
                          ? first
                          : base::ParseUint(std::string_view(item).substr(dash + 1));
    return first && last && *first <= *last && *last < kMax;
  });
}

using Flags = std::vector<std::string_view>;
using ApplyValue = void (*)(ExporterWork& work, const GivenValue& given);

ExporterSetting Text(Flags flags, std::string_view environment, std::string_view help,
                     ApplyValue apply) {
  return {{std::move(flags), environment, help}, apply};
}

ExporterSetting OnOff(Flags flags, std::string_view environment, std::string_view help,
                      ApplyValue apply) {
  return {{std::move(flags), environment, help, true}, apply};
}

ExporterSetting FilePath(Flags flags, std::string_view environment, std::string_view help,
                         ApplyValue apply) {
  return {{std::move(flags), environment, help, false, true}, apply};
}

ExporterSetting Ignored(Flags flags, std::string_view environment, std::string_view help,
                        std::string_view why, std::string_view preset = {}) {
  return {{std::move(flags), environment, help}, nullptr, why, preset};
}

ExporterSetting IgnoredSwitch(Flags flags, std::string_view environment, std::string_view help,
                              std::string_view why, std::string_view preset = {}) {
  return {{std::move(flags), environment, help, true}, nullptr, why, preset};
}

}  // namespace

DeviceChoice ReadDeviceChoice(std::string_view text) {
  if (text == "f") return {.wellformed = true};
  DeviceChoice choice{.wellformed = true};
  std::string seen;
  for (const std::string& part : base::Split(text, '+')) {
    const bool known = part.starts_with('g') || part.starts_with('i');
    const bool ranged = part.size() > 1;
    if (!known || seen.find(part.front()) != std::string::npos) return {};
    if (ranged && (part[1] != ':' || !IsRange(std::string_view(part).substr(2)))) return {};
    seen += part.front();
    choice.some = choice.some || ranged;
  }
  return choice;
}

const std::vector<ExporterSetting>& ExporterSettings() {
  static const std::vector<ExporterSetting> settings = {
      FilePath({"--collectors", "-f"}, "DCGM_EXPORTER_COLLECTORS", "counter file (CSV)",
               Collectors),
      Text({"--configmap-data", "-m"}, "DCGM_EXPORTER_CONFIGMAP_DATA",
           "NAMESPACE:NAME of a ConfigMap with a counter file under \"metrics\"", ConfigMapData),
      Text({"--address", "-a"}, "DCGM_EXPORTER_LISTEN", "same as --listen",
           [](ExporterWork& work, const GivenValue& given) {
             work.config.http.listen = given.value;
           }),
      OnOff({"--web-systemd-socket"}, "DCGM_EXPORTER_SYSTEMD_SOCKET",
            "serve on the sockets that systemd opened",
            [](ExporterWork& work, const GivenValue& given) {
              if (given.on) work.config.http.listen = "systemd:";
            }),
      FilePath({"--web-config-file"}, "DCGM_EXPORTER_WEB_CONFIG_FILE",
               "Prometheus' web configuration: TLS, users",
               [](ExporterWork& work, const GivenValue& given) {
                 work.config.http.web_config_file = given.value;
               }),
      Text({"--web-write-timeout"}, "DCGM_EXPORTER_WEB_WRITE_TIMEOUT",
           "maximum duration of a connection", WriteTimeout),
      Text({"--collect-interval", "-c"}, "DCGM_EXPORTER_INTERVAL",
           "milliseconds between two collections", SetMilliseconds<&TelemetryConfig::interval>),
      OnOff({"--kubernetes", "-k"}, "DCGM_EXPORTER_KUBERNETES",
            "add the pod that holds a device to its series [true]",
            SetBool<&TelemetryConfig::holders>),
      OnOff({"--kubernetes-enable-pod-labels"}, "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS",
            "add the labels of pods to series", PodLabels),
      Text({"--kubernetes-pod-label-allowlist-regex"},
           "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX",
           "labels to add: regular expressions over their keys, comma-separated; default: all",
           LabelPatterns),
      OnOff({"--kubernetes-enable-pod-uid"}, "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID",
            "add the label pod_uid", SetBool<&TelemetryConfig::pod_uid>),
      Text({"--kubernetes-gpu-id-type"}, "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE",
           "accepted: devices are known by every ID", IdType),
      OnOff({"--kubernetes-virtual-gpus"}, "KUBERNETES_VIRTUAL_GPUS",
            "a series for each share of a shared device",
            [](ExporterWork& work, const GivenValue& given) {
              work.config.telemetry.virtual_gpus = given.on ? Switch::kOn : Switch::kOff;
            }),
      OnOff({"--use-old-namespace", "-o"}, "DCGM_EXPORTER_USE_OLD_NAMESPACE",
            "use the labels of dcgm-exporter 1.x", SetBool<&TelemetryConfig::old_names>),
      OnOff({"--no-hostname", "-n"}, "DCGM_EXPORTER_NO_HOSTNAME", "omit the label of the host",
            [](ExporterWork& work, const GivenValue& given) {
              if (given.on) work.config.telemetry.host_label = HostLabel::kNone;
            }),
      OnOff({"--replace-blanks-in-model-name", "--rbmn"},
            "DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME", "replace blanks in model names",
            SetBool<&TelemetryConfig::blanks_replaced>),
      Text({"--xid-count-window-size", "-x"}, "DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE",
           "window for counting XIDs, in milliseconds",
           SetMilliseconds<&TelemetryConfig::errors_window>),
      Text({"--clock-events-count-window-size"}, "DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE",
           "window for counting clock events, in milliseconds",
           SetMilliseconds<&TelemetryConfig::clock_events_window>),
      Text({"--devices", "-d"}, "DCGM_EXPORTER_DEVICES_STR",
           "accepted: f, g, i or g+i; selection by number is not supported", SetDevices),
      Text({"--switch-devices", "-s"}, "DCGM_EXPORTER_OTHER_DEVICES_STR",
           "accepted: NVSwitches are not shown", OtherDevices),
      Text({"--cpu-devices", "-p"}, "DCGM_EXPORTER_CPU_DEVICES_STR", "accepted: CPUs are not shown",
           OtherDevices),
      Text({"--pod-resources-kubelet-socket"}, "DCGM_POD_RESOURCES_KUBELET_SOCKET",
           "the kubelet's socket; sets --kubelet-dir", PodResources),
      OnOff({"--debug"}, "DCGM_EXPORTER_DEBUG", "same as --verbose",
            [](ExporterWork&, const GivenValue&) {}),
      Text({"--log-format"}, "DCGM_EXPORTER_LOG_FORMAT", "accepted", LogFormat),
      OnOff(
          {"--fake-gpus"}, "DCGM_EXPORTER_USE_FAKE_GPUS",
          "not supported: penstock-sim simulates machines",
          [](ExporterWork& work, const GivenValue& given) {
            if (given.on)
              given.NotYet(
                  work,
                  "GPUs are not simulated here; penstock-sim runs the agent on simulated machines");
          }),
      FilePath({"--hpc-job-mapping-dir"}, "DCGM_HPC_JOB_MAPPING_DIR",
               "directory of files that list the jobs of GPUs, for the label hpc_job",
               [](ExporterWork& work, const GivenValue& given) {
                 work.config.telemetry.job_directory = given.value;
               }),
      OnOff(
          {"--kubernetes-enable-dra"}, "KUBERNETES_ENABLE_DRA",
          "not supported yet: dynamic resource allocation",
          [](ExporterWork& work, const GivenValue& given) {
            if (given.on)
              given.NotYet(
                  work,
                  "devices are not allocated by ResourceClaims yet; there are no labels of claims");
          }),
      OnOff({"--container-labels"}, "DCGM_EXPORTER_CONTAINER_LABELS",
            "not supported: labels of container engines",
            [](ExporterWork& work, const GivenValue& given) {
              if (given.on)
                given.NotYet(
                    work,
                    "labels of container engines are not read; telemetry.holderLabels selects "
                    "labels of pods and runs");
            }),
      Ignored({"--container-runtime-socket"}, "DCGM_CONTAINER_RUNTIME_SOCKET", "accepted",
              "has no effect: labels of container engines are not read"),
      Ignored({"--nvidia-resource-names"}, "NVIDIA_RESOURCE_NAMES", "accepted",
              "has no effect: the agent offers the devices itself and knows all their resources"),
      Text({"--remote-hostengine-info", "-r"}, "DCGM_REMOTE_HOSTENGINE_INFO",
           "accepted for this machine: DCGM is not used", HostEngine),
      IgnoredSwitch({"--enable-dcgm-log"}, "DCGM_EXPORTER_ENABLE_DCGM_LOG",
                    "accepted: DCGM is not used", kNoDcgm),
      Ignored({"--dcgm-log-level"}, "DCGM_EXPORTER_DCGM_LOG_LEVEL", "accepted: DCGM is not used",
              kNoDcgm, "NONE"),
      Ignored({"--watch-max-keep-age"}, "DCGM_EXPORTER_WATCH_MAX_KEEP_AGE", "accepted",
              kNewestOnly),
      Ignored({"--watch-max-keep-samples"}, "DCGM_EXPORTER_WATCH_MAX_KEEP_SAMPLES", "accepted",
              kNewestOnly),
      Ignored({"--web-read-timeout"}, "DCGM_EXPORTER_WEB_READ_TIMEOUT",
              "accepted: see --web-write-timeout",
              "has no effect: http.deadline limits the whole connection"),
      Ignored({"--max-concurrent-scrapes"}, "DCGM_EXPORTER_MAX_CONCURRENT_SCRAPES", "accepted",
              "has no effect: pages are rendered in advance; http.connections limits connections"),
      IgnoredSwitch({"--enable-exporter-metrics"}, "DCGM_EXPORTER_ENABLE_EXPORTER_METRICS",
                    "accepted: see penstock_*",
                    "has no effect: the families penstock_* always describe the agent"),
      IgnoredSwitch({"--health-require-gpus"}, "DCGM_EXPORTER_HEALTH_REQUIRE_GPUS", "accepted",
                    "has no effect: an agent that finds no GPU keeps looking and needs no restart"),
      IgnoredSwitch(
          {"--disable-startup-validate"}, "DISABLE_STARTUP_VALIDATE", "accepted",
          "has no effect: the agent starts whatever it finds, and reports it in its status"),
      IgnoredSwitch({"--enable-gpu-bind-unbind-watch"},
                    "DCGM_EXPORTER_ENABLE_GPU_BIND_UNBIND_WATCH",
                    "accepted: GPUs are always watched",
                    "has no effect: added and removed GPUs are always detected"),
      Ignored({"--gpu-bind-unbind-poll-interval"}, "DCGM_EXPORTER_GPU_BIND_UNBIND_POLL_INTERVAL",
              "accepted", "has no effect: the kernel reports added and removed GPUs", "1s"),
      IgnoredSwitch({"--enable-pprof"}, "DCGM_EXPORTER_ENABLE_PPROF", "accepted",
                    "has no effect: the agent is not a Go program"),
      IgnoredSwitch({"--dump-enabled"}, "DCGM_EXPORTER_DUMP_ENABLED", "accepted", kNoDumps),
      Ignored({"--dump-directory"}, "DCGM_EXPORTER_DUMP_DIRECTORY", "accepted", kNoDumps,
              "/tmp/dcgm-exporter-debug"),
      Ignored({"--dump-retention"}, "DCGM_EXPORTER_DUMP_RETENTION", "accepted", kNoDumps, "24"),
      IgnoredSwitch({"--dump-compression"}, "DCGM_EXPORTER_DUMP_COMPRESSION", "accepted", kNoDumps,
                    "true"),
  };
  return settings;
}

}  // namespace penstock::api::compat::internal
