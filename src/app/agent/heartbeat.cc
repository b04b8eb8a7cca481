// By the loops' own word of when they began what they do.
#include "app/agent/heartbeat.h"

#include "base/core/clock.h"
#include "edge/systemd/notify.h"

namespace penstock::app {
namespace {

/// The longest of what a loop does is to read a year of usage records or all of a driver's libraries from a slow disk: some seconds.
constexpr base::Duration kHangs = std::chrono::seconds(30);

}  // namespace

void Heartbeat::TellSystemd(os::Loop& control) const {
  const base::Duration interval = edge::systemd::WatchdogInterval();
  if (interval <= base::Duration::zero()) return;
  if (Hangs().empty()) edge::systemd::Notify("WATCHDOG=1");
  control.PostAfter(interval / 2, [this, &control] { TellSystemd(control); });
}

std::string Heartbeat::Hangs() const {
  for (const os::Loop* loop : loops_) {
    const base::Duration busy = loop->Busy();
    if (busy <= kHangs) continue;
    return "the thread \"" + loop->name() + "\" has not come back for " + base::FormatDuration(busy) +
           ": it waits for a file or a device that does not answer";
  }
  return "";
}

}  // namespace penstock::app
