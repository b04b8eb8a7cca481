#include "node/allocate/queue_policy.h"

#include <algorithm>
#include <utility>

#include "base/core/clock.h"
#include "node/allocate/allocate.h"

namespace penstock::node::allocate {

namespace {

constexpr base::Duration kPlanAgain = std::chrono::seconds(1);

/// When the devices of a run are certainly released, even if it ignores SIGTERM; nothing: it
/// declared no end.
std::optional<base::TimePoint> CertainEnd(const Term& term) {
  if (term.killed) return term.killed;
  return term.ends ? std::optional(*term.ends + kKillWait) : std::nullopt;
}

}  // namespace

QueuePolicy::QueuePolicy(base::Executor& executor, Node node, Callbacks callbacks)
    : executor_(executor), node_(node), callbacks_(std::move(callbacks)) {}

QueuePolicy::~QueuePolicy() { executor_.Cancel(next_overdue_); }

Devices QueuePolicy::CouldUse(const Waiting& waiting) const {
  return DevicesFor(waiting.request, *node_.inventory.published().Get(), *node_.offers.Get(),
                    node_.dialect_of);
}

double QueuePolicy::AmountOf(const Waiting& waiting) const {
  return allocate::AmountOf(waiting.request, *node_.inventory.published().Get(),
                            *node_.offers.Get(), node_.dialect_of);
}

std::optional<base::Duration> QueuePolicy::TimeOf(uid_t uid) const {
  return limits_.time > base::Duration::zero() && uid != 0 ? std::optional(limits_.time)
                                                           : std::nullopt;
}

/// When the time limit allows the run to be ended for another user.
std::optional<base::TimePoint> QueuePolicy::OverdueAt(const Term& term) const {
  const auto time = term.uid ? TimeOf(*term.uid) : std::nullopt;
  return time ? std::optional(term.began + *time) : std::nullopt;
}

/// When the time limit allows the run to be ended for this request, at `now` at the earliest.
/// Nothing for a request beyond its own user's limits, and for one that may have left the queue
/// before the run has certainly ended: the run would be ended for nothing.
std::optional<base::TimePoint> QueuePolicy::EndedFor(const Waiting& waiting, const Term& term,
                                                     base::TimePoint now) const {
  const auto overdue = OverdueAt(term);
  if (!overdue || waiting.beyond || term.uid == waiting.waiter.uid) return std::nullopt;
  const base::TimePoint at = std::max(*overdue, now);
  return waiting.until && *waiting.until < at + kKillWait ? std::nullopt : std::optional(at);
}

Holding QueuePolicy::HeldBy(uid_t uid) const {
  const auto ledger = node_.ledger.Get();
  Holding holding;
  for (const auto& [id, term] : node_.terms) {
    const auto* lease = ledger->FindLease(id);
    if (lease == nullptr || term.uid != uid) continue;
    const auto overdue = OverdueAt(term);
    holding.devices += DevicesHeld(*lease);
    holding.overdue = holding.overdue || (overdue && *overdue <= executor_.clock().Now());
  }
  return holding;
}

std::map<std::string, base::TimePoint> QueuePolicy::EndsFor(const Waiting& waiting,
                                                            base::TimePoint now) const {
  std::map<std::string, base::TimePoint> ends;
  for (const auto& [id, term] : node_.terms) {
    auto end = CertainEnd(term);
    if (const auto at = EndedFor(waiting, term, now))
      end = std::min(end.value_or(*at + kKillWait), *at + kKillWait);
    if (end) ends[id] = *end;
  }
  return ends;
}

HeadClaim QueuePolicy::ClaimOf(const Waiting& first) {
  const base::TimePoint now = executor_.clock().Now();
  const auto inventory = node_.inventory.published().Get();
  const auto ledger = node_.ledger.Get();
  const auto offers = node_.offers.Get();
  const Outlook outlook{*inventory,       *ledger,
                        *offers,          EndsFor(first, now),
                        node_.dialect_of, node_.create ? node_.create() : nullptr};
  HeadClaim claim;
  claim.others_end = EndOverdue(first, outlook, now);
  const auto start = Foresee(first.request, outlook, now);
  if (!start) return claim;
  claim.served = {start->at, {}};
  for (const auto& slot : start->slots) {
    claim.served->devices.insert(slot.device);
    if (inventory->Find(slot.device) != nullptr) continue;
    // A part that will be created, in the place of parts that are there now.
    for (const auto& ancestor : slot.ancestors) {
      claim.served->devices.insert(ancestor.device);
      for (const auto& entry : inventory->devices)
        if (entry.IsPartOf(ancestor.device)) claim.served->devices.insert(entry.facts->id);
    }
  }
  return claim;
}

bool QueuePolicy::EndOverdue(const Waiting& waiting, const Outlook& outlook, base::TimePoint now) {
  executor_.Cancel(std::exchange(next_overdue_, 0));
  std::vector<std::pair<base::TimePoint, std::string>> others;
  std::vector<std::string> ending, overdue;
  std::optional<base::TimePoint> next;
  for (const auto& [lease, term] : node_.terms) {
    const auto at = OverdueAt(term);
    if (term.killed) {
      ending.push_back(lease);
    } else if (at && *at > now) {
      // Also for a run of the requesting user: other users' requests take precedence then.
      next = std::min(next.value_or(*at), *at);
    } else if (EndedFor(waiting, term, now)) {
      others.emplace_back(term.began, lease);
    }
  }
  if (next) next_overdue_ = executor_.PostAfter(*next - now, callbacks_.changed);
  if (others.empty()) return false;
  std::ranges::sort(others);
  for (const auto& [began, lease] : others) overdue.push_back(lease);
  const auto ended = ToEnd(waiting.request, outlook, ending, overdue);
  for (const std::string& lease : ended)
    callbacks_.end(lease, "it has run for longer than " + base::FormatDuration(limits_.time) +
                              " (queue.perUser.time), and " + waiting.user +
                              " waits for its devices");
  return !ended.empty();
}

const std::map<std::string, base::WallTime>& QueuePolicy::ExpectedStarts(
    const std::vector<Waiting>& waiting) {
  const base::TimePoint now = executor_.clock().Now();
  if (now < expected_until_) return expected_;
  expected_until_ = now + kPlanAgain;
  expected_.clear();
  std::vector<Planned> plan;
  std::vector<std::string> tickets;  // of the plan
  const Waiting* first = nullptr;    // of the plan
  for (const Waiting& one : waiting) {
    if (one.absent || plan.size() == kMaxPlanned)
      break;  // it is not known which devices an absent request asks for
    if (node_.being_served && node_.being_served(one)) {
      expected_[one.ticket] = executor_.clock().Wall();
      continue;
    }
    if (first == nullptr) first = &one;
    plan.push_back({one.request, one.time});
    tickets.push_back(one.ticket);
  }
  if (first == nullptr) return expected_;
  const auto inventory = node_.inventory.published().Get();
  const auto ledger = node_.ledger.Get();
  const auto offers = node_.offers.Get();
  const auto starts =
      allocate::ExpectedStarts(plan,
                               {*inventory, *ledger, *offers, EndsFor(*first, now),
                                node_.dialect_of, node_.create ? node_.create() : nullptr},
                               now);
  for (std::size_t i = 0; i < starts.size(); ++i)
    if (starts[i])
      expected_[tickets[i]] =
          executor_.clock().Wall() +
          std::chrono::duration_cast<base::WallTime::duration>(*starts[i] - now);
  return expected_;
}

}  // namespace penstock::node::allocate
