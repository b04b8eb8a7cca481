#include "os/marker_files.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/core/file.h"
#include "os/core/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Markers : public testing::Test {
 protected:
  std::vector<std::string> Names() const { return ListDirectory(folder_).value_or({}); }

  const TemporaryFolder home_;
  const std::string folder_ = home_.path() + "/run/validations";
};

TEST_F(Markers, AreWrittenAndRemoved) {
  ASSERT_TRUE(UpdateMarkers(folder_, {{"a-ready", "x=1\n"}, {"b-ready", ""}}, {"c-ready"}).ok());
  EXPECT_THAT(Names(), ElementsAre("a-ready", "b-ready"));
  EXPECT_EQ(*ReadFile(folder_ + "/a-ready"), "x=1\n");
  struct stat about {};
  ASSERT_EQ(::stat((folder_ + "/a-ready").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777u, 0644u);
  ASSERT_TRUE(UpdateMarkers(folder_, {{"b-ready", ""}}, {"a-ready", "b-ready", "c-ready"}).ok());
  EXPECT_THAT(Names(), ElementsAre("b-ready"));
}

TEST_F(Markers, ThatAreAlreadySoAreNotWrittenAgain) {
  ASSERT_TRUE(UpdateMarkers(folder_, {{"a-ready", "x"}}, {}).ok());
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat((folder_ + "/a-ready").c_str(), &before), 0);
  ASSERT_TRUE(UpdateMarkers(folder_, {{"a-ready", "x"}}, {}).ok());
  ASSERT_EQ(::stat((folder_ + "/a-ready").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(Markers, ThatAreNotWantedNeedNoFolder) {
  EXPECT_TRUE(UpdateMarkers(folder_, {}, {"a-ready"}).ok());
  EXPECT_FALSE(Exists(folder_));
}

TEST_F(Markers, AreNotWrittenThroughALink) {
  const std::string elsewhere = home_.path() + "/elsewhere";
  ASSERT_TRUE(MakeDirectories(elsewhere).ok());
  ASSERT_TRUE(MakeDirectories(home_.path() + "/run").ok());
  std::filesystem::create_directory_symlink(elsewhere, folder_);
  const auto refused = UpdateMarkers(folder_, {{"a-ready", ""}}, {"b-ready"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("is a symbolic link"));
  EXPECT_THAT(ListDirectory(elsewhere).value_or({}), IsEmpty());
}

TEST_F(Markers, AreNotWrittenWhereEveryoneCanWrite) {
  ASSERT_TRUE(MakeDirectories(folder_).ok());
  ASSERT_EQ(::chmod((home_.path() + "/run").c_str(), 0777), 0);
  EXPECT_FALSE(UpdateMarkers(folder_, {{"a-ready", ""}}, {}).ok());
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(Markers, ReplaceALinkOfTheirName) {
  ASSERT_TRUE(MakeDirectories(folder_).ok());
  const std::string target = home_.path() + "/target";
  ASSERT_TRUE(WriteFileAtomically(target, "kept").ok());
  std::filesystem::create_symlink(target, folder_ + "/a-ready");
  ASSERT_TRUE(UpdateMarkers(folder_, {{"a-ready", "new"}}, {}).ok());
  EXPECT_EQ(*ReadFile(target), "kept");
  EXPECT_EQ(*ReadFile(folder_ + "/a-ready"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(folder_ + "/a-ready"));
}

}  // namespace
}  // namespace penstock::os
