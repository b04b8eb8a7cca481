// Lets pods and runs come and go while devices are moved, divided, reset and fail, and while the
// agent is killed at any point of that. Never has a slice of a device two holders, and when all
// holders have gone and all changes have ended, everything can be allocated again.
//
// A failure names its seed: --gtest_random_seed=SEED repeats that one.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/log.h"
#include "os/core/file.h"
#include "tests/capacity/agent.h"
#include "tests/capacity/machine.h"

namespace penstock::capacity {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kSeeds = 24;
constexpr int kSteps = 1000;

/// How often each must have happened, at least: a node that refuses everything proves nothing.
const std::map<std::string, int> kLeast = {
    {"pod with a device", 50},
    {"pod with a share", 50},
    {"pod with a part", 10},
    {"refused pod", 10},
    {"run with a device", 50},
    {"run with a share", 50},
    {"run with a part", 10},
    {"run with a part on demand", 50},
    {"move of a device", 50},
    {"reset of a device", 100},
    {"fault of a device", 100},
    {"part created", 200},
    {"part destroyed", 200},
    {"kill", 300},
    {"kill that a pod outlives", 30},
    {"kill that a run outlives", 50},
    {"killed in move at await release", 10},
    {"killed in divide at await release", 10},
    {"killed in divide at divide", 10},
    {"killed in divide at restore", 1},
    {"killed in parts-on-demand at create", 10},
    {"killed in parts-on-demand at note", 1},
    {"killed in reset at await release", 3},
    {"killed in reset at reset", 3},
};

class Walk {
 public:
  explicit Walk(unsigned seed) : machine_(seed) { agent_.emplace(machine_); }

  const Machine& machine() const { return machine_; }

  void Run() {
    for (int step = 0; step < kSteps && machine_.wrong().empty(); ++step) {
      Step();
      machine_.Check();
    }
    if (machine_.wrong().empty()) Finish();
  }

 private:
  using Operation = void (Walk::*)();

  void Step() {
    static const std::vector<std::pair<int, Operation>> kOperations = {
        {420, &Walk::Turn},       {25, &Walk::WaitLonger}, {130, &Walk::KubeletReads},
        {30, &Walk::PollPods},    {90, &Walk::ChoosePod},  {90, &Walk::AllocatePod},
        {45, &Walk::EndPod},      {70, &Walk::WantRun},    {50, &Walk::EndRun},
        {8, &Walk::CancelRuns},   {24, &Walk::Move},       {14, &Walk::Divide},
        {10, &Walk::BreakDevice}, {16, &Walk::FailDriver}, {24, &Walk::Kill}};
    int sum = 0;
    for (const auto& [weight, operation] : kOperations) sum += weight;
    int picked = machine_.Pick(sum);
    for (const auto& [weight, operation] : kOperations)
      if ((picked -= weight) < 0) return (this->*operation)();
  }

  /// One callback; where there is none, a moment passes and the devices are looked at.
  void Turn() {
    if (agent_->RunOne()) return;
    agent_->Advance(machine_.OneOf<base::Duration>({1ms, 5ms, 20ms, 200ms, 1s}));
    if (agent_->serves() && machine_.Chance(30)) agent_->Look();
  }
  void WaitLonger() {
    agent_->Advance(machine_.OneOf<base::Duration>({2s, 15s, 1min, 11min}));
    if (agent_->serves()) agent_->Look();
  }

  // --- the kubelet

  void KubeletReads() {
    const std::set<std::string> names = agent_->Resources();
    if (names.empty()) return;
    agent_->KubeletReads(machine_.OneOf<std::string>({names.begin(), names.end()}));
  }
  void PollPods() { agent_->PollPods(); }

  void ChoosePod() {
    Kubelet& kubelet = machine_.kubelet;
    if (kubelet.asking || kubelet.lists.empty()) return;
    std::vector<std::string> names;
    for (const auto& [name, slots] : kubelet.lists) names.push_back(name);
    const std::string resource = machine_.OneOf(names);
    std::vector<std::string> free = kubelet.Free(resource);
    const std::size_t count = machine_.Chance(80) ? 1 : 2;
    if (free.size() < count) return;
    Kubelet::Pod pod{"pod-" + std::to_string(++machine_.names), resource, {}};
    while (pod.ids.size() < count) {
      pod.ids.push_back(machine_.OneOf(free));
      std::erase(free, pod.ids.back());
    }
    kubelet.asking = pod;
  }
  void AllocatePod() {
    if (!machine_.kubelet.asking || !agent_->serves()) return;
    const std::string uid = machine_.kubelet.asking->uid;
    agent_->Allocate();
    // Its answer is lost with the agent: the kubelet admits no such pod.
    if (!machine_.Chance(3)) return;
    machine_.kubelet.pods.erase(uid);
    machine_.Ended(uid);
    Kill();
  }
  void EndPod() {
    auto& pods = machine_.kubelet.pods;
    if (pods.empty()) return;
    const auto pod = std::next(pods.begin(), machine_.Pick(static_cast<int>(pods.size())));
    machine_.Note(pod->first + " ends");
    machine_.Ended(pod->first);
    pods.erase(pod);
  }

  // --- local users

  void WantRun() {
    if (agent_->waiting() > 3) return;
    node::allocate::Request request;
    switch (machine_.Pick(5)) {
      case 0: break;
      case 1: request.count = 2; break;
      case 2: request.share = machine_.OneOf<int>({2, 4}); break;
      case 3: request.devices = {std::to_string(machine_.Pick(Machine::kDevices))}; break;
      default: request.profile = machine_.OneOf<std::string>({"1g", "2g", "4g"});
    }
    agent_->Want(request);
  }
  std::vector<std::string> Runs() const {
    std::vector<std::string> names;
    for (const auto& [name, group] : machine_.kernel.groups)
      if (!group.members.empty()) names.push_back(name);
    return names;
  }
  void EndRun() {
    const std::vector<std::string> runs = Runs();
    if (!runs.empty()) End(machine_.OneOf(runs));
  }
  void End(const std::string& run) {
    machine_.Note(run + " ends");
    machine_.Ended(run);
    machine_.kernel.End(run);
  }
  void CancelRuns() { agent_->CancelAll(); }

  // --- changes

  void Move() {
    if (!agent_->serves()) return;
    const std::string device = "G" + std::to_string(machine_.Pick(Machine::kDevices));
    const auto to = machine_.OneOf<std::string>({"kubelet", "local", "none", "default", "default"});
    const auto wait = machine_.OneOf<std::optional<base::Duration>>({std::nullopt, 1s, 5min, 1h});
    machine_.Note("move " + device + " to " + to);
    agent_->Move({.devices = {device}, .allocator = to, .wait = wait});
  }

  void Divide() {
    if (!agent_->serves()) return;
    static const std::vector<std::vector<api::LayoutParts>> kParts = {
        {}, {{"1g", 4}}, {{"1g", 2}, {"2g", 1}}, {{"2g", 2}}, {{"4g", 1}}, {{"1g", 1}}};
    api::Layout layout{.name = "layout-" + std::to_string(++machine_.names), .rules = {}};
    std::string text;
    for (std::size_t i = 0; i < Machine::kDevices; ++i) {
      api::LayoutRule rule{.devices = {static_cast<int>(i)}};
      const bool on_demand = i + 1 == Machine::kDevices;
      rule.partitioned = machine_.Chance(on_demand ? 80 : 50);
      if (rule.partitioned && !on_demand) rule.parts = machine_.OneOf(kParts);
      text += " " + std::to_string(i) + ":" + (rule.partitioned ? "" : "whole");
      for (const auto& parts : rule.parts)
        text += parts.profile + "x" + std::to_string(parts.count) + ",";
      layout.rules.push_back(std::move(rule));
    }
    machine_.Note("divide as " + layout.name + ":" + text);
    agent_->Divide({.layout = layout,
                    .source = "user",
                    .skip_reset = machine_.Chance(10),
                    .wait = machine_.OneOf<std::optional<base::Duration>>(
                        {std::nullopt, 1min, node::change::kStanding, node::change::kStanding})});
  }

  void BreakDevice() {
    if (!agent_->serves()) return;
    const std::string device = "G" + std::to_string(machine_.Pick(Machine::kDevices));
    const bool drain = machine_.Chance(50);
    machine_.Note(device + " has a fault that " + (drain ? "its holders end" : "a reset ends"));
    agent_->Break(device, drain ? device::Severity::kDrain : device::Severity::kReset);
    machine_.Count("fault of a device");
  }

  void FailDriver() {
    auto& device = *machine_.OneOf(machine_.devices());
    const auto call = machine_.OneOf<std::string>(
        {"create", "create", "destroy", "set-mode", "describe", "reset"});
    if (call == "reset")
      machine_.reset_fails = true;
    else if (call != "describe" && machine_.Chance(50))
      device.fails_after[call].push_back(true);  // it takes effect
    else
      device.failing[call] = 1;
    machine_.Note("the driver of " + device.device.id + " fails: " + call);
  }

  // --- kill -9

  /// What was not written to disk by now is lost, and the driver completes what it was asked for,
  /// or does nothing of it.
  void Kill() {
    for (const std::string& change : agent_->UnderWay()) {
      machine_.Note("killed in " + change);
      machine_.Count("killed in " + change);
    }
    machine_.Note("killed");
    machine_.Count("kill");
    if (!machine_.kubelet.pods.empty()) machine_.Count("kill that a pod outlives");
    if (!Runs().empty()) machine_.Count("kill that a run outlives");
    auto groups = machine_.kernel.groups;
    for (auto& [name, group] : groups) group.changed = nullptr;
    std::map<std::string, std::string> files;
    const auto each_file = [this](const auto& act) {
      for (const auto& file : std::filesystem::directory_iterator(machine_.disk.path()))
        act(file.path());
    };
    each_file([&](const auto& path) { files[path] = os::ReadFile(path).value_or(""); });
    agent_.reset();
    each_file([](const auto& path) { std::filesystem::remove(path); });
    for (const auto& [path, text] : files) std::ofstream(path) << text;
    machine_.kernel.groups = std::move(groups);
    machine_.kubelet.Lose();
    machine_.EndCalls();
    machine_.uptime += 50ms;
    if (machine_.Chance(30)) EndPod();
    if (machine_.Chance(30)) EndRun();
    agent_.emplace(machine_);
  }

  // --- the end

  /// What goes on by itself, until nothing does.
  void Settle(const std::string& what, const std::function<bool()>& reached) {
    static constexpr int kRounds = 400;
    for (int round = 0; round < kRounds; ++round) {
      agent_->RunUntilIdle();
      for (const std::string& resource : agent_->Resources()) agent_->KubeletReads(resource);
      agent_->PollPods();
      agent_->Advance(round < 100 ? base::Duration(1s) : base::Duration(11min));
      agent_->Look();
      agent_->RunUntilIdle();
      machine_.Check();
      if (!machine_.wrong().empty() || reached()) return;
    }
    machine_.Wrong(what + ": not reached" + agent_->Describe());
  }

  bool IsWhole(std::size_t index) { return !agent_->UsableOf("G" + std::to_string(index)).empty(); }

  bool IsForPartsOnDemand() {
    const auto& device = *machine_.devices()[3];
    return device.device.modes[0].current == "on" && device.parts.empty();
  }

  void EndHolders() {
    agent_->CancelAll();
    while (!machine_.kubelet.pods.empty()) EndPod();
    for (const std::string& run : Runs()) End(run);
  }

  void Finish() {
    machine_.Note("the end: all holders go");
    EndHolders();
    for (auto* device : machine_.devices()) {
      device->failing.clear();
      device->fails_after.clear();
    }
    machine_.reset_fails = false;
    Settle("the agent serves", [this] { return agent_->serves(); });
    EndHolders();  // a run may have waited for what the others had
    api::Layout layout{.name = "whole", .rules = {{.devices = {0, 1, 2}}, {.devices = {3}}}};
    layout.rules.back().partitioned = true;
    agent_->Divide({.layout = layout, .source = "user", .wait = node::change::kStanding});
    for (std::size_t i = 0; i < Machine::kDevices; ++i)
      agent_->Move({.devices = {"G" + std::to_string(i)}, .allocator = "default", .wait = 1h});
    Settle("all is as at the beginning", [this] {
      return agent_->UnderWay().empty() && agent_->IsHealthy() && IsWhole(0) && IsWhole(1) &&
             IsWhole(2) && IsForPartsOnDemand();
    });
    TakeAll();
    if (machine_.wrong().empty()) ExpectNothingLeft();
  }

  /// The kubelet gives away its devices, and runs take the others.
  void TakeAll() {
    if (!machine_.wrong().empty()) return;
    machine_.Note("all is allocated");
    agent_->Want({.devices = {"2"}});
    agent_->Want({.profile = "4g"});
    Settle("all is allocated", [this] {
      for (const auto& [resource, slots] : std::map(machine_.kubelet.lists))
        for (const std::string& id : machine_.kubelet.Free(resource)) {
          machine_.kubelet.asking =
              Kubelet::Pod{"pod-" + std::to_string(++machine_.names), resource, {id}};
          agent_->Allocate();
        }
      int free = 0;
      for (std::size_t i = 0; i < Machine::kDevices; ++i) free += machine_.model().FreeOf(i);
      return free == 0;
    });
    EndHolders();
  }

  void ExpectNothingLeft() {
    const std::string disk = machine_.disk.path();
    const auto nothing_left = [&] {
      const auto changes = node::change::LoadChanges(disk + "/changes.json");
      const auto parts = node::change::LoadOnDemandParts(disk + "/parts.json", "boot");
      const auto leases = node::ledger::LedgerCheckpointWriter::Load(LedgerFiles(disk), "boot");
      return changes->empty() && parts->empty() && leases->leases.empty() && IsForPartsOnDemand();
    };
    Settle("nothing is left of changes and holders", nothing_left);
  }

  Machine machine_;
  std::optional<Agent> agent_;
};

void RunSeed(unsigned seed, std::map<std::string, int>& effects) {
  Walk walk(seed);
  walk.Run();
  for (const auto& [effect, count] : walk.machine().effects()) effects[effect] += count;
  if (walk.machine().wrong().empty()) return;
  std::string history;
  for (const std::string& line : walk.machine().history()) history += "\n  " + line;
  FAIL() << "seed " << seed << ": " << walk.machine().wrong().front() << history;
}

TEST(Capacity, HasOneHolderAndIsNeverLost) {
  base::StartLog("capacity_test", base::kError);
  std::map<std::string, int> effects;
  if (const auto seed = GTEST_FLAG_GET(random_seed); seed > 0)
    return RunSeed(static_cast<unsigned>(seed), effects);
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    RunSeed(seed, effects);
    if (HasFailure()) return;
  }
  for (const auto& [effect, least] : kLeast) {
    RecordProperty(effect, effects[effect]);
    EXPECT_GE(effects[effect], least) << effect;
  }
}

}  // namespace
}  // namespace penstock::capacity
