// Finds out how to reach an API server and with which credentials: in-cluster, or from a
// kubeconfig. Opens no connection.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"

namespace penstock::protocol::kube {

/// A file's path, or content given inline. Files are read again for each connection, since they
/// rotate.
struct Material {
  std::string file;
  std::string data;
  bool empty() const { return file.empty() && data.empty(); }
};

/// A command that prints an ExecCredential (client.authentication.k8s.io/v1 and v1beta1).
struct ExecPlugin {
  std::string api_version;
  std::string command;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string install_hint;
  bool provide_cluster_info = false;
};

/// One API server and one user.
struct ClusterAccess {
  std::string server;  ///< "https://10.96.0.1:443", without a trailing slash
  std::string tls_server_name;
  std::string proxy;
  bool insecure_skip_tls_verify = false;
  Material authority;
  Material client_certificate, client_key;
  Material token;
  std::string user, password;
  std::vector<ExecPlugin> exec;  ///< none or one
  std::string namespace_name;    ///< of the context, or of the pod; empty: "default"
  std::string from;              ///< for people: "in-cluster", "/root/.kube/config, context bench"
};

/// The access of a pod: KUBERNETES_SERVICE_HOST and _PORT, and the service account's files (token,
/// ca.crt, namespace) in `folder`. kNotFound outside of a pod.
base::Result<ClusterAccess> InClusterAccess(
    const std::string& folder = "/var/run/secrets/kubernetes.io/serviceaccount");

/// One context of a kubeconfig (YAML or JSON); empty: the current one. Relative paths start at the
/// file's folder. Common keys without effect here (preferences, extensions, colors) are accepted;
/// all errors are reported at once with line and column.
base::Result<ClusterAccess> ParseKubeconfig(std::string_view text, const std::string& file,
                                            const std::string& context = "");

/// Looks in the order of kubectl and client-go: the given file, $KUBECONFIG (a list: the first that
/// exists), in-cluster, ~/.kube/config. kNotFound says where it looked. Blocks: reads files.
base::Result<ClusterAccess> FindAccess(const std::string& kubeconfig = "",
                                       const std::string& context = "");

}  // namespace penstock::protocol::kube
