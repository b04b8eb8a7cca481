// Tables of names: crypto/tls of Go 1.25 (cipher_suites.go, common.go), `openssl ciphers -stdname`
// of OpenSSL 3.0.
#include "api/compat/web_config_names.h"

#include <algorithm>
#include <array>

#include "base/core/strings.h"

namespace penstock::api::compat::internal {

namespace {

struct Pair {
  std::string_view go, openssl;
};

constexpr std::array<Pair, 17> kCiphers = {{
    {"TLS_AES_128_GCM_SHA256", ""},
    {"TLS_AES_256_GCM_SHA384", ""},
    {"TLS_CHACHA20_POLY1305_SHA256", ""},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    // Secure up to Go 1.21: files written at that time contain them.
    {"TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"},
    {"TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"},
}};

constexpr std::array<Pair, 4> kGroups = {
    {{"CurveP256", "P-256"}, {"CurveP384", "P-384"}, {"CurveP521", "P-521"}, {"X25519", "X25519"}}};

template <std::size_t size>
std::optional<std::string_view> Find(const std::array<Pair, size>& pairs, std::string_view go) {
  const auto found = std::ranges::find(pairs, go, &Pair::go);
  return found == pairs.end() ? std::nullopt : std::optional(found->openssl);
}

template <std::size_t size>
std::vector<std::string> Names(const std::array<Pair, size>& pairs) {
  std::vector<std::string> names;
  for (const Pair& pair : pairs) names.emplace_back(pair.go);
  return names;
}

/// Returns the index of a text in a list.
std::optional<std::size_t> IndexOf(const std::vector<std::string>& names, std::string_view text) {
  const auto found = std::ranges::find(names, text);
  return found == names.end() ? std::nullopt
                              : std::optional(static_cast<std::size_t>(found - names.begin()));
}

}  // namespace

std::optional<std::string_view> FindCipher(std::string_view go) { return Find(kCiphers, go); }
std::vector<std::string> CipherNames() { return Names(kCiphers); }
std::optional<std::string_view> FindGroup(std::string_view go) { return Find(kGroups, go); }
std::vector<std::string> GroupNames() { return Names(kGroups); }

std::vector<std::string> TlsVersionNames() { return {"TLS10", "TLS11", "TLS12", "TLS13"}; }

std::optional<WebTlsVersion> FindTlsVersion(std::string_view text) {
  const auto index = IndexOf(TlsVersionNames(), text);
  return index ? std::optional(static_cast<WebTlsVersion>(*index)) : std::nullopt;
}

std::vector<std::string> ClientAuthNames() {
  return {"NoClientCert", "RequestClientCert", "RequireAnyClientCert", "VerifyClientCertIfGiven",
          "RequireAndVerifyClientCert"};
}

std::optional<WebClientAuth> FindClientAuth(std::string_view text) {
  if (text == "RequireClientCert")
    return WebClientAuth::kRequireAny;  // its former name;
                                        // exporter-toolkit still
                                        // accepts it
  const auto index = IndexOf(ClientAuthNames(), text);
  return index ? std::optional(static_cast<WebClientAuth>(*index)) : std::nullopt;
}

const std::vector<std::pair<std::string, std::vector<std::string>>>& HeaderValues() {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> values = {
      {"Content-Security-Policy", {}},
      {"X-Frame-Options", {"deny", "sameorigin"}},
      {"X-Content-Type-Options", {"nosniff"}},
      {"X-XSS-Protection", {}},
      {"Strict-Transport-Security", {}}};
  return values;
}

std::optional<int> BcryptCost(std::string_view hash) {
  // "$2y$10$", 22 letters of salt and 31 of hash: crypt(5).
  constexpr std::size_t kLength = 60;
  const auto letter = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '/';
  };
  if (hash.size() != kLength || !hash.starts_with("$2") ||
      std::string_view("aby").find(hash[2]) == std::string_view::npos)
    return std::nullopt;
  if (hash[3] != '$' || hash[6] != '$' || !std::all_of(hash.begin() + 7, hash.end(), letter))
    return std::nullopt;
  const auto cost = base::ParseUint(hash.substr(4, 2));
  return cost && *cost >= 4 && *cost <= 31 ? std::optional(static_cast<int>(*cost)) : std::nullopt;
}

}  // namespace penstock::api::compat::internal
