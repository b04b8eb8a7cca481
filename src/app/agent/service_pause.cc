// One question to the machine at a time: which services hold a device, or one stop, or one start.
#include "app/agent/service_pause.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "app/agent/service_plan.h"
#include "base/core/strings.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "node/change/pauses.h"
#include "os/core/file.h"
#include "os/kept_file.h"
#include "os/process/open_files.h"
#include "os/process/process.h"
#include "protocol/systemd/services.h"

namespace penstock::app {
namespace {

using namespace std::chrono_literals;
using api::compat::LayoutProgram;
using protocol::systemd::ServiceUnit;

constexpr base::Duration kMostBegin = 5min, kMostUnwritten = 1min;
constexpr base::Duration kFirstStartPause = 10s;
constexpr int kMostStartDoublings = 6;
// A service that runs again after each stop is started by something else.
constexpr int kMostLooks = 4;
constexpr std::size_t kLongestList = 4u << 20;

base::Result<std::vector<std::string>> ReadServices(const std::string& path,
                                                    const LayoutProgram& program) {
  ASSIGN(const std::string text, os::ReadFile(path, kLongestList));
  return program.read_services(text, path);
}

}  // namespace

struct ServicePause::State : std::enable_shared_from_this<State> {
  State(Node a_node, std::vector<std::string> enter, const std::string& state_dir,
        StoppedServices remembered)
      : node(std::move(a_node)),
        services(node.control, std::move(enter)),
        stopped(std::move(remembered)),
        file(node.control, node.io, StoppedServicesPath(state_dir),
             "cannot write which services are stopped; none is stopped without that") {}

  /// Of one device, until Node::devices has it no more.
  struct Wait {
    bool over = false;
    int looks = 0;
    std::string doing = {};
    std::set<std::string> left = {};  // services that hold it and are not stopped
  };

  Wait* Find(const std::string& device) {
    const auto found = waits.find(device);
    return found == waits.end() ? nullptr : &found->second;
  }

  std::string Await(const device::Facts& device, const LayoutProgram& program) {
    if (lists[&program].empty()) return "";
    Wait& wait = waits[device.id];
    if (wait.over) return "";
    if (!busy) Look(device, program, wait);
    return wait.doing.empty() ? "services of the host are being asked about" : wait.doing;
  }

  // --- which services

  void Look(const device::Facts& device, const LayoutProgram& program, Wait& wait) {
    busy = true;
    ++wait.looks;
    facts = {.listed = {}, .holders = {}, .own = node.own_groups, .units = {}, .asked = {}};
    std::vector<std::string> files;
    for (const device::DeviceFile& one : device.files) files.push_back(one.path);
    const auto take = [weak = weak_from_this(), id = device.id](
                          const base::Result<std::vector<std::string>>& listed,
                          std::set<std::string> holders) {
      if (const auto self = weak.lock()) self->TakeList(id, listed, std::move(holders));
    };
    node.io.Post([take, &control = node.control, users = node.users, files, path = lists[&program],
                  &program] {
      const auto listed = ReadServices(path, program);
      auto holders = listed.ok() && !listed->empty() ? users(files) : std::set<std::string>();
      control.Post([take, listed, holders = std::move(holders)] { take(listed, holders); });
    });
  }

  void TakeList(const std::string& id, const base::Result<std::vector<std::string>>& listed,
                std::set<std::string> holders) {
    if (!listed.ok()) return End(id, "no service is stopped: " + listed.error().message());
    if (listed->empty() || holders.empty()) return End(id, "");
    facts.listed = *listed;
    facts.holders = std::move(holders);
    Plan(id);
  }

  void Plan(const std::string& id) {
    Wait* wait = Find(id);
    if (wait == nullptr) return Idle();
    const ServicePlan plan = PlanServices(facts);
    if (!plan.unknown.empty()) return Ask(id, plan.unknown);
    for (const auto& [service, why] : plan.kept)
      if (wait->left.insert(service).second)
        Note(true, "ServicesNotStopped",
             service + " has " + id + " open and is not stopped: " + why);
    to_stop.clear();
    for (const std::string& service : plan.stop)
      if (!wait->left.contains(service)) to_stop.push_back(service);
    if (to_stop.empty()) return End(id, "");
    if (wait->looks > kMostLooks)
      return End(id, base::Join(to_stop, ", ") + " has " + id +
                         " open again after each stop: something starts it");
    for (const std::string& one : plan.stopped)
      if (std::ranges::find(stopped.units, one) == stopped.units.end())
        stopped.units.push_back(one);
    stops_for = id;
    unwritten_since = node.control.clock().Now();
    Keep();
    AwaitFile();
  }

  void Ask(const std::string& id, const std::set<std::string>& names) {
    facts.asked.insert(names.begin(), names.end());
    services.Show({names.begin(), names.end()},
                  [this, id](const base::Result<std::vector<ServiceUnit>>& shown) {
                    if (!shown.ok())
                      return End(id, "no service is stopped: " + shown.error().message());
                    facts.units.insert(facts.units.end(), shown->begin(), shown->end());
                    Plan(id);
                  });
  }

  // --- stopping them

  /// No service is stopped that the next agent would not start.
  void AwaitFile() {
    if (stops_for.empty()) return;
    if (file.IsWritten()) return StopNext(std::exchange(stops_for, ""));
    if (node.control.clock().Now() - unwritten_since >= kMostUnwritten) {
      for (const std::string& service : to_stop) std::erase(stopped.units, service);
      Keep();
      return End(std::exchange(stops_for, ""),
                 "no service is stopped: services.json cannot be written: " + file.problem());
    }
    node.control.PostAfter(kMostUnwritten, base::IfAlive(this, &State::AwaitFile));
  }

  void StopNext(const std::string& id) {
    Wait* wait = Find(id);
    if (wait == nullptr) return Idle();
    if (to_stop.empty()) {
      wait->doing.clear();
      return Idle();  // and it is looked at again
    }
    const std::string service = to_stop.front();
    to_stop.erase(to_stop.begin());
    wait->doing = service + " of the host is being stopped";
    node.wake();
    services.Stop(service, [this, id, service](const base::Status& done) {
      if (done.ok())
        Note(false, "ServiceStopped", service + " was stopped while " + id + " is divided");
      else
        Note(true, "ServicesNotStopped",
             service + " has " + id + " open and could not be stopped: " + done.error().message());
      if (Wait* still = Find(id); still != nullptr && !done.ok()) still->left.insert(service);
      StopNext(id);
    });
  }

  void End(const std::string& id, const std::string& problem) {
    // That of the list is the same for each device.
    if (!problem.empty() && problems.insert(problem).second)
      Note(true, "ServicesNotStopped", problem);
    if (Wait* wait = Find(id)) wait->over = true;
    Idle();
  }

  void Idle() {
    busy = false;
    node.wake();
    Follow();
  }

  // --- starting them again

  void Follow() {
    const std::set<std::string> devices = node.devices();
    std::erase_if(waits, [&](const auto& wait) { return !devices.contains(wait.first); });
    if (devices.empty()) problems.clear();
    if (!begun || busy || !devices.empty()) return;
    const base::TimePoint now = node.control.clock().Now();
    for (auto unit = stopped.units.rbegin(); unit != stopped.units.rend(); ++unit)
      if (failures.Why(*unit, now).empty()) return Start(*unit);
  }

  void Start(const std::string& unit) {
    busy = true;
    services.Start(unit, [this, unit](const base::Status& done) {
      if (done.ok()) {
        Note(false, "ServiceStarted", unit + " was started again");
        return Forget(unit);
      }
      services.Show({unit}, [this, unit, why = done.error().message()](
                                const base::Result<std::vector<ServiceUnit>>& shown) {
        if (shown.ok() && !shown->empty() && !shown->front().exists) return Forget(unit);
        const base::Duration pause = failures.Add(unit, why, node.control.clock().Now());
        Note(true, "ServiceNotStarted",
             unit + " was stopped while a device was divided, and cannot be started again: " + why +
                 "; this is tried again after " + base::FormatDuration(pause));
        node.control.PostAfter(pause, base::IfAlive(this, &State::Follow));
        Idle();
      });
    });
  }

  void Forget(const std::string& unit) {
    failures.Forget(unit);
    std::erase(stopped.units, unit);
    Keep();
    Idle();
  }

  void Keep() { file.Keep(EncodeStoppedServices(stopped)); }

  void Note(bool warning, const std::string& reason, const std::string& message) const {
    base::Log(warning ? base::kWarn : base::kInfo, "services of the host",
              {{"reason", reason}, {"message", message}});
    node.note(warning, reason, message);
  }

  const Node node;
  protocol::systemd::Services services;
  StoppedServices stopped;
  os::KeptFile file;
  std::map<const LayoutProgram*, std::string> lists;  // paths of the files; empty: none
  std::map<std::string, Wait> waits;                  // by device
  std::set<std::string> problems;  // that were reported since a device began to be divided
  bool begun = false;
  bool busy = false;  // the machine is being asked
  ServiceFacts facts;
  std::string stops_for;  // a device, while the file is awaited
  base::TimePoint unwritten_since{};
  std::vector<std::string> to_stop;                                      // in this order
  node::change::Pauses failures{kFirstStartPause, kMostStartDoublings};  // of starts, by unit
};

ServicePause::ServicePause(Node node, std::vector<std::string> enter, const std::string& state_dir,
                           StoppedServices remembered)
    : state_(std::make_shared<State>(std::move(node), std::move(enter), state_dir,
                                     std::move(remembered))) {
  state_->file.OnWrite([state = state_.get()] { state->AwaitFile(); });
  if (state_->stopped.units.empty()) return;
  state_->node.control.PostAfter(kMostBegin, [weak = std::weak_ptr(state_)] {
    const auto state = weak.lock();
    if (!state) return;
    state->begun = true;
    state->Follow();
  });
}

ServicePause::~ServicePause() { state_->file.OnWrite(nullptr); }

void ServicePause::Configure(const api::NodeConfig& config) {
  for (const LayoutProgram* program : api::compat::LayoutPrograms())
    state_->lists[program] = config.*program->services;
}

std::string ServicePause::Await(const device::Facts& device, const LayoutProgram& program) {
  return state_->Await(device, program);
}

void ServicePause::Begin() {
  state_->begun = true;
  state_->Follow();
}

void ServicePause::Follow() { state_->Follow(); }

std::set<std::string> GroupsWith(const std::string& proc, const std::vector<std::string>& files) {
  std::set<std::string> groups;
  for (const pid_t pid : os::ProcessesWith(proc, files)) {
    if (!os::IsOfTheMachine(proc, pid)) continue;
    if (const auto process = os::ReadProcess(proc, pid); process.ok())
      groups.insert(process->cgroups.begin(), process->cgroups.end());
  }
  return groups;
}

}  // namespace penstock::app
