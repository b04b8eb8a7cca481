#include "protocol/kube/credentials/access.h"

#include <cstdlib>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/testing/must.h"
#include "os/testing/temporary_folder.h"

namespace penstock::protocol::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// An environment variable for one test; null unsets it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

constexpr char kConfig[] = R"(apiVersion: v1
kind: Config
preferences: {colors: true}
current-context: bench
contexts:
- name: bench
  context: {cluster: c1, user: u1, namespace: gpu}
- name: other
  context: {cluster: c2, user: u2}
clusters:
- name: c1
  cluster:
    server: https://10.0.0.1:6443/
    certificate-authority: pki/ca.crt
    tls-server-name: kubernetes
    proxy-url: socks5://localhost:1080
    extensions: [{name: x, extension: {a: 1}}]
- name: c2
  cluster: {server: "http://[::1]:8001/k8s", insecure-skip-tls-verify: true}
users:
- name: u1
  user:
    client-certificate-data: Y2VydA==
    client-key: /abs/key
    tokenFile: token
    token: inline
- name: u2
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: bin/plugin
      args: [get, token]
      env: [{name: A, value: b}]
      installHint: get it
      provideClusterInfo: true
      interactiveMode: IfAvailable
)";

std::string ErrorOf(const base::Result<ClusterAccess>& access) {
  return access.ok() ? "" : access.error().message();
}

TEST(Kubeconfig, GivesTheCurrentContext) {
  const auto access = Must(ParseKubeconfig(kConfig, "/etc/kube/config"));
  EXPECT_EQ(access.server, "https://10.0.0.1:6443");
  EXPECT_EQ(access.tls_server_name, "kubernetes");
  EXPECT_EQ(access.proxy, "socks5://localhost:1080");
  EXPECT_EQ(access.authority.file, "/etc/kube/pki/ca.crt");
  EXPECT_EQ(access.client_certificate.data, "cert");
  EXPECT_EQ(access.client_key.file, "/abs/key");
  EXPECT_EQ(access.token.file, "/etc/kube/token");
  EXPECT_EQ(access.token.data, "inline");
  EXPECT_EQ(access.namespace_name, "gpu");
  EXPECT_EQ(access.from, "/etc/kube/config, context bench");
}

TEST(Kubeconfig, GivesTheContextAskedFor) {
  const auto access = Must(ParseKubeconfig(kConfig, "config", "other"));
  EXPECT_EQ(access.server, "http://[::1]:8001/k8s");
  EXPECT_TRUE(access.insecure_skip_tls_verify);
  ASSERT_EQ(access.exec.size(), 1u);
  EXPECT_EQ(access.exec[0].command, "./bin/plugin");
  EXPECT_THAT(access.exec[0].arguments, ElementsAre("get", "token"));
  EXPECT_THAT(access.exec[0].environment, ElementsAre(Pair("A", "b")));
  EXPECT_TRUE(access.exec[0].provide_cluster_info);
}

TEST(Kubeconfig, IsReadAsJsonToo) {
  const auto access = Must(ParseKubeconfig(
      R"({"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "b", "user": ""}}],
	"clusters": [{"name": "b", "cluster": {"server": "https://x"}}], "users": null})",
      "config"));
  EXPECT_EQ(access.server, "https://x");
}

TEST(Kubeconfig, SaysAllThatIsWrongWithItsPlace) {
  const auto access = ParseKubeconfig(R"(current-context: a
contexts:
- name: a
  context: {cluster: c, user: u}
clusters:
- name: c
  cluster:
    server: 10.0.0.1:6443
    certificate-authorty-data: AAAA
    certificate-authority-data: "*"
users:
- name: u
  user:
    client-certificate: x
    auth-provider: {name: gcp}
    as: admin
    exec: {apiVersion: client.authentication.k8s.io/v1alpha1, interactiveMode: Always}
)",
                                      "f");
  const std::string said = ErrorOf(access);
  EXPECT_THAT(said, HasSubstr("f:8:13: clusters.c.server: \"10.0.0.1:6443\" is not the address of "
                              "an API server, such as https://10.0.0.1:6443"));
  EXPECT_THAT(said, HasSubstr("f:9:5: unknown key \"clusters.c.certificate-authorty-data\"; did "
                              "you mean \"certificate-authority-data\"?"));
  EXPECT_THAT(said, HasSubstr("f:10:33: clusters.c.certificate-authority-data: is not base64"));
  EXPECT_THAT(said, HasSubstr("f:14:25: users.u.client-certificate: is given without the other of "
                              "certificate and key"));
  EXPECT_THAT(said, HasSubstr("f:15:20: users.u.auth-provider: was removed from Kubernetes in "
                              "1.26; use an exec plugin"));
  EXPECT_THAT(said, HasSubstr("f:16:9: users.u.as: impersonation is not supported"));
  EXPECT_THAT(
      said,
      HasSubstr("users.u.exec.apiVersion: \"client.authentication.k8s.io/v1alpha1\" is none of"));
  EXPECT_THAT(said, HasSubstr("users.u.exec.command is missing"));
  EXPECT_THAT(said, HasSubstr("interactiveMode: is Always"));
}

TEST(Kubeconfig, NamesWhatIsNotThere) {
  EXPECT_THAT(ErrorOf(ParseKubeconfig(kConfig, "f", "bensh")),
              HasSubstr("contexts has no \"bensh\"; did you mean \"bench\"?; it has bench, other"));
  EXPECT_THAT(
      ErrorOf(ParseKubeconfig("contexts: [{name: a, context: {cluster: b, user: c}}]", "f", "a")),
      HasSubstr("clusters has no \"b\", which context \"a\" names"));
  EXPECT_THAT(ErrorOf(ParseKubeconfig("contexts: [{name: a, context: {cluster: b}}]", "f")),
              HasSubstr("current-context is not set"));
  EXPECT_THAT(
      ErrorOf(ParseKubeconfig(
          "apiVersion: v1\nkind: Config\nclusters: null\ncontexts: []\ncurrent-context: \"\"\n",
          "f")),
      HasSubstr("there is no context: this is an empty kubeconfig"));
  EXPECT_THAT(ErrorOf(ParseKubeconfig("", "f")), HasSubstr("there is no context"));
  EXPECT_THAT(ErrorOf(ParseKubeconfig("contexts: [{name: a, context: {cluster: null}}]", "f", "a")),
              HasSubstr("contexts.a.cluster: has no value"));
  EXPECT_THAT(ErrorOf(ParseKubeconfig("- a\n", "f")), HasSubstr("f:1:1: "));
}

TEST(InCluster, ReadsTheServiceAccount) {
  const os::TemporaryFolder folder;
  const Variable host("KUBERNETES_SERVICE_HOST", "fd00::1"), port("KUBERNETES_SERVICE_PORT", "443");
  const auto none = InClusterAccess(folder.path());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Code::kNotFound);
  EXPECT_THAT(ErrorOf(none), HasSubstr("automountServiceAccountToken"));
  folder.Write("token", "t");
  folder.Write("namespace", "gpu\n");
  const auto access = Must(InClusterAccess(folder.path()));
  EXPECT_EQ(access.server, "https://[fd00::1]:443");
  EXPECT_EQ(access.token.file, folder / "token");
  EXPECT_EQ(access.authority.file, folder / "ca.crt");
  EXPECT_EQ(access.namespace_name, "gpu");
}

TEST(FindAccess, TakesTheFirstThereIs) {
  const os::TemporaryFolder folder;
  folder.Write(".kube/config", kConfig);
  folder.Write("second", kConfig);
  const Variable host("KUBERNETES_SERVICE_HOST", nullptr), home("HOME", folder.path().c_str());
  {
    const Variable list("KUBECONFIG", ((folder / "first") + ":" + (folder / "second")).c_str());
    EXPECT_EQ(FindAccess("", "bench")->from, (folder / "second") + ", context bench");
    EXPECT_EQ(FindAccess(folder / ".kube/config")->from,
              (folder / ".kube/config") + ", context bench");
    EXPECT_EQ(FindAccess(folder / "nowhere").error().code(), Code::kNotFound);
  }
  const Variable list("KUBECONFIG", nullptr);
  EXPECT_EQ(FindAccess()->from, (folder / ".kube/config") + ", context bench");
  const Variable nobody("HOME", "/nonexistent");
  const auto none = FindAccess();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Code::kNotFound);
  EXPECT_THAT(ErrorOf(none), HasSubstr("looked for a kubeconfig (/nonexistent/.kube/config) and "
                                       "for a pod's service account (not running in a pod"));
}

}  // namespace
}  // namespace penstock::protocol::kube
