// Encodes the input of an exec plugin and decodes its output: ExecCredential,
// client.authentication.k8s.io. Starts no process.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "protocol/kube/credentials/access.h"

namespace penstock::protocol::kube {

struct ExecCredential {
  std::string token;
  std::string certificate, key;  ///< PEM; both or none
  std::optional<base::WallTime> expires;
};

/// Parses what an exec plugin printed. kInvalidArgument says what is wrong, without secrets. Pure.
base::Result<ExecCredential> ParseExecCredential(std::string_view text, const ExecPlugin& plugin);

/// Parses RFC 3339 with any offset and fraction, as plugins write it ("2026-11-21T03:42:00Z",
/// "...+02:00"); nullopt if the text is not RFC 3339.
std::optional<base::WallTime> ParseRfc3339(const std::string& text);

/// The plugin's complete environment: ours, its own, and KUBERNETES_EXEC_INFO. `authority` is the
/// content of the cluster's CA.
std::vector<std::string> ExecEnvironment(const ClusterAccess& access, const ExecPlugin& plugin,
                                         const std::string& authority);

}  // namespace penstock::protocol::kube
