// Types and functions shared by the files of this folder that read dcgm-exporter's settings.
// Private to api/compat.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/nvidia/exporter_options.h"
#include "api/config/node_config.h"
#include "base/core/document.h"

namespace penstock::api::compat::internal {

/// The configuration that settings change, and the messages about them.
struct ExporterWork {
  NodeConfig& config;
  std::vector<std::string> problems, not_yet, remarks;
  bool pod_labels = false;               ///< --kubernetes-enable-pod-labels
  std::vector<std::string> label_globs;  ///< of --kubernetes-pod-label-allowlist-regex
  std::string label_globs_where;         ///< the name under which these were set; empty: they
                                         ///< were not set
};

/// A value with its origin.
struct GivenValue {
  const std::string& where;
  const std::string& value;
  bool on = false;  ///< for boolean settings

  void Problem(ExporterWork& work, const std::string& what) const {
    work.problems.push_back(where + ": " + what);
  }
  void NotYet(ExporterWork& work, const std::string& what) const {
    work.not_yet.push_back(where + ": " + what);
  }
  void Remark(ExporterWork& work, const std::string& what) const {
    work.remarks.push_back(where + ": " + what);
  }
};

struct ExporterSetting {
  ExporterOption option;
  void (*apply)(ExporterWork& work,
                const GivenValue& given) = nullptr;  ///< null: accepted, without effect here
  std::string_view why;                              ///< for a setting without effect: the text
                                                     ///< of the remark
  std::string_view preset;  ///< the exporter's own default, which needs no remark
};
const std::vector<ExporterSetting>& ExporterSettings();

/// Which devices the exporter watches: "f", "g", "i", "g:0,2-4", "g+i:1".
struct DeviceChoice {
  bool wellformed = false;
  bool some = false;  ///< only the devices with these numbers
};
DeviceChoice ReadDeviceChoice(std::string_view text);

/// Go's strconv.ParseBool.
std::optional<bool> ParseGoBool(std::string_view text);

/// Reads the YAML file. Its problems go to `problems`, everything else to `work`.
void ReadExporterFile(const base::Value& document, base::Problems& problems, ExporterWork& work);

}  // namespace penstock::api::compat::internal
