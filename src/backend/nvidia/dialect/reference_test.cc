// Tests that docs/reference/metrics-nvidia.md matches the tables. PENSTOCK_UPDATE_GOLDEN=1 rewrites
// it.
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "backend/nvidia/dialect/dcgm/dcgm_fields.h"
#include "backend/nvidia/dialect/quantities.h"
#include "base/testing/build_tree.h"

namespace penstock::backend::nvidia {
namespace {

using device::ExporterField;
using device::FieldSource;
using device::Pace;
using device::Quantity;
using device::Unit;

const std::string kPath = base::SourcePath("docs/reference/metrics-nvidia.md");
constexpr std::string_view kBegin = "<!-- From here on by a test, from the tables. -->\n";

std::string Code(std::string_view text) {
  return text.empty() ? "" : "`" + std::string(text) + "`";
}

std::string_view Name(Unit unit) {
  switch (unit) {
    case Unit::kNone: return "";
    case Unit::kPercent: return "%";
    case Unit::kRatio: return "ratio";
    case Unit::kMegahertz: return "MHz";
    case Unit::kCelsius: return "°C";
    case Unit::kMilliwatts: return "mW";
    case Unit::kMillijoules: return "mJ";
    case Unit::kBytes: return "B";
    case Unit::kKibibytes: return "KiB";
    case Unit::kMebibytes: return "MiB";
    case Unit::kBytesPerSecond: return "B/s";
    case Unit::kNanoseconds: return "ns";
  }
  return "";
}

std::string_view Name(Pace pace) {
  return pace == Pace::kFast ? "fast" : pace == Pace::kSlow ? "slow" : "once";
}

/// The names of a field.
std::string Names(const ExporterField& field) {
  std::string text = Code(field.name);
  if (!field.new_name.empty()) text += "<br>" + Code(field.new_name);
  return text;
}

std::map<std::string_view, std::vector<const ExporterField*>> FieldsByQuantity() {
  std::map<std::string_view, std::vector<const ExporterField*>> fields;
  for (const ExporterField& field : DcgmFields()) {
    // The numbered fields, one per link, would fill half of the page.
    const bool repeated =
        field.one_link > 0 || std::islower(static_cast<unsigned char>(field.name.front())) != 0;
    if (field.source == FieldSource::kQuantity && !repeated) fields[field.from].push_back(&field);
  }
  return fields;
}

std::string QuantityRow(const Quantity& quantity, const std::vector<const ExporterField*>& fields) {
  std::ostringstream out;
  std::string family(quantity.family);
  if (!quantity.labels.empty()) family += "{" + std::string(quantity.labels) + "}";
  out << "| " << Code(quantity.key) << " | " << Code(family) << " | ";
  for (std::size_t i = 0; i < fields.size(); ++i)
    out << (i == 0 ? "" : "<br>") << Names(*fields[i]);
  out << " | " << Name(quantity.unit)
      << (quantity.counter ? (quantity.unit == Unit::kNone ? "counter" : ", counter") : "")
      << (quantity.per_link ? ", each link" : "") << " | " << Name(quantity.pace) << " | "
      << quantity.source << " | " << (quantity.has.empty() ? "all" : quantity.has) << " |\n";
  return out.str();
}

std::string OtherRow(const ExporterField& field) {
  switch (field.source) {
    case FieldSource::kFact: return "a constant text, for rows of type `label`";
    case FieldSource::kLastError: return "the code of the last XID, with `err_code` and `err_msg`";
    case FieldSource::kErrorsInWindow: return "XIDs by code within the configured window";
    case FieldSource::kReasonsInWindow:
      return "collections within the configured window in which each reason limited clocks";
    case FieldSource::kErrorsTotal: return "XIDs by code since the agent started";
    case FieldSource::kReasonsTotal:
      return "how often each reason began to limit clocks, by the collections since the agent "
             "started or its metrics were configured";
    case FieldSource::kHealth:
      return "Penstock's own verdict on the GPU (`ALL`) and on `PCIE`, `NVLINK` and `MEM`: 0 "
             "healthy, 10 warning, 20 unhealthy";
    case FieldSource::kPeers: return "whether NVLinks connect to each other GPU";
    default: return "";
  }
}

std::string Tables() {
  std::ostringstream out;
  const auto fields = FieldsByQuantity();
  out << "## What is measured\n\n| key | family | DCGM's field | unit | pace | source | GPUs "
         "|\n|---|---|---|---|---|---|---|\n";
  for (const Quantity& quantity : TheQuantities()) {
    const auto found = fields.find(quantity.key);
    out << QuantityRow(quantity,
                       found == fields.end() ? std::vector<const ExporterField*>{} : found->second);
  }
  out << "\n## Fields that are not measurements\n\n| DCGM's field | what it exports |\n|---|---|\n";
  for (const ExporterField& field : DcgmFields())
    if (const std::string what = OtherRow(field);
        !what.empty() && std::isupper(static_cast<unsigned char>(field.name.front())) != 0)
      out << "| " << Names(field) << " | " << what << " |\n";
  out << "\n## Unavailable fields\n\nA counter file may name them: they are logged once, and the "
         "others are exported.\n\n"
      << "| DCGM's field | why |\n|---|---|\n";
  for (const ExporterField& field : DcgmFields())
    if (field.source == FieldSource::kUnavailable)
      out << "| " << Names(field) << " | " << field.from << " |\n";
  return out.str();
}

TEST(Reference, IsWhatTheTablesSay) {
  std::ifstream in(kPath);
  std::stringstream read;
  read << in.rdbuf();
  const std::string page = read.str();
  const auto begin = page.find(kBegin);
  ASSERT_NE(begin, std::string::npos) << kPath << " lacks the line after which the tables begin";
  const std::string head = page.substr(0, begin + kBegin.size());
  const std::string wanted = head + "\n" + Tables();
  if (std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr) std::ofstream(kPath) << wanted;
  EXPECT_TRUE(page == wanted || std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr)
      << kPath
      << " does not match the tables: run this test with PENSTOCK_UPDATE_GOLDEN=1 and review the "
         "difference";
}

}  // namespace
}  // namespace penstock::backend::nvidia
