// Measures plans of divisions of devices: from random legal divisions to others, with holders, and
// where the search ends at its limit.
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/calls.h"
#include "node/partition/pack.h"
#include "node/partition/plan.h"
#include "node/partition/testing/profile_tables.h"
#include "node/partition/testing/reference_model.h"

namespace {

using namespace penstock;
using namespace penstock::node::partition;
using bench::Calls;

constexpr std::size_t kDevices = 8;

/// The legal divisions of an A100.
const std::vector<testing::LegalDivision>& Legal() {
  static const auto kLegal = testing::Enumeration(testing::SevenSlices(5, 10, 20, 40), false).all;
  return kLegal;
}

/// Those into one GPU instance with compute instances.
const std::vector<testing::LegalDivision>& LegalWithin() {
  static const auto kLegal = [] {
    auto profiles = testing::AnywhereWithin(testing::SevenSlices(5, 10, 20, 40));
    std::erase_if(profiles, [](const device::PartProfile& one) {
      return one.name != "7g.40gb" && one.within != "7g.40gb";
    });
    return testing::Enumeration(profiles, true).all;
  }();
  return kLegal;
}

Division DividedAs(const testing::LegalDivision& legal) {
  return {.device = "GPU-0", .profiles = testing::SevenSlices(5, 10, 20, 40), .parts = legal.parts};
}

DesiredDivision AsIn(const testing::LegalDivision& legal) {
  DesiredDivision desired;
  for (const auto& [profile, count] : legal.counts) desired.parts.push_back({profile, count});
  return desired;
}

/// Plans eight devices per call.
void PlanOfDevices(benchmark::State& state, const std::vector<testing::LegalDivision>& legal) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> any(0, legal.size() - 1);
  std::bernoulli_distribution held(0.2);
  std::vector<std::pair<Division, DesiredDivision>> devices(1000 * kDevices);
  for (auto& [now, desired] : devices) {
    now = DividedAs(legal[any(random)]);
    now.profiles = testing::AnywhereWithin(now.profiles);
    for (ExistingPart& part : now.parts)
      if (!part.outer && held(random)) part.holder = "pod ml/a";
    desired = AsIn(legal[any(random)]);
  }
  std::size_t next = 0;
  Calls calls(state);
  for (auto _ : state) {
    calls.Time([&] {
      for (std::size_t i = 0; i < kDevices; ++i) {
        const auto& [now, desired] = devices[next++ % devices.size()];
        benchmark::DoNotOptimize(MakePlan(now, desired, {}));
      }
    });
  }
}
void PlanOfInstances(benchmark::State& state) { PlanOfDevices(state, Legal()); }
BENCHMARK(PlanOfInstances)->Name("PlanOf8Gpus")->Unit(benchmark::kMicrosecond);
void PlanOfComputeInstances(benchmark::State& state) { PlanOfDevices(state, LegalWithin()); }
BENCHMARK(PlanOfComputeInstances)
    ->Name("PlanOf8GpusWithComputeInstances")
    ->Unit(benchmark::kMicrosecond);

/// No device that exists has so many placements; no search ends before its limit.
void PlanAtTheLimit(benchmark::State& state) {
  std::vector<int> starts;
  for (int i = 0; i < 63; ++i) starts.push_back(i);
  Division now{.device = "d",
               .profiles = {testing::Profile("a", 1, 0, testing::At(starts, 2)),
                            testing::Profile("b", 1, 0, testing::At(starts, 1)),
                            testing::Profile("all", 64, 1, {{0, 64}})}};
  int held = 0;
  for (int slice = 3; slice < 63 && state.range(0) == 0; slice += 4, ++held)
    now.parts.push_back({.id = std::to_string(slice),
                         .profile = "b",
                         .placement = device::Placement{slice, 1},
                         .holder = "run 1"});
  const DesiredDivision desired{.parts = {{"a", held > 0 ? 18 : 16}, {"b", held > 0 ? held : 16}}};
  Calls calls(state);
  for (auto _ : state)
    calls.Time([&] {
      for (std::size_t i = 0; i < kDevices; ++i)
        benchmark::DoNotOptimize(MakePlan(now, desired, {}));
    });
}
BENCHMARK(PlanAtTheLimit)
    ->Name("PlanOf8DevicesAtTheLimit")
    ->ArgName("found")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMicrosecond);

/// Places one part on one of eight devices.
void PackAPart(benchmark::State& state) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> any(0, Legal().size() - 1);
  std::vector<Division> machine;
  std::vector<const Division*> devices;
  for (std::size_t i = 0; i < kDevices; ++i) machine.push_back(DividedAs(Legal()[any(random)]));
  for (const Division& device : machine) devices.push_back(&device);
  for (auto _ : state) benchmark::DoNotOptimize(Pack(devices, "1g.5gb"));
}
BENCHMARK(PackAPart)->Name("PackOn8Gpus")->Unit(benchmark::kMicrosecond);

}  // namespace
