#include "node/cdi/modes_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::cdi {
namespace {

using device::HostFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::map<std::string, HostFile> kWords{{"dev", HostFile::kDevice},
                                             {"dir", HostFile::kFolder},
                                             {"lib", HostFile::kFile},
                                             {"sym", HostFile::kLink}};

TEST(FileList, TakesEveryFormThatSystemsHaveThemIn) {
  const auto files = ParseFileList(
      "dev, /dev/nvhost-gpu\r\n"
      "\n"
      "# made by a package\n"
      "  lib ,/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1.1  \n"
      "dir, /lib/firmware/tegra19x/\n"
      "sym,/etc/vulkan/icd.d/nvidia_icd.json\n"
      "dev ,/a/path,with,commas",
      "l4t.csv", kWords);
  ASSERT_TRUE(files.ok()) << files.error().message();
  EXPECT_THAT(*files, ElementsAre(ListedFile{HostFile::kDevice, "/dev/nvhost-gpu"},
                                  ListedFile{HostFile::kFile,
                                             "/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1.1"},
                                  ListedFile{HostFile::kFolder, "/lib/firmware/tegra19x"},
                                  ListedFile{HostFile::kLink, "/etc/vulkan/icd.d/nvidia_icd.json"},
                                  ListedFile{HostFile::kDevice, "/a/path,with,commas"}));
}

TEST(FileList, MayBeEmpty) {
  EXPECT_THAT(*ParseFileList("", "l4t.csv", kWords), IsEmpty());
  EXPECT_THAT(*ParseFileList("\r\n \t\n#\n", "l4t.csv", kWords), IsEmpty());
}

TEST(FileList, SaysWhatIsWrongWithALineAndWhereItIs) {
  const struct {
    std::string line;
    const char* problem;
  } cases[] = {{"dev /dev/nvmap", "WORD, PATH"},
               {",", "one of dev, dir, lib, sym"},
               {"not-dev, /dev/nvmap", "one of dev, dir, lib, sym"},
               {"DEV, /dev/nvmap", "one of dev, dir, lib, sym"},
               {"dev,", "absolute path"},
               {"dev, nvmap", "absolute path"},
               {"lib, ../../etc/shadow", "absolute path"},
               {"lib, /usr/lib/../../etc/shadow", "must not contain"},
               {"lib, /usr/./lib/a", "must not contain"},
               {"dir, /", "below /"},
               {"dir, //", "below /"},
               {"dir, /lib/ /", "space"},
               {"sym, /a::/b", "\"::\""},
               {"lib, /usr/lib/a\x01", "characters"},
               {"lib, /usr/lib/a\xff", "characters"},
               {std::string("lib, /usr/lib/a\0b", 17), "characters"},
               {"lib, /" + std::string(4095, 'a'), "too long"}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.line);
    const auto files =
        ParseFileList("lib, /usr/lib/a\n\n" + one.line + "\n", "/etc/l4t.csv", kWords);
    ASSERT_FALSE(files.ok());
    EXPECT_EQ(files.error().code(), base::Code::kInvalidArgument);
    EXPECT_THAT(files.error().message(), ::testing::StartsWith("/etc/l4t.csv:3: "));
    EXPECT_THAT(files.error().message(), HasSubstr(one.problem));
  }
}

TEST(FileList, ReportsAllOfItsProblemsAtOnce) {
  const auto files = ParseFileList("x\nlib, /a\ndev, b\n", "a.csv", kWords);
  ASSERT_FALSE(files.ok());
  EXPECT_THAT(files.error().message(),
              ::testing::AllOf(HasSubstr("a.csv:1:"), HasSubstr("a.csv:3:"),
                               ::testing::Not(HasSubstr("a.csv:2:"))));
}

}  // namespace
}  // namespace penstock::node::cdi
