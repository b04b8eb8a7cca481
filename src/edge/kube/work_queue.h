// Keys to be worked on, each once at a time, failed ones again with back-off. Knows nothing of the work.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "base/executor.h"

namespace penstock::edge::kube {

/// On one executor. A key that is worked on well has its back-off forgotten. A key that is added while it waits is worked on once; while it
/// is worked on, once more afterwards.
class WorkQueue {
 public:
  struct Options {
    base::Duration retry_first = std::chrono::milliseconds(100);
    base::Duration retry_most = std::chrono::minutes(1);
    double per_second = 20;  ///< over all keys
    int burst = 50;
    int at_once = 4;
  };
  /// Does the work of a key and calls `done` once: an error brings it back later.
  using Work = std::function<void(const std::string& key, std::function<void(base::Status)> done)>;

  WorkQueue(base::Executor& executor, Options options, Work work);
  ~WorkQueue();

  void Add(const std::string& key);
  void AddAfter(const std::string& key, base::Duration delay);
  void Forget(const std::string& key);  ///< its back-off starts anew
  std::size_t size() const;             ///< keys that could be worked on now and wait for their turn

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::kube
