// The web configuration file of Prometheus' exporters (github.com/prometheus/exporter-toolkit, docs/web-configuration.md and
// web/tls_config.go), with one section of ours for bearer tokens. Reads no file but the text it is given.
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

/// What is asked of clients: Go's crypto/tls.ClientAuthType.
enum class WebClientAuth { kNone, kRequest, kRequireAny, kVerifyIfGiven, kRequireAndVerify };

enum class WebTlsVersion { k10, k11, k12, k13 };

/// tls_server_config. Of each pair, text and file, one at most is there; paths are relative to the configuration file's folder and here
/// joined with it.
struct WebTls {
  std::string cert, cert_file;
  std::string key, key_file;
  std::string client_ca, client_ca_file;
  WebClientAuth client_auth = WebClientAuth::kNone;
  std::vector<std::string> client_allowed_sans;
  WebTlsVersion min_version = WebTlsVersion::k12, max_version = WebTlsVersion::k13;
  std::vector<std::string> ciphers;  ///< up to TLS 1.2, by OpenSSL's names
  std::vector<std::string> groups;   ///< by OpenSSL's names
  bool prefer_server_ciphers = true;
};

/// rate_limit: so many requests at once, then one in the interval.
struct WebRateLimit {
  base::Duration interval{};
  int burst = 0;
};

struct WebConfig {
  std::optional<WebTls> tls;
  std::vector<std::pair<std::string, std::string>> headers;    ///< of every answer
  std::map<std::string, std::string> users;                    ///< by name, bcrypt hashes
  std::map<std::string, std::array<std::uint8_t, 32>> tokens;  ///< by name, SHA-256; the section bearer_tokens, which is ours
  std::optional<WebRateLimit> rate_limit;
  std::vector<std::string> remarks;  ///< accepted, and without effect here or unwise; one sentence each that begins with the key's name
};

/// `file` is where the text comes from: for errors, and for relative paths. Everything wrong at once (kInvalidArgument), with
/// file:line:column and "did you mean"; no message quotes a secret. An empty text protects nothing.
base::Result<WebConfig> ParseWebConfig(std::string_view text, std::string_view file);

}  // namespace penstock::api::compat
