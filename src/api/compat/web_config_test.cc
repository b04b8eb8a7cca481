#include "api/compat/web_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr char kFile[] = "/etc/penstock/web.yaml";

WebConfig Read(std::string_view text) {
  auto config = ParseWebConfig(text, kFile);
  EXPECT_TRUE(config.ok()) << config.error().message();
  return config.ok() ? *std::move(config) : WebConfig{};
}

std::string Problem(std::string_view text) {
  const auto config = ParseWebConfig(text, kFile);
  EXPECT_FALSE(config.ok()) << text;
  return config.ok() ? "" : config.error().message();
}

/// exporter-toolkit's own example (docs/web-config.yml), with Penstock's additional section.
constexpr char kWhole[] = R"(
tls_server_config:
  cert_file: server.crt
  key_file: /keys/server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
  client_allowed_sans: [prometheus.example, 10.0.0.1]
  min_version: TLS13
  max_version: TLS13
  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]
  prefer_server_cipher_suites: false
  curve_preferences: [X25519, CurveP256]
http_server_config:
  http2: true
  headers:
    Strict-Transport-Security: max-age=31536000
    X-Frame-Options: deny
    X-XSS-Protection: ""
basic_auth_users:
  alice: $2y$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze
bearer_tokens:
  prometheus: sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
rate_limit:
  interval: 1s
  burst: 20
)";

TEST(WebConfig, ReadsAllOfIt) {
  const WebConfig config = Read(kWhole);
  ASSERT_TRUE(config.tls);
  EXPECT_EQ(config.tls->cert_file, "/etc/penstock/server.crt");
  EXPECT_EQ(config.tls->key_file, "/keys/server.key");
  EXPECT_EQ(config.tls->client_ca_file, "/etc/penstock/ca.crt");
  EXPECT_EQ(config.tls->client_auth, WebClientAuth::kRequireAndVerify);
  EXPECT_THAT(config.tls->client_allowed_sans, ElementsAre("prometheus.example", "10.0.0.1"));
  EXPECT_EQ(config.tls->min_version, WebTlsVersion::k13);
  EXPECT_THAT(config.tls->ciphers, ElementsAre("ECDHE-RSA-AES128-GCM-SHA256"))
      << "those of TLS 1.3 are always there";
  EXPECT_THAT(config.tls->groups, ElementsAre("X25519", "P-256"));
  EXPECT_FALSE(config.tls->prefer_server_ciphers);
  EXPECT_THAT(config.headers, ElementsAre(Pair("X-Frame-Options", "deny"),
                                          Pair("Strict-Transport-Security", "max-age=31536000")));
  EXPECT_EQ(config.users.at("alice").substr(0, 7), "$2y$10$");
  EXPECT_EQ(config.tokens.at("prometheus")[0], 0xba);
  EXPECT_EQ(config.rate_limit->interval, std::chrono::seconds(1));
  EXPECT_EQ(config.rate_limit->burst, 20);
  EXPECT_THAT(config.remarks, ElementsAre(HasSubstr("http_server_config.http2: ")));
}

TEST(WebConfig, AsksForNothingWhereNothingIsSaid) {
  for (const char* text : {"", "{}", "tls_server_config:\nbasic_auth_users:\n",
                           "tls_server_config: {}", "rate_limit: {interval: 0s}"}) {
    const WebConfig config = Read(text);
    EXPECT_FALSE(config.tls || config.rate_limit) << text;
    EXPECT_TRUE(config.users.empty() && config.remarks.empty()) << text;
  }
}

TEST(WebConfig, TakesEveryWayToAskClients) {
  const std::vector<std::pair<std::string, WebClientAuth>> all = {
      {"NoClientCert", WebClientAuth::kNone},
      {"RequestClientCert", WebClientAuth::kRequest},
      {"RequireClientCert", WebClientAuth::kRequireAny},
      {"RequireAnyClientCert", WebClientAuth::kRequireAny},
      {"VerifyClientCertIfGiven", WebClientAuth::kVerifyIfGiven},
      {"RequireAndVerifyClientCert", WebClientAuth::kRequireAndVerify}};
  for (const auto& [name, auth] : all)
    EXPECT_EQ(Read("tls_server_config: {cert_file: a, key_file: b, client_auth_type: " + name + "}")
                  .tls->client_auth,
              auth)
        << name;
}

TEST(WebConfig, TakesTextsInThePlaceOfFiles) {
  const WebConfig config = Read(
      "tls_server_config:\n  cert: |\n    CERT\n  key: |\n    KEY\n  client_ca: CA\n  "
      "client_auth_type: RequestClientCert\n");
  EXPECT_EQ(config.tls->cert, "CERT\n");
  EXPECT_EQ(config.tls->key_file, "");
}

TEST(WebConfig, ReportsAllThatIsWrongAtOnceAndWhatWasMeant) {
  EXPECT_EQ(
      Problem(
          "tls_server_config:\n  cert_fil: a\n  key_file: b\n  client_auth_type: "
          "RequireAndVerifyClientCerts\n  min_version: TLS14\n"
          "  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]\n  curve_preferences: [P256]\n"
          "http_server_config: {headers: {X-Frame-Option: deny, X-Content-Type-Options: sniff}}\n"
          "basic_auth_user: {}\n"),
      "/etc/penstock/web.yaml:2:3: unknown key \"tls_server_config.cert_fil\"; did you mean "
      "\"cert_file\"?\n/etc/penstock/web.yaml:2:3: tls_server_config.cert_file: is missing; TLS "
      "needs a certificate: cert_file or cert\n/etc/penstock/web.yaml:4:21: "
      "tls_server_config.client_auth_type: \"RequireAndVerifyClientCerts\" is not a type of client "
      "authentication; did you mean \"RequireAndVerifyClientCert\"?\n/etc/penstock/web.yaml:5:16: "
      "tls_server_config.min_version: \"TLS14\" is not a version of TLS; did you mean "
      "\"TLS10\"?\n/etc/penstock/web.yaml:6:19: tls_server_config.cipher_suites: "
      "\"TLS_RSA_WITH_RC4_128_SHA\" is not a cipher suite that Go considers secure; did you mean "
      "\"TLS_RSA_WITH_AES_128_CBC_SHA\"?\n/etc/penstock/web.yaml:7:23: "
      "tls_server_config.curve_preferences: \"P256\" is not a known curve; known here: CurveP256, "
      "CurveP384, CurveP521, X25519\n/etc/penstock/web.yaml:8:32: unknown key "
      "\"http_server_config.headers.X-Frame-Option\"; did you mean "
      "\"X-Frame-Options\"?\n/etc/penstock/web.yaml:8:78: "
      "http_server_config.headers.X-Content-Type-Options: \"sniff\" is none of "
      "nosniff\n/etc/penstock/web.yaml:9:1: unknown key \"basic_auth_user\"; did you mean "
      "\"basic_auth_users\"?");
}

TEST(WebConfig, RefusesWhatCannotWork) {
  EXPECT_THAT(Problem("tls_server_config: {cert_file: a}"), HasSubstr("key_file: is missing"));
  EXPECT_THAT(Problem("tls_server_config: {client_auth_type: NoClientCert}"),
              HasSubstr("cert_file: is missing"));
  EXPECT_THAT(Problem("tls_server_config: {cert_file: a, cert: b, key_file: c}"),
              HasSubstr("cert: and cert_file exclude each other"));
  EXPECT_THAT(Problem("tls_server_config: {cert_file: a, key_file: b, client_ca_file: c}"),
              HasSubstr("has no effect without client_auth_type"));
  EXPECT_THAT(
      Problem(
          "tls_server_config: {cert_file: a, key_file: b, min_version: TLS13, max_version: TLS12}"),
      HasSubstr("no version is left"));
  for (const char* auth : {"NoClientCert", "RequestClientCert", "VerifyClientCertIfGiven"})
    EXPECT_THAT(Problem("tls_server_config: {cert_file: a, key_file: b, client_allowed_sans: [x], "
                        "client_auth_type: " +
                        std::string(auth) + "}"),
                HasSubstr("client_allowed_sans: needs client_auth_type"));
  EXPECT_THAT(
      Problem("http_server_config: {headers: {Content-Security-Policy: \"a\\r\\nEvil: b\"}}"),
      HasSubstr("that is not allowed in headers"));
  EXPECT_THAT(Problem("rate_limit: {interval: 1s}"), HasSubstr("burst: is 0 or missing"));
  EXPECT_THAT(Problem("basic_auth_users: {\"a:b\": x}"), HasSubstr("contain a colon"));
  EXPECT_THAT(Problem("- a"), HasSubstr("is a list where a map is expected"));
  EXPECT_THAT(Problem("basic_auth_users: {a: b}\nbasic_auth_users: {}"), HasSubstr("2:1"));
}

TEST(WebConfig, QuotesNoSecret) {
  for (const char* secret : {"$2y$10$tooshort", "hunter2", "$6$salt$hash",
                             "$2z$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze",
                             "$2y$03$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze"})
    EXPECT_THAT(Problem("basic_auth_users: {alice: " + std::string(secret) + "}"),
                AllOf(HasSubstr("basic_auth_users.alice: is not a bcrypt hash"),
                      HasSubstr("htpasswd"), Not(HasSubstr(secret))));
  for (const char* secret :
       {"hunter2", "sha256:abcd",
        "sha256:zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "12345678"})
    EXPECT_THAT(Problem("bearer_tokens: {x: " + std::string(secret) + "}"),
                AllOf(HasSubstr("sha256sum"), Not(HasSubstr(secret))));
}

TEST(WebConfig, RemarksOnWhatIsUnwise) {
  const std::string user =
      "basic_auth_users: {a: $2y$15$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze}";
  EXPECT_THAT(Read(user).remarks,
              ElementsAre(HasSubstr("takes seconds"), HasSubstr("in clear text")));
  EXPECT_THAT(
      Problem(
          "basic_auth_users: {a: $2y$31$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze}"),
      HasSubstr("use 10 to 14"));
  EXPECT_THAT(Read("tls_server_config: {cert_file: a, key_file: b, min_version: TLS10}").remarks,
              ElementsAre(HasSubstr("insecure")));
  EXPECT_THAT(Read("tls_server_config: {cert_file: a, key_file: b}").remarks, IsEmpty());
}

TEST(WebConfig, LeavesNothingBelowTls13ToAListOfItsSuitesAlone) {
  EXPECT_EQ(
      Read(
          "tls_server_config: {cert_file: a, key_file: b, cipher_suites: [TLS_AES_128_GCM_SHA256]}")
          .tls->min_version,
      WebTlsVersion::k13);
  EXPECT_EQ(
      Read("tls_server_config: {cert_file: a, key_file: b, cipher_suites: []}").tls->min_version,
      WebTlsVersion::k12);
}

}  // namespace
}  // namespace penstock::api::compat
