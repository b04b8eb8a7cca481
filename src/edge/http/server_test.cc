#include "edge/http/server.h"

#include <cstring>
#include <future>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "edge/http/request.h"
#include "os/core/fd.h"
#include "os/core/file.h"

namespace penstock::edge::http {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

os::UniqueFd ConnectTo(std::uint16_t port) {
  os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0) << strerror(errno);
  return fd;
}

os::UniqueFd ConnectTo(const std::string& path) {
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0) << strerror(errno);
  return fd;
}

void Send(const os::UniqueFd& fd, std::string_view text) {
  EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

/// Everything until the server closes.
std::string Receive(const os::UniqueFd& fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t count = 0; (count = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(count));
  return text;
}

std::string Exchange(const os::UniqueFd& fd, std::string_view request) {
  Send(fd, request);
  return Receive(fd);
}

class HttpServer : public testing::Test {
 protected:
  void Start(const Address& address = {.host = "127.0.0.1"}, ServerLimits limits = {}) {
    server_ = std::make_unique<Server>(loop_, limits);
    server_->Handle("/page", [] { return Response{.body = "hello\n"}; });
    server_->Handle("/broken", [] { return Response{.status = 503, .body = "not yet\n"}; });
    server_->Handle("/large", [] { return Response{.body = std::string(8u << 20, 'x')}; });
    const auto started = server_->Start(address);
    ASSERT_TRUE(started.ok()) << started.error().message();
    loop_.Start();
  }
  void TearDown() override { loop_.Stop(); }

  std::string Ask(const std::string& line) { return Exchange(ConnectTo(server_->port()), line + " HTTP/1.1\r\nHost: x\r\n\r\n"); }

  os::Loop loop_{"http"};
  std::unique_ptr<Server> server_;
};

TEST_F(HttpServer, ServesAPageAndCloses) {
  Start();
  EXPECT_EQ(server_->where(), "http://127.0.0.1:" + std::to_string(server_->port()));
  const std::string answer = Ask("GET /page?x=1");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 6\r\n"));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nhello\n"));
  EXPECT_THAT(Ask("HEAD /page"), EndsWith("\r\n\r\n"));
  EXPECT_THAT(Ask("GET http://x/page"), EndsWith("hello\n"));
}

TEST_F(HttpServer, SaysWhatIsWrongWithARequest) {
  Start();
  EXPECT_THAT(Ask("GET /broken"), StartsWith("HTTP/1.1 503 Service Unavailable"));
  EXPECT_THAT(Ask("GET /nothing"), AllOf(StartsWith("HTTP/1.1 404"), HasSubstr("/page\n")));
  EXPECT_THAT(Ask("POST /page"), AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD\r\n")));
  EXPECT_THAT(Exchange(ConnectTo(server_->port()), "nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("GET /" + std::string(9000, 'x')), StartsWith("HTTP/1.1 431"));
}

TEST_F(HttpServer, TakesARequestInPiecesAndALargeAnswerSlowlyRead) {
  Start();
  const auto fd = ConnectTo(server_->port());
  for (const char c : std::string_view("GET /large HTTP/1.1\r\n\r\n")) Send(fd, {&c, 1});
  EXPECT_GT(Receive(fd).size(), 8u << 20);
}

TEST_F(HttpServer, DropsAConnectionThatTakesTooLong) {
  Start({.host = "127.0.0.1"}, {.deadline = 20ms});
  const auto fd = ConnectTo(server_->port());
  Send(fd, "GET /pa");
  EXPECT_EQ(Receive(fd), "");
}

TEST_F(HttpServer, DropsTheOldestConnectionForANewOne) {
  Start({.host = "127.0.0.1"}, {.connections = 2, .deadline = 1h});
  const auto oldest = ConnectTo(server_->port());
  const auto older = ConnectTo(server_->port());
  EXPECT_THAT(Ask("GET /page"), EndsWith("hello\n"));
  EXPECT_EQ(Receive(oldest), "");
  EXPECT_THAT(Exchange(older, "GET /page HTTP/1.1\r\n\r\n"), EndsWith("hello\n"));
}

TEST_F(HttpServer, NamesAnAddressThatIsTaken) {
  Start();
  os::Loop other_loop{"other"};
  Server other(other_loop);
  const auto taken = other.Start({.host = "127.0.0.1", .port = server_->port()});
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code(), base::Code::kAlreadyExists);
  EXPECT_EQ(taken.error().message(), "listen on 127.0.0.1:" + std::to_string(server_->port()) + ": another program listens there already");
  EXPECT_FALSE(other.Start({.host = "no such host"}).ok());
}

TEST_F(HttpServer, ListensOnAllAddresses) {
  Start({});
  EXPECT_THAT(Ask("GET /page"), EndsWith("hello\n"));
}

TEST_F(HttpServer, ListensOnAUnixSocketAndRemovesIt) {
  const std::string path = testing::TempDir() + "/http_" + std::to_string(::getpid()) + ".sock";
  Start({.path = path});
  EXPECT_EQ(server_->where(), "unix:" + path);
  EXPECT_THAT(Exchange(ConnectTo(path), "GET /page HTTP/1.1\r\n\r\n"), EndsWith("hello\n"));
  os::Loop other_loop{"other"};
  EXPECT_EQ(Server(other_loop).Start({.path = path}).error().code(), base::Code::kAlreadyExists);
  loop_.Stop();
  server_.reset();
  EXPECT_FALSE(os::Exists(path));
}

TEST_F(HttpServer, ReplacesASocketThatAKilledProgramLeftButNoFile) {
  const std::string path = testing::TempDir() + "/http_stale_" + std::to_string(::getpid()) + ".sock";
  {
    const os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  Start({.path = path});
  EXPECT_THAT(Exchange(ConnectTo(path), "GET /page HTTP/1.1\r\n\r\n"), EndsWith("hello\n"));

  const std::string file = path + ".file";
  ASSERT_TRUE(os::WriteFileAtomically(file, "mine").ok());
  os::Loop other_loop{"other"};
  EXPECT_FALSE(Server(other_loop).Start({.path = file}).ok());
  EXPECT_EQ(*os::ReadFile(file), "mine");
  ::unlink(file.c_str());
}

TEST(HttpRequest, ReadsWhatIsOneAndRefusesTheRest) {
  const auto request = ParseHead("GET /a/b?c=d HTTP/1.0\r\nAccept: */*\r\n\r\n");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->method + request->path + request->query, "GET/a/bc=d");
  EXPECT_EQ(ParseHead("GET http://host HTTP/1.1\r\n\r\n")->path, "/");
  for (const char* bad :
       {"", "GET", "GET / HTTP/1.1", "GET /\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n", "GET / HTTP/2\r\n\r\n", "G@T / HTTP/1.1\r\n\r\n",
        "GET * HTTP/1.1\r\n\r\n", "GET /\x01 HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\n: x\r\n\r\n"})
    EXPECT_FALSE(ParseHead(bad).ok()) << bad;
  EXPECT_EQ(HeadLength("a\r\n\r\nb"), 5u);
  EXPECT_EQ(HeadLength("a\r\n\r"), 0u);
}

}  // namespace
}  // namespace penstock::edge::http
