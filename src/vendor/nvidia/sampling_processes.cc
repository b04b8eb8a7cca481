// The driver keeps samples of the use of each process for some seconds; the newest since the last look counts.
#include "vendor/nvidia/sampling_processes.h"

#include <algorithm>
#include <limits>
#include <map>

#include "vendor/nvidia/running_processes.h"

namespace penstock::vendor::nvidia {
namespace {

constexpr unsigned kMostSamples = 1u << 16;

using Newest = std::map<unsigned, abi::ProcessUtilization>;

/// Samples newer than `since`, as many as the driver has.
std::vector<abi::ProcessUtilization> AskSamples(Questions& questions, unsigned long long since) {
  const auto& function = questions.nvml().process_utilization;
  std::vector<abi::ProcessUtilization> samples;
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto count = static_cast<unsigned>(samples.size());
    const bool answered = questions.Ask(function, samples.empty() ? nullptr : samples.data(), &count, since);
    if (answered && !samples.empty()) {
      samples.resize(std::min<std::size_t>(count, samples.size()));
      return samples;
    }
    // Without room it says how much it needs. "Not found": nobody used it.
    if (!answered && questions.last() != abi::kInsufficientSize) return {};
    if (count == 0 || count > kMostSamples) return {};
    samples.assign(count + 16, abi::ProcessUtilization{});
  }
  return {};
}

std::optional<double> Percent(unsigned value) {
  if (value > 100) return std::nullopt;  // drivers have been seen to fill what they do not measure with nonsense
  return value;
}

}  // namespace

void AskProcessUse(Taking& taking) {
  Newest newest;
  unsigned long long& last = taking.gpu.last_process_sample;
  const unsigned long long since = last;
  for (const abi::ProcessUtilization& sample : AskSamples(taking.questions, since)) {
    if (sample.time <= since || sample.pid == 0 || sample.pid > static_cast<unsigned>(std::numeric_limits<std::int32_t>::max())) continue;
    last = std::max(last, sample.time);
    auto& known = newest[sample.pid];
    if (sample.time >= known.time) known = sample;
  }
  // Who has ended since has no memory any more, but has used the GPU. At the first look nobody knows since when.
  std::map<std::int32_t, device::ProcessSample> processes;
  for (const auto& [pid, running] : AskRunningProcesses(taking.questions)) {
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
  for (auto& [pid, process] : processes) taking.sample.processes.push_back(std::move(process));
}

}  // namespace penstock::vendor::nvidia
