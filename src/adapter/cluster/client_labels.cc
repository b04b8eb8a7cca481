#include "adapter/cluster/client_labels.h"

#include "device/dialect.h"

namespace penstock::adapter::cluster {

using device::kClientsRun;

ClientLabels::Plan ClientLabels::Decide(const ObservedNode& node,
                                        const std::set<std::string>& pause, base::TimePoint now) {
  Plan plan;
  const bool first = !std::exchange(begun_, true);
  for (const auto& [key, paused] : keys_) {
    const auto label = node.labels.find(key);
    const std::string value = label == node.labels.end() ? "" : label->second;
    if (first && value.starts_with(paused)) ours_.insert(key);
    if (pause.contains(key)) {
      if (value != kClientsRun) continue;
      if (ours_.contains(key) && now < not_before_) {
        plan.again = not_before_ - now;
      } else {
        plan.set[key] = paused;
      }
    } else if (ours_.contains(key)) {
      if (value == paused)
        plan.set[key] = kClientsRun;
      else if (!value.starts_with(paused))  // others keep a paused value to put it back later
        ours_.erase(key);
    }
  }
  if (ours_.empty()) backoff_.Reset();
  return plan;
}

void ClientLabels::Sent(const std::map<std::string, std::string>& set) {
  for (const auto& [key, value] : set)
    if (value != kClientsRun) ours_.insert(key);
}

void ClientLabels::Wrote(const std::map<std::string, std::string>& set, base::TimePoint now) {
  bool stopped = false;
  for (const auto& [key, value] : set) {
    if (value == kClientsRun) {
      ours_.erase(key);
    } else {
      ours_.insert(key);
      stopped = true;
    }
  }
  if (stopped) not_before_ = now + backoff_.Next();
}

}  // namespace penstock::adapter::cluster
