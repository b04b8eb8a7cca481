// Keeps the requests to move devices that are still open: which state each caller saw last, and
// when a request is done. DeviceMoves does the moving.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::node::change {

enum class MoveState {
  kUnchanged,     ///< the device already belongs to DeviceMove::to
  kWouldMove,     ///< a dry run
  kWaiting,       ///< the device is withdrawn and waits for DeviceMove::reason
  kAcknowledged,  ///< no holder is left: the final state of a move to "none"
  kOffered,       ///< the final state of any other move
};
/// "unchanged", "would-move", "waiting", "acknowledged", "offered".
std::string_view ToString(MoveState state);

/// The move of a device from one allocator to another.
struct DeviceMove {
  std::string device;  ///< id
  int index = -1;
  std::string from, to;  ///< of api::AllocatorWords
  MoveState state = MoveState::kUnchanged;
  std::string reason;  ///< what it waits for; in a dry run: who holds it now
  bool operator==(const DeviceMove&) const = default;
};

/// Used on one thread.
class MoveRequests {
 public:
  using Progress = std::function<void(const DeviceMove&)>;
  using Done = std::function<void(base::Result<std::vector<DeviceMove>>)>;
  /// Callbacks to call, in order, once the caller can cope with everything that they may do.
  using Notifications = std::vector<std::function<void()>>;

  /// Adds a request. Earlier requests for any of these devices are answered with kCancelled: the
  /// last request for a device wins.
  Notifications Begin(const std::vector<DeviceMove>& moves, Progress progress, Done done);

  /// The device is gone, or was still held at the request's deadline and returns to its former
  /// allocator. `why` becomes part of the request's error.
  void GaveUp(const std::string& device, const base::Error& why);

  /// Reports what changed. Answers each request none of whose devices waits any more.
  Notifications Update(const std::function<DeviceMove(const DeviceMove&)>& now_of);

 private:
  struct Request {
    std::vector<std::string> devices;
    std::map<std::string, DeviceMove> reported;  // as last reported
    std::vector<base::Error> given_up;           // one for each device that did not move
    Progress progress;
    Done done;
  };
  static base::Result<std::vector<DeviceMove>> Answer(const Request& request);
  std::vector<Request> requests_;
};

}  // namespace penstock::node::change
