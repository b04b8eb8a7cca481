// What the files of this room share while dcgm-exporter's settings are read. Private to api/compat.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/exporter_options.h"
#include "api/node_config.h"
#include "base/core/document.h"

namespace penstock::api::compat::internal {

/// What is changed, and what is to be said of it.
struct ExporterWork {
  NodeConfig& config;
  std::vector<std::string> problems, not_yet, remarks;
  bool pod_labels = false;               ///< --kubernetes-enable-pod-labels
  std::vector<std::string> label_globs;  ///< of --kubernetes-pod-label-allowlist-regex
  std::string label_globs_where;         ///< under which name these were said; empty: they were not
};

/// A value that was given: under which name, and as what.
struct ExporterSaid {
  const std::string& where;
  const std::string& value;
  bool on = false;  ///< of what is on or off

  void Problem(ExporterWork& work, const std::string& what) const { work.problems.push_back(where + ": " + what); }
  void NotYet(ExporterWork& work, const std::string& what) const { work.not_yet.push_back(where + ": " + what); }
  void Remark(ExporterWork& work, const std::string& what) const { work.remarks.push_back(where + ": " + what); }
};

struct ExporterSetting {
  ExporterOption option;
  void (*apply)(ExporterWork& work, const ExporterSaid& said) = nullptr;  ///< null: accepted, and without effect here
  std::string_view why;                                                   ///< of that: what the remark says
  std::string_view preset;                                                ///< the exporter's own default, of which nothing is said
};
const std::vector<ExporterSetting>& ExporterSettings();

/// "f", "g", "i", "g:0,2-4", "g+i:1": which devices the exporter watches.
struct DeviceChoice {
  bool wellformed = false;
  bool some = false;  ///< only those with these numbers
};
DeviceChoice ReadDeviceChoice(std::string_view text);

/// Go's strconv.ParseBool.
std::optional<bool> ParseGoBool(std::string_view text);

/// The YAML file. Its problems go to `problems`, all else to the work.
void ReadExporterFile(const base::Value& document, base::Problems& problems, ExporterWork& work);

}  // namespace penstock::api::compat::internal
