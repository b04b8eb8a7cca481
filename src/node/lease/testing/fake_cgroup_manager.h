// A fake CgroupManager with groups in memory. For tests only.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "node/lease/cgroup_manager.h"

namespace penstock::node::lease {

/// The kernel's part: outlives the CgroupManager that an agent opens, as the kernel outlives
/// agents.
struct FakeKernel {
  struct Group {
    std::string place;
    os::DeviceRules rules;
    std::string note;
    std::vector<pid_t> members;
    std::function<void()> changed;
  };
  std::map<std::string, Group> groups;
  std::vector<std::pair<std::string, int>> signals;  ///< that were sent, by group
  std::map<pid_t, std::string> moved;                ///< into groups that are not the agent's
  std::string refusal;                               ///< why no group has a place; empty: all have
                                                     ///< one
  std::string fail;                                  ///< name of the call that fails
  std::vector<std::string> closed;                   ///< groups to which devices are closed
  std::vector<os::DeviceRange> closed_devices;
  int closings = 0;                ///< number of calls to CloseDevices
  int busy = 0;                    ///< number of removals that fail
  bool ending = false;             ///< a process that is moved is about to end and stays in its
                                   ///< group
  std::function<void()> created;   ///< called after a group was created
  std::function<void()> entering;  ///< called before a process enters

  /// The processes of a group end, and its watcher is notified.
  void End(const std::string& name) {
    Group& group = groups.at(name);
    group.members.clear();
    if (const auto changed = group.changed) changed();
  }
};

class FakeCgroupManager final : public CgroupManager {
 public:
  explicit FakeCgroupManager(FakeKernel& kernel) : kernel_(kernel) {}

  std::vector<std::string> List() override {
    std::vector<std::string> names;
    for (const auto& [name, group] : kernel_.groups) names.push_back(name);
    return names;
  }
  base::Result<std::string> Note(const std::string& name) const override {
    return kernel_.groups.at(name).note;
  }
  base::Result<std::string> PlaceFor(const std::string& name,
                                     const std::string& above) const override {
    if (!kernel_.refusal.empty())
      return base::Error(base::Code::kFailedPrecondition, kernel_.refusal);
    return above + "/" + name;
  }
  std::string Place(const std::string& name) const override {
    return kernel_.groups.at(name).place;
  }
  base::Status Create(const std::string& name, const std::string& place,
                      const os::DeviceRules& rules, const std::string& note) override {
    TRY(MayFail("create"));
    kernel_.groups[name] = {place, rules, note, {}, {}};
    if (kernel_.created) kernel_.created();
    return {};
  }
  base::Status Enter(const std::string& name, pid_t pid) override {
    if (kernel_.entering) kernel_.entering();
    TRY(MayFail("enter"));
    if (!kernel_.ending) kernel_.groups.at(name).members.push_back(pid);
    return {};
  }
  base::Status MoveTo(const std::string& cgroup, pid_t pid) override {
    for (auto& [name, group] : kernel_.groups) std::erase(group.members, pid);
    kernel_.moved[pid] = cgroup;
    return {};
  }
  std::vector<pid_t> Members(const std::string& name) const override {
    return kernel_.groups.at(name).members;
  }
  base::Status Signal(const std::string& name, int signal) override {
    kernel_.signals.emplace_back(name, signal);
    return {};
  }
  bool Populated(const std::string& name) const override {
    return kernel_.groups.contains(name) && !kernel_.groups.at(name).members.empty();
  }
  base::Status Watch(const std::string& name, std::function<void()> changed) override {
    TRY(MayFail("watch"));
    kernel_.groups.at(name).changed = std::move(changed);
    return {};
  }
  void Unwatch(const std::string& name) override {
    if (const auto group = kernel_.groups.find(name); group != kernel_.groups.end())
      group->second.changed = nullptr;
  }
  base::Status Remove(const std::string& name) override {
    if (Populated(name) || kernel_.busy-- > 0)
      return base::Error(base::Code::kFailedPrecondition, "busy");
    kernel_.groups.erase(name);
    return {};
  }
  std::map<std::string, base::Status> CloseDevices(
      const std::vector<std::string>& cgroups,
      const std::vector<os::DeviceRange>& devices) override {
    ++kernel_.closings;
    kernel_.closed = cgroups;
    kernel_.closed_devices = devices;
    std::map<std::string, base::Status> closed;
    for (const std::string& cgroup : cgroups) closed[cgroup] = MayFail("close " + cgroup);
    return closed;
  }

 private:
  base::Status MayFail(const std::string& call) const {
    if (kernel_.fail == call) return base::Error(base::Code::kResourceExhausted, call + " fails");
    return {};
  }
  FakeKernel& kernel_;
};

}  // namespace penstock::node::lease
