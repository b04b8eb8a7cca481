// Measures functions on latency-critical paths: the choice of linked devices, offers, health, the
// strict reader. Uses no process and no socket.
#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "api/config/node_config.h"
#include "backend/nvidia/dialect/dialect.h"
#include "base/core/document.h"
#include "base/testing/manual_executor.h"
#include "base/yaml.h"
#include "bench/calls.h"
#include "node/allocate/allocate.h"
#include "node/health/monitor.h"
#include "node/inventory/inventory.h"
#include "node/share/assignment.h"
#include "node/share/offer.h"

namespace {

using namespace penstock;
using bench::Calls;

/// Returns one of `count` devices in two groups; each has lanes to the devices of its group, and
/// more to its neighbour.
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
  machine.vendors = {
      {.vendor = "nvidia", .driver = std::make_shared<const device::Driver>(driver)}};
  device::Reading reading;
  for (int i = 0; i < count; ++i)
    machine.devices.push_back({.facts = std::make_shared<const device::Facts>(Describe(i, count)),
                               .health = {.state = device::HealthState::kHealthy},
                               .reading = std::make_shared<const device::Reading>(reading),
                               .read_at = base::WallTime(std::chrono::seconds(1700000000))});
  return machine;
}

/// Returns devices with the links of a real machine.
using Joined = device::Link (*)(int from, int to, int count);

/// DGX-2: six links into NVSwitches, four GPUs behind one tree of PCIe switches, two sockets.
device::Link Dgx2(int from, int to, int) {
  const auto nearness = from / 4 == to / 4   ? device::Nearness::kPciSwitches
                        : from / 8 == to / 8 ? device::Nearness::kNode
                                             : device::Nearness::kSystem;
  return {"", nearness, 6};
}

/// DGX H100: 18 links into NVSwitches, two sockets.
device::Link DgxH100(int from, int to, int) {
  return {"", from / 4 == to / 4 ? device::Nearness::kNode : device::Nearness::kSystem, 18};
}

/// Random links, so that the search can skip nothing.
device::Link Tangle(int from, int to, int count) {
  std::mt19937 random(static_cast<unsigned>(std::min(from, to) * count + std::max(from, to)));
  const auto lanes = static_cast<int>(random() % 7);
  return {"", static_cast<device::Nearness>(1 + random() % 6), lanes};
}

node::inventory::Snapshot Machine(int count, Joined joined) {
  node::inventory::Snapshot machine = Machine(count);
  for (auto& entry : machine.devices) {
    device::Facts facts = *entry.facts;
    facts.links.clear();
    for (const auto& peer : machine.devices) {
      if (peer.facts->index == facts.index) continue;
      facts.links.push_back(joined(facts.index, peer.facts->index, count));
      facts.links.back().peer = peer.facts->id;
    }
    entry.facts = std::make_shared<const device::Facts>(std::move(facts));
  }
  return machine;
}

/// Returns the offer that the kubelet received: every device, or `shares` of each.
node::share::Offer OfferOf(const node::inventory::Snapshot& machine, int shares) {
  node::share::Offer offer{.resource = "nvidia.com/gpu", .allocator = "kubelet"};
  for (const auto& entry : machine.devices)
    for (int share = 0; share < shares; ++share) {
      const std::string& device = entry.facts->id;
      const bool whole = shares == 1;
      const device::Shape shape{whole ? device::Sharing::kNone : device::Sharing::kTimeSlicing,
                                shares};
      offer.slots.push_back(
          {{node::share::SlotId(device, shape, share), device, offer.resource, shape}, true, ""});
    }
  return offer;
}

/// Measures GetPreferredAllocation as the adapter answers it, links included. `size` 0: every size
/// in turn.
void PreferredAllocation(benchmark::State& state, Joined joined, int count, int shares, int size) {
  const auto machine = Machine(count, joined);
  const auto offer = OfferOf(machine, shares);
  std::vector<std::string> available;
  // Every other share is taken, so that the choice has to search the list.
  for (std::size_t i = 0; i < offer.slots.size(); ++i)
    if (shares == 1 || i % 2 == 0) available.push_back(offer.slots[i].slot.id);
  Calls calls(state);
  int turn = 0;
  for (auto _ : state) {
    const auto wanted = static_cast<std::size_t>(size > 0 ? size : 1 + turn++ % count);
    std::vector<std::string> chosen;
    calls.Time([&] {
      chosen = node::allocate::Prefer({available, {}, wanted}, offer,
                                      api::SharePolicy::kDistributed, machine, {});
    });
    if (chosen.size() != wanted) state.SkipWithError("nothing was preferred");
    benchmark::DoNotOptimize(chosen.data());
  }
}
BENCHMARK_CAPTURE(PreferredAllocation, 8_of_16_DGX_2, Dgx2, 16, 1, 8);
BENCHMARK_CAPTURE(PreferredAllocation, 4_of_8_DGX_H100, DgxH100, 8, 1, 4);
BENCHMARK_CAPTURE(PreferredAllocation, 8_of_16_tangled, Tangle, 16, 1, 8);
BENCHMARK_CAPTURE(PreferredAllocation, every_size_of_16_DGX_2, Dgx2, 16, 1, 0);
BENCHMARK_CAPTURE(PreferredAllocation, every_size_of_16_tangled, Tangle, 16, 1, 0);
BENCHMARK_CAPTURE(PreferredAllocation, 1_of_5000_shares, Dgx2, 16, 313, 1);
BENCHMARK_CAPTURE(PreferredAllocation, 8_of_5000_shares, Dgx2, 16, 313, 8);

/// The links of one of 64 parts, eight of each device, as AMD's backend describes them: to all
/// others, through xGMI, of devices on two NUMA nodes.
std::vector<device::Link> LinksOfPart(int part) {
  std::vector<device::Link> links;
  for (int peer = 0; peer < 64; ++peer) {
    if (peer == part) continue;
    const bool same = peer / 8 == part / 8, near = peer / 32 == part / 32;
    links.push_back({"MIG-" + std::to_string(peer),
                     same   ? device::Nearness::kBoard
                     : near ? device::Nearness::kNode
                            : device::Nearness::kSystem,
                     1,
                     same   ? 70
                     : near ? 60
                            : 50});
  }
  return links;
}

/// Measures the same for parts: eight devices with eight parts each, of which every third is held,
/// or none. `linked`: the parts are linked with each other.
void PreferredParts(benchmark::State& state, int size, bool held, bool linked) {
  auto machine = Machine(8, DgxH100);
  node::share::Offer offer{.resource = "nvidia.com/mig-1g.5gb", .allocator = "kubelet"};
  node::ledger::Snapshot ledger;
  std::vector<std::string> available;
  for (int i = 0; i < 64; ++i) {
    device::Facts part = *machine.devices[static_cast<std::size_t>(i / 8)].facts;
    const std::string whole = std::exchange(part.id, "MIG-" + std::to_string(i));
    part.parent = whole;
    part.links = linked ? LinksOfPart(i) : std::vector<device::Link>();
    node::ledger::Slot slot{.id = part.id,
                            .device = part.id,
                            .ancestors = {{whole, {base::Mebibytes(40960), 108}}},
                            .capacity = {base::Mebibytes(4864), 13}};
    if (held && i % 3 == 0)
      ledger.leases.push_back({.id = part.id, .slots = {slot}});
    else
      available.push_back(part.id);
    offer.slots.push_back({std::move(slot), true, ""});
    machine.devices.push_back({.facts = std::make_shared<const device::Facts>(std::move(part)),
                               .health = {.state = device::HealthState::kHealthy}});
  }
  Calls calls(state);
  int turn = 0;
  for (auto _ : state) {
    const std::size_t wanted =
        size > 0 ? static_cast<std::size_t>(size) : 1 + turn++ % available.size();
    std::vector<std::string> chosen;
    calls.Time([&] {
      chosen = node::allocate::Prefer({available, {}, wanted}, offer,
                                      api::SharePolicy::kDistributed, machine, ledger);
    });
    if (chosen.size() != wanted) state.SkipWithError("nothing was preferred");
    benchmark::DoNotOptimize(chosen.data());
  }
}
BENCHMARK_CAPTURE(PreferredParts, 1_of_64, 1, true, false);
BENCHMARK_CAPTURE(PreferredParts, every_size_of_64, 0, true, false);
BENCHMARK_CAPTURE(PreferredParts, every_size_of_64_linked, 0, false, true);
BENCHMARK_CAPTURE(PreferredParts, every_size_of_42_of_64_linked, 0, true, true);

/// Measures the new offers when one device of sixteen, each with 313 shares, fails or recovers.
void OffersAfterAChangeOfHealth(benchmark::State& state) {
  auto machine = Machine(16);
  node::share::Assignments assignments;
  for (const auto& entry : machine.devices)
    assignments[entry.facts->id] = {.allocator = "kubelet",
                                    .resource = "nvidia.com/gpu",
                                    .shape = {device::Sharing::kTimeSlicing, 313}};
  node::share::OfferBook book;
  book.Update(assignments, machine, {}, {});
  for (bool well = false; auto _ : state) {
    machine.devices[3].health.state =
        well ? device::HealthState::kHealthy : device::HealthState::kUnhealthy;
    well = !well;
    if (!book.Update(assignments, machine, {}, {})) state.SkipWithError("nothing changed");
  }
}
BENCHMARK(OffersAfterAChangeOfHealth);

/// Measures one error in a storm of XIDs, of a single kind or each of another kind.
void HealthInAStorm(benchmark::State& state) {
  base::ManualExecutor executor;
  node::inventory::Inventory inventory;
  const device::Facts facts = Describe(0, 1);
  inventory.SetFacts("nvidia", {facts}, "", executor.clock().Wall());
  node::health::Monitor monitor(
      executor, inventory, [](std::string_view) { return &backend::nvidia::TheDialect(); }, {});
  device::Evidence event{
      .source = device::EvidenceSource::kEvent, .device = facts.id, .kind = "xid"};
  for (int i = 0; auto _ : state) {
    event.code = state.range(0) == 0 ? 48 : 1'000 + i++ % 10'000;
    benchmark::DoNotOptimize(monitor.OnEvidence(event));
  }
  state.SetLabel(state.range(0) == 0 ? "of one kind" : "of ten thousand kinds");
}
BENCHMARK(HealthInAStorm)->Arg(0)->Arg(1);

/// Measures reading a NodeConfig with every key, as at the agent's start and at each `penstock
/// run`.
void StrictReader(benchmark::State& state) {
  const std::string text = api::ToYaml({});
  for (auto _ : state)
    if (!api::ParseNodeConfig(text, "node.yaml").ok())
      state.SkipWithError("the document was refused");
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(StrictReader);

/// Measures a long document, to find the cost per kilobyte.
void StrictReaderOfALongDocument(benchmark::State& state) {
  std::string text = "{\"items\": [";
  for (int i = 0; i < 1000; ++i)
    text += (i > 0 ? "," : "") +
            std::string(R"({"name": "device", "count": 12, "ids": ["a", "b"], "on": true})");
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
