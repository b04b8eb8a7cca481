// What is said to an exec plugin and what it prints: ExecCredential, client.authentication.k8s.io. Starts nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "edge/kube/access.h"

namespace penstock::edge::kube {

struct ExecCredential {
  std::string token;
  std::string certificate, key;  ///< PEM; both or none
  std::optional<base::WallTime> expires;
};

/// What an exec plugin printed. kInvalidArgument says what is wrong; secrets are not repeated. Pure.
base::Result<ExecCredential> ParseExecCredential(std::string_view text, const ExecPlugin& plugin);

/// RFC 3339 with any offset and fraction, as plugins write it ("2026-11-21T03:42:00Z", "...+02:00"); nothing where it is none.
std::optional<base::WallTime> ParseRfc3339(const std::string& text);

/// The plugin's whole environment: ours, its own, and KUBERNETES_EXEC_INFO. `authority` is the content of the cluster's CA.
std::vector<std::string> ExecEnvironment(const Access& access, const ExecPlugin& plugin, const std::string& authority);

}  // namespace penstock::edge::kube
