// A loop with a Remote on it that a test calls from its own thread as if calls blocked. Its clock
// is stopped, so that deadlines pass only in Hanging. For tests only.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/remote.h"
#include "os/testing/turned_loop.h"

namespace penstock::device {

class Asking {
 public:
  /// How long to wait for something that must happen. Never reached in a passing test.
  static constexpr auto kSurely = std::chrono::seconds(60);

  Asking() : loop_("test") { loop_.Start(); }
  ~Asking() {
    OnLoop([&] { remote_.reset(); });
    loop_.Stop();
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  void Make(Remote::Options options) {
    OnLoop([&] {
      remote_ = std::make_unique<Remote>(loop_.loop(), std::move(options));
      remote_->Listen(
          {.evidence = [&](std::vector<Evidence> evidence) { evidence_.Put(std::move(evidence)); },
           .doubt = [&] { doubts_.Put(true); },
           .ended = [&](base::Error error) { ended_.Put(std::move(error)); }});
    });
  }

  void OnLoop(const std::function<void()>& function) { loop_.Run(function); }

  /// For calls in `ask` that are not answered before their deadline: advances time until there is a
  /// result.
  template <typename Function>
  auto Hanging(Function ask) {
    step_ = std::chrono::milliseconds(100);
    auto result = ask();
    step_ = {};
    return result;
  }

  base::Result<Driver> Open() {
    return Ask<Driver>([&](auto done) { remote_->Open(done); });
  }
  base::Result<std::vector<std::string>> List() {
    return Ask<std::vector<std::string>>([&](auto done) { remote_->List(done); });
  }
  base::Result<Facts> Describe(const std::string& address) {
    return Ask<Facts>([&](auto done) { remote_->Describe(address, done); });
  }
  base::Result<Reading> Read(const std::string& address) {
    return Ask<Reading>([&](auto done) { remote_->Read(address, done); });
  }
  void Stop() {
    OnLoop([&] { remote_->Stop(); });
  }
  pid_t pid() {
    pid_t pid = 0;
    OnLoop([&] { pid = remote_->pid(); });
    return pid;
  }
  int abandoned() {
    int abandoned = 0;
    OnLoop([&] { abandoned = remote_->abandoned(); });
    return abandoned;
  }

  /// The error with which the worker ended; one for each end.
  base::Error Ended() { return ended_.Take().value_or(TooLate()); }
  /// Whether no worker ended unexpectedly.
  bool NoneEnded() { return ended_.empty(); }
  /// The next events; empty if none came.
  std::vector<Evidence> Heard() { return evidence_.Take().value_or(std::vector<Evidence>{}); }

  /// Waits until the events are reported to fail.
  bool Doubted() { return doubts_.Take().has_value(); }

  /// Waits until no worker is abandoned.
  bool NoneAbandonedAtLast() {
    const auto late = std::chrono::steady_clock::now() + kSurely;
    while (abandoned() > 0) {
      if (std::chrono::steady_clock::now() > late) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  /// A call that changes a device.
  base::Result<std::string> Change(
      std::function<void(Remote&, AsyncBackend::Done<std::string>)> call) {
    return Ask<std::string>([&](auto done) { call(*remote_, std::move(done)); });
  }

  os::TurnedLoop& loop() { return loop_; }
  Remote& remote() { return *remote_; }

 private:
  static base::Error TooLate() { return {base::Code::kInternal, "the test waited too long"}; }

  /// Passes values from the loop's thread to the test's.
  template <typename T>
  class Inbox {
   public:
    void Put(T value) {
      std::lock_guard lock(mutex_);
      values_.push_back(std::move(value));
      changed_.notify_all();
    }
    std::optional<T> Take() {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, kSurely, [&] { return !values_.empty(); })) return std::nullopt;
      T value = std::move(values_.front());
      values_.pop_front();
      return value;
    }
    bool empty() {
      std::lock_guard lock(mutex_);
      return values_.empty();
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<T> values_;
  };

  template <typename T>
  base::Result<T> Ask(std::function<void(AsyncBackend::Done<T>)> method) {
    auto answer = std::make_shared<std::promise<base::Result<T>>>();
    loop_.Run([&] {
      method([answer](base::Result<T> result) { answer->set_value(std::move(result)); });
    });
    auto future = answer->get_future();
    const auto there = [&] {
      return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    };
    if (!loop_.AdvanceUntil(step_, there)) return TooLate();
    return future.get();
  }

  Inbox<std::vector<Evidence>> evidence_;
  Inbox<bool> doubts_;
  Inbox<base::Error> ended_;
  os::TurnedLoop loop_;
  base::Duration step_{};
  std::unique_ptr<Remote> remote_;
};

}  // namespace penstock::device
