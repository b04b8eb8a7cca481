#include "node/assign/move_requests.h"

#include <utility>

#include "base/core/strings.h"

namespace penstock::node::assign {

using base::Code;
using base::Error;
using base::Result;

MoveRequests::Notifications MoveRequests::Begin(const std::vector<DeviceMove>& moves,
                                                Progress progress, Done done) {
  Notifications notifications;
  Order mine{.progress = std::move(progress), .done = std::move(done)};
  for (const DeviceMove& move : moves) {
    std::erase_if(orders_, [&](Order& order) {
      if (!order.reported.contains(move.device)) return false;
      notifications.emplace_back([its_done = std::move(order.done), device = move.device] {
        its_done(Error(Code::kCancelled,
                       "another request to move device " + device + " replaced this one"));
      });
      return true;
    });
    mine.devices.push_back(move.device);
    mine.reported[move.device] = move;
  }
  orders_.push_back(std::move(mine));
  return notifications;
}

void MoveRequests::TimedOut(const std::string& device, const std::string& sentence) {
  for (Order& order : orders_)
    if (order.reported.contains(device)) order.gone_back.push_back(sentence);
}

MoveRequests::Notifications MoveRequests::Update(
    const std::function<DeviceMove(const DeviceMove&)>& now_of) {
  Notifications notifications;
  std::erase_if(orders_, [&](Order& order) {
    bool settled = true;
    for (const std::string& device : order.devices) {
      DeviceMove& reported = order.reported[device];
      const DeviceMove now = now_of(reported);
      settled &= now.state != "waiting";
      if (now == reported) continue;
      if (now.state == "offered") {
        DeviceMove before = now;
        before.state = "acknowledged";
        notifications.emplace_back([progress = order.progress, before] { progress(before); });
      }
      notifications.emplace_back([progress = order.progress, now] { progress(now); });
      reported = now;
    }
    if (settled)
      notifications.emplace_back([done = order.done, answer = AnswerOf(order)] { done(answer); });
    return settled;
  });
  return notifications;
}

Result<std::vector<DeviceMove>> MoveRequests::AnswerOf(const Order& order) {
  if (!order.gone_back.empty())
    return Error(Code::kDeadlineExceeded, base::Join(order.gone_back, "; "));
  std::vector<DeviceMove> moves;
  for (const std::string& device : order.devices) moves.push_back(order.reported.at(device));
  return moves;
}

}  // namespace penstock::node::assign
