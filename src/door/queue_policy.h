// What the queue of the local door goes by: what runs have declared, what users hold, and their limits. Says what follows from them, and
// ends runs only through a callback. Knows no protocol.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "base/executor.h"
#include "door/queue_file.h"
#include "node/allocate/outlook.h"
#include "node/allocate/queue.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offers.h"

namespace penstock::door {

/// On the control executor.
class QueuePolicy {
 public:
  /// The node, as far as the policy reads it. All must outlive it.
  struct Node {
    node::inventory::Inventory& inventory;
    node::ledger::Ledger& ledger;
    node::share::Offers& offers;
    const std::map<std::string, Term>& terms;  ///< of the door's leases
  };
  struct Callbacks {
    std::function<void(const std::string& lease, const std::string& why)> end;
    std::function<void()> changed;  ///< time has passed, and other answers are true now
  };
  QueuePolicy(base::Executor& executor, Node node, Callbacks callbacks);
  ~QueuePolicy();

  /// Limits from now on.
  void Configure(const api::QueueConfig& limits) { limits_ = limits; }

  node::allocate::Devices CouldUse(const node::allocate::Waiting& waiting) const;

  /// Of the first that waits. Ends runs for it that have lasted longer than the limit of time, where that serves it; calls `changed` when
  /// more of them have.
  node::allocate::Claim ClaimOf(const node::allocate::Waiting& first);

  node::allocate::Holding HeldBy(uid_t uid) const;

  /// When those who wait are served, by ticket, where that is known; they are given in the order of the queue. Computed once in a while:
  /// whoever may ask may do so often.
  const std::map<std::string, base::WallTime>& ExpectedStarts(const std::vector<node::allocate::Waiting>& waiting);
  static constexpr std::size_t kMostPlanned = 32;

 private:
  std::optional<base::TimePoint> OverdueAt(const Term& term) const;
  std::optional<base::TimePoint> EndedFor(const node::allocate::Waiting& waiting, const Term& term, base::TimePoint now) const;
  std::map<std::string, base::TimePoint> EndsFor(const node::allocate::Waiting& waiting, base::TimePoint now) const;
  bool EndOverdue(const node::allocate::Waiting& waiting, const node::allocate::Outlook& outlook, base::TimePoint now);

  base::Executor& executor_;
  const Node node_;
  const Callbacks callbacks_;
  api::QueueConfig limits_;
  base::TimerId next_overdue_ = 0;
  std::map<std::string, base::WallTime> expected_;
  base::TimePoint expected_until_{};  // then they are computed again
};

}  // namespace penstock::door
