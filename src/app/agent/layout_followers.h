// The followers of layouts of all vendors, as one.
#pragma once

#include <list>
#include <map>
#include <string>
#include <vector>

#include "app/agent/changes.h"
#include "app/agent/layout_follower.h"

namespace penstock::app {

/// On the control loop. The functions are those of LayoutFollower, on each.
class LayoutFollowers {
 public:
  LayoutFollowers(os::Loop& control, base::Executor& io, node::inventory::Inventory& inventory,
                  Changes& changes) {
    for (const Changes::OfVendor& one : changes.divided())
      followers_.emplace_back(control, io, inventory, *one.divisions, *one.dialect);
  }

  void Configure(const api::NodeConfig& config) {
    for (LayoutFollower& one : followers_) one.Configure(config);
  }
  void Take(const std::map<std::string, std::string>& labels) {
    for (LayoutFollower& one : followers_) one.Take(labels);
  }
  void SetServices(const api::compat::NodeServices& services) {
    for (LayoutFollower& one : followers_) one.SetServices(services);
  }
  void Begin() {
    for (LayoutFollower& one : followers_) one.Begin();
  }
  void DevicesChanged() {
    for (LayoutFollower& one : followers_) one.DevicesChanged();
  }
  std::map<std::string, std::string> Labels() const {
    std::map<std::string, std::string> labels;
    for (const LayoutFollower& one : followers_) labels.merge(one.Labels());
    return labels;
  }
  std::vector<LayoutEvent> TakeEvents() {
    std::vector<LayoutEvent> events;
    for (LayoutFollower& one : followers_)
      if (auto event = one.TakeEvent()) events.push_back(*std::move(event));
    return events;
  }

 private:
  std::list<LayoutFollower> followers_;
};

}  // namespace penstock::app
