// Keeps up to date what is known about the kubelet's container engine: asks it over CRI, and again
// when it restarts.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/published.h"
#include "os/loop.h"
#include "protocol/engine/cri/engine.h"

namespace penstock::protocol::engine::cri {

struct EngineStatus {
  std::optional<EngineAbilities> engine;  ///< its last answer, also while it no longer answers
  std::string problem;   ///< why there is no engine, or why it could not be asked again: one
                         ///< sentence; empty: `engine` is current
  bool queried = false;  ///< false until the first round of questions has ended, successful or not
  bool operator==(const EngineStatus&) const = default;
};

/// On the control loop. Looks for sockets on `io`. If no engine answers, asks again with back-off,
/// from 1 s to a minute. Asks at once when the engine's socket is replaced, as happens when the
/// engine starts.
class EngineWatcher {
 public:
  struct Options {
    std::string socket;  ///< of the engine; empty: found by FindSockets
    std::string proc_root = "/proc";
    std::string kubelet_dir = "/var/lib/kubelet";
    std::string root;  ///< prefix of the well-known paths; "" except in tests
    base::Duration within = std::chrono::seconds(5);  ///< for one answer
    base::Duration retry = std::chrono::seconds(1);   ///< the first back-off
    base::Duration retry_most = std::chrono::minutes(1);
  };
  /// Asks soon.
  EngineWatcher(os::Loop& control, base::Executor& io, Options options);
  ~EngineWatcher();

  /// Asks again because the answers may have changed: the kubelet has restarted. Calls during a
  /// round of questions cause one more round.
  void QueryAgain();

  /// Published on the control loop, only when it changes.
  base::Published<EngineStatus>& published();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::engine::cri
