#include "protocol/kube/credentials/access.h"

#include <cstdlib>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::protocol::kube {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

base::Result<ClusterAccess> FromFile(const std::string& file, const std::string& context) {
  ASSIGN(const std::string text, os::ReadInput(file, std::size_t{4} << 20));
  return ParseKubeconfig(text, file, context);
}

}  // namespace

base::Result<ClusterAccess> InClusterAccess(const std::string& folder) {
  const std::string host = Environment("KUBERNETES_SERVICE_HOST");
  const std::string port = Environment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return Error(
        Code::kNotFound,
        "not running in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  }
  const std::string token = folder + "/token";
  if (!os::Exists(token)) {
    return Error(Code::kNotFound, "there is no service account token at " + token +
                                      ": is automountServiceAccountToken false?");
  }
  ClusterAccess access;
  const bool v6 = host.find(':') != std::string::npos && host.front() != '[';
  access.server = "https://" + (v6 ? "[" + host + "]" : host) + ":" + port;
  access.authority.file = folder + "/ca.crt";
  access.token.file = token;
  if (auto name = os::ReadFile(folder + "/namespace", 4096); name.ok())
    access.namespace_name = base::Trim(*name);
  access.from = "in-cluster";
  return access;
}

base::Result<ClusterAccess> FindAccess(const std::string& kubeconfig, const std::string& context) {
  if (!kubeconfig.empty()) return FromFile(kubeconfig, context);
  std::string searched;
  for (const std::string& file : base::Split(Environment("KUBECONFIG"), ':')) {
    if (file.empty()) continue;
    if (os::Exists(file)) return FromFile(file, context);
    searched += (searched.empty() ? "" : ", ") + file;
  }
  // Contexts belong to kubeconfigs: a caller that names one does not mean the pod's own account.
  auto pod =
      context.empty() ? InClusterAccess() : Error(Code::kNotFound, "a context was requested");
  if (pod.ok() || pod.error().code() != Code::kNotFound) return pod;
  const std::string home = Environment("HOME");
  const std::string usual = home + "/.kube/config";
  if (searched.empty() && !home.empty()) {
    if (os::Exists(usual)) return FromFile(usual, context);
    searched = usual;
  }
  return Error(Code::kNotFound,
               "no cluster is configured: looked for a kubeconfig (" +
                   (searched.empty() ? "$KUBECONFIG and ~/.kube/config" : searched) +
                   ") and for a pod's service account (" + pod.error().message() + ")");
}

}  // namespace penstock::protocol::kube
