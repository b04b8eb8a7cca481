// Errors of the driver: Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_gfx.c and
// amdkfd/kfd_device.c, kgd2kfd_check_and_lock_kfd.
#include "backend/amd/modes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/core/printable.h"
#include "base/core/strings.h"
#include "base/log.h"

namespace penstock::backend::amd {
namespace {

using base::Code;
using base::Error;

constexpr std::size_t kMostNamed = 8, kMaxName = 4096;

std::string FileOf(const AmdGpu& gpu, const char* name = "current_compute_partition") {
  return "/bus/pci/devices/" + ToString(gpu.pci) + "/" + name;
}

/// "4711 (python3)".
std::string Named(const std::string& proc_root, const KfdProcess& process) {
  const std::string pid = std::to_string(process.pid);
  const auto name = os::ReadFile(proc_root + "/" + pid + "/comm", kMaxName);
  return name.ok() ? pid + " (" + base::Printable(base::Trim(*name)) + ")" : pid;
}

bool IsOn(const KfdProcess& process, const AmdGpu& gpu) {
  return std::ranges::any_of(gpu.partitions, [&](const Partition& partition) {
    return process.on.contains(partition.node.gpu_id);
  });
}

/// Up to Linux 6.12 any process of KFD is in the way, whatever GPU it has; later those of this GPU.
/// The log names them; the text may leave the node.
std::string InTheWay(const Machine& machine, const std::string& proc_root, const AmdGpu& gpu) {
  std::vector<KfdProcess> processes = ReadProcesses(machine.sysfs());
  const bool on_it =
      std::ranges::any_of(processes, [&](const KfdProcess& one) { return IsOn(one, gpu); });
  if (on_it) std::erase_if(processes, [&](const KfdProcess& one) { return !IsOn(one, gpu); });
  if (processes.empty()) return "a process that has just ended is still being released; try again";
  std::vector<std::string> named;
  for (std::size_t i = 0; i < std::min(processes.size(), kMostNamed); ++i)
    named.push_back(Named(proc_root, processes[i]));
  base::Log(base::kInfo, "processes keep the driver from changing a mode",
            {{"gpu", ToString(gpu.pci)},
             {"processes", base::Join(named, ", ")},
             {"count", static_cast<long>(processes.size())}});
  return (processes.size() == 1 ? "a process" : std::to_string(processes.size()) + " processes") +
         (on_it ? " on this GPU"
                : " on other GPUs, which this kernel's driver does not permit either: it changes a "
                  "mode only while no process of the machine has /dev/kfd open") +
         "; end " + (processes.size() == 1 ? "it" : "them") + " (named in the agent's log)";
}

/// A file that is not there, or says nothing, may have gone with the driver, and then that counts.
Error UnlessUnloaded(const Machine& machine, Error error) {
  if (machine.sysfs().Exists(kModule)) return error;
  return {Code::kUnavailable, "AMD's driver was unloaded while the mode was being changed"};
}

Error OtherRefusal(int code, const std::string& file, const std::string& value) {
  if (code == EPERM)
    return {Code::kFailedPrecondition,
            "the driver refuses " + value +
                " (EPERM): the GPU is being reset, or is a virtual function, whose host sets the "
                "mode"};
  return {Code::kUnavailable, "cannot write " + file + ": " + std::strerror(code)};
}

Error Refusal(int code, const Machine& machine, const std::string& proc_root, const AmdGpu& gpu,
              const std::string& value) {
  const std::string file = machine.sysfs().path() + FileOf(gpu);
  switch (code) {
    case EBUSY:
      return {Code::kFailedPrecondition,
              "the driver is busy (EBUSY): " + InTheWay(machine, proc_root, gpu)};
    case EINVAL: {
      const std::string available = machine.PciFile(gpu.pci, "available_compute_partition"),
                        memory = machine.PciFile(gpu.pci, "current_memory_partition");
      return {Code::kInvalidArgument, "the driver does not accept " + value + " (EINVAL)" +
                                          (memory.empty() ? "" : " in the memory mode " + memory) +
                                          (available.empty() ? "" : "; the GPU has " + available)};
    }
    default: return OtherRefusal(code, file, value);
  }
}

}  // namespace

base::Status SetComputeMode(const Machine& machine, const std::string& proc_root, const AmdGpu& gpu,
                            const std::string& value) {
  const auto file = machine.sysfs().OpenFile(FileOf(gpu), O_WRONLY);
  if (!file.ok())
    return UnlessUnloaded(machine, {file.error().code() == Code::kNotFound ? Code::kUnimplemented
                                                                           : file.error().code(),
                                    "the mode cannot be written: " + file.error().message() +
                                        "; the agent needs root, and /sys mounted writable"});
  const std::string line = value + "\n";
  if (::write(file->get(), line.data(), line.size()) < 0)
    return UnlessUnloaded(machine, Refusal(errno, machine, proc_root, gpu, value));
  const std::string now = machine.ComputeMode(gpu);
  if (now == value) return {};
  return UnlessUnloaded(machine,
                        {Code::kAborted, "the driver accepted " + value + " and is still in " +
                                             (now.empty() ? "no known mode" : now) +
                                             ": the write had no effect; see the kernel's log"});
}

base::Status RequestMemoryMode(const Machine& machine, const AmdGpu& gpu,
                               const std::string& value) {
  const std::string available = machine.PciFile(gpu.pci, "available_memory_partition");
  if (available.empty())
    return UnlessUnloaded(
        machine, {Code::kUnimplemented,
                  "this kernel's driver has no available_memory_partition, and so does not change "
                  "memory modes: that needs Linux 6.13 or AMD's driver"});
  const std::string name = FileOf(gpu, "current_memory_partition");
  const auto file = machine.sysfs().OpenFile(name, O_WRONLY);
  if (!file.ok())
    return Error(file.error().code(),
                 "the memory mode cannot be written: " + file.error().message() +
                     "; the agent needs root, and /sys mounted writable");
  const std::string line = value + "\n";
  if (::write(file->get(), line.data(), line.size()) >= 0) return {};
  const int code = errno;
  if (code == EINVAL)
    return Error(Code::kInvalidArgument,
                 "the driver does not accept " + value + " (EINVAL); the GPU has " + available);
  return OtherRefusal(code, machine.sysfs().path() + name, value);
}

}  // namespace penstock::backend::amd
