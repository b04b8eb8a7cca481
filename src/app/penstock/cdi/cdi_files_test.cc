// Tests reading the specification files of a machine and finding what they name that does not
// exist.
#include "app/penstock/cdi/cdi_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/penstock/cdi/cdi_verbs.h"
#include "base/core/testing/must.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::app {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

api::cdi::Spec SpecWith(api::cdi::CdiEdits edits) {
  return {"", "nvidia.com/gpu", {}, {{"0", {}, std::move(edits)}}, {}};
}

TEST(SpecFiles, AreThoseOfAllFoldersTheLaterOnesOfHigherPriority) {
  const os::TemporaryFolder folder;
  folder.Write("etc/a.json", "a");
  folder.Write("etc/b.yml", "not read by anybody");
  folder.Write("run/c.yaml", "c");
  const auto files = ReadSpecFolders({folder / "etc", folder / "run", folder / "none"});
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, folder / "etc/a.json");
  EXPECT_EQ(files[0].priority, 0);
  EXPECT_EQ(*files[1].text, "c");
  EXPECT_EQ(files[1].priority, 1);
}

TEST(Missing, IsNothingWhereAllIsThere) {
  api::cdi::CdiEdits edits;
  edits.nodes = {{.path = "/dev/null"},
                 {.path = "/dev/gpu", .host_path = "/dev/zero"},
                 {.path = "/dev/none", .type = "c", .major = 1}};
  edits.mounts = {{"/etc", "/etc", {}, ""}, {"tmpfs", "/run/x", {}, "tmpfs"}};
  edits.hooks = {{"createContainer", "/bin/sh", {}, {}, {}},
                 {"startContainer", "/only/in/the/container", {}, {}, {}}};
  EXPECT_THAT(Missing(SpecWith(edits)), IsEmpty());
}

TEST(Missing, NamesEachThingOnceWithWhatIsWrong) {
  const os::TemporaryFolder folder;
  folder.Link("link", "/dev/null");
  folder.Write("hook", "");
  api::cdi::CdiEdits edits;
  edits.nodes = {{.path = "/dev/none"},
                 {.path = "/dev/none"},
                 {.path = "/dev/a", .host_path = folder / "link"},
                 {.path = folder / "hook"}};
  edits.mounts = {{"/none/lib", "/lib", {}, ""}};
  edits.hooks = {{"createContainer", "/none/hook", {}, {}, {}},
                 {"prestart", folder / "hook", {}, {}, {}}};
  EXPECT_THAT(
      Missing(SpecWith(edits)),
      UnorderedElementsAre(
          "/none/lib, the source of a mount, does not exist",
          "device file /dev/none does not exist",
          "device file " + folder / "link" + " is a symbolic link, which engines do not follow",
          folder / "hook" + " is not a device file", "the hook program /none/hook does not exist",
          "the hook program " + folder / "hook" + " cannot be executed"));
}

/// Runs `penstock cdi validate` on files in two folders and captures its output and exit status.
class ValidateCdiTest : public testing::Test {
 protected:
  int Validate(const std::vector<std::string>& files = {}) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const command::Shown shown =
        Must(ValidateCdi(common_, files, {folder_ / "etc", folder_ / "run"}));
    output_ = testing::internal::GetCapturedStdout() + shown.text;
    errors_ = testing::internal::GetCapturedStderr();
    return shown.status;
  }
  void WriteGpu(const std::string& name) const {
    folder_.Write(name, api::cdi::ToYaml(SpecWith({.nodes = {{.path = "/dev/null"}}})));
  }

  const os::TemporaryFolder folder_;
  Common common_;
  std::string output_, errors_;
};

TEST_F(ValidateCdiTest, FilesThatAreWellEachByItselfAreJudgedTogether) {
  WriteGpu("run/a.yaml");
  EXPECT_EQ(Validate(), 0);
  EXPECT_EQ(output_, folder_ / "run/a.yaml" + ": OK (nvidia.com/gpu, 1 devices, version 0.5.0)\n");
  EXPECT_EQ(errors_, "");

  WriteGpu("run/b.yaml");
  EXPECT_EQ(Validate(), 1);
  EXPECT_EQ(errors_, folder_ / "run/a.yaml" + " and " + folder_ / "run/b.yaml" +
                         " both define nvidia.com/gpu=0, so that no container can use it; remove "
                         "one of the files\n");
  EXPECT_EQ(Validate({folder_ / "run/a.yaml", folder_ / "run/b.yaml"}), 0)
      << "files that are named need not lie in one folder";

  ASSERT_EQ(std::remove((folder_ / "run/b.yaml").c_str()), 0);
  WriteGpu("etc/c.yaml");
  EXPECT_EQ(Validate(), 1);
  EXPECT_EQ(errors_, folder_ / "run/a.yaml" + " hides nvidia.com/gpu=0 of " +
                         folder_ / "etc/c.yaml" + "; remove the unwanted one\n");
}

TEST_F(ValidateCdiTest, WhatIsWrongWithAFileIsSaidOnce) {
  folder_.Write("run/a.yaml", "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n");
  WriteGpu("run/b.yaml");
  WriteGpu("run/c.yaml");
  common_.output.format = "json";
  EXPECT_EQ(Validate(), 1);
  const auto said = nlohmann::json::parse(output_);
  ASSERT_EQ(said["files"].size(), 3u);
  EXPECT_EQ(said["files"][0]["valid"], false);
  EXPECT_FALSE(said["files"][0]["problems"].empty());
  EXPECT_EQ(said["files"][1]["valid"], true);
  ASSERT_EQ(said["problems"].size(), 1u) << output_;
  EXPECT_THAT(std::string(said["problems"][0]), HasSubstr("both define nvidia.com/gpu=0"));
}

TEST_F(ValidateCdiTest, FoldersWithoutASpecificationAreNamed) {
  EXPECT_EQ(Validate(), 0);
  EXPECT_EQ(errors_, "penstock cdi validate: there is no specification in " + folder_ / "etc" +
                         ", " + folder_ / "run" + "\n");
}

TEST(TransformCdiRoot, WritesTheFormThatTheNameSaysAndLeavesTheOldFileWhereItFails) {
  const os::TemporaryFolder folder;
  folder.Write("in.yaml", api::cdi::ToYaml(SpecWith({.mounts = {{"/driver/a", "/a", {}, ""}}})));
  CdiRootChange change{
      .from = "/driver", .to = "/", .input = folder / "in.yaml", .output = folder / "out.json"};
  EXPECT_TRUE(TransformCdiRoot(change).ok());
  EXPECT_THAT(*os::ReadFile(folder / "out.json"), HasSubstr("\"hostPath\": \"/a\""));
  change.output = folder / "plain";
  EXPECT_TRUE(TransformCdiRoot(change).ok());
  const std::string written = *os::ReadFile(folder / "plain.yaml");
  EXPECT_THAT(written, testing::StartsWith("---\ncdiVersion: 0.5.0\n"));

  folder.Write("in.yaml", "cdiVersion: 0.5.0\n");
  EXPECT_FALSE(TransformCdiRoot(change).ok());
  EXPECT_EQ(*os::ReadFile(folder / "plain.yaml"), written);
}

}  // namespace
}  // namespace penstock::app
