// Pieces of work towards the API server: each alone at a time, paced, again after a failure, and rarely what the server refuses. Knows
// nothing of the work.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/backoff.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "edge/kube/work_queue.h"

namespace penstock::door {

/// On the api's executor.
class ClusterWork {
 public:
  using Done = std::function<void(base::Status)>;

  /// What is the same the next time unless somebody does something about it: a right, a CRD, an admission rule.
  static bool IsRefusal(base::Code code);

  struct Piece {
    std::string name;
    /// Level-triggered: looks at what is wanted and brings it about. kCancelled: nothing was tried, so that nothing is known anew.
    std::function<void(Done)> work;
    base::Duration settle{};      ///< so long after it was asked for, since more often follows
    base::Duration spacing{};     ///< between two beginnings
    bool may_be_missing = false;  ///< kNotFound is no problem: looked again every five minutes, in silence
  };

  /// `told` is called when problems() changed.
  ClusterWork(base::Executor& executor, std::function<void()> told);
  ~ClusterWork();

  void Add(Piece piece);

  /// There may be something to do. Nothing happens while the server refuses this piece of work.
  void Soon(const std::string& name);
  void After(const std::string& name, base::Duration delay);

  struct Problem {
    std::string text;
    bool lasting = false;  ///< until somebody does something about it, in contrast to a server that is away
    bool operator==(const Problem&) const = default;
  };
  /// Piece → what keeps it from being done; none where all is well.
  const std::map<std::string, Problem>& problems() const { return problems_; }
  /// Sets or, if its text is empty, takes away a problem of something else.
  void Say(const std::string& name, Problem problem);

 private:
  struct Entry {
    Piece piece;
    base::TimerId timer = 0;  // of the next call, at `due`; 0: none is coming
    base::TimePoint due{};
    std::optional<base::TimePoint> begun, refused_until;
    bool refused = false;  // the last time that something was tried
    base::Backoff rarely{std::chrono::seconds(30), std::chrono::minutes(5)};
  };
  void Begin(const std::string& name, const Done& done);
  void Ended(Entry& entry, const base::Status& status, const Done& done);
  void Schedule(Entry& entry, base::TimePoint at);

  base::Executor& executor_;
  const std::function<void()> told_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Problem> problems_;
  edge::kube::WorkQueue queue_;  // last: its end is the end of all calls
};

}  // namespace penstock::door
