// Tests that the counters files shipped with dcgm-exporter fit the known fields.
#include "backend/counter_fields.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/all.h"
#include "base/core/strings.h"
#include "base/testing/build_tree.h"
#include "os/core/file.h"

namespace penstock::backend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Shipped(const std::string& name) {
  auto text =
      os::ReadFile(base::SourcePath("src/backend/nvidia/testdata/dcgm-exporter/") + name, 1u << 20);
  EXPECT_TRUE(text.ok()) << name;
  return text.value_or("");
}

api::compat::CounterSelection Loaded(const std::string& text, const std::string& name) {
  auto counters = api::compat::ParseCounters(text, name, CounterFields());
  EXPECT_TRUE(counters.ok()) << (counters.ok() ? "" : counters.error().message());
  return counters.ok() ? *std::move(counters) : api::compat::CounterSelection{};
}

/// Returns the text with commented-out rows enabled.
std::string Uncommented(const std::string& text) {
  std::string all;
  for (const std::string& line : base::Split(text, '\n'))
    all +=
        (line.starts_with("# DCGM_") || line.starts_with("# dcgm_") ? line.substr(2) : line) + "\n";
  return all;
}

TEST(CounterFields, AreNamedOnceEach) {
  std::set<std::string_view> names;
  for (const auto& field : CounterFields())
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
  EXPECT_GT(names.size(), 300u);
}

TEST(CounterFields, TheExportersOwnFilesAreTakenAsTheyAre) {
  for (const char* name : {"default-counters.csv", "dcp-metrics-included.csv"}) {
    const auto counters = Loaded(Shipped(name), name);
    EXPECT_EQ(counters.rows.size(), 26u) << name;
    EXPECT_THAT(counters.remarks, IsEmpty()) << name;
  }
}

// The file has two rows twice, and the exporter shows them twice.
TEST(CounterFields, TheFileOfTheOldNamesIsTakenAsItIs) {
  const auto counters = Loaded(Shipped("1.x-compatibility-metrics.csv"), "1.x.csv");
  EXPECT_EQ(counters.rows.size(), 20u);
  EXPECT_THAT(counters.remarks,
              ElementsAre(HasSubstr("dcgm_fi_prof_pcie_tx_bytes is already listed"),
                          HasSubstr("dcgm_fi_prof_pcie_rx_bytes is already listed")));
}

TEST(CounterFields, WhatTheFilesHaveCommentedOutCanBeSwitchedOn) {
  for (const char* name :
       {"default-counters.csv", "dcp-metrics-included.csv", "1.x-compatibility-metrics.csv"}) {
    const std::string all = Uncommented(Shipped(name));
    EXPECT_GT(Loaded(all, name).rows.size(), Loaded(Shipped(name), name).rows.size()) << name;
  }
}

// Without a counters file, the page is that of the exporter's image.
TEST(CounterFields, TheBuiltInListIsTheExportersDefault) {
  const device::Exporter* exporter = backend::FindDialect("nvidia")->exporter();
  ASSERT_NE(exporter, nullptr);
  std::set<std::string> built_in, shipped;
  for (const auto& row : exporter->DefaultRows()) built_in.insert(row.field + " " + row.type);
  for (const auto& row : Loaded(Shipped("dcp-metrics-included.csv"), "dcp").rows)
    shipped.insert(row.field + " " + row.type);
  EXPECT_EQ(built_in, shipped);
}

}  // namespace
}  // namespace penstock::backend
