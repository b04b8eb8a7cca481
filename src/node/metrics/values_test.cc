#include "node/metrics/values.h"

#include <limits>

#include <gtest/gtest.h>

namespace penstock::node::metrics {
namespace {

using device::ExporterField;
using device::Number;
using device::Unit;

TEST(Values, BaseUnitsAreExact) {
  EXPECT_EQ(InBaseUnit(std::uint64_t{9007199254740993}, Unit::kBytes),
            Number(std::uint64_t{9007199254740993}));
  EXPECT_EQ(InBaseUnit(std::uint64_t{3}, Unit::kKibibytes), Number(std::uint64_t{3072}));
  EXPECT_EQ(InBaseUnit(std::uint64_t{1410}, Unit::kMegahertz), Number(std::uint64_t{1410000000}));
  EXPECT_EQ(InBaseUnit(std::uint64_t{61234}, Unit::kMilliwatts), Number(61.234));
  EXPECT_EQ(InBaseUnit(std::uint64_t{37}, Unit::kPercent), Number(0.37));
  EXPECT_EQ(InBaseUnit(0.5, Unit::kRatio), Number(0.5));
  EXPECT_EQ(InBaseUnit(std::numeric_limits<std::uint64_t>::max(), Unit::kKibibytes),
            Number(18446744073709551615.0 * 1024));
}

TEST(Values, AnExportersValuesAreWrittenAsItWritesThem) {
  EXPECT_EQ(AsExporter(std::uint64_t{1410}, ExporterField{.new_divisor = 1e-6}, false), "1410");
  EXPECT_EQ(AsExporter(std::uint64_t{1410}, ExporterField{.new_divisor = 1e-6}, true),
            "1410000000");
  EXPECT_EQ(AsExporter(std::uint64_t{61234}, ExporterField{.divisor = 1000, .real = true}, false),
            "61.234000");
  EXPECT_EQ(AsExporter(std::uint64_t{42949672959}, ExporterField{.divisor = 1048576}, false),
            "40959")
      << "whole, without its fraction";
  EXPECT_EQ(
      AsExporter(std::uint64_t{37}, ExporterField{.new_divisor = 100, .new_real = true}, true),
      "0.370000");
  EXPECT_EQ(AsExporter(1234.9, ExporterField{}, false), "1234");
  EXPECT_EQ(AsExporter(0.25, ExporterField{.real = true}, false), "0.250000");
}

TEST(Values, WhatCannotBeWrittenIsNotWritten) {
  EXPECT_EQ(AsExporter(std::numeric_limits<double>::quiet_NaN(), ExporterField{}, false), "");
  EXPECT_EQ(AsExporter(std::numeric_limits<double>::infinity(), ExporterField{.real = true}, false),
            "");
  EXPECT_EQ(AsExporter(1e300, ExporterField{}, false), "");
  EXPECT_EQ(AsExporter(1e300, ExporterField{.real = true}, false).size(), 308u);
}

}  // namespace
}  // namespace penstock::node::metrics
