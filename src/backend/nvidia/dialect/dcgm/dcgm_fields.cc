// Assembles the table of fields. Older names and numbers: DCGM, dcgmlib/dcgm_fields.h; go-dcgm,
// pkg/dcgm/const_fields.go. Newer names: go-dcgm's const_fields.go for DCGM 4.7. The release notes
// of dcgm-exporter 4.9 go beyond that header for the default fields: MEM_COPY_UTIL, ENC_UTIL and
// DEC_UTIL also become ratios, FB_* bytes, the NVLinks' throughput bytes per second. For these
// seven the newer name follows DCGM's naming standard (dcgmlib/dcgm_field_naming.py) and
// FB_CAPACITY_BYTES, which the notes name.
#include "backend/nvidia/dialect/dcgm/dcgm_fields.h"

#include <algorithm>
#include <array>

#include "backend/nvidia/dialect/dcgm/dcgm_fields_absent.h"
#include "backend/nvidia/dialect/dcgm/dcgm_fields_board.h"
#include "backend/nvidia/dialect/dcgm/dcgm_fields_errors.h"
#include "backend/nvidia/dialect/dcgm/dcgm_fields_links.h"
#include "backend/nvidia/dialect/dcgm/dcgm_fields_lower_case.h"
#include "backend/nvidia/dialect/dcgm/dcgm_fields_profiling.h"

namespace penstock::backend::nvidia {
namespace {

using device::ExporterField;

constexpr std::size_t kCount = std::size(kDcgmBoardFields) + std::size(kDcgmErrorFields) +
                               std::size(kDcgmLinkFields) + std::size(kDcgmProfilingFields) +
                               std::size(kDcgmAbsentFields) + std::size(kDcgmLowerCaseFields);

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
  // Names order the fields of one number, so that the result does not depend on the order of the
  // files.
  std::sort(all.begin(), all.end(), [](const ExporterField& a, const ExporterField& b) {
    return a.number != b.number ? a.number < b.number : a.name < b.name;
  });
  return all;
}

constexpr std::array<ExporterField, kCount> kFields = Join();

}  // namespace

std::span<const ExporterField> DcgmFields() { return kFields; }

const ExporterField* FindDcgmField(std::string_view name) {
  // An older name wins: some newer names were other fields' older ones.
  for (const ExporterField& field : kFields)
    if (field.name == name) return &field;
  for (const ExporterField& field : kFields)
    if (field.new_name == name) return &field;
  return nullptr;
}

}  // namespace penstock::backend::nvidia
