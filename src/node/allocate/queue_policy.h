// What the queue goes by: what runs have declared, what users hold, and their limits. Says what follows from them, and ends runs only
// through a callback.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "base/executor.h"
#include "node/allocate/outlook.h"
#include "node/allocate/queue.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offers.h"

namespace penstock::node::allocate {

/// On the control executor.
class QueuePolicy {
 public:
  /// The node, as far as the policy reads it. All must outlive it.
  struct Node {
    inventory::Inventory& inventory;
    ledger::Ledger& ledger;
    share::Offers& offers;
    const std::map<std::string, Term>& terms;  ///< by lease, of those that may be ended
  };
  struct Callbacks {
    std::function<void(const std::string& lease, const std::string& why)> end;
    std::function<void()> changed;  ///< time has passed, and other answers are true now
  };
  QueuePolicy(base::Executor& executor, Node node, Callbacks callbacks);
  ~QueuePolicy();

  /// Limits from now on.
  void Configure(const api::QueueConfig& limits) { limits_ = limits; }
  const api::QueueConfig& limits() const { return limits_; }

  /// How long a run of this user is safe from being ended for another user who waits; nothing: no limit.
  std::optional<base::Duration> TimeOf(uid_t uid) const;

  Devices CouldUse(const Waiting& waiting) const;

  /// Of the first that waits. Ends runs for it that have lasted longer than the limit of time, where that serves it; calls `changed` when
  /// more of them have.
  Claim ClaimOf(const Waiting& first);

  Holding HeldBy(uid_t uid) const;

  /// When requests are served, by ticket, where that is known; they are given in the order of the queue. Computed once a second at most,
  /// however often users ask.
  const std::map<std::string, base::WallTime>& ExpectedStarts(const std::vector<Waiting>& waiting);
  static constexpr std::size_t kMostPlanned = 32;

 private:
  std::optional<base::TimePoint> OverdueAt(const Term& term) const;
  std::optional<base::TimePoint> EndedFor(const Waiting& waiting, const Term& term, base::TimePoint now) const;
  std::map<std::string, base::TimePoint> EndsFor(const Waiting& waiting, base::TimePoint now) const;
  bool EndOverdue(const Waiting& waiting, const Outlook& outlook, base::TimePoint now);

  base::Executor& executor_;
  const Node node_;
  const Callbacks callbacks_;
  api::QueueConfig limits_;
  base::TimerId next_overdue_ = 0;
  std::map<std::string, base::WallTime> expected_;
  base::TimePoint expected_until_{};  // then they are computed again
};

}  // namespace penstock::node::allocate
