// Tests the broker's server and client on one loop.
#include "protocol/broker/server.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/testing/turned_loop.h"
#include "protocol/broker/client.h"

namespace penstock::protocol::broker {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr base::Duration kPatience = seconds(60);

class BrokerTest : public testing::Test {
 protected:
  BrokerTest() {
    run_dir_ = testing::TempDir() + "broker-" + std::to_string(::getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name();
    loop_.Start();
  }
  ~BrokerTest() override {
    OnLoop([this] {
      server_.reset();
      kept_.clear();
    });
    loop_.Stop();
    std::filesystem::remove_all(run_dir_);
  }

  void OnLoop(const std::function<void()>& function) { loop_.Run(function); }

  void Start(ServerLimits limits = {}, const std::string& group = "no-such-group") {
    OnLoop([&] {
      server_ = std::make_unique<Server>(
          loop_.loop(), run_dir_, group,
          [this](std::shared_ptr<Session> session, const Request& request) {
            Handle(std::move(session), request);
          },
          limits);
      const auto started = server_->Start();
      ASSERT_TRUE(started.ok()) << started.error().ToString();
    });
  }

  // Answers everything except "run", whose session it keeps.
  void Handle(std::shared_ptr<Session> session, const Request& request) {
    ++asked_;
    if (request.operation == Operation::kQueue) asked_before_queue_ = asked_ - 1;
    uid_ = session->peer().uid;
    pid_ = session->peer().pid;
    pidfd_ = static_cast<bool>(session->peer().pidfd);
    if (request.operation == Operation::kRun) {
      session->OnClosed([this] { ++given_up_; });
      session->Progress(EncodeWaiting({.ticket = "q-1"}));
      kept_.push_back(std::move(session));
      return;
    }
    session->Answer(request.operation == Operation::kStatus
                        ? std::string(status_bytes_, '\n') + "{}"
                        : EncodeVersion({"1", 1, 1}));
  }

  Client Connect() {
    auto client = Client::Connect(run_dir_);
    EXPECT_TRUE(client.ok()) << client.error().ToString();
    return std::move(*client);
  }
  Client Asking(const std::string& line) {
    Client client = Connect();
    EXPECT_TRUE(client.SendLine(line).ok());
    return client;
  }
  // Reads until the agent closes the connection.
  static bool Closes(Client& client) {
    for (;;) {
      const auto line = client.ReadLine(kPatience);
      if (!line.ok()) return line.error().code() == Code::kUnavailable;
    }
  }
  /// Waits until the predicate holds; evaluates it on the loop.
  bool Soon(const std::function<bool()>& holds) {
    return loop_.AdvanceUntil({}, [&] {
      bool held = false;
      OnLoop([&] { held = holds(); });
      return held;
    });
  }
  /// Returns whether the agent has sent nothing more, after it has read and answered everything.
  bool Silent(Client& client) {
    loop_.Settle();
    pollfd socket{.fd = client.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&socket, 1, 0) == 0;
  }

  std::string run_dir_;
  os::TurnedLoop loop_{"broker-test"};
  std::unique_ptr<Server> server_;
  std::vector<std::shared_ptr<Session>> kept_;
  std::size_t status_bytes_ = 0;
  int given_up_ = 0, asked_ = 0, asked_before_queue_ = 0;
  uid_t uid_ = 0;
  pid_t pid_ = 0;
  bool pidfd_ = false;
};

TEST_F(BrokerTest, AnswersAndKnowsWhoAsks) {
  Start();
  Client client = Connect();
  const auto answer = client.Query(R"({"op":"version"})", kPatience);
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_TRUE(DecodeAny(*answer).ok());
  EXPECT_THAT(*answer, testing::HasSubstr("\"protocol\":1"));
  EXPECT_EQ(uid_, ::getuid());
  EXPECT_EQ(pid_, ::getpid());
  EXPECT_TRUE(pidfd_);
}

TEST_F(BrokerTest, AnswersSeveralRequestsOnOneConnectionInOrder) {
  Start();
  Client client = Asking("{\"op\":\"version\"}\nnonsense\n{\"op\":\"status\"}");
  EXPECT_THAT(*client.ReadLine(kPatience), HasSubstr("protocol"));
  EXPECT_THAT(*client.ReadLine(kPatience), HasSubstr("INVALID_ARGUMENT"));
  EXPECT_EQ(*client.ReadLine(kPatience), "{}");
}

TEST_F(BrokerTest, WaitsForTheEndOfALineThatComesInPieces) {
  Start();
  Client client = Connect();
  for (const char c : std::string(R"({"op":"version"})"))
    ASSERT_EQ(::send(client.fd(), &c, 1, 0), 1);
  EXPECT_TRUE(Silent(client));
  ASSERT_TRUE(client.SendLine("").ok());
  EXPECT_TRUE(client.ReadLine(kPatience).ok());
}

TEST_F(BrokerTest, HoldsTheNextRequestUntilTheFirstIsAnswered) {
  Start();
  Client client = Asking("{\"op\":\"run\"}\n{\"op\":\"version\"}");
  EXPECT_THAT(*client.ReadLine(kPatience), HasSubstr("waiting"));
  EXPECT_TRUE(Silent(client));
  OnLoop([this] { kept_.at(0)->Answer(EncodeDone("x")); });
  EXPECT_THAT(*client.ReadLine(kPatience), HasSubstr("done"));
  EXPECT_THAT(*client.ReadLine(kPatience), HasSubstr("protocol"));
}

TEST_F(BrokerTest, NoticesThatOneWhoWaitsHasGone) {
  Start();
  {
    Client client = Asking(R"({"op":"run"})");
    ASSERT_TRUE(client.ReadLine(kPatience).ok());
  }
  EXPECT_TRUE(Soon([this] { return given_up_ == 1 && server_->clients() == 0; }));
}

TEST_F(BrokerTest, NoticesItAlsoBehindUnreadRequests) {
  Start();
  {
    Client client = Asking("{\"op\":\"run\"}\n{\"op\":\"version\"}\n{\"op\":\"version\"}");
    ASSERT_TRUE(client.ReadLine(kPatience).ok());
  }
  EXPECT_TRUE(Soon([this] { return given_up_ == 1; }));
}

TEST_F(BrokerTest, AnswersOneWhoSendsNothingMore) {
  Start();
  status_bytes_ = 1u << 20;
  Client client = Asking(R"({"op":"status"})");
  ASSERT_EQ(::shutdown(client.fd(), SHUT_WR), 0);
  EXPECT_EQ(client.ReadLine(kPatience)->size(), status_bytes_ + 2);
  EXPECT_TRUE(Closes(client));
}

TEST_F(BrokerTest, EndsAConnectionWhoseLineIsTooLong) {
  Start();
  Client client = Asking(std::string(200000, 'x'));
  EXPECT_THAT(*client.ReadLine(kPatience), HasSubstr("64 KiB"));
  EXPECT_TRUE(Closes(client));
  Client another = Connect();
  EXPECT_TRUE(another.Query(R"({"op":"version"})", kPatience).ok());
}

TEST_F(BrokerTest, DropsOneWhoAsksNothing) {
  Start({.idle = seconds(30)});
  Client client = Connect();
  ASSERT_TRUE(Soon([this] { return server_->clients() == 1; }));
  loop_.Advance(seconds(29));
  EXPECT_TRUE(Silent(client));
  loop_.Advance(seconds(1));
  EXPECT_TRUE(Closes(client));
}

TEST_F(BrokerTest, KeepsOneWhoWaitsForItsAnswer) {
  Start({.idle = seconds(30)});
  Client client = Asking(R"({"op":"run"})");
  ASSERT_TRUE(client.ReadLine(kPatience).ok());
  loop_.Advance(std::chrono::hours(1));
  EXPECT_TRUE(Silent(client));
  OnLoop([this] { kept_.at(0)->Answer(EncodeDone("x")); });
  EXPECT_THAT(*client.ReadLine(kPatience), HasSubstr("done"));
}

TEST_F(BrokerTest, AnswersNothingMoreToOneWhoDoesNotReadAndDropsIt) {
  status_bytes_ = 1u << 20;
  Start({.idle = seconds(30)});
  Client client = Connect();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(client.SendLine(R"({"op":"status"})").ok());
  ASSERT_TRUE(Soon([this] { return asked_ > 0; }));
  loop_.Settle();
  OnLoop([this] { EXPECT_EQ(asked_, 1) << "the first response has not been read yet"; });
  loop_.Advance(seconds(30));
  EXPECT_TRUE(Soon([this] { return server_->clients() == 0; }));
}

TEST_F(BrokerTest, DropsOneWhoDoesNotReadWhatItWaitsFor) {
  Start({.output_bytes = 1u << 20});
  Client client = Asking(R"({"op":"run"})");
  ASSERT_TRUE(Soon([this] { return kept_.size() == 1; }));
  OnLoop([this] {
    for (int i = 0; i < 32 && given_up_ == 0; ++i) kept_.at(0)->Progress(std::string(65536, ' '));
    EXPECT_EQ(given_up_, 1);
  });
}

TEST_F(BrokerTest, HasOneBoundForAllThatIsNotRead) {
  Start({.output_bytes = 16u << 20, .unread_bytes = 2u << 20});
  Client large = Connect(), small = Connect();
  ASSERT_TRUE(large.SendLine(R"({"op":"run"})").ok());
  ASSERT_TRUE(Soon([this] { return kept_.size() == 1; }));
  ASSERT_TRUE(small.SendLine(R"({"op":"run"})").ok());
  ASSERT_TRUE(Soon([this] { return kept_.size() == 2; }));
  OnLoop([this] {
    kept_.at(0)->Progress(std::string(1900 * 1024, ' '));
    EXPECT_EQ(server_->clients(), 2u);
    kept_.at(1)->Progress(std::string(1000 * 1024, ' '));
    EXPECT_EQ(server_->clients(), 1u);
    kept_.at(1)->Answer(EncodeDone("x"));
  });
  for (int lines = 0; lines < 3; ++lines)
    EXPECT_TRUE(small.ReadLine(kPatience).ok())
        << "the client with the most unread responses was disconnected";
}

TEST_F(BrokerTest, ServesOthersBetweenTheRequestsOfOneWhoSendsMany) {
  Start();
  Client many = Connect(), one = Connect();
  std::string lines = R"({"op":"version"})";
  for (int i = 1; i < 200; ++i) lines += "\n" + std::string(R"({"op":"version"})");
  OnLoop([&] {
    ASSERT_TRUE(many.SendLine(lines).ok());
    ASSERT_TRUE(one.SendLine(R"({"op":"queue"})").ok());
  });
  ASSERT_TRUE(one.ReadLine(kPatience).ok());
  OnLoop([&] { EXPECT_LT(asked_before_queue_, 100); });
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(many.ReadLine(kPatience).ok()) << "all requests are answered eventually";
}

TEST_F(BrokerTest, EndsAConnectionThatSendsOnlyNonsense) {
  Start({.malformed = 3});
  Client client = Connect();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client.SendLine("nonsense").ok());
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(*client.ReadLine(kPatience), HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(*client.ReadLine(kPatience), HasSubstr("closing the connection"));
  EXPECT_TRUE(Closes(client));
}

TEST_F(BrokerTest, KeepsPlacesForThoseWhoAskWhileOthersWait) {
  Start({.shares = {.queries = 4, .waiting = 8, .for_root = 0}});
  std::vector<Client> waiting;
  for (std::size_t i = 0; i < 6; ++i) {
    waiting.push_back(Connect());
    ASSERT_TRUE(waiting.back().SendLine(R"({"op":"run"})").ok());
    EXPECT_THAT(*waiting.back().ReadLine(kPatience), HasSubstr("waiting"));
  }
  Client next = Connect();
  EXPECT_THAT(next.Query(R"({"op":"run"})", kPatience).error().message(),
              HasSubstr("are waiting for devices"));
  EXPECT_TRUE(next.Query(R"({"op":"version"})", kPatience).ok());
  waiting.pop_back();
  ASSERT_TRUE(Soon([this] { return given_up_ == 1; }));
  ASSERT_TRUE(next.SendLine(R"({"op":"run"})").ok());
  EXPECT_THAT(*next.ReadLine(kPatience), HasSubstr("waiting"))
      << "the slot of a disconnected client is free";
}

TEST_F(BrokerTest, ReportsTheOneTooManyWhy) {
  Start({.shares = {.queries = 2, .for_root = 0}});
  Client first = Connect();
  Client second = Connect();
  ASSERT_TRUE(Soon([this] { return server_->clients() == 2; }));
  Client third = Connect();
  EXPECT_THAT(*third.ReadLine(kPatience), HasSubstr("RESOURCE_EXHAUSTED"));
  EXPECT_TRUE(Closes(third));
  EXPECT_TRUE(first.Query(R"({"op":"version"})", kPatience).ok());
}

TEST_F(BrokerTest, IsOpenToItsOwnerAloneWithoutAGroup) {
  Start();
  struct stat socket {};
  ASSERT_EQ(::stat(SocketPath(run_dir_).c_str(), &socket), 0);
  EXPECT_EQ(socket.st_mode & 0777, 0600u);
  EXPECT_THAT(server_->access(), HasSubstr("there is no group no-such-group"));
}

TEST_F(BrokerTest, ReplacesTheSocketOfAnAgentThatWasKilled) {
  Start();
  std::filesystem::create_hard_link(SocketPath(run_dir_), run_dir_ + "/left");
  OnLoop([this] { server_.reset(); });
  EXPECT_FALSE(std::filesystem::exists(SocketPath(run_dir_)));
  std::filesystem::rename(run_dir_ + "/left", SocketPath(run_dir_));
  Start();
  Client client = Connect();
  EXPECT_TRUE(client.Query(R"({"op":"version"})", kPatience).ok());
}

TEST_F(BrokerTest, WorksBelowAPathLongerThanASocketsNameMayBe) {
  const std::string top = run_dir_;
  run_dir_ += "/" + std::string(120, 'd');
  Start();
  Client client = Connect();
  EXPECT_TRUE(client.Query(R"({"op":"version"})", kPatience).ok());
  OnLoop([this] { server_.reset(); });
  run_dir_ = top;
}

TEST_F(BrokerTest, SaysWhatToDoWhereNoAgentIs) {
  const auto none = Client::Connect(run_dir_);
  EXPECT_EQ(none.error().code(), Code::kUnavailable);
  EXPECT_EQ(
      none.error().message(),
      "no agent answers at " + run_dir_ +
          "/penstock.sock: start one with `penstock up`, or pass the --run-dir of the running one");
}

TEST_F(BrokerTest, ReportsAWaitingClientThatTheAgentEnded) {
  Start();
  Client client = Asking(R"({"op":"run"})");
  ASSERT_TRUE(client.ReadLine(kPatience).ok());
  OnLoop([this] { server_.reset(); });
  EXPECT_THAT(client.ReadLine(kPatience).error().message(), HasSubstr("exited before it answered"));
}

}  // namespace
}  // namespace penstock::protocol::broker
