// The configuration that was applied last, kept on disk. An agent that starts uses it where its
// configuration file is invalid, and until the API server has answered.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/options.h"
#include "base/core/result.h"

namespace penstock::app {

/// A text that was applied.
struct KeptText {
  std::string from;  ///< the source: a file's path, or "namespace/name" of the configured
                     ///< ConfigMap; the text is used for the same source only
  std::string
      origin;  ///< "file /etc/penstock/node.yaml", "ConfigMap gpu/config, key a100 (label ...)"
  std::string text;   ///< of a ConfigMap: empty where it requests nothing
  std::string since;  ///< RFC 3339
  bool operator==(const KeptText&) const = default;
};

struct KeptConfiguration {
  std::optional<KeptText> file, config_map;
  bool operator==(const KeptConfiguration&) const = default;
};

/// The value of KeptText::from for the configuration file of these settings.
std::string NameOfFile(const Settings& settings);
/// ... and for this ConfigMap.
std::string NameOfConfigMap(const api::ConfigMapConfig& where);

std::string KeptConfigurationPath(const std::string& state_dir);

std::string EncodeKept(const KeptConfiguration& kept);
/// Errors: kFailedPrecondition where a newer version of the agent wrote the file, kDataLoss where
/// it is damaged.
base::Result<KeptConfiguration> DecodeKept(std::string_view text, std::string_view file);

/// Returns what was kept in this folder; empty where it is damaged or of a newer version
/// (os::LoadKept). Blocks.
base::Result<KeptConfiguration> LoadKeptConfiguration(const std::string& state_dir);

/// The configurations that the agent had last, by what it kept: that of its file, and, if another
/// one, that of the ConfigMap which its file names, as it was in force. The command line and the
/// environment are those of `settings`; none are kept. Empty if nothing was kept, or the text is
/// invalid with these.
std::vector<api::NodeConfig> LastConfigs(const Settings& settings, const KeptConfiguration& kept);

/// The text of the configuration file, as ReadConfigText returned it; where that is not of these
/// settings' revision, the text that was applied last, if it is. Blocks.
base::Result<std::string> OwnText(const Settings& settings, const std::string& state_dir,
                                  base::Result<std::string> text);

/// Like ResolveAll, with OwnText. Where the file is invalid or cannot be read, uses the text of
/// it that was applied last and says so in Resolved::problem. Returns the file's own error where no
/// text of it was kept. Blocks.
base::Result<Resolved> ResolveForStart(const Settings& settings);

}  // namespace penstock::app
