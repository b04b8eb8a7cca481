#include "protocol/kube/status_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/kube/credentials/exec_credential.h"

namespace penstock::protocol::kube {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const Resource kNodes{"", "v1", "nodes"};

std::string Status(int code, const std::string& reason, const std::string& message) {
  return Json{{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}.dump();
}

TEST(StatusError, GivesEachStatusItsCode) {
  const ApiCall call = Get(kNodes, "", "n1");
  const auto code = [&](int status, const std::string& reason = "") {
    return StatusError(status, Status(status, reason, "m"), call).code();
  };
  EXPECT_EQ(code(400), Code::kInvalidArgument);
  EXPECT_EQ(code(401), Code::kUnauthenticated);
  EXPECT_EQ(code(403), Code::kPermissionDenied);
  EXPECT_EQ(code(404), Code::kNotFound);
  EXPECT_EQ(code(409, "Conflict"), Code::kAborted);
  EXPECT_EQ(code(409, "AlreadyExists"), Code::kAlreadyExists);
  EXPECT_EQ(code(410), Code::kOutOfRange);
  EXPECT_EQ(code(415), Code::kUnimplemented);
  EXPECT_EQ(code(422), Code::kInvalidArgument);
  EXPECT_EQ(code(429), Code::kResourceExhausted);
  EXPECT_EQ(code(500), Code::kUnavailable);
  EXPECT_EQ(code(503), Code::kUnavailable);
  EXPECT_EQ(code(504), Code::kDeadlineExceeded);
}

TEST(StatusError, NamesTheRuleThatIsMissing) {
  const ApiCall call = Patch(kNodes, "", "n1", kMergePatch, {{"status", 1}}, "penstock", "status");
  const auto error =
      StatusError(403,
                  Status(403, "Forbidden",
                         "nodes \"n1\" is forbidden: User \"system:serviceaccount:gpu:penstock\" "
                         "cannot patch resource "
                         "\"nodes/status\" in API group \"\" at the cluster scope"),
                  call);
  EXPECT_EQ(error.code(), Code::kPermissionDenied);
  EXPECT_THAT(error.message(),
              HasSubstr("missing RBAC rule: {apiGroups: [\"\"], resources: [\"nodes/status\"], "
                        "resourceNames: [\"n1\"], verbs: [\"patch\"]}, in a ClusterRole bound to "
                        "system:serviceaccount:gpu:penstock"));
}

TEST(StatusError, TakesTheVerbThatWasRefused) {
  const Resource states{"penstock.io", "v1alpha1", "nodestates"};
  const auto error = StatusError(
      403,
      Status(403, "Forbidden",
             "x is forbidden: User \"u\" cannot create resource \"nodestates\" in API group"),
      Apply(states, "gpu", {{"metadata", {{"name", "n1"}}}}, "m"));
  EXPECT_THAT(error.message(),
              HasSubstr("verbs: [\"create\"]}, in a Role of namespace gpu bound to u"));
}

TEST(StatusError, PromisesNothingOfARuleWhereAdmissionRefused) {
  const auto error =
      StatusError(403, Status(403, "Forbidden", "pods \"x\" is forbidden: violates PodSecurity"),
                  Get(kNodes, "", "n1"));
  EXPECT_THAT(error.message(), Not(HasSubstr("RBAC")));
}

TEST(StatusError, KnowsTheVerbOfACall) {
  ApiCall call = Get(kNodes, "", "");
  EXPECT_EQ(MissingRule(call), R"(apiGroups: [""], resources: ["nodes"], verbs: ["list"])");
  call.query["watch"] = "true";
  EXPECT_EQ(MissingRule(call), R"(apiGroups: [""], resources: ["nodes"], verbs: ["watch"])");
  EXPECT_EQ(MissingRule(Delete({"apps", "v1", "daemonsets"}, "x", "")),
            R"(apiGroups: ["apps"], resources: ["daemonsets"], verbs: ["deletecollection"])");
  EXPECT_EQ(MissingRule(Get({"", "v1", "namespaces"}, "", "x")),
            R"(apiGroups: [""], resources: ["namespaces"], resourceNames: ["x"], verbs: ["get"])");
  call.path = "/metrics";
  EXPECT_EQ(MissingRule(call), R"(nonResourceURLs: ["/metrics"], verbs: ["get"])");
  call.path = "/";
  EXPECT_THAT(MissingRule(call), HasSubstr("nonResourceURLs"));
}

TEST(StatusError, SaysWhatTheServerSaysWithinBounds) {
  const ApiCall call = Get(kNodes, "", "n1");
  EXPECT_EQ(StatusError(404, Status(404, "NotFound", "nodes \"n1\" not found"), call).message(),
            "GET /api/v1/nodes/n1: nodes \"n1\" not found");
  EXPECT_EQ(StatusError(503, "no healthy upstream", call).message(),
            "GET /api/v1/nodes/n1: the server answered 503 \"no healthy upstream\"");
  EXPECT_THAT(StatusError(502, "\n<html>..", call).message(), HasSubstr("with an HTML page"));
  EXPECT_THAT(StatusError(500, "", call).message(), HasSubstr("without a message"));
  EXPECT_THAT(StatusError(500, "\xff\xfe", call).message(),
              HasSubstr("2 bytes that are not a Status object"));
  EXPECT_LT(StatusError(500, Status(500, "", std::string(100'000, 'x')), call).message().size(),
            2000u);
  EXPECT_LT(StatusError(500, Json(Json::array({1, 2})).dump(), call).message().size(), 200u);
}

TEST(Api, MakesPathsAsUrlsHaveThem) {
  EXPECT_EQ(kNodes.Path("", "n1", "status"), "/api/v1/nodes/n1/status");
  EXPECT_EQ((Resource{"penstock.io", "v1alpha1", "nodestates"}.Path("", "n1")),
            "/apis/penstock.io/v1alpha1/nodestates/n1");
  EXPECT_EQ((Resource{"", "v1", "configmaps"}.Path("x")), "/api/v1/namespaces/x/configmaps");
}

TEST(ExecCredential, ReadsTimesWithOffsetsAndFractions) {
  const auto utc = ParseRfc3339("2026-11-21T03:42:00Z");
  ASSERT_TRUE(utc);
  EXPECT_EQ(base::FormatTime(*utc), "2026-11-21T03:42:00.000Z");
  EXPECT_EQ(ParseRfc3339("2026-11-21T05:42:00.123456+02:00"), utc);
  EXPECT_EQ(ParseRfc3339("2026-11-20T22:12:00-05:30"), utc);
  EXPECT_EQ(base::FormatTime(*ParseRfc3339("9999-12-31T23:59:59Z")), "2200-01-01T00:00:00.000Z")
      << "a date that means never";
  EXPECT_EQ(base::FormatTime(*ParseRfc3339("0001-01-01T00:00:00Z")), "1970-01-01T00:00:00.000Z")
      << "Go's zero time";
  for (const char* wrong :
       {"", "2026-11-21", "2026-11-21T03:42:00", "tomorrow", "2026-11-21T03:42:00Zx"})
    EXPECT_FALSE(ParseRfc3339(wrong)) << wrong;
}

TEST(ExecCredential, RefusesWhatIsNone) {
  ExecPlugin plugin;
  plugin.command = "p";
  plugin.api_version = "client.authentication.k8s.io/v1";
  const auto error = [&](const std::string& rest) {
    const auto parsed = ParseExecCredential(
        R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1")" + rest + "}",
        plugin);
    return parsed.ok() ? "" : parsed.error().message();
  };
  EXPECT_EQ(error(R"(,"status":{"token":"t"})"), "");
  EXPECT_THAT(error(""), HasSubstr("without a status"));
  EXPECT_THAT(error(R"(,"status":{})"), HasSubstr("neither a token nor a certificate"));
  EXPECT_THAT(error(R"(,"status":{"clientKeyData":"secret"})"),
              HasSubstr("a certificate without its key"));
  EXPECT_THAT(error(R"(,"status":{"clientKeyData":"secret"})"), Not(HasSubstr("secret\"")));
  EXPECT_THAT(error(R"(,"status":{"token":"t","expirationTimestamp":"soon"})"),
              HasSubstr("not a time: soon"));
  EXPECT_THAT(
      ParseExecCredential(
          R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"})",
          plugin)
          .error()
          .message(),
      HasSubstr("v1beta1"));
}

TEST(ExecCredential, ReportsThePluginOfTheCluster) {
  ClusterAccess access;
  access.server = "https://x";
  access.tls_server_name = "y";
  ExecPlugin plugin;
  plugin.api_version = "client.authentication.k8s.io/v1";
  plugin.environment = {{"PATH", "/only"}};
  const std::string start = "KUBERNETES_EXEC_INFO=";
  const auto info = [&] {
    return Json::parse(ExecEnvironment(access, plugin, "ca").back().substr(start.size()));
  };
  EXPECT_FALSE(info()["spec"].contains("cluster"));
  EXPECT_EQ(info()["spec"]["interactive"], false);
  plugin.provide_cluster_info = true;
  EXPECT_EQ(info()["spec"]["cluster"]["server"], "https://x");
  EXPECT_EQ(info()["spec"]["cluster"]["tls-server-name"], "y");
  EXPECT_EQ(info()["spec"]["cluster"]["certificate-authority-data"], "Y2E=");
  EXPECT_THAT(ExecEnvironment(access, plugin, ""), Contains("PATH=/only").Times(1));
}

}  // namespace
}  // namespace penstock::protocol::kube
