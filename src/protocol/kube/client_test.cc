#include "protocol/kube/client.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

#include "base/core/strings.h"
#include "base/core/testing/must.h"
#include "os/core/fd.h"
#include "os/core/file.h"
#include "os/testing/turned_loop.h"
#include "protocol/kube/testing/client_fixture.h"
#include "protocol/kube/testing/server.h"

namespace penstock::protocol::kube {
namespace {

using testing::Chunk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HttpRequest;
using testing::kChunkedHead;
using testing::Peer;
using testing::Reply;
using testing::Server;
using namespace std::chrono_literals;

// Always sends the same answer.
Server::Handler Always(std::string bytes) {
  return [bytes = std::move(bytes)](const HttpRequest&, Peer& peer) {
    peer.Send(bytes);
    return true;
  };
}

std::string StatusObject(int code, const std::string& reason, const std::string& message) {
  return Json{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"},
              {"code", code},     {"reason", reason},   {"message", message}}
      .dump();
}

std::string ErrorOf(const base::Result<ApiResponse>& answer) {
  return answer.ok() ? "" : answer.error().ToString();
}

TEST(Client, SendsWhatItIsReportedAndKeepsOneConnection) {
  std::vector<HttpRequest> seen;
  const Server server([&](const HttpRequest& request, Peer& peer) {
    seen.push_back(request);
    peer.Send(Reply(201, R"({"kind":"ConfigMap"})"));
    return true;
  });
  ClientUnderTest client(AccessTo(server.url()), {.user_agent = "penstock/test"});
  const Resource maps{"", "v1", "configmaps"};
  auto answer = client.Do(Apply(maps, "x", {{"metadata", {{"name", "a b"}}}}, "me & you"));
  ASSERT_TRUE(answer.ok()) << ErrorOf(answer);
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ((*Parse(answer))["kind"], "ConfigMap");
  ASSERT_TRUE(client.Do(Create(maps, "x", {{"a", 1}}, "me")).ok());
  ASSERT_TRUE(client.Do(Delete(maps, "x", "a")).ok());
  ASSERT_TRUE(client.Do(GetOf("/version")).ok());

  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].method, "PATCH");
  EXPECT_EQ(seen[0].target,
            "/api/v1/namespaces/x/configmaps/a%20b?fieldManager=me%20%26%20you&force=true");
  EXPECT_EQ(seen[0].headers.at("content-type"), kApplyPatch);
  EXPECT_EQ(seen[0].headers.at("user-agent"), "penstock/test");
  EXPECT_EQ(seen[0].headers.at("accept"), "application/json");
  EXPECT_EQ(seen[0].headers.count("accept-encoding"), 0u);
  EXPECT_EQ(seen[0].body, R"({"metadata":{"name":"a b"}})");
  EXPECT_EQ(seen[1].method, "POST");
  EXPECT_EQ(seen[1].body, R"({"a":1})");
  EXPECT_EQ(seen[2].method, "DELETE");
  EXPECT_EQ(seen[2].headers.count("content-type"), 0u);
  EXPECT_EQ(seen[3].method, "GET");
  EXPECT_EQ(seen[3].connection, 1);
  client.Run([&] {
    EXPECT_EQ(client.client()->requests().writes, 3u);
    EXPECT_EQ(client.client()->requests().reads, 1u);
  });
}

TEST(Client, AnswersSixtyFourCallsAtOnceOverFewConnections) {
  std::atomic<int> most = 0;
  const Server server([&](const HttpRequest& request, Peer& peer) {
    most = std::max(most.load(), request.connection);
    peer.Send(Reply(200, "\"" + request.target + "\""));
    return true;
  });
  ClientUnderTest client(AccessTo(server.url()));
  std::vector<std::future<base::Result<ApiResponse>>> calls;
  for (int i = 0; i < 64; ++i) calls.push_back(client.Start(GetOf("/n" + std::to_string(i))));
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(calls[static_cast<std::size_t>(i)].wait_for(kPatience), std::future_status::ready);
    const auto answer = Must(calls[static_cast<std::size_t>(i)].get());
    EXPECT_EQ(answer.body, "\"/n" + std::to_string(i) + "\"");
  }
  EXPECT_LE(most, 4);
}

/// The clock advances only for libcurl's own timers, which are in milliseconds.
template <typename T>
bool Comes(os::TurnedLoop& time, const std::future<T>& future) {
  return time.AdvanceUntil(1ms, [&] { return future.wait_for(0s) == std::future_status::ready; });
}

TEST(Client, EndsASilentCallAtItsDeadlineAndAnswersTheNext) {
  std::atomic<int> arrived = 0;
  const Server server([&](const HttpRequest& request, Peer& peer) {
    if (request.target == "/well") return peer.Send(Reply(200, "{}")), true;
    if (request.target == "/half") peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
    peer.WaitUntilReceived();
    ++arrived;
    return peer.WaitUntilClosed(), false;
  });
  os::TurnedLoop time("kube test");
  time.Start();
  ClientUnderTest client(time.loop(), AccessTo(server.url()));
  const auto outcome = [&](const std::string& path) {
    const int before = arrived;
    auto answer = client.Start(GetOf(path, 2h));
    EXPECT_TRUE(time.AdvanceUntil(1ms, [&] { return arrived > before; }));
    time.Advance(1h);
    EXPECT_EQ(answer.wait_for(0s), std::future_status::timeout) << "the deadline has not passed";
    time.Advance(1h);
    EXPECT_EQ(answer.wait_for(0s), std::future_status::ready);
    return Comes(time, answer) ? ErrorOf(answer.get()) : "";
  };
  EXPECT_EQ(outcome("/silent"),
            "DEADLINE_EXCEEDED: GET /silent: no answer from " + server.url() + " within 2h");
  EXPECT_EQ(outcome("/half"), "DEADLINE_EXCEEDED: GET /half: the answer of " + server.url() +
                                  " was not complete within 2h");
  auto next = client.Start(GetOf("/well"));
  ASSERT_TRUE(Comes(time, next));
  EXPECT_TRUE(next.get().ok());
}

/// Binds the socket to a free port of this machine; returns "127.0.0.1:PORT".
std::string Bind(const os::UniqueFd& socket) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

TEST(Client, SaysAtOnceWhereNoOneListens) {
  // Bound without listening: connections are refused, and no other program can get the port
  // meanwhile.
  const os::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::string url = "http://" + Bind(socket);
  ClientUnderTest client(AccessTo(url));
  const auto answer = client.Do(GetOf("/x"));
  EXPECT_THAT(ErrorOf(answer),
              HasSubstr("UNAVAILABLE: GET /x: no connection to the API server (" + url + ")"));
}

TEST(Client, SaysWhatIsWrongWithAnAnswer) {
  const Server server([](const HttpRequest& request, Peer& peer) {
    if (request.target == "/cut")
      return peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":"), false;
    if (request.target == "/chunk")
      return peer.Send(std::string(kChunkedHead) + "5\r\n{\"a\""), false;
    if (request.target == "/none") return false;
    if (request.target == "/garbage") return peer.Send("\x16\x03\x01 nonsense"), false;
    if (request.target == "/page")
      return peer.Send(
                 Reply(200, "<html>log in</html>", "Content-Type: text/html; charset=utf-8\r\n")),
             true;
    if (request.target == "/gateway")
      return peer.Send(Reply(502, "<html>bad gateway</html>", "Content-Type: text/html\r\n")), true;
    if (request.target == "/elsewhere")
      return peer.Send(Reply(302, "", "Location: https://login.example/\r\n")), true;
    if (request.target == "/no-json")
      return peer.Send(Reply(200, "ok", "Content-Type: text/plain\r\n")), true;
    return false;
  });
  ClientUnderTest client(AccessTo(server.url()));
  EXPECT_THAT(ErrorOf(client.Do(GetOf("/cut"))),
              HasSubstr("UNAVAILABLE: GET /cut: the answer was cut off after 5 bytes"));
  EXPECT_THAT(ErrorOf(client.Do(GetOf("/chunk"))), HasSubstr("UNAVAILABLE: GET /chunk: "));
  EXPECT_THAT(
      ErrorOf(client.Do(GetOf("/none"))),
      HasSubstr(
          "UNAVAILABLE: GET /none: the connection to the API server was lost before its answer"));
  EXPECT_THAT(ErrorOf(client.Do(GetOf("/garbage"))), HasSubstr("UNAVAILABLE"));
  EXPECT_THAT(ErrorOf(client.Do(GetOf("/page"))),
              HasSubstr("DATA_LOSS: GET /page: " + server.url() + " answers with an HTML page"));
  EXPECT_THAT(ErrorOf(client.Do(GetOf("/gateway"))),
              HasSubstr("UNAVAILABLE: GET /gateway: the server answered 502 with an HTML page"));
  EXPECT_THAT(ErrorOf(client.Do(GetOf("/elsewhere"))),
              HasSubstr("a redirection, which is not followed"));
  const auto text = client.Do(GetOf("/no-json"));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(Parse(text).error().code(), Code::kDataLoss);
}

// The code that would answer these two is left out of libpenstock-net.so: calling it would end the
// program.
TEST(Client, RefusesAnEncodingOfAnAnswerThatItDidNotAskFor) {
  const Server server([](const HttpRequest& request, Peer& peer) {
    peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + request.target.substr(1) +
              ", chunked\r\n\r\n" + Chunk("{}") + "0\r\n\r\n");
    return false;
  });
  ClientUnderTest client(AccessTo(server.url()));
  for (const char* encoding : {"br", "zstd", "unknown"}) {
    const auto answer = client.Do(GetOf("/" + std::string(encoding)));
    EXPECT_THAT(ErrorOf(answer), HasSubstr("UNAVAILABLE: GET /" + std::string(encoding) +
                                           ": the connection to the API server was lost"));
  }
}

/// Listens on 127.0.0.1, reads the first bytes of one connection and answers them.
class SocksProxy {
 public:
  explicit SocksProxy(std::string answer)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    url_ = "socks5://" + Bind(socket_);
    EXPECT_EQ(::listen(socket_.get(), 1), 0);
    thread_ = std::thread([this, answer = std::move(answer)] {
      const os::UniqueFd peer(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      char bytes[64];
      const ssize_t got = ::recv(peer.get(), bytes, sizeof bytes, 0);
      greeting_.set_value(std::string(bytes, static_cast<std::size_t>(std::max<ssize_t>(got, 0))));
      EXPECT_EQ(::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(answer.size()));
    });
  }
  ~SocksProxy() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }

  const std::string& url() const { return url_; }
  std::string Greeting() { return greeting_.get_future().get(); }

 private:
  os::UniqueFd socket_;
  std::string url_;
  std::promise<std::string> greeting_;
  std::thread thread_;
};

TEST(Client, OffersASocksProxyNoGssapiAndRefusesToUseIt) {
  SocksProxy proxy("\x05\x01");  // version 5, GSSAPI
  ClusterAccess access = AccessTo("http://127.0.0.1:1");
  access.proxy = proxy.url();
  ClientUnderTest client(access);
  EXPECT_THAT(ErrorOf(client.Do(GetOf("/x"))), HasSubstr("UNAVAILABLE: GET /x: "));
  EXPECT_EQ(proxy.Greeting(), std::string("\x05\x01\x00", 3))
      << "the greeting offers one method: no authentication";
}

TEST(Client, RefusesAnAnswerWithoutEnd) {
  const std::string million(1 << 20, 'x');
  const Server server([&](const HttpRequest& request, Peer& peer) {
    peer.Send(kChunkedHead);
    for (int i = 0; i < 80; ++i) peer.Send(Chunk(million));
    return request.target == "";
  });
  ClientUnderTest client(AccessTo(server.url()));
  EXPECT_THAT(ErrorOf(client.Do(GetOf("/huge"))),
              HasSubstr("RESOURCE_EXHAUSTED: GET /huge: the answer is larger than 64 MiB"));
  StreamUnderTest stream(client, GetOf("/watch"));
  const auto end = stream.WaitForEnd();
  ASSERT_FALSE(end.ok());
  EXPECT_THAT(
      end.error().ToString(),
      HasSubstr("RESOURCE_EXHAUSTED: GET /watch: a line of the answer is longer than 8 MiB"));
}

TEST(Client, AsksAgainWhenItIsAskedToComeBack) {
  std::atomic<int> asked = 0;
  const Server server([&](const HttpRequest& request, Peer& peer) {
    const bool first = ++asked % 2 == 1;
    const std::string header = request.target == "/date"
                                   ? "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                                   : "Retry-After: 0\r\n";
    peer.Send(first ? Reply(asked % 4 == 1 ? 429 : 503,
                            StatusObject(429, "TooManyRequests", "slow down"), header)
                    : Reply(200, "{}"));
    return true;
  });
  ClientUnderTest client(AccessTo(server.url()));
  EXPECT_TRUE(client.Do(GetOf("/seconds")).ok());
  EXPECT_TRUE(client.Do(GetOf("/date")).ok());
  EXPECT_EQ(asked, 4);
  client.Run([&] { EXPECT_EQ(client.client()->requests().retries, 2u); });
}

TEST(Client, GivesUpWhereThereIsNoTimeToComeBack) {
  std::atomic<int> asked = 0;
  const Server server([&](const HttpRequest& request, Peer& peer) {
    ++asked;
    peer.Send(Reply(429, StatusObject(429, "TooManyRequests", "slow down"),
                    request.target == "/never" ? "" : "Retry-After: 60\r\n"));
    return true;
  });
  ClientUnderTest client(AccessTo(server.url()));
  EXPECT_EQ(ErrorOf(client.Do(GetOf("/x"))), "RESOURCE_EXHAUSTED: GET /x: slow down");
  EXPECT_EQ(ErrorOf(client.Do(GetOf("/never"))), "RESOURCE_EXHAUSTED: GET /never: slow down");
  EXPECT_EQ(asked, 2);
}

TEST(Client, DeliversTheLinesOfAStreamHoweverTheyAreCut) {
  const Server server([](const HttpRequest&, Peer& peer) {
    peer.Send(kChunkedHead);
    for (const char* part :
         {"{\"a\":1}\n{\"b", "\"", ":2}", "\n\n{\"c\":3}\r", "\n{\"d\":4}\n{\"e\":5}"})
      peer.Send(Chunk(part));
    peer.Send("0\r\n\r\n");
    return true;
  });
  ClientUnderTest client(AccessTo(server.url()));
  StreamUnderTest stream(client, GetOf("/watch"));
  const auto end = stream.WaitForEnd();
  EXPECT_TRUE(end.ok()) << end.error().ToString();
  EXPECT_THAT(stream.lines(),
              ElementsAre("{\"a\":1}", "{\"b\":2}", "{\"c\":3}", "{\"d\":4}", "{\"e\":5}"));
}

TEST(Client, EndsAStreamThatBreaksAndDropsItsHalfLine) {
  const Server server([](const HttpRequest&, Peer& peer) {
    return peer.Send(std::string(kChunkedHead) + Chunk("{\"a\":1}\n{\"b")), false;
  });
  ClientUnderTest client(AccessTo(server.url()));
  StreamUnderTest stream(client, GetOf("/watch"));
  const auto end = stream.WaitForEnd();
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code(), Code::kUnavailable);
  EXPECT_THAT(stream.lines(), ElementsAre("{\"a\":1}"));
}

TEST(Client, EndsAStreamThatIsRefusedOrNeverBegins) {
  const Server server([](const HttpRequest& request, Peer& peer) {
    if (request.target == "/gone")
      return peer.Send(Reply(410, StatusObject(410, "Expired", "too old resource version"))), true;
    if (request.target == "/page")
      return peer.Send(Reply(200, "<html></html>", "Content-Type: text/html\r\n")), true;
    return peer.WaitUntilClosed(), false;
  });
  ClientUnderTest client(AccessTo(server.url()));
  StreamUnderTest gone(client, GetOf("/gone"));
  EXPECT_EQ(gone.WaitForEnd().error().ToString(),
            "OUT_OF_RANGE: GET /gone: too old resource version");
  StreamUnderTest page(client, GetOf("/page"));
  EXPECT_EQ(page.WaitForEnd().error().code(), Code::kDataLoss);
  EXPECT_TRUE(page.lines().empty());
  StreamUnderTest silent(client, GetOf("/silent", 50ms));
  EXPECT_EQ(silent.WaitForEnd().error().code(), Code::kDeadlineExceeded);
}

TEST(Client, HasAConnectionForEachStreamAndTheirDeadlineEndsWithTheFirstByte) {
  std::mutex mutex;
  std::set<int> connections;
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  const Server server([&](const HttpRequest& request, Peer& peer) {
    if (request.target == "/call") return peer.Send(Reply(200, "{}")), true;
    {
      std::lock_guard lock(mutex);
      connections.insert(request.connection);
    }
    peer.Send(std::string(kChunkedHead) + Chunk("{}\n"));
    gone.wait();
    return peer.Send(Chunk("{}\n") + "0\r\n\r\n"), true;
  });
  os::TurnedLoop time("kube test");
  time.Start();
  ClientUnderTest client(time.loop(), AccessTo(server.url()));
  StreamUnderTest one(client, GetOf("/watch", 1h)), two(client, GetOf("/watch", 1h));
  ASSERT_TRUE(time.AdvanceUntil(1ms, [&] {
    std::size_t lines = 0;
    client.Run([&] { lines = one.lines().size() + two.lines().size(); });
    return lines == 2;
  }));
  // The streams outlive their deadlines, and calls are answered meanwhile.
  time.Advance(2h);
  auto call = client.Start(GetOf("/call"));
  ASSERT_TRUE(Comes(time, call));
  EXPECT_TRUE(call.get().ok());
  go.set_value();
  EXPECT_TRUE(one.WaitForEnd().ok());
  EXPECT_TRUE(two.WaitForEnd().ok());
  EXPECT_EQ(one.lines().size() + two.lines().size(), 4u);
  EXPECT_EQ(connections.size(), 2u);
}

// This process's sockets to a port.
std::vector<int> SocketsTo(int port) {
  std::vector<int> found;
  const auto names = os::ListDirectory("/proc/self/fd");
  for (const std::string& name : *names) {
    const int fd = static_cast<int>(base::ParseInt(name).value_or(-1));
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
        ::ntohs(address.sin_port) == port)
      found.push_back(fd);
  }
  return found;
}

int OptionOf(int fd, int level, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  ::getsockopt(fd, level, option, &value, &size);
  return value;
}

TEST(Client, HasTheKernelNoticeASilentPeer) {
  const Server server(Always(Reply(200, "{}")));
  ClientUnderTest client(AccessTo(server.url()), {.silent_peer = 20s});
  ASSERT_TRUE(client.Do(GetOf("/x")).ok());
  const auto sockets = SocketsTo(server.port());
  ASSERT_EQ(sockets.size(), 1u);
  EXPECT_EQ(OptionOf(sockets[0], SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(OptionOf(sockets[0], IPPROTO_TCP, TCP_KEEPIDLE), 10);
  EXPECT_EQ(OptionOf(sockets[0], IPPROTO_TCP, TCP_USER_TIMEOUT), 20'000);
}

TEST(Client, CanBeDestroyedWithEverythingUnderWay) {
  std::atomic<int> arrived = 0;
  std::promise<void> all;
  const Server server([&](const HttpRequest& request, Peer& peer) {
    if (request.target == "/watch") peer.Send(std::string(kChunkedHead) + Chunk("{}\n"));
    if (++arrived == 3) all.set_value();
    return peer.WaitUntilClosed(), false;
  });
  std::atomic<int> called = 0;
  {
    ClientUnderTest client(AccessTo(server.url()));
    std::unique_ptr<WatchStream> stream;
    client.Run([&] {
      for (int i = 0; i < 5; ++i) client.client()->Do(GetOf("/x"), [&](const auto&) { ++called; });
      stream = client.client()->Open(
          GetOf("/watch"), [](std::string_view) {}, [&](const auto&) { ++called; });
    });
    ASSERT_EQ(all.get_future().wait_for(kPatience), std::future_status::ready);
    client.Run([&] { client.client().reset(); });
    client.Run([&] { stream.reset(); });
  }
  EXPECT_EQ(called, 0);
}

TEST(Client, CanBeDestroyedByWhatItCalls) {
  const Server server([](const HttpRequest& request, Peer& peer) {
    return request.target == "/watch"
               ? peer.Send(std::string(kChunkedHead) + Chunk("{\"a\":1}\n{\"b\":2}\n"))
               : peer.Send(Reply(200, "{}")),
           true;
  });
  for (const bool whole : {false, true}) {
    ClientUnderTest client(AccessTo(server.url()));
    std::promise<void> done;
    std::unique_ptr<WatchStream> stream;
    int lines = 0;
    client.Run([&] {
      stream = client.client()->Open(
          GetOf("/watch"),
          [&](std::string_view line) {
            ++lines;
            whole ? client.client().reset() : stream.reset();
            EXPECT_EQ(line, "{\"a\":1}");
            if (whole) return done.set_value();
            client.client()->Do(GetOf("/x"), [&](const auto& answer) {
              EXPECT_TRUE(answer.ok());
              client.client().reset();
              done.set_value();
            });
          },
          [&](const auto&) { ADD_FAILURE(); });
    });
    EXPECT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
    client.Run([&] { stream.reset(); });
    EXPECT_EQ(lines, 1);
  }
}

TEST(Client, CallAndWaitAnswersOnTheCallersThread) {
  const Server server(Always(Reply(200, "[1]")));
  const auto answer = Must(CallAndWait(AccessTo(server.url()), GetOf("/x")));
  EXPECT_EQ(answer.body, "[1]");
}

}  // namespace
}  // namespace penstock::protocol::kube
