// Implements ExecCredential, client.authentication.k8s.io/v1 and v1beta1 (kubernetes.io, "client-go
// credential plugins").
#include "protocol/kube/credentials/exec_credential.h"

#include <cstdio>
#include <ctime>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/base64.h"
#include "base/core/json_text.h"

namespace penstock::protocol::kube {
namespace {

using Json = nlohmann::json;

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::optional<base::WallTime> ParseRfc3339(const std::string& text) {
  std::tm time{};
  int used = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &time.tm_year, &time.tm_mon,
                  &time.tm_mday, &time.tm_hour, &time.tm_min, &time.tm_sec, &used) != 6) {
    return std::nullopt;
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  const char* rest = text.c_str() + used;
  if (*rest == '.') {
    do { ++rest; } while (*rest >= '0' && *rest <= '9');
  }
  int hours = 0, minutes = 0;
  char sign[2] = "";  // scanf also writes the terminating zero of a set
  if (std::string_view(rest) != "Z" && std::string_view(rest) != "z") {
    int end = 0;
    if (std::sscanf(rest, "%1[+-]%2d:%2d%n", sign, &hours, &minutes, &end) != 3 ||
        rest[end] != '\0')
      return std::nullopt;
  }
  const std::time_t seconds =
      ::timegm(&time) - (sign[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
  return base::NearestTime(seconds);
}

base::Result<ExecCredential> ParseExecCredential(std::string_view text, const ExecPlugin& plugin) {
  const auto wrong = [&](const std::string& what) {
    return Error(Code::kInvalidArgument, "the exec plugin " + plugin.command + " " + what);
  };
  const Json json = base::ParseJson<Json>(text);
  if (json.is_discarded() || !json.is_object())
    return wrong("printed no JSON object (" + std::to_string(text.size()) + " bytes)");
  if (TextOf(json, "kind") != "ExecCredential") return wrong("printed no ExecCredential");
  if (TextOf(json, "apiVersion") != plugin.api_version) {
    return wrong("printed an ExecCredential of \"" + TextOf(json, "apiVersion") +
                 "\" where the kubeconfig says " + plugin.api_version);
  }
  const auto status = json.find("status");
  if (status == json.end() || !status->is_object())
    return wrong("printed an ExecCredential without a status");
  ExecCredential credential;
  credential.token = TextOf(*status, "token");
  credential.certificate = TextOf(*status, "clientCertificateData");
  credential.key = TextOf(*status, "clientKeyData");
  if (credential.certificate.empty() != credential.key.empty())
    return wrong("printed a certificate without its key, or the reverse");
  if (credential.token.empty() && credential.certificate.empty())
    return wrong("printed neither a token nor a certificate");
  if (const std::string expires = TextOf(*status, "expirationTimestamp"); !expires.empty()) {
    credential.expires = ParseRfc3339(expires);
    if (!credential.expires)
      return wrong("printed an expirationTimestamp that is not a time: " + expires.substr(0, 40));
  }
  return credential;
}

std::vector<std::string> ExecEnvironment(const ClusterAccess& access, const ExecPlugin& plugin,
                                         const std::string& authority) {
  std::vector<std::string> environment;
  const auto is_replaced = [&](std::string_view variable) {
    if (variable.starts_with("KUBERNETES_EXEC_INFO=")) return true;
    for (const auto& [name, value] : plugin.environment)
      if (variable.starts_with(name + "=")) return true;
    return false;
  };
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (!is_replaced(*variable)) environment.emplace_back(*variable);
  }
  for (const auto& [name, value] : plugin.environment) environment.push_back(name + "=" + value);
  Json info = {{"apiVersion", plugin.api_version},
               {"kind", "ExecCredential"},
               {"spec", {{"interactive", false}}}};
  if (plugin.provide_cluster_info) {
    Json cluster = {{"server", access.server}, {"config", nullptr}};
    if (!access.tls_server_name.empty()) cluster["tls-server-name"] = access.tls_server_name;
    if (access.insecure_skip_tls_verify) cluster["insecure-skip-tls-verify"] = true;
    if (!authority.empty()) cluster["certificate-authority-data"] = base::EncodeBase64(authority);
    if (!access.proxy.empty()) cluster["proxy-url"] = access.proxy;
    info["spec"]["cluster"] = std::move(cluster);
  }
  environment.push_back("KUBERNETES_EXEC_INFO=" + base::JsonText(info));
  return environment;
}

}  // namespace penstock::protocol::kube
