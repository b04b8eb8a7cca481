// Measures the metrics page: with many series, with many holders and their processes, and as it is
// served while nothing changes; and Debian's client library with the same series.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#ifdef PENSTOCK_PROMETHEUS_CPP
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#endif

#include "backend/nvidia/dialect/dialect.h"
#include "base/core/strings.h"
#include "base/testing/manual_executor.h"
#include "node/metrics/metrics.h"
#include "node/metrics/page_cache.h"

namespace penstock::backend::amd {

const device::Dialect& TheDialect();

}  // namespace penstock::backend::amd

namespace {

std::atomic<std::uint64_t> allocations = 0;

}  // namespace

// Counts allocations, to show a page that allocates for each of its series.
[[gnu::noinline]] void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace penstock;
using namespace std::chrono_literals;
using node::metrics::PageFormat;

constexpr base::WallTime kNow{1700000000s};
constexpr auto kDetail = node::metrics::Detail::kProcesses;  // the larger page

const device::Dialect* FindNvidia(std::string_view) { return &backend::nvidia::TheDialect(); }

std::string IdOf(int index) {
  return "GPU-00000000-0000-0000-0000-0000000000" + std::to_string(10 + index);
}

/// Returns a sample with a value of each quantity that a current GPU has, links included.
std::shared_ptr<const node::sample::DeviceSample> SampleOf(int index) {
  node::sample::DeviceSample sample{
      .device = IdOf(index), .vendor = "nvidia", .at = kNow, .collections = 1, .took = 3ms};
  const auto quantities = FindNvidia("")->Quantities();
  for (std::size_t i = 0; i < quantities.size(); ++i)
    if (!quantities[i].per_link)
      sample.values.push_back(
          {{static_cast<device::QuantityId>(i), -1, std::uint64_t{37 + i}}, kNow});
  return std::make_shared<const node::sample::DeviceSample>(std::move(sample));
}

/// Returns a node with this many GPUs and this many holders of each; with one holder, it holds the
/// whole GPU.
node::metrics::Snapshots Node(int gpus, int holders) {
  node::inventory::Snapshot inventory{.facts_generation = 1};
  node::ledger::Snapshot ledger{.generation = 1};
  node::sample::Snapshot samples{.interval = 10s};
  node::usage::Snapshot usage;
  device::Driver driver{.vendor = "nvidia", .version = "550.54.15"};
  inventory.vendors = {
      {.vendor = "nvidia", .driver = std::make_shared<const device::Driver>(driver)}};
  for (int i = 0; i < gpus; ++i) {
    device::Facts facts{
        .id = IdOf(i), .vendor = "nvidia", .model = "NVIDIA H100 80GB HBM3", .index = i};
    facts.pci = device::PciAddress{.bus = static_cast<std::uint32_t>(7 + i)};
    facts.memory = base::Mebibytes(81559);
    inventory.devices.push_back({.facts = std::make_shared<const device::Facts>(facts),
                                 .health = {.state = device::HealthState::kHealthy}});
    samples.devices[facts.id] = SampleOf(i);
    for (int k = 0; k < holders; ++k) {
      const std::string slot = holders == 1 ? facts.id : facts.id + "::" + std::to_string(k);
      const int number = 1000 + i * holders + k;
      node::ledger::Lease lease{.id = "k-" + std::to_string(number),
                                .allocator = "kubelet",
                                .slots = {{slot, facts.id, "nvidia.com/gpu"}},
                                .state = node::ledger::LeaseState::kHeld};
      lease.pod = "train-" + std::to_string(number);
      lease.namespace_name = "ml";
      lease.container = "main";
      lease.labels = {{"app.kubernetes.io/name", "train"}, {"team", "vision"}};
      ledger.leases.push_back(lease);
      node::usage::HolderUsage holder{.holder = std::make_shared<const node::ledger::Lease>(lease),
                                      .device = facts.id,
                                      .slot = slot};
      holder.processes = {{.pid = 20000 + number,
                           .user = "root",
                           .command = "python3",
                           .memory = base::Mebibytes(700),
                           .compute = 0.1}};
      holder.memory_used = base::Mebibytes(700);
      holder.utilization = 0.123;
      holder.busy_seconds = 1234.567;
      holder.cpu_seconds = 12.5;
      usage.holders.push_back(std::make_shared<const node::usage::HolderUsage>(holder));
    }
  }
  return {.inventory = std::make_shared<const node::inventory::Snapshot>(inventory),
          .ledger = std::make_shared<const node::ledger::Snapshot>(ledger),
          .samples = std::make_shared<const node::sample::Snapshot>(samples),
          .usage = std::make_shared<const node::usage::Snapshot>(usage)};
}

std::int64_t CountSeries(const std::string& page) {
  std::int64_t series = 0;
  for (std::size_t at = 0; at < page.size(); at = page.find('\n', at) + 1)
    series += page[at] != '#' ? 1 : 0;
  return series;
}

const node::metrics::PageInputs& Plain() {
  static const node::metrics::PageInputs figures{.version = "0.1.0", .now = kNow};
  return figures;
}

std::string Make(node::metrics::MetricsRenderer& renderer, const node::metrics::Snapshots& node,
                 PageFormat format = PageFormat::kText) {
  return renderer.Make(node, Plain(), format, kDetail);
}

/// Returns a node with as many GPUs as give the requested number of series, each GPU with one
/// holder.
node::metrics::Snapshots NodeOf(std::int64_t series, node::metrics::MetricsRenderer& renderer) {
  int gpus = 1;
  while (CountSeries(Make(renderer, Node(gpus, 1))) < series) ++gpus;
  return Node(gpus, 1);
}

void ReportOf(benchmark::State& state, const std::string& page, std::uint64_t allocated) {
  state.counters["series"] = static_cast<double>(CountSeries(page));
  state.counters["bytes"] = static_cast<double>(page.size());
  state.counters["allocations"] =
      static_cast<double>(allocated) / static_cast<double>(state.iterations());
}

/// New samples each time; the labels stay.
void MetricsPage(benchmark::State& state, PageFormat format) {
  node::metrics::MetricsRenderer renderer(FindNvidia);
  renderer.Configure({}, "node-1");
  const auto node = NodeOf(state.range(0), renderer);
  std::string page = Make(renderer, node, format);
  const std::uint64_t before = allocations;
  for (auto _ : state) benchmark::DoNotOptimize(page = Make(renderer, node, format));
  ReportOf(state, page, allocations - before);
}
BENCHMARK_CAPTURE(MetricsPage, text, PageFormat::kText)->Name("MetricsPage")->Arg(100)->Arg(2240);
BENCHMARK_CAPTURE(MetricsPage, openmetrics, PageFormat::kOpenMetrics)
    ->Name("MetricsPageAsOpenMetrics")
    ->Arg(2240);

/// 8 GPUs with 25 holders each, one process per holder.
void MetricsPageOfHolders(benchmark::State& state) {
  node::metrics::MetricsRenderer renderer(FindNvidia);
  renderer.Configure({}, "node-1");
  const auto node = Node(8, static_cast<int>(state.range(0)) / 8);
  std::string page = Make(renderer, node);
  const std::uint64_t before = allocations;
  for (auto _ : state) benchmark::DoNotOptimize(page = Make(renderer, node));
  ReportOf(state, page, allocations - before);
}
BENCHMARK(MetricsPageOfHolders)->Arg(200);

/// The same with a holder that comes or goes each time, so that all labels are rebuilt.
void MetricsPageAfterAChange(benchmark::State& state) {
  node::metrics::MetricsRenderer renderer(FindNvidia);
  renderer.Configure({}, "node-1");
  auto node = NodeOf(state.range(0), renderer);
  node::ledger::Snapshot ledger = *node.ledger;
  std::string page;
  const std::uint64_t before = allocations;
  for (auto _ : state) {
    ++ledger.generation;
    node.ledger = std::make_shared<const node::ledger::Snapshot>(ledger);
    benchmark::DoNotOptimize(page = Make(renderer, node));
  }
  ReportOf(state, page, allocations - before);
}
BENCHMARK(MetricsPageAfterAChange)->Arg(2240);

/// The cost of a scrape while nothing has changed.
void MetricsPageKept(benchmark::State& state) {
  node::metrics::MetricsRenderer renderer(FindNvidia);
  renderer.Configure({}, "node-1");
  const auto node = NodeOf(state.range(0), renderer);
  base::ManualExecutor control;
  node::metrics::PageCache pages(
      control, [&](PageFormat format, auto) { return Make(renderer, node, format); });
  std::uint64_t before = (pages.Get(PageFormat::kText, kDetail), allocations.load());
  for (auto _ : state) benchmark::DoNotOptimize(pages.Get(PageFormat::kText, kDetail));
  ReportOf(state, *pages.Get(PageFormat::kText, kDetail).text, allocations - before);
}
BENCHMARK(MetricsPageKept)->Arg(2240);

/// 8 GPUs of AMD in the mode CPX: of each the first partition shows what is measured of the GPU,
/// and each partition its own chiplet and engines.
node::metrics::Snapshots DividedNode(int partitions) {
  constexpr int kParts = 8;
  const auto quantities = backend::amd::TheDialect().Quantities();
  node::inventory::Snapshot inventory{.facts_generation = 1};
  node::sample::Snapshot samples{.interval = 10s};
  const auto add = [&](device::Facts facts, bool part) {
    node::sample::DeviceSample sample{
        .device = facts.id, .vendor = "amd", .at = kNow, .collections = 1, .took = 3ms};
    for (std::size_t i = 0; i < quantities.size(); ++i) {
      const bool own = quantities[i].key.starts_with("busy.");
      if (part != own) continue;
      for (int link = quantities[i].per_link ? 0 : -1; link < (quantities[i].per_link ? 8 : 0);
           ++link)
        sample.values.push_back(
            {{static_cast<device::QuantityId>(i), link, std::uint64_t{37 + i}}, kNow});
    }
    samples.devices[facts.id] =
        std::make_shared<const node::sample::DeviceSample>(std::move(sample));
    node::inventory::Entry entry{.facts = std::make_shared<const device::Facts>(facts),
                                 .health = {.state = device::HealthState::kHealthy}};
    if (part) entry.ancestors = {{facts.parent, {}}};
    inventory.devices.push_back(std::move(entry));
  };
  device::Driver driver{.vendor = "amd", .version = "6.14.14"};
  inventory.vendors = {{.vendor = "amd", .driver = std::make_shared<const device::Driver>(driver)}};
  for (int gpu = 0, left = partitions; left > 0; ++gpu) {
    device::Facts facts{.id = "GPU-e3aa1c5bd7b5f05" + std::to_string(gpu),
                        .vendor = "amd",
                        .model = "AMD Instinct MI300X OAM",
                        .index = gpu};
    facts.serial = "69254700000" + std::to_string(gpu);
    facts.modes = {{.name = "compute-partition", .current = "CPX"},
                   {.name = "memory-partition", .current = "NPS1"}};
    facts.details = {{"product-number", "102-G30211-00"}};
    add(facts, false);
    for (int xcp = 0; xcp < kParts && left > 0; ++xcp, --left) {
      device::Facts part = facts;
      part.id += "-" + std::to_string(xcp);
      part.parent = facts.id;
      part.part = std::to_string(xcp);
      part.number = std::to_string(gpu) + ":" + part.part;
      part.index = -1;
      part.profile = "cpx_nps1";
      part.serial.clear();
      part.details["number"] = std::to_string(gpu * kParts + xcp);
      add(std::move(part), true);
    }
  }
  return {.inventory = std::make_shared<const node::inventory::Snapshot>(inventory),
          .ledger = std::make_shared<const node::ledger::Snapshot>(),
          .samples = std::make_shared<const node::sample::Snapshot>(samples),
          .usage = std::make_shared<const node::usage::Snapshot>()};
}

void MetricsPageOfPartitions(benchmark::State& state) {
  node::metrics::MetricsRenderer renderer(
      [](std::string_view) { return &backend::amd::TheDialect(); });
  renderer.Configure({}, "node-1");
  const auto node = DividedNode(static_cast<int>(state.range(0)));
  std::string page = Make(renderer, node);
  const std::uint64_t before = allocations;
  for (auto _ : state) benchmark::DoNotOptimize(page = Make(renderer, node));
  ReportOf(state, page, allocations - before);
}
BENCHMARK(MetricsPageOfPartitions)->Arg(63);

#ifdef PENSTOCK_PROMETHEUS_CPP

/// Registers a series of a page with the client library.
void Register(prometheus::Registry& registry, const std::string& line, const std::string& help) {
  const std::string name = line.substr(0, line.find_first_of("{ "));
  prometheus::Labels labels;
  std::size_t at = line.find('{');
  while (at != std::string::npos && line[at] != '}') {
    const auto equals = line.find("=\"", at), end = line.find('"', equals + 2);
    labels.emplace(line.substr(at + 1, equals - at - 1), line.substr(equals + 2, end - equals - 2));
    at = end + 1;
  }
  const auto value = std::strtod(line.c_str() + line.rfind(' '), nullptr);
  prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels).Set(value);
}

/// The same series as in MetricsPage.
void PrometheusCpp(benchmark::State& state) {
  node::metrics::MetricsRenderer renderer(FindNvidia);
  renderer.Configure({}, "node-1");
  prometheus::Registry registry;
  std::string help;
  for (const std::string& line :
       base::Split(Make(renderer, NodeOf(state.range(0), renderer)), '\n')) {
    if (line.starts_with("# HELP ")) help = line.substr(line.find(' ', 7) + 1);
    if (!line.empty() && !line.starts_with("#")) Register(registry, line, help);
  }
  const prometheus::TextSerializer serializer;
  std::string page = serializer.Serialize(registry.Collect());
  const std::uint64_t before = allocations;
  for (auto _ : state) benchmark::DoNotOptimize(page = serializer.Serialize(registry.Collect()));
  ReportOf(state, page, allocations - before);
}
BENCHMARK(PrometheusCpp)->Arg(2240);

#endif

}  // namespace
