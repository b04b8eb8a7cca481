#include "node/change/move_requests.h"

#include <utility>

#include "base/core/strings.h"

namespace penstock::node::change {

std::string_view ToString(MoveState state) {
  switch (state) {
    case MoveState::kUnchanged: return "unchanged";
    case MoveState::kWouldMove: return "would-move";
    case MoveState::kWaiting: return "waiting";
    case MoveState::kAcknowledged: return "acknowledged";
    case MoveState::kOffered: return "offered";
  }
  return "";
}

MoveRequests::Notifications MoveRequests::Begin(const std::vector<DeviceMove>& moves,
                                                Progress progress, Done done) {
  Notifications notifications;
  Request added{.progress = std::move(progress), .done = std::move(done)};
  for (const DeviceMove& move : moves) {
    std::erase_if(requests_, [&](Request& request) {
      if (!request.reported.contains(move.device)) return false;
      notifications.emplace_back([cancel = std::move(request.done), device = move.device] {
        cancel(Error(Code::kCancelled,
                     "another request to move device " + device + " replaced this one"));
      });
      return true;
    });
    added.devices.push_back(move.device);
    added.reported[move.device] = move;
  }
  requests_.push_back(std::move(added));
  return notifications;
}

void MoveRequests::GaveUp(const std::string& device, const base::Error& why) {
  for (Request& request : requests_)
    if (request.reported.contains(device)) request.given_up.push_back(why);
}

MoveRequests::Notifications MoveRequests::Update(
    const std::function<DeviceMove(const DeviceMove&)>& now_of) {
  Notifications notifications;
  std::erase_if(requests_, [&](Request& request) {
    bool ended = true;
    for (const std::string& device : request.devices) {
      DeviceMove& reported = request.reported[device];
      const DeviceMove now = now_of(reported);
      ended &= now.state != MoveState::kWaiting;
      if (now == reported) continue;
      if (now.state == MoveState::kOffered) {
        DeviceMove before = now;
        before.state = MoveState::kAcknowledged;
        notifications.emplace_back([progress = request.progress, before] { progress(before); });
      }
      notifications.emplace_back([progress = request.progress, now] { progress(now); });
      reported = now;
    }
    if (ended)
      notifications.emplace_back([done = request.done, answer = Answer(request)] { done(answer); });
    return ended;
  });
  return notifications;
}

Result<std::vector<DeviceMove>> MoveRequests::Answer(const Request& request) {
  if (!request.given_up.empty()) {
    std::vector<std::string> sentences;
    for (const base::Error& error : request.given_up) sentences.push_back(error.message());
    return Error(request.given_up.front().code(), base::Join(sentences, "; "));
  }
  std::vector<DeviceMove> moves;
  for (const std::string& device : request.devices) moves.push_back(request.reported.at(device));
  return moves;
}

}  // namespace penstock::node::change
