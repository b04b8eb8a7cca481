// An executor on one thread that also waits for descriptors: epoll, timers, posted functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "base/executor.h"

namespace penstock::os {

class Inotify;

/// One thread that runs functions, timers and descriptor callbacks one after another. Post,
/// PostAfter, Cancel and Stop: any thread. All else: the loop's own thread, or before Start or
/// after Stop. Every function that runs on the loop may call everything here. Without work the
/// thread sleeps in the kernel. Timers have a resolution of one millisecond and never fire early.
class Loop final : public base::Executor {
 public:
  /// `name` becomes the name of the thread that Start creates (15 characters at most). Timers use
  /// the machine's clock.
  explicit Loop(std::string name);
  /// Timers use `clock`, which must outlive the loop. If a test advances a fake clock, the loop
  /// notices only when something wakes it.
  Loop(std::string name, const base::Clock& clock);
  ~Loop() override;  ///< calls Stop
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Runs the loop on a thread of its own.
  void Start();

  /// Runs the loop on the calling thread until Stop. A stopped loop cannot be restarted.
  void Run();

  /// Ends the loop after the function that is running, and joins the thread that Start created (not
  /// when called on that thread). Functions that have not run yet, or are posted later, are
  /// destroyed without running.
  void Stop();

  /// As Stop for a loop that Start runs, but waits at most `patience` for the function that is
  /// running. False: it is still running, for example because a file system does not respond. The
  /// thread is then abandoned, and posted functions are never destroyed. Objects that the function
  /// uses may be destroyed before it returns, so the process must end by _exit(2).
  bool StopWithin(base::Duration patience);

  const std::string& name() const;

  /// How long the current function, timer or callback has been running; 0 while the loop waits for
  /// work. Any thread.
  base::Duration Busy() const;

  bool InLoop() const;

  const base::Clock& clock() const override;
  void Post(std::function<void()> function) override;
  base::TimerId PostAfter(base::Duration delay, std::function<void()> function) override;
  void Cancel(base::TimerId timer) override;

  /// Calls back with epoll events (EPOLLIN, ...) of a descriptor, level-triggered, until Unwatch.
  /// The caller keeps ownership of the descriptor and must call Unwatch before closing it.
  base::Status Watch(int fd, std::uint32_t events, std::function<void(std::uint32_t)> callback);
  /// Changes the events that a watched descriptor waits for.
  base::Status Rewatch(int fd, std::uint32_t events);
  /// The callback is not called again, even if its event was already dequeued. Does nothing if the
  /// descriptor is not watched.
  void Unwatch(int fd);

  /// Holds the state that all path watchers of this loop share (Inotify::Of).
  std::weak_ptr<Inotify>& inotify() { return inotify_; }

 private:
  std::weak_ptr<Inotify> inotify_;
  struct State;
  std::shared_ptr<State>
      state_;  // shared with the thread, so that an abandoned thread keeps what it needs
};

}  // namespace penstock::os
