// The driver keeps samples of each process's use for some seconds; the newest one since the last
// sample counts.
#include "backend/nvidia/sampling/sampling_processes.h"

#include <algorithm>
#include <limits>
#include <map>

namespace penstock::backend::nvidia {
namespace {

constexpr unsigned kMaxSamples = 1u << 16;

using Newest = std::map<unsigned, abi::ProcessUtilization>;

/// All samples of the driver that are newer than `since`.
std::vector<abi::ProcessUtilization> GetSamples(NvmlDevice& nvml_device, unsigned long long since) {
  const auto& function = nvml_device.nvml().process_utilization;
  std::vector<abi::ProcessUtilization> samples;
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto count = static_cast<unsigned>(samples.size());
    const bool answered =
        nvml_device.Call(function, samples.empty() ? nullptr : samples.data(), &count, since);
    if (answered && !samples.empty()) {
      samples.resize(std::min<std::size_t>(count, samples.size()));
      return samples;
    }
    // A failed call returns the size that it needs. "Not found": no process used the GPU.
    if (!answered && nvml_device.last() != abi::kInsufficientSize) return {};
    if (count == 0 || count > kMaxSamples) return {};
    samples.assign(count + 16, abi::ProcessUtilization{});
  }
  return {};
}

std::optional<double> Percent(unsigned value) {
  if (value > 100)
    return std::nullopt;  // drivers are known to fill values that they do not measure with garbage
  return value;
}

}  // namespace

void ReadProcessUse(SampleBuilder& builder, ProcessesOf which) {
  Newest newest;
  unsigned long long& last = builder.gpu.last_process_sample;
  const unsigned long long since = last;
  for (const abi::ProcessUtilization& sample : GetSamples(builder.nvml_device, since)) {
    if (sample.time <= since || sample.pid == 0 ||
        sample.pid > static_cast<unsigned>(std::numeric_limits<std::int32_t>::max()))
      continue;
    last = std::max(last, sample.time);
    auto& known = newest[sample.pid];
    if (sample.time >= known.time) known = sample;
  }
  // A process that ended since the last sample has used the GPU but has no memory any more. In the
  // first sample the start of the period is unknown, so ended processes are left out.
  std::map<std::int32_t, device::ProcessSample> processes;
  for (const auto& [pid, running] : ReadRunningProcesses(builder.nvml_device, which)) {
    processes[pid].pid = pid;
    if (running.memory) processes[pid].memory = base::Bytes{*running.memory};
  }
  for (const auto& [pid, use] : newest) {
    const auto number = static_cast<std::int32_t>(pid);
    if (since == 0 && !processes.contains(number)) continue;
    device::ProcessSample& process = processes[number];
    process.pid = number;
    process.compute = Percent(use.compute);
    process.memory_copy = Percent(use.memory_copy);
    process.encoder = Percent(use.encoder);
    process.decoder = Percent(use.decoder);
  }
  for (const auto& [pid, process] : processes) builder.sample.processes.push_back(process);
}

}  // namespace penstock::backend::nvidia
