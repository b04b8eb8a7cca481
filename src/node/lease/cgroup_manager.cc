// Runs os::CgroupTree on the control loop and watches for changes of its groups.
#include "node/lease/cgroup_manager.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include <signal.h>
#include <sys/epoll.h>

#include "base/core/hash.h"
#include "base/lifetime.h"
#include "os/cgroup/cgroup_closed.h"

namespace penstock::node::lease {
namespace {

constexpr char kOrdinaryRunDir[] = "/run/penstock";
constexpr char kGroup[] = "penstock";
constexpr std::size_t kSignalledAtOnce = 64;

class Cgroups final : public CgroupManager {
 public:
  Cgroups(os::Loop& loop, os::CgroupTree tree) : loop_(loop), tree_(std::move(tree)) {}
  ~Cgroups() override {
    lifetime_.End();
    for (const auto& [name, events] : watched_) loop_.Unwatch(events.get());
    (void)tree_.RemoveTree();  // refused while processes are left in it: the next agent finds them
  }

  std::vector<std::string> List() override { return tree_.List(); }
  base::Result<std::string> Note(const std::string& name) const override {
    return tree_.Note(name);
  }
  base::Result<std::string> PlaceFor(const std::string& name,
                                     const std::string& above) const override {
    return tree_.PlaceFor(name, above);
  }
  std::string Place(const std::string& name) const override { return tree_.Place(name); }
  base::Status Create(const std::string& name, const std::string& place,
                      const os::DeviceRules& rules, const std::string& note) override;
  base::Status Enter(const std::string& name, pid_t pid) override { return tree_.Enter(name, pid); }
  base::Status MoveTo(const std::string& cgroup, pid_t pid) override {
    return tree_.MoveTo(cgroup, pid);
  }
  std::vector<pid_t> Members(const std::string& name) const override { return tree_.Members(name); }
  base::Status Signal(const std::string& name, int signal) override;
  bool Populated(const std::string& name) const override;
  base::Status Watch(const std::string& name, std::function<void()> changed) override;
  void Unwatch(const std::string& name) override;
  base::Status Remove(const std::string& name) override;
  std::map<std::string, base::Status> CloseDevices(
      const std::vector<std::string>& cgroups,
      const std::vector<os::DeviceRange>& devices) override;

 private:
  base::Status OpenClosed();
  base::Status Admit(const std::string& name);
  void SignalPiece(const std::string& name, const std::shared_ptr<const std::vector<pid_t>>& pids,
                   std::size_t from, int signal);

  os::Loop& loop_;
  os::CgroupTree tree_;
  std::optional<os::ClosedDevices> closed_;  // set when devices are to be closed for the first time
  std::map<std::string, os::UniqueFd> watched_;
  base::Lifetime lifetime_;
};

base::Status Cgroups::Create(const std::string& name, const std::string& place,
                             const os::DeviceRules& rules, const std::string& note) {
  TRY(tree_.Create(name, place, rules, note));
  if (!closed_) return {};
  auto admitted = Admit(name);
  if (!admitted.ok()) (void)Remove(name);
  return admitted;
}

base::Status Cgroups::Admit(const std::string& name) {
  ASSIGN(const std::string folder, tree_.FolderAt(tree_.Place(name)));
  return closed_->Admit(folder);
}

base::Status Cgroups::Remove(const std::string& name) {
  const auto folder = tree_.FolderAt(tree_.Place(name));
  TRY(tree_.Remove(name));
  if (closed_ && folder.ok()) closed_->Forget(*folder);
  return {};
}

/// Opens it and admits the existing groups, whose processes hold devices.
base::Status Cgroups::OpenClosed() {
  ASSIGN(closed_, os::ClosedDevices::Open());
  for (const std::string& name : tree_.List())
    if (auto admitted = Admit(name); !admitted.ok()) {
      closed_.reset();
      return admitted;
    }
  return {};
}

std::map<std::string, base::Status> Cgroups::CloseDevices(
    const std::vector<std::string>& cgroups, const std::vector<os::DeviceRange>& devices) {
  std::map<std::string, base::Status> closed;
  if (cgroups.empty()) {
    closed_.reset();
    return closed;
  }
  const base::Status opened = closed_ ? base::Status() : OpenClosed();
  std::map<std::string, std::string> by_folder;
  std::vector<std::string> folders;
  for (const std::string& cgroup : cgroups) {
    const auto folder = tree_.FolderAt(cgroup);
    closed[cgroup] = !opened.ok()  ? opened
                     : folder.ok() ? base::Status()
                                   : base::Status(folder.error());
    if (folder.ok()) by_folder.emplace(*folder, cgroup);
    if (folder.ok()) folders.push_back(*folder);
  }
  if (!opened.ok()) return closed;
  for (auto& [folder, status] : closed_->Close(folders, devices))
    closed[by_folder.at(folder)] = std::move(status);
  return closed;
}

// A run may have thousands of processes: signals them in batches, between which the loop does other
// work. A process that starts meanwhile gets no signal except SIGKILL.
base::Status Cgroups::Signal(const std::string& name, int signal) {
  if (signal == SIGKILL) return tree_.Kill(name);
  SignalPiece(name, std::make_shared<const std::vector<pid_t>>(Members(name)), 0, signal);
  return {};
}

void Cgroups::SignalPiece(const std::string& name,
                          const std::shared_ptr<const std::vector<pid_t>>& pids, std::size_t from,
                          int signal) {
  const std::size_t end = std::min(from + kSignalledAtOnce, pids->size());
  tree_.Signal(name, std::span(*pids).subspan(from, end - from), signal);
  if (end == pids->size()) return;
  loop_.Post(
      lifetime_.Guard([this, name, pids, end, signal] { SignalPiece(name, pids, end, signal); }));
}

/// Uses the file that is already open: no shortage of file descriptors can make that fail.
bool Cgroups::Populated(const std::string& name) const {
  const auto watched = watched_.find(name);
  return watched == watched_.end() ? tree_.Populated(name)
                                   : os::CgroupTree::ReadEvents(watched->second.get());
}

base::Status Cgroups::Watch(const std::string& name, std::function<void()> changed) {
  ASSIGN(os::UniqueFd events, tree_.OpenEvents(name));
  const int fd = events.get();
  (void)os::CgroupTree::ReadEvents(fd);  // notifications start after the first read
  TRY(loop_.Watch(fd, EPOLLPRI, [fd, changed = std::move(changed)](std::uint32_t) {
    (void)os::CgroupTree::ReadEvents(fd);
    changed();
  }));
  Unwatch(name);
  watched_.emplace(name, std::move(events));
  return {};
}

void Cgroups::Unwatch(const std::string& name) {
  const auto events = watched_.extract(name);
  if (events) loop_.Unwatch(events.mapped().get());
}

}  // namespace

base::Result<std::unique_ptr<CgroupManager>> OpenCgroups(os::Loop& loop,
                                                         const std::string& group_name) {
  ASSIGN(os::CgroupTree tree, os::CgroupTree::Open(group_name));
  return std::unique_ptr<CgroupManager>(std::make_unique<Cgroups>(loop, std::move(tree)));
}

std::string CgroupNameFor(const std::string& run_dir) {
  if (run_dir == kOrdinaryRunDir) return kGroup;
  std::array<char, 17> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), base::Hash(run_dir), 16).ptr;
  return std::string(kGroup) + "-" + std::string(text.data(), end);
}

}  // namespace penstock::node::lease
