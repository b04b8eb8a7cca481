// The blocks of the chip whose memory errors amdgpu counts.
#pragma once

#include <array>
#include <string_view>

namespace penstock::backend::amd {

struct Block {
  std::string_view file;  ///< ras/<file>_err_count (Linux, amdgpu_ras.c, ras_block_string)
  std::string_view name;  ///< in the metrics of AMD's exporter, gpu_ecc_correct_<name>
};

/// In the order of AMD's exporter (exporterconfig.proto). The place of a block is the number under
/// which its errors are measured.
inline constexpr std::array kBlocks{
    Block{"sdma", "sdma"},
    Block{"gfx", "gfx"},
    Block{"mmhub", "mmhub"},
    Block{"athub", "athub"},
    Block{"pcie_bif", "bif"},
    Block{"hdp", "hdp"},
    Block{"xgmi_wafl", "xgmi_wafl"},
    Block{"df", "df"},
    Block{"smn", "smn"},
    Block{"sem", "sem"},
    Block{"mp0", "mp0"},
    Block{"mp1", "mp1"},
    Block{"fuse", "fuse"},
    Block{"umc", "umc"},
    Block{"mca", "mca"},
    Block{"vcn", "vcn"},
    Block{"jpeg", "jpeg"},
    Block{"ih", "ih"},
    Block{"mpio", "mpio"},
};

}  // namespace penstock::backend::amd
