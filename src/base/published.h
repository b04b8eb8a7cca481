// A value that one thread replaces and any thread reads, as an immutable snapshot.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace penstock::base {

/// Keeps a subscription alive; ends it when destroyed. After the destructor returns, the callback
/// is not running and will not run again.
class Subscription {
 public:
  Subscription() = default;
  explicit Subscription(std::function<void()> end) : end_(std::move(end)) {}
  Subscription(Subscription&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
  Subscription& operator=(Subscription&& other) noexcept {
    if (this != &other) {
      Reset();
      end_ = std::exchange(other.end_, nullptr);
    }
    return *this;
  }
  ~Subscription() { Reset(); }
  void Reset() {
    if (auto end = std::exchange(end_, nullptr)) end();
  }

 private:
  std::function<void()> end_;
};

/// A mutex around a shared_ptr<const T> (std::atomic<shared_ptr> of g++ 12 fails the thread
/// sanitizer). Get may be called from any thread; Set from one thread at a time. Subscribers are
/// called on the setter's thread, in order, and must neither block nor call back into this object.
/// A Published must outlive its subscriptions.
template <typename T>
class Published {
 public:
  using Snapshot = std::shared_ptr<const T>;

  explicit Published(T initial = T{}) : value_(std::make_shared<const T>(std::move(initial))) {}

  Snapshot Get() const {
    std::lock_guard lock(mutex_);
    return value_;
  }

  void Set(T value) { Set(std::make_shared<const T>(std::move(value))); }

  void Set(Snapshot value) {
    std::lock_guard calling(calling_);
    {
      std::lock_guard lock(mutex_);
      value_ = value;
    }
    for (auto& [id, callback] : subscribers_) callback(value);
  }

  /// Calls back with every later value, and immediately with the current one if `now`.
  [[nodiscard]] Subscription Subscribe(std::function<void(const Snapshot&)> callback,
                                       bool now = false) {
    std::lock_guard calling(calling_);
    if (now) callback(Get());
    const int id = next_id_++;
    subscribers_.emplace(id, std::move(callback));
    return Subscription([this, id] {
      std::lock_guard ending(calling_);
      subscribers_.erase(id);
    });
  }

 private:
  mutable std::mutex mutex_;
  Snapshot value_;
  std::mutex calling_;
  std::map<int, std::function<void(const Snapshot&)>> subscribers_;
  int next_id_ = 0;
};

}  // namespace penstock::base
