// Follows client-go's rules: a key that waits is dirty, a key that is worked on is processing, and
// a key that is both waits for the end of the current work.
#include "protocol/kube/work_queue.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "base/lifetime.h"

namespace penstock::protocol::kube {

using base::Duration;
using base::TimePoint;

struct WorkQueue::State : std::enable_shared_from_this<State> {
  State(base::Executor& its_executor, Options its_options, Work its_work)
      : executor(its_executor),
        options(its_options),
        work(std::move(its_work)),
        tokens(its_options.burst),
        filled(Now()) {}

  TimePoint Now() const { return executor.clock().Now(); }

  std::function<void()> WhileAlive(std::function<void(State&)> function) {
    return base::IfAlive(this, std::move(function));
  }

  void Add(const std::string& key) {
    if (!dirty.insert(key).second) return;
    if (processing.contains(key)) return;
    waiting.push_back(key);
    PumpSoon();
  }

  // The earliest of several delays counts.
  void AddAfter(const std::string& key, Duration delay) {
    if (delay <= Duration::zero()) return Add(key);
    const TimePoint due = Now() + delay;
    const auto found = delayed.find(key);
    if (found != delayed.end()) {
      if (found->second.due <= due) return;
      executor.Cancel(found->second.timer);
    }
    const base::TimerId timer = executor.PostAfter(delay, WhileAlive([key](State& state) {
                                                     state.delayed.erase(key);
                                                     state.Add(key);
                                                   }));
    delayed.insert_or_assign(key, Delayed{due, timer});
  }

  void PumpSoon() {
    if (std::exchange(pumping, true)) return;
    executor.Post(WhileAlive([](State& state) {
      state.pumping = false;
      state.Pump();
    }));
  }

  void Pump() {
    while (!waiting.empty() &&
           processing.size() < static_cast<std::size_t>(std::max(1, options.at_once))) {
      if (!TakeToken()) return;
      const std::string key = std::move(waiting.front());
      waiting.pop_front();
      dirty.erase(key);
      processing.insert(key);
      auto done = [weak = weak_from_this(), key,
                   over = std::make_shared<bool>(false)](base::Status how) {
        if (std::exchange(*over, true)) return;
        if (const auto state = weak.lock()) state->Finish(key, how);
      };
      work(key, std::move(done));
    }
  }

  void Finish(const std::string& key, const base::Status& how) {
    processing.erase(key);
    if (how.ok()) {
      failures.erase(key);
    } else {
      AddAfter(key, NextDelay(key));
    }
    if (dirty.contains(key)) waiting.push_back(key);
    PumpSoon();
  }

  Duration NextDelay(const std::string& key) {
    constexpr int kMaxDoublings = 30;
    const int failed = std::min(kMaxDoublings, failures[key]++);
    return std::min<Duration>(
        options.retry_most,
        options.retry_first * (std::int64_t{1} << std::min(failed, kMaxDoublings)));
  }

  // A token bucket that fills by per_second up to burst. Without a token, waits for one.
  bool TakeToken() {
    if (options.per_second <= 0) return true;
    const std::chrono::duration<double> passed = Now() - filled;
    filled = Now();
    tokens =
        std::min<double>(std::max(1, options.burst), tokens + passed.count() * options.per_second);
    constexpr double kRounding = 1e-6;
    if (tokens >= 1 - kRounding) {
      tokens -= 1;
      return true;
    }
    if (std::exchange(pumping, true)) return false;
    const auto wait = std::chrono::duration<double>((1 - tokens) / options.per_second);
    executor.PostAfter(std::chrono::ceil<std::chrono::milliseconds>(wait),
                       WhileAlive([](State& state) {
                         state.pumping = false;
                         state.Pump();
                       }));
    return false;
  }

  struct Delayed {
    TimePoint due;
    base::TimerId timer = 0;
  };

  base::Executor& executor;
  const Options options;
  const Work work;
  std::deque<std::string> waiting;
  std::set<std::string> dirty, processing;
  std::map<std::string, Delayed> delayed;
  std::map<std::string, int> failures;
  double tokens;
  TimePoint filled;
  bool pumping = false;  ///< a call of Pump is scheduled
};

WorkQueue::WorkQueue(base::Executor& executor, Options options, Work work)
    : state_(std::make_shared<State>(executor, options, std::move(work))) {}

WorkQueue::~WorkQueue() {
  for (const auto& [key, delayed] : state_->delayed) state_->executor.Cancel(delayed.timer);
  state_->waiting.clear();
}

void WorkQueue::Add(const std::string& key) { state_->Add(key); }
void WorkQueue::AddAfter(const std::string& key, Duration delay) { state_->AddAfter(key, delay); }
void WorkQueue::Forget(const std::string& key) { state_->failures.erase(key); }
std::size_t WorkQueue::size() const { return state_->waiting.size(); }

}  // namespace penstock::protocol::kube
