// The configuration that was applied last, on disk: what counts for an agent that starts where its file is bad, or before the API server
// has answered.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/options.h"
#include "base/core/result.h"

namespace penstock::app {

/// A text that was applied.
struct KeptText {
  std::string from;    ///< a file's path, or "namespace/name" of a ConfigMap as it is configured: a text counts for the same one alone
  std::string origin;  ///< "file /etc/penstock/node.yaml", "ConfigMap gpu/config, key a100 (label ...)"
  std::string text;    ///< of a ConfigMap: empty where it wishes for nothing
  std::string since;   ///< RFC 3339
  bool operator==(const KeptText&) const = default;
};

struct KeptConfiguration {
  std::optional<KeptText> file, config_map;
  bool operator==(const KeptConfiguration&) const = default;
};

/// What KeptText::from is for the file of these settings.
std::string NameOfFile(const Settings& settings);

std::string KeptConfigurationPath(const std::string& state_dir);

std::string EncodeKept(const KeptConfiguration& kept);
/// kFailedPrecondition where a newer version of the agent wrote it, kDataLoss where it is damaged.
base::Result<KeptConfiguration> DecodeKept(std::string_view text, std::string_view file);

/// What was kept in this folder; nothing where it is damaged or of a newer version (os::LoadKept). Blocks.
base::Result<KeptConfiguration> LoadKeptConfiguration(const std::string& state_dir);

/// ResolveAll; where the file is bad or cannot be read, what it said when it was applied last, and Resolved::problem says so. The error is
/// the file's own where nothing was kept of it. Blocks.
base::Result<Resolved> ResolveForStart(const Settings& settings);

}  // namespace penstock::app
