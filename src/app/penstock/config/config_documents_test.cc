#include "app/penstock/config/config_documents.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/options.h"

namespace penstock::app {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<ConfigDocument> Found(const std::string& text) {
  auto documents = FindConfigurations(text, "f.yaml");
  EXPECT_TRUE(documents.ok()) << documents.error().message();
  return documents.value_or({});
}

std::string ErrorOf(const std::string& text) {
  const auto documents = FindConfigurations(text, "f.yaml");
  return documents.ok() ? "" : documents.error().message();
}

/// The problems of a document, with their positions.
std::string ProblemsOf(const ConfigDocument& document) {
  const auto resolved =
      ResolveText({.plugin_reading = base::ReadingMode::kStrict}, document.text, document.name);
  return resolved.ok() ? "" : resolved.error().message();
}

const std::string kManifest =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sharing, namespace: gpu}\n";

TEST(ConfigDocuments, APlainFileIsOne) {
  for (const std::string text :
       {"version: v1\n", "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n", "", "- what\n",
        "a: [\n"}) {
    const auto documents = Found(text);
    ASSERT_THAT(documents, SizeIs(1)) << text;
    EXPECT_EQ(documents[0].title, "f.yaml");
    EXPECT_EQ(documents[0].text, text);
  }
}

// Charts have a key `resources` for their pods; the plugin's configurations have the same key.
TEST(ConfigDocuments, ValuesOfChartsAreDistinguished) {
  const std::map<std::string, analysis::Chart> values = {
      {"legacyDaemonsetAPI: null\nmigStrategy: null\nconfig: {map: {}, name: \"\"}\nresources: "
       "{}\ngfd: {enabled: false}\n",
       analysis::Chart::kDevicePlugin},
      {"resources: {limits: {cpu: 1}}\ndevicePlugin: {enabled: true}\ntoolkit: {enabled: true}\n",
       analysis::Chart::kOperator},
      {"penstock: {port: 9400}\nresources: {}\n", analysis::Chart::kPenstock},
      {"image: {repository: a, tag: b}\narguments: []\nresources: {}\nconfig: {enabled: false, "
       "data: \"version: 1\"}\n",
       analysis::Chart::kExporter},
      {"kubernetes: {enablePodLabels: true}\nserviceMonitor: {enabled: true}\nresources: {}\n",
       analysis::Chart::kExporter},
      {"serviceMonitor: {enabled: true}\nresources: {}\n", analysis::Chart::kOther},
      {"image: {repository: nginx}\nresources: {}\n", analysis::Chart::kOther}};
  for (const auto& [text, chart] : values) {
    ASSERT_FALSE(Found(text).empty()) << text;
    EXPECT_EQ(Found(text)[0].chart, chart) << text;
  }
  for (const std::string text :
       {"version: v1\nresources: {gpus: []}\n", "resources: {gpus: []}\n",
        "sharing: {timeSlicing: {}}\n", "version: 1\nmetrics: {file: /x}\n",
        "apiVersion: v1\nkind: Pod\n"})
    EXPECT_EQ(Found(text)[0].chart, analysis::Chart::kNone) << text;
}

TEST(ConfigDocuments, ConfigurationsInValuesKeepTheirPlaces) {
  const auto documents = Found(
      "x: &x {a: 1}\n"
      "y: *x\n"
      "config:\n"
      "  map:\n"
      "    any: |-\n"
      "      version: v1\n"
      "      flag: {}\n"
      "    empty: \"\"\n"
      "gfd: {enabled: true}\n");
  ASSERT_THAT(documents, SizeIs(2));
  EXPECT_EQ(documents[0].chart, analysis::Chart::kDevicePlugin);
  EXPECT_EQ(documents[1].title, "f.yaml: config.map.any");
  EXPECT_EQ(ProblemsOf(documents[1]), "f.yaml:7:7: unknown key \"flag\"; did you mean \"flags\"?");
  const auto exporter = Found(
      "customMetrics: |\n  DCGM_FI_DEV_GPU_TEMP, gauge, hot\nconfig: {data: \"version: 1\"}\n");
  ASSERT_THAT(exporter, SizeIs(3));
  EXPECT_EQ(exporter[1].title, "f.yaml: config.data");
  EXPECT_EQ(exporter[2].text, "DCGM_FI_DEV_GPU_TEMP, gauge, hot\n");
  EXPECT_EQ(exporter[2].name, "f.yaml, customMetrics") << "lines are the text's";
}

TEST(ConfigDocuments, EachKeyOfAConfigMapKeepsItsLinesAndColumns) {
  const auto documents = Found(kManifest +
                               "data:\n"
                               "  any: |-\n"
                               "     version: v1\n"
                               "\n"
                               "     flag: {}\n"
                               "  \"second.yaml\": |\n"
                               "    flags:\n"
                               "      migStrategy: nine\n");
  ASSERT_THAT(documents, SizeIs(2));
  EXPECT_EQ(documents[0].title, "f.yaml: ConfigMap gpu/sharing, key any");
  EXPECT_EQ(ProblemsOf(documents[0]), "f.yaml:8:6: unknown key \"flag\"; did you mean \"flags\"?");
  EXPECT_EQ(documents[1].title, "f.yaml: ConfigMap gpu/sharing, key second.yaml");
  EXPECT_THAT(ProblemsOf(documents[1]), HasSubstr("f.yaml:11:20: flags.migStrategy: \"nine\""));
}

TEST(ConfigDocuments, WhereTheLinesAreNotTheFilesTheKeyIsNamed) {
  const auto documents = Found(kManifest +
                               "data:\n  json: '{\"version\": \"v1\", \"flag\": {}}'\n  folded: "
                               ">\n    version: v1\n    flags: {}\n  empty:\n");
  ASSERT_THAT(documents, SizeIs(3));
  EXPECT_EQ(ProblemsOf(documents[0]),
            "f.yaml, key json:1:19: unknown key \"flag\"; did you mean \"flags\"?");
  EXPECT_THAT(ProblemsOf(documents[1]), HasSubstr("f.yaml, key folded:1:"));
  EXPECT_EQ(ProblemsOf(documents[2]), "");
}

TEST(ConfigDocuments, InAStreamOfManifestsOnlyConfigurationsAreLookedAt) {
  const auto documents = Found("apiVersion: apps/v1\nkind: DaemonSet\n---\n" + kManifest +
                               "data:\n  any: |\n    version: v2\n--- \napiVersion: "
                               "penstock.io/v1alpha1\nkind: NodeConfig\npats: 1\n");
  ASSERT_THAT(documents, SizeIs(2));
  EXPECT_THAT(ProblemsOf(documents[0]), HasSubstr("f.yaml:9:14: version: is \"v2\""));
  EXPECT_EQ(documents[1].title, "f.yaml: NodeConfig");
  EXPECT_THAT(ProblemsOf(documents[1]), HasSubstr("f.yaml:13:1: unknown key \"pats\""));
}

TEST(ConfigDocuments, SaysWhatIsWrongWithTheManifestItself) {
  EXPECT_THAT(ErrorOf(kManifest),
              HasSubstr("f.yaml:1:1: ConfigMap gpu/sharing has no keys below \"data\""));
  EXPECT_THAT(ErrorOf(kManifest + "data: {}\n"), HasSubstr("has no keys"));
  EXPECT_THAT(ErrorOf(kManifest + "data:\n  any:\n    version: v1\n"),
              HasSubstr("f.yaml:6:5: data.any: is a map where text is expected"));
  EXPECT_THAT(ErrorOf(kManifest + "binaryData: {any: dmVyc2lvbjogdjE=}\n"),
              HasSubstr("f.yaml:4:13: binaryData: is not read"));
  EXPECT_THAT(ErrorOf(kManifest + "---\na: [\n"), HasSubstr("f.yaml:"));
}

TEST(ConfigDocuments, AFileOfCountersInAManifestLosesItsIndent) {
  const auto documents =
      Found(kManifest + "data:\n  metrics: |\n    # mine\n    DCGM_FI_DEV_GPU_TEMP, gauge, hot\n");
  ASSERT_THAT(documents, SizeIs(1));
  EXPECT_EQ(documents[0].text, "# mine\nDCGM_FI_DEV_GPU_TEMP, gauge, hot\n");
  EXPECT_EQ(documents[0].name, "f.yaml, key metrics");
}

}  // namespace
}  // namespace penstock::app
