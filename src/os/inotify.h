// The one inotify instance of a loop, shared by all who watch paths on it: the kernel gives a user 128 of them, a kubelet takes six.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <sys/inotify.h>

#include "os/core/fd.h"
#include "os/loop.h"

namespace penstock::os {

/// On the loop's thread, all of it.
class Inotify {
 public:
  /// Who watches. Told of every event of the descriptors it has added, and at the end of each batch.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    /// Also of events that only others asked for, and with IN_Q_OVERFLOW, which is of no descriptor. After IN_IGNORED the descriptor is
    /// gone.
    virtual void OnEvent(const inotify_event& event) = 0;
    virtual void OnBatch() = 0;
  };

  /// The loop's own; made where nobody holds one.
  static std::shared_ptr<Inotify> Of(Loop& loop);

  explicit Inotify(Loop& loop) : loop_(loop) {}
  ~Inotify();
  Inotify(const Inotify&) = delete;
  Inotify& operator=(const Inotify&) = delete;

  /// The watch descriptor of a path, or -1 with errno: EMFILE where the kernel gives no instance, else of inotify_add_watch(2).
  int Add(const std::string& path, std::uint32_t events, Watcher& watcher);

  /// The watcher hears no more of this descriptor.
  void Remove(int watch, Watcher& watcher);
  void Remove(Watcher& watcher);

 private:
  bool Open();
  void Read();
  void Tell(const inotify_event& event);

  Loop& loop_;
  UniqueFd fd_;
  std::multimap<int, Watcher*> watchers_;  // by descriptor
};

}  // namespace penstock::os
