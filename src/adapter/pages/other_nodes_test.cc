#include "adapter/pages/other_nodes.h"

#include <atomic>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/core/testing/must.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"
#include "protocol/kube/testing/server.h"

namespace penstock::adapter::pages {
namespace {

using protocol::http::Response;
using protocol::kube::testing::Authority;
using protocol::kube::testing::HttpRequest;
using protocol::kube::testing::Peer;
using protocol::kube::testing::Server;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

/// A node whose agent answers as the test says, and this node's view of it. Time moves only when a
/// test advances it.
class OtherNodesTest : public testing::Test {
 protected:
  OtherNodesTest() {
    loop_.Start();
    io_.Start();
  }
  ~OtherNodesTest() override {
    loop_.Run([this] { nodes_.reset(); });
    loop_.Stop();
    io_.Stop();
  }

  bool Answer(const HttpRequest& request, Peer& peer) {
    ++asked_;
    std::lock_guard lock(mutex_);
    last_ = request;
    const bool current = request.headers.contains("if-none-match");
    peer.Send(current && tagged_ ? "HTTP/1.1 304 Not Modified\r\nETag: W/\"1\"\r\n\r\n" : answer_);
    return true;
  }
  void AnswerWith(std::string answer, bool tagged = false) {
    std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
    tagged_ = tagged;
  }
  HttpRequest last() {
    std::lock_guard lock(mutex_);
    return last_;
  }

  void Watch(api::PageConfig config) {
    loop_.Run([&] { nodes_.emplace(loop_.loop(), io_, std::move(config)); });
  }

  /// What a browser gets.
  Response Get(std::size_t node = 0, const std::string& document = "state") {
    std::atomic<bool> arrived = false;
    Response got;
    loop_.Run([&] {
      nodes_->Get(node, document, [&](Response response) {
        got = std::move(response);
        arrived = true;
      });
    });
    EXPECT_TRUE(loop_.AdvanceUntil(0s, [&] { return arrived.load(); }));
    return got;
  }

  std::string Write(const std::string& name, const std::string& text, unsigned mode = 0600) {
    EXPECT_TRUE(os::WriteFileAtomically(folder_ / name, text, mode).ok());
    return folder_ / name;
  }

  const os::TemporaryFolder folder_;
  os::TurnedLoop loop_{"pages"};
  os::Loop io_{"io"};
  std::mutex mutex_;
  std::string answer_ = protocol::kube::testing::Reply(200, "{\"node\":\"n2\"}");
  bool tagged_ = false;
  HttpRequest last_;
  std::atomic<int> asked_ = 0;
  std::optional<OtherNodes> nodes_;
};

TEST_F(OtherNodesTest, PassOnWhatANodeAnswersToAllWhoAsk) {
  Server server([this](const auto& request, auto& peer) { return Answer(request, peer); });
  Watch({.nodes = {server.url() + "/"}});
  const Response response = Get(0, "queue?from=200");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(*response.body, "{\"node\":\"n2\"}");
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(last().target, "/ui/queue?from=200");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(*Get(0, "queue?from=200").body, "{\"node\":\"n2\"}");
  EXPECT_EQ(asked_, 1) << "the answer is fresh";
  loop_.Advance(3s);
  (void)Get(0, "queue?from=200");
  EXPECT_EQ(asked_, 2);
  loop_.Advance(10min);
  EXPECT_EQ(asked_, 2) << "no browser asks";
  EXPECT_EQ(Get(1).status, 404) << "only configured nodes";
}

TEST_F(OtherNodesTest, TransferNothingThatIsUnchanged) {
  AnswerWith(protocol::kube::testing::Reply(200, "{}",
                                            "Content-Type: application/json\r\nETag: W/\"1\"\r\n"),
             true);
  Server server([this](const auto& request, auto& peer) { return Answer(request, peer); });
  Watch({.nodes = {server.url()}});
  const std::string tag = Get().tag;
  loop_.Advance(5s);
  const Response again = Get();
  EXPECT_EQ(last().headers["if-none-match"], "W/\"1\"");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(*again.body, "{}");
  EXPECT_EQ(again.tag, tag);
}

TEST_F(OtherNodesTest, AskANodeThatDoesNotAnswerLessAndLessOften) {
  AnswerWith(protocol::kube::testing::Reply(503, "busy", ""));
  Server server([this](const auto& request, auto& peer) { return Answer(request, peer); });
  Watch({.nodes = {server.url()}});
  for (int i = 0; i < 120; ++i) {
    const Response response = Get();
    EXPECT_EQ(response.status, 502);
    EXPECT_EQ(*response.body, R"({"problem":"it answered with the status 503"})");
    loop_.Advance(5s);
  }
  EXPECT_LT(asked_, 20) << "in ten minutes";
  AnswerWith(protocol::kube::testing::Reply(200, "{}"));
  loop_.Advance(1min);
  EXPECT_EQ(Get().status, 200);
}

TEST_F(OtherNodesTest, SayWhatIsWrongAndTakeNoMoreThanADocument) {
  Server server([this](const auto& request, auto& peer) { return Answer(request, peer); });
  Watch({.nodes = {server.url()}});
  const auto problem = [&](const std::string& answer) {
    loop_.Advance(2min);
    AnswerWith(answer);
    const Response response = Get();
    EXPECT_EQ(response.status, 502);
    EXPECT_EQ(response.content_type, "application/json");
    return *response.body;
  };
  using protocol::kube::testing::Reply;
  EXPECT_THAT(problem(Reply(200, "<script>", "Content-Type: text/html\r\n")),
              HasSubstr("not an agent's"));
  EXPECT_THAT(problem(Reply(302, "", "Location: http://127.0.0.1:1/\r\n")), HasSubstr("302"));
  EXPECT_THAT(problem(Reply(401, "")), HasSubstr("page.credentialsFile"));
  EXPECT_THAT(problem(Reply(403, "")), HasSubstr("page.credentialsFile"));
  EXPECT_THAT(problem(Reply(200, std::string((1 << 20) + 1, ' '))), HasSubstr("1024 KiB"));
  EXPECT_THAT(problem("no HTTP\r\n\r\n"), HasSubstr("the request failed"));
}

TEST_F(OtherNodesTest, KeepABoundedAmount) {
  AnswerWith(protocol::kube::testing::Reply(200, std::string(1 << 20, ' ')));
  Server server([this](const auto& request, auto& peer) { return Answer(request, peer); });
  Watch({.nodes = {server.url()}});
  std::vector<std::weak_ptr<const std::string>> bodies;
  for (int i = 0; i < 40; ++i) {
    if (i % 20 == 0) loop_.Advance(3s);
    bodies.push_back(Get(0, "holders?from=" + std::to_string(i)).body);
  }
  const auto kept =
      std::count_if(bodies.begin(), bodies.end(), [](const auto& body) { return !body.expired(); });
  EXPECT_EQ(kept, 16);
  loop_.Advance(3min);
  EXPECT_TRUE(bodies.back().expired()) << "no browser asks";
}

TEST_F(OtherNodesTest, AreNotFloodedByAReaderWhoAsksForEverNewDocuments) {
  Server server([this](const auto& request, auto& peer) { return Answer(request, peer); });
  Watch({.nodes = {server.url()}});
  for (int i = 0; i < 1500; ++i) (void)Get(0, "holders?device=" + std::to_string(i));
  EXPECT_LE(asked_, OtherNodes::kMostRequests);
  loop_.Advance(3s);
  EXPECT_EQ(Get().status, 200);
}

TEST_F(OtherNodesTest, BringCredentialsToANodeThatProvesWhoItIs) {
  const Authority authority("ours"), other("another");
  Server server([this](const auto& request, auto& peer) { return Answer(request, peer); },
                authority.Server(), "");
  const std::string credentials = Write("credentials", "basic eva:hunter2\n");
  Watch({.nodes = {server.url()},
         .credentials_file = credentials,
         .ca_file = Write("ca.crt", authority.certificate())});
  EXPECT_EQ(Get().status, 200);
  EXPECT_EQ(last().headers["authorization"], "Basic ZXZhOmh1bnRlcjI=");
  const int before = asked_;
  Watch({.nodes = {server.url()},
         .credentials_file = credentials,
         .ca_file = Write("ca.crt", other.certificate())});
  const Response refused = Get();
  EXPECT_EQ(refused.status, 502);
  EXPECT_THAT(*refused.body, HasSubstr("certificate cannot be verified"));
  EXPECT_EQ(asked_, before) << "no credentials were sent";
}

TEST_F(OtherNodesTest, UseNoCredentialsThatOthersCanReadOrThatAreMalformed) {
  const auto problem = [&](const std::string& text, unsigned mode = 0600) {
    const auto access = LoadNodeAccess({.credentials_file = Write("credentials", text, mode)});
    EXPECT_FALSE(access.ok());
    return access.ok() ? "" : access.error().message();
  };
  EXPECT_THAT(problem("bearer secret\n", 0644), HasSubstr("must be readable by root alone"));
  EXPECT_THAT(problem("bearer secret\n", 0620), HasSubstr("must be readable by root alone"));
  for (const char* bad :
       {"", "secret", "basic secret", "bearer", "bearer a\r\nHost: b", "digest a:b"})
    EXPECT_THAT(problem(bad), AllOf(HasSubstr("must be one line"), Not(HasSubstr("secret"))))
        << bad;
  EXPECT_FALSE(LoadNodeAccess({.credentials_file = "/nonexistent"}).ok());
  EXPECT_FALSE(LoadNodeAccess({.credentials_file = "/dev/null"}).ok());
  EXPECT_EQ(
      Must(LoadNodeAccess({.credentials_file = Write("credentials", "bearer t")})).authorization,
      "Bearer t");
}

TEST_F(OtherNodesTest, HaveTheNamesOfTheirAddresses) {
  Watch({.nodes = {"https://gpu2.example.com:9400/", "http://[::1]:9401"}});
  EXPECT_THAT(nodes_->names(), ElementsAre("gpu2.example.com:9400", "[::1]:9401"));
}

}  // namespace
}  // namespace penstock::adapter::pages
