#include "node/usage/cgroup_usage_reader.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::node::usage {
namespace {

/// A lease whose group is to be read.
struct Job {
  std::string lease;
  std::string run_group;  // for a run, the path of its group
  std::string pod_uid;
  std::vector<pid_t> pids;
  os::CgroupPlace place;  // empty: not found yet
  os::CgroupUsage usage;  // result of the read
};

/// The folder of a run's group, below the mount that contains the groups of runs.
std::string RunFolder(const os::CgroupMounts& mounts, const std::string& group) {
  const std::string root = mounts.own_root == "/" ? "" : mounts.own_root;
  if (mounts.own.empty() || !group.starts_with(root + "/")) return "";
  const std::string folder = mounts.own + group.substr(root.size());
  return os::Exists(folder) ? folder : "";
}

void FindPlace(Job& job, const os::CgroupMounts& mounts, const std::string& proc) {
  if (!job.run_group.empty()) {
    job.place.unified = RunFolder(mounts, job.run_group);
    return;
  }
  if (job.pod_uid.empty()) return;
  const auto cut = [&](const std::string& path) { return ContainerGroup(path, job.pod_uid); };
  for (const pid_t pid : job.pids) {
    const auto text = os::ReadFile(proc + "/" + std::to_string(pid) + "/cgroup");
    if (text.ok()) job.place = os::FindCgroup(*text, mounts, cut);
    if (!job.place.empty()) return;
  }
}

}  // namespace

std::string ContainerGroup(const std::string& path, const std::string& pod_uid) {
  std::string systemd = pod_uid;
  std::replace(systemd.begin(), systemd.end(), '-', '_');
  const auto parts = base::Split(path, '/');
  std::string group;
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    group += "/" + parts[i];
    if (parts[i].find("pod" + pod_uid) != std::string::npos ||
        parts[i].find("pod" + systemd) != std::string::npos)
      return group + "/" + parts[i + 1];
  }
  return "";
}

struct CgroupUsageReader::State : std::enable_shared_from_this<State> {
  struct Watched {
    Job job;
    base::TimePoint began{};
  };

  State(base::Executor& c, base::Executor& i, std::string p, Reported t)
      : control(c),
        io(i),
        proc_root(std::move(p)),
        reported(std::move(t)),
        mounts(os::ParseCgroupMounts(os::ReadFile("/proc/self/mountinfo").value_or(""))) {}

  void Refresh() {
    const base::TimePoint now = control.clock().Now();
    const bool all = now >= next;
    std::vector<Job> jobs;
    for (const auto& [lease, one] : watched)
      if (all || now - one.began < kYoung) jobs.push_back(one.job);
    if (reading || jobs.empty()) return;
    if (all) next = now + kPace;
    reading = true;
    io.Post([self = shared_from_this(), jobs = std::move(jobs)]() mutable {
      self->Read(jobs);
      self->control.Post([self, jobs = std::move(jobs)] { self->Take(jobs); });
    });
  }

  /// On the I/O executor.
  void Read(std::vector<Job>& jobs) const {
    for (Job& job : jobs) {
      if (job.place.empty()) FindPlace(job, mounts, proc_root);
      if (!job.place.empty()) job.usage = os::ReadCgroupUsage(job.place, proc_root);
    }
  }

  void Take(const std::vector<Job>& jobs) {
    reading = false;
    if (ended) return;
    for (const Job& job : jobs) {
      const auto found = watched.find(job.lease);
      if (found == watched.end() || job.place.empty() || !Owns(job.lease, job.place)) continue;
      found->second.job.place = job.place;
      reported(job.lease, job.usage);
    }
  }

  /// If two leases belong to one container, its usage counts once, for the first of them.
  bool Owns(const std::string& lease, const os::CgroupPlace& place) {
    return owners.try_emplace({place.unified, place.cpu, place.memory}, lease).first->second ==
           lease;
  }

  void ReadLast(Job job) {
    if (!job.run_group.empty() && job.place.empty()) FindPlace(job, mounts, proc_root);
    if (!job.place.empty() && Owns(job.lease, job.place))
      reported(job.lease, os::ReadCgroupUsage(job.place, proc_root));
    std::erase_if(owners, [&](const auto& owner) { return owner.second == job.lease; });
  }

  base::Executor& control;
  base::Executor& io;
  const std::string proc_root;
  const Reported reported;
  const os::CgroupMounts mounts;
  std::map<std::string, Watched> watched;  // by lease
  // Folders of a group → lease.
  std::map<std::tuple<std::string, std::string, std::string>, std::string> owners;
  base::TimePoint next{};
  bool reading = false, ended = false;
};

CgroupUsageReader::CgroupUsageReader(base::Executor& control, base::Executor& io,
                                     std::string proc_root, Reported reported)
    : state_(std::make_shared<State>(control, io, std::move(proc_root), std::move(reported))) {}

CgroupUsageReader::~CgroupUsageReader() { state_->ended = true; }

void CgroupUsageReader::Follow(const ledger::Snapshot& ledger) {
  auto& watched = state_->watched;
  for (auto one = watched.begin(); one != watched.end();) {
    if (ledger.FindLease(one->first) != nullptr) {
      ++one;
      continue;
    }
    state_->ReadLast(one->second.job);
    one = watched.erase(one);
  }
  for (const ledger::Lease& lease : ledger.leases) {
    auto [one, fresh] = watched.try_emplace(lease.id);
    if (fresh)
      one->second = {{.lease = lease.id, .run_group = lease.cgroup}, state_->control.clock().Now()};
    one->second.job.pod_uid = lease.pod_uid;
    one->second.job.pids.clear();
    for (const ledger::Process& process : lease.processes)
      one->second.job.pids.push_back(process.pid);
  }
}

void CgroupUsageReader::Refresh() { state_->Refresh(); }

}  // namespace penstock::node::usage
