// Failures that pass are the queue's, with its back-off; those that somebody must mend are waited out here.
#include "door/cluster_work.h"

#include <algorithm>

#include "base/log.h"

namespace penstock::door {

using base::Code;
using namespace std::chrono_literals;

namespace {

constexpr base::Duration kMissing = 5min;

}  // namespace

bool ClusterWork::IsRefusal(Code code) {
  return code == Code::kPermissionDenied || code == Code::kNotFound || code == Code::kInvalidArgument ||
         code == Code::kFailedPrecondition || code == Code::kUnimplemented;
}

ClusterWork::ClusterWork(base::Executor& executor, std::function<void()> told)
    : executor_(executor),
      told_(std::move(told)),
      queue_(executor, {}, [this](const std::string& name, Done done) { Begin(name, done); }) {}

ClusterWork::~ClusterWork() {
  for (const auto& [name, entry] : entries_) executor_.Cancel(entry.timer);
}

void ClusterWork::Add(Piece piece) {
  const std::string name = piece.name;
  entries_[name].piece = std::move(piece);
}

void ClusterWork::Soon(const std::string& name) {
  Entry& entry = entries_.at(name);
  const base::TimePoint now = executor_.clock().Now();
  base::TimePoint at = now + entry.piece.settle;
  if (entry.begun) at = std::max(at, *entry.begun + entry.piece.spacing);
  Schedule(entry, at);
}

void ClusterWork::After(const std::string& name, base::Duration delay) { Schedule(entries_.at(name), executor_.clock().Now() + delay); }

void ClusterWork::Schedule(Entry& entry, base::TimePoint at) {
  if (entry.refused_until) at = std::max(at, *entry.refused_until);
  if (entry.timer != 0 && entry.due <= at) return;
  executor_.Cancel(entry.timer);
  entry.due = at;
  entry.timer = executor_.PostAfter(std::max(base::Duration{}, at - executor_.clock().Now()), [this, &entry] {
    entry.timer = 0;
    queue_.Add(entry.piece.name);
  });
}

void ClusterWork::Begin(const std::string& name, const Done& done) {
  Entry& entry = entries_.at(name);
  const base::TimePoint now = executor_.clock().Now();
  if (entry.refused_until && now < *entry.refused_until) return done({});  // its timer runs
  if (entry.begun && now < *entry.begun + entry.piece.spacing) {           // tried again by the queue
    Schedule(entry, *entry.begun + entry.piece.spacing);
    return done({});
  }
  entry.refused_until.reset();
  entry.begun = now;
  entry.piece.work([this, &entry, done](const base::Status& status) { Ended(entry, status, done); });
}

void ClusterWork::Ended(Entry& entry, const base::Status& status, const Done& done) {
  const std::string& name = entry.piece.name;
  const bool tried = status.ok() || status.error().code() != Code::kCancelled;
  if (!tried && entry.refused) return done({});
  entry.refused = false;
  if (status.ok() || !tried) {
    if (tried) entry.rarely.Reset();
    Say(name, {});
    return done({});
  }
  const bool missing = status.error().code() == Code::kNotFound && entry.piece.may_be_missing;
  const bool refused = IsRefusal(status.error().code());
  Say(name, missing ? Problem{} : Problem{status.error().message(), refused});
  if (!refused) return done(status);
  entry.refused = true;
  entry.refused_until = executor_.clock().Now() + (missing ? kMissing : entry.rarely.Next());
  executor_.Cancel(std::exchange(entry.timer, 0));
  Schedule(entry, *entry.refused_until);
  done({});
}

void ClusterWork::Say(const std::string& name, Problem problem) {
  const auto known = problems_.find(name);
  if (problem == (known == problems_.end() ? Problem{} : known->second)) return;
  if (problem.text.empty()) {
    problems_.erase(known);
    base::Log(base::kInfo, "cluster: well again", {{"what", name}});
  } else {
    base::Log(base::kWarn, "cluster", {{"what", name}, {"why", problem.text}});
    problems_[name] = std::move(problem);
  }
  told_();
}

}  // namespace penstock::door
