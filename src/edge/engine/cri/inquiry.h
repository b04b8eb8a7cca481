// Keeps up what is known of the kubelet's container engine: asked over CRI, and again when it starts anew.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/published.h"
#include "edge/engine/cri/engine.h"
#include "os/loop.h"

namespace penstock::edge::engine::cri {

struct Known {
  std::optional<Engine> engine;  ///< as it answered last, also while it does not answer any more
  std::string problem;           ///< why there is none, or why it could not be asked again: one sentence; empty: it is as told
  bool asked = false;            ///< false until the first round of questions has ended, one way or the other
  bool operator==(const Known&) const = default;
};

/// On the control loop. Looks for sockets on `io`. Where nobody answers it asks again with back-off, from 1 s to a minute; an engine whose
/// socket is replaced, as it is when the engine starts, is asked at once.
class Inquiry {
 public:
  struct Options {
    std::string socket;  ///< of the engine; empty: found (FindSockets)
    std::string proc_root = "/proc";
    std::string kubelet_dir = "/var/lib/kubelet";
    std::string root;                                 ///< before the well-known paths; "" but in tests
    base::Duration within = std::chrono::seconds(5);  ///< for one answer
    base::Duration retry = std::chrono::seconds(1);   ///< first
    base::Duration retry_most = std::chrono::minutes(1);
  };
  /// Asks soon.
  Inquiry(os::Loop& control, base::Executor& io, Options options);
  ~Inquiry();

  /// Something may be another than it was: the kubelet has started anew. Many calls while one round lasts make one more.
  void AskAgain();

  /// Published on the control loop, only changes.
  base::Published<Known>& published();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::engine::cri
