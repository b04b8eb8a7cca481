// Interprets the sections of the file; the names that TLS uses are in web_config_names.cc.
#include "api/compat/web_config.h"

#include <algorithm>
#include <cctype>

#include "api/compat/nvidia/device_plugin_reader.h"
#include "api/compat/web_config_names.h"
#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::api::compat {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;
using internal::MapAt;

constexpr int kSlowCost = 14;  // a second or more for one password
constexpr int kMaxCost = 18;   // what exporter-toolkit's documentation calls a few seconds; each
                               // increment doubles the time
constexpr std::string_view kTokenPrefix = "sha256:";

/// Joins the folder of the file and a path as Go's path/filepath.Join does.
std::string BesideFile(std::string_view file, const std::string& path) {
  const std::size_t slash = file.rfind('/');
  if (path.empty() || path.front() == '/' || slash == std::string_view::npos) return path;
  return std::string(file.substr(0, slash + 1)) + path;
}

/// Returns "did you mean" with the nearest of these names, or all of them.
std::string Suggest(const std::string& word, const std::vector<std::string>& names) {
  if (const auto near = base::Nearest(word, names)) return "; did you mean \"" + *near + "\"?";
  return "; known here: " + base::Join(names, ", ");
}

class WebConfigReader {
 public:
  WebConfigReader(Problems& problems, std::string_view file) : problems_(problems), file_(file) {}

  WebConfig Read(const Value& document) {
    MapReader top(document, "", problems_);
    ReadTls(top);
    ReadHttp(top);
    ReadUsers(top);
    ReadTokens(top);
    ReadRate(top);
    top.Finish();
    if (!config_.tls && (!config_.users.empty() || !config_.tokens.empty()))
      Remark("basic_auth_users",
             "without tls_server_config, passwords and tokens cross the network in clear text");
    return std::move(config_);
  }

 private:
  void Remark(std::string_view key, const std::string& text) {
    config_.remarks.push_back(std::string(key) + ": " + text);
  }

  /// Reads a text or the path of its file.
  void ReadPair(MapReader& reader, const std::string& name, std::string& text, std::string& path) {
    if (auto inline_text = reader.String(name)) text = *std::move(inline_text);
    if (auto file = reader.String(name + "_file")) path = BesideFile(file_, *file);
    if (!text.empty() && !path.empty())
      reader.Problem(name, "and " + name + "_file exclude each other; keep one");
  }

  void ReadVersion(MapReader& reader, std::string_view key, WebTlsVersion& version) {
    const auto text = reader.String(key);
    if (!text) return;
    if (const auto known = internal::FindTlsVersion(*text)) {
      version = *known;
      if (*known < WebTlsVersion::k12 && key == "min_version")
        Remark(reader.Path(key),
               *text + " is insecure and allows weak ciphers; every client supports TLS12");
    } else {
      reader.Problem(key, "\"" + *text + "\" is not a version of TLS" +
                              Suggest(*text, internal::TlsVersionNames()));
    }
  }

  void ReadClientAuth(MapReader& reader, WebTls& tls) {
    const auto text = reader.String("client_auth_type");
    if (!text || text->empty()) return;
    if (const auto known = internal::FindClientAuth(*text)) {
      tls.client_auth = *known;
    } else {
      reader.Problem("client_auth_type", "\"" + *text +
                                             "\" is not a type of client authentication" +
                                             Suggest(*text, internal::ClientAuthNames()));
    }
  }

  void ReadCiphers(MapReader& reader, WebTls& tls) {
    const Value* list = reader.List("cipher_suites");
    if (list == nullptr || list->list->empty()) return;
    for (const Value& item : *list->list) {
      const auto cipher = internal::FindCipher(item.text);
      if (!cipher) {
        problems_.Add(item.mark, reader.Path("cipher_suites") + ": \"" + item.text +
                                     "\" is not a cipher suite that Go considers secure" +
                                     Suggest(item.text, internal::CipherNames()));
      } else if (!cipher->empty()) {
        tls.ciphers.emplace_back(*cipher);
      }
    }
    // Suites of TLS 1.3 are always available; a list without other suites leaves none for TLS 1.2.
    if (tls.ciphers.empty()) tls.min_version = WebTlsVersion::k13;
  }

  void ReadCurves(MapReader& reader, WebTls& tls) {
    for (const Value* list = reader.List("curve_preferences");
         const Value& item : list != nullptr ? *list->list : Value::List()) {
      if (const auto group = internal::FindGroup(item.text)) {
        tls.groups.emplace_back(*group);
      } else {
        problems_.Add(item.mark, reader.Path("curve_preferences") + ": \"" + item.text +
                                     "\" is not a known curve" +
                                     Suggest(item.text, internal::GroupNames()));
      }
    }
  }

  void ReadTls(MapReader& top) {
    const Value& map = MapAt(top, "tls_server_config");
    MapReader reader(map, "tls_server_config", problems_);
    WebTls tls;
    ReadPair(reader, "cert", tls.cert, tls.cert_file);
    ReadPair(reader, "key", tls.key, tls.key_file);
    ReadPair(reader, "client_ca", tls.client_ca, tls.client_ca_file);
    ReadClientAuth(reader, tls);
    if (auto sans = reader.Strings("client_allowed_sans"))
      tls.client_allowed_sans = *std::move(sans);
    ReadVersion(reader, "min_version", tls.min_version);
    ReadVersion(reader, "max_version", tls.max_version);
    ReadCiphers(reader, tls);
    ReadCurves(reader, tls);
    tls.prefer_server_ciphers = reader.Bool("prefer_server_cipher_suites").value_or(true);
    reader.Finish();
    // TLS is enabled if one of these keys is set, as exporter-toolkit decides
    // (TLSConfig.IsEnabled).
    const bool meant = !tls.cert.empty() || !tls.cert_file.empty() || !tls.key.empty() ||
                       !tls.key_file.empty() || !tls.client_ca.empty() ||
                       !tls.client_ca_file.empty() || reader.Has("client_auth_type");
    if (!meant) return;
    CheckTls(reader, tls);
    config_.tls = std::move(tls);
  }

  void CheckTls(MapReader& reader, const WebTls& tls) {
    if (tls.cert.empty() && tls.cert_file.empty())
      reader.Problem("cert_file", "is missing; TLS needs a certificate: cert_file or cert");
    if (tls.key.empty() && tls.key_file.empty())
      reader.Problem("key_file", "is missing; TLS needs the certificate's key: key_file or key");
    if (tls.min_version > tls.max_version)
      reader.Problem("max_version", "is older than min_version, so that no version is left");
    const bool authorities = !tls.client_ca.empty() || !tls.client_ca_file.empty();
    if (authorities && tls.client_auth == WebClientAuth::kNone)
      reader.Problem(tls.client_ca.empty() ? "client_ca_file" : "client_ca",
                     "has no effect without client_auth_type; write client_auth_type: "
                     "RequireAndVerifyClientCert");
    const bool verifies = tls.client_auth == WebClientAuth::kVerifyIfGiven ||
                          tls.client_auth == WebClientAuth::kRequireAndVerify;
    if (verifies && !authorities)
      Remark("tls_server_config.client_auth_type",
             "without client_ca_file, certificates of all public authorities are accepted");
    const bool required = tls.client_auth == WebClientAuth::kRequireAny ||
                          tls.client_auth == WebClientAuth::kRequireAndVerify;
    if (!tls.client_allowed_sans.empty() && !required)
      reader.Problem(
          "client_allowed_sans",
          "needs client_auth_type to be RequireAnyClientCert or RequireAndVerifyClientCert");
    if (tls.client_auth == WebClientAuth::kRequireAny)
      Remark("tls_server_config.client_auth_type",
             "RequireAnyClientCert accepts any certificate, even a self-signed one");
  }

  void ReadHttp(MapReader& top) {
    MapReader reader(MapAt(top, "http_server_config"), "http_server_config", problems_);
    if (reader.Bool("http2").value_or(false))
      Remark("http_server_config.http2",
             "only HTTP/1.1 is supported; scrapers accept that as well");
    const Value& map = MapAt(reader, "headers");
    MapReader headers(map, "http_server_config.headers", problems_);
    for (const auto& [name, allowed] : internal::HeaderValues()) {
      const auto value = headers.String(name);
      if (!value || value->empty()) continue;
      const auto printable = [](unsigned char c) { return c >= 0x20 && c != 0x7f; };
      if (!std::ranges::all_of(*value, printable)) {
        headers.Problem(name, "contains a character that is not allowed in headers");
      } else if (!allowed.empty() && std::ranges::find(allowed, *value) == allowed.end()) {
        headers.Problem(name, "\"" + *value + "\" is none of " + base::Join(allowed, ", "));
      } else {
        config_.headers.emplace_back(name, *value);
      }
    }
    headers.Finish();
    reader.Finish();
  }

  void ReadUsers(MapReader& top) {
    const Value& map = MapAt(top, "basic_auth_users");
    for (const auto& [name, mark, value] : map.map ? *map.map : Value::Map()) {
      const std::string path = "basic_auth_users." + name;
      if (name.empty() || name.find(':') != std::string::npos) {
        problems_.Add(mark, path + ": a user name must not be empty or contain a colon");
        continue;
      }
      const auto cost =
          value.kind == Value::Kind::kString ? internal::BcryptCost(value.text) : std::nullopt;
      if (!cost) {
        problems_.Add(value.mark, path +
                                      ": is not a bcrypt hash of a password; create one: htpasswd "
                                      "-nBC 10 \"\" | tr -d ':\\n'");
      } else if (*cost > kMaxCost) {
        problems_.Add(value.mark, path + ": its cost is " + std::to_string(*cost) +
                                      ", with which a check takes minutes; use 10 to 14");
      } else {
        if (*cost > kSlowCost)
          Remark(path, "a cost of " + std::to_string(*cost) +
                           " takes seconds for the first request of a client");
        config_.users[name] = value.text;
      }
    }
  }

  void ReadTokens(MapReader& top) {
    const Value& map = MapAt(top, "bearer_tokens");
    for (const auto& [name, mark, value] : map.map ? *map.map : Value::Map()) {
      const auto digest =
          value.kind == Value::Kind::kString ? ReadDigest(value.text) : std::nullopt;
      if (!digest) {
        problems_.Add(value.mark, "bearer_tokens." + name +
                                      ": is not a hash of a token; write sha256: and 64 "
                                      "hexadecimal digits: printf %s TOKEN | sha256sum");
      } else {
        config_.tokens[name] = *digest;
      }
    }
  }

  static std::optional<std::array<std::uint8_t, 32>> ReadDigest(std::string_view text) {
    std::array<std::uint8_t, 32> digest{};
    if (!text.starts_with(kTokenPrefix) || text.size() != kTokenPrefix.size() + 2 * digest.size())
      return std::nullopt;
    for (std::size_t i = 0; i < digest.size(); ++i) {
      const std::string_view pair = text.substr(kTokenPrefix.size() + 2 * i, 2);
      const auto byte = base::ParseUint(pair, 16);
      if (!byte || !std::isxdigit(static_cast<unsigned char>(pair[0]))) return std::nullopt;
      digest[i] = static_cast<std::uint8_t>(*byte);
    }
    return digest;
  }

  /// Reads Go's durations; a number is nanoseconds, as in Go's YAML.
  void ReadRate(MapReader& top) {
    MapReader reader(MapAt(top, "rate_limit"), "rate_limit", problems_);
    WebRateLimit limit;
    const Value* interval = reader.Any("interval");
    if (interval != nullptr && interval->kind == Value::Kind::kInt) {
      if (interval->integer < 0) reader.Problem("interval", "is below 0");
      limit.interval = std::chrono::nanoseconds(interval->integer);
    } else if (auto time =
                   reader.Time("interval", base::Duration::zero(), std::chrono::hours(24))) {
      limit.interval = *time;
    }
    limit.burst = static_cast<int>(reader.Int("burst", 0, 1'000'000).value_or(0));
    reader.Finish();
    if (limit.interval <= base::Duration::zero()) return;
    if (limit.burst == 0)
      return reader.Problem("burst", "is 0 or missing: no request would be accepted");
    config_.rate_limit = limit;
  }

  Problems& problems_;
  const std::string_view file_;
  WebConfig config_;
};

}  // namespace

base::Result<WebConfig> ParseWebConfig(std::string_view text, std::string_view file) {
  ASSIGN(const Value document, base::ParseYaml(text, file));
  Problems problems{std::string(file)};
  WebConfig config = WebConfigReader(problems, file).Read(document);
  if (!problems.empty()) return problems.ToError();
  return config;
}

}  // namespace penstock::api::compat
