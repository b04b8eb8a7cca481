// Fuzzes kubeconfigs, written by users and other programs, and the output of exec plugins.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/kube/credentials/access.h"
#include "protocol/kube/credentials/exec_credential.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto access = protocol::kube::ParseKubeconfig(text, "fuzz");
  if (access.ok()) {
    // An accepted kubeconfig has an address to connect to, and its origin.
    if (access->server.find("://") == std::string::npos || access->server.ends_with('/') ||
        access->exec.size() > 1)
      std::abort();
    if (access->from.rfind("fuzz", 0) != 0 ||
        access->client_certificate.empty() != access->client_key.empty())
      std::abort();
  } else if (access.error().code() != base::Code::kInvalidArgument ||
             access.error().message().rfind("fuzz", 0) != 0) {
    std::abort();
  }
  protocol::kube::ExecPlugin plugin;
  plugin.api_version = "client.authentication.k8s.io/v1";
  const auto credential = protocol::kube::ParseExecCredential(text, plugin);
  if (credential.ok() && credential->token.empty() && credential->certificate.empty()) std::abort();
  return 0;
}
