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

void Devices(ExporterWork& work, const GivenValue& given) {
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
  return std::all_of(items.begin(), items.end(), [](const std::string& item) {
    const auto dash = item.find('-');
    const auto first = base::ParseUint(std::string_view(item).substr(0, dash));
    const auto last = dash == std::string::npos
                          ? first
                          : base::ParseUint(std::string_view(item).substr(dash + 1));
    return first && last && *first <= *last && *last < kMax;
  });
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
      {{{"--collectors", "-f"}, "DCGM_EXPORTER_COLLECTORS", "counter file (CSV)", false, true},
       Collectors},
      {{{"--configmap-data", "-m"},
        "DCGM_EXPORTER_CONFIGMAP_DATA",
        "NAMESPACE:NAME of a ConfigMap with a counter file under \"metrics\""},
       ConfigMapData},
      {{{"--address", "-a"}, "DCGM_EXPORTER_LISTEN", "same as --listen"},
       [](ExporterWork& work, const GivenValue& given) { work.config.http.listen = given.value; }},
      {{{"--web-systemd-socket"},
        "DCGM_EXPORTER_SYSTEMD_SOCKET",
        "serve on the sockets that systemd opened",
        true},
       [](ExporterWork& work, const GivenValue& given) {
         if (given.on) work.config.http.listen = "systemd:";
       }},
      {{{"--web-config-file"},
        "DCGM_EXPORTER_WEB_CONFIG_FILE",
        "Prometheus' web configuration: TLS, users",
        false,
        true},
       [](ExporterWork& work, const GivenValue& given) {
         work.config.http.web_config_file = given.value;
       }},
      {{{"--web-write-timeout"},
        "DCGM_EXPORTER_WEB_WRITE_TIMEOUT",
        "maximum duration of a connection"},
       WriteTimeout},
      {{{"--collect-interval", "-c"},
        "DCGM_EXPORTER_INTERVAL",
        "milliseconds between two collections"},
       SetMilliseconds<&TelemetryConfig::interval>},
      {{{"--kubernetes", "-k"},
        "DCGM_EXPORTER_KUBERNETES",
        "add the pod that holds a device to its series [true]",
        true},
       SetBool<&TelemetryConfig::holders>},
      {{{"--kubernetes-enable-pod-labels"},
        "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS",
        "add the labels of pods to series",
        true},
       PodLabels},
      {{{"--kubernetes-pod-label-allowlist-regex"},
        "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX",
        "labels to add: regular expressions over their keys, comma-separated; default: all"},
       LabelPatterns},
      {{{"--kubernetes-enable-pod-uid"},
        "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID",
        "add the label pod_uid",
        true},
       SetBool<&TelemetryConfig::pod_uid>},
      {{{"--kubernetes-gpu-id-type"},
        "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE",
        "accepted: devices are known by every ID"},
       IdType},
      {{{"--kubernetes-virtual-gpus"},
        "KUBERNETES_VIRTUAL_GPUS",
        "a series for each share of a shared device",
        true},
       [](ExporterWork& work, const GivenValue& given) {
         work.config.telemetry.virtual_gpus = given.on ? Switch::kOn : Switch::kOff;
       }},
      {{{"--use-old-namespace", "-o"},
        "DCGM_EXPORTER_USE_OLD_NAMESPACE",
        "use the labels of dcgm-exporter 1.x",
        true},
       SetBool<&TelemetryConfig::old_names>},
      {{{"--no-hostname", "-n"}, "DCGM_EXPORTER_NO_HOSTNAME", "omit the label of the host", true},
       [](ExporterWork& work, const GivenValue& given) {
         if (given.on) work.config.telemetry.host_label = HostLabel::kNone;
       }},
      {{{"--replace-blanks-in-model-name", "--rbmn"},
        "DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME",
        "replace blanks in model names",
        true},
       SetBool<&TelemetryConfig::blanks_replaced>},
      {{{"--xid-count-window-size", "-x"},
        "DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE",
        "window for counting XIDs, in milliseconds"},
       SetMilliseconds<&TelemetryConfig::xid_window>},
      {{{"--clock-events-count-window-size"},
        "DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE",
        "window for counting clock events, in milliseconds"},
       SetMilliseconds<&TelemetryConfig::clock_events_window>},
      {{{"--devices", "-d"},
        "DCGM_EXPORTER_DEVICES_STR",
        "accepted: f, g, i or g+i; selection by number is not supported"},
       Devices},
      {{{"--switch-devices", "-s"},
        "DCGM_EXPORTER_OTHER_DEVICES_STR",
        "accepted: NVSwitches are not shown"},
       OtherDevices},
      {{{"--cpu-devices", "-p"}, "DCGM_EXPORTER_CPU_DEVICES_STR", "accepted: CPUs are not shown"},
       OtherDevices},
      {{{"--pod-resources-kubelet-socket"},
        "DCGM_POD_RESOURCES_KUBELET_SOCKET",
        "the kubelet's socket; sets --kubelet-dir"},
       PodResources},
      {{{"--debug"}, "DCGM_EXPORTER_DEBUG", "same as --verbose", true},
       [](ExporterWork&, const GivenValue&) {}},
      {{{"--log-format"}, "DCGM_EXPORTER_LOG_FORMAT", "accepted"}, LogFormat},
      {{{"--fake-gpus"},
        "DCGM_EXPORTER_USE_FAKE_GPUS",
        "not supported: penstock-sim simulates machines",
        true},
       [](ExporterWork& work, const GivenValue& given) {
         if (given.on)
           given.NotYet(
               work,
               "GPUs are not simulated here; penstock-sim runs the agent on simulated machines");
       }},
      {{{"--hpc-job-mapping-dir"},
        "DCGM_HPC_JOB_MAPPING_DIR",
        "not supported yet: Slurm jobs",
        false,
        true},
       [](ExporterWork& work, const GivenValue& given) {
         if (!given.value.empty())
           given.NotYet(work,
                        "files that map GPUs to jobs are not read yet; there is no label hpc_job");
       }},
      {{{"--kubernetes-enable-dra"},
        "KUBERNETES_ENABLE_DRA",
        "not supported yet: dynamic resource allocation",
        true},
       [](ExporterWork& work, const GivenValue& given) {
         if (given.on)
           given.NotYet(
               work,
               "devices are not allocated by ResourceClaims yet; there are no labels of claims");
       }},
      {{{"--container-labels"},
        "DCGM_EXPORTER_CONTAINER_LABELS",
        "not supported: labels of container engines",
        true},
       [](ExporterWork& work, const GivenValue& given) {
         if (given.on)
           given.NotYet(work,
                        "labels of container engines are not read; telemetry.holderLabels selects "
                        "labels of pods and runs");
       }},
      {{{"--container-runtime-socket"}, "DCGM_CONTAINER_RUNTIME_SOCKET", "accepted"},
       nullptr,
       "has no effect: labels of container engines are not read"},
      {{{"--nvidia-resource-names"}, "NVIDIA_RESOURCE_NAMES", "accepted"},
       nullptr,
       "has no effect: the agent offers the devices itself and knows all their resources"},
      {{{"--remote-hostengine-info", "-r"},
        "DCGM_REMOTE_HOSTENGINE_INFO",
        "accepted for this machine: DCGM is not used"},
       HostEngine},
      {{{"--enable-dcgm-log"}, "DCGM_EXPORTER_ENABLE_DCGM_LOG", "accepted: DCGM is not used", true},
       nullptr,
       kNoDcgm},
      {{{"--dcgm-log-level"}, "DCGM_EXPORTER_DCGM_LOG_LEVEL", "accepted: DCGM is not used"},
       nullptr,
       kNoDcgm,
       "NONE"},
      {{{"--watch-max-keep-age"}, "DCGM_EXPORTER_WATCH_MAX_KEEP_AGE", "accepted"},
       nullptr,
       kNewestOnly},
      {{{"--watch-max-keep-samples"}, "DCGM_EXPORTER_WATCH_MAX_KEEP_SAMPLES", "accepted"},
       nullptr,
       kNewestOnly},
      {{{"--web-read-timeout"},
        "DCGM_EXPORTER_WEB_READ_TIMEOUT",
        "accepted: see --web-write-timeout"},
       nullptr,
       "has no effect: http.deadline limits the whole connection"},
      {{{"--max-concurrent-scrapes"}, "DCGM_EXPORTER_MAX_CONCURRENT_SCRAPES", "accepted"},
       nullptr,
       "has no effect: pages are rendered in advance; http.connections limits connections"},
      {{{"--enable-exporter-metrics"},
        "DCGM_EXPORTER_ENABLE_EXPORTER_METRICS",
        "accepted: see penstock_*",
        true},
       nullptr,
       "has no effect: the families penstock_* always describe the agent"},
      {{{"--health-require-gpus"}, "DCGM_EXPORTER_HEALTH_REQUIRE_GPUS", "accepted", true},
       nullptr,
       "has no effect: an agent that finds no GPU keeps looking and needs no restart"},
      {{{"--disable-startup-validate"}, "DISABLE_STARTUP_VALIDATE", "accepted", true},
       nullptr,
       "has no effect: the agent starts whatever it finds, and reports it in its status"},
      {{{"--enable-gpu-bind-unbind-watch"},
        "DCGM_EXPORTER_ENABLE_GPU_BIND_UNBIND_WATCH",
        "accepted: GPUs are always watched",
        true},
       nullptr,
       "has no effect: added and removed GPUs are always detected"},
      {{{"--gpu-bind-unbind-poll-interval"},
        "DCGM_EXPORTER_GPU_BIND_UNBIND_POLL_INTERVAL",
        "accepted"},
       nullptr,
       "has no effect: the kernel reports added and removed GPUs",
       "1s"},
      {{{"--enable-pprof"}, "DCGM_EXPORTER_ENABLE_PPROF", "accepted", true},
       nullptr,
       "has no effect: the agent is not a Go program"},
      {{{"--dump-enabled"}, "DCGM_EXPORTER_DUMP_ENABLED", "accepted", true}, nullptr, kNoDumps},
      {{{"--dump-directory"}, "DCGM_EXPORTER_DUMP_DIRECTORY", "accepted"},
       nullptr,
       kNoDumps,
       "/tmp/dcgm-exporter-debug"},
      {{{"--dump-retention"}, "DCGM_EXPORTER_DUMP_RETENTION", "accepted"}, nullptr, kNoDumps, "24"},
      {{{"--dump-compression"}, "DCGM_EXPORTER_DUMP_COMPRESSION", "accepted", true},
       nullptr,
       kNoDumps,
       "true"},
  };
  return settings;
}

}  // namespace penstock::api::compat::internal
