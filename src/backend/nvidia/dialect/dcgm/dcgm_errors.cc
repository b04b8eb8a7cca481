// The exact values of the exporter's label err_msg by XID, which alerts compare with. xid.h has the
// meaning of XIDs for health. Source: dcgm-exporter, internal/pkg/collector/xid_errors.go.
#include <array>

#include "backend/nvidia/dialect/dcgm/dcgm_fields.h"

namespace penstock::backend::nvidia {
namespace {

// clang-format off
constexpr std::array<std::string_view, 173> kErrorTexts{
    /* 0 */ "No Error", "Invalid or corrupted push buffer stream", "Invalid or corrupted push buffer stream", "Invalid or corrupted push buffer stream",
    /* 4 */ "Invalid or corrupted push buffer stream", "Unused", "Invalid or corrupted push buffer stream", "Invalid or corrupted push buffer address",
    /* 8 */ "GPU stopped processing", "Driver error programming GPU", "Unused", "Invalid or corrupted push buffer stream",
    /* 12 */ "Driver error handling GPU exception", "Graphics Engine Exception", "Unused", "Unused",
    /* 16 */ "Display engine hung", "Unused", "Bus mastering disabled in PCI Config Space", "Display Engine error",
    /* 20 */ "Invalid or corrupted Mpeg push buffer", "Invalid or corrupted Motion Estimation push buffer", "Invalid or corrupted Video Processor push buffer", "Unused",
    /* 24 */ "GPU semaphore timeout", "Invalid or illegal push buffer stream", "Framebuffer timeout", "Video processor exception",
    /* 28 */ "Video processor exception", "Video processor exception", "GPU semaphore access error", "GPU memory page fault",
    /* 32 */ "Invalid or corrupted push buffer stream", "Internal micro-controller error", "Video processor exception", "Video processor exception",
    /* 36 */ "Video processor exception", "Driver firmware error", "Driver firmware error", "Unused",
    /* 40 */ "Unused", "Unused", "Video processor exception", "GPU stopped processing",
    /* 44 */ "Graphics Engine fault during context switch", "Preemptive cleanup, due to previous errors -- Most likely to see when running multiple cuda", "GPU stopped processing", "Video processor exception",
    /* 48 */ "Double Bit ECC Error", "Unused", "Unused", "Unused",
    /* 52 */ "Unused", "Unused", "Auxiliary power is not connected to the GPU board", "Unused",
    /* 56 */ "Display Engine error", "Error programming video memory interface", "Unstable video memory interface detected", "Internal micro-controller error",
    /* 60 */ "Video processor exception", "Internal micro-controller breakpoint/warning", "Internal micro-controller halt", "ECC page retirement or row remapping recording event",
    /* 64 */ "ECC page retirement or row remapper recording failure", "Video processor exception", "Illegal access by driver", "Illegal access by driver",
    /* 68 */ "NVDEC0 Exception", "Graphics Engine class error", "CE3: Unknown Error", "CE4: Unknown Error",
    /* 72 */ "CE5: Unknown Error", "NVENC2 Error", "NVLINK Error", "CE6: Unknown Error",
    /* 76 */ "CE7: Unknown Error", "CE8: Unknown Error", "vGPU Start Error", "GPU has fallen off the bus",
    /* 80 */ "Corrupted data sent to GPU", "VGA Subsystem Error", "NVJPG0 Error", "NVDEC1 Error",
    /* 84 */ "NVDEC2 Error", "CE9: Unknown Error", "OFA Exception", "Reserved",
    /* 88 */ "NVDEC3 Error", "NVDEC4 Error", "Reserved", "Reserved",
    /* 92 */ "High single-bit ECC error rate", "Non-fatal violation of provisioned InfoROM wear limit", "Contained ECC error", "Uncontained ECC error",
    /* 96 */ "NVDEC5 Error", "NVDEC6 Error", "NVDEC7 Error", "NVJPG1 Error",
    /* 100 */ "NVJPG2 Error", "NVJPG3 Error", "NVJPG4 Error", "NVJPG5 Error",
    /* 104 */ "NVJPG6 Error", "NVJPG7 Error", "SMBPBI Test Message", "SMBPBI Test Message Silent",
    /* 108 */ "Reserved", "Context Switch Timeout Error", "Security Fault Error", "Display Bundle Error Event",
    /* 112 */ "Display Supervisor Error", "DP Link Training Error", "Display Pipeline Underflow Error", "Display Core Channel Error",
    /* 116 */ "Display Window Channel Error", "Display Cursor Channel Error", "Display Pixel Pipeline Error", "GSP RPC Timeout",
    /* 120 */ "GSP Error", "C2C Link Error", "SPI PMU RPC Read Failure", "SPI PMU RPC Write Failure",
    /* 124 */ "SPI PMU RPC Erase Failure", "Inforom FS Failure", "Robust Channel CE10 Error", "Robust Channel CE11 Error",
    /* 128 */ "Robust Channel CE12 Error", "Robust Channel CE13 Error", "Robust Channel CE14 Error", "Robust Channel CE15 Error",
    /* 132 */ "Robust Channel CE16 Error", "Robust Channel CE17 Error", "Robust Channel CE18 Error", "Robust Channel CE19 Error",
    /* 136 */ "ALI Training Fail", "NVLink Privilege Error", "Robust Channel DLA Error", "Robust Channel OFA1 Error",
    /* 140 */ "Unrecovered ECC Error", "Robust Channel Fast Path Error", "Robust Channel NVENVC3 Error", "GPU Initialization Failure",
    /* 144 */ "NVLINK: Saw Error", "NVLINK: RLW Error", "NVLINK: TLW Error", "NVLINK: TREX Error",
    /* 148 */ "NVLINK: NVLPW_CTRL Error", "NVLINK: NETIR Error", "NVLINK: MSE Error", "Robust Channel Key rotation Error",
    /* 152 */ "Robust Channel DLA SMMU Error", "Robust Channel DLA timeout Error", "GPU Recovery Action Changed", "NVLINK: SW Defined Error",
    /* 156 */ "Resource Retirement Event", "Resource Retirement Failure", "GPU Fatal Timeout", "Robust Channel CHI Non-Data Error",
    /* 160 */ "Channel Retirement Event", "Channel Retirement Failure", "Power Smoothing HW Circuitry Reengaged", "Power Smoothing HW Circuitry Disengaged",
    /* 164 */ "Power Smoothing HW Circuitry Low Lifetime", "Power Smoothing HW Circuitry Lifetime Exhausted", "NVLINK Secure Crypto Error", "PCIE Fatal Timeout",
    /* 168 */ "Reduced GPU Memory Capacity (Errors found in write protection region)", "Internal micro-controller halt", "NVLINK: Interrupt seen in CC mode", "Uncorrectable DRAM Error",
    /* 172 */ "Uncorrectable SRAM Error",
};
// clang-format on

}  // namespace

std::string_view DcgmErrorText(std::int64_t xid) {
  return xid >= 0 && xid < static_cast<std::int64_t>(kErrorTexts.size())
             ? kErrorTexts[static_cast<std::size_t>(xid)]
             : "Unknown Error";
}

}  // namespace penstock::backend::nvidia
