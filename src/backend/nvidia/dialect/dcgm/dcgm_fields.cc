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
#include "backend/nvidia/dialect/dcgm/dcgm_fields_numbered.h"
#include "backend/nvidia/dialect/dcgm/dcgm_fields_profiling.h"

namespace penstock::backend::nvidia {
namespace {

using device::ExporterField;

constexpr std::size_t kNumbered = [] {
  std::size_t count = 0;
  for (const NumberedFields& fields : kDcgmNumberedFields)
    for (const NumberedRun& run : fields.runs) count += static_cast<std::size_t>(run.count);
  return count;
}();
constexpr std::span<const ExporterField> kTables[] = {kDcgmBoardFields,  kDcgmErrorFields,
                                                      kDcgmLinkFields,   kDcgmProfilingFields,
                                                      kDcgmAbsentFields, kDcgmLowerCaseFields};
constexpr std::size_t kCount = [] {
  std::size_t count = kNumbered;
  for (const auto table : kTables) count += table.size();
  return count;
}();

/// Calls a function with each numbered family and the number of each of its fields and of its link.
template <typename Function>
constexpr void ForEachNumbered(Function function) {
  for (const NumberedFields& fields : kDcgmNumberedFields)
    for (const NumberedRun& run : fields.runs)
      for (int i = 0; i < run.count; ++i) function(fields.field, run.number + i, run.first + i);
}

constexpr bool IsShown(const ExporterField& field) {
  return field.source == device::FieldSource::kQuantity;
}

/// A text with a number in place of *, in storage of its own.
class NumberedText {
 public:
  constexpr NumberedText() = default;
  constexpr NumberedText(std::string_view pattern, int number) {
    for (const char c : pattern) {
      if (c == '*' && number >= 10) Add(static_cast<char>('0' + number / 10));
      Add(c == '*' ? static_cast<char>('0' + number % 10) : c);
    }
  }
  constexpr std::string_view view() const { return {text_.data(), size_}; }

 private:
  constexpr void Add(char c) { text_[size_++] = c; }

  std::array<char, 56> text_{};
  std::size_t size_ = 0;
};

constexpr auto kFieldTexts = [] {
  std::array<std::array<NumberedText, 3>, kNumbered> texts;
  std::size_t next = 0;
  ForEachNumbered([&](const ExporterField& field, int, int link) {
    texts[next++] = {NumberedText(field.name, link), NumberedText(field.new_name, link),
                     IsShown(field) ? NumberedText(field.from, link) : NumberedText()};
  });
  return texts;
}();

constexpr std::array<ExporterField, kCount> Join() {
  std::array<ExporterField, kCount> all;
  std::size_t next = 0;
  for (const auto table : kTables)
    for (const ExporterField& field : table) all[next++] = field;
  std::size_t text = 0;
  ForEachNumbered([&](ExporterField field, int number, int link) {
    const auto& [name, new_name, from] = kFieldTexts[text++];
    field.number = number;
    field.name = name.view();
    field.new_name = new_name.view();
    if (IsShown(field)) field.from = from.view();
    if (field.one_link == 0) field.one_link = link;
    all[next++] = field;
  });
  // Names order the fields of one number, so that the result does not depend on the order of the
  // files.
  std::ranges::sort(all, [](const ExporterField& a, const ExporterField& b) {
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
