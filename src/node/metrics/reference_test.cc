// Tests that docs/reference/metrics.md contains the catalogue's tables.
#include <cstdlib>

#include <gtest/gtest.h>

#include "api/metrics.h"
#include "base/testing/build_tree.h"
#include "os/core/file.h"

namespace penstock::node::metrics {
namespace {

/// The page with its tables replaced by the expected ones.
std::string WithTables(std::string page) {
  for (int i = 0; i <= static_cast<int>(api::kLastMetricGroup); ++i) {
    const auto group = static_cast<api::MetricGroup>(i);
    const std::string begin = "<!-- families: " + std::string(ToString(group)) + " -->\n",
                      end = "<!-- end -->";
    const auto from = page.find(begin);
    const auto to = page.find(end, from);
    if (from == std::string::npos || to == std::string::npos)
      return "there is no table of " + begin;
    page.replace(from + begin.size(), to - from - begin.size(), api::MetricsTable(group));
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
