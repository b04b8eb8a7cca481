#include "app/agent/heartbeat.h"

#include "base/core/clock.h"
#include "protocol/systemd/notify.h"

namespace penstock::app {
namespace {

/// The longest tasks of a loop, reading a year of usage records or all libraries of a driver from a
/// slow disk, take some seconds.
constexpr base::Duration kHangs = std::chrono::seconds(30);

}  // namespace

void Heartbeat::NotifySystemd(os::Loop& control) const {
  const base::Duration interval = protocol::systemd::WatchdogInterval();
  if (interval <= base::Duration::zero()) return;
  if (Hangs().empty()) protocol::systemd::Notify("WATCHDOG=1");
  control.PostAfter(interval / 2, [this, &control] { NotifySystemd(control); });
}

std::string Heartbeat::Hangs() const {
  for (const os::Loop* loop : loops_) {
    const base::Duration busy = loop->Busy();
    if (busy <= kHangs) continue;
    return "thread \"" + loop->name() + "\" has not responded for " + base::FormatDuration(busy) +
           ": it is blocked on a file or a device that does not respond";
  }
  return "";
}

}  // namespace penstock::app
