// Records to evidence.
#include "node/health/kernel_log.h"

#include <sys/epoll.h>

#include "os/kmsg.h"
#include "os/watch.h"

namespace penstock::node::health {

struct KernelLogFeed::State {
  State(os::Loop& l, os::KernelLog k, std::vector<const device::Dialect*> d, Heard h)
      : loop(l), log(std::move(k)), dialects(std::move(d)), heard(std::move(h)) {}

  void Read() {
    const auto records = log.Read();
    for (const os::KernelRecord& record : records)
      for (const device::Dialect* dialect : dialects)
        if (const auto evidence = dialect->FromKernelLog(record.text)) heard(dialect->vendor(), *evidence);
    // A read ends somewhere in a flood. A device says again that there is more; a file does not, and the loop has others to serve.
    if (log.pollable() || records.empty()) return;
    loop.Post([this, weak = std::weak_ptr(alive)] {
      if (!weak.expired()) Read();
    });
  }

  os::Loop& loop;
  os::KernelLog log;
  std::vector<const device::Dialect*> dialects;
  Heard heard;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  std::unique_ptr<os::PathWatch> watch;  // where the log is a plain file, which epoll does not know
};

KernelLogFeed::KernelLogFeed() = default;

base::Result<std::unique_ptr<KernelLogFeed>> KernelLogFeed::Open(os::Loop& loop, const std::string& path,
                                                                 std::vector<const device::Dialect*> dialects, Heard heard) {
  ASSIGN(os::KernelLog log, os::KernelLog::Open(path, true));
  std::unique_ptr<KernelLogFeed> feed(new KernelLogFeed);
  feed->state_ = std::make_unique<State>(loop, std::move(log), std::move(dialects), std::move(heard));
  State* const state = feed->state_.get();
  if (state->log.pollable()) {
    TRY(loop.Watch(state->log.fd(), EPOLLIN, [state](std::uint32_t) { state->Read(); }));
  } else {
    state->watch = std::make_unique<os::PathWatch>(loop, path, [state] { state->Read(); });
  }
  return feed;
}

KernelLogFeed::~KernelLogFeed() {
  if (state_ && state_->log.pollable()) state_->loop.Unwatch(state_->log.fd());
}

}  // namespace penstock::node::health
