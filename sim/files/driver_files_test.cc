// Tests the files that a driver's package installs, and how other programs read them.
#include "sim/files/driver_files.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/core/strings.h"
#include "sim/files/loader_cache.h"
#include "sim/files/shared_object.h"
#include "sim/testing.h"

namespace penstock::sim {
namespace {

namespace fs = std::filesystem;
using testing::Folder;
using ::testing::HasSubstr;
using testing::Running;
using testing::Started;

std::string OutputOf(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "re"), &pclose);
  std::string output;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe.get()))
    output.append(buffer, got);
  return output;
}

std::set<std::string> FilesWith(const std::string& part, const std::string& root) {
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().filename().string().find(part) != std::string::npos)
      found.insert(entry.path().string().substr(root.size() + 1));
  return found;
}

// This machine's loader can load every library with its dependencies.
TEST(DriverFiles, LibrariesAreWhatTheLoaderTakes) {
  Running machine("dgx-a100");
  const fs::path libraries = machine / "usr/lib/x86_64-linux-gnu";
  // In the order of their dependencies.
  for (const char* name :
       {"libcuda.so.1", "libnvcuvid.so.1", "libnvidia-encode.so.1", "libnvidia-tls.so.550.54.15",
        "libnvidia-glcore.so.550.54.15", "libGLX_nvidia.so.0", "libGLX_indirect.so.0",
        "vdpau/libvdpau_nvidia.so.1", "gbm/nvidia-drm_gbm.so",
        "../xorg/modules/extensions/libglxserver_nvidia.so"}) {
    void* library = dlopen((libraries / name).c_str(), RTLD_NOW | RTLD_GLOBAL);
    EXPECT_NE(library, nullptr) << dlerror();
  }
}

TEST(DriverFiles, ALibraryReportsItsNameAndWhatItNeeds) {
  Running machine("dgx-a100");
  const std::string dump =
      OutputOf("readelf -dW " + machine / "usr/lib/x86_64-linux-gnu/libGLX_nvidia.so.550.54.15");
  for (const char* said :
       {"soname: [libGLX_nvidia.so.0]", "[libnvidia-glcore.so.550.54.15]", "[libc.so.6]"})
    EXPECT_THAT(dump, HasSubstr(said));
}

TEST(DriverFiles, LdconfigReadsTheCache) {
  Running machine("dgx-a100");
  const std::string list =
      OutputOf("PATH=$PATH:/usr/sbin:/sbin ldconfig -p -C " + machine / "etc/ld.so.cache");
  EXPECT_THAT(list,
              HasSubstr("libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1\n"));
  EXPECT_THAT(list, HasSubstr("libnvidia-glcore.so.550.54.15 (libc6,x86-64) => "
                              "/lib/x86_64-linux-gnu/libnvidia-glcore.so.550.54.15\n"));
  EXPECT_EQ(list.find("vdpau"), std::string::npos);
  // Each path exists below the root.
  for (const std::string& line : base::Split(list, '\n')) {
    const auto arrow = line.find("=> ");
    if (arrow != std::string::npos) {
      EXPECT_TRUE(fs::exists(machine.root() + line.substr(arrow + 3))) << line;
    }
  }
}

TEST(DriverFiles, TheCacheHasWhatLdconfigWouldPutIntoIt) {
  Running machine("dgx-a100");
  const auto listed = [&](const std::string& cache) {
    std::set<std::string> lines;
    for (const std::string& line : base::Split(
             OutputOf("PATH=$PATH:/usr/sbin:/sbin ldconfig -p -C " + machine / "etc/" + cache),
             '\n'))
      if (line.find(" => ") != std::string::npos) lines.insert(line);
    return lines;
  };
  OutputOf("PATH=$PATH:/usr/sbin:/sbin ldconfig -X -r " + machine.root() +
           " -C /etc/theirs.cache 2>&1");
  EXPECT_EQ(listed("ld.so.cache"), listed("theirs.cache"));
}

// ld.so uses binary search, and compares numbers in names as numbers.
TEST(DriverFiles, TheCacheIsInTheOrderOfTheLoader) {
  const std::string cache = LoaderCache(
      {{"liba.so.9", "/a9"}, {"liba.so.10", "/a10"}, {"libb.so", "/b"}, {"liba.so", "/a"}});
  std::vector<std::size_t> at;
  for (const char* name : {"libb.so", "liba.so.10", "liba.so.9", "liba.so"})
    at.push_back(cache.find(std::string("\0", 1) + name + std::string("\0", 1), 47));
  EXPECT_TRUE(std::is_sorted(at.begin(), at.end()));
  EXPECT_NE(at.back(), std::string::npos);
}

TEST(DriverFiles, OldAndNewDriversHaveTheirOwnLibraries) {
  Folder folder;
  (void)Started(folder / "old", "a100-40gb-x1", {.driver = "450.80.02"});
  (void)Started(folder / "new", "a100-40gb-x1", {.driver = "570.124.06"});
  const auto there = [&](const std::string& machine, const std::string& name) {
    return fs::exists(folder / machine + "/usr/lib/x86_64-linux-gnu/" + name);
  };
  EXPECT_TRUE(there("old", "libnvidia-fatbinaryloader.so.450.80.02") &&
              there("old", "libnvidia-compiler.so.450.80.02"));
  EXPECT_FALSE(there("old", "libnvidia-nvvm.so.4") ||
               there("old", "libnvidia-gpucomp.so.450.80.02"));
  EXPECT_TRUE(there("new", "libnvidia-nvvm.so.4") && there("new", "libnvidia-sandboxutils.so.1"));
  EXPECT_FALSE(there("new", "libnvidia-compiler.so.570.124.06"));
  EXPECT_TRUE(fs::exists(folder / "old/lib/firmware/nvidia/450.80.02/gsp.bin"));
  EXPECT_TRUE(fs::exists(folder / "new/lib/firmware/nvidia/570.124.06/gsp_ga10x.bin"));
}

TEST(DriverFiles, AnotherVersionLeavesNothingOfTheLastAndNoDriverNothingAtAll) {
  Folder folder;
  Control control = Started(folder / "m", "dgx-a100");
  EXPECT_FALSE(FilesWith("550.54.15", folder / "m").empty());
  ASSERT_TRUE(control.LoadDriver("570.124.06").ok());
  EXPECT_THAT(FilesWith("550.54.15", folder / "m"), ::testing::IsEmpty());
  EXPECT_EQ(fs::read_symlink(folder / "m/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
            "libcuda.so.570.124.06");
  (void)Started(folder / "none", "dgx-a100", {.no_driver = true});
  EXPECT_FALSE(fs::exists(folder / "none/usr") || fs::exists(folder / "none/etc"));
}

TEST(DriverFiles, WhatIsMissingIsMadeAgainAndWhatIsThereLeftAlone) {
  Running machine("t4-x1");
  const std::string libraries = machine / "usr/lib/x86_64-linux-gnu/";
  const auto inode = [&](const char* name) {
    struct stat info {};
    EXPECT_EQ(lstat((libraries + name).c_str(), &info), 0) << name;
    return info.st_ino;
  };
  const auto before = inode("libcuda.so.535.183.01");
  ASSERT_TRUE(machine.control.HealGpu(0).ok());
  EXPECT_EQ(inode("libcuda.so.535.183.01"), before);
  fs::remove(libraries + "libnvidia-opencl.so.1");
  ASSERT_TRUE(machine.control.HealGpu(0).ok());
  EXPECT_TRUE(fs::exists(libraries + "libnvidia-opencl.so.1"));
}

TEST(DriverFiles, EveryProgramRuns) {
  Running machine("t4-x1");
  EXPECT_THAT(OutputOf(machine / "usr/bin/nvidia-smi -L"), HasSubstr("GPU 0: Tesla T4"));
  EXPECT_THAT(OutputOf(machine / "usr/bin/nvidia-debugdump 2>&1"),
              HasSubstr("nvidia-debugdump: this program does nothing"));
}

}  // namespace
}  // namespace penstock::sim
