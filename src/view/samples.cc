#include "view/samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "node/sample/headline_metrics.h"

namespace penstock::view {
namespace {

using api::HolderReport;
using api::SampledDevice;
using api::SampledProcess;
using node::sample::DeviceSample;
using node::sample::HeadlineMetric;

constexpr double kPercent = 0.01;

std::optional<double> ToRatio(const std::optional<double>& percent) {
  return percent ? std::optional(*percent * kPercent) : std::nullopt;
}

void AddValues(const DeviceSample& sample, const device::Dialect& dialect, SampledDevice& device) {
  const auto value = [&](HeadlineMetric headline) {
    return node::sample::ValueOf(headline, sample, dialect.Quantities());
  };
  device.utilization = value(HeadlineMetric::kUtilization);
  device.memory_used = value(HeadlineMetric::kMemoryUsed);
  device.temperature = value(HeadlineMetric::kTemperature);
  device.power = value(HeadlineMetric::kPower);
  device.power_limit = value(HeadlineMetric::kPowerLimit);
  device.clock = value(HeadlineMetric::kClock);
  if (sample.at != base::WallTime{}) device.collected = base::FormatTime(sample.at);
  device.problem = sample.problem;
  for (const node::sample::History& history : sample.history) {
    auto& values = device.history[history.name];
    for (const float one : history.values)
      values.push_back(std::isnan(one) ? std::nullopt : std::optional<double>(one));
  }
}

SampledDevice DeviceOf(const api::DeviceReport& report) {
  SampledDevice device;
  device.id = report.id;
  device.vendor = report.vendor;
  device.model = report.model;
  device.index = report.index;
  device.number = report.number;
  device.profile = report.profile;
  device.memory_bytes = report.memory_bytes;
  device.health_state = report.health_state;
  device.health_reason = report.health_reason;
  device.sharing = report.sharing;
  device.shares = report.shares;
  device.free = report.free;
  device.allocator = report.allocator;
  return device;
}

SampledProcess HolderOf(const HolderReport& holder) {
  SampledProcess process;
  process.device = holder.device;
  process.index = holder.index;
  process.number = holder.number;
  process.user = holder.user;
  process.command = holder.command;
  process.kind = holder.kind;
  process.lease = holder.lease;
  process.pod = holder.pod;
  process.namespace_name = holder.namespace_name;
  process.container = holder.container;
  return process;
}

using Known = std::map<std::int64_t, const node::ledger::Process*>;

Known KnownProcesses(const node::ledger::Snapshot& ledger) {
  Known known;
  for (const auto& lease : ledger.leases)
    for (const auto& process : lease.processes) known[process.pid] = &process;
  for (const auto* others : {&ledger.outside, &ledger.graphics})
    for (const auto& [device, processes] : *others)
      for (const auto& process : processes) known[process.pid] = &process;
  return known;
}

const HolderReport* FindHolder(const std::vector<HolderReport>& holders, std::int64_t pid) {
  const auto found = std::ranges::find_if(holders, [pid](const HolderReport& holder) {
    return std::ranges::find(holder.pids, pid) != holder.pids.end();
  });
  return found == holders.end() ? nullptr : &*found;
}

/// Adds each process that the sample has on the device, with its holder where known, and then the
/// holders without a process there.
void AddProcesses(const api::DeviceReport& device, const DeviceSample* sample, const Known& known,
                  std::vector<SampledProcess>& processes) {
  std::set<const HolderReport*> seen;
  std::set<std::string> leases;
  for (const device::ProcessSample& one :
       sample != nullptr ? sample->processes : std::vector<device::ProcessSample>{}) {
    const HolderReport* holder = FindHolder(device.holders, one.pid);
    if (holder == nullptr) holder = FindHolder(device.graphics, one.pid);
    SampledProcess process;
    if (holder != nullptr) {
      process = HolderOf(*holder);
      leases.insert(holder->lease);
      seen.insert(holder);
    }
    process.device = device.id;
    process.index = device.index;
    process.number = device.number;
    process.pid = one.pid;
    if (const auto found = known.find(one.pid); found != known.end()) {
      if (!found->second->user.empty()) process.user = found->second->user;
      if (!found->second->command.empty()) process.command = found->second->command;
    }
    if (one.memory) process.memory_bytes = one.memory->count;
    process.compute = ToRatio(one.compute);
    process.memory_copy = ToRatio(one.memory_copy);
    process.encoder = ToRatio(one.encoder);
    process.decoder = ToRatio(one.decoder);
    processes.push_back(std::move(process));
  }
  for (const HolderReport& holder : device.holders) {
    // A holder of several shares is shown once. An outside process that is missing from the sample
    // has ended.
    if (seen.contains(&holder) || holder.lease.empty() || !leases.insert(holder.lease).second)
      continue;
    processes.push_back(HolderOf(holder));
  }
}

}  // namespace

api::Samples MakeSamples(const api::Report& report, const node::ledger::Snapshot& ledger,
                         const node::sample::Snapshot& samples, const device::DialectOf& dialect_of,
                         base::WallTime now) {
  api::Samples made;
  made.node = report.node;
  made.time = base::FormatTime(now);
  made.interval_seconds = base::Seconds(samples.interval);
  const Known known = KnownProcesses(ledger);
  for (const api::DeviceReport& one : report.devices) {
    const DeviceSample* sample = samples.Find(one.id);
    const device::Dialect* dialect = dialect_of(one.vendor);
    made.devices.push_back(DeviceOf(one));
    if (sample != nullptr && dialect != nullptr) AddValues(*sample, *dialect, made.devices.back());
    AddProcesses(one, sample, known, made.processes);
  }
  return made;
}

}  // namespace penstock::view
