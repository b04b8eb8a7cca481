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

/// One thread that runs functions, timers and descriptor callbacks one after another. Post, PostAfter, Cancel and Stop: any thread; the
/// rest on the loop's own thread, before Start or after Stop. Every function may call everything here. Without work the thread sleeps in
/// the kernel. Timers are exact to a millisecond, never early.
class Loop final : public base::Executor {
 public:
  /// `name` becomes the name of the thread that Start makes (15 characters at most). Timers follow the machine's clock.
  explicit Loop(std::string name);
  /// Timers follow `clock`, which must outlive the loop; one that is turned by hand is looked at again when something wakes the loop.
  Loop(std::string name, const base::Clock& clock);
  ~Loop() override;  ///< Stop
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Runs the loop on a thread of its own.
  void Start();

  /// Runs the loop on the calling thread until Stop. A stopped loop does not run again.
  void Run();

  /// Ends the loop after the function that runs now, and joins the thread that Start made (not when called on it). What was posted and has
  /// not run, or is posted later, is destroyed unrun.
  void Stop();

  /// As Stop of a loop that Start runs, but waits no longer than this for what runs now. False: it still runs, as where a file system does
  /// not answer; its thread is then left alone for good and what was posted is never destroyed. What that function uses may be gone when
  /// it returns, so the process has to end by _exit(2).
  bool StopWithin(base::Duration patience);

  const std::string& name() const;

  /// How long the function, timer or callback that runs now has been running; 0 while the loop waits for work. Any thread.
  base::Duration Busy() const;

  bool InLoop() const;

  const base::Clock& clock() const override;
  void Post(std::function<void()> function) override;
  base::TimerId PostAfter(base::Duration delay, std::function<void()> function) override;
  void Cancel(base::TimerId timer) override;

  /// Calls back with epoll events (EPOLLIN, ...) of a descriptor, level-triggered, until Unwatch. The descriptor stays the caller's and
  /// must be unwatched before it is closed.
  base::Status Watch(int fd, std::uint32_t events, std::function<void(std::uint32_t)> callback);
  /// Changes the events that a watched descriptor waits for.
  base::Status Rewatch(int fd, std::uint32_t events);
  /// Its callback is not called again, also where its event was already on the way. Nothing where the descriptor is not watched.
  void Unwatch(int fd);

  /// Where those who watch paths on this loop keep what they share (Inotify::Of).
  std::weak_ptr<Inotify>& inotify() { return inotify_; }

 private:
  std::weak_ptr<Inotify> inotify_;
  struct State;
  std::shared_ptr<State> state_;  // the thread's, too, so that one that is left alone keeps what it needs
};

}  // namespace penstock::os
