// Waits until the configuration is known, then at most for a limited time, and then until no sign
// of shared devices is left.
#include "app/agent/kubelet_start.h"

#include <utility>

#include "adapter/kubelet/shares_seen.h"
#include "base/log.h"

namespace penstock::app {
namespace {

// Time between two looks for shared devices: they disappear when pods end or the kubelet is reset.
constexpr base::Duration kCheckInterval = std::chrono::seconds(10);

}  // namespace

KubeletStart::KubeletStart(Node node, bool kubelet_served, std::function<void()> open)
    : node_(std::move(node)), open_(std::move(open)) {
  if (!kubelet_served || node_.configuration.unknown().empty()) {
    Open();
    return;
  }
  reason_ =
      node_.configuration.unknown() +
      " has not been read yet: no device is advertised to the kubelet until it is read, or until " +
      base::FormatTime(node_.control.clock().Wall() + kWait);
  base::Log(base::kWarn, "kubelet not served yet", {{"state", "waiting"}, {"why", reason_}});
  timer_ = node_.control.PostAfter(kWait, [this] { CheckShares(); });
}

KubeletStart::~KubeletStart() { node_.control.Cancel(timer_); }

void KubeletStart::ConfigurationChanged() {
  if (node_.configuration.unknown().empty()) Open();
}

void KubeletStart::Open() {
  if (std::exchange(opened_, true)) return;
  reason_.clear();
  open_();
}

void KubeletStart::CheckShares() {
  if (opened_) return;
  const auto read = lifetime_.Guard([this](const auto& checkpoint) {
    Decide(adapter::kubelet::SharesSeen(*node_.ledger.Get(), *node_.inventory.published().Get(),
                                        checkpoint));
  });
  node_.io.Post([read, &control = node_.control, folder = node_.kubelet_dir] {
    control.Post([read, checkpoint = protocol::kubelet::ReadCheckpoint(folder)]() mutable {
      read(checkpoint);
    });
  });
}

void KubeletStart::Decide(const std::string& shares) {
  if (opened_) return;
  const bool own_shares = !node_.configuration.published().Get()->config.sharing.rules.empty();
  if (shares.empty() || own_shares) {
    base::Log(base::kWarn, "serving the kubelet with the agent's own configuration",
              {{"why", node_.configuration.unknown() + " has not been read for " +
                           base::FormatDuration(kWait)}});
    return Open();
  }
  const std::string before = std::exchange(
      reason_, node_.configuration.unknown() + " has not been read yet, and " + shares +
                   ": no whole device is offered to the kubelet until it is read");
  if (before != reason_)
    base::Log(base::kWarn, "kubelet not served yet", {{"state", "waiting"}, {"why", reason_}});
  timer_ = node_.control.PostAfter(kCheckInterval, [this] { CheckShares(); });
}

}  // namespace penstock::app
