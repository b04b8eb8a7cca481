// Parses the web configuration file of Prometheus' exporters
// (github.com/prometheus/exporter-toolkit, docs/web-configuration.md and web/tls_config.go), with
// one additional section for bearer tokens. Reads no file: the caller passes the text.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// Which certificate clients must present: Go's crypto/tls.ClientAuthType.
enum class WebClientAuth { kNone, kRequest, kRequireAny, kVerifyIfGiven, kRequireAndVerify };

enum class WebTlsVersion { k10, k11, k12, k13 };

/// tls_server_config. Of each pair of a text and a file, at most one is set. Paths in the file are
/// relative to its folder; the paths here are already joined with it.
struct WebTls {
  std::string cert, cert_file;
  std::string key, key_file;
  std::string client_ca, client_ca_file;
  WebClientAuth client_auth = WebClientAuth::kNone;
  std::vector<std::string> client_allowed_sans;
  WebTlsVersion min_version = WebTlsVersion::k12, max_version = WebTlsVersion::k13;
  std::vector<std::string> ciphers;  ///< for TLS 1.2 and older, by OpenSSL's names
  std::vector<std::string> groups;   ///< by OpenSSL's names
  bool prefer_server_ciphers = true;
};

/// rate_limit: allows `burst` requests at once, then one per interval.
struct WebRateLimit {
  base::Duration interval{};
  int burst = 0;
};

struct WebConfig {
  std::optional<WebTls> tls;
  std::vector<std::pair<std::string, std::string>> headers;    ///< added to every response
  std::map<std::string, std::string> users;                    ///< by name, bcrypt hashes
  std::map<std::string, std::array<std::uint8_t, 32>> tokens;  ///< by name, SHA-256; the
                                                               ///< additional section
                                                               ///< bearer_tokens
  std::optional<WebRateLimit> rate_limit;
  std::vector<std::string> remarks;  ///< settings that are accepted but have no effect here, or
                                     ///< are unwise; one sentence each that begins with the key's
                                     ///< name
};

/// `file` is the origin of the text, for errors and for relative paths. Returns kInvalidArgument
/// with all mistakes at once, each with file:line:column and "did you mean"; no message quotes a
/// secret. An empty text protects nothing.
base::Result<WebConfig> ParseWebConfig(std::string_view text, std::string_view file);

}  // namespace penstock::api::compat
