// Tests that docs/reference/metrics.md contains the catalogue's tables.
#include <cctype>
#include <cstdlib>

#include <gtest/gtest.h>

#include "api/metrics.h"
#include "base/testing/build_tree.h"
#include "os/core/file.h"

namespace penstock::node::metrics {
namespace {

/// Makes the note a sentence of its own in a table cell.
std::string Sentence(std::string_view note) {
  if (note.empty()) return "";
  std::string text = " " + std::string(note) + ".";
  text[1] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[1])));
  return text;
}

/// The families of a group as a Markdown table: the text between "<!-- families: GROUP -->" and
/// "<!-- end -->".
std::string MetricsTable(api::MetricGroup group) {
  std::string table = "| name | type | unit | labels | meaning |\n|---|---|---|---|---|\n";
  for (const api::MetricFamily& family : api::MetricFamilies()) {
    if (family.group != group) continue;
    std::string labels;
    for (const std::string& label : api::LabelsOf(family))
      labels += (labels.empty() ? "`" : ", `") + label + "`";
    table.append("| `")
        .append(family.name)
        .append("` | ")
        .append(ToString(family.type))
        .append(" | ")
        .append(family.unit);
    table.append(" | ")
        .append(labels)
        .append(" | ")
        .append(family.help)
        .append(Sentence(family.note));
    table.append(family.on_request ? " Only where `telemetry.include` matches it. |\n" : " |\n");
  }
  return table;
}

/// The page with its tables replaced by the expected ones.
std::string WithTables(std::string page) {
  for (int i = 0; i <= static_cast<int>(api::MetricGroup::kAgent); ++i) {
    const auto group = static_cast<api::MetricGroup>(i);
    const std::string begin = "<!-- families: " + std::string(ToString(group)) + " -->\n",
                      end = "<!-- end -->";
    const auto from = page.find(begin);
    const auto to = page.find(end, from);
    if (from == std::string::npos || to == std::string::npos)
      return "there is no table of " + begin;
    page.replace(from + begin.size(), to - from - begin.size(), MetricsTable(group));
  }
  return page;
}

TEST(Metrics, TheReferenceHasEveryFamily) {
  const std::string path = base::SourcePath("docs/reference/metrics.md");
  const std::string page = os::ReadFile(path).value_or("");
  const std::string wanted = WithTables(page);
  if (std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(os::WriteFileAtomically(path, wanted).ok());
  }
  EXPECT_EQ(os::ReadFile(path).value_or(""), wanted) << "run with PENSTOCK_UPDATE_GOLDEN=1";
}

}  // namespace
}  // namespace penstock::node::metrics
