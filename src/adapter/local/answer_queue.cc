#include "adapter/local/answer_queue.h"

#include <algorithm>
#include <utility>

#include "protocol/broker/protocol.h"

namespace penstock::adapter::local {

void AnswerQueue::Add(std::shared_ptr<protocol::broker::Session> session, Work work) {
  const bool has_one = std::ranges::any_of(state_->line, [&](const auto& turn) {
    return turn->session->peer().uid == session->peer().uid;
  });
  if (has_one)
    return session->Answer(protocol::broker::EncodeError(
        base::Error(base::Code::kUnavailable,
                    "another " + state_->what +
                        " request of this user is still running; retry when it is complete")));
  const auto turn = std::make_shared<Turn>(Turn{session, std::move(work)});
  session->OnClosed([weak = std::weak_ptr(turn)] {
    if (const auto closed = weak.lock()) closed->closed = true;
  });
  state_->line.push_back(turn);
  if (state_->line.size() == 1) Begin(state_);
}

void AnswerQueue::Begin(const std::shared_ptr<State>& state) {
  while (!state->line.empty() && state->line.front()->closed) state->line.pop_front();
  if (state->line.empty()) return;
  const auto turn = state->line.front();
  turn->work([state, turn](const base::Result<std::string>& answer) {
    state->line.pop_front();
    turn->session->Answer(answer.ok() ? *answer : protocol::broker::EncodeError(answer.error()));
    Begin(state);
  });
}

}  // namespace penstock::adapter::local
