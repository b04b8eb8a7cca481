#include "node/cdi/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::cdi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

api::cdi::Spec SpecOf(const std::string& kind, std::vector<std::string> names = {"0"}) {
  api::cdi::Spec spec;
  spec.kind = kind;
  for (const std::string& name : names) {
    api::cdi::Device device;
    device.name = name;
    device.edits.nodes.push_back({.path = "/dev/null"});
    spec.devices.push_back(device);
  }
  return spec;
}

class FolderTest : public testing::Test {
 protected:
  std::vector<std::string> Files() const { return os::ListDirectory(path_).value_or({}); }
  void Put(const std::string& name, const std::string& text) { folder_.Write("cdi/" + name, text); }

  os::TemporaryFolder folder_;
  const std::string path_ = folder_ / "cdi";
  const std::set<std::string> kinds_{"acme.com/gpu"};
};

TEST_F(FolderTest, FilesOfPeopleAndOfTheKubeletHaveNamesThatAreKnownAgain) {
  EXPECT_EQ(OwnFileName("acme.com/gpu"), "penstock-acme.com-gpu.json");
  EXPECT_EQ(OwnFileName(KubeletKind("nvidia.com/gpu")), "k8s.device-plugin.nvidia.com-gpu.json");
  EXPECT_THAT(
      OwnFiles({"nvidia.yaml", "penstock-a-b.json", "penstock-a-b.json.tmp",
                "k8s.device-plugin.acme.com-gpu.json", "k8s.device-plugin.other.com-gpu.json",
                ".penstock-a-b.json.x1Y2z3", ".nvidia.yaml.x1Y2z3",
                ".k8s.device-plugin.acme.com-gpu.json.x1Y2z3"},
               kinds_),
      ElementsAre("penstock-a-b.json", "k8s.device-plugin.acme.com-gpu.json",
                  ".penstock-a-b.json.x1Y2z3", ".k8s.device-plugin.acme.com-gpu.json.x1Y2z3"));
}

TEST_F(FolderTest, MakesTheFolderAndWritesEveryKind) {
  const FolderState state =
      Write(path_, {SpecOf("acme.com/gpu"), SpecOf("k8s.device-plugin.acme.com/gpu")}, kinds_);
  EXPECT_THAT(state.kinds, ElementsAre("acme.com/gpu", "k8s.device-plugin.acme.com/gpu"));
  EXPECT_THAT(state.problems, IsEmpty());
  EXPECT_THAT(Files(),
              ElementsAre("k8s.device-plugin.acme.com-gpu.json", "penstock-acme.com-gpu.json"));
  const auto read = api::cdi::Parse(*os::ReadFile(path_ + "/penstock-acme.com-gpu.json"), "f");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->devices, SpecOf("acme.com/gpu").devices);
}

TEST_F(FolderTest, WhatIsThereAlreadyIsNotWrittenAgain) {
  const auto inode = [this] {
    struct stat info {};
    EXPECT_EQ(::stat((path_ + "/penstock-acme.com-gpu.json").c_str(), &info), 0);
    return info.st_ino;
  };
  Write(path_, {SpecOf("acme.com/gpu")}, kinds_);
  const auto before = inode();
  Write(path_, {SpecOf("acme.com/gpu")}, kinds_);
  EXPECT_EQ(inode(), before);
  Write(path_, {SpecOf("acme.com/gpu", {"0", "1"})}, kinds_);
  EXPECT_NE(inode(), before);
}

TEST_F(FolderTest, NothingStaysOfADriverThatIsGone) {
  Write(path_,
        {SpecOf("acme.com/gpu"), SpecOf("k8s.device-plugin.acme.com/gpu"), SpecOf("acme.com/net")},
        kinds_);
  Put("other.yaml", "not ours");
  EXPECT_THAT(Write(path_, {}, kinds_).problems, IsEmpty());
  EXPECT_THAT(Files(), ElementsAre("other.yaml"));
}

TEST_F(FolderTest, WithoutDriverNoFolderIsMade) {
  EXPECT_FALSE(Write(path_, {}, kinds_).retry);
  EXPECT_FALSE(os::Exists(path_));
}

TEST_F(FolderTest, StaysAwayWhereAnotherFileGivesTheSameDevice) {
  Write(path_, {SpecOf("acme.com/gpu")}, kinds_);
  Put("acme.yaml", "---\n" + api::cdi::ToJson(SpecOf("acme.com/gpu", {"all", "0"})));
  const FolderState state = Write(
      path_, {SpecOf("acme.com/gpu", {"0"}), SpecOf("k8s.device-plugin.acme.com/gpu")}, kinds_);
  EXPECT_THAT(state.kinds, ElementsAre("k8s.device-plugin.acme.com/gpu"));
  EXPECT_THAT(state.problems,
              ElementsAre(HasSubstr("acme.yaml also defines devices of acme.com/gpu")));
  EXPECT_THAT(Files(), ElementsAre("acme.yaml", "k8s.device-plugin.acme.com-gpu.json"));
}

TEST_F(FolderTest, FilesOfOthersThatAreBrokenOrOfOtherDevicesAreNoHindrance) {
  Put("folder.json/file", "");
  Put("broken.yaml", "{{{");
  Put("other.json", api::cdi::ToJson(SpecOf("acme.com/gpu", {"1"})));
  EXPECT_THAT(Write(path_, {SpecOf("acme.com/gpu")}, kinds_).problems, IsEmpty());
}

TEST_F(FolderTest, AFolderThatCannotBeMadeIsSaidAndTriedAgain) {
  folder_.Write("cdi", "a file");
  const FolderState state = Write(path_, {SpecOf("acme.com/gpu")}, kinds_);
  EXPECT_TRUE(state.retry);
  EXPECT_THAT(state.kinds, IsEmpty());
  EXPECT_THAT(state.problems, ElementsAre(HasSubstr(path_)));
}

}  // namespace
}  // namespace penstock::node::cdi
