// Tests with a tree that looks like sysfs.
#include "os/kernel_modules.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

TEST(KernelModules, AreReadWithTheirUsers) {
  const TemporaryFolder sysfs;
  const std::string folder = sysfs / "module/acme";
  std::filesystem::create_directories(folder + "/holders/acme_uvm");
  EXPECT_EQ(FindKernelModule(sysfs.path(), "acme"), std::nullopt) << "a part of the kernel";
  std::ofstream(folder + "/refcnt") << "3\n";
  EXPECT_EQ(FindKernelModule(sysfs.path(), "acme"), (KernelModule{"acme", {"acme_uvm"}, 3}));
  EXPECT_EQ(FindKernelModule(sysfs.path(), "other"), std::nullopt);
  std::ofstream(folder + "/refcnt") << "-1\n";
  EXPECT_EQ(FindKernelModule(sysfs.path(), "acme")->references, -1);
}

TEST(KernelModules, UnloadingOneThatIsNotThereIsNoError) {
  const auto unloaded = UnloadKernelModule("penstock_no_such_module");
  // A kernel without modules has no such call.
  if (!unloaded.ok()) {
    EXPECT_THAT(unloaded.error().code(),
                testing::AnyOf(base::Code::kPermissionDenied, base::Code::kUnimplemented));
  }
}

}  // namespace
}  // namespace penstock::os
