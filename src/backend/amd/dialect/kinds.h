// Names that AMD's backend and dialect share: kinds of evidence, and keys of Facts::details.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::backend::amd {

inline constexpr std::string_view kVendor = "amd";
inline constexpr std::uint16_t kPciVendor = 0x1002;

// Kinds of evidence; the code is a count, the text the block of the chip or the file.
inline constexpr std::string_view kRasUncorrectable = "ras-uncorrectable",
                                  kRasDeferred = "ras-deferred", kPagesPending = "pages-pending",
                                  kPagesFailed = "pages-failed", kInReset = "in-reset";

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
