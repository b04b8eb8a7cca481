// How to reach an API server and as whom: in-cluster, or by a kubeconfig. Opens no connection.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"

namespace penstock::edge::kube {

/// A file's path, or its content where it was given inline. Files are read anew for each connection: they rotate.
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
struct Access {
  std::string server;  ///< "https://10.96.0.1:443", without a slash at its end
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

/// A pod's own: KUBERNETES_SERVICE_HOST and _PORT, and the service account's files (token, ca.crt, namespace) in `folder`. kNotFound where
/// this is no pod.
base::Result<Access> InClusterAccess(const std::string& folder = "/var/run/secrets/kubernetes.io/serviceaccount");

/// One context of a kubeconfig (YAML or JSON); empty: the current one. Relative paths are taken from the file's folder. Keys that people
/// have and that change nothing here (preferences, extensions, colour) pass; all that is wrong is told at once with line and column.
base::Result<Access> ParseKubeconfig(std::string_view text, const std::string& file, const std::string& context = "");

/// In the order that kubectl and client-go have: the file given, $KUBECONFIG (a list: the first that exists), in-cluster, ~/.kube/config.
/// kNotFound says what was looked for. Blocks: reads files.
base::Result<Access> FindAccess(const std::string& kubeconfig = "", const std::string& context = "");

}  // namespace penstock::edge::kube
