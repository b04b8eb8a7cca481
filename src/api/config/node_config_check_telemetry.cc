// Checks the sections `telemetry`, `usage`, `http` and `page`.
#include <algorithm>
#include <cctype>
#include <set>

#include "api/config/node_config_check.h"
#include "api/listen.h"
#include "base/core/strings.h"

namespace penstock::api::internal {

namespace {

/// Reports globs that cannot match, because no name contains such a character.
void CheckGlobs(std::string_view key, const std::vector<std::string>& globs,
                std::string_view others, const char* what, const ReportProblem& report) {
  for (std::size_t i = 0; i < globs.size(); ++i) {
    const bool can = !globs[i].empty() && std::ranges::all_of(globs[i], [others](unsigned char c) {
      return (c < 0x80 && std::isalnum(c) != 0) ||
             others.find(static_cast<char>(c)) != std::string_view::npos;
    });
    if (!can)
      report(base::Item(key, i),
             "\"" + globs[i] + "\" cannot match any " + what + "; write a glob with * and ?");
  }
}

void CheckCounters(const TelemetryConfig& telemetry, const ReportProblem& report) {
  if (!telemetry.counters.empty() &&
      (!telemetry.counters_file.empty() || !telemetry.counters_map.empty()))
    report("telemetry.counters",
           "says what telemetry.countersFile and telemetry.countersConfigMap say, too; leave one "
           "of them out");
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < telemetry.counters.size(); ++i) {
    const MetricRow& row = telemetry.counters[i];
    const std::string key = base::Item("telemetry.counters", i);
    if (row.field.empty()) report(key + ".field", "must not be empty");
    if (!seen.insert(row.field).second)
      report(key + ".field",
             "\"" + row.field + "\" appears twice; a family has one type and one help");
  }
  const auto parts = base::Split(telemetry.counters_map, ':');
  if (!telemetry.counters_map.empty() &&
      (parts.size() != 2 || !IsObjectName(parts[0], false) || !IsObjectName(parts[1], true)))
    report("telemetry.countersConfigMap",
           "\"" + telemetry.counters_map + "\" is not a ConfigMap: write NAMESPACE:NAME");
}

void CheckNames(const std::vector<MetricNames>& names, const ReportProblem& report) {
  if (names.empty())
    report("telemetry.names", "is empty; name at least one of accelerator, dcgm, dcgm-4.7");
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<std::ptrdiff_t>(i))
      report(base::Item("telemetry.names", i),
             "\"" + std::string(ToString(names[i])) + "\" is named twice");
}

/// "https://gpu2.example.com:9400/" without scheme and final slash; empty if it is no address of an
/// agent.
std::string_view AuthorityOf(std::string_view url) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!url.starts_with(scheme)) continue;
    url.remove_prefix(scheme.size());
    if (url.ends_with('/')) url.remove_suffix(1);
    const bool plain = std::all_of(url.begin(), url.end(), [](unsigned char c) {
      return (c < 0x80 && std::isalnum(c) != 0) ||
             std::string_view("-._:[]").find(static_cast<char>(c)) != std::string_view::npos;
    });
    return plain ? url : std::string_view();
  }
  return {};
}

bool IsLoopback(std::string_view authority) {
  const std::string_view host = authority.substr(0, authority.rfind(':'));
  return host == "localhost" || host == "[::1]" ||
         (host.starts_with("127.") &&
          host.find_first_not_of("0123456789.") == std::string_view::npos);
}

void CheckPage(const PageConfig& page, const ReportProblem& report) {
  constexpr std::size_t kMostNodes = 64;
  if (page.nodes.size() > kMostNodes)
    report("page.nodes", "has " + std::to_string(page.nodes.size()) + " nodes; at most " +
                             std::to_string(kMostNodes) + " can be shown");
  for (std::size_t i = 0; i < page.nodes.size(); ++i) {
    const std::string& url = page.nodes[i];
    const std::string key = base::Item("page.nodes", i);
    const std::string_view authority = AuthorityOf(url);
    if (authority.empty()) {
      report(key, "\"" + url +
                      "\" is not the address of an agent; write for example "
                      "https://gpu2.example.com:9400");
    } else if (url.starts_with("http:") && !IsLoopback(authority) &&
               !page.credentials_file.empty()) {
      report(key, "\"" + url + "\" would get the credentials unencrypted; write https");
    }
  }
}

}  // namespace

void CheckTelemetry(const NodeConfig& config, const ReportProblem& report) {
  const TelemetryConfig& telemetry = config.telemetry;
  CheckNames(telemetry.names, report);
  CheckGlobs("telemetry.exclude", telemetry.exclude, "_:*?", "family of metrics", report);
  CheckGlobs("telemetry.include", telemetry.include, "_:*?", "family of metrics", report);
  CheckGlobs("telemetry.holderLabels", telemetry.holder_labels, "-_./*?", "key of a label", report);
  CheckCounters(telemetry, report);
  if (auto listen = ParseListen(config.http.listen); !listen.ok())
    report("http.listen", listen.error().message());
  CheckPage(config.page, report);
}

}  // namespace penstock::api::internal
