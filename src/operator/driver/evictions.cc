#include "operator/driver/evictions.h"

#include <algorithm>

#include "api/cluster/label_selector.h"

namespace penstock::cluster {
namespace {

constexpr std::size_t kMostPodsNamed = 3;

std::string WhyNotEvicted(const HoldingPod& pod, const api::UpgradeEviction& rules,
                          const api::LabelSelector& selector) {
  if (pod.restarted)
    return "it would be started again on this node at once: exclude the node from its DaemonSet";
  if (!selector.Matches(pod.labels)) return "drain.podSelector does not select it";
  if (pod.unmanaged && !rules.force) return "no controller would start it again, and force is off";
  if (pod.has_empty_dir && !rules.delete_empty_dir)
    return "it has data in an emptyDir, and deleteEmptyDir is off";
  return "";
}

void AddName(std::string& text, std::size_t& named, const HoldingPod& pod,
             const std::string& what) {
  if (++named > kMostPodsNamed + 1) return;
  if (!text.empty()) text += "; ";
  text += named > kMostPodsNamed
              ? "and others"
              : "pod " + pod.name + " (" + pod.holds + ")" + (what.empty() ? "" : ": " + what);
}

}  // namespace

Evictions EvictionsOf(const std::vector<HoldingPod>& pods, const api::UpgradeEviction& rules,
                      const std::string& selector) {
  Evictions evictions;
  const auto parsed = api::LabelSelector::Parse(selector);
  if (!parsed.ok()) {
    evictions.blocked = parsed.error().message();
    return evictions;
  }
  std::size_t blocked = 0, waiting = 0;
  for (const HoldingPod& pod : pods) {
    if (pod.skipped) continue;
    if (pod.terminating) {
      AddName(evictions.waiting, waiting, pod, "is ending");
    } else if (const std::string why = WhyNotEvicted(pod, rules, *parsed); !why.empty()) {
      AddName(evictions.blocked, blocked, pod, why);
    } else {
      evictions.actions.push_back({UpgradeAction::Kind::kEvict, pod.name, pod.uid});
      evictions.refused |= !pod.refused.empty();
      AddName(evictions.waiting, waiting, pod, pod.refused);
    }
  }
  if (!evictions.blocked.empty()) evictions.actions.clear();
  return evictions;
}

}  // namespace penstock::cluster
