// Names that backend and dialect share: the kinds of evidence of NVIDIA devices, and the paths of a
// driver's files.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace penstock::backend::nvidia {

inline constexpr std::string_view kVendor = "nvidia";
inline constexpr std::uint16_t kPciVendor = 0x10de;

// Device::Evidence::kind. The comment of each kind gives its `code`.
inline constexpr std::string_view kXid = "xid";  ///< the XID; 999: the driver did not say which
inline constexpr std::string_view kSxid =
    "sxid";  ///< an NVSwitch's SXID; the PCI address is the switch's
inline constexpr std::string_view kRecoveryAction =
    "recovery-action";  ///< NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
inline constexpr std::string_view kRecoveryChanged =
    "recovery-changed";  ///< the recovery action has changed; read its value
inline constexpr std::string_view kUnavailable =
    "unavailable";  ///< nvmlEventTypeGpuUnavailableError
inline constexpr std::string_view kLost =
    "lost";  ///< the nvmlReturn_t that said so; 0 from the kernel's log
inline constexpr std::string_view kResetRequired = "reset-required";  ///< NVML_ERROR_RESET_REQUIRED
inline constexpr std::string_view kRemapPending = "remap-pending";    ///< 1
inline constexpr std::string_view kRemapFailure = "remap-failure";    ///< 1
inline constexpr std::string_view kEccUncorrectable =
    "ecc-uncorrectable";                               ///< number of errors since the last reset
inline constexpr std::string_view kPoison = "poison";  ///< 0 contained, 1 fatal

// Facts::details that labels are made of.
inline constexpr char kPciClass[] = "pci.class";  ///< "0x030200", as in sysfs
inline constexpr char kFabricCluster[] =
    "fabric.cluster";  ///< UUID of the NVLink fabric that it has joined; never the zero UUID
inline constexpr char kFabricClique[] = "fabric.clique";  ///< its clique in that fabric
/// Of a GPU that is part of an NVLink fabric: kFabricJoined, kFabricJoining, or why it failed.
inline constexpr char kFabricState[] = "fabric.state";
inline constexpr char kFabricJoined[] = "joined", kFabricJoining[] = "joining";
inline constexpr char kVirtualization[] =
    "virtualization";  ///< "none", "passthrough", "vgpu", "host-vgpu", "host-vsga"

// Facts::details that the exporter's labels are made of.
inline constexpr char kInforomOem[] = "inforom.oem";
inline constexpr char kInforomEcc[] = "inforom.ecc";
inline constexpr char kInforomPower[] = "inforom.power";
inline constexpr char kInforomImage[] = "inforom.image";
inline constexpr char kMigProfile[] = "mig.profile";  ///< of a partition: "1g.10gb"
inline constexpr char kGpuInstance[] =
    "mig.gpu-instance";                             ///< of a partition: number of its GPU instance
inline constexpr char kMigMemory[] = "mig.memory";  ///< MiB; compute instances of one GPU instance
                                                    ///< share it
// Of a partition: its slices, and the engines that it can use, as numbers.
inline constexpr char kMigSlicesOfGpu[] = "mig.slices.gi";
inline constexpr char kMigSlicesOfCompute[] = "mig.slices.ci";
inline constexpr char kMigSlicesOfAll[] =
    "mig.slices.all";  ///< compute slices of the whole GPU, as far as its driver lists its profiles
inline constexpr char kMigCopyEngines[] = "mig.engines.copy";
inline constexpr char kMigDecoders[] = "mig.engines.decoder";
inline constexpr char kMigEncoders[] = "mig.engines.encoder";
inline constexpr char kMigJpegs[] = "mig.engines.jpeg";
inline constexpr char kMigOfas[] = "mig.engines.ofa";

/// NVML's number for an XID that it does not know.
inline constexpr std::int64_t kUnknownXid = 999;

inline constexpr std::string_view kLibraryName = "libnvidia-ml.so.1";

/// Where distributions and driver containers put the library, below a driver root.
inline constexpr std::array<std::string_view, 9> kLibraryFolders{"/usr/lib/x86_64-linux-gnu",
                                                                 "/usr/lib64",
                                                                 "/usr/lib/aarch64-linux-gnu",
                                                                 "/lib64",
                                                                 "/usr/lib",
                                                                 "/lib/x86_64-linux-gnu",
                                                                 "/lib/aarch64-linux-gnu",
                                                                 "/lib",
                                                                 "/usr/lib/wsl/lib"};

}  // namespace penstock::backend::nvidia
