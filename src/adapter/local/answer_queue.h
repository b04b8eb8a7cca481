// Produces slow answers one at a time. Each user has at most one request queued, so that no user's
// wait grows with the requests of another.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "protocol/broker/server.h"

namespace penstock::adapter::local {

/// Use on the loop of the sessions.
class AnswerQueue {
 public:
  using Done = std::function<void(base::Result<std::string>)>;
  using Work = std::function<void(Done)>;

  /// `what` names the result, for people: "plan".
  explicit AnswerQueue(std::string what) : state_(std::make_shared<State>(std::move(what))) {}

  /// Starts the work once all earlier work is done, unless the session has closed by then, and
  /// answers with the line or the error that it yields. Answers kUnavailable if the session's user
  /// already has a request queued here.
  void Add(std::shared_ptr<protocol::broker::Session> session, Work work);

 private:
  struct Turn {
    std::shared_ptr<protocol::broker::Session> session;
    Work work;
    bool closed = false;
  };
  struct State {
    explicit State(std::string w) : what(std::move(w)) {}
    const std::string what;
    std::deque<std::shared_ptr<Turn>> line;  // the first one is running
  };
  static void Begin(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // running work outlives this object
};

}  // namespace penstock::adapter::local
