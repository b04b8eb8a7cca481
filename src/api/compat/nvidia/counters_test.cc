#include "api/compat/nvidia/counters.h"

#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::array<CounterField, 6> kFields = {
    {{.name = "DCGM_FI_DEV_SM_CLOCK", .new_name = "DCGM_FI_DEV_SM_CLOCK_HERTZ"},
     {.name = "DCGM_FI_DEV_GPU_TEMP", .new_name = "DCGM_FI_DEV_GPU_TEMP_CELSIUS"},
     {.name = "DCGM_FI_DEV_FB_USED"},
     {.name = "DCGM_FI_DRIVER_VERSION", .text = true},
     {.name = "DCGM_FI_DEV_NVSWITCH_TEMP", .unavailable = "NVML knows no switches"},
     {.name = "dcgm_gpu_temp"}}};

base::Result<CounterSelection> Parse(std::string_view text) {
  return ParseCounters(text, "c.csv", kFields);
}

std::vector<MetricRow> RowsOf(std::string_view text) {
  const auto counters = Parse(text);
  EXPECT_TRUE(counters.ok()) << (counters.ok() ? "" : counters.error().message());
  return counters.ok() ? counters->rows : std::vector<MetricRow>();
}

std::string CountersError(std::string_view text) {
  const auto counters = Parse(text);
  return counters.ok() ? "" : counters.error().message();
}

const MetricRow kTemp = {"DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C)."};

TEST(CounterSelection, AreReadAsTheExporterReadsThem) {
  EXPECT_THAT(
      RowsOf("# Format\n# FIELD, type, help\n\n# Clocks,,\nDCGM_FI_DEV_SM_CLOCK,  gauge, SM clock "
             "frequency (in MHz).\n\n"
             "DCGM_FI_DEV_GPU_TEMP ,    gauge, GPU temperature (in C).\nDCGM_FI_DRIVER_VERSION, "
             "label, Driver Version\n"),
      ElementsAre(MetricRow{"DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz)."}, kTemp,
                  MetricRow{"DCGM_FI_DRIVER_VERSION", "label", "Driver Version"}));
}

TEST(CounterSelection, EndWithOrWithoutALineEndOfEitherKind) {
  const std::string row = "DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).";
  for (const std::string& text :
       {row, row + "\n", row + "\r\n", "\r\n# x\r\n" + row + "\r\n\r\n", row + "\r"})
    EXPECT_THAT(RowsOf(text), ElementsAre(kTemp)) << text;
}

TEST(CounterSelection, QuotesAreTakenAsGoTakesThem) {
  EXPECT_THAT(RowsOf("DCGM_FI_DEV_GPU_TEMP,gauge,\"hot, \"\"very\"\" hot\"\n"),
              ElementsAre(MetricRow{"DCGM_FI_DEV_GPU_TEMP", "gauge", "hot, \"very\" hot"}));
  EXPECT_THAT(RowsOf("\"DCGM_FI_DEV_GPU_TEMP\",\"gauge\",\"two\r\nlines\"\n"),
              ElementsAre(MetricRow{"DCGM_FI_DEV_GPU_TEMP", "gauge", "two\nlines"}));
  EXPECT_THAT(RowsOf("DCGM_FI_DEV_GPU_TEMP,gauge,\"# no comment\n# nor this\"\n"),
              ElementsAre(MetricRow{"DCGM_FI_DEV_GPU_TEMP", "gauge", "# no comment\n# nor this"}));
  EXPECT_THAT(RowsOf("DCGM_FI_DEV_GPU_TEMP,gauge,\n"),
              ElementsAre(MetricRow{"DCGM_FI_DEV_GPU_TEMP", "gauge", ""}));
}

TEST(CounterSelection, SayInWhichLineWhatIsWrongAndWhatToDo) {
  const std::array<std::pair<std::string_view, const char*>, 25> cases = {{
      {"DCGM_FI_DEV_GPU_TMEP, gauge, x",
       "c.csv:1: there is no field \"DCGM_FI_DEV_GPU_TMEP\"; did you mean "
       "\"DCGM_FI_DEV_GPU_TEMP\"?"},
      {"# a\n\nDCGM_NOTHING_LIKE_IT_AT_ALL_ANYWHERE, gauge, x",
       "c.csv:3: there is no field \"DCGM_NOTHING_LIKE_IT_AT_ALL_ANYWHERE\"; `penstock"},
      {"150, gauge, x", "fields are given by name, not by number"},
      {"dcgm_fi_dev_gpu_temp, gauge, x", "there is no field"},
      {"\tDCGM_FI_DEV_GPU_TEMP, gauge, x", "contains a tab; only spaces may surround"},
      {"DCGM_FI_DEV_GPU_TEMP, gague, x",
       "c.csv:1: type \"gague\" is none of gauge, counter, label; did you mean \"gauge\"?"},
      {"DCGM_FI_DEV_GPU_TEMP, Gauge, x", "did you mean \"gauge\"?"},
      {"DCGM_FI_DEV_GPU_TEMP, histogram, x", "a field has one value; write gauge"},
      {"DCGM_FI_DEV_GPU_TEMP, , x", "type \"\" is none of"},
      {"DCGM_FI_DRIVER_VERSION, gauge, x",
       "is text, which a gauge cannot show; its type must be label"},
      {"DCGM_FI_DEV_GPU_TEMP, gauge", "has 2 fields; a row has three: FIELD, type, help"},
      {"DCGM_FI_DEV_GPU_TEMP", "has 1 field; a row has three"},
      {"DCGM_FI_DEV_GPU_TEMP, gauge, hot, or cold",
       "has 4 fields; a row has three: FIELD, type, help; a help with commas must be quoted"},
      {"   ", "contains only spaces"},
      {"  # comment", "the # of a comment must be the first character of its line"},
      {", gauge, x", "has no field before the first comma"},
      {"DCGM_FI_DEV_GPU_TEMP, gauge, \"hot, or cold\"",
       "c.csv:1: has a quote in a field that does not begin with one"},
      {"DCGM_FI_DEV_GPU_TEMP,gauge,\"hot\" or cold",
       "c.csv:1: a quoted field does not end with a quote before its comma"},
      {"\nDCGM_FI_DEV_GPU_TEMP,gauge,\"hot\nand so on", "c.csv:2: a quoted field does not end"},
      {"DCGM_FI_DEV_GPU_TEMP, gauge, h\x01t", "c.csv:1: the help contains a control character"},
      {"DCGM_FI_DEV_GPU_TEMP, gauge, ok\nDCGM_FI_DEV_FB_USED, gauge, \xff",
       "c.csv:2: is not UTF-8; save the file as UTF-8"},
      {"", "c.csv: has no row; write FIELD, type, help"},
      {"# nothing\n\n", "c.csv: has no row"},
      {"version: 1\nmetrics:\n", "c.csv:1: has 1 field"},
      {"\xff\xfe\x44\x00", "is not UTF-8"},
  }};
  for (const auto& [text, wanted] : cases) {
    EXPECT_THAT(CountersError(text), HasSubstr(wanted)) << text;
    EXPECT_THAT(CountersError(text), StartsWith("c.csv:")) << text;
  }
}

TEST(CounterSelection, ReportAllThatIsWrongAtOnce) {
  EXPECT_EQ(CountersError("DCGM_FI_DEV_GPU_TMEP, gague, x\nDCGM_FI_DEV_GPU_TEMP, gauge, "
                          "x\nDCGM_FI_DEV_FB_USED, gauge\n"),
            "c.csv:1: type \"gague\" is none of gauge, counter, label; did you mean "
            "\"gauge\"?\nc.csv:1: there is no field \"DCGM_FI_DEV_GPU_TMEP\"; did you mean "
            "\"DCGM_FI_DEV_GPU_TEMP\"?\nc.csv:3: has 2 fields; a row has three: FIELD, type, help");
}

TEST(CounterSelection, TheFirstRowOfAFieldCounts) {
  const auto counters = Parse(
      "DCGM_FI_DEV_GPU_TEMP, gauge, one\nDCGM_FI_DEV_FB_USED, gauge, x\nDCGM_FI_DEV_GPU_TEMP, "
      "counter, two\n");
  ASSERT_TRUE(counters.ok());
  EXPECT_THAT(counters->rows, ElementsAre(MetricRow{"DCGM_FI_DEV_GPU_TEMP", "gauge", "one"},
                                          MetricRow{"DCGM_FI_DEV_FB_USED", "gauge", "x"}));
  EXPECT_THAT(
      counters->remarks,
      ElementsAre(
          "c.csv:3: DCGM_FI_DEV_GPU_TEMP is already listed (c.csv:1); the first row is used"));
}

TEST(CounterSelection, ANewerNameMeansTheSameField) {
  const auto counters =
      Parse("DCGM_FI_DEV_SM_CLOCK_HERTZ, gauge, one\nDCGM_FI_DEV_SM_CLOCK, gauge, two\n");
  ASSERT_TRUE(counters.ok());
  EXPECT_THAT(counters->rows, ElementsAre(MetricRow{"DCGM_FI_DEV_SM_CLOCK", "gauge", "one"}));
  EXPECT_THAT(
      counters->remarks,
      ElementsAre(
          HasSubstr(
              "c.csv:1: DCGM_FI_DEV_SM_CLOCK_HERTZ is the newer name of DCGM_FI_DEV_SM_CLOCK"),
          HasSubstr("c.csv:2: DCGM_FI_DEV_SM_CLOCK is already listed")));
}

TEST(CounterSelection, AFieldThatIsUnavailableIsARemarkAndStays) {
  const auto counters = Parse("DCGM_FI_DEV_NVSWITCH_TEMP, gauge, x\n");
  ASSERT_TRUE(counters.ok());
  EXPECT_EQ(counters->rows.size(), 1u);
  EXPECT_THAT(
      counters->remarks,
      ElementsAre(
          "c.csv:1: DCGM_FI_DEV_NVSWITCH_TEMP is not available here: NVML knows no switches"));
}

TEST(CounterSelection, AByteOrderMarkIsPassedOver) {
  const auto counters = Parse(
      "\xef\xbb\xbf# saved on another system\r\nDCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in "
      "C).\r\n");
  ASSERT_TRUE(counters.ok()) << counters.error().message();
  EXPECT_THAT(counters->rows, ElementsAre(kTemp));
  EXPECT_THAT(counters->remarks, ElementsAre(HasSubstr("c.csv:1: begins with a byte order mark")));
}

TEST(CounterSelection, AHugeOrHopelessFileIsRefusedInAFewLines) {
  EXPECT_THAT(CountersError(std::string(kLongestCounters + 1, '#')),
              HasSubstr("c.csv: is longer than 1 MiB; is it the right file?"));
  EXPECT_THAT(CountersError("DCGM_FI_DEV_GPU_TEMP, gauge, " + std::string(5000, 'x')),
              HasSubstr("the help is longer than 4096 bytes"));
  std::string hopeless;
  for (int i = 0; i < 50'000; ++i) hopeless += "%PDF-1.4 x\n";
  const std::string error = CountersError(hopeless);
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 20);
  EXPECT_THAT(error, HasSubstr("... and more; only the first 20 are shown"));
}

TEST(CounterSelection, InADocumentAreHeldAgainstTheSameFields) {
  const std::vector<MetricRow> rows = {{"DCGM_FI_DEV_GPU_TEMP", "gauge", ""},
                                       {"DCGM_FI_DEV_GPU_TMEP", "gauge", ""}};
  EXPECT_EQ(CheckCounters(rows, "telemetry.counters", kFields).error().message(),
            "telemetry.counters[1]: there is no field \"DCGM_FI_DEV_GPU_TMEP\"; did you mean "
            "\"DCGM_FI_DEV_GPU_TEMP\"?");
  EXPECT_THAT(CheckCounters({}, "telemetry.counters", kFields)->rows, IsEmpty());
}

TEST(CounterSelection, AreReportedFromOtherKindsOfFile) {
  for (const char* text :
       {"DCGM_FI_DEV_GPU_TEMP, gauge, x\n", "# a: b\n\ndcgm_gpu_temp,gauge,x",
        "\"DCGM_FI_DEV_GPU_TEMP\",gauge,x", "\xef\xbb\xbf# x\r\nDCGM_FI_DEV_GPU_TEMP, gauge, x",
        "DCGM_FI_DEV_GPU_TEMP\n", "DCGM_FI_DEV_GPU_TEMP gauge x, y\n"})
    EXPECT_EQ(LooksLikeCounters(text),
              std::string_view(text).find("gauge x, y") == std::string_view::npos)
        << text;
  for (const char* text :
       {"", "# only a comment\n", "version: v1\n", "{\"version\": \"v1\", \"flags\": {}}",
        "apiVersion: x, y\n", "- a, b\n", "---\nversion: v1\n"})
    EXPECT_FALSE(LooksLikeCounters(text)) << text;
}

}  // namespace
}  // namespace penstock::api::compat
