// Keys and rules: ROCm, device-metrics-exporter, docs/configuration/configmap.md,
// pkg/exporter/proto/exporterconfig.proto and pkg/amdgpu/gpuagent/gpuagent_gpu_metrics.go.
#include "api/compat/amd/metrics_config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "base/core/document.h"
#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::api::compat {
namespace {

using base::MapReader;
using base::Problems;
using base::Value;

// globals/constants.go.
constexpr std::size_t kMostCustomLabels = 10, kMostPodLabels = 20;
constexpr std::size_t kLongestValue = 1024, kLongestName = 128, kMostRemarks = 20;

/// Labels that the exporter's series always have, as far as they have a value.
constexpr std::array<std::string_view, 14> kAlways{"gpu_id",
                                                   "gpu_partition_id",
                                                   "gpu_compute_partition_type",
                                                   "card_model",
                                                   "serial_number",
                                                   "gpu_memory_partition_type",
                                                   "hostname",
                                                   "pod",
                                                   "namespace",
                                                   "container",
                                                   "job_id",
                                                   "job_user",
                                                   "job_partition",
                                                   "deployment_mode"};
/// Labels of single families.
constexpr std::array<std::string_view, 7> kIndices{
    "hbm_index", "vcn_index", "jpeg_index", "xcc_index", "link_index", "clock_index", "clock_type"};
constexpr std::string_view kCluster = "cluster_name", kPodUid = "pod_uuid",
                           kProcesses = "kfd_process_id";

bool IsIn(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// A name of a label, or of a metric, which may have colons.
bool IsName(std::string_view text, bool metric) {
  const auto fits = [metric](unsigned char c, bool digits) {
    return c < 0x80 && (c == '_' || (metric && c == ':') || std::isalpha(c) != 0 ||
                        (digits && std::isdigit(c) != 0));
  };
  return !text.empty() && text.size() <= kLongestName && fits(text.front(), false) &&
         std::ranges::all_of(text, [&fits](unsigned char c) { return fits(c, true); });
}

/// "0,2-3,7".
std::optional<std::vector<int>> ReadSelector(std::string_view text) {
  constexpr std::size_t kMost = 4096, kLongest = 16384;  // numbers, bytes
  if (text.size() > kLongest) return std::nullopt;
  std::vector<bool> has(kMost);
  for (const std::string& one : base::Split(text, ',')) {
    const auto dash = one.find('-');
    const auto first = base::ParseUint(base::Trim(std::string_view(one).substr(0, dash)));
    const auto last = dash == std::string::npos
                          ? first
                          : base::ParseUint(base::Trim(std::string_view(one).substr(dash + 1)));
    if (!first || !last || *first > *last || *last >= kMost) return std::nullopt;
    std::fill_n(has.begin() + static_cast<std::ptrdiff_t>(*first), *last - *first + 1, true);
  }
  std::vector<int> numbers;
  for (std::size_t n = 0; n < kMost; ++n)
    if (has[n]) numbers.push_back(static_cast<int>(n));
  return numbers;
}

class ConfigReader {
 public:
  ConfigReader(Problems& problems, std::span<const CounterField> fields)
      : problems_(problems), fields_(fields) {}

  MetricsConfig Read(const Value& document) {
    MapReader top(document, "", problems_);
    constexpr int kMostPorts = 65535;
    if (const auto port = top.Int("ServerPort", 0, kMostPorts); port && *port > 0)
      config_.port = static_cast<int>(*port);
    if (const Value* gpus = top.Map("GPUConfig")) ReadGpus(*gpus);
    if (const Value* common = top.Map("CommonConfig")) ReadCommon(*common);
    HasNoEffect(top, "NICConfig", "the metrics of network cards are not served");
    HasNoEffect(top, "IFOEConfig", "the metrics of network cards are not served");
    top.Finish();
    return std::move(config_);
  }

 private:
  void HasNoEffect(MapReader& reader, const char* key, const std::string& why) {
    if (reader.Any(key) != nullptr)
      problems_.Remark(reader.mark(key), reader.Path(key) + ": has no effect: " + why);
  }

  void ReadGpus(const Value& map) {
    MapReader reader(map, "GPUConfig", problems_);
    ReadFields(reader);
    ReadLabels(reader);
    ReadCustomLabels(reader);
    ReadPodLabels(reader);
    if (const auto selector = reader.String("Selector"); selector && !selector->empty()) {
      if (auto devices = ReadSelector(*selector))
        config_.settings.devices = *std::move(devices);
      else
        problems_.Remark(reader.mark("Selector"),
                         reader.Path("Selector") + ": \"" + base::Printable(*selector) +
                             "\" is no list of indices, and all GPUs are shown; write for example "
                             "\"0,2-3,7\"");
    }
    HasNoEffect(reader, "HealthThresholds",
                "any uncorrectable error is a fault; health.policy says what follows");
    if (const Value* profiler = reader.Any("ProfilerMetrics");
        profiler != nullptr && profiler->map != nullptr &&
        std::ranges::any_of(*profiler->map,
                            [](const Value::Entry& entry) { return entry.value.boolean; }))
      problems_.Remark(reader.mark("ProfilerMetrics"),
                       reader.Path("ProfilerMetrics") +
                           ": has no effect: fields GPU_PROF_* need AMD's profiler");
    reader.Finish();
  }

  void ReadFields(MapReader& reader) {
    const auto names = reader.Strings("Fields");
    if (!names || names->empty()) return;
    constexpr std::size_t kMost = 1024;
    if (names->size() > kMost)
      return reader.Problem("Fields", "has more than " + std::to_string(kMost) + " names");
    std::set<std::string> seen;
    for (std::size_t i = 0; i < names->size(); ++i) {
      const std::string name = base::ToLower((*names)[i]);
      const std::string where = base::Item(reader.Path("Fields"), i);
      const auto field = std::ranges::find_if(
          fields_, [&name](const CounterField& one) { return one.name == name && !one.text; });
      if (field == fields_.end()) {
        problems_.Remark(reader.mark("Fields"),
                         where + ": \"" + base::Printable((*names)[i]) +
                             "\" is no field of the exporter, and shows nothing; \"penstock "
                             "metrics list\" has those that there are");
        continue;
      }
      if (!seen.insert(name).second) continue;
      if (!field->unavailable.empty())
        problems_.Remark(reader.mark("Fields"), where + ": \"" + (*names)[i] + "\" is not shown: " +
                                                    std::string(field->unavailable));
      config_.rows.push_back({name, "gauge", ""});
    }
    if (seen.empty())
      reader.Problem("Fields", "has no field of the exporter (\"" +
                                   base::Printable(names->front()) +
                                   "\"); leave it out for all fields, or name one as "
                                   "\"GPU_GFX_ACTIVITY\"");
  }

  void ReadLabels(MapReader& reader) {
    const auto names = reader.Strings("Labels");
    std::set<std::string> seen;
    for (std::size_t i = 0; names && i < names->size(); ++i) {
      const std::string name = base::ToLower((*names)[i]);
      const std::string where =
          base::Item(reader.Path("Labels"), i) + ": \"" + base::Printable((*names)[i]) + "\"";
      const auto remark = [&](const std::string& what) {
        problems_.Remark(reader.mark("Labels"), where + what);
      };
      const bool known = std::ranges::any_of(
          fields_, [&name](const CounterField& one) { return one.name == name && one.text; });
      if (known && seen.insert(name).second)
        config_.rows.push_back({name, "label", ""});
      else if (name == kPodUid)
        config_.settings.pod_uid = true;
      else if (name == kProcesses)
        remark(" has no effect: accelerator_process_* show processes (telemetry.processes)");
      else if (name == "job_user" || name == "job_partition" || name == "deployment_mode")
        remark(" has no value here");
      else if (!known && !IsIn(kAlways, name) && name != kCluster)
        remark(
            " is no label of the exporter; GPU_UUID, CARD_SERIES, CARD_VENDOR, DRIVER_VERSION, "
            "VBIOS_VERSION and POD_UUID can be added, others with CustomLabels");
    }
  }

  /// Calls `take` with the first `most` pairs of a map of texts.
  template <typename Take>
  void ReadTexts(MapReader& reader, const char* key, std::size_t most, const Take& take) {
    const Value* map = reader.Map(key);
    if (map == nullptr) return;
    std::size_t taken = 0;
    for (const Value::Entry& entry : *map->map) {
      const std::string where = reader.Path(key) + "." + base::Printable(entry.key);
      const std::string name = base::ToLower(entry.key);
      if (entry.value.kind != Value::Kind::kString)
        problems_.Add(entry.value.mark, where + ": is not a string: put it in quotes");
      else if (entry.value.text.size() > kLongestValue)
        problems_.Add(entry.value.mark, where + ": has " + std::to_string(entry.value.text.size()) +
                                            " bytes; at most " + std::to_string(kLongestValue) +
                                            " can be shown with each series");
      else if (!IsName(name, false) || name.starts_with("__"))
        problems_.Add(entry.mark, where +
                                      ": is no name of a label: letters, digits and _, with a "
                                      "letter first");
      else if (IsIn(kAlways, name) || IsIn(kIndices, name) || name == kPodUid || IsField(name))
        problems_.Remark(entry.mark, where +
                                         ": is a label of the exporter's own and stays as it "
                                         "is; choose another name");
      else if (++taken > most)
        problems_.Remark(entry.mark, where + ": is left out: at most " + std::to_string(most) +
                                         " are shown, as with the exporter");
      else
        take(name, entry);
    }
  }

  bool IsField(std::string_view name) const {
    return std::ranges::find(fields_, name, &CounterField::name) != fields_.end();
  }

  void ReadCustomLabels(MapReader& reader) {
    ReadTexts(reader, "CustomLabels", kMostCustomLabels,
              [this](const std::string& name, const Value::Entry& entry) {
                config_.settings.labels[name] = entry.value.text;
              });
  }

  void ReadPodLabels(MapReader& reader) {
    ReadTexts(reader, "ExtraPodLabels", kMostPodLabels,
              [this](const std::string& name, const Value::Entry& entry) {
                const std::string& key = entry.value.text;
                const bool can = !key.empty() && std::ranges::all_of(key, [](unsigned char c) {
                  return c < 0x80 && (std::isalnum(c) != 0 ||
                                      std::string_view("-._/").find(static_cast<char>(c)) !=
                                          std::string_view::npos);
                });
                if (can)
                  config_.settings.holder_labels[name] = key;
                else
                  problems_.Add(entry.value.mark, "GPUConfig.ExtraPodLabels." + name + ": \"" +
                                                      base::Printable(key) +
                                                      "\" is no key of a pod's label");
              });
  }

  void ReadCommon(const Value& map) {
    MapReader reader(map, "CommonConfig", problems_);
    if (const auto prefix = reader.String("MetricsFieldPrefix"); prefix && !prefix->empty()) {
      if (IsName(*prefix, true))
        config_.settings.prefix = *prefix;
      else
        problems_.Remark(reader.mark("MetricsFieldPrefix"),
                         reader.Path("MetricsFieldPrefix") + ": \"" + base::Printable(*prefix) +
                             "\" cannot begin the name of a metric, and is left out, as with the "
                             "exporter; write for example \"amd_\"");
    }
    HasNoEffect(reader, "HealthService", "health.poll says how often devices are read");
    HasNoEffect(reader, "Logging", "the agent's log has settings of its own");
    HasNoEffect(reader, "ProfilerConfig", "fields GPU_PROF_* need AMD's profiler");
    HasNoEffect(reader, "Debug", "the agent has no such interface");
    reader.Finish();
  }

  Problems& problems_;
  const std::span<const CounterField> fields_;
  MetricsConfig config_;
};

}  // namespace

Result<MetricsConfig> TranslateMetricsConfig(std::string_view text, std::string_view file,
                                             std::span<const CounterField> fields) {
  ASSIGN(const Value document, base::ParseJson(text, file));
  Problems problems{std::string(file), base::ReadingMode::kLenient};
  MetricsConfig config = ConfigReader(problems, fields).Read(document);
  if (!problems.empty()) return problems.ToError();
  std::vector<std::string> remarks = problems.Remarks();
  const std::size_t more = remarks.size() > kMostRemarks ? remarks.size() - kMostRemarks : 0;
  remarks.resize(remarks.size() - more);
  for (std::string& remark : remarks) remark = std::string(file) + ": " + remark;
  if (more > 0)
    remarks.push_back(std::string(file) + ": " + std::to_string(more) + " more remarks");
  config.remarks = std::move(remarks);
  return config;
}

}  // namespace penstock::api::compat
