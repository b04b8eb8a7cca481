// Tests the hooks on file trees of usual images, and on malicious ones.
#include "hook/hooks.h"

#include <filesystem>

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "hook/ld_config.h"
#include "os/core/file.h"
#include "os/core/ld_cache.h"
#include "os/core/testing/elf_maker.h"
#include "os/core/testing/temporary_folder.h"

namespace penstock::hook {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

namespace fs = std::filesystem;

constexpr char kDriver[] = "/usr/local/nvidia/lib64";
#if defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
constexpr std::int32_t kEntryFlags = 0x0a03;
constexpr char kMusl[] = "aarch64";
#else
constexpr std::uint16_t kMachine = EM_X86_64;
constexpr std::int32_t kEntryFlags = 0x0303;
constexpr char kMusl[] = "x86_64";
#endif

class HooksTest : public testing::Test {
 protected:
  HooksTest() { fs::create_directories(folder_ / "root"); }

  os::ConfinedTree Root() { return *os::ConfinedTree::Open(folder_ / "root"); }
  void Write(const std::string& path, const std::string& content) {
    folder_.Write("root" + path, content);
  }
  void Link(const std::string& path, const std::string& target) {
    folder_.Link("root" + path, target);
  }
  std::string Read(const std::string& path) { return Root().Read(path).value_or("(none)"); }
  std::string ReadLink(const std::string& path) { return Root().ReadLink(path).value_or("(none)"); }
  std::vector<std::string> Names(const std::string& path) {
    std::vector<std::string> names;
    const auto entries = Root().List(path);
    if (!entries.ok()) return names;
    for (const os::TreeEntry& entry : *entries) names.push_back(entry.name);
    return names;
  }

  void WriteLibrary(const std::string& path, const std::string& soname, bool wide = true) {
    Write(path, os::MakeElf({.wide = wide,
                             .machine = wide ? kMachine : std::uint16_t{EM_386},
                             .soname = soname}));
  }
  void WriteCache(std::vector<std::string> paths) {
    std::vector<os::LdCacheEntry> entries;
    for (const std::string& path : paths)
      entries.push_back(
          {.soname = path.substr(path.rfind('/') + 1), .path = path, .flags = kEntryFlags});
    Write("/etc/ld.so.cache", os::WriteLdCache(entries));
  }
  // The list's paths in its order.
  std::vector<std::string> Cache() {
    std::vector<std::string> paths;
    const auto entries = os::ReadLdCache(Read("/etc/ld.so.cache"));
    if (!entries.ok()) return {entries.error().message()};
    for (const os::LdCacheEntry& entry : *entries) paths.push_back(entry.path);
    return paths;
  }

  base::Status Update(std::vector<std::string> folders = {kDriver}) {
    return UpdateLdCache(Root(), folders, warnings_);
  }
  void ExpectNoWarnings() { EXPECT_THAT(warnings_.messages(), IsEmpty()); }

  os::TemporaryFolder folder_;
  Warnings warnings_;
};

// A glibc image, with a driver's library mounted into it.
class GlibcTest : public HooksTest {
 protected:
  GlibcTest() {
    Write("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
    Write("/etc/ld.so.conf.d/app.conf", "# comment\n/opt/app/lib  # its own\n");
    WriteLibrary("/usr/lib/libc.so.6", "libc.so.6");
    WriteLibrary("/opt/app/lib/libapp.so.1", "libapp.so.1");
    WriteCache({"/opt/app/lib/libapp.so.1", "/usr/lib/libc.so.6"});
    WriteLibrary(std::string(kDriver) + "/libcuda.so.550.54.15", "libcuda.so.1");
  }
};

TEST_F(GlibcTest, AddsTheDriversLibrariesToTheImagesList) {
  ASSERT_TRUE(Update().ok());
  ExpectNoWarnings();
  EXPECT_THAT(Cache(), ElementsAre("/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/libc.so.6",
                                   "/opt/app/lib/libapp.so.1"));
  EXPECT_EQ(ReadLink("/usr/local/nvidia/lib64/libcuda.so.1"), "libcuda.so.550.54.15");
  EXPECT_THAT(ReadFolders(Root(), kDriverDropIn), ElementsAre(kDriver));
  EXPECT_THAT(Names("/etc/ld.so.conf.d"), ElementsAre("00-penstock-driver.conf", "app.conf"));
  EXPECT_THAT(Names("/etc"), ElementsAre("ld.so.cache", "ld.so.conf", "ld.so.conf.d"));
}

TEST_F(GlibcTest, ASecondStartChangesNothing) {
  ASSERT_TRUE(Update().ok());
  const auto inode = [&](const char* path) {
    struct stat status {};
    EXPECT_EQ(::stat((folder_ / "root" + path).c_str(), &status), 0);
    return status.st_ino;
  };
  const auto cache = inode("/etc/ld.so.cache"), drop_in = inode(kDriverDropIn);
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(inode("/etc/ld.so.cache"), cache);
  EXPECT_EQ(inode(kDriverDropIn), drop_in);
  EXPECT_THAT(Names("/etc/ld.so.conf.d"), SizeIs(2));
}

TEST_F(GlibcTest, AnotherDriverAtTheNextStartReplacesTheFirst) {
  ASSERT_TRUE(Update().ok());
  fs::remove_all(folder_ / ("root" + std::string(kDriver)));
  WriteLibrary("/usr/lib/driver/libcuda.so.560.1", "libcuda.so.1");
  ASSERT_TRUE(Update({"/usr/lib/driver"}).ok());
  EXPECT_THAT(Cache(), ElementsAre("/usr/lib/driver/libcuda.so.1", "/usr/lib/libc.so.6",
                                   "/opt/app/lib/libapp.so.1"));
  EXPECT_THAT(ReadFolders(Root(), kDriverDropIn), ElementsAre("/usr/lib/driver"));
}

TEST_F(GlibcTest, FoldersThatTheImageSearchesAnywayKeepTheirPlace) {
  WriteLibrary("/usr/lib/libcuda.so.550.54.15", "libcuda.so.1");
  WriteLibrary("/usr/lib/libapp.so.1", "libapp.so.1");
  ASSERT_TRUE(Update({"/usr/lib"}).ok());
  EXPECT_THAT(Cache(), ElementsAre("/usr/lib/libcuda.so.1", "/usr/lib/libc.so.6",
                                   "/opt/app/lib/libapp.so.1", "/usr/lib/libapp.so.1"));
  EXPECT_THAT(Names("/etc/ld.so.conf.d"), ElementsAre("app.conf"));
}

TEST_F(GlibcTest, TwoNamesOfOneFolderAreOne) {
  Link("/lib", "usr/lib");
  WriteLibrary("/usr/lib/libcuda.so.550.54.15", "libcuda.so.1");
  ASSERT_TRUE(Update({"/lib", "/usr/lib"}).ok());
  EXPECT_THAT(Cache(), ElementsAre("/usr/lib/libcuda.so.1", "/usr/lib/libc.so.6",
                                   "/opt/app/lib/libapp.so.1"));
}

TEST_F(GlibcTest, TheDriversLibraryComesBeforeAnImagesStub) {
  Write("/etc/ld.so.conf.d/cuda.conf", "/usr/local/cuda/lib64/stubs\n");
  WriteLibrary("/usr/local/cuda/lib64/stubs/libcuda.so.1", "libcuda.so.1");
  WriteCache({"/usr/local/cuda/lib64/stubs/libcuda.so.1"});
  ASSERT_TRUE(Update().ok());
  EXPECT_THAT(Cache(), ElementsAre("/usr/local/nvidia/lib64/libcuda.so.1",
                                   "/usr/local/cuda/lib64/stubs/libcuda.so.1"));
}

TEST_F(GlibcTest, WhatAnImagePutsBeforeEverythingStaysThere) {
  Write("/etc/ld.so.conf.d/00-cuda-compat.conf", "/usr/local/cuda/compat/lib\n");
  WriteLibrary("/usr/local/cuda/compat/lib/libcuda.so.1", "libcuda.so.1");
  WriteCache({"/usr/local/cuda/compat/lib/libcuda.so.1"});
  ASSERT_TRUE(Update().ok());
  EXPECT_THAT(Cache(), ElementsAre("/usr/local/cuda/compat/lib/libcuda.so.1",
                                   "/usr/local/nvidia/lib64/libcuda.so.1"));
}

TEST_F(GlibcTest, ALinkForCompilersDoesNotHideTheDriversLibrary) {
  WriteLibrary("/usr/lib/libcuda.so", "libcuda.so");
  WriteCache({"/usr/lib/libc.so.6", "/usr/lib/libcuda.so"});
  WriteLibrary("/usr/lib/libcuda.so.550.54.15", "libcuda.so.1");
  ASSERT_TRUE(Update({"/usr/lib"}).ok());
  EXPECT_THAT(Cache(),
              ElementsAre("/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so", "/usr/lib/libc.so.6"));
}

TEST_F(GlibcTest, EntriesWithoutTheirFileGoFromTheFoldersThatAreRead) {
  WriteCache({"/usr/lib/libc.so.6", "/usr/lib/libgone.so.1", "/opt/app/lib/libapp.so.1"});
  ASSERT_TRUE(Update({"/usr/lib"}).ok());
  EXPECT_THAT(Cache(), ElementsAre("/usr/lib/libc.so.6", "/opt/app/lib/libapp.so.1"));
}

TEST_F(GlibcTest, LinksAreEnteredAsLdconfigEntersThem) {
  const std::string folder = kDriver;
  Link(folder + "/libcuda.so.1", "libcuda.so.550.54.15");
  Link(folder + "/libcuda.so", "libcuda.so.1");
  Link(folder + "/libanother.so.3", "libcuda.so.550.54.15");
  Link(folder + "/libgone.so.1", "libgone.so.550.54.15");
  ASSERT_TRUE(Update().ok());
  EXPECT_THAT(Cache(), ElementsAre(folder + "/libcuda.so.1", folder + "/libcuda.so",
                                   "/usr/lib/libc.so.6", "/opt/app/lib/libapp.so.1"));
}

TEST_F(GlibcTest, OtherFilesInTheFolderAreNoLibraries) {
  const std::string folder = kDriver;
  Write(folder + "/libtext.so", "INPUT(libc.so.6)\n");
  Write(folder + "/libempty.so.1", "");
  Write(folder + "/readme", "");
  Write(folder + "/libforeign.so.1",
        os::MakeElf({.machine = EM_S390, .soname = "libforeign.so.1"}));
  Write(folder + "/libpath.so.1",
        os::MakeElf({.machine = kMachine, .soname = "../../../../etc/passwd"}));
  fs::create_directories(folder_ / ("root" + folder + "/libfolder.so"));
  ASSERT_EQ(::mkfifo((folder_ / ("root" + folder + "/libfifo.so")).c_str(), 0644), 0);
  ASSERT_TRUE(Update().ok());
  EXPECT_THAT(Cache(), SizeIs(3));
  EXPECT_THAT(Names("/etc"), ElementsAre("ld.so.cache", "ld.so.conf", "ld.so.conf.d"));
}

TEST_F(GlibcTest, LibrariesFor32BitProgramsAreKnownAsSuch) {
  WriteLibrary("/usr/lib32/libcuda.so.550.54.15", "libcuda.so.1", false);
  ASSERT_TRUE(Update({kDriver, "/usr/lib32"}).ok());
  const auto entries = os::ReadLdCache(Read("/etc/ld.so.cache"));
  ASSERT_THAT(*entries, SizeIs(4));
  EXPECT_EQ((*entries)[0].flags, kEntryFlags);
  EXPECT_EQ((*entries)[1].path, "/usr/lib32/libcuda.so.1");
  EXPECT_EQ((*entries)[1].flags, 0x0003);
}

TEST_F(GlibcTest, AnImagesBrokenListIsReplacedAndSaid) {
  Write("/etc/ld.so.cache", "glibc-ld.so.cache1.1 and then nothing");
  ASSERT_TRUE(Update().ok());
  EXPECT_THAT(Cache(), ElementsAre("/usr/local/nvidia/lib64/libcuda.so.1"));
  EXPECT_THAT(warnings_.messages(),
              ElementsAre(HasSubstr("/etc/ld.so.cache is not used: broken ld.so.cache")));
}

TEST_F(GlibcTest, AFolderThatIsNotThereIsPassedOver) {
  ASSERT_TRUE(Update({"/usr/none"}).ok());
  EXPECT_THAT(Cache(), SizeIs(2));
  EXPECT_THAT(Names("/etc/ld.so.conf.d"), ElementsAre("app.conf"));
  ExpectNoWarnings();
}

TEST_F(GlibcTest, IncludesThatLeadInACircleEnd) {
  Write("/etc/ld.so.conf",
        "include /etc/ld.so.conf\ninclude ld.so.conf.d/*.conf\tother/[ab].conf\n/opt/x=libc6\n");
  Write("/etc/ld.so.conf.d/b.conf", "include /etc/ld.so.conf.d/*.conf\n/opt/b\nrelative\n");
  Write("/etc/other/a.conf", "/opt/other\n");
  std::vector<std::string> paths;
  for (const LdConfigFolder& folder : ReadLdConfig(Root())) paths.push_back(folder.path);
  EXPECT_THAT(paths, ElementsAre("/opt/app/lib", "/opt/b", "/opt/other", "/opt/x", "/lib",
                                 "/usr/lib", "/lib64", "/usr/lib64"));
}

TEST_F(GlibcTest, AFolderWhoseNameEndsInBlanksIsTheSameWhenItIsWrittenAndRead) {
  Write(kDriverDropIn, "/opt/a \t/\n/opt/b \n");
  const std::vector<std::string> folders = ReadFolders(Root(), kDriverDropIn);
  EXPECT_THAT(folders, ElementsAre("/opt/a \t", "/opt/b"));
  Write(kDriverDropIn, WriteFolders(folders));
  EXPECT_EQ(ReadFolders(Root(), kDriverDropIn), folders);
}

TEST_F(GlibcTest, IncludesBeyondAThousandAreNotRead) {
  std::string config;
  for (int i = 0; i < 1023; ++i) config += "include none-" + std::to_string(i) + "/*.conf\n";
  Write("/etc/ld.so.conf", config + "include last/*.conf beyond/*.conf\n");
  Write("/etc/last/a.conf", "/opt/last\n");
  Write("/etc/beyond/a.conf", "/opt/beyond\n");
  std::vector<std::string> paths;
  for (const LdConfigFolder& folder : ReadLdConfig(Root())) paths.push_back(folder.path);
  EXPECT_THAT(paths, ElementsAre("/opt/last", "/lib", "/usr/lib", "/lib64", "/usr/lib64"));
}

TEST_F(GlibcTest, CompatibilityLibrariesComeFirstWhereTheyAreNewer) {
  WriteLibrary("/usr/local/cuda/compat/libcuda.so.560.1", "libcuda.so.1");
  ASSERT_TRUE(EnableCudaCompat(Root(), {.driver_version = "550.54.15"}, warnings_).ok());
  ASSERT_TRUE(Update().ok());
  EXPECT_THAT(Names("/etc/ld.so.conf.d"),
              ElementsAre("00-penstock-compat.conf", "00-penstock-driver.conf", "app.conf"));
  EXPECT_THAT(Cache(), ElementsAre("/usr/local/cuda/compat/libcuda.so.1",
                                   "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/libc.so.6",
                                   "/opt/app/lib/libapp.so.1"));
  // The same container with a newer driver.
  ASSERT_TRUE(EnableCudaCompat(Root(), {.driver_version = "570.1"}, warnings_).ok());
  EXPECT_THAT(Names("/etc/ld.so.conf.d"), ElementsAre("00-penstock-driver.conf", "app.conf"));
  ExpectNoWarnings();
}

TEST_F(GlibcTest, FoldersWithoutEndAreOneCallsWorkTogether) {
  std::string folders;
  WriteLibrary("/many/0/liba0.so", "liba.so.1");
  for (int i = 0; i < 40; ++i) {
    const fs::path folder = fs::path(folder_ / "root/many") / std::to_string(i);
    fs::create_directories(folder);
    for (int j = i == 0 ? 1 : 0; j < 500; ++j)
      fs::create_hard_link(fs::path(folder_ / "root/many/0/liba0.so"),
                           folder / ("liba" + std::to_string(j) + ".so"));
    folders += "/many/" + std::to_string(i) + "\n";
  }
  Write(kCompatDropIn, folders);
  EXPECT_TRUE(Update().ok());
  EXPECT_THAT(warnings_.messages(), Contains(HasSubstr("more libraries than one call processes")));
  EXPECT_THAT(Cache(), Contains(HasSubstr("libapp.so.1"))) << "what was there is kept";
}

TEST_F(HooksTest, AnImageWithoutAnythingGetsWhatItNeeds) {
  WriteLibrary(std::string(kDriver) + "/libcuda.so.550.54.15", "libcuda.so.1");
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(Read("/etc/ld.so.conf"), "include /etc/ld.so.conf.d/*.conf\n");
  EXPECT_THAT(Cache(), ElementsAre("/usr/local/nvidia/lib64/libcuda.so.1"));
  ExpectNoWarnings();
}

TEST_F(HooksTest, AnEmptyImageStaysEmptyWithoutLibraries) {
  ASSERT_TRUE(Update({}).ok());
  EXPECT_THAT(Names("/"), IsEmpty());
}

TEST_F(HooksTest, DebiansOwnFoldersAreKnownInDebianAlone) {
  const std::string triplet = std::string("/usr/lib/") + kMusl + "-linux-gnu";
  WriteLibrary(triplet + "/libcuda.so.550.54.15", "libcuda.so.1");
  ASSERT_TRUE(Update({triplet}).ok());
  EXPECT_THAT(ReadFolders(Root(), kDriverDropIn), ElementsAre(triplet));
  Write("/etc/debian_version", "12.0\n");
  ASSERT_TRUE(Update({triplet}).ok());
  EXPECT_THAT(ReadFolders(Root(), kDriverDropIn), IsEmpty());
  EXPECT_THAT(Cache(), ElementsAre(triplet + "/libcuda.so.1"));
}

TEST_F(HooksTest, MuslFindsTheDriverByItsPath) {
  const std::string file = std::string("/etc/ld-musl-") + kMusl + ".path";
  Write(std::string("/lib/ld-musl-") + kMusl + ".so.1", "");
  WriteLibrary(std::string(kDriver) + "/libcuda.so.1", "libcuda.so.1");
  WriteLibrary("/usr/lib32/libcuda.so.1", "libcuda.so.1", false);
  ASSERT_TRUE(Update({kDriver, "/usr/lib32"}).ok());
  EXPECT_EQ(Read(file), "/usr/local/nvidia/lib64\n/lib\n/usr/local/lib\n/usr/lib\n");
  ASSERT_TRUE(Update({kDriver}).ok());
  EXPECT_EQ(Read(file), "/usr/local/nvidia/lib64\n/lib\n/usr/local/lib\n/usr/lib\n");
  EXPECT_THAT(Names("/etc"), SizeIs(1));
  Write(file, "/custom:/lib");
  ASSERT_TRUE(Update({kDriver}).ok());
  EXPECT_EQ(Read(file), "/usr/local/nvidia/lib64\n/custom\n/lib\n");
}

TEST_F(HooksTest, LinksAreMadeAndReplaced) {
  Write("/usr/lib/libcuda.so", "a file");
  Link("/usr/lib/libold.so", "elsewhere");
  ASSERT_TRUE(CreateSymlinks(Root(),
                             {"libcuda.so.1::/usr/lib/libcuda.so", "new::/usr/lib/libold.so",
                              "../card1::/dev/dri/by-path/card"},
                             warnings_)
                  .ok());
  EXPECT_EQ(ReadLink("/usr/lib/libcuda.so"), "libcuda.so.1");
  EXPECT_EQ(ReadLink("/usr/lib/libold.so"), "new");
  EXPECT_EQ(ReadLink("/dev/dri/by-path/card"), "../card1");
  ExpectNoWarnings();
}

TEST_F(HooksTest, WhatIsNoLinkIsSaid) {
  for (const std::string link : {"", "target", "::/link", "a::b::c", "a::/"}) {
    EXPECT_EQ(CreateSymlinks(Root(), {link}, warnings_).error().code(), Code::kInvalidArgument)
        << link;
  }
}

TEST_F(HooksTest, SonameLinksAreMadeAndNothingIsReplaced) {
  WriteLibrary("/lib/libcuda.so.550.54.15", "libcuda.so.1");
  WriteLibrary("/lib/libother.so.2.0", "libother.so.2");
  Write("/lib/libother.so.2", "something");
  ASSERT_TRUE(CreateSonameLinks(Root(), {"/lib", "/none"}, warnings_).ok());
  EXPECT_EQ(ReadLink("/lib/libcuda.so.1"), "libcuda.so.550.54.15");
  EXPECT_EQ(Read("/lib/libother.so.2"), "something");
}

TEST_F(HooksTest, ModesAreSetInsideAndMissingPathsPassedOver) {
  Write("/dev/dri/card0", "");
  Write("/opt/file", "");
  ASSERT_TRUE(ChangeModes(Root(), "711", {"/dev/dri", "/none", "opt/file"}, warnings_).ok());
  EXPECT_EQ(fs::status(folder_ / "root/dev/dri").permissions(), fs::perms{0711});
  EXPECT_EQ(fs::status(folder_ / "root/opt/file").permissions(), fs::perms{0711});
  for (const std::string mode : {"", "rwx", "99", "17777"})
    EXPECT_FALSE(ChangeModes(Root(), mode, {"/dev"}, warnings_).ok()) << mode;
  EXPECT_FALSE(ChangeModes(Root(), "755", {" "}, warnings_).ok());
}

struct CompatCase {
  std::string library = "libcuda.so.560.1";
  std::string note;  // JSON; empty: none
  std::string driver;
  std::string cuda;
  bool used = false;
};

class CompatTest : public HooksTest, public testing::WithParamInterface<CompatCase> {};

// As the toolkit compiles it: an ELF note with the vendor's name, followed by the text.
std::string NoteSection(const std::string& json) {
  const std::string vendor("NVIDIA Corporation\0\0", 20);
  const std::uint32_t header[3] = {19, static_cast<std::uint32_t>(json.size()), 0};
  return std::string(reinterpret_cast<const char*>(header), sizeof header) + vendor + json;
}

TEST_P(CompatTest, FollowsTheLibrarysNoteThenItsVersion) {
  os::ElfRecipe recipe{.machine = kMachine, .soname = "libcuda.so.1"};
  if (!GetParam().note.empty())
    recipe.sections = {{".note.cuda.fwd_compatibility", NoteSection(GetParam().note)}};
  Write("/usr/local/cuda/compat/" + GetParam().library, os::MakeElf(recipe));
  ASSERT_TRUE(
      EnableCudaCompat(
          Root(), {.driver_version = GetParam().driver, .cuda_version = GetParam().cuda}, warnings_)
          .ok());
  EXPECT_EQ(Root().Exists(kCompatDropIn), GetParam().used);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, CompatTest,
    testing::Values(
        CompatCase{.driver = "550.54.15", .used = true}, CompatCase{.driver = "560.9"},
        CompatCase{.driver = "1000.1"},
        CompatCase{.library = "libcuda.so.1000.1", .driver = "999.5", .used = true},
        CompatCase{.driver = ""}, CompatCase{.library = "libcuda.so.1", .driver = "550.1"},
        CompatCase{.library = "libcuda.so.x.y", .driver = "550.1"},
        CompatCase{.note = R"({"Format":1,"CUDA Version":"12.10"})",
                   .driver = "999.1",
                   .cuda = "12.9",
                   .used = true},
        CompatCase{
            .note = R"({"Format":1,"CUDA Version":"12.4"})", .driver = "1.1", .cuda = "12.4"},
        CompatCase{.note = R"({"CUDA Version":"12.8","Driver":[535,550],"Device":[1]})",
                   .driver = "550.1",
                   .used = true},
        CompatCase{.note = R"({"CUDA Version":"12.8","Driver":[535,550]})", .driver = "545.1"},
        CompatCase{.note = "not JSON", .driver = "550.1", .cuda = "12.4"}));

TEST_F(HooksTest, SeveralCompatibilityLibrariesAreNone) {
  Write("/usr/local/cuda/compat/libcuda.so.560.1", "");
  Write("/usr/local/cuda/compat/libcuda.so.570.1", "");
  ASSERT_TRUE(EnableCudaCompat(Root(), {.driver_version = "550.1"}, warnings_).ok());
  EXPECT_FALSE(Root().Exists(kCompatDropIn));
  EXPECT_THAT(warnings_.messages(), ElementsAre(HasSubstr("several CUDA compatibility libraries")));
  EXPECT_EQ(EnableCudaCompat(Root(), {.driver_version = "new"}, warnings_).error().code(),
            Code::kInvalidArgument);
}

TEST_F(HooksTest, ADriverThatForbidsDeviceFilesNeedsNothing) {
  folder_.Write("params", "ModifyDeviceFiles: 0\nDeviceFileUID: 0\n");
  EXPECT_TRUE(
      DisableDeviceNodeModification(Root(), {.machine = folder_ / "params"}, warnings_).ok());
  EXPECT_TRUE(DisableDeviceNodeModification(Root(), {.machine = folder_ / "none"}, warnings_).ok());
  ExpectNoWarnings();
}

TEST_F(HooksTest, AnOptionThatOnlyContainsTheNameIsNotTheOne) {
  folder_.Write("params",
                "NoModifyDeviceFiles: 1\nModifyDeviceFiles: 10\nMyModifyDeviceFiles: 1\n");
  EXPECT_TRUE(
      DisableDeviceNodeModification(Root(), {.machine = folder_ / "params"}, warnings_).ok());
  ExpectNoWarnings();
}

TEST_F(HooksTest, ADriverWhoseParametersCannotBeReadIsAnErrorThatNamesThem) {
  fs::create_directories(folder_ / "params");
  const auto done =
      DisableDeviceNodeModification(Root(), {.machine = folder_ / "params"}, warnings_);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().message(), HasSubstr(folder_ / "params"));
}

TEST_F(HooksTest, NothingIsPutOverAnImagesOwnFile) {
  folder_.Write("params", "DeviceFileUID: 0\nModifyDeviceFiles: 1\n");
  Write("/proc/driver/nvidia/params", "the image's");
  EXPECT_TRUE(
      DisableDeviceNodeModification(Root(), {.machine = folder_ / "params"}, warnings_).ok());
  EXPECT_EQ(Read("/proc/driver/nvidia/params"), "the image's");
  EXPECT_THAT(warnings_.messages(), ElementsAre(HasSubstr("is not a file of the kernel")));
}

TEST_F(HooksTest, WithoutDeviceFilesThereIsNoProfile) {
  Write("/dev/nvidia0", "a file, not a device");
  EXPECT_TRUE(UpdateApplicationProfile(Root(), warnings_).ok());
  EXPECT_THAT(Names("/"), ElementsAre("dev"));
}

}  // namespace
}  // namespace penstock::hook
