#include "backend/nvidia/running_processes.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace penstock::backend::nvidia {
namespace {

constexpr unsigned kMaxProcesses = 1u << 16;

using Found = std::map<std::int32_t, RunningProcess>;
constexpr int kGraphics = 1;  // index in Functions::processes

/// Records of the first version do not say; only drivers without MIG have no newer ones.
bool IsOnInstance(const abi::ProcessInfoV1&) { return true; }
bool IsOnInstance(const abi::ProcessInfo& process) {
  return process.gpu_instance != abi::kNoInstance;
}

/// Adds one list of processes, in the library's version of the record.
template <typename Record>
void ReadList(NvmlDevice& nvml_device, int list, ProcessesOf which, Found& found) {
  const Function<abi::Device, unsigned*, void*>& function = nvml_device.nvml().processes[list];
  std::vector<Record> records(16);
  for (int attempt = 0; attempt < 4; ++attempt) {
    auto count = static_cast<unsigned>(records.size());
    if (nvml_device.Call(function, &count, static_cast<void*>(records.data()))) {
      records.resize(std::min<std::size_t>(count, records.size()));
      break;
    }
    // A failed call returns the count if the buffer was too small; more processes may start
    // meanwhile.
    if (count <= records.size() || count > kMaxProcesses) return;
    records.assign(count + 16, Record{});
    if (attempt == 3) return;
  }
  for (const Record& record : records) {
    if (record.pid == 0 ||
        record.pid > static_cast<unsigned>(std::numeric_limits<std::int32_t>::max()))
      continue;
    if (which == ProcessesOf::kGpuAlone && IsOnInstance(record)) continue;
    RunningProcess& process = found[static_cast<std::int32_t>(record.pid)];
    process.graphics_only = process.graphics_only && list == kGraphics;
    if (record.used_memory != abi::kNotAvailable)
      process.memory = std::max<std::uint64_t>(process.memory.value_or(0), record.used_memory);
  }
}

}  // namespace

Found ReadRunningProcesses(NvmlDevice& nvml_device, ProcessesOf which) {
  Found found;  // a process that computes and draws is in two lists with the same memory
  for (int list = 0; list < 3; ++list) {
    if (nvml_device.nvml().short_processes[list]) {
      ReadList<abi::ProcessInfoV1>(nvml_device, list, which, found);
    } else {
      ReadList<abi::ProcessInfo>(nvml_device, list, which, found);
    }
  }
  return found;
}

}  // namespace penstock::backend::nvidia
