// Micro-benchmarks of a turn of drivers (operator/driver/rollout_plan.h).
#include <chrono>
#include <string>

#include <benchmark/benchmark.h>

#include "operator/driver/rollout_plan.h"

namespace penstock::cluster {
namespace {

const base::WallTime kNow = base::NearestTime(1'800'000'000);

RolloutFacts FactsOf(std::size_t nodes) {
  RolloutFacts facts;
  facts.installation = {.namespace_name = "gpu-operator", .image = "penstock:1"};
  facts.claims.emplace();
  api::DriverSpec driver;
  driver.image = {"nvcr.io/nvidia", "driver", "550.54.15", "", {}};
  driver.fallback = true;
  driver.upgrade.automatic = true;
  driver.upgrade.max_parallel = 1;
  facts.drivers = {driver};
  for (std::size_t i = 0; i < nodes; ++i) {
    const std::string name = "node-" + std::to_string(i);
    RolloutNode& node = facts.nodes[name];
    node.node = {name,
                 {{"feature.node.kubernetes.io/pci-10de.present", "true"},
                  {"feature.node.kubernetes.io/system-os_release.ID", "ubuntu"},
                  {"feature.node.kubernetes.io/system-os_release.VERSION_ID", "22.04"},
                  {"nvidia.com/gpu.deploy.driver", "true"},
                  {"nvidia.com/gpu.present", "true"}},
                 "Ubuntu 22.04.4 LTS",
                 "5.15.0-105-generic"};
    node.has_devices = true;
    facts.reports[name] = {};
  }
  return facts;
}

/// Writes what the plan says, and lets each node's pod run that has none.
void Settle(RolloutFacts& facts) {
  for (int turn = 0; turn < 3; ++turn) {
    RolloutPlan plan = PlanRollout(facts, kNow);
    for (const auto& [name, set] : plan.daemon_sets) facts.daemon_sets[name] = set;
    for (const auto& [name, write] : plan.writes) {
      for (const auto& [key, value] : write.labels)
        if (value) facts.nodes[name].node.labels[key] = *value;
      for (const auto& [key, value] : write.annotations)
        if (value) facts.nodes[name].annotations[key] = *value;
      RolloutPod& pod = facts.pods[name];
      if (!pod.node.empty()) continue;
      pod.node = name;
      pod.started = pod.ready_since = kNow;
      const nlohmann::json& set = plan.daemon_sets.begin()->second;
      pod.pod = {.name = "gpu-operator/driver-" + name,
                 .uid = name,
                 .target = TemplateOf(set),
                 .digest = ConfigDigestOf(set),
                 .ready = true};
      facts.reports[name] = {"550.54.15", false, kNow, true, ""};
    }
  }
}

void Plan(benchmark::State& state, RolloutFacts& facts) {
  for (const auto& [name, node] : facts.nodes)
    facts.records[name] = ReadStoredRecord(node.node.labels, node.annotations);
  std::size_t writes = 0;
  for (auto _ : state) writes = PlanRollout(facts, kNow).writes.size();
  state.counters["writes"] = static_cast<double>(writes);
}

void RolloutWithoutDrivers(benchmark::State& state) {
  RolloutFacts facts = FactsOf(static_cast<std::size_t>(state.range(0)));
  facts.drivers.clear();
  Plan(state, facts);
}
BENCHMARK(RolloutWithoutDrivers)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

void RolloutAtRest(benchmark::State& state) {
  RolloutFacts facts = FactsOf(static_cast<std::size_t>(state.range(0)));
  Settle(facts);
  Plan(state, facts);
}
BENCHMARK(RolloutAtRest)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

void RolloutOfANewVersion(benchmark::State& state) {
  RolloutFacts facts = FactsOf(static_cast<std::size_t>(state.range(0)));
  Settle(facts);
  facts.drivers[0].image.version = "570.86.10";
  Settle(facts);
  Plan(state, facts);
}
BENCHMARK(RolloutOfANewVersion)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock::cluster
