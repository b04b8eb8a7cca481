// Three lists, in one of two forms each.
#include "vendor/nvidia/running_processes.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace penstock::vendor::nvidia {
namespace {

constexpr unsigned kMostProcesses = 1u << 16;

using Found = std::map<std::int32_t, std::optional<std::uint64_t>>;

/// Records of one kind of process list, whatever version the library has.
template <typename Record>
void AskList(Questions& questions, const Function<abi::Device, unsigned*, void*>& function, Found& found) {
  std::vector<Record> records(16);
  for (int attempt = 0; attempt < 4; ++attempt) {
    auto count = static_cast<unsigned>(records.size());
    if (questions.Ask(function, &count, static_cast<void*>(records.data()))) {
      records.resize(std::min<std::size_t>(count, records.size()));
      break;
    }
    // It says how many there are where there was too little room; more may come meanwhile.
    if (count <= records.size() || count > kMostProcesses) return;
    records.assign(count + 16, Record{});
    if (attempt == 3) return;
  }
  for (const Record& record : records) {
    if (record.pid == 0 || record.pid > static_cast<unsigned>(std::numeric_limits<std::int32_t>::max())) continue;
    auto& memory = found[static_cast<std::int32_t>(record.pid)];
    if (record.used_memory != abi::kNotAvailable) memory = std::max<std::uint64_t>(memory.value_or(0), record.used_memory);
  }
}

}  // namespace

Found AskRunningProcesses(Questions& questions) {
  const Functions& nvml = questions.nvml();
  Found found;  // one that computes and draws is in two lists with the same memory
  for (int list = 0; list < 3; ++list) {
    if (nvml.short_processes[list]) {
      AskList<abi::ProcessInfoV1>(questions, nvml.processes[list], found);
    } else {
      AskList<abi::ProcessInfo>(questions, nvml.processes[list], found);
    }
  }
  return found;
}

}  // namespace penstock::vendor::nvidia
