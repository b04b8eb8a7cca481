// The queue retries transient failures with its back-off. This file delays the retries of refused
// work, which an administrator must fix.
#include "protocol/kube/reconcile_loop.h"

#include <algorithm>

#include "base/log.h"

namespace penstock::protocol::kube {

using namespace std::chrono_literals;

namespace {

constexpr base::Duration kMissing = 5min;

}  // namespace

bool ReconcileLoop::IsRefusal(Code code) {
  return code == Code::kPermissionDenied || code == Code::kNotFound ||
         code == Code::kInvalidArgument || code == Code::kFailedPrecondition ||
         code == Code::kUnimplemented;
}

ReconcileLoop::ReconcileLoop(base::Executor& executor, std::function<void()> reported)
    : executor_(executor),
      reported_(std::move(reported)),
      queue_(executor, {},
             [this](const std::string& name, const Done& done) { Begin(name, done); }) {}

ReconcileLoop::~ReconcileLoop() {
  for (const auto& [name, entry] : entries_) executor_.Cancel(entry.timer);
}

void ReconcileLoop::Add(Task task) {
  const std::string name = task.name;
  entries_[name].task = std::move(task);
}

void ReconcileLoop::Soon(const std::string& name) {
  Entry& entry = entries_.at(name);
  const base::TimePoint now = executor_.clock().Now();
  base::TimePoint at = now + entry.task.settle;
  if (entry.begun) at = std::max(at, *entry.begun + entry.task.spacing);
  Schedule(entry, at);
}

void ReconcileLoop::After(const std::string& name, base::Duration delay) {
  Schedule(entries_.at(name), executor_.clock().Now() + delay);
}

void ReconcileLoop::SetSpacing(const std::string& name, base::Duration spacing) {
  entries_.at(name).task.spacing = spacing;
}

void ReconcileLoop::Schedule(Entry& entry, base::TimePoint at) {
  if (entry.refused_until) at = std::max(at, *entry.refused_until);
  if (entry.timer != 0 && entry.due <= at) return;
  executor_.Cancel(entry.timer);
  entry.due = at;
  entry.timer =
      executor_.PostAfter(std::max(base::Duration{}, at - executor_.clock().Now()), [this, &entry] {
        entry.timer = 0;
        queue_.Add(entry.task.name);
      });
}

void ReconcileLoop::Begin(const std::string& name, const Done& done) {
  Entry& entry = entries_.at(name);
  const base::TimePoint now = executor_.clock().Now();
  if (entry.refused_until && now < *entry.refused_until) return done({});  // its timer is running
  if (entry.begun && now < *entry.begun + entry.task.spacing) {            // a retry by the queue
    Schedule(entry, *entry.begun + entry.task.spacing);
    return done({});
  }
  entry.refused_until.reset();
  entry.begun = now;
  entry.task.work([this, &entry, done](const base::Status& status) { Ended(entry, status, done); });
}

void ReconcileLoop::Ended(Entry& entry, const base::Status& status, const Done& done) {
  const std::string& name = entry.task.name;
  const bool tried = status.ok() || status.error().code() != Code::kCancelled;
  if (!tried && entry.refused) return done({});
  entry.refused = false;
  if (status.ok() || !tried) {
    if (tried) entry.rarely.Reset();
    Report(name, {});
    return done({});
  }
  const bool missing = status.error().code() == Code::kNotFound && entry.task.may_be_missing;
  const bool refused = IsRefusal(status.error().code());
  Report(name, missing ? Problem{} : Problem{status.error().message(), refused});
  if (!refused) return done(status);
  entry.refused = true;
  entry.refused_until = executor_.clock().Now() + (missing ? kMissing : entry.rarely.Next());
  executor_.Cancel(std::exchange(entry.timer, 0));
  Schedule(entry, *entry.refused_until);
  done({});
}

void ReconcileLoop::Report(const std::string& name, Problem problem) {
  const auto known = problems_.find(name);
  if (problem == (known == problems_.end() ? Problem{} : known->second)) return;
  if (problem.text.empty()) {
    problems_.erase(known);
    base::Log(base::kInfo, "cluster problem resolved", {{"what", name}});
  } else {
    base::Log(base::kWarn, "cluster problem", {{"what", name}, {"why", problem.text}});
    problems_[name] = std::move(problem);
  }
  reported_();
}

}  // namespace penstock::protocol::kube
