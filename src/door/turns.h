// Answers that take long, made one at a time: each user has one request among them, so that nobody's wait grows with what another one asks.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "edge/broker/server.h"

namespace penstock::door {

/// On the loop of the sessions.
class Turns {
 public:
  using Done = std::function<void(base::Result<std::string>)>;
  using Work = std::function<void(Done)>;

  /// `what` is what is made, for people: "plan".
  explicit Turns(std::string what) : state_(std::make_shared<State>(std::move(what))) {}

  /// Begins the work once all that was added before is done, unless the session has closed by then, and answers with the line that it
  /// gives, or its error. kUnavailable where the session's user has a request here already.
  void Add(std::shared_ptr<edge::broker::Session> session, Work work);

 private:
  struct Turn {
    std::shared_ptr<edge::broker::Session> session;
    Work work;
    bool closed = false;
  };
  struct State {
    explicit State(std::string w) : what(std::move(w)) {}
    const std::string what;
    std::deque<std::shared_ptr<Turn>> line;  // the first one is being made
  };
  static void Begin(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // work that is on its way outlives us
};

}  // namespace penstock::door
