// A kubeconfig, written by people and by other people's tools; and what an exec plugin prints.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "edge/kube/access.h"
#include "edge/kube/exec_credential.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto access = edge::kube::ParseKubeconfig(text, "fuzz");
  if (access.ok()) {
    // What was accepted can be connected to, and says whence it is.
    if (access->server.find("://") == std::string::npos || access->server.ends_with('/') || access->exec.size() > 1) std::abort();
    if (access->from.rfind("fuzz", 0) != 0 || access->client_certificate.empty() != access->client_key.empty()) std::abort();
  } else if (access.error().code() != base::Code::kInvalidArgument || access.error().message().rfind("fuzz", 0) != 0) {
    std::abort();
  }
  edge::kube::ExecPlugin plugin;
  plugin.api_version = "client.authentication.k8s.io/v1";
  const auto credential = edge::kube::ParseExecCredential(text, plugin);
  if (credential.ok() && credential->token.empty() && credential->certificate.empty()) std::abort();
  return 0;
}
