// The configuration of AMD's Device Metrics Exporter, in order and wrong.
#include "api/compat/amd/metrics_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr CounterField kFields[] = {
    {.name = "gpu_clock"},
    {.name = "gpu_health"},
    {.name = "gpu_prof_sm_active", .unavailable = "it needs a profiler"},
    {.name = "gpu_uuid", .text = true},
    {.name = "card_series", .text = true},
};

Result<MetricsConfig> Read(const std::string& text) {
  return TranslateMetricsConfig(text, "config.json", kFields);
}
MetricsConfig Of(const std::string& gpus) {
  auto read = Read("{\"GPUConfig\": {" + gpus + "}}");
  EXPECT_TRUE(read.ok()) << read.error().message();
  return read.ok() ? *std::move(read) : MetricsConfig{};
}
std::string WrongIn(const std::string& gpus) {
  const auto read = Read("{\"GPUConfig\": {" + gpus + "}}");
  EXPECT_FALSE(read.ok());
  return read.ok() ? "" : read.error().message();
}

TEST(MetricsConfig, AnEmptyOneIsTheDefault) {
  for (const char* text : {"{}", R"({"GPUConfig": {}})", R"({"GPUConfig": {"Fields": []}})"}) {
    const auto read = Read(text);
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_THAT(read->rows, IsEmpty());
    EXPECT_EQ(read->settings, ExporterSettings{});
    EXPECT_THAT(read->remarks, IsEmpty());
  }
}

TEST(MetricsConfig, ChoosesFieldsAndLabelsInAnyCase) {
  const MetricsConfig config =
      Of(R"("fields": ["GPU_CLOCK", "gpu_health", "GPU_CLOCK"], "Labels": ["gpu_uuid", "POD_UUID",
          "HOSTNAME", "GPU_UUID"])");
  EXPECT_THAT(config.rows,
              ElementsAre(MetricRow{"gpu_clock", "gauge", ""}, MetricRow{"gpu_health", "gauge", ""},
                          MetricRow{"gpu_uuid", "label", ""}));
  EXPECT_TRUE(config.settings.pod_uid);
  EXPECT_THAT(config.remarks,
              ElementsAre("config.json: GPUConfig.fields: is read as \"Fields\" (line 1)"));
}

TEST(MetricsConfig, HasLabelsPrefixPodLabelsDevicesAndPort) {
  const auto read = Read(R"({"ServerPort": 5000, "GPUConfig": {"Selector": "0,2-3, 7",
      "CustomLabels": {"CLUSTER_NAME": "west"}, "ExtraPodLabels": {"WORKLOAD_ID": "amd.com/workload"}},
      "CommonConfig": {"MetricsFieldPrefix": "amd_"}})");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_THAT(read->settings.labels, ElementsAre(Pair("cluster_name", "west")));
  EXPECT_THAT(read->settings.holder_labels, ElementsAre(Pair("workload_id", "amd.com/workload")));
  EXPECT_THAT(read->settings.devices, ElementsAre(0, 2, 3, 7));
  EXPECT_EQ(read->settings.prefix, "amd_");
  EXPECT_EQ(read->port, 5000);
  EXPECT_THAT(read->remarks, IsEmpty());
}

TEST(MetricsConfig, NamesEveryFieldThatShowsNothing) {
  const MetricsConfig config = Of(R"("Fields": ["GPU_CLOK", "GPU_CLOCK", "GPU_PROF_SM_ACTIVE",
      "GPU_UUID"])");
  EXPECT_THAT(config.remarks,
              ElementsAre(AllOf(HasSubstr("config.json: GPUConfig.Fields[0]: \"GPU_CLOK\""),
                                HasSubstr("penstock metrics list")),
                          AllOf(HasSubstr("Fields[2]"), HasSubstr("it needs a profiler")),
                          AllOf(HasSubstr("Fields[3]"), HasSubstr("\"GPU_UUID\""))))
      << "a label is no field";
  EXPECT_THAT(config.rows, SizeIs(2));
}

TEST(MetricsConfig, KeysThatItDoesNotKnowAreRemarks) {
  const auto read = Read(R"({"GPUConfig": {"Feilds": [], "HealthThresholds": {}}, "Fans": 3,
      "NICConfig": {}, "CommonConfig": {"Logging": {"Level": "INFO"}, "Debug": {}}})");
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(
      read->remarks,
      ElementsAre(HasSubstr("Feilds"), HasSubstr("GPUConfig.HealthThresholds: has no effect"),
                  HasSubstr("Fans"), HasSubstr("NICConfig: has no effect"),
                  HasSubstr("CommonConfig.Logging"), HasSubstr("CommonConfig.Debug")));
  for (const std::string& remark : read->remarks)
    EXPECT_THAT(remark, AllOf(testing::StartsWith("config.json: "), HasSubstr("(line ")));
}

// The exporter goes on without these, too.
TEST(MetricsConfig, LeavesOutWhatTheExporterLeavesOut) {
  const auto read =
      Read(R"({"GPUConfig": {"Selector": "one", "Labels": ["COLOUR", "KFD_PROCESS_ID"],
      "CustomLabels": {"POD": "x", "gpu_uuid": "y", "xcc_index": "z",
                       "POD_UUID": "w"}},
      "CommonConfig": {"MetricsFieldPrefix": "9-"}})");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->settings, ExporterSettings{});
  EXPECT_THAT(read->remarks, SizeIs(8));
}

TEST(MetricsConfig, HasAtMostTenCustomLabels) {
  std::string labels;
  for (int i = 0; i < 12; ++i)
    labels += (i > 0 ? ", \"l" : "\"l") + std::to_string(i) + "\": \"v\"";
  const MetricsConfig config = Of("\"CustomLabels\": {" + labels + "}");
  EXPECT_THAT(config.settings.labels, SizeIs(10));
  EXPECT_THAT(config.remarks, SizeIs(2));
}

TEST(MetricsConfig, ManyMistakesMakeFewRemarks) {
  std::string fields = "\"GPU_CLOCK\"";
  for (int i = 0; i < 1000; ++i) fields += ", \"X" + std::to_string(i) + "\"";
  const MetricsConfig config = Of("\"Fields\": [" + fields + "]");
  ASSERT_THAT(config.remarks, SizeIs(21));
  EXPECT_THAT(config.remarks.back(), HasSubstr("980 more"));
}

TEST(MetricsConfig, RefusesWhatNoSeriesCouldHave) {
  std::string fields = "\"X\"", selector = "0-4095";
  for (int i = 0; i < 5000; ++i) fields += ",\"X\"", selector += ",0-4095";
  EXPECT_THAT(WrongIn("\"Fields\": [" + fields + "]"), HasSubstr("more than 1024 names"));
  EXPECT_THAT(Of("\"Selector\": \"" + selector + "\"").settings.devices, testing::IsEmpty());
  EXPECT_THAT(WrongIn(R"("Fields": ["NONE", "SUCH"])"),
              AllOf(HasSubstr("config.json:1:"), HasSubstr("GPUConfig.Fields"), HasSubstr("NONE")));
  EXPECT_THAT(WrongIn(R"("Fields": "GPU_CLOCK")"), HasSubstr("GPUConfig.Fields"));
  EXPECT_THAT(WrongIn(R"("CustomLabels": {"a b": "c"})"), HasSubstr("is no name of a label"));
  EXPECT_THAT(WrongIn(R"("CustomLabels": {"__name__": "c"})"), HasSubstr("is no name of a label"));
  EXPECT_THAT(WrongIn(R"("CustomLabels": {"a": 3})"), HasSubstr("is not a string"));
  EXPECT_THAT(WrongIn("\"CustomLabels\": {\"a\": \"" + std::string(1025, 'x') + "\"}"),
              HasSubstr("1025 bytes"));
  EXPECT_THAT(WrongIn(R"("ExtraPodLabels": {"a": "b c"})"), HasSubstr("no key of a pod's label"));
}

TEST(MetricsConfig, RefusesWhatIsNoConfiguration) {
  for (const char* text :
       {"", "{", "[]", "3", R"({"ServerPort": "high"})", R"({"ServerPort": 70000})",
        R"({"GPUConfig": 1})", R"({"GPUConfig": {}, "GPUConfig": {}})"}) {
    const auto read = Read(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code(), base::Code::kInvalidArgument);
    EXPECT_THAT(read.error().message(), HasSubstr("config.json")) << text;
  }
}

}  // namespace
}  // namespace penstock::api::compat
