// Orders in the order of their coming.
#include "door/move_orders.h"

#include <utility>

#include "base/core/strings.h"

namespace penstock::door {

using base::Code;
using base::Error;
using base::Result;
using edge::broker::DeviceMove;

MoveOrders::Tellings MoveOrders::Begin(const std::vector<DeviceMove>& moves, Progress progress, Done done) {
  Tellings tellings;
  Order mine{.progress = std::move(progress), .done = std::move(done)};
  for (const DeviceMove& move : moves) {
    std::erase_if(orders_, [&](Order& order) {
      if (!order.told.contains(move.device)) return false;
      tellings.emplace_back([its_done = std::move(order.done), device = move.device] {
        its_done(Error(Code::kCancelled, "another request moves device " + device + " now"));
      });
      return true;
    });
    mine.devices.push_back(move.device);
    mine.told[move.device] = move;
  }
  orders_.push_back(std::move(mine));
  return tellings;
}

void MoveOrders::GoneBack(const std::string& device, const std::string& sentence) {
  for (Order& order : orders_)
    if (order.told.contains(device)) order.gone_back.push_back(sentence);
}

MoveOrders::Tellings MoveOrders::Update(const std::function<DeviceMove(const DeviceMove&)>& now_of) {
  Tellings tellings;
  std::erase_if(orders_, [&](Order& order) {
    bool settled = true;
    for (const std::string& device : order.devices) {
      DeviceMove& told = order.told[device];
      const DeviceMove now = now_of(told);
      settled &= now.state != "waiting";
      if (now == told) continue;
      if (now.state == "offered") {
        DeviceMove before = now;
        before.state = "acknowledged";
        tellings.emplace_back([progress = order.progress, before] { progress(before); });
      }
      tellings.emplace_back([progress = order.progress, now] { progress(now); });
      told = now;
    }
    if (settled) tellings.emplace_back([done = order.done, answer = AnswerOf(order)] { done(answer); });
    return settled;
  });
  return tellings;
}

Result<std::vector<DeviceMove>> MoveOrders::AnswerOf(const Order& order) {
  if (!order.gone_back.empty()) return Error(Code::kDeadlineExceeded, base::Join(order.gone_back, "; "));
  std::vector<DeviceMove> moves;
  for (const std::string& device : order.devices) moves.push_back(order.told.at(device));
  return moves;
}

}  // namespace penstock::door
