// Maps Go's names for TLS suites, curves and versions to OpenSSL's; private to api/compat.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/compat/web_config.h"

namespace penstock::api::compat::internal {

/// Returns OpenSSL's name of a suite that Go calls secure (crypto/tls.CipherSuites); "" for a suite
/// of TLS 1.3, which is always available.
std::optional<std::string_view> FindCipher(std::string_view go);
std::vector<std::string> CipherNames();

/// Returns OpenSSL's name of a curve.
std::optional<std::string_view> FindGroup(std::string_view go);
std::vector<std::string> GroupNames();

std::optional<WebTlsVersion> FindTlsVersion(std::string_view text);
std::vector<std::string> TlsVersionNames();

std::optional<WebClientAuth> FindClientAuth(std::string_view text);
std::vector<std::string> ClientAuthNames();

/// Returns the headers that exporter-toolkit lets a file set (web/handler.go), with the values that
/// each may have; an empty list allows any value.
const std::vector<std::pair<std::string, std::vector<std::string>>>& HeaderValues();

/// Returns the cost of a bcrypt hash, 4 to 31; nothing for any other text.
std::optional<int> BcryptCost(std::string_view hash);

}  // namespace penstock::api::compat::internal
