#include "protocol/engine/cri/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::protocol::engine::cri {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The engines' answers, shortened to the relevant parts: containerd 1.7.24 and 1.6.20 of Debian, as
// recorded.
constexpr char kContainerdOn[] =
    R"({"containerd":{"snapshotter":"overlayfs","runtimes":{"runc":{"options":{"SystemdCgroup":true}}}},)"
    R"("enableCDI":true,"cdiSpecDirs":["/etc/cdi","/var/run/cdi"],"rootDir":"/var/lib/x"})";
constexpr char kContainerdOff[] =
    R"({"enableCDI":false,"cdiSpecDirs":["/etc/cdi","/var/run/cdi"]})";
constexpr char kContainerdOld[] =
    R"({"containerd":{"snapshotter":"overlayfs"},"netnsMountsUnderStateDir":false})";

TEST(EngineAbilities, ContainerdReportsWhetherCdiIsOn) {
  const EngineAbilities on = FromAnswers("containerd", "1.7.24~ds1", kContainerdOn);
  EXPECT_EQ(on.cdi, Cdi::kOn);
  EXPECT_EQ(on.why, "enable_cdi = true");
  EXPECT_EQ(on.version, "1.7.24");
  EXPECT_EQ(Describe(on), "containerd 1.7.24");
  EXPECT_THAT(on.cdi_folders, ElementsAre("/etc/cdi", "/var/run/cdi"));
  const EngineAbilities off = FromAnswers("containerd", "v1.7.24", kContainerdOff);
  EXPECT_EQ(off.cdi, Cdi::kOff);
  EXPECT_EQ(off.why, "enable_cdi = false");
  EXPECT_EQ(FromAnswers("containerd", "2.1.3", kContainerdOff).cdi, Cdi::kOff);
}

TEST(EngineAbilities, AContainerdThatDoesNotReportIsKnownByItsVersion) {
  const EngineAbilities old = FromAnswers("containerd", "1.6.20~ds1", kContainerdOld);
  EXPECT_EQ(old.cdi, Cdi::kNever);
  EXPECT_EQ(old.why, "containerd supports it from 1.7 on");
  EXPECT_THAT(old.cdi_folders, IsEmpty());
  EXPECT_EQ(FromAnswers("containerd", "1.7.0", "").cdi, Cdi::kOff);
  EXPECT_EQ(FromAnswers("containerd", "2.0.0", "").cdi, Cdi::kOn);
  EXPECT_EQ(FromAnswers("containerd", "2.2.0", R"({"enableCDI":null})").cdi, Cdi::kOn);
  EXPECT_EQ(FromAnswers("containerd", "1.10.0", "").cdi, Cdi::kOff);
}

TEST(EngineAbilities, CrioHasItAlwaysOnOnceItHasIt) {
  const EngineAbilities crio =
      FromAnswers("cri-o", "1.31.1", R"({"sandboxImage":"registry.k8s.io/pause:3.10"})");
  EXPECT_EQ(crio.cdi, Cdi::kOn);
  EXPECT_THAT(crio.cdi_folders, ElementsAre("/etc/cdi", "/var/run/cdi"));
  EXPECT_TRUE(crio.cdi_by_field);
  EXPECT_EQ(FromAnswers("cri-o", "1.23.5", "").cdi, Cdi::kNever);
}

TEST(EngineAbilities, TheFirstVersionsThatHaveCdiReadAnnotationsAlone) {
  EXPECT_FALSE(FromAnswers("containerd", "1.7.1", kContainerdOn).cdi_by_field);
  EXPECT_TRUE(FromAnswers("containerd", "1.7.2", kContainerdOn).cdi_by_field);
  EXPECT_TRUE(FromAnswers("containerd", "2.0", kContainerdOn).cdi_by_field);
  EXPECT_FALSE(FromAnswers("cri-o", "1.27.9", "").cdi_by_field);
  EXPECT_EQ(FromAnswers("cri-o", "1.27.9", "").cdi, Cdi::kOn);
  EXPECT_TRUE(FromAnswers("cri-o", "1.28.0", "").cdi_by_field);
}

TEST(EngineAbilities, WhatCannotBeReadIsNotKnown) {
  EXPECT_EQ(FromAnswers("docker", "27.5.1", "").cdi, Cdi::kUnknown);
  EXPECT_EQ(FromAnswers("containerd", "master-1a2b3c", "").cdi, Cdi::kUnknown);
  EXPECT_EQ(FromAnswers("containerd", "master-1a2b3c", "").version, "master-1a2b3c");
  EXPECT_EQ(FromAnswers("containerd", "master", kContainerdOn).cdi, Cdi::kOn);
  EXPECT_EQ(FromAnswers("cri-o", "", "").cdi, Cdi::kUnknown);
  for (const char* bad :
       {"{", "[]", "null", "\"x\"", R"({"enableCDI":"true","cdiSpecDirs":"/etc/cdi"})",
        R"({"cdiSpecDirs":[1,null]})"})
    EXPECT_EQ(FromAnswers("containerd", "1.7.24", bad).cdi, Cdi::kOff) << bad;
}

TEST(EngineAbilities, LooksInItsFoldersWhateverTheyAreCalled) {
  EngineAbilities engine{.cdi_folders = {"/etc/cdi", "/run/cdi/"}};
  EXPECT_TRUE(ReadsFolder(engine, "/var/run/cdi"));
  EXPECT_TRUE(ReadsFolder(engine, "/run/cdi"));
  EXPECT_TRUE(ReadsFolder(engine, "/etc/cdi/"));
  EXPECT_FALSE(ReadsFolder(engine, "/var/run/cdi2"));
  engine.cdi_folders.clear();
  EXPECT_TRUE(ReadsFolder(engine, "/anywhere"));
}

TEST(EngineTest, AnEngineReadsGroupsFromTheVersionOfItsLibraryOn) {
  EXPECT_FALSE(FromAnswers("containerd", "1.7.15", kContainerdOn).cdi_groups);
  EXPECT_TRUE(FromAnswers("containerd", "1.7.16", kContainerdOn).cdi_groups);
  EXPECT_TRUE(FromAnswers("containerd", "v2.1.4", kContainerdOn).cdi_groups);
  EXPECT_FALSE(FromAnswers("cri-o", "1.29.1", "").cdi_groups);
  EXPECT_TRUE(FromAnswers("cri-o", "1.30.0", "").cdi_groups);
  EXPECT_FALSE(FromAnswers("containerd", "master-1a2b3c", kContainerdOn).cdi_groups)
      << "a specification that it cannot read would give containers nothing";
}

}  // namespace
}  // namespace penstock::protocol::engine::cri
