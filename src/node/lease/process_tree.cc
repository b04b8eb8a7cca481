// Reads process trees from /proc: by descent, and by the environment.
#include "node/lease/process_tree.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/lifetime.h"
#include "os/core/file.h"
#include "os/process/process.h"
#include "os/process/process_text.h"

namespace penstock::node::lease {
namespace {

using ledger::Process;

constexpr base::Duration kPeriod = std::chrono::seconds(1);
constexpr std::size_t kMaxEnvironmentBytes = 4u << 20;

struct Seen {
  std::uint64_t start = 0;
  std::string lease;  // that its environment names
};

struct Table {
  std::map<pid_t, Seen> processes;
  std::multimap<pid_t, pid_t> children;
};

std::string LeaseIn(std::string_view environment) {
  const std::string wanted = std::string(kLeaseVariable) + "=";
  while (!environment.empty()) {
    const std::string_view entry = environment.substr(0, environment.find('\0'));
    if (entry.starts_with(wanted)) return std::string(entry.substr(wanted.size()));
    environment.remove_prefix(std::min(environment.size(), entry.size() + 1));
  }
  return "";
}

Table ReadTable(const std::string& proc_root) {
  Table table;
  for (const pid_t pid : os::ListProcesses(proc_root)) {
    const std::string folder = proc_root + "/" + std::to_string(pid);
    const auto text = os::ReadFile(folder + "/stat", 65536);
    const auto stat = text.ok() ? os::ParseStat(*text) : std::nullopt;
    if (!stat || stat->ended) continue;
    const auto environment = os::ReadEnvironment(proc_root, pid, kMaxEnvironmentBytes);
    table.processes[pid] = {stat->start, environment.ok() ? LeaseIn(*environment) : ""};
    table.children.emplace(stat->parent, pid);
  }
  return table;
}

void AddWithDescendants(pid_t root, const Table& table, std::set<pid_t>& members) {
  std::vector<pid_t> pending = {root};
  while (!pending.empty()) {
    const pid_t pid = pending.back();
    pending.pop_back();
    if (!members.insert(pid).second) continue;
    const auto [first, last] = table.children.equal_range(pid);
    for (auto child = first; child != last; ++child) pending.push_back(child->second);
  }
}

ProcessTree FindOne(const std::string& proc_root, ProcessTree tree, const Table& table) {
  std::set<pid_t> members;
  for (const Process& member : tree.members) {
    const auto seen = table.processes.find(member.pid);
    if (seen != table.processes.end() && seen->second.start == member.start)
      AddWithDescendants(member.pid, table, members);
  }
  for (const auto& [pid, seen] : table.processes) {
    if (seen.lease != tree.lease || members.contains(pid)) continue;
    const auto info = os::ReadProcess(proc_root, pid);
    if (info.ok() && os::UserName(info->uid) == tree.user) AddWithDescendants(pid, table, members);
  }
  tree.members.clear();
  for (const pid_t pid : members) {
    const auto info = os::ReadProcess(proc_root, pid);
    const auto seen = table.processes.find(pid);
    if (info.ok() && seen != table.processes.end() && info->start == seen->second.start)
      tree.members.push_back({pid, info->start, os::UserName(info->uid), info->command});
  }
  return tree;
}

}  // namespace

std::vector<ProcessTree> FindProcessTrees(const std::string& proc_root,
                                          std::vector<ProcessTree> trees) {
  const Table table = ReadTable(proc_root);
  for (ProcessTree& tree : trees) tree = FindOne(proc_root, std::move(tree), table);
  return trees;
}

struct ProcessTreeWatch::State : std::enable_shared_from_this<ProcessTreeWatch::State> {
  struct Followed {
    ProcessTree tree;
    bool seen_empty = false;
  };

  base::Executor& control;
  base::Executor& io;
  const std::string proc_root;
  std::function<void(const ProcessTree&)> changed;
  std::map<std::string, Followed> followed;
  bool reading = false;
  bool ended = false;
  base::TimerId timer = 0;

  State(base::Executor& c, base::Executor& i, std::string proc,
        std::function<void(const ProcessTree&)> call)
      : control(c), io(i), proc_root(std::move(proc)), changed(std::move(call)) {}

  void Schedule(base::Duration delay) {
    control.Cancel(std::exchange(timer, 0));
    if (followed.empty() || reading) return;
    timer = control.PostAfter(delay, base::IfAlive(this, [](State& self) {
                                if (!self.ended) self.Read();
                              }));
  }

  void Read() {
    reading = true;
    std::vector<ProcessTree> trees;
    for (const auto& [lease, one] : followed) trees.push_back(one.tree);
    io.Post([self = shared_from_this(), trees = std::move(trees)]() mutable {
      auto found = FindProcessTrees(self->proc_root, std::move(trees));
      self->control.Post([self, found = std::move(found)] {
        if (!self->ended) self->Found(found);
      });
    });
  }

  // A tree must be seen empty twice: while /proc is read, a process may be missed between the end
  // of its parent and its own appearance.
  void Found(const std::vector<ProcessTree>& found) {
    reading = false;
    bool again = false;
    for (const ProcessTree& tree : found) {
      const auto one = followed.find(tree.lease);
      if (one == followed.end()) continue;
      const bool empty = tree.members.empty();
      if (empty && !std::exchange(one->second.seen_empty, true)) {
        again = true;
        continue;
      }
      one->second.seen_empty = empty;
      const bool differs = one->second.tree.members != tree.members;
      one->second.tree = tree;
      if (empty) followed.erase(one);
      if (empty || differs) changed(tree);
    }
    Schedule(again ? base::Duration::zero() : kPeriod);
  }
};

ProcessTreeWatch::ProcessTreeWatch(base::Executor& control, base::Executor& io,
                                   std::string proc_root,
                                   std::function<void(const ProcessTree&)> changed)
    : state_(std::make_shared<State>(control, io, std::move(proc_root), std::move(changed))) {}

ProcessTreeWatch::~ProcessTreeWatch() {
  state_->ended = true;
  state_->control.Cancel(state_->timer);
}

void ProcessTreeWatch::Follow(ProcessTree tree) {
  const std::string lease = tree.lease;
  state_->followed[lease] = {std::move(tree), false};
  state_->Schedule(kPeriod);
}

}  // namespace penstock::node::lease
