// Decides in which order requests are tried and which devices are kept back from them; what they
// get is up to the callbacks.
#include "node/allocate/queue.h"

#include <algorithm>
#include <map>
#include <utility>

#include "node/allocate/outlook.h"

namespace penstock::node::allocate {

namespace {

/// About so many requests are tried without success in one round, and of each user the same number:
/// a long queue must not block the control loop, and one user's requests must not keep another's
/// from being tried.
constexpr std::size_t kMaxFailedTries = 64;
constexpr double kRounding = 1e-9;  // of sums of shares

bool Waits(const base::Status& tried) {
  return !tried.ok() && (tried.error().code() == Code::kResourceExhausted ||
                         tried.error().code() == Code::kUnavailable);
}

std::string AreBefore(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " run is" : " runs are") +
         " ahead of it in the queue";
}

}  // namespace

struct Queue::Place {
  Waiting waiting;
  base::Duration wait{};
  base::TimerId timer = 0;
  std::size_t position = 0;  // as last reported
  bool reported = false;
  bool tried = false;
  bool first = false;  // a run was ended for it
  bool gone = false;   // left the queue while a callback about it runs
  std::optional<base::TimePoint>
      promised;  // the earliest time that it could count on since it became the first that waits
};

/// The requests of one allocator that still wait before the next one.
struct Queue::Front {
  std::size_t waiting = 0;
  std::optional<HeadClaim> first;             // of the first that waits for devices to be released
  std::optional<base::TimePoint> promised;    // to the first
  Devices could_use;                          // by the first
  Devices claimed;                            // by all that wait for devices to be released
  std::map<uid_t, std::size_t> failed_tries;  // by user that waits, requests tried without success
  bool closed = false;                        // no request behind is tried

  bool MayTry(uid_t user) const {
    return failed_tries.at(user) < std::max<std::size_t>(1, kMaxFailedTries / failed_tries.size());
  }
};

Queue::Queue(base::Executor& executor, Callbacks callbacks)
    : executor_(executor), callbacks_(std::move(callbacks)) {}

Queue::~Queue() {
  lifetime_.End();
  executor_.Cancel(drop_absent_);
  for (const auto& place : line_) executor_.Cancel(place->timer);
}

void Queue::Configure(const api::QueueConfig& limits) {
  if (limits_ == limits) return;
  limits_ = limits;
  Try();
}

base::Result<std::string> Queue::Add(Waiting waiting, base::Duration wait) {
  auto place = TakeBack(waiting);
  if (!place) {
    if (wait > base::Duration::zero()) TRY(MayWait(waiting));
    place = std::make_shared<Place>();
    place->waiting = std::move(waiting);
    place->waiting.ticket = "q-" + std::to_string(next_ticket_++);
    line_.push_back(place);
  }
  place->wait = wait;
  const std::string ticket = place->waiting.ticket;
  if (wait != kIndefinitely) place->waiting.until = executor_.clock().Now() + wait;
  if (wait > base::Duration::zero() && wait != kIndefinitely) {
    place->timer = executor_.PostAfter(wait, lifetime_.Guard([this, ticket, wait] {
      Remove(ticket, Error(Code::kDeadlineExceeded, "waited " + base::FormatDuration(wait)));
    }));
  }
  Try();
  return ticket;
}

base::Status Queue::MayWait(const Waiting& waiting) const {
  if (limits_.waiting == 0 || waiting.waiter.uid == 0) return {};
  const auto own = std::ranges::count_if(
      line_, [&](const auto& place) { return place->waiting.waiter.uid == waiting.waiter.uid; });
  if (own < limits_.waiting || own == std::ssize(line_)) return {};
  return Error(Code::kResourceExhausted,
               "you have " + std::to_string(own) +
                   " requests queued, and other users are waiting, too: each user " +
                   "may then have " + std::to_string(limits_.waiting) +
                   " (queue.perUser.waiting in the agent's " +
                   "configuration); try again after one of yours is served");
}

std::shared_ptr<Queue::Place> Queue::TakeBack(const Waiting& waiting) {
  const auto found = std::ranges::find_if(line_, [&](const auto& place) {
    return place->waiting.absent && place->waiting.ticket == waiting.ticket &&
           place->waiting.waiter == waiting.waiter;
  });
  if (found == line_.end()) return nullptr;
  auto place = *found;
  const Request& kept = place->waiting.request;
  const bool known = kept.count > 0;
  const bool more = waiting.request.count > kept.count || waiting.request.share < kept.share ||
                    waiting.request.profile != kept.profile ||
                    waiting.request.least_memory > kept.least_memory;
  if (known && more) {
    Remove(waiting.ticket, Error(Code::kCancelled, "its program now requests more"));
    return nullptr;
  }
  const base::WallTime since = place->waiting.since;
  place->waiting = waiting;
  place->waiting.since = since;
  return place;
}

void Queue::Restore(std::vector<Waiting> places, std::uint64_t next_ticket,
                    base::Duration patience) {
  next_ticket_ = std::max(next_ticket_, next_ticket);
  for (Waiting& waiting : places) {
    auto place = std::make_shared<Place>();
    place->waiting = std::move(waiting);
    place->waiting.absent = true;
    place->waiting.reason = "the agent restarted, and the program has not repeated its request yet";
    place->wait = kIndefinitely;
    line_.push_back(std::move(place));
  }
  if (!line_.empty()) drop_absent_ = executor_.PostAfter(patience, [this] { DropAbsent(); });
}

void Queue::DropAbsent() {
  const Line line = line_;
  for (const auto& place : line)
    if (place->waiting.absent)
      Remove(place->waiting.ticket,
             Error(Code::kCancelled, "its program did not return to the queue"));
}

base::Status Queue::Cancel(const std::string& ticket, const std::string& why) {
  if (Find(ticket) == nullptr)
    return Error(Code::kNotFound, "no request is queued with ticket " + ticket +
                                      ": `penstock queue` lists the queued requests");
  Remove(ticket, Error(Code::kCancelled, why));
  return {};
}

void Queue::Try() {
  if (std::exchange(try_posted_, true)) return;
  executor_.Post(lifetime_.Guard([this] {
    try_posted_ = false;
    TryAll();
  }));
}

std::vector<Waiting> Queue::List() const {
  std::vector<Waiting> list;
  for (const auto& place : line_) list.push_back(place->waiting);
  return list;
}

std::vector<Waiting> Queue::InOrder() const {
  std::vector<Waiting> list;
  for (const auto& place : Ordered()) list.push_back(place->waiting);
  return list;
}

const Waiting* Queue::Find(const std::string& ticket) const {
  const auto found = std::ranges::find_if(
      line_, [&](const auto& place) { return place->waiting.ticket == ticket; });
  return found == line_.end() ? nullptr : &(*found)->waiting;
}

// Order of arrival, except for what users request beyond their limits while others wait. Whether a
// request is beyond its limits depends only on what its user holds and requests: no run is ended
// for such a request, whether other users wait or not.
Queue::Line Queue::Ordered() const {
  struct User {
    Holding holding;  // including the requests before this one
    int waiting = 0;
  };
  std::set<uid_t> competing;
  for (const auto& place : line_) {
    place->waiting.beyond = false;
    competing.insert(place->waiting.waiter.uid);
  }
  Line line = line_;
  std::stable_partition(line.begin(), line.end(), [](const auto& place) { return place->first; });
  if (limits_ == api::QueueConfig{}) return line;
  std::map<uid_t, User> users;
  for (const auto& place : line) {
    Waiting& waiting = place->waiting;
    const uid_t uid = waiting.waiter.uid;
    if (waiting.absent || uid == 0) continue;
    const auto [known, first] = users.try_emplace(uid);
    User& user = known->second;
    if (first) user.holding = callbacks_.held(uid);
    const double requested = limits_.devices > 0 ? callbacks_.amount(waiting) : 0;
    waiting.beyond =
        user.holding.overdue || (limits_.waiting > 0 && user.waiting >= limits_.waiting) ||
        (limits_.devices > 0 && user.holding.devices + requested > limits_.devices + kRounding);
    ++user.waiting;
    if (!waiting.beyond) user.holding.devices += requested;
  }
  if (competing.size() > 1)
    std::stable_partition(line.begin(), line.end(),
                          [](const auto& place) { return place->first || !place->waiting.beyond; });
  return line;
}

// Iterates over a copy, because callbacks may add, cancel or try again.
void Queue::TryAll() {
  const Line line = Ordered();
  std::map<std::string, Front> fronts;  // by allocator
  for (const auto& place : line)
    fronts[place->waiting.request.allocator].failed_tries.emplace(place->waiting.waiter.uid, 0);
  for (const auto& place : line)
    if (!place->gone) TryPlace(place, fronts[place->waiting.request.allocator]);
}

Devices Queue::KeptFrom(const Waiting& waiting, const Front& front) const {
  if (!front.first) return {};
  if (!waiting.time) return front.claimed;
  if (front.promised && executor_.clock().Now() + LongestHeld(*waiting.time) <= *front.promised)
    return {};
  const auto& served = front.first->served;
  const bool late = !served || served->at > *front.promised;
  return late ? front.could_use : served->devices;
}

// The request could use nothing but devices that are kept from it. A new request is tried anyway,
// because it may be one that can never be served.
bool Queue::IsFutile(const Place& place, const Devices& kept_back) const {
  if (!place.tried || kept_back.empty()) return false;
  const Devices could_use = callbacks_.could_use(place.waiting);
  return !could_use.empty() &&
         std::includes(kept_back.begin(), kept_back.end(), could_use.begin(), could_use.end());
}

void Queue::TryPlace(const std::shared_ptr<Place>& place, Front& front) {
  const auto promised = std::exchange(place->promised, std::nullopt);
  front.closed = front.closed || place->waiting.absent;
  bool waits_for_release = false;
  const Devices kept_back = KeptFrom(place->waiting, front);
  if (front.closed || IsFutile(*place, kept_back) || !front.MayTry(place->waiting.waiter.uid)) {
    if (!place->waiting.absent) Notify(*place, front.waiting, AreBefore(front.waiting));
  } else {
    place->tried = true;
    const auto tried = callbacks_.attempt(place->waiting, kept_back);
    if (place->gone) return;
    if (!Waits(tried)) return Remove(place->waiting.ticket, tried);
    ++front.failed_tries.at(place->waiting.waiter.uid);
    waits_for_release = tried.error().code() == Code::kResourceExhausted;
    Notify(*place, front.waiting,
           waits_for_release && !kept_back.empty() ? AreBefore(front.waiting)
                                                   : tried.error().message());
  }
  const bool being_served =
      !place->gone && callbacks_.being_served && callbacks_.being_served(place->waiting);
  if (!place->gone && !being_served && place->wait <= base::Duration::zero())
    Remove(place->waiting.ticket,
           Error(Code::kDeadlineExceeded, "not free now: " + place->waiting.reason));
  if (place->gone) return;
  ++front.waiting;
  if (waits_for_release && !being_served) TakeClaim(*place, front, promised);
}

void Queue::TakeClaim(Place& place, Front& front, std::optional<base::TimePoint> promised) {
  const Devices could_use = callbacks_.could_use(place.waiting);
  front.claimed.insert(could_use.begin(), could_use.end());
  if (front.first) return;
  front.first = callbacks_.claim(place.waiting);
  front.could_use = could_use;
  place.first = place.first || front.first->others_end;
  if (front.first->served)
    promised = std::min(promised.value_or(front.first->served->at), front.first->served->at);
  place.promised = front.promised = promised;
}

void Queue::Notify(Place& place, std::size_t position, const std::string& reason) {
  if (place.reported && place.position == position && place.waiting.reason == reason) return;
  place.reported = true;
  place.position = position;
  place.waiting.reason = reason;
  const bool leaves = place.wait <= base::Duration::zero();
  if (!leaves && callbacks_.progress) callbacks_.progress(place.waiting, position);
}

void Queue::Remove(const std::string& ticket, const base::Status& status) {
  const auto found = std::ranges::find_if(
      line_, [&](const auto& place) { return place->waiting.ticket == ticket; });
  if (found == line_.end()) return;
  const auto place = *found;
  line_.erase(found);
  place->gone = true;
  executor_.Cancel(place->timer);
  const bool timed_out = !status.ok() && status.error().code() == Code::kDeadlineExceeded &&
                         place->wait > base::Duration::zero();
  if (timed_out && !place->waiting.reason.empty())
    callbacks_.done(place->waiting,
                    Error(Code::kDeadlineExceeded,
                          status.error().message() + " without success: " + place->waiting.reason));
  else
    callbacks_.done(place->waiting, status);
  Try();  // the requests behind moved up
}

}  // namespace penstock::node::allocate
