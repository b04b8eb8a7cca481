// Computes what the queue decides by: the declared times of runs, what users hold, and their
// limits. Ends runs only through a callback.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "base/executor.h"
#include "node/allocate/outlook.h"
#include "node/allocate/queue.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offers.h"

namespace penstock::node::allocate {

/// Runs on the control executor.
class QueuePolicy {
 public:
  /// The parts of the node that the policy reads. All must outlive it.
  struct Node {
    inventory::Inventory& inventory;
    ledger::Ledger& ledger;
    share::Offers& offers;
    const std::map<std::string, Term>& terms;  ///< by lease, of the leases that may be ended
    device::DialectOf dialect_of = {};         ///< see Reserve
    std::function<Create()> create = {};       ///< Outlook::create
    /// Queue::Callbacks::being_served
    std::function<bool(const Waiting&)> being_served = {};
  };
  struct Callbacks {
    std::function<void(const std::string& lease, const std::string& why)> end;
    std::function<void()> changed;  ///< time has passed, and the answers are different now
  };
  QueuePolicy(base::Executor& executor, Node node, Callbacks callbacks);
  ~QueuePolicy();

  /// Sets the limits, from now on.
  void Configure(const api::QueueConfig& limits) { limits_ = limits; }
  const api::QueueConfig& limits() const { return limits_; }

  /// How long a run of this user is protected from being ended for another user's request; nothing:
  /// no limit.
  std::optional<base::Duration> TimeOf(uid_t uid) const;

  Devices CouldUse(const Waiting& waiting) const;

  /// What the first waiting request can count on. Ends for it runs that are over the time limit,
  /// where that serves it; calls `changed` when further runs exceed the limit.
  HeadClaim ClaimOf(const Waiting& first);

  Holding HeldBy(uid_t uid) const;

  double AmountOf(const Waiting& waiting) const;

  /// Returns when requests are served, by ticket, where that is known. `waiting` is in the order of
  /// the queue. Computed at most once a second, however often it is called.
  const std::map<std::string, base::WallTime>& ExpectedStarts(const std::vector<Waiting>& waiting);
  static constexpr std::size_t kMaxPlanned = 32;

 private:
  std::optional<base::TimePoint> OverdueAt(const Term& term) const;
  std::optional<base::TimePoint> EndedFor(const Waiting& waiting, const Term& term,
                                          base::TimePoint now) const;
  std::map<std::string, base::TimePoint> EndsFor(const Waiting& waiting, base::TimePoint now) const;
  bool EndOverdue(const Waiting& waiting, const Outlook& outlook, base::TimePoint now);

  base::Executor& executor_;
  const Node node_;
  const Callbacks callbacks_;
  api::QueueConfig limits_;
  base::TimerId next_overdue_ = 0;
  std::map<std::string, base::WallTime> expected_;
  base::TimePoint expected_until_{};  // when they are computed again
};

}  // namespace penstock::node::allocate
