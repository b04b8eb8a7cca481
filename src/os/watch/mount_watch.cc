// The kernel reports a change of the list of mounts as an error to poll (proc_pid_mountinfo(5)),
// once: the file need not be read.
#include "os/watch/mount_watch.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>

namespace penstock::os {

base::Result<std::unique_ptr<MountWatch>> MountWatch::Start(Loop& loop,
                                                            std::function<void()> callback,
                                                            base::Duration gather) {
  // Own, not that of another proc root: the mounts of this process's namespace.
  UniqueFd mounts(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  if (!mounts) return base::ErrnoError(errno, "open /proc/self/mountinfo");
  const int fd = mounts.get();
  std::unique_ptr<MountWatch> watch(
      new MountWatch(loop, std::move(mounts), std::move(callback), gather));
  TRY(loop.Watch(fd, EPOLLPRI, [watch = watch.get()](std::uint32_t) { watch->Changed(); }));
  return watch;
}

MountWatch::MountWatch(Loop& loop, UniqueFd mounts, std::function<void()> callback,
                       base::Duration gather)
    : loop_(loop), mounts_(std::move(mounts)), callback_(std::move(callback)), gather_(gather) {}

MountWatch::~MountWatch() {
  loop_.Cancel(timer_);
  loop_.Unwatch(mounts_.get());
}

void MountWatch::Changed() {
  if (timer_ != 0) return;
  timer_ = loop_.PostAfter(gather_, [this] {
    timer_ = 0;
    callback_();
  });
}

}  // namespace penstock::os
