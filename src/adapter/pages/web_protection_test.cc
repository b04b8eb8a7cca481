#include "adapter/pages/web_protection.h"

#include <condition_variable>
#include <mutex>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/testing/must.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"
#include "protocol/kube/testing/certificates.h"

namespace penstock::adapter::pages {
namespace {

using protocol::kube::testing::Authority;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

constexpr char kTls[] = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n";

class WebProtectionTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(os::WriteFileAtomically(Path(name), text).ok());
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  void WritePair(const protocol::kube::testing::Certificate& pair) {
    Write("server.crt", pair.certificate);
    Write("server.key", pair.key);
  }

  base::Result<ReadProtection> Load(const std::string& text) {
    Write("web.yaml", text);
    return LoadProtection(Path("web.yaml"), std::chrono::system_clock::now(), files_);
  }
  std::string Problem(const std::string& text) {
    const auto read = Load(text);
    EXPECT_FALSE(read.ok()) << text;
    return read.ok() ? "" : read.error().message();
  }

  os::TemporaryFolder folder_;
  Authority authority_{"our authority"};
  std::vector<std::string> files_;
};

TEST_F(WebProtectionTest, ReadsWhatTheFileNames) {
  WritePair(authority_.Server());
  Write("ca.crt", authority_.certificate());
  const auto read = Must(Load(
      "tls_server_config: {cert_file: server.crt, key_file: server.key, client_ca_file: ca.crt, "
      "client_auth_type: RequireAndVerifyClientCert}\n"));
  EXPECT_NE(read.protection.tls, nullptr);
  EXPECT_THAT(files_, ElementsAre(Path("web.yaml"), Path("server.crt"), Path("server.key"),
                                  Path("ca.crt")));
  EXPECT_GT(read.certificate_ends, std::chrono::system_clock::now() + 50min);
  EXPECT_THAT(read.remarks, ElementsAre(HasSubstr("the certificate expires at ")))
      << "it lasts an hour";
}

TEST_F(WebProtectionTest, SaysWhichFileIsWrongAndWhatToDo) {
  const auto pair = authority_.Server();
  EXPECT_THAT(Problem(kTls), AllOf(HasSubstr(Path("server.crt")),
                                   HasSubstr("it is set by tls_server_config.cert_file")));
  EXPECT_EQ(files_.size(), 3u) << "the key file is followed although the certificate is missing";

  WritePair({pair.certificate, authority_.Server().key});
  EXPECT_EQ(Problem(kTls),
            Path("server.key") + " is not the key of the first certificate in " +
                Path("server.crt") +
                "; the server's own certificate must come before those of its authorities");
  WritePair({authority_.certificate() + pair.certificate, pair.key});
  EXPECT_THAT(Problem(kTls), HasSubstr("must come before those of its authorities"));
  WritePair({pair.key, pair.key});
  EXPECT_EQ(Problem(kTls),
            Path("server.crt") +
                " holds no certificate; it must have a block \"-----BEGIN CERTIFICATE-----\"");
  WritePair({pair.certificate, pair.certificate});
  EXPECT_EQ(Problem(kTls),
            Path("server.key") +
                " holds no private key; it must have a block \"-----BEGIN PRIVATE KEY-----\"");
  WritePair({pair.certificate, pair.key.substr(0, 60) + "\n-----END PRIVATE KEY-----\n"});
  EXPECT_THAT(Problem(kTls), HasSubstr(Path("server.key") + " holds a damaged private key"));
  WritePair({pair.certificate.substr(0, 100) + "\n-----END CERTIFICATE-----\n", pair.key});
  EXPECT_THAT(Problem(kTls), HasSubstr(Path("server.crt") + " holds a damaged certificate"));

  WritePair(pair);
  Write("ca.crt", "nothing\n");
  EXPECT_THAT(Problem("tls_server_config: {cert_file: server.crt, key_file: server.key, "
                      "client_ca_file: ca.crt, "
                      "client_auth_type: RequireAndVerifyClientCert}"),
              HasSubstr(Path("ca.crt") + " holds no certificate"));
  EXPECT_THAT(Problem("tls_serve_config: {}"), HasSubstr("did you mean \"tls_server_config\"?"));
  EXPECT_THAT(LoadProtection(Path("none.yaml"), {}, files_).error().message(),
              AllOf(HasSubstr(Path("none.yaml")), HasSubstr("http.webConfigFile")));
}

TEST_F(WebProtectionTest, RemarksOnACertificateThatHasEndedOrHasNotBegun) {
  WritePair(authority_.Server("localhost", -1h));
  const auto ended = Must(Load(kTls));
  EXPECT_THAT(ended.remarks, ElementsAre(HasSubstr("the certificate expired at ")));
  WritePair(authority_.Server("localhost", 24h * 30));
  EXPECT_THAT(Load(kTls)->remarks, IsEmpty());
  const auto early =
      LoadProtection(Path("web.yaml"), std::chrono::system_clock::now() - 48h, files_);
  EXPECT_THAT(early->remarks, ElementsAre(HasSubstr("is not valid before")));
}

/// Follows the files on real threads.
class WebProtectionFollows : public WebProtectionTest {
 protected:
  void Begin() {
    loop_.Start();
    io_.Start();
    web_.emplace(loop_, io_, Path("web.yaml"), WebProtection::Until::kClosed,
                 WebProtection::Callbacks{.protect =
                                              [this](protocol::http::Protection protection) {
                                                std::lock_guard lock(mutex_);
                                                protection_ = std::move(protection);
                                              },
                                          .notify =
                                              [this](const ProtectionStatus& status) {
                                                std::lock_guard lock(mutex_);
                                                status_ = status;
                                                changed_.notify_all();
                                              }});
  }
  void TearDown() override {
    loop_.Stop();
    io_.Stop();
  }
  template <typename Predicate>
  ProtectionStatus WaitFor(Predicate predicate) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 60s, [&] { return predicate(status_); }))
        << status_.problem;
    return status_;
  }
  protocol::http::Protection protection() {
    std::lock_guard lock(mutex_);
    return protection_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  ProtectionStatus status_;
  protocol::http::Protection protection_;
  os::Loop loop_{"pages"};
  os::Loop io_{"io"};
  std::optional<WebProtection> web_;
};

TEST_F(WebProtectionFollows, TheFileAndItsCertificatesAndKeepsWhatIsRight) {
  Begin();
  ProtectionStatus status = WaitFor([](const auto& now) { return now.refused == 1; });
  EXPECT_FALSE(status.in_force);
  EXPECT_FALSE(protection().closed.empty())
      << "pages stay closed until a valid configuration was read";

  WritePair(authority_.Server());
  Write("web.yaml", kTls);
  status = WaitFor([](const auto& now) { return now.in_force; });
  EXPECT_TRUE(status.tls && status.problem.empty());
  const auto first = protection().tls;
  EXPECT_TRUE(protection().closed.empty());

  Write("server.key", "nothing\n");
  status = WaitFor([](const auto& now) { return !now.problem.empty(); });
  EXPECT_THAT(status.problem, HasSubstr(Path("server.key") + " holds no private key"));
  EXPECT_TRUE(status.in_force);
  EXPECT_EQ(protection().tls, first) << "the previous configuration stays in force";

  WritePair(authority_.Server());
  status = WaitFor([](const auto& now) { return now.applied == 2; });
  EXPECT_EQ(status.problem, "");
  EXPECT_NE(protection().tls, first);

  Write("web.yaml", "{}\n");
  WaitFor([](const auto& now) { return now.applied == 3 && !now.tls; });
  EXPECT_EQ(protection().tls, nullptr);
}

TEST_F(WebProtectionFollows, NoChangeIsNoReload) {
  Write("web.yaml", "{}\n");
  Begin();
  WaitFor([](const auto& now) { return now.applied == 1; });
  Write("web.yaml", "{}\n");
  loop_.Post([this] { web_->Reload(); });
  Write("web.yaml", "http_server_config: {headers: {X-Frame-Options: deny}}\n");
  EXPECT_EQ(WaitFor([](const auto& now) { return now.applied == 2; }).refused, 0u);
  EXPECT_EQ(protection().fields.size(), 1u);
}

}  // namespace
}  // namespace penstock::adapter::pages
