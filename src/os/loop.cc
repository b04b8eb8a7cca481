// The event loop: epoll for descriptors, its timeout for timers, an eventfd for functions posted by
// other threads.
#include "os/loop.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "os/core/fd.h"

namespace penstock::os {
namespace {

const base::SystemClock kMachineClock;
constexpr std::uint64_t kWake = std::numeric_limits<std::uint64_t>::max();
constexpr base::Duration::rep kIdle = std::numeric_limits<base::Duration::rep>::min();

using Function = std::function<void()>;
using Callback = std::function<void(std::uint32_t)>;

// The generation distinguishes a descriptor from an earlier one with the same number whose event is
// still in the batch.
struct Watched {
  std::uint32_t generation = 0;
  std::shared_ptr<const Callback> callback;
};

std::uint64_t Key(int fd, std::uint32_t generation) {
  return (std::uint64_t{generation} << 32) | static_cast<std::uint32_t>(fd);
}

}  // namespace

struct Loop::State : std::enable_shared_from_this<Loop::State> {
  State(std::string loop_name, const base::Clock& its_clock)
      : name(std::move(loop_name)),
        clock(its_clock),
        epoll(::epoll_create1(EPOLL_CLOEXEC)),
        wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kWake;
    if (epoll && wake && ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) == 0) return;
    base::Log(base::kError, "cannot create an event loop",
              {{"error", base::ErrnoError(errno, "epoll").message()}});
    std::abort();
  }

  bool InLoop() const { return owner.load() == std::this_thread::get_id(); }
  void WakeAfter(std::unique_lock<std::mutex> lock);
  void Run();
  void RunPosted();
  void RunTimers();
  void Wait();
  void Dispatch(const epoll_event& event);
  int Timeout();
  void DropPending();
  void Begins() { busy_since = clock.Now().time_since_epoch().count(); }
  void Ends() { busy_since = kIdle; }

  const std::string name;
  const base::Clock& clock;
  const UniqueFd epoll;
  const UniqueFd wake;
  std::atomic<std::thread::id> owner{};
  std::atomic<bool> stopping{false};
  std::atomic<base::Duration::rep> busy_since{kIdle};  // by `clock`

  std::mutex mutex;  // guards the next five
  std::deque<Function> posted;
  std::map<std::pair<base::TimePoint, base::TimerId>, Function> timers;
  std::unordered_map<base::TimerId, base::TimePoint> deadlines;
  base::TimerId next_timer = 1;
  bool woken = false;

  std::unordered_map<int, Watched> watches;  // the loop's thread only
  std::uint32_t next_generation = 0;

  std::mutex join_mutex;
  std::thread thread;
  std::promise<void> ended;  // set when the thread ends
};

// Call with the mutex locked. One write wakes the loop for any number of functions. The mutex is
// unlocked first: the loop would wake only to wait for it.
void Loop::State::WakeAfter(std::unique_lock<std::mutex> lock) {
  if (InLoop() || std::exchange(woken, true)) return;
  const auto alive = shared_from_this();  // the loop may then end
  lock.unlock();
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake.get(), &one, sizeof one);
}

void Loop::State::Run() {
  owner = std::this_thread::get_id();
  while (!stopping) {
    RunTimers();
    RunPosted();
    if (!stopping) Wait();
  }
  DropPending();
  owner = std::thread::id();
}

// Functions that these functions post run in the next round, so that descriptors get their turn.
void Loop::State::RunPosted() {
  std::unique_lock lock(mutex);
  for (std::size_t left = posted.size(); left > 0 && !posted.empty() && !stopping; --left) {
    Function function = std::move(posted.front());
    posted.pop_front();
    lock.unlock();
    Begins();
    function();
    function = nullptr;
    Ends();
    lock.lock();
  }
}

void Loop::State::RunTimers() {
  const base::TimePoint now = clock.Now();
  std::unique_lock lock(mutex);
  while (!timers.empty() && timers.begin()->first.first <= now && !stopping) {
    auto timer = timers.extract(timers.begin());
    deadlines.erase(timer.key().second);
    lock.unlock();
    Begins();
    timer.mapped()();
    timer.mapped() = nullptr;
    Ends();
    lock.lock();
  }
}

int Loop::State::Timeout() {
  std::lock_guard lock(mutex);
  if (!posted.empty()) return 0;
  if (timers.empty()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(timers.begin()->first.first - clock.Now())
          .count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

void Loop::State::Wait() {
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), Timeout());
  for (int i = 0; i < count && !stopping; ++i) Dispatch(events[static_cast<std::size_t>(i)]);
}

void Loop::State::Dispatch(const epoll_event& event) {
  if (event.data.u64 == kWake) {
    std::lock_guard lock(mutex);
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake.get(), &count, sizeof count);
    woken = false;
    return;
  }
  const auto watch = watches.find(static_cast<int>(event.data.u64 & 0xffffffffu));
  if (watch == watches.end() || watch->second.generation != event.data.u64 >> 32) return;
  const std::shared_ptr<const Callback> callback = watch->second.callback;  // the callback may
                                                                            // unwatch itself
  Begins();
  (*callback)(event.events);
  Ends();
}

// Runs without the mutex, since destructors of functions may call the loop.
void Loop::State::DropPending() {
  std::unique_lock lock(mutex);
  while (!posted.empty() || !timers.empty()) {
    auto dropped_functions = std::exchange(posted, {});
    auto dropped_timers = std::exchange(timers, {});
    deadlines.clear();
    lock.unlock();
    dropped_functions.clear();
    dropped_timers.clear();
    lock.lock();
  }
}

Loop::Loop(std::string name) : Loop(std::move(name), kMachineClock) {}

Loop::Loop(std::string name, const base::Clock& clock)
    : state_(std::make_shared<State>(std::move(name), clock)) {}

Loop::~Loop() {
  if (InLoop()) std::abort();  // the thread would destroy itself
  Stop();
}

void Loop::Start() {
  state_->thread = std::thread([state = state_] {
    ::pthread_setname_np(::pthread_self(), state->name.substr(0, 15).c_str());
    state->Run();
    state->ended.set_value();
  });
}

void Loop::Run() { state_->Run(); }

void Loop::Stop() {
  state_->stopping = true;
  state_->WakeAfter(std::unique_lock(state_->mutex));
  if (InLoop()) return;
  {
    std::lock_guard lock(state_->join_mutex);
    if (state_->thread.joinable()) state_->thread.join();
  }
  if (state_->owner.load() == std::thread::id()) state_->DropPending();
}

bool Loop::StopWithin(base::Duration patience) {
  state_->stopping = true;
  state_->WakeAfter(std::unique_lock(state_->mutex));
  {
    std::lock_guard lock(state_->join_mutex);
    if (state_->thread.joinable() &&
        state_->ended.get_future().wait_for(patience) != std::future_status::ready) {
      state_->thread.detach();
      return false;
    }
  }
  Stop();
  return true;
}

const std::string& Loop::name() const { return state_->name; }

base::Duration Loop::Busy() const {
  const auto since = state_->busy_since.load();
  return since == kIdle ? base::Duration::zero()
                        : clock().Now().time_since_epoch() - base::Duration(since);
}

bool Loop::InLoop() const { return state_->InLoop(); }

const base::Clock& Loop::clock() const { return state_->clock; }

void Loop::Post(std::function<void()> function) {
  std::unique_lock lock(state_->mutex);
  if (state_->stopping) return;  // the argument is destroyed after the lock is released
  state_->posted.push_back(std::move(function));
  state_->WakeAfter(std::move(lock));
}

base::TimerId Loop::PostAfter(base::Duration delay, std::function<void()> function) {
  const base::TimePoint now = clock().Now();
  // An indefinite delay must not overflow.
  const base::TimePoint deadline =
      delay > base::TimePoint::max() - now ? base::TimePoint::max() : now + delay;
  std::unique_lock lock(state_->mutex);
  const base::TimerId id = state_->next_timer++;
  if (state_->stopping) return id;
  const bool first = state_->timers.empty() || deadline < state_->timers.begin()->first.first;
  state_->timers.emplace(std::pair(deadline, id), std::move(function));
  state_->deadlines.emplace(id, deadline);
  if (first) state_->WakeAfter(std::move(lock));
  return id;
}

void Loop::Cancel(base::TimerId timer) {
  Function dropped;
  std::lock_guard lock(state_->mutex);
  const auto deadline = state_->deadlines.find(timer);
  if (deadline == state_->deadlines.end()) return;
  auto node = state_->timers.extract({deadline->second, timer});
  state_->deadlines.erase(deadline);
  if (node) dropped = std::move(node.mapped());
}

base::Status Loop::Watch(int fd, std::uint32_t events,
                         std::function<void(std::uint32_t)> callback) {
  const std::uint32_t generation = state_->next_generation++ & 0x7fffffffu;
  epoll_event event{};
  event.events = events;
  event.data.u64 = Key(fd, generation);
  if (::epoll_ctl(state_->epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return base::ErrnoError(errno, "watch a descriptor");
  state_->watches[fd] = {generation, std::make_shared<const Callback>(std::move(callback))};
  return {};
}

base::Status Loop::Rewatch(int fd, std::uint32_t events) {
  const auto watch = state_->watches.find(fd);
  if (watch == state_->watches.end())
    return base::Error(base::Code::kNotFound, "the descriptor is not watched");
  epoll_event event{};
  event.events = events;
  event.data.u64 = Key(fd, watch->second.generation);
  if (::epoll_ctl(state_->epoll.get(), EPOLL_CTL_MOD, fd, &event) != 0)
    return base::ErrnoError(errno, "watch a descriptor");
  return {};
}

void Loop::Unwatch(int fd) {
  auto watch = state_->watches.extract(fd);
  if (watch) ::epoll_ctl(state_->epoll.get(), EPOLL_CTL_DEL, fd, nullptr);
}

}  // namespace penstock::os
