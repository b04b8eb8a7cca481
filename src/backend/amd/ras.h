// The texts in which amdgpu reports memory errors (Documentation/gpu/amdgpu/ras.rst).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::backend::amd {

/// Errors of one block of the chip since its driver was loaded.
struct RasCounts {
  std::uint64_t uncorrectable = 0, correctable = 0, deferred = 0;
  bool operator==(const RasCounts&) const = default;
};

/// "ue: 0\nce: 3\nde: 0\n"; nothing if the text has no counts, as during a reset ("Query currently
/// inaccessible").
std::optional<RasCounts> ParseRasCounts(std::string_view text);

/// Pages of memory that were taken out of use, by how that stands.
struct BadPages {
  int retired = 0, pending = 0, failed = 0;
  bool operator==(const BadPages&) const = default;
};

/// Lines "0x00000001 : 0x00001000 : R"; others are left out.
BadPages ParseBadPages(std::string_view text);

}  // namespace penstock::backend::amd
