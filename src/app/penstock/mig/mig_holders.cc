#include "app/penstock/mig/mig_holders.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "api/allocators.h"
#include "app/state_files.h"
#include "base/core/strings.h"
#include "node/attribute/attribute.h"
#include "node/change/device_change.h"
#include "node/lease/process_tree.h"
#include "node/ledger/checkpoint.h"
#include "os/core/file.h"
#include "os/process/process.h"
#include "os/process/process_text.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using base::Result;
using node::ledger::Lease;

constexpr std::size_t kLongestCgroups = 65536;

/// The text of a file of the last agent; empty where there is none.
Result<std::string> ReadState(const std::string& path, std::size_t most) {
  auto text = os::ReadFile(path, most);
  if (text.ok() || text.error().code() != Code::kNotFound) return text;
  return std::string();
}

base::Status CheckJournal(const std::string& journal) {
  ASSIGN(const std::string changes, ReadState(journal, os::kMaxFileBytes));
  if (changes.empty()) return {};
  ASSIGN(const auto unfinished, node::change::DecodeChanges(changes, journal));
  if (unfinished.empty()) return {};
  return Error(Code::kFailedPrecondition,
               "the agent that ended left a change of devices unfinished (" + journal +
                   "): start an agent, which finishes it");
}

/// Whether the group is a run's, or below it: "/user.slice/penstock.r-m3k2-1".
bool IsIn(const std::string& cgroup, const std::string& lease) {
  return std::ranges::any_of(base::Split(cgroup, '/'), [&](std::string_view group) {
    return group == lease || group.ends_with("." + lease);
  });
}

/// Those of the runs that have a process.
std::set<std::string> RunsWithProcesses(const std::string& proc, const std::vector<Lease>& runs) {
  std::set<std::string> found;
  std::vector<node::lease::ProcessTree> trees;
  for (const Lease& run : runs) trees.push_back({run.id, run.user, run.processes});
  for (const auto& tree : node::lease::FindProcessTrees(proc, std::move(trees)))
    if (!tree.members.empty()) found.insert(tree.lease);
  for (const pid_t pid : os::ListProcesses(proc)) {
    const auto text = os::ReadFile(proc + "/" + std::to_string(pid) + "/cgroup", kLongestCgroups);
    if (!text.ok()) continue;
    for (const std::string& cgroup : os::ParseCgroups(*text))
      for (const Lease& run : runs)
        if (IsIn(cgroup, run.id)) found.insert(run.id);
  }
  return found;
}

bool IsRun(const Lease& lease) {
  return api::FindAllocator(lease.allocator).held_by == api::HeldBy::kProcesses;
}

class StillThere {
 public:
  StillThere(const api::PathsConfig& paths, const std::vector<Lease>& leases) : paths_(paths) {
    std::vector<Lease> runs;
    std::set<std::string> pods;
    for (const Lease& lease : leases)
      if (IsRun(lease))
        runs.push_back(lease);
      else if (!lease.pod_uid.empty())
        pods.insert(lease.pod_uid);
    if (!runs.empty()) runs_ = RunsWithProcesses(paths.proc_root, runs);
    if (!pods.empty()) pods_ = node::attribute::PodsWithProcesses(paths.proc_root, pods);
  }

  bool operator()(const Lease& lease) const {
    if (IsRun(lease)) return runs_.contains(lease.id);
    return lease.pod_uid.empty() || pods_.contains(lease.pod_uid) || HasFolder(lease.pod_uid);
  }

 private:
  /// The kubelet makes it before it starts a container, and removes it when the pod has ended.
  bool HasFolder(const std::string& pod_uid) const {
    return pod_uid.find('/') == std::string::npos &&
           os::Exists(paths_.kubelet_dir + "/pods/" + pod_uid);
  }

  const api::PathsConfig& paths_;
  std::set<std::string> runs_, pods_;
};

std::string InWords(const Lease& lease) {
  const std::string who = IsRun(lease)        ? "the run of " + lease.user
                          : lease.pod.empty() ? "a pod"
                                              : "pod " + lease.namespace_name + "/" + lease.pod;
  return who + ", as the agent that ended recorded";
}

}  // namespace

Result<std::map<std::string, std::string>> RecordedHolders(const api::PathsConfig& paths) {
  TRY(CheckJournal(JournalPath(paths.state_dir)));
  const std::string ledger = LedgerPath(paths.state_dir);
  std::map<std::string, std::string> holders;
  ASSIGN(const std::string text, ReadState(ledger, node::ledger::kMaxCheckpointBytes));
  if (text.empty()) return holders;
  ASSIGN(const std::string boot, os::ReadBootId("/proc"));
  ASSIGN(const auto leases, node::ledger::DecodeCheckpoint(text, boot, ledger));
  const StillThere still_there(paths, leases);
  for (const Lease& lease : leases) {
    if (!still_there(lease)) continue;
    for (const node::ledger::Slot& slot : lease.slots) holders[slot.device] = InWords(lease);
  }
  return holders;
}

}  // namespace penstock::app
