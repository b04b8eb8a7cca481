// Requests to move devices that are not answered yet: what each was told last, and when it is done. Moves nothing.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "edge/broker/protocol.h"

namespace penstock::door {

/// On one thread.
class MoveOrders {
 public:
  using Progress = std::function<void(const edge::broker::DeviceMove&)>;
  using Done = std::function<void(base::Result<std::vector<edge::broker::DeviceMove>>)>;
  /// What is to be called, in order, once all that it may lead to can be borne.
  using Tellings = std::vector<std::function<void()>>;

  /// Whoever asked before for one of these devices is answered with kCancelled: the last word about a device counts.
  Tellings Begin(const std::vector<edge::broker::DeviceMove>& moves, Progress progress, Done done);

  /// A device was waited for in vain; `sentence` is for its order's error (kDeadlineExceeded).
  void GoneBack(const std::string& device, const std::string& sentence);

  /// Tells what changed; an order none of whose devices is "waiting" any more is answered.
  Tellings Update(const std::function<edge::broker::DeviceMove(const edge::broker::DeviceMove&)>& now_of);

 private:
  struct Order {
    std::vector<std::string> devices;
    std::map<std::string, edge::broker::DeviceMove> told;  // last
    std::vector<std::string> gone_back;                    // sentences
    Progress progress;
    Done done;
  };
  static base::Result<std::vector<edge::broker::DeviceMove>> AnswerOf(const Order& order);
  std::vector<Order> orders_;
};

}  // namespace penstock::door
