#include "adapter/pages/pages.h"

#include <array>
#include <csignal>
#include <future>
#include <utility>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/core/strings.h"
#include "os/core/fd.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::adapter::pages {
namespace {

using node::metrics::Detail;
using node::metrics::PageFormat;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class PagesTest : public testing::Test {
 protected:
  PagesTest()
      : pages_(control_, io_,
               {.metrics =
                    [](PageFormat format, Detail detail) {
                      const std::string text =
                          format == PageFormat::kText ? "x 1\n" : "y 1\n# EOF\n";
                      return node::metrics::RenderedPage{std::make_shared<const std::string>(
                          (detail == Detail::kProcesses ? "pid 4711\n" : "") + text)};
                    },
                .report =
                    [] {
                      api::Report report{.generation = 1};
                      report.devices.resize(1);
                      report.devices[0].holders.push_back(
                          {.pids = {4711}, .user = "eva", .command = "train --token=SECRET"});
                      return report;
                    },
                .page_state = [] { return api::PageState{.node = "gpu1"}; },
                .page_history = [] { return api::PageHistory{.step_seconds = 30}; },
                .hangs = [this] { return hangs_; },
                .not_ready = [this] { return not_ready_; }}) {}
  void Start(const std::string& web_config = "") {
    ::signal(SIGPIPE, SIG_IGN);
    const auto started = pages_.Start({.listen = "127.0.0.1:0", .web_config_file = web_config});
    ASSERT_TRUE(started.ok()) << started.error().message();
    control_.Start();
    io_.Start();
  }
  void TearDown() override {
    control_.Stop();
    io_.Stop();
  }

  std::string Get(const std::string& path, const std::string& fields = "") {
    const os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(
        *base::ParseUint(pages_.where().substr(pages_.where().rfind(':') + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: " + host_ +
                                "\r\nConnection: close\r\n" + fields + "\r\n";
    EXPECT_EQ(::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t count = 0; (count = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(count));
    return text;
  }

  void WriteConfig(const std::string& text) const {
    ASSERT_TRUE(os::WriteFileAtomically(file_, text).ok());
  }

  /// Returns once the status of the web configuration satisfies the predicate.
  template <typename Predicate>
  void WaitFor(Predicate predicate) {
    std::promise<void> done;
    bool reported = false;
    auto subscription = pages_.protection().Subscribe(
        [&](const auto& status) {
          if (!std::exchange(reported, reported || predicate(*status)) && reported)
            done.set_value();
        },
        true);
    ASSERT_EQ(done.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  }

  const os::TemporaryFolder folder_;
  const std::string file_ = folder_ / "web.yaml";
  os::Loop control_{"control"};
  os::Loop io_{"io"};
  std::string host_ = "localhost", hangs_, not_ready_;
  Pages pages_;
};

TEST_F(PagesTest, ServeWhatTheirSourcesSay) {
  Start();
  EXPECT_THAT(Get("/metrics"),
              AllOf(HasSubstr("Content-Type: text/plain; version=0.0.4"), EndsWith("x 1\n")));
  EXPECT_THAT(Get("/debug/state"),
              AllOf(HasSubstr("Content-Type: application/json"), HasSubstr(R"({"generation":1,)")));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(PagesTest, AreInTheFormThatTheReaderWants) {
  Start();
  EXPECT_THAT(Get("/metrics", "Accept: application/openmetrics-text;version=1.0.0\r\n"),
              AllOf(HasSubstr("Content-Type: application/openmetrics-text; version=1.0.0"),
                    HasSubstr("Vary: Accept, Accept-Encoding\r\n"), EndsWith("y 1\n# EOF\n")));
  EXPECT_THAT(Get("/metrics", "Accept: text/html, */*;q=0.1\r\n"), EndsWith("x 1\n"));
}

TEST_F(PagesTest, HaveAnIndexAndTheNamesOfOtherExporters) {
  Start();
  EXPECT_THAT(Get("/"),
              AllOf(HasSubstr("Content-Type: text/html"), HasSubstr("href=\"/metrics\"")));
  EXPECT_THAT(Get("/health"), EndsWith("ok\n"));
}

TEST_F(PagesTest, SayWhyTheAgentIsNotReady) {
  not_ready_ = "devices have not been looked for yet";
  Start();
  EXPECT_THAT(Get("/readyz"), AllOf(StartsWith("HTTP/1.1 503"),
                                    EndsWith("devices have not been looked for yet\n")));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(PagesTest, HaveThePageWithItsFilesAndData) {
  Start();
  const std::string page = Get("/");
  EXPECT_THAT(page,
              AllOf(HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'"),
                    HasSubstr("frame-ancestors 'none'"), HasSubstr("nosniff"),
                    HasSubstr("Referrer-Policy: no-referrer"), Not(HasSubstr("@BUILD@"))));
  const std::size_t at = page.find("penstock-build\" content=\"");
  ASSERT_NE(at, std::string::npos);
  const std::string build = page.substr(at + 25, page.find('"', at + 25) - at - 25);
  EXPECT_THAT(build, StartsWith(PENSTOCK_VERSION "-"));
  EXPECT_THAT(Get("/ui/state"), AllOf(HasSubstr("Content-Type: application/json"),
                                      HasSubstr("\"build\":\"" + build + "\""),
                                      HasSubstr("\"node\":\"gpu1\""), HasSubstr("no-store")));
  EXPECT_THAT(Get("/ui/history"), HasSubstr("\"stepSeconds\":30"));
  EXPECT_THAT(Get("/ui/page.js"), AllOf(HasSubstr("Content-Type: text/javascript"),
                                        HasSubstr("Cache-Control: no-cache")));
  EXPECT_THAT(Get("/ui/page.css", "If-None-Match: W/\"" + build + "\"\r\n"),
              StartsWith("HTTP/1.1 304"));
  EXPECT_THAT(Get("/ui/holders?device=x"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("/ui/state?node=0"), StartsWith("HTTP/1.1 404")) << "none is configured";
  for (const char* bad : {"/ui/", "/ui/../debug/state", "/ui/%2e%2e/page.js", "/ui/index.html"})
    EXPECT_THAT(Get(bad), StartsWith("HTTP/1.1 404")) << bad;
}

TEST_F(PagesTest, HideThePageFromOtherSitesButNotTheOtherPages) {
  Start();
  host_ = "evil.example:9400";
  for (const char* path :
       {"/", "/ui/state", "/ui/history", "/ui/holders", "/ui/queue", "/ui/page.js"})
    EXPECT_THAT(Get(path), AllOf(StartsWith("HTTP/1.1 403"), Not(HasSubstr("gpu1")))) << path;
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200"));
}

TEST_F(PagesTest, SayWhatHangsWithoutTheControlLoop) {
  hangs_ = "a thread has not come back";
  not_ready_ = "devices have not been looked for yet";
  Start();
  std::promise<void> may_go_on;
  control_.Post([&] { may_go_on.get_future().wait(); });
  for (const char* path : {"/healthz", "/health", "/readyz"})
    EXPECT_THAT(Get(path),
                AllOf(StartsWith("HTTP/1.1 503"), EndsWith("a thread has not come back\n")))
        << path;
  may_go_on.set_value();
}

TEST_F(PagesTest, AreClosedToAllButProbesUntilTheWebConfigurationIsRight) {
  Start(file_);
  EXPECT_THAT(Get("/metrics"), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("web configuration")));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200"));
  WriteConfig("bearer_tokens: {a: sha256:" + std::string(64, '0') + "}\n");
  WaitFor([](const ProtectionStatus& status) { return status.credentials; });
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Get("/debug/state"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Get("/"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));

  control_.Post([this] { pages_.Configure({.web_config_file = "/nonexistent"}); });
  WaitFor([](const ProtectionStatus& status) {
    return status.file == "/nonexistent" && status.refused == 1;
  });
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 401"))
      << "the previous configuration stays in force";
  control_.Post([this] { pages_.Configure({}); });
  WaitFor([](const ProtectionStatus& status) { return status.file.empty(); });
  EXPECT_THAT(Get("/metrics"), EndsWith("x 1\n"));
}

TEST_F(PagesTest, ReportOfProcessesToThoseAloneWhoHaveProvedWhoTheyAre) {
  const auto reports_of_none =
      AllOf(StartsWith("HTTP/1.1 200"), Not(HasSubstr("4711")), Not(HasSubstr("SECRET")));
  Start();
  EXPECT_THAT(Get("/debug/state"), AllOf(reports_of_none, HasSubstr("eva")));
  EXPECT_THAT(Get("/metrics"), reports_of_none);
  WriteConfig("http_server_config: {headers: {X-Frame-Options: deny}}\n");
  control_.Post([&] { pages_.Configure({.web_config_file = file_}); });
  WaitFor([](const ProtectionStatus& status) { return status.in_force && !status.file.empty(); });
  EXPECT_THAT(Get("/debug/state", "Authorization: Bearer a-token\r\n"), reports_of_none)
      << "no credentials are requested";
  WriteConfig(
      "bearer_tokens: {a: "
      "sha256:1f6076e3a47ba1ded08025ffe06e57af217c14f9407f33fba50f99b1c7019387}\n");
  pages_.Reload();
  WaitFor([](const ProtectionStatus& status) { return status.credentials; });
  EXPECT_THAT(Get("/debug/state", "Authorization: Bearer a-token\r\n"),
              AllOf(HasSubstr("[4711]"), HasSubstr("train --token=SECRET")));
  EXPECT_THAT(Get("/metrics", "Authorization: Bearer a-token\r\n"), HasSubstr("pid 4711\n"));
}

TEST_F(PagesTest, CanBeSwitchedOff) {
  ASSERT_TRUE(pages_.Start({.listen = "off"}).ok());
  EXPECT_EQ(pages_.where(), "");
}

TEST_F(PagesTest, SayWhatToDoWhereTheAddressIsTaken) {
  Start();
  Pages other(control_, io_, {});
  const auto taken = other.Start({.listen = pages_.where().substr(7)});
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.error().message(), HasSubstr("choose another address with --listen"));
}

}  // namespace
}  // namespace penstock::adapter::pages
