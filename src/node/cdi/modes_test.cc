// Tests classes and platforms, with this machine's /dev/null and similar device files: creating
// device files requires a privilege that unit tests lack.
#include "node/cdi/modes.h"

#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "os/core/file.h"
#include "os/core/ld_cache.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::cdi {
namespace {

using device::CdiClass;
using device::CdiPlatform;
using device::HostFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Modes : public ::testing::Test {
 protected:
  Modes() {
    places.driver_root = folder.path() + "/driver";
    places.host_driver_root = "/run/acme";
    places.sysfs_root = folder.path() + "/sys";
    places.proc_root = folder.path() + "/proc";
    for (const std::string& root : {places.driver_root, places.sysfs_root, places.proc_root})
      EXPECT_TRUE(os::MakeDirectories(root).ok());
  }

  void Write(const std::string& path, const std::string& content = "") {
    folder.Write(path.substr(1), content);
  }
  void Link(const std::string& target, const std::string& path) {
    folder.Link(path.substr(1), target);
  }

  /// The greater the number, the newer the file.
  void SetAge(const std::string& path, long seconds) {
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder.path() + path).c_str(), times, 0), 0);
  }

  base::Result<Generated> Make(const CdiClass& subject) {
    return GenerateClass(subject, input, places, options);
  }
  base::Result<Generated> Make(const CdiPlatform& subject) {
    return GeneratePlatform(subject, input, places, options, more);
  }

  os::TemporaryFolder folder;
  device::testing::AcmeDialect dialect;
  device::Driver driver;
  Input input{&dialect, &driver, {}};
  Places places;
  Options options;
  PlatformOptions more;
};

std::vector<std::string> Names(const Generated& generated) {
  std::vector<std::string> names;
  for (const auto& device : generated.spec.devices) names.push_back(device.name);
  return names;
}

std::vector<std::string> Nodes(const api::cdi::CdiEdits& edits) {
  std::vector<std::string> paths;
  for (const auto& node : edits.nodes) paths.push_back(node.path);
  return paths;
}

/// "/etc/a from /run/acme/etc/a".
std::vector<std::string> Mounts(const Generated& generated) {
  std::vector<std::string> mounts;
  for (const auto& mount : generated.spec.edits.mounts)
    mounts.push_back(mount.container_path + " from " + mount.host_path);
  return mounts;
}

TEST_F(Modes, AClassIsOneDeviceOfAllItsFilesButForThoseLeftOut) {
  const auto made = Make(CdiClass{.kind = "acme.com/noise",
                                  .nodes = {"/dev/nu*", "/dev/z*"},
                                  .nodes_too = {"/dev/full", "/dev/null", "/dev/no-such"},
                                  .except = {"/dev/zer*"}});
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(made->spec.kind, "acme.com/noise");
  EXPECT_THAT(Names(*made), ElementsAre("all"));
  EXPECT_THAT(Nodes(made->spec.devices.at(0).edits), ElementsAre("/dev/null", "/dev/full"));
  EXPECT_TRUE(api::cdi::Check(made->spec).ok());
}

TEST_F(Modes, WhatIsNoDeviceFileCountsForNothing) {
  places.dev_root = folder.path();
  Write("/dev/acme0", "a file");
  Link("/dev/null", "/dev/acme1");
  const auto made = Make(CdiClass{.kind = "acme.com/noise", .nodes = {"/dev/acme*"}});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), base::Code::kNotFound);
  EXPECT_THAT(made.error().message(),
              ::testing::AllOf(HasSubstr("acme.com/noise"), HasSubstr("/dev/acme*")));
}

TEST_F(Modes, OfFilesWithoutNumbersThatAreToBeNumberedEachIsReported) {
  const auto made =
      Make(CdiClass{.kind = "acme.com/lane", .nodes = {"/dev/null"}, .device_per_node = true});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message(), HasSubstr("/dev/null has no valid device number"));
}

TEST_F(Modes, MountsOfAClassAreThoseThatAreThere) {
  Write("/driver/etc/acme.json");
  const auto made = Make(CdiClass{.kind = "acme.com/noise",
                                  .nodes = {"/dev/null"},
                                  .mounts = {"/run/acme-udev", "/etc/acme.json"}});
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(Mounts(*made), ElementsAre("/etc/acme.json from /run/acme/etc/acme.json"));
}

TEST_F(Modes, AListMayNameTheDevices) {
  CdiClass named{.kind = "acme.com/right", .list = "/proc/driver/acme/rights"};
  named.named = [](std::string_view text) -> base::Result<std::map<std::string, std::string>> {
    if (text == "broken") return base::Error(base::Code::kInvalidArgument, "rights:1: broken");
    return std::map<std::string, std::string>{{"config", "/dev/null"}, {"monitor", "/dev/no-such"}};
  };
  EXPECT_EQ(Make(named).error().code(), base::Code::kNotFound);
  Write("/proc/driver/acme/rights", "fine");
  const auto made = Make(named);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_THAT(Names(*made), ElementsAre("config"));
  EXPECT_THAT(made->remarks, ElementsAre(HasSubstr("\"monitor\"")));
  Write("/proc/driver/acme/rights", "broken");
  const auto broken = Make(named);
  EXPECT_EQ(broken.error().code(), base::Code::kInvalidArgument);
  EXPECT_THAT(broken.error().message(), HasSubstr("rights:1: broken"));
}

const std::map<std::string, HostFile> kListWords{{"dev", HostFile::kDevice},
                                                 {"dir", HostFile::kFolder},
                                                 {"lib", HostFile::kFile},
                                                 {"sym", HostFile::kLink}};

CdiPlatform Listed() {
  return {.mode = "list",
          .name = "Acme One",
          .numbered = true,
          .mounts = {"/etc/acme_release", "/sys/acme/family"},
          .lists = {"/etc/acme.d/a.csv", "/etc/acme.d/b.csv"},
          .words = kListWords};
}

TEST_F(Modes, ListsSayWhatAPlatformGives) {
  Write("/driver/etc/acme.d/a.csv",
        "dev, /dev/null\ndev, /dev/no-such\nlib, /usr/lib/tegra/libacme.so.1.1\nlib, "
        "/lib/gone.bin\n");
  Write("/driver/etc/acme.d/b.csv",
        "dir, /usr/share/acme\nsym, /usr/lib/libacme.so\nlib, /lib/fw/*.bin\n");
  Write("/driver/usr/lib/tegra/libacme.so.1.1", "no ELF file");
  Write("/driver/usr/share/acme/x");
  Write("/driver/lib/fw/a.bin");
  Write("/driver/lib/fw/b.txt");
  Write("/driver/etc/acme_release");
  Write("/sys/acme/family");
  Link("/usr/lib/tegra/libacme.so.1.1", "/driver/usr/lib/libacme.so");
  const auto made = Make(Listed());
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_THAT(Nodes(made->spec.devices.at(0).edits), ElementsAre("/dev/null"));
  EXPECT_THAT(
      Mounts(*made),
      ElementsAre("/etc/acme_release from /run/acme/etc/acme_release",
                  "/lib/fw/a.bin from /run/acme/lib/fw/a.bin",
                  "/sys/acme/family from /sys/acme/family",
                  "/usr/lib/tegra/libacme.so.1.1 from /run/acme/usr/lib/tegra/libacme.so.1.1",
                  "/usr/share/acme from /run/acme/usr/share/acme"));
  EXPECT_THAT(made->remarks,
              ElementsAre(::testing::AllOf(HasSubstr("2 of the files"), HasSubstr("/dev/no-such"),
                                           HasSubstr("/lib/gone.bin"))));
  EXPECT_THAT(Names(*made), ::testing::Contains("0"));
  EXPECT_THAT(Names(*made), ::testing::Contains("all"));
  EXPECT_TRUE(api::cdi::Check(made->spec).ok());
}

TEST_F(Modes, HalfAListIsNone) {
  Write("/driver/etc/acme.d/a.csv", "dev, /dev/null\n");
  Write("/driver/etc/acme.d/b.csv", "dev, /dev/zero\nlib, ../../etc/shadow\n");
  const auto made = Make(Listed());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), base::Code::kInvalidArgument);
  EXPECT_THAT(made.error().message(), HasSubstr("/etc/acme.d/b.csv:2: "));
}

TEST_F(Modes, WithoutListsOrDeviceFilesThereIsNoPlatform) {
  EXPECT_THAT(Make(Listed()).error().message(), HasSubstr("/etc/acme.d/a.csv"));
  Write("/driver/etc/acme.d/a.csv", "dev, /dev/no-such\n");
  const auto made = Make(Listed());
  EXPECT_EQ(made.error().code(), base::Code::kNotFound);
  EXPECT_THAT(made.error().message(), HasSubstr("/dev/no-such"));
}

TEST_F(Modes, OtherListsMayBeAskedForAndMustBeThere) {
  Write("/mine.csv", "dev, /dev/full\n");
  more.lists = {folder.path() + "/mine.csv"};
  const auto made = Make(Listed());
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_THAT(Nodes(made->spec.devices.at(0).edits), ElementsAre("/dev/full"));
  more.lists.push_back(folder.path() + "/gone.csv");
  EXPECT_THAT(Make(Listed()).error().message(), HasSubstr("gone.csv"));
}

/// Acme's dialect has no hooks, so links show only in the mounts that they cause.
TEST_F(Modes, LinksAreLeftOutByPattern) {
  Write("/driver/etc/acme.d/a.csv",
        "dev, /dev/null\nsym, /usr/lib/libacme.so\nsym, /usr/lib/other\n");
  Write("/driver/usr/lib/tegra/libacme.so.1");
  Write("/driver/usr/lib/tegra/other.1");
  Link("tegra/libacme.so.1", "/driver/usr/lib/libacme.so");
  Link("tegra/other.1", "/driver/usr/lib/other");
  EXPECT_EQ(Mounts(*Make(Listed())).size(), 2U);
  more.ignored_links = {"*.so"};
  EXPECT_EQ(Mounts(*Make(Listed())).size(), 2U) << "the glob matches whole paths";
  more.ignored_links = {"**/*.so"};
  EXPECT_THAT(Mounts(*Make(Listed())),
              ElementsAre("/usr/lib/tegra/other.1 from /run/acme/usr/lib/tegra/other.1"));
  more.ignored_links = {"/usr/lib/o*"};
  EXPECT_THAT(Mounts(*Make(Listed())),
              ElementsAre("/usr/lib/tegra/libacme.so.1 from /run/acme/usr/lib/tegra/libacme.so.1"));
}

TEST_F(Modes, ALinkOutOfTheDriverRootStaysInIt) {
  Write("/driver/etc/acme.d/a.csv", "dev, /dev/null\nsym, /usr/lib/out\nlib, /usr/lib/up\n");
  Write("/outside");
  Link("/outside", "/driver/usr/lib/out");
  Link("../../../../outside", "/driver/usr/lib/up");
  const auto made = Make(Listed());
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(Mounts(*made), IsEmpty());
  EXPECT_THAT(made->remarks, ElementsAre(HasSubstr("2 of the files")));
}

CdiPlatform Foldered() {
  return {.mode = "folder",
          .name = "Acme Two",
          .nodes = {"/dev/null"},
          .folders = {{.pattern = "/store/*",
                       .known_by = "libacme.so.1.1",
                       .files = {"libacme.so.1.1", "acme-smi"},
                       .files_too = {"*.bin"}}}};
}

TEST_F(Modes, OfSeveralFoldersTheNewestCounts) {
  for (const char* name : {"a", "b", "c"})
    Write(std::string("/driver/store/") + name + "/libacme.so.1.1");
  SetAge("/driver/store/a/libacme.so.1.1", 1000);
  SetAge("/driver/store/b/libacme.so.1.1", 3000);
  SetAge("/driver/store/c/libacme.so.1.1", 2000);
  Write("/driver/store/d/acme-smi");
  Write("/driver/store/b/more.bin");
  Write("/driver/store/b/more.txt");
  const auto made = Make(Foldered());
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_THAT(Mounts(*made),
              ElementsAre("/store/b/libacme.so.1.1 from /run/acme/store/b/libacme.so.1.1",
                          "/store/b/more.bin from /run/acme/store/b/more.bin"));
  EXPECT_THAT(made->remarks,
              ElementsAre(::testing::AllOf(HasSubstr("3 folders"), HasSubstr("/store/b")),
                          HasSubstr("/store/b/acme-smi")));
  EXPECT_THAT(Names(*made), ElementsAre("all"));
}

TEST_F(Modes, WithoutItsFolderAPlatformHasNoDriver) {
  Write("/driver/store/d/acme-smi");
  EXPECT_THAT(Make(Foldered()).error().message(), HasSubstr("/store/*/libacme.so.1.1"));
}

TEST_F(Modes, APlatformIsReportedByItsSigns) {
  CdiPlatform platform{
      .signs = {"/etc/acme_release"}, .sign_file = "/sys/acme/family", .sign_text = "acme"};
  EXPECT_EQ(FitsPlatform(platform, input, places), Fits::kNo);
  Write("/sys/acme/family", "Other\n");
  EXPECT_EQ(FitsPlatform(platform, input, places), Fits::kNo);
  Write("/sys/acme/family", "ACME One\n");
  EXPECT_EQ(FitsPlatform(platform, input, places), Fits::kYes);
  std::filesystem::remove(places.sysfs_root + "/acme/family");
  Write("/driver/etc/acme_release");
  EXPECT_EQ(FitsPlatform(platform, input, places), Fits::kYes);
  EXPECT_EQ(FitsPlatform(CdiPlatform{.signs = {"/dev/null"}}, input, places), Fits::kYes);
  EXPECT_EQ(FitsPlatform(CdiPlatform{.signs = {"/dev/no-such"}}, input, places), Fits::kNo);
}

TEST_F(Modes, ADriverThatAnswersDecidesByModelsWhetherItIsAPlatforms) {
  const CdiPlatform platform{.signs = {"/dev/null"},
                             .unless_library = "libacme-ml.so.1",
                             .if_models = {"*(acme)*", "Acme One*"}};
  EXPECT_EQ(FitsPlatform(platform, input, places), Fits::kYes);
  Write("/driver/lib/acme/libacme-ml.so.1");
  EXPECT_EQ(FitsPlatform(platform, input, places), Fits::kYes)
      << "the library is in no library folder";
  Write("/driver/etc/ld.so.cache",
        os::WriteLdCache(
            {{.soname = "libacme-ml.so.1", .path = "/lib/acme/libacme-ml.so.1", .flags = 0x0303}}));
  EXPECT_EQ(FitsPlatform(platform, input, places), Fits::kByModels);
  std::filesystem::remove(places.driver_root + "/etc/ld.so.cache");
  places.library_folders = {"/lib/acme"};
  EXPECT_EQ(FitsPlatform(platform, input, places), Fits::kByModels);

  device::Facts integrated, discrete;
  integrated.model = "Orin (acme)";
  discrete.model = "Acme Big";
  using All = std::vector<const device::Facts*>;
  EXPECT_TRUE(AllOfModels(platform, All{&integrated}));
  EXPECT_FALSE(AllOfModels(platform, All{&integrated, &discrete}));
  EXPECT_FALSE(AllOfModels(platform, All{}));
}

}  // namespace
}  // namespace penstock::node::cdi
