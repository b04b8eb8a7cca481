// The line of those who wait. Decides in which order they are tried, never what they get.
#include "node/allocate/queue.h"

#include <algorithm>
#include <map>
#include <utility>

namespace penstock::node::allocate {

using base::Code;
using base::Error;

struct Queue::Place {
  Waiting waiting;
  base::Duration wait{};
  base::TimerId timer = 0;
  std::size_t position = 0;  // as told last
  bool told = false;
  bool gone = false;  // out of the line while a callback of it runs
};

Queue::Queue(base::Executor& executor, Callbacks callbacks)
    : executor_(executor), callbacks_(std::move(callbacks)), self_(std::make_shared<Queue*>(this)) {}

Queue::~Queue() {
  *self_ = nullptr;
  for (const auto& place : line_) executor_.Cancel(place->timer);
}

base::Result<std::string> Queue::Add(Waiting waiting, base::Duration wait) {
  if (line_.size() >= kMost)
    return Error(Code::kResourceExhausted, "the line is full: " + std::to_string(kMost) + " wait already; try again later");
  auto place = std::make_shared<Place>();
  place->waiting = std::move(waiting);
  place->waiting.ticket = "q-" + std::to_string(next_ticket_++);
  place->wait = wait;
  const std::string ticket = place->waiting.ticket;
  if (wait > base::Duration::zero() && wait != kForEver) {
    place->timer = executor_.PostAfter(wait, [self = self_, ticket, wait] {
      if (*self == nullptr) return;
      (*self)->Remove(ticket, Error(Code::kDeadlineExceeded, "waited " + base::FormatDuration(wait)));
    });
  }
  line_.push_back(std::move(place));
  Try();
  return ticket;
}

base::Status Queue::Cancel(const std::string& ticket, const std::string& why) {
  const bool waits = std::any_of(line_.begin(), line_.end(), [&](const auto& place) { return place->waiting.ticket == ticket; });
  if (!waits) return Error(Code::kNotFound, "nobody waits with ticket " + ticket + ": `penstock queue` lists those who do");
  Remove(ticket, Error(Code::kCancelled, why));
  return {};
}

void Queue::Try() {
  if (std::exchange(try_posted_, true)) return;
  executor_.Post([self = self_] {
    if (*self == nullptr) return;
    (*self)->try_posted_ = false;
    (*self)->TryAll();
  });
}

std::vector<Waiting> Queue::List() const {
  std::vector<Waiting> list;
  for (const auto& place : line_) list.push_back(place->waiting);
  return list;
}

bool Queue::Waits(const base::Status& tried) {
  return !tried.ok() && (tried.error().code() == Code::kResourceExhausted || tried.error().code() == Code::kUnavailable);
}

// Walks over a copy: callbacks may add, cancel, or try again.
void Queue::TryAll() {
  struct Front {
    std::size_t waiting = 0;
    bool holds_up = false;  // one of them waits for devices to be let go
  };
  std::map<std::string, Front> fronts;  // by door: those who still wait in front
  const auto line = line_;
  for (const auto& place : line) {
    if (place->gone) continue;
    Front& front = fronts[place->waiting.request.door];
    bool holds_up = front.holds_up;
    if (!front.holds_up) {
      const auto tried = callbacks_.attempt(place->waiting);
      if (place->gone) continue;
      if (!Waits(tried)) {
        Remove(place->waiting.ticket, tried);
        continue;
      }
      holds_up = tried.error().code() == Code::kResourceExhausted;
      Tell(*place, front.waiting, tried.error().message());
    } else {
      Tell(*place, front.waiting, std::to_string(front.waiting) + (front.waiting == 1 ? " is" : " are") + " before it in the line");
    }
    if (!place->gone && place->wait <= base::Duration::zero())
      Remove(place->waiting.ticket, Error(Code::kDeadlineExceeded, "not free now: " + place->waiting.reason));
    if (place->gone) continue;
    ++front.waiting;
    front.holds_up = holds_up;
  }
}

void Queue::Tell(Place& place, std::size_t position, const std::string& reason) {
  if (place.told && place.position == position && place.waiting.reason == reason) return;
  place.told = true;
  place.position = position;
  place.waiting.reason = reason;
  const bool leaves = place.wait <= base::Duration::zero();
  if (!leaves && callbacks_.progress) callbacks_.progress(place.waiting, position);
}

void Queue::Remove(const std::string& ticket, const base::Status& status) {
  const auto found = std::find_if(line_.begin(), line_.end(), [&](const auto& place) { return place->waiting.ticket == ticket; });
  if (found == line_.end()) return;
  const auto place = *found;
  line_.erase(found);
  place->gone = true;
  executor_.Cancel(place->timer);
  const bool waited_in_vain = !status.ok() && status.error().code() == Code::kDeadlineExceeded && place->wait > base::Duration::zero();
  if (waited_in_vain && !place->waiting.reason.empty())
    callbacks_.done(place->waiting, Error(Code::kDeadlineExceeded, status.error().message() + " in vain: " + place->waiting.reason));
  else
    callbacks_.done(place->waiting, status);
  Try();  // those behind moved up
}

}  // namespace penstock::node::allocate
