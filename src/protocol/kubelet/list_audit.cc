// Uses one timer; drops an answer that comes after a change.
#include "protocol/kubelet/list_audit.h"

#include <algorithm>
#include <utility>

#include "base/backoff.h"
#include "base/lifetime.h"

namespace penstock::protocol::kubelet {
namespace {

/// Whether the list has healthy devices and none of them is counted.
bool CountsNone(const std::vector<PluginDevice>& list, const std::vector<std::string>& counted) {
  const auto healthy = [](const PluginDevice& device) { return device.healthy; };
  const auto is_counted = [&](const PluginDevice& device) {
    return device.healthy && std::ranges::binary_search(counted, device.id);
  };
  return std::ranges::any_of(list, healthy) && std::ranges::none_of(list, is_counted);
}

}  // namespace

struct ListAudit::State : std::enable_shared_from_this<State> {
  State(base::Executor& e, AuditTimes t, Callbacks c)
      : executor(e), times(t), callbacks(std::move(c)), rarely(times.every, times.most) {}

  void Changed() {
    reading = true;
    changed_at = executor.clock().Now();
    audited = callbacks.list();
    suspected = false;
    ++round;
    QueryAfter(times.settled);
  }

  void Stop() {
    reading = suspected = false;
    rarely.Reset();
    not_before = {};
    ++round;
    executor.Cancel(timer);
  }

  void QueryAfter(base::Duration delay) {
    executor.Cancel(timer);
    const base::TimePoint now = executor.clock().Now();
    due = std::max(now + delay, not_before);
    timer = executor.PostAfter(due - now, base::IfAlive(this, &State::Query));
  }

  void Hint() {
    if (!reading || suspected) return;
    const base::TimePoint now = executor.clock().Now();
    const base::TimePoint at = std::max(now + times.soon, changed_at + times.settled);
    if (at < due) QueryAfter(at - now);
  }

  void Query() {
    if (callbacks.list() != audited) return Changed();
    QueryAfter(times.every);  // in case no answer comes
    callbacks.query(base::IfAlive(this, [of = round](State& self, const Counted& counted) {
      if (self.round == of) self.Answered(counted);
    }));
  }

  void Answered(const Counted& counted) {
    const List list = callbacks.list();
    if (list != audited) return Changed();
    const bool none = counted.ok() && list != nullptr && CountsNone(*list, *counted);
    if (!none) {
      suspected = false;
      if (counted.ok()) rarely.Reset();
      return;
    }
    if (!std::exchange(suspected, true)) return QueryAfter(times.again);
    suspected = false;
    not_before = executor.clock().Now() + rarely.Next();
    QueryAfter(times.every);
    callbacks.lost();
  }

  base::Executor& executor;
  const AuditTimes times;
  const Callbacks callbacks;
  base::Backoff rarely;
  bool reading = false;
  bool suspected = false;  // one answer counted none
  base::TimePoint changed_at{}, due{}, not_before{};
  List audited;             // the list at the last change
  std::uint64_t round = 0;  // of questions: answers to earlier rounds are dropped
  base::TimerId timer = 0;
};

ListAudit::ListAudit(base::Executor& executor, AuditTimes times, Callbacks callbacks)
    : state_(std::make_shared<State>(executor, times, std::move(callbacks))) {}

ListAudit::~ListAudit() { state_->executor.Cancel(state_->timer); }

void ListAudit::Changed() { state_->Changed(); }

void ListAudit::Hint() { state_->Hint(); }

void ListAudit::Stop() { state_->Stop(); }

}  // namespace penstock::protocol::kubelet
