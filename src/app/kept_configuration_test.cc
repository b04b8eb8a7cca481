#include "app/kept_configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/core/testing/must.h"
#include "os/testing/temporary_folder.h"

namespace penstock::app {
namespace {

using testing::HasSubstr;

TEST(KeptConfiguration, ReadsWhatItWrites) {
  const KeptConfiguration kept = {
      .file = KeptText{"/etc/node.yaml", "file /etc/node.yaml", "labels: {}\n",
                       "2026-11-21T03:42:00.123Z"},
      .config_map =
          KeptText{"gpu/shares", "ConfigMap gpu/shares, key a", std::string(3u << 20, '\x01'), ""}};
  const auto back = Must(DecodeKept(EncodeKept(kept), "f"));
  EXPECT_EQ(back, kept);
  EXPECT_EQ(*DecodeKept(EncodeKept({}), "f"), KeptConfiguration{});
}

TEST(KeptConfiguration, SaysWhatTheAgentHadLast) {
  const std::string kind = "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n";
  const auto last = [](const KeptConfiguration& kept) {
    return LastConfigs({.flags = {{"--cdi-root", "/flag"}}}, kept);
  };
  EXPECT_TRUE(last({}).empty());
  KeptConfiguration kept = {.file = KeptText{.from = "node.yaml", .text = kind + R"(
cdi: {install: /own}
labels: {featuresFile: /own/file}
cluster: {config: {configMap: shares, namespace: gpu}}
)"}};
  ASSERT_EQ(last(kept).size(), 1u);
  EXPECT_EQ(last(kept).front().labels.features_file, "/own/file");
  EXPECT_EQ(last(kept).front().paths.cdi_root, "/flag");
  kept.config_map = KeptText{.from = "gpu/before",
                             .text = kind +
                                     "cdi: {install: /map}\n"
                                     "labels: {featuresFile: /map/file}\n"};
  EXPECT_EQ(last(kept).size(), 1u) << "that ConfigMap is not configured any more";
  kept.config_map->from = "gpu/shares";
  ASSERT_EQ(last(kept).size(), 2u);
  EXPECT_EQ(last(kept).back().labels.features_file, "/map/file");
  EXPECT_EQ(last(kept).back().cdi.install, "/own") << "cannot be set in a ConfigMap";
  kept.config_map->text = "version: v1\nflags: {migStrategy: none}\n";
  ASSERT_EQ(last(kept).size(), 2u);
  EXPECT_EQ(last(kept).back().labels.features_file, "/own/file")
      << "a file of the device plugin counts on top of the agent's own";
  kept.file->text = "labels: [";
  EXPECT_TRUE(last(kept).empty());
}

class ResolveForStartTest : public testing::Test {
 protected:
  ResolveForStartTest() {
    settings_.config_file = folder_ / "node.yaml";
    settings_.flags["--state-dir"] = folder_.path();
    Keep(settings_.config_file);
  }
  void Keep(const std::string& from) {
    folder_.Write("configuration.json",
                  EncodeKept({.file = KeptText{from, "", kGood, "then"}, .config_map = {}}));
  }

  const std::string kKind = "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n";
  const std::string kGood = kKind + "labels: {timestamp: false}\n";
  os::TemporaryFolder folder_;
  Settings settings_;
};

TEST_F(ResolveForStartTest, AGoodFileCountsItself) {
  folder_.Write("node.yaml", kKind);
  const auto resolved = Must(ResolveForStart(settings_));
  EXPECT_TRUE(resolved.config.labels.timestamp);
  EXPECT_EQ(resolved.problem, "");
}

TEST_F(ResolveForStartTest, OfABadFileOrNoneWhatItSaidLastCounts) {
  for (const std::string& text : {kKind + "lables: {}\n", kKind + "labels: [", std::string()}) {
    folder_.Write("node.yaml", text);
    if (text.empty()) { ASSERT_EQ(::unlink(settings_.config_file.c_str()), 0); }
    const auto resolved = Must(ResolveForStart(settings_));
    EXPECT_FALSE(resolved.config.labels.timestamp);
    EXPECT_THAT(resolved.problem, HasSubstr("node.yaml"));
    EXPECT_THAT(resolved.origin, HasSubstr("as last applied (then)"));
  }
}

TEST_F(ResolveForStartTest, WhatAnotherFileSaidDoesNotCount) {
  Keep("/somewhere/else.yaml");
  folder_.Write("node.yaml", kKind + "lables: {}\n");
  EXPECT_THAT(ResolveForStart(settings_).error().message(), HasSubstr("did you mean \"labels\""));
}

}  // namespace
}  // namespace penstock::app
