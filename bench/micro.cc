// Pure functions that lie on a short path: the metrics page, the choice of linked devices, the strict reader. No process, no socket.
#include <string>

#include <benchmark/benchmark.h>

#include "api/node_config.h"
#include "base/document.h"
#include "node/allocate/allocate.h"
#include "node/metrics/metrics.h"

namespace {

using namespace penstock;

/// One of `count` devices in two groups; each has lanes to the devices of its group, more to its neighbour.
device::Facts Describe(int index, int count) {
  device::Facts facts;
  facts.id = "GPU-00000000-0000-0000-0000-0000000000" + std::to_string(10 + index);
  facts.vendor = "nvidia";
  facts.model = "NVIDIA A100-SXM4-40GB";
  facts.index = index;
  facts.address = std::to_string(index);
  facts.pci = device::PciAddress{.bus = static_cast<std::uint32_t>(7 + index)};
  facts.numa_node = index * 2 / count;
  facts.memory = base::Mebibytes(40960);
  facts.architecture = "ampere";
  for (int peer = 0; peer < count; ++peer) {
    if (peer == index) continue;
    const bool near = peer * 2 / count == index * 2 / count;
    facts.links.push_back({"GPU-00000000-0000-0000-0000-0000000000" + std::to_string(10 + peer),
                           near ? device::Nearness::kNode : device::Nearness::kSystem,
                           !near                   ? 0
                           : peer / 2 == index / 2 ? 4
                                                   : 2});
  }
  return facts;
}

node::inventory::Snapshot Machine(int count) {
  node::inventory::Snapshot machine;
  device::Driver driver{.vendor = "nvidia", .version = "550.54.15"};
  machine.vendors = {{.vendor = "nvidia", .driver = std::make_shared<const device::Driver>(driver)}};
  device::Reading reading;
  reading.memory_used = base::Mebibytes(12345);
  reading.utilization = 37;
  reading.temperature = 30.5;
  reading.power = 61.234;
  for (int i = 0; i < count; ++i)
    machine.devices.push_back({.facts = std::make_shared<const device::Facts>(Describe(i, count)),
                               .health = {.state = device::HealthState::kHealthy},
                               .reading = std::make_shared<const device::Reading>(reading),
                               .read_at = base::WallTime(std::chrono::seconds(1700000000))});
  return machine;
}

node::ledger::Snapshot AllHeld(const node::inventory::Snapshot& machine) {
  node::ledger::Snapshot ledger;
  for (const auto& entry : machine.devices) {
    node::ledger::Lease lease{.id = "k-" + entry.facts->id,
                              .door = "kubelet",
                              .slots = {{entry.facts->id, entry.facts->id}},
                              .state = node::ledger::LeaseState::kHeld};
    lease.pod = "train-" + entry.facts->address;
    lease.namespace_name = "ml";
    lease.container = "main";
    ledger.leases.push_back(lease);
  }
  return ledger;
}

std::int64_t CountSeries(const std::string& page) {
  std::int64_t series = 0;
  for (std::size_t at = 0; at < page.size(); at = page.find('\n', at) + 1) series += page[at] != '#' ? 1 : 0;
  return series;
}

/// As many devices as make the series asked for.
void MetricsPage(benchmark::State& state) {
  int devices = 8;
  while (CountSeries(node::metrics::Render(Machine(devices), AllHeld(Machine(devices)), {})) < state.range(0)) ++devices;
  const auto machine = Machine(devices);
  const auto ledger = AllHeld(machine);
  std::string page;
  for (auto _ : state) benchmark::DoNotOptimize(page = node::metrics::Render(machine, ledger, {}));
  state.counters["series"] = static_cast<double>(CountSeries(page));
}
BENCHMARK(MetricsPage)->Arg(100)->Arg(2240);

/// `range(1)` of `range(0)` devices, all available.
void PreferredAllocation(benchmark::State& state) {
  const auto machine = Machine(static_cast<int>(state.range(0)));
  std::vector<std::string> available;
  for (const auto& entry : machine.devices) available.push_back(entry.facts->id);
  node::share::Offer offer{.resource = "nvidia.com/gpu", .door = "kubelet"};
  for (const std::string& id : available) offer.slots.push_back({{id, id}, true, "", {}});
  for (auto _ : state) {
    const auto chosen =
        node::allocate::Prefer({available, {}, static_cast<std::size_t>(state.range(1))}, offer, api::SharePolicy::kDistributed, machine);
    if (chosen.size() != static_cast<std::size_t>(state.range(1))) state.SkipWithError("nothing was preferred");
    benchmark::DoNotOptimize(chosen.data());
  }
}
BENCHMARK(PreferredAllocation)->Args({8, 2})->Args({8, 4})->Args({16, 2})->Args({16, 8})->Args({16, 15});

/// A NodeConfig with every key, as at the agent's start and at each `penstock run`.
void StrictReader(benchmark::State& state) {
  const std::string text = api::ToYaml({});
  for (auto _ : state)
    if (!api::ParseNodeConfig(text, "node.yaml").ok()) state.SkipWithError("the document was refused");
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(StrictReader);

/// A long document, to see what a kilobyte costs.
void StrictReaderOfALongDocument(benchmark::State& state) {
  std::string text = "{\"items\": [";
  for (int i = 0; i < 1000; ++i)
    text += (i > 0 ? "," : "") + std::string(R"({"name": "device", "count": 12, "ids": ["a", "b"], "on": true})");
  text += "]}";
  for (auto _ : state)
    if (!(state.range(0) == 0 ? base::ParseJson(text, "a") : base::ParseYaml(text, "a")).ok())
      state.SkipWithError("the document was refused");
  state.SetLabel(state.range(0) == 0 ? "as JSON" : "as YAML");
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(StrictReaderOfALongDocument)->Arg(0)->Arg(1);

}  // namespace

BENCHMARK_MAIN();
