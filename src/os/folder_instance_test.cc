#include "os/folder_instance.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

TEST(FolderInstance, IsAnotherOneOnceTheFolderWasMadeAgain) {
  const TemporaryFolder folder;
  folder.Write("module/version", "1");
  const std::string first = FolderInstance(folder / "module");
  EXPECT_NE(first, "");
  folder.Write("module/version", "2");
  EXPECT_EQ(FolderInstance(folder / "module"), first) << "changes inside the folder do not matter";
  std::filesystem::remove_all(folder / "module");
  EXPECT_EQ(FolderInstance(folder / "module"), "");
  folder.Write("module/version", "1");
  EXPECT_NE(FolderInstance(folder / "module"), first);
}

TEST(FolderInstance, OfSysfsStaysTheSame) {
  ASSERT_NE(FolderInstance("/sys/kernel"), "");
  EXPECT_EQ(FolderInstance("/sys/kernel"), FolderInstance("/sys/kernel"));
}

}  // namespace
}  // namespace penstock::os
