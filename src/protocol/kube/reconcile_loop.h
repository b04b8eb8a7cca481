// Runs tasks of work against the API server: one call of each at a time, paced, retried after a
// failure, and retried rarely where the server refuses.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/backoff.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "protocol/kube/work_queue.h"

namespace penstock::protocol::kube {

/// Use on the api's executor.
class ReconcileLoop {
 public:
  using Done = std::function<void(base::Status)>;

  /// Errors that persist until an administrator acts: a missing permission, a missing CRD, an
  /// admission rule.
  static bool IsRefusal(base::Code code);

  struct Task {
    std::string name;
    /// Level-triggered: compares the desired state with the observed state and applies it.
    /// kCancelled: nothing was tried, so nothing new is known.
    std::function<void(Done)> work;
    base::Duration settle{};      ///< delay after Soon, since more changes often follow
    base::Duration spacing{};     ///< minimum time between two starts
    bool may_be_missing = false;  ///< kNotFound is no problem: retried silently every five minutes
  };

  /// `reported` is called when problems() changes.
  ReconcileLoop(base::Executor& executor, std::function<void()> reported);
  ~ReconcileLoop();

  void Add(Task task);

  /// There may be work to do. Has no effect while the server refuses this task of work.
  void Soon(const std::string& name);
  void After(const std::string& name, base::Duration delay);
  /// Of a task, from its next start on.
  void SetSpacing(const std::string& name, base::Duration spacing);

  struct Problem {
    std::string text;
    bool lasting = false;  ///< until an administrator acts, unlike an unreachable server
    bool operator==(const Problem&) const = default;
  };
  /// Task → what prevents it; empty if all work succeeds.
  const std::map<std::string, Problem>& problems() const { return problems_; }
  /// Sets a problem that is not of a task of work, or clears it if its text is empty.
  void Report(const std::string& name, Problem problem);

 private:
  struct Entry {
    Task task;
    base::TimerId timer = 0;  // of the next call, at `due`; 0: none
    base::TimePoint due{};
    std::optional<base::TimePoint> begun, refused_until;
    bool refused = false;  // by the last attempt
    base::Backoff rarely{std::chrono::seconds(30), std::chrono::minutes(5)};
  };
  void Begin(const std::string& name, const Done& done);
  void Ended(Entry& entry, const base::Status& status, const Done& done);
  void Schedule(Entry& entry, base::TimePoint at);

  base::Executor& executor_;
  const std::function<void()> reported_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Problem> problems_;
  WorkQueue queue_;  // last: destroyed first, which ends all calls
};

}  // namespace penstock::protocol::kube
