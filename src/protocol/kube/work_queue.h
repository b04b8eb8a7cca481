// Queues keys of work: each key is worked on once at a time, and a failed one again with back-off.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "base/executor.h"

namespace penstock::protocol::kube {

/// Use on one executor. Success resets a key's back-off. A key that is added while it waits is
/// worked on once; one that is added while it is worked on, once more afterwards.
class WorkQueue {
 public:
  struct Options {
    base::Duration retry_first = std::chrono::milliseconds(100);
    base::Duration retry_most = std::chrono::minutes(1);
    double per_second = 20;  ///< over all keys
    int burst = 50;
    int at_once = 4;
  };
  /// Does the work of a key and calls `done` once; after an error the key is retried later.
  using Work = std::function<void(const std::string& key, std::function<void(base::Status)> done)>;

  WorkQueue(base::Executor& executor, Options options, Work work);
  ~WorkQueue();

  void Add(const std::string& key);
  void AddAfter(const std::string& key, base::Duration delay);
  void Forget(const std::string& key);  ///< resets its back-off
  std::size_t size() const;             ///< keys that are ready and wait for their turn

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::kube
