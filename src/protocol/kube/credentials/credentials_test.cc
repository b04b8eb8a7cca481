#include "protocol/kube/credentials/credentials.h"

#include <atomic>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/core/testing/must.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"
#include "protocol/kube/testing/client_fixture.h"
#include "protocol/kube/testing/server.h"

namespace penstock::protocol::kube {
namespace {
using testing::Authority;
using testing::Certificate;
using ::testing::HasSubstr;
using testing::HttpRequest;
using testing::Peer;
using testing::Reply;
using testing::Server;

std::string ErrorOf(const base::Result<ApiResponse>& answer) {
  return answer.ok() ? "" : answer.error().ToString();
}

// Answers with the client's identity: its certificate's name and its token.
bool SayWho(const HttpRequest& request, Peer& peer) {
  const auto token = request.headers.find("authorization");
  peer.Send(
      Reply(200, request.client + "/" + (token != request.headers.end() ? token->second : "")));
  return true;
}

const Authority& TheAuthority() {
  static const Authority* one = new Authority("tests");
  return *one;
}

ClusterAccess SecureAccess(const Server& server) {
  ClusterAccess access = AccessTo(server.url());
  access.authority.data = TheAuthority().certificate();
  return access;
}

void MakeProgram(const os::TemporaryFolder& folder, const std::string& name,
                 const std::string& script) {
  folder.Write(name, "#!/bin/sh\n" + script);
  ASSERT_EQ(::chmod((folder / name).c_str(), 0755), 0);
}

TEST(Tls, TrustsTheAuthorityGivenAndNoOther) {
  const Server server(SayWho, TheAuthority().Server(), "");
  EXPECT_TRUE(ClientUnderTest(SecureAccess(server)).Do(GetOf("/x")).ok());

  ClusterAccess other = SecureAccess(server);
  other.authority.data = Authority("others").certificate();
  EXPECT_THAT(ErrorOf(ClientUnderTest(other).Do(GetOf("/x"))),
              HasSubstr("UNAVAILABLE: GET /x: the API server's certificate does not match the "
                        "given certificate authority and name"));
  other.insecure_skip_tls_verify = true;
  other.authority.data.clear();
  EXPECT_TRUE(ClientUnderTest(other).Do(GetOf("/x")).ok());

  ClusterAccess nonsense = SecureAccess(server);
  nonsense.authority.data = "no certificate";
  EXPECT_THAT(ErrorOf(ClientUnderTest(nonsense).Do(GetOf("/x"))),
              HasSubstr("certificate authority"));
}

TEST(Tls, ChecksTheNameItIsReportedAndConnectsToTheAddress) {
  std::atomic<int> asked = 0;
  const Server server(
      [&](const HttpRequest& request, Peer& peer) {
        ++asked;
        return peer.Send(Reply(200, request.headers.at("host"))), true;
      },
      TheAuthority().Server("kubernetes.default.svc"), "");
  ClusterAccess access = SecureAccess(server);
  EXPECT_FALSE(ClientUnderTest(access).Do(GetOf("/x")).ok());
  access.tls_server_name = "kubernetes.default.svc";
  const auto answer = Must(ClientUnderTest(access).Do(GetOf("/x")));
  EXPECT_EQ(answer.body, "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(asked, 1);
}

TEST(Tls, ShowsTheCertificateOnDiskAsItIsNow) {
  const Server server(SayWho, TheAuthority().Server(), TheAuthority().certificate());
  const os::TemporaryFolder folder;
  const auto install = [&](const Certificate& certificate) {
    folder.Write("new.crt", certificate.certificate);
    folder.Write("new.key", certificate.key);
    std::filesystem::rename(folder / "new.crt", folder / "tls.crt");
    std::filesystem::rename(folder / "new.key", folder / "tls.key");
  };
  install(TheAuthority().Client("first"));
  ClusterAccess access = SecureAccess(server);
  access.client_certificate.file = folder / "tls.crt";
  access.client_key.file = folder / "tls.key";
  ClientUnderTest client(access);
  EXPECT_EQ(client.Do(GetOf("/x"))->body, "first/");
  install(TheAuthority().Client("second"));
  // The kept connection was made with the first certificate.
  EXPECT_EQ(client.Do(GetOf("/x"))->body, "second/");
  std::filesystem::remove(folder / "tls.crt");
  EXPECT_EQ(client.Do(GetOf("/x"))->body, "second/");
}

TEST(Tls, SaysThatItsCertificateHasExpiredAndGoesOnWithTheNextOne) {
  const Server server(SayWho, TheAuthority().Server(), TheAuthority().certificate());
  const os::TemporaryFolder folder;
  const Certificate expired = TheAuthority().Client("late", std::chrono::seconds(-60));
  folder.Write("tls.crt", expired.certificate);
  folder.Write("tls.key", expired.key);
  ClusterAccess access = SecureAccess(server);
  access.client_certificate.file = folder / "tls.crt";
  access.client_key.file = folder / "tls.key";
  ClientUnderTest client(access);
  const auto refused = client.Do(GetOf("/x"));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(ErrorOf(refused),
              HasSubstr("UNAUTHENTICATED: GET /x: the API server rejects the client certificate"));
  const Certificate good = TheAuthority().Client("good");
  folder.Write("tls.crt", good.certificate);
  folder.Write("tls.key", good.key);
  EXPECT_EQ(client.Do(GetOf("/x"))->body, "good/");
}

TEST(Tls, TakesANewAuthorityFromItsFile) {
  const Authority next("next");
  const os::TemporaryFolder folder;
  folder.Write("ca.crt", TheAuthority().certificate());
  std::unique_ptr<Server> server = std::make_unique<Server>(SayWho, next.Server(), "");
  ClusterAccess access = AccessTo(server->url());
  access.authority.file = folder / "ca.crt";
  ClientUnderTest client(access);
  EXPECT_FALSE(client.Do(GetOf("/x")).ok());
  folder.Write("ca.crt", next.certificate() + TheAuthority().certificate());
  const auto answer = client.Do(GetOf("/x"));
  EXPECT_TRUE(answer.ok()) << ErrorOf(answer);
}

TEST(Credentials, ReadsATokenAgainWhenItsFileChanges) {
  const Server server(SayWho, TheAuthority().Server(), "");
  const os::TemporaryFolder folder;
  folder.Write("token", "one\n");
  ClusterAccess access = SecureAccess(server);
  access.token.file = folder / "token";
  ClientUnderTest client(access);
  EXPECT_EQ(client.Do(GetOf("/x"))->body, "/Bearer one");
  folder.Write("token", "another");
  EXPECT_EQ(client.Do(GetOf("/x"))->body, "/Bearer another");
  std::filesystem::remove(folder / "token");
  EXPECT_EQ(client.Do(GetOf("/x"))->body, "/Bearer another");
  folder.Write("token", "two words\nEvil: header");
  EXPECT_THAT(ErrorOf(client.Do(GetOf("/x"))), HasSubstr("UNAUTHENTICATED"));
}

TEST(Credentials, SaysThatATokenIsMissing) {
  const Server server(SayWho, TheAuthority().Server(), "");
  ClusterAccess access = SecureAccess(server);
  access.token.file = "/nonexistent/token";
  EXPECT_THAT(ErrorOf(ClientUnderTest(access).Do(GetOf("/x"))),
              HasSubstr("NOT_FOUND: credentials for " + server.url() + ": "));
}

TEST(Credentials, TriesOnceMoreWithFreshOnesWhenTheyAreRefused) {
  const os::TemporaryFolder folder;
  std::atomic<int> refused = 0;
  const Server server(
      [&](const HttpRequest& request, Peer& peer) {
        if (request.headers.at("authorization") == "Bearer new") return SayWho(request, peer);
        ++refused;
        // The kubelet writes the new token during the refusal: within the clock tick of the old
        // one, and of its size.
        if (request.target == "/renewed") std::ofstream(folder / "token") << "new";
        return peer.Send(Reply(
                   401,
                   R"({"kind":"Status","code":401,"reason":"Unauthorized","message":"Unauthorized"})")),
               true;
      },
      TheAuthority().Server(), "");
  folder.Write("token", "old");
  ClusterAccess access = SecureAccess(server);
  access.token.file = folder / "token";
  ClientUnderTest client(access);
  EXPECT_EQ(ErrorOf(client.Do(GetOf("/x"))), "UNAUTHENTICATED: GET /x: Unauthorized");
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(client.Do(GetOf("/renewed"))->body, "/Bearer new");
  EXPECT_EQ(refused, 3);
}

TEST(Credentials, SendsNameAndPasswordAndNoSecretInTheClear) {
  const Server server(SayWho, TheAuthority().Server(), "");
  ClusterAccess access = SecureAccess(server);
  access.user = "user";
  access.password = "pass";
  EXPECT_EQ(ClientUnderTest(access).Do(GetOf("/x"))->body, "/Basic dXNlcjpwYXNz");
  const Server plain(SayWho);
  access.server = plain.url();
  EXPECT_EQ(ClientUnderTest(access).Do(GetOf("/x"))->body, "/");
}

ClusterAccess WithPlugin(const Server& server, const std::string& command) {
  ClusterAccess access = SecureAccess(server);
  ExecPlugin plugin;
  plugin.api_version = "client.authentication.k8s.io/v1";
  plugin.command = command;
  plugin.environment = {{"WHO", "bench"}};
  access.exec.push_back(plugin);
  return access;
}

TEST(ExecPlugin, IsAskedOnceUntilItsCredentialIsRefused) {
  const os::TemporaryFolder folder;
  MakeProgram(folder, "plugin",
              "echo run >> " + (folder / "runs") + "\ncount=$(wc -l < " + (folder / "runs") +
                  ")\ncat "
                  "<<END\n{\"apiVersion\":\"client.authentication.k8s.io/"
                  "v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"$WHO$count\"}}\nEND\n");
  std::atomic<bool> first_is_good = true;
  const Server server(
      [&](const HttpRequest& request, Peer& peer) {
        if (first_is_good || request.headers.at("authorization") == "Bearer bench2")
          return SayWho(request, peer);
        return peer.Send(Reply(401, "")), true;
      },
      TheAuthority().Server(), "");
  ClientUnderTest client(WithPlugin(server, folder / "plugin"));
  auto one = client.Start(GetOf("/x")), two = client.Start(GetOf("/x"));
  EXPECT_EQ(one.get()->body, "/Bearer bench1");
  EXPECT_EQ(two.get()->body, "/Bearer bench1");
  first_is_good = false;
  EXPECT_EQ(client.Do(GetOf("/x"))->body, "/Bearer bench2");
  EXPECT_EQ(client.Do(GetOf("/x"))->body, "/Bearer bench2");
}

TEST(ExecPlugin, IsAskedAgainBeforeItsCredentialExpires) {
  const os::TemporaryFolder folder;
  MakeProgram(folder, "plugin",
              "echo run >> " + (folder / "runs") +
                  "\ncat "
                  "<<END\n{\"apiVersion\":\"client.authentication.k8s.io/"
                  "v1\",\"kind\":\"ExecCredential\"," +
                  "\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"$(date -u -d '+5 seconds' "
                  "+%Y-%m-%dT%H:%M:%SZ)\"}}\nEND\n");
  const Server server(SayWho, TheAuthority().Server(), "");
  ClientUnderTest client(WithPlugin(server, folder / "plugin"));
  EXPECT_TRUE(client.Do(GetOf("/x")).ok());
  EXPECT_TRUE(client.Do(GetOf("/x")).ok());
  EXPECT_EQ(*os::ReadFile(folder / "runs"), "run\nrun\n");
}

TEST(ExecPlugin, GivesACertificate) {
  const os::TemporaryFolder folder;
  const Certificate certificate = TheAuthority().Client("by plugin");
  const auto line = [](std::string pem) {
    for (std::size_t at = 0; (at = pem.find('\n', at)) != std::string::npos; at += 2)
      pem.replace(at, 1, "\\n");
    return pem;
  };
  folder.Write(
      "answer",
      R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"clientCertificateData":")" +
          line(certificate.certificate) + R"(","clientKeyData":")" + line(certificate.key) +
          "\"}}");
  MakeProgram(folder, "plugin", "cat " + (folder / "answer"));
  const Server server(SayWho, TheAuthority().Server(), TheAuthority().certificate());
  ClientUnderTest client(WithPlugin(server, folder / "plugin"));
  const auto answer = Must(client.Do(GetOf("/x")));
  EXPECT_EQ(answer.body, "by plugin/");
}

TEST(ExecPlugin, FailsByName) {
  const os::TemporaryFolder folder;
  MakeProgram(folder, "fails", "exit 3\n");
  MakeProgram(folder, "nonsense", "echo hello\n");
  MakeProgram(
      folder, "late",
      "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
      "\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"2001-01-01T00:00:00Z\"}}'\n");
  MakeProgram(folder, "hangs", "exec sleep 1000\n");
  const Server server(SayWho, TheAuthority().Server(), "");
  const auto error = [&](const std::string& command,
                         base::Duration deadline = std::chrono::seconds(60)) {
    ClusterAccess access = WithPlugin(server, command);
    access.exec[0].install_hint = "see example.com";
    return ErrorOf(ClientUnderTest(access).Do(GetOf("/x", deadline)));
  };
  EXPECT_THAT(error(folder / "fails"),
              HasSubstr("UNAUTHENTICATED: credentials for " + server.url() + ": the exec plugin " +
                        (folder / "fails") + " failed with status 3"));
  EXPECT_THAT(error(folder / "nonsense"), HasSubstr("printed no JSON object (6 bytes)"));
  EXPECT_THAT(error(folder / "late"), HasSubstr("printed a credential that has expired"));
  EXPECT_THAT(error("/nonexistent/plugin"), HasSubstr("see example.com"));
  EXPECT_THAT(error(folder / "hangs", std::chrono::milliseconds(100)),
              HasSubstr("no credentials for " + server.url() + " within 100ms"));
}

}  // namespace
}  // namespace penstock::protocol::kube
