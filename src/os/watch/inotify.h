// The inotify instance of a loop, shared by all watchers of paths on that loop: the kernel gives a
// user 128 instances, and a kubelet uses six.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <sys/inotify.h>

#include "os/core/fd.h"
#include "os/loop.h"

namespace penstock::os {

/// Use on the loop's thread only.
class Inotify {
 public:
  /// Receives every event of the descriptors that it has added, and a call at the end of each
  /// batch.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    /// Also called for events that only other watchers asked for, and with IN_Q_OVERFLOW, which
    /// belongs to no descriptor. After IN_IGNORED the descriptor is no longer valid.
    virtual void OnEvent(const inotify_event& event) = 0;
    virtual void OnBatch() = 0;
  };

  /// The loop's instance; created if none exists.
  static std::shared_ptr<Inotify> Of(Loop& loop);

  explicit Inotify(Loop& loop) : loop_(loop) {}
  ~Inotify();
  Inotify(const Inotify&) = delete;
  Inotify& operator=(const Inotify&) = delete;

  /// Returns the watch descriptor of a path, or -1 with errno: EMFILE if the kernel gives no
  /// instance, otherwise from inotify_add_watch(2).
  int Add(const std::string& path, std::uint32_t events, Watcher& watcher);

  /// The watcher receives no more events of this descriptor.
  void Remove(int watch, Watcher& watcher);
  void Remove(Watcher& watcher);

 private:
  bool Open();
  void Read();
  void Notify(const inotify_event& event);

  Loop& loop_;
  UniqueFd fd_;
  std::multimap<int, Watcher*> watchers_;  // by descriptor
};

}  // namespace penstock::os
