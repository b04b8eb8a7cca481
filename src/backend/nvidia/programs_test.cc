#include "backend/nvidia/programs.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/testing/temporary_folder.h"

namespace penstock::backend::nvidia {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

void MakeProgram(const os::TemporaryFolder& root, const std::string& path) {
  root.Write(path, "#!/bin/sh\n");
  std::filesystem::permissions(root / path, std::filesystem::perms(0755));
}

TEST(Programs, AreFoundBelowTheDriverRootThroughItsOwnAbsoluteLinks) {
  const os::TemporaryFolder root;
  MakeProgram(root, "usr/lib/nvidia/nvidia-smi");
  root.Link("usr/bin/nvidia-smi", "/usr/lib/nvidia/nvidia-smi");
  const auto program = FindProgram(root.path(), "nvidia-smi");
  ASSERT_TRUE(program.ok()) << program.error().message();
  EXPECT_EQ(program->path, root / "usr/lib/nvidia/nvidia-smi");
  EXPECT_EQ(program->inside, "/usr/lib/nvidia/nvidia-smi");
  EXPECT_THAT(program->command, ElementsAre(program->path));
}

TEST(Programs, GetTheLibrariesOfTheirRootAndNothingOfOurOwnCuda) {
  const os::TemporaryFolder root;
  MakeProgram(root, "usr/bin/nvidia-smi");
  root.Write("usr/lib64/libnvidia-ml.so.1", "");
  ASSERT_EQ(::setenv("CUDA_VISIBLE_DEVICES", "7", 1), 0);
  const auto program = FindProgram(root.path(), "nvidia-smi");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ASSERT_TRUE(program.ok()) << program.error().message();
  EXPECT_THAT(program->environment, Contains("LD_LIBRARY_PATH=" + (root / "usr/lib64")));
  EXPECT_THAT(program->environment, Not(Contains(StartsWith("CUDA_"))));
}

TEST(Programs, OfAWholeRootRunUnderItsOwnLoader) {
  const os::TemporaryFolder root;
  MakeProgram(root, "usr/bin/nvidia-smi");
  MakeProgram(root, "lib64/ld-linux-x86-64.so.2");
  const auto program = FindProgram(root.path(), "nvidia-smi");
  ASSERT_TRUE(program.ok()) << program.error().message();
  EXPECT_THAT(program->command, ElementsAre(root / "lib64/ld-linux-x86-64.so.2", "--library-path",
                                            root / "lib64", program->path));
  EXPECT_THAT(program->environment, Not(Contains(StartsWith("LD_LIBRARY_PATH="))));
}

TEST(Programs, ThatAreMissingAreNamed) {
  const os::TemporaryFolder root;
  const auto program = FindProgram(root.path(), "nvidia-cuda-mps-control");
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code(), base::Code::kNotFound);
  EXPECT_THAT(program.error().message(), HasSubstr("nvidia-cuda-mps-control below " + root.path()));
}

}  // namespace
}  // namespace penstock::backend::nvidia
