#include "protocol/http/request.h"

#include <gtest/gtest.h>

#include "base/core/testing/must.h"

namespace penstock::protocol::http {
namespace {

using namespace std::chrono_literals;

TEST(HttpRequest, ReadsWhatIsOneAndRefusesTheRest) {
  const auto request = Must(ParseHead("GET /a/b?c=d HTTP/1.0\r\nAccept: */*\r\n\r\n"));
  EXPECT_EQ(request.method + request.path + request.query, "GET/a/bc=d");
  EXPECT_EQ(ParseHead("GET http://host HTTP/1.1\r\n\r\n")->path, "/");
  for (const char* bad : {"", "GET", "GET / HTTP/1.1", "GET /\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n",
                          "GET / HTTP/2\r\n\r\n", "G@T / HTTP/1.1\r\n\r\n",
                          "GET * HTTP/1.1\r\n\r\n", "GET /\x01 HTTP/1.1\r\n\r\n",
                          "GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\n: x\r\n\r\n"})
    EXPECT_FALSE(ParseHead(bad).ok()) << bad;
  EXPECT_EQ(HeadLength("a\r\n\r\nb"), 5u);
  EXPECT_EQ(HeadLength("a\r\n\r"), 0u);
}

TEST(HttpRequest, SaysWhatTheClientWants) {
  const auto request = Must(ParseHead(
      "GET / HTTP/1.1\r\nAccept: a/b\r\naccept:  c/d \r\nAccept-Encoding: gzip\r\nAUTHORIZATION: "
      "Basic YTpi\r\n"
      "X-Prometheus-Scrape-Timeout-Seconds: 2.5\r\n\r\n"));
  EXPECT_EQ(request.accept, "a/b, c/d");
  EXPECT_EQ(request.accept_encoding, "gzip");
  EXPECT_EQ(request.authorization, "Basic YTpi");
  EXPECT_EQ(request.patience, 2500ms);
  EXPECT_TRUE(request.keep_alive);
}

TEST(HttpRequest, NamesTheHostThatTheClientMeans) {
  EXPECT_EQ(ParseHead("GET / HTTP/1.1\r\nHost: a:1\r\n\r\n")->host, "a:1");
  EXPECT_EQ(ParseHead("GET / HTTP/1.0\r\n\r\n")->host, "");
  EXPECT_EQ(ParseHead("GET http://b:2/x HTTP/1.1\r\nHost: localhost\r\n\r\n")->host, "b:2")
      << "the target takes precedence";
  EXPECT_FALSE(ParseHead("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n").ok());
}

TEST(HttpRequest, ReportsWhetherTheConnectionMayGoOn) {
  const auto keeps = [](const std::string& version, const std::string& fields) {
    return ParseHead("GET / HTTP/" + version + "\r\n" + fields + "\r\n")->keep_alive;
  };
  EXPECT_TRUE(keeps("1.1", ""));
  EXPECT_TRUE(keeps("1.1", "Content-Length: 0\r\n"));
  EXPECT_FALSE(keeps("1.0", "Connection: keep-alive\r\n"));
  EXPECT_FALSE(keeps("1.1", "Connection: Close\r\n"));
  EXPECT_FALSE(keeps("1.1", "Connection: upgrade, close\r\n"));
  EXPECT_FALSE(keeps("1.1", "Content-Length: 1\r\n"));
  EXPECT_FALSE(keeps("1.1", "Transfer-Encoding: chunked\r\n"));
}

TEST(HttpRequest, PassesOverTimeoutsThatAreNoneAndRefusesAmbiguity) {
  for (const std::string odd : {"", "-1", "0", "nan", "inf", "1e9", "3s", "1 2"})
    EXPECT_EQ(
        ParseHead("GET / HTTP/1.1\r\nX-Prometheus-Scrape-Timeout-Seconds: " + odd + "\r\n\r\n")
            ->patience,
        0s)
        << odd;
  EXPECT_FALSE(
      ParseHead("GET / HTTP/1.1\r\nAuthorization: Basic a\r\nAuthorization: Basic b\r\n\r\n").ok());
  EXPECT_FALSE(ParseHead(std::string_view("GET / HTTP/1.1\r\nAccept: a\0b\r\n\r\n", 32)).ok());
  EXPECT_FALSE(ParseHead("GET / HTTP/1.1\r\nAccept: a\nEvil: b\r\n\r\n").ok());
}

}  // namespace
}  // namespace penstock::protocol::http
