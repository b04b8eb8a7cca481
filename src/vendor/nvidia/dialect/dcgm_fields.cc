// The table of fields, put together. Older names and numbers: DCGM, dcgmlib/dcgm_fields.h; go-dcgm, pkg/dcgm/const_fields.go. Newer names:
// go-dcgm's const_fields.go for DCGM 4.7. What dcgm-exporter 4.9's release notes say of the default fields goes beyond that header: also
// MEM_COPY_UTIL, ENC_UTIL, DEC_UTIL become ratios, FB_* become bytes, the NVLinks' throughput bytes per second. For these seven the newer
// name follows DCGM's naming standard (dcgmlib/dcgm_field_naming.py) and FB_CAPACITY_BYTES, which the notes name.
#include "vendor/nvidia/dialect/dcgm_fields.h"

#include <algorithm>
#include <array>

#include "vendor/nvidia/dialect/dcgm_fields_absent.h"
#include "vendor/nvidia/dialect/dcgm_fields_board.h"
#include "vendor/nvidia/dialect/dcgm_fields_errors.h"
#include "vendor/nvidia/dialect/dcgm_fields_links.h"
#include "vendor/nvidia/dialect/dcgm_fields_lower_case.h"
#include "vendor/nvidia/dialect/dcgm_fields_profiling.h"

namespace penstock::vendor::nvidia {
namespace {

using device::ExporterField;

constexpr std::size_t kCount = std::size(kDcgmBoardFields) + std::size(kDcgmErrorFields) + std::size(kDcgmLinkFields) +
                               std::size(kDcgmProfilingFields) + std::size(kDcgmAbsentFields) + std::size(kDcgmLowerCaseFields);

constexpr std::array<ExporterField, kCount> Join() {
  std::array<ExporterField, kCount> all;
  std::size_t next = 0;
  const auto append = [&](const auto& fields) {
    for (const ExporterField& field : fields) all[next++] = field;
  };
  append(kDcgmBoardFields);
  append(kDcgmErrorFields);
  append(kDcgmLinkFields);
  append(kDcgmProfilingFields);
  append(kDcgmAbsentFields);
  append(kDcgmLowerCaseFields);
  // Names decide between those of one number, so that the order does not depend on the order of the files.
  std::sort(all.begin(), all.end(),
            [](const ExporterField& a, const ExporterField& b) { return a.number != b.number ? a.number < b.number : a.name < b.name; });
  return all;
}

constexpr std::array<ExporterField, kCount> kFields = Join();

}  // namespace

std::span<const ExporterField> DcgmFields() { return kFields; }

const ExporterField* FindDcgmField(std::string_view name) {
  // An older name wins: some newer ones were other fields' before.
  for (const ExporterField& field : kFields)
    if (field.name == name) return &field;
  for (const ExporterField& field : kFields)
    if (field.new_name == name) return &field;
  return nullptr;
}

}  // namespace penstock::vendor::nvidia
