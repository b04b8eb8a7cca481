#include "protocol/http/server.h"

#include <array>
#include <condition_variable>
#include <cstring>
#include <future>
#include <mutex>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/core/fd.h"
#include "os/core/file.h"
#include "os/testing/turned_loop.h"

namespace penstock::protocol::http {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

/// A response that never arrives fails the test within a minute.
void BoundWaits(const os::UniqueFd& fd) {
  const timeval minute{.tv_sec = 60, .tv_usec = 0};
  EXPECT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute)), 0);
}

/// Connects from the given address: "127.0.0.2" acts as another client.
os::UniqueFd ConnectTo(std::uint16_t port, const char* from = "127.0.0.1") {
  os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  EXPECT_EQ(::inet_pton(AF_INET, from, &address.sin_addr), 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0)
      << strerror(errno);
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0)
      << strerror(errno);
  BoundWaits(fd);
  return fd;
}

os::UniqueFd ConnectTo(const std::string& path) {
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0)
      << strerror(errno);
  BoundWaits(fd);
  return fd;
}

void Send(const os::UniqueFd& fd, std::string_view text) {
  EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

/// Returns everything until the server closes.
std::string Receive(const os::UniqueFd& fd) {
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  while ((count = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(count));
  EXPECT_FALSE(count < 0 && errno == EAGAIN)
      << "the server did not close; it sent \"" << text << "\"";
  return text;
}

std::string Exchange(const os::UniqueFd& fd, std::string_view request) {
  Send(fd, request);
  return Receive(fd);
}

/// A server whose clock only moves when a test advances it.
class HttpServer : public testing::Test {
 protected:
  void Start(const Address& address = {.host = "127.0.0.1"}, ServerLimits limits = {}) {
    server_ = std::make_unique<Server>(loop_.loop(), limits);
    server_->Handle("/page",
                    [](const Request&, const Respond& answer) { answer(Text(200, "hello\n")); });
    server_->Handle("/broken",
                    [](const Request&, const Respond& answer) { answer(Text(503, "not yet\n")); });
    server_->Handle("/tagged", [](const Request& request, const Respond& answer) {
      Response response = Text(200, request.local ? "local\n" : "network\n");
      response.fields = {{"X-Also", "yes"}};
      response.tag = "t1";
      response.kept = true;
      answer(response);
    });
    server_->Handle("/large",
                    [text = std::make_shared<const std::string>(8u << 20, 'x')](
                        const Request&, const Respond& answer) { answer({.body = text}); });
    server_->Handle("/later", [this](const Request&, const Respond& answer) {
      std::lock_guard lock(mutex_);
      later_.push_back(answer);
      changed_.notify_all();
    });
    server_->Handle(
        "/open", [](const Request&, const Respond& answer) { answer(Text(200, "open\n")); },
        PageAccess::kOpen);
    const auto started = server_->Start(address);
    ASSERT_TRUE(started.ok()) << started.error().message();
    loop_.Start();
  }
  void TearDown() override { loop_.Stop(); }

  std::string Ask(const std::string& line, const std::string& fields = "") {
    return Exchange(ConnectTo(server_->port()), line + kEnd + fields + "\r\n");
  }

  /// A connection over which this was sent.
  os::UniqueFd Asking(std::string_view text, const char* from = "127.0.0.1") const {
    os::UniqueFd fd = ConnectTo(server_->port(), from);
    Send(fd, text);
    return fd;
  }

  /// Sends a request from another thread.
  std::future<std::string> Begin(const std::string& line, const std::string& fields = "") {
    return std::async(std::launch::async, [=, this] { return Ask(line, fields); });
  }

  /// Advances the clock in small steps until there is an answer.
  std::string Turn(base::Duration step, std::future<std::string> answer) {
    EXPECT_TRUE(
        loop_.AdvanceUntil(step, [&] { return answer.wait_for(0s) == std::future_status::ready; }));
    return answer.get();
  }

  /// Waits until this many requests for /later are under way.
  std::vector<Respond> Asked(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 60s, [&] { return later_.size() >= count; }))
        << later_.size();
    return later_;
  }

  /// Waits until this many clients are connected.
  bool Connected(std::size_t count) {
    return loop_.AdvanceUntil({}, [&] { return server_->counts().open == count; });
  }

  static constexpr char kEnd[] = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Respond> later_;
  os::TurnedLoop loop_{"http"};
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
  EXPECT_THAT(Ask("POST /page"),
              AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD\r\n")));
  EXPECT_THAT(Exchange(ConnectTo(server_->port()), "nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("GET /" + std::string(9000, 'x')), StartsWith("HTTP/1.1 431"));
}

TEST_F(HttpServer, TakesARequestInPiecesAndALargeAnswerSlowlyRead) {
  Start();
  const auto fd = ConnectTo(server_->port());
  for (const char c : std::string_view("GET /large HTTP/1.1\r\nConnection: close\r\n\r\n"))
    Send(fd, {&c, 1});
  EXPECT_GT(Receive(fd).size(), 8u << 20);
}

TEST_F(HttpServer, DropsAConnectionThatTakesTooLong) {
  Start({.host = "127.0.0.1"}, {.deadline = 5s});
  const auto fd = Asking("GET /pa");
  ASSERT_TRUE(Connected(1));
  loop_.Advance(4s);
  EXPECT_EQ(server_->counts().open, 1u);
  loop_.Advance(1s);
  EXPECT_EQ(Receive(fd), "");
}

TEST_F(HttpServer, MakesRoomByTheOldestThatHasNotAsked) {
  Start({.host = "127.0.0.1"}, {.connections = 1, .deadline = 1h});  // room for five connections
  std::vector<os::UniqueFd> slow;
  for (int i = 0; i < 5; ++i) slow.push_back(Asking("GET /pa"));
  EXPECT_THAT(Ask("GET /page"), EndsWith("hello\n"));
  EXPECT_EQ(Receive(slow.front()), "");
  EXPECT_THAT(Exchange(slow.back(), "ge HTTP/1.0\r\n\r\n"), EndsWith("hello\n"));
  EXPECT_GE(server_->counts().cut, 1u);
}

TEST_F(HttpServer, OneAddressThatHasAllPlacesGivesSomeToOthers) {
  Start({.host = "127.0.0.1"},
        {.connections = 4, .deadline = 24h, .queue = 24h});  // room for twenty connections
  std::vector<os::UniqueFd> greedy;
  for (unsigned i = 1; i <= 20; ++i) {  // one after the other, so that their order is known
    greedy.push_back(Asking("GET /later HTTP/1.0\r\n\r\n", "127.0.0.2"));
    ASSERT_TRUE(Connected(i));
    loop_.Settle();
  }
  Asked(3);
  std::vector<os::UniqueFd> others;
  for (int i = 0; i < 10; ++i) others.push_back(Asking("GET /pa", "127.0.0.3"));
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(Receive(greedy[static_cast<std::size_t>(i)]), "")
        << "the oldest ten are disconnected";
  ASSERT_TRUE(Connected(20));
  EXPECT_THAT(Exchange(ConnectTo(server_->port(), "127.0.0.2"), "GET /page HTTP/1.0\r\n\r\n"),
              HasSubstr("too many clients"))
      << "the client with the most connections takes none of another client's";
  EXPECT_THAT(Exchange(others[0], "ge HTTP/1.0\r\n\r\n"), EndsWith("hello\n"));
}

TEST_F(HttpServer, WhatIsOpenToEverybodyIsAnsweredWhoeverElseIsConnected) {
  Start({.host = "127.0.0.1"}, {.connections = 1, .deadline = 24h, .queue = 24h});
  std::vector<os::UniqueFd> greedy;
  for (int i = 0; i < 5; ++i) greedy.push_back(Asking("GET /later HTTP/1.0\r\n\r\n"));
  Asked(1);
  ASSERT_TRUE(Connected(5));
  EXPECT_THAT(Ask("GET /open"), EndsWith("open\n"));
  EXPECT_THAT(Ask("GET /page"), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("too many clients")));
  for (int i = 0; i < 100; ++i) greedy.push_back(ConnectTo(server_->port()));  // which send nothing
  EXPECT_THAT(Ask("GET /open"), EndsWith("open\n"));
  EXPECT_LE(server_->counts().open, 5u + 33u) << "the connections of one client are bounded";
}

TEST_F(HttpServer, KeepsAConnectionForTheNextRequest) {
  Start();
  const auto fd = ConnectTo(server_->port());
  for (int i = 0; i < 3; ++i) {
    Send(fd, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n");
    std::string answer;
    std::array<char, 4096> buffer;
    while (!answer.ends_with("hello\n")) {
      const ssize_t count = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
      ASSERT_GT(count, 0) << answer;
      answer.append(buffer.data(), static_cast<std::size_t>(count));
    }
    EXPECT_THAT(answer, Not(HasSubstr("Connection: close")));
  }
  EXPECT_THAT(Exchange(fd, "GET /page HTTP/1.0\r\n\r\n"), EndsWith("hello\n"))
      << "an HTTP/1.0 connection closes after the response";
}

TEST_F(HttpServer, ClosesAnIdleConnection) {
  Start({.host = "127.0.0.1"}, {.idle = 10min});
  const auto fd = Asking("GET /page HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(loop_.AdvanceUntil({}, [&] { return !server_->counts().answers.empty(); }));
  loop_.Advance(9min);
  EXPECT_EQ(server_->counts().open, 1u);
  loop_.Advance(1min);
  EXPECT_THAT(Receive(fd), EndsWith("hello\n"));
}

TEST_F(HttpServer, RefusesPipelinedRequestsAndBodies) {
  Start();
  const std::string twice = "GET /page HTTP/1.1\r\n\r\nGET /page HTTP/1.1\r\n\r\n";
  const std::string answer = Exchange(ConnectTo(server_->port()), twice);
  EXPECT_EQ(answer.find("hello"), answer.rfind("hello")) << "one response only";
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(
      Exchange(ConnectTo(server_->port()), "GET /page HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"),
      EndsWith("hello\n"));
}

TEST_F(HttpServer, CompressesForThoseWhoWantIt) {
  Start();
  const std::string packed = Ask("GET /large", "Accept-Encoding: gzip\r\n");
  EXPECT_THAT(packed.substr(0, 400), HasSubstr("Content-Encoding: gzip\r\n"));
  EXPECT_LT(packed.size(), 100'000u);
  EXPECT_THAT(Ask("GET /large").substr(0, 400), Not(HasSubstr("Content-Encoding")));
  EXPECT_THAT(Ask("GET /page", "Accept-Encoding: gzip\r\n"), EndsWith("hello\n"))
      << "too short to be worth compressing";
  EXPECT_THAT(Ask("HEAD /large", "Accept-Encoding: gzip\r\n"),
              AllOf(HasSubstr("Content-Encoding: gzip"), EndsWith("\r\n\r\n")));
}

TEST_F(HttpServer, AnswersAsManyAtOnceAsItHasPlacesAndReportsTheRestWhenTheyWaitTooLong) {
  Start({.host = "127.0.0.1"},
        {.connections = 4, .deadline = 24h, .queue = 2s});  // one address has three of four places
  std::vector<os::UniqueFd> asking;
  for (int i = 0; i < 3; ++i) asking.push_back(Asking("GET /later HTTP/1.0\r\n\r\n"));
  const auto answers = Asked(3);
  EXPECT_THAT(Turn(100ms, Begin("GET /later")),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("too many clients")));
  answers[0](Text(200, "first\n"));
  EXPECT_THAT(Receive(asking[0]), EndsWith("first\n"));
  EXPECT_THAT(Ask("GET /page"), EndsWith("hello\n")) << "a slot is free again";
}

TEST_F(HttpServer, GivesAPlaceToThoseWhoWaited) {
  Start({.host = "127.0.0.1"}, {.connections = 1, .deadline = 1h, .queue = 1h});
  const auto first = ConnectTo(server_->port()), second = ConnectTo(server_->port());
  Send(first, "GET /later HTTP/1.0\r\n\r\n");
  const auto answers = Asked(1);
  Send(second, "GET /page HTTP/1.0\r\n\r\n");
  answers[0](Text(200, "first\n"));
  EXPECT_THAT(Receive(second), EndsWith("hello\n"));
}

TEST_F(HttpServer, AnswersForAHandlerThatDoesNot) {
  Start({.host = "127.0.0.1"}, {.deadline = 5s});
  auto answer = Begin("GET /later");
  const auto asked = Asked(1);
  loop_.Advance(4s);
  EXPECT_TRUE(server_->counts().answers.empty());
  loop_.Advance(1s);
  EXPECT_THAT(answer.get(), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("too busy")));
  asked[0](Text(200, "too late\n"));
  EXPECT_THAT(Ask("GET /page"), EndsWith("hello\n"));
}

TEST_F(HttpServer, TakesAScrapersOwnTimeoutForTheDeadline) {
  Start({.host = "127.0.0.1"}, {.deadline = 1h});
  auto answer = Begin("GET /later", "X-Prometheus-Scrape-Timeout-Seconds: 0.03\r\n");
  Asked(1);
  loop_.Advance(30ms);
  EXPECT_THAT(answer.get(), StartsWith("HTTP/1.1 503"));
}

TEST_F(HttpServer, EndsAReaderThatTakesNothingWhileOthersWait) {
  Start({.host = "127.0.0.1"}, {.connections = 1, .deadline = 1h, .queue = 1h});
  const auto stuck = ConnectTo(server_->port());
  Send(stuck, "GET /large HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(loop_.AdvanceUntil({}, [&] { return !server_->counts().answers.empty(); }));
  EXPECT_THAT(Turn(100ms, Begin("GET /page")), EndsWith("hello\n"));
  EXPECT_EQ(server_->counts().cut, 1u);
}

TEST_F(HttpServer, ChangesItsProtectionWhileItServes) {
  Start();
  loop_.Run([&] {
    server_->Protect({.fields = {{"X-Frame-Options", "deny"}}, .closed = "not yet"});
  });
  EXPECT_THAT(Ask("GET /page"),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("X-Frame-Options: deny\r\n"),
                    EndsWith("not yet\n")));
  EXPECT_THAT(Ask("GET /open"), EndsWith("open\n"));
  loop_.Run([&] { server_->Protect({.rate = RequestRate{.interval = 1h, .burst = 2}}); });
  EXPECT_THAT(Ask("GET /page"), EndsWith("hello\n"));
  EXPECT_THAT(Ask("GET /page"), EndsWith("hello\n"));
  EXPECT_THAT(Ask("GET /page"), StartsWith("HTTP/1.1 429"));
  EXPECT_THAT(Ask("GET /open"), EndsWith("open\n"));
}

TEST_F(HttpServer, WantsCredentialsForWhatIsGuarded) {
  Start();
  const auto secrets = Secrets::Load(false);
  ASSERT_TRUE(secrets.ok()) << secrets.error().message();
  loop_.Run([&] {
    server_->Protect({.secrets = *secrets,
                      .credentials = {.tokens = {{"scraper", (*secrets)->Hash("letmein")}}}});
  });
  EXPECT_THAT(Ask("GET /page"),
              AllOf(StartsWith("HTTP/1.1 401"),
                    HasSubstr("WWW-Authenticate: Bearer realm=\"penstock\"\r\n")));
  EXPECT_THAT(Ask("GET /nothing"), StartsWith("HTTP/1.1 401"))
      << "the list of pages is not revealed either";
  EXPECT_THAT(Ask("GET /page", "Authorization: Bearer letmein\r\n"), EndsWith("hello\n"));
  EXPECT_THAT(Ask("GET /open"), EndsWith("open\n"));
}

TEST_F(HttpServer, NamesAnAddressThatIsTaken) {
  Start();
  os::Loop other_loop{"other"};
  Server other(other_loop);
  const auto taken = other.Start({.host = "127.0.0.1", .port = server_->port()});
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code(), base::Code::kAlreadyExists);
  EXPECT_EQ(taken.error().message(), "listen on 127.0.0.1:" + std::to_string(server_->port()) +
                                         ": another program already listens there");
  EXPECT_FALSE(other.Start({.host = "no such host"}).ok());
}

TEST_F(HttpServer, ListensOnAllAddresses) {
  Start({});
  EXPECT_THAT(Ask("GET /page"), EndsWith("hello\n"));
}

TEST_F(HttpServer, AnswersInBriefToAClientThatHasTheContent) {
  Start();
  EXPECT_THAT(Ask("GET /tagged"),
              AllOf(HasSubstr("ETag: W/\"t1\"\r\n"), HasSubstr("Cache-Control: no-cache\r\n"),
                    HasSubstr("X-Also: yes\r\n"), EndsWith("local\n")));
  EXPECT_THAT(
      Ask("GET /tagged", "If-None-Match: \"a\", W/\"t1\"\r\n"),
      AllOf(StartsWith("HTTP/1.1 304 Not Modified\r\n"), HasSubstr("ETag: W/\"t1\"\r\n"),
            HasSubstr("X-Also: yes\r\n"), Not(HasSubstr("Content-Length")), EndsWith("\r\n\r\n")));
  EXPECT_THAT(Ask("GET /tagged", "If-None-Match: \"t\"\r\n"), EndsWith("local\n"));
  EXPECT_THAT(Ask("GET /page", "If-None-Match: \"\"\r\n"), EndsWith("hello\n"));
}

TEST_F(HttpServer, KnowsWhichListenersTheNetworkReaches) {
  Start({});  // a client of this machine could be a proxy
  EXPECT_THAT(Ask("GET /tagged"), EndsWith("network\n"));
}

TEST_F(HttpServer, ListensOnAUnixSocketAndRemovesIt) {
  const std::string path = testing::TempDir() + "/http_" + std::to_string(::getpid()) + ".sock";
  Start({.path = path});
  EXPECT_EQ(server_->where(), "unix:" + path);
  EXPECT_THAT(Exchange(ConnectTo(path), "GET /page HTTP/1.0\r\n\r\n"), EndsWith("hello\n"));
  EXPECT_THAT(Exchange(ConnectTo(path), "GET /tagged HTTP/1.0\r\n\r\n"), EndsWith("local\n"));
  os::Loop other_loop{"other"};
  EXPECT_EQ(Server(other_loop).Start({.path = path}).error().code(), base::Code::kAlreadyExists);
  loop_.Stop();
  server_.reset();
  EXPECT_FALSE(os::Exists(path));
}

TEST_F(HttpServer, ReplacesASocketThatAKilledProgramLeftButNoFile) {
  const std::string path =
      testing::TempDir() + "/http_stale_" + std::to_string(::getpid()) + ".sock";
  {
    const os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  Start({.path = path});
  EXPECT_THAT(Exchange(ConnectTo(path), "GET /page HTTP/1.0\r\n\r\n"), EndsWith("hello\n"));

  const std::string file = path + ".file";
  ASSERT_TRUE(os::WriteFileAtomically(file, "mine").ok());
  os::Loop other_loop{"other"};
  EXPECT_FALSE(Server(other_loop).Start({.path = file}).ok());
  EXPECT_EQ(*os::ReadFile(file), "mine");
  ::unlink(file.c_str());
}

}  // namespace
}  // namespace penstock::protocol::http
