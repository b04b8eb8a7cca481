#include "app/agent/client_pause.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <unistd.h>

#include "backend/all.h"
#include "base/core/printable.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "node/usage/cgroup_usage_reader.h"
#include "os/process/open_files.h"
#include "os/process/process.h"

namespace penstock::app {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration kLabelsKnown = 5s, kLabelsWritten = 10s;
// Pods have 30 s to end, and the cluster needs some to notice.
constexpr base::Duration kUsersEnd = 1min;
constexpr base::Duration kPoll = 250ms;
constexpr std::size_t kMostNamed = 4, kLongestName = 64;  // of programs, in messages
constexpr char kProc[] = "/proc";

const device::PartTerms* TermsOf(std::string_view vendor) {
  const device::Dialect* dialect = backend::FindDialect(vendor);
  return dialect == nullptr ? nullptr : dialect->part_terms();
}

bool IsOwn(pid_t pid) {
  while (pid > 1) {
    if (pid == ::getpid()) return true;
    const auto process = os::ReadProcess(kProc, pid);
    if (!process.ok()) return false;
    pid = process->parent;
  }
  return false;
}

/// Whether the process belongs to a holder: of a part that stays, for example.
bool Holds(const node::ledger::Snapshot& ledger, const os::ProcessInfo& process) {
  return std::ranges::any_of(ledger.leases, [&](const node::ledger::Lease& lease) {
    const auto in_pod = [&](const std::string& group) {
      return !node::usage::ContainerGroup(group, lease.pod_uid).empty();
    };
    return std::ranges::any_of(lease.processes,
                               [&](const auto& one) { return one.pid == process.pid; }) ||
           (!lease.cgroup.empty() && process.cgroup.starts_with(lease.cgroup)) ||
           (!lease.pod_uid.empty() && std::ranges::any_of(process.cgroups, in_pod));
  });
}

/// Programs in containers with one of the files open that hold no device. Those of the machine
/// itself run whatever the labels say.
std::vector<std::string> UsersOf(const std::vector<std::string>& files,
                                 const std::vector<std::string>& harmless,
                                 const node::ledger::Snapshot& ledger) {
  std::vector<std::string> users;
  for (const pid_t pid : os::ProcessesWith(kProc, files)) {
    if (os::IsOfTheMachine(kProc, pid) || IsOwn(pid)) continue;
    const auto process = os::ReadProcess(kProc, pid);
    // Sharing servers end with the last client, or with the device's withdrawal.
    if (!process.ok() || Holds(ledger, *process) || backend::IsServer(kProc, *process)) continue;
    const std::string program = base::LeafOf(base::Split(process->command, ' ').front());
    if (std::ranges::find(harmless, program) != harmless.end()) continue;
    if (users.size() == kMostNamed) {
      users.emplace_back("others");
      break;
    }
    users.push_back(base::Printable(program.substr(0, kLongestName)) + " (process " +
                    std::to_string(pid) + ")");
  }
  return users;
}

}  // namespace

std::map<std::string, std::string> PausedLabels() {
  std::map<std::string, std::string> keys;
  for (const device::Dialect* dialect : backend::Dialects())
    if (const device::PartTerms* terms = dialect->part_terms())
      for (const std::string& key : terms->client_labels) keys[key] = terms->paused;
  return keys;
}

ClientPause::ClientPause(Node node, std::function<void()> wake)
    : node_(node), wake_(std::move(wake)) {}

void ClientPause::ForgetEnded() {
  const std::set<std::string> devices = node_.devices();
  std::erase_if(waits_, [&](const auto& wait) { return !devices.contains(wait.first); });
}

std::set<std::string> ClientPause::Keys() const {
  const std::set<std::string> devices = node_.devices();
  std::set<std::string> keys;
  const auto snapshot = node_.inventory.published().Get();
  for (const std::string& id : devices)
    if (const auto* entry = snapshot->Find(id))
      if (const device::PartTerms* terms = TermsOf(entry->facts->vendor))
        keys.insert(terms->client_labels.begin(), terms->client_labels.end());
  return keys;
}

std::string ClientPause::Await(const device::Facts& device) {
  const device::PartTerms* terms = TermsOf(device.vendor);
  if (!writes_ || terms == nullptr || terms->client_labels.empty()) return "";
  const base::TimePoint now = node_.control.clock().Now();
  Wait& wait = waits_.try_emplace(device.id, Wait{.since = now, .users = {}}).first->second;
  const base::Duration passed = now - wait.since;
  if (!labels_) {
    if (passed >= kLabelsKnown) return "";
    WakeSoon();
    return "the labels of the Node are not known yet";
  }
  bool paused = false;
  for (const std::string& key : terms->client_labels) {
    const auto label = labels_->find(key);
    if (label == labels_->end()) continue;
    paused = paused || label->second == terms->paused;
    if (label->second != device::kClientsRun || passed >= kLabelsWritten) continue;
    WakeSoon();
    return "the label " + key + " is being set to " + terms->paused;
  }
  return paused ? AwaitUsers(device, *terms, wait) : "";
}

std::string ClientPause::AwaitUsers(const device::Facts& device, const device::PartTerms& terms,
                                    Wait& wait) {
  if (wait.users && wait.users->empty()) return "";
  const base::Duration passed = node_.control.clock().Now() - wait.since;
  if (passed >= kUsersEnd) {
    if (wait.users)
      base::Log(base::kWarn, "dividing a device that programs in containers have open",
                {{"device", device.id}, {"programs", base::Join(*wait.users, ", ")}});
    return "";
  }
  if (!wait.reading) {
    wait.reading = true;
    Read(device, terms);
  }
  WakeSoon();
  return wait.users ? "in use by " + base::Join(*wait.users, ", ")
                    : "its other users are looked for";
}

void ClientPause::Read(const device::Facts& device, const device::PartTerms& terms) {
  std::vector<std::string> files;
  for (const device::DeviceFile& file : device.files) files.push_back(file.path);
  const auto take = lifetime_.Guard([this, id = device.id](const std::vector<std::string>& users) {
    const auto wait = waits_.find(id);
    if (wait == waits_.end()) return;
    wait->second.users = users;
    node_.control.PostAfter(kPoll, lifetime_.Guard([this, id] {
      if (const auto again = waits_.find(id); again != waits_.end()) again->second.reading = false;
    }));
    wake_();
  });
  node_.io.Post([take, &control = node_.control, files, harmless = terms.harmless_programs,
                 ledger = node_.ledger.Get()] {
    control.Post([take, users = UsersOf(files, harmless, *ledger)]() mutable { take(users); });
  });
}

void ClientPause::WakeSoon() {
  if (std::exchange(waking_, true)) return;
  node_.control.PostAfter(kPoll, lifetime_.Guard([this] {
    waking_ = false;
    wake_();
  }));
}

}  // namespace penstock::app
