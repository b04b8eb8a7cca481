// One round of reading at a time.
#include "node/usage/groups.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/core/strings.h"
#include "node/share/offer.h"
#include "os/core/file.h"

namespace penstock::node::usage {
namespace {

/// A lease whose group is to be read.
struct Job {
  std::string lease;
  bool is_run = false;
  std::string pod_uid;
  std::vector<pid_t> pids;
  os::CgroupPlace place;  // empty: not known yet
  os::CgroupUsage usage;  // what was read
};

std::string LocalFolder(const os::CgroupMounts& mounts, const std::string& local, const std::string& lease) {
  const std::string folder = mounts.own + "/" + local + "/" + lease;
  return !mounts.own.empty() && os::Exists(folder) ? folder : "";
}

void FindPlace(Job& job, const os::CgroupMounts& mounts, const std::string& proc, const std::string& local) {
  if (job.is_run) {
    job.place.unified = LocalFolder(mounts, local, job.lease);
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
    if (parts[i].find("pod" + pod_uid) != std::string::npos || parts[i].find("pod" + systemd) != std::string::npos)
      return group + "/" + parts[i + 1];
  }
  return "";
}

struct Groups::State : std::enable_shared_from_this<State> {
  struct Watched {
    Job job;
    base::TimePoint began{};
  };

  State(base::Executor& c, base::Executor& i, std::string p, std::string l, Told t)
      : control(c),
        io(i),
        proc_root(std::move(p)),
        local(std::move(l)),
        told(std::move(t)),
        mounts(os::ParseCgroupMounts(os::ReadFile("/proc/self/mountinfo").value_or(""))) {}

  void Look() {
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
      if (job.place.empty()) FindPlace(job, mounts, proc_root, local);
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
      told(job.lease, job.usage);
    }
  }

  /// What two leases of one container used is counted once, with the lease that was there first.
  bool Owns(const std::string& lease, const os::CgroupPlace& place) {
    return owners.try_emplace({place.unified, place.cpu, place.memory}, lease).first->second == lease;
  }

  void ReadLast(Job job) {
    if (job.is_run && job.place.empty()) FindPlace(job, mounts, proc_root, local);
    if (!job.place.empty() && Owns(job.lease, job.place)) told(job.lease, os::ReadCgroupUsage(job.place, proc_root));
    std::erase_if(owners, [&](const auto& owner) { return owner.second == job.lease; });
  }

  base::Executor& control;
  base::Executor& io;
  const std::string proc_root, local;
  const Told told;
  const os::CgroupMounts mounts;
  std::map<std::string, Watched> watched;                                           // by lease
  std::map<std::tuple<std::string, std::string, std::string>, std::string> owners;  // of groups, as folders → lease
  base::TimePoint next{};
  bool reading = false, ended = false;
};

Groups::Groups(base::Executor& control, base::Executor& io, std::string proc_root, std::string local, Told told)
    : state_(std::make_shared<State>(control, io, std::move(proc_root), std::move(local), std::move(told))) {}

Groups::~Groups() { state_->ended = true; }

void Groups::Follow(const ledger::Snapshot& ledger) {
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
      one->second = {{.lease = lease.id, .is_run = lease.pod_uid.empty() && lease.door == share::kLocalDoor},
                     state_->control.clock().Now()};
    one->second.job.pod_uid = lease.pod_uid;
    one->second.job.pids.clear();
    for (const ledger::Process& process : lease.processes) one->second.job.pids.push_back(process.pid);
  }
}

void Groups::Look() { state_->Look(); }

}  // namespace penstock::node::usage
