#include "os/machine_facts.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fcntl.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/cpu_features.h"
#include "os/next_kernel.h"

namespace penstock::os {
namespace {

constexpr std::size_t kMaxOsRelease = 64 << 10;
constexpr std::size_t kConfigBytes = 256;

std::string ReadTrimmed(const std::string& path) {
  const auto text = ReadFile(path, 4096);
  return text.ok() ? std::string(base::Trim(*text)) : "";
}

std::uint32_t ReadHex(const std::string& path) {
  const std::string text = ReadTrimmed(path);
  if (!text.starts_with("0x")) return 0;
  return static_cast<std::uint32_t>(
      base::ParseUint(std::string_view(text).substr(2), 16).value_or(0));
}

/// os-release(5): KEY=value, the value optionally in quotes.
std::map<std::string, std::string> ReadOsRelease(const std::string& path) {
  std::map<std::string, std::string> fields;
  const auto text = ReadFile(path, kMaxOsRelease);
  if (!text.ok()) return fields;
  for (const std::string& line : base::Split(*text, '\n')) {
    const auto equals = line.find('=');
    if (equals == std::string::npos || line.starts_with('#')) continue;
    std::string_view value = base::Trim(std::string_view(line).substr(equals + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
        value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    fields[std::string(base::Trim(std::string_view(line).substr(0, equals)))] = value;
  }
  return fields;
}

/// Whether any core's thread list names more than one thread; nothing if sysfs lists no core.
std::optional<bool> IsMultithreaded(const std::string& sysfs_root) {
  const std::string folder = sysfs_root + "/bus/cpu/devices";
  const auto cpus = ListDirectory(folder);
  if (!cpus.ok()) return std::nullopt;
  std::optional<bool> answer;
  for (const std::string& cpu : *cpus) {
    const std::string siblings = ReadTrimmed(folder + "/" + cpu + "/topology/thread_siblings_list");
    if (siblings.empty()) continue;  // offline
    if (siblings.find_first_of(",-") != std::string::npos) return true;
    answer = false;
  }
  return answer;
}

int CountNumaNodes(const std::string& sysfs_root) {
  const auto names = ListDirectory(sysfs_root + "/devices/system/node");
  if (!names.ok()) return 0;
  return static_cast<int>(std::ranges::count_if(*names, [](const std::string& name) {
    return name.starts_with("node") &&
           base::ParseUint(std::string_view(name).substr(4)).has_value();
  }));
}

/// See PciFunction::config.
bool MayReadConfig(std::uint32_t class_code) {
  return class_code >> 16 == 0x03 || class_code >> 16 == 0x12 || class_code >> 8 == 0x0b40;
}

std::string ReadConfig(const std::string& path) {
  std::string bytes(kConfigBytes, '\0');
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? ::read(file.get(), bytes.data(), bytes.size()) : 0;
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace

std::vector<PciFunction> ReadPciFunctions(const std::string& sysfs_root, bool with_config) {
  std::vector<PciFunction> functions;
  const std::string folder = sysfs_root + "/bus/pci/devices";
  const auto addresses = ListDirectory(folder);
  if (!addresses.ok()) return functions;
  for (const std::string& address : *addresses) {
    const std::string path = folder + "/" + address;
    PciFunction function;
    function.address = address;
    function.vendor = static_cast<std::uint16_t>(ReadHex(path + "/vendor"));
    function.device = static_cast<std::uint16_t>(ReadHex(path + "/device"));
    function.class_code = ReadHex(path + "/class");
    if (function.vendor == 0) continue;  // removed meanwhile
    if (with_config && MayReadConfig(function.class_code))
      function.config = ReadConfig(path + "/config");
    functions.push_back(std::move(function));
  }
  return functions;
}

std::optional<std::string> ReadPciDriver(const std::string& sysfs_root,
                                         const std::string& address) {
  const std::filesystem::path function = sysfs_root + "/bus/pci/devices/" + address;
  std::error_code failed;
  if (!std::filesystem::exists(function, failed)) return std::nullopt;
  return std::filesystem::read_symlink(function / "driver", failed).filename().string();
}

MachineFacts ReadMachineFacts(const MachinePaths& paths) {
  MachineFacts facts;
  facts.product = paths.product_file.empty() ? "" : ReadTrimmed(paths.product_file);
  facts.kernel = RunningKernel();
  auto release = ReadOsRelease(paths.os_release);
  facts.os_id = release["ID"];
  facts.os_version_id = release["VERSION_ID"];
  facts.os_codename = release["VERSION_CODENAME"];
  CpuFeatures cpu = ReadCpuFeatures(paths.proc_root);
  facts.cpu_vendor = std::move(cpu.vendor);
  facts.cpu_family = cpu.family;
  facts.cpu_model = cpu.model;
  facts.cpu_flags = std::move(cpu.flags);
  facts.multithreading = IsMultithreaded(paths.sysfs_root);
  facts.numa_nodes = CountNumaNodes(paths.sysfs_root);
  facts.pci = ReadPciFunctions(paths.sysfs_root);
  return facts;
}

}  // namespace penstock::os
