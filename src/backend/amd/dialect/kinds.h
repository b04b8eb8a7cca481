// Names that AMD's backend and dialect share: kinds of evidence, and keys of Facts::details.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::backend::amd {

inline constexpr std::string_view kVendor = "amd";
inline constexpr std::uint16_t kPciVendor = 0x1002;

// Kinds of evidence of the poll; the code is a count, the text the block of the chip.
inline constexpr std::string_view kRasUncorrectable = "ras-uncorrectable",
                                  kRasDeferred = "ras-deferred", kPagesPending = "pages-pending",
                                  kPagesFailed = "pages-failed";
inline constexpr std::string_view kInReset = "in-reset";  // text: the GPU with which it is reset
inline constexpr std::string_view kPartitionsMissing =
    "partitions-missing";  // the text is a sentence

// Of the kernel's log; the text is the ring or the block of the chip. kResetFailed: the code is the
// error; 0: not said.
inline constexpr std::string_view kFatalError = "fatal-error",
                                  kUncorrectableError = "uncorrectable-error",
                                  kPoisonConsumed = "poison-consumed",
                                  kHardwareError = "hardware-error", kResetBegun = "reset-begun",
                                  kResetDone = "reset-done", kResetFailed = "reset-failed",
                                  kMemoryLost = "memory-lost", kLost = "lost",
                                  kSchedulerTimeout = "scheduler-timeout",
                                  kRingTimeout = "ring-timeout", kFenceFallback = "fence-fallback",
                                  kWedged = "wedged";
inline constexpr std::int64_t kWithReset = 1;      // code of kPoisonConsumed: the GPU is reset
inline constexpr std::int64_t kNeedsRecovery = 1;  // code of kWedged; 0: it has recovered

// Modes: amdgpu's files current_compute_partition and current_memory_partition.
inline constexpr char kComputePartition[] = "compute-partition",
                      kMemoryPartition[] = "memory-partition";

// Details.
inline constexpr char kDeviceId[] = "pci.device-id";  // "74a1"
inline constexpr char kSimds[] = "simds";
inline constexpr char kNumber[] = "number";  // among what programs see: AMD's tools count so
inline constexpr char kSourceVersion[] = "driver.srcversion";
inline constexpr char kProductNumber[] = "product-number";  // "102-G30211-00"
inline constexpr char kManufacturer[] = "manufacturer";

}  // namespace penstock::backend::amd
