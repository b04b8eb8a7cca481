// Names and meaning of the files: Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c, and
// include/uapi/linux/kfd_sysfs.h; of processes: kfd_process.c, kfd_procfs_add_sysfs_files.
#include "backend/amd/kfd.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "base/core/strings.h"

namespace penstock::backend::amd {
namespace {

constexpr const char* kTopology = "/class/kfd/kfd/topology";
constexpr std::size_t kMaxFile = 65536;  // a page in the kernel
constexpr const char* kProcessList = "/class/kfd/kfd/proc";
constexpr std::size_t kMaxNodes = 1024, kMaxLinks = 2048, kMaxProcesses = 4096, kMaxQueues = 1024;
constexpr std::uint64_t kPcie = 2, kXgmi = 11;     // CRAT_IOLINK_TYPE_PCIEXPRESS, …_XGMI
constexpr std::uint64_t kPublicHeap = 1;           // HSA_MEM_HEAP_TYPE_FB_PUBLIC,
constexpr std::uint64_t kPrivateHeap = 2;          // …_FB_PRIVATE
constexpr std::uint64_t kMostMemory = 1ull << 50;  // bytes: more is an error of the driver
constexpr std::uint64_t kMostUnits = 1u << 20;
constexpr std::uint64_t kAllOnes = ~std::uint64_t{0};  // a device that fell off the bus

/// Calls `each` with the name and the value of every line that has both.
template <typename Each>
void ForEachProperty(std::string_view text, const Each& each) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos || blank == 0) continue;
    if (const auto value = base::ParseUint(base::Trim(line.substr(blank))))
      each(line.substr(0, blank), *value);
  }
}

std::uint64_t Of(const Properties& properties, std::string_view name) {
  const auto found = properties.find(name);
  return found == properties.end() ? 0 : found->second;
}

std::uint64_t IdOf(const Properties& properties, std::string_view name) {
  const std::uint64_t id = Of(properties, name);
  return id == kAllOnes ? 0 : id;
}

/// A file that contains one number; nothing if it cannot be read: a process may have ended.
std::optional<std::uint64_t> ReadNumber(const os::Root& sysfs, const std::string& path) {
  const auto text = sysfs.Read(path, kMaxFile);
  return text.ok() ? base::ParseUint(base::Trim(*text)) : std::nullopt;
}

KfdProcess ReadProcess(const os::Root& sysfs, const std::string& folder) {
  constexpr std::string_view kMemory = "vram_";
  KfdProcess process;
  const auto names = sysfs.List(folder).value_or({});
  for (const std::string& name : names) {
    const auto gpu =
        name.starts_with(kMemory) ? base::ParseUint(name.substr(kMemory.size())) : std::nullopt;
    if (!gpu || process.on.size() == kMaxNodes) continue;
    const std::uint64_t memory = ReadNumber(sysfs, folder + "/" + name).value_or(0);
    if (memory > 0 && memory <= kMostMemory) process.on[*gpu] = base::Bytes{memory};
  }
  auto queues = sysfs.List(folder + "/queues").value_or({});
  if (queues.size() > kMaxQueues) queues.resize(kMaxQueues);
  for (const std::string& queue : queues)
    if (const auto gpu = ReadNumber(sysfs, folder + "/queues/" + queue + "/gpuid"))
      process.on.try_emplace(*gpu);
  return process;
}

int Count(std::uint64_t value) { return value > kMostUnits ? 0 : static_cast<int>(value); }

/// The texts of the properties of what is in a folder. A missing folder, or one that cannot be
/// read, has none. A machine has hundreds of these files.
std::vector<std::string> ReadEach(const os::Root& above, const std::string& folder) {
  std::vector<std::string> all;
  const auto root = above.OpenBelow(folder);
  if (!root.ok()) return all;
  auto names = root->List(".").value_or({});
  if (names.size() > kMaxLinks) names.resize(kMaxLinks);
  for (const std::string& name : names)
    if (auto text = root->Read(name + "/properties", kMaxFile); text.ok())
      all.push_back(*std::move(text));
  return all;
}

base::Bytes MemoryOf(const os::Root& nodes, const std::string& node) {
  std::uint64_t sum = 0;
  for (const std::string& text : ReadEach(nodes, node + "/mem_banks")) {
    std::uint64_t size = 0, heap = 0;
    ForEachProperty(text, [&](std::string_view name, std::uint64_t value) {
      if (name == "size_in_bytes") size = value;
      if (name == "heap_type") heap = value;
    });
    if ((heap == kPublicHeap || heap == kPrivateHeap) && size <= kMostMemory) sum += size;
  }
  return base::Bytes{sum <= kMostMemory ? sum : 0};
}

/// Nothing for a node without a GPU that can be opened.
std::optional<KfdNode> NodeOf(unsigned number, const Properties& properties) {
  const std::uint64_t gfx = Of(properties, "gfx_target_version");
  const std::uint64_t minor = Of(properties, "drm_render_minor");
  constexpr std::uint64_t kMostGfx = 1000000, kMostMinor = 0xfffff;
  if (Of(properties, "simd_count") == 0 || gfx == 0 || gfx > kMostGfx) return std::nullopt;
  if (minor == 0 || minor > kMostMinor) return std::nullopt;
  KfdNode node{.number = number};
  node.unique_id = IdOf(properties, "unique_id");
  node.hive_id = IdOf(properties, "hive_id");
  node.domain = static_cast<std::uint32_t>(Of(properties, "domain"));
  node.location = static_cast<std::uint32_t>(Of(properties, "location_id"));
  node.device_id = static_cast<std::uint32_t>(Of(properties, "device_id") & 0xffff);
  node.render_minor = static_cast<unsigned>(minor);
  node.gfx = static_cast<unsigned>(gfx);
  node.simds = Count(Of(properties, "simd_count"));
  const int per_unit = Count(Of(properties, "simd_per_cu"));
  node.compute_units = per_unit == 0 ? 0 : node.simds / per_unit;
  return node;
}

}  // namespace

Properties ParseProperties(std::string_view text) {
  Properties properties;
  ForEachProperty(text, [&](std::string_view name, std::uint64_t value) {
    properties.insert_or_assign(std::string(name), value);
  });
  return properties;
}

base::Result<std::string> ReadGeneration(const os::Root& sysfs) {
  ASSIGN(const std::string text, sysfs.Read(std::string(kTopology) + "/generation_id", kMaxFile));
  return std::string(base::Trim(text));
}

base::Result<Topology> ReadTopology(const os::Root& sysfs) {
  Topology topology;
  topology.generation = ReadGeneration(sysfs).value_or("");
  ASSIGN(const os::Root nodes, sysfs.OpenBelow(std::string(kTopology) + "/nodes"));
  ASSIGN(const std::vector<std::string> names, nodes.List("."));
  std::set<unsigned> numbers;
  for (const std::string& name : names)
    if (const auto number = base::ParseUint(name); number && *number < kMaxNodes)
      numbers.insert(static_cast<unsigned>(*number));
  for (const unsigned number : numbers) {
    const std::string folder = std::to_string(number);
    const auto text = nodes.Read(folder + "/properties", kMaxFile);
    if (!text.ok()) {
      if (text.error().code() == base::Code::kPermissionDenied) topology.refused.push_back(number);
      continue;
    }
    auto node = NodeOf(number, ParseProperties(*text));
    if (!node) continue;
    node->gpu_id = ReadNumber(nodes, folder + "/gpu_id").value_or(0);
    node->memory = MemoryOf(nodes, folder);
    topology.gpus.push_back(*std::move(node));
  }
  return topology;
}

std::vector<KfdLink> ReadLinks(const os::Root& sysfs, unsigned node) {
  const std::string folder = std::string(kTopology) + "/nodes/" + std::to_string(node);
  std::vector<KfdLink> links;
  for (const char* kind : {"/io_links", "/p2p_links"})
    for (const std::string& text : ReadEach(sysfs, folder + kind)) {
      std::uint64_t to = 0, type = 0;
      ForEachProperty(text, [&](std::string_view name, std::uint64_t value) {
        if (name == "node_to") to = value;
        if (name == "type") type = value;
      });
      if (to < kMaxNodes && to != node && (type == kPcie || type == kXgmi))
        links.push_back({static_cast<unsigned>(to), type == kXgmi});
    }
  return links;
}

std::vector<KfdProcess> ReadProcesses(const os::Root& sysfs) {
  std::vector<KfdProcess> processes;
  for (const std::string& name : sysfs.List(kProcessList).value_or({})) {
    const auto pid = base::ParseUint(name);
    if (!pid || *pid == 0 || *pid > std::numeric_limits<std::int32_t>::max()) continue;
    if (processes.size() == kMaxProcesses) break;
    KfdProcess process = ReadProcess(sysfs, std::string(kProcessList) + "/" + name);
    process.pid = static_cast<std::int32_t>(*pid);
    processes.push_back(std::move(process));
  }
  return processes;
}

std::string GfxName(unsigned gfx) {
  constexpr char kDigits[] = "0123456789abcdef";
  const unsigned minor = gfx / 100 % 100, stepping = gfx % 100;
  if (minor > 15 || stepping > 15) return "";
  return "gfx" + std::to_string(gfx / 10000) + kDigits[minor] + kDigits[stepping];
}

std::string InstinctArchitecture(unsigned gfx) {
  switch (gfx) {  // LLVM, "User Guide for AMDGPU Backend": MI50, MI100, MI200, MI300, MI350
    case 90006: return "vega20";
    case 90008: return "cdna1";
    case 90010: return "cdna2";
    case 90400:
    case 90401:
    case 90402: return "cdna3";
    case 90500: return "cdna4";
    default: return "";
  }
}

}  // namespace penstock::backend::amd
