// Specification files of a machine, and what they name that is not on it.
#include "app/penstock/cdi_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/penstock/cdi_verbs.h"
#include "os/core/file.h"
#include "os/temporary_folder.h"

namespace penstock::app {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

api::cdi::Spec SpecWith(api::cdi::Edits edits) { return {"", "nvidia.com/gpu", {}, {{"0", {}, std::move(edits)}}, {}}; }

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
  api::cdi::Edits edits;
  edits.nodes = {{.path = "/dev/null"}, {.path = "/dev/gpu", .host_path = "/dev/zero"}, {.path = "/dev/none", .type = "c", .major = 1}};
  edits.mounts = {{"/etc", "/etc", {}, ""}, {"tmpfs", "/run/x", {}, "tmpfs"}};
  edits.hooks = {{"createContainer", "/bin/sh", {}, {}, {}}, {"startContainer", "/only/in/the/container", {}, {}, {}}};
  EXPECT_THAT(Missing(SpecWith(edits)), IsEmpty());
}

TEST(Missing, NamesEachThingOnceWithWhatIsWrong) {
  const os::TemporaryFolder folder;
  folder.Link("link", "/dev/null");
  folder.Write("hook", "");
  api::cdi::Edits edits;
  edits.nodes = {{.path = "/dev/none"}, {.path = "/dev/none"}, {.path = "/dev/a", .host_path = folder / "link"}, {.path = folder / "hook"}};
  edits.mounts = {{"/none/lib", "/lib", {}, ""}};
  edits.hooks = {{"createContainer", "/none/hook", {}, {}, {}}, {"prestart", folder / "hook", {}, {}, {}}};
  EXPECT_THAT(Missing(SpecWith(edits)),
              UnorderedElementsAre("/none/lib, which is mounted, is not there", "device file /dev/none is not there",
                                   "device file " + folder / "link" + " is a symbolic link, which engines do not follow",
                                   folder / "hook" + " is no device file", "the program of a hook, /none/hook, is not there",
                                   "the program of a hook, " + folder / "hook" + ", cannot be executed"));
}

TEST(TransformCdiRoot, WritesTheFormThatTheNameSaysAndLeavesTheOldFileWhereItFails) {
  const os::TemporaryFolder folder;
  folder.Write("in.yaml", api::cdi::ToYaml(SpecWith({.mounts = {{"/driver/a", "/a", {}, ""}}})));
  CdiRootChange change{.from = "/driver", .to = "/", .input = folder / "in.yaml", .output = folder / "out.json"};
  EXPECT_EQ(TransformCdiRoot(change), 0);
  EXPECT_THAT(*os::ReadFile(folder / "out.json"), HasSubstr("\"hostPath\": \"/a\""));
  change.output = folder / "plain";
  EXPECT_EQ(TransformCdiRoot(change), 0);
  const std::string written = *os::ReadFile(folder / "plain.yaml");
  EXPECT_THAT(written, testing::StartsWith("---\ncdiVersion: 0.5.0\n"));

  folder.Write("in.yaml", "cdiVersion: 0.5.0\n");
  EXPECT_EQ(TransformCdiRoot(change), 1);
  EXPECT_EQ(*os::ReadFile(folder / "plain.yaml"), written);
  change.from = "driver";
  EXPECT_EQ(TransformCdiRoot(change), 1);
}

}  // namespace
}  // namespace penstock::app
