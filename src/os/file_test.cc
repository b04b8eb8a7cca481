// Tests files, roots and libraries in temporary folders.
#include "os/core/file.h"

#include <filesystem>

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "os/core/root.h"
#include "os/library.h"
#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class File : public testing::Test {
 protected:
  const TemporaryFolder folder;
};

TEST_F(File, ReadsWhatWasWritten) {
  const std::string content = std::string(100'000, 'x') + std::string("\0end", 4);
  ASSERT_TRUE(WriteFileAtomically(folder / "a", content, 0600).ok());
  EXPECT_EQ(*ReadFile(folder / "a"), content);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(File, RefusesWhatIsLargerThanTheBound) {
  folder.Write("a", std::string(1000, 'x'));
  EXPECT_TRUE(ReadFile(folder / "a", 1000).ok());
  EXPECT_EQ(ReadFile(folder / "a", 999).error().code(), Code::kResourceExhausted);
}

TEST_F(File, ReplacesAFileWithoutLeavingAnythingBeside) {
  folder.Write("a", "old");
  ASSERT_TRUE(WriteFileAtomically(folder / "a", "new").ok());
  EXPECT_EQ(*ReadFile(folder / "a"), "new");
  EXPECT_THAT(*ListDirectory(folder.path()), ElementsAre("a"));
}

TEST_F(File, LeavesNothingBehindWhereItCannotReplace) {
  folder.Write("a/inside", "");
  EXPECT_FALSE(WriteFileAtomically(folder / "a", "new").ok());
  EXPECT_THAT(*ListDirectory(folder.path()), ElementsAre("a"));
}

TEST_F(File, LeavesTheOldContentAndNothingElseOnAFullDisk) {
  folder.Write("a", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = WriteFileAtomically(folder / "a", std::string(5000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_FALSE(written.ok());
  EXPECT_EQ(*ReadFile(folder / "a"), "old");
  EXPECT_THAT(*ListDirectory(folder.path()), ElementsAre("a"));
}

TEST_F(File, MakesDirectoriesOnTheWayAndMindsThoseThatAreThere) {
  EXPECT_TRUE(MakeDirectories(folder / "a/b//c/").ok());
  EXPECT_TRUE(MakeDirectories(folder / "a/b/c").ok());
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  folder.Write("file", "");
  EXPECT_EQ(MakeDirectories(folder / "file/x").error().code(), Code::kNotFound);
}

TEST_F(File, DirectoriesHaveTheModeThatIsAskedForWhateverTheUmask) {
  const mode_t before = ::umask(0077);
  EXPECT_TRUE(MakeDirectories(folder / "a/b").ok());
  EXPECT_TRUE(MakeDirectories(folder / "c", 0750).ok());
  ::umask(before);
  const auto mode = [this](const char* name) {
    return static_cast<unsigned>(std::filesystem::status(folder / name).permissions());
  };
  EXPECT_EQ(mode("a"), 0755u);
  EXPECT_EQ(mode("a/b"), 0755u);
  EXPECT_EQ(mode("c"), 0750u);
}

TEST_F(File, ListsNamesSorted) {
  folder.Write("b", "");
  folder.Write("a", "");
  folder.Write(".c", "");
  EXPECT_THAT(*ListDirectory(folder.path()), ElementsAre(".c", "a", "b"));
  EXPECT_EQ(ListDirectory(folder / "none").error().code(), Code::kNotFound);
}

TEST_F(File, DoesNotCreateAControlFile) {
  EXPECT_EQ(WriteControlFile(folder / "control", "1").error().code(), Code::kNotFound);
  folder.Write("control", "");
  EXPECT_TRUE(WriteControlFile(folder / "control", "1").ok());
  EXPECT_EQ(*ReadFile(folder / "control"), "1");
}

TEST(Root, FollowsAbsoluteLinksInsideItself) {
  const TemporaryFolder folder;
  folder.Write("lib/libx.so.1", "the root's own");
  folder.Link("usr/lib/libx.so", "/lib/libx.so.1");
  const auto root = Root::Open(folder.path());
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(*root->Read("/usr/lib/libx.so"), "the root's own");
  EXPECT_EQ(*root->Read("usr/lib/libx.so"), "the root's own");
  EXPECT_EQ(*root->ReadLink("/usr/lib/libx.so"), "/lib/libx.so.1");
  EXPECT_EQ(root->ReadLink("/lib/libx.so.1").error().code(), Code::kInvalidArgument);
}

TEST(Root, LetsNoPathEscape) {
  const TemporaryFolder folder;
  folder.Write("outside", "secret");
  folder.Write("root/inside", "");
  folder.Link("root/link", "../../outside");
  const auto root = Root::Open(folder / "root");
  ASSERT_TRUE(root.ok());
  EXPECT_FALSE(root->Exists("/../outside"));
  EXPECT_FALSE(root->Exists("link"));
  EXPECT_TRUE(root->Exists("../inside"));
}

TEST(Root, OneBelowLetsNoPathEscapeEither) {
  const TemporaryFolder folder;
  folder.Write("root/secret", "secret");
  folder.Write("root/below/deep/file", "text");
  folder.Link("root/below/link", "../secret");
  const auto root = Root::Open(folder / "root");
  ASSERT_TRUE(root.ok());
  const auto below = root->OpenBelow("below");
  ASSERT_TRUE(below.ok()) << below.error().message();
  EXPECT_EQ(below->Read("deep/file").value_or(""), "text");
  EXPECT_EQ(below->Read("link").error().code(), Code::kNotFound);
  EXPECT_EQ(below->Read("../secret").error().code(), Code::kNotFound);
  EXPECT_EQ(root->OpenBelow("none").error().code(), Code::kNotFound);
  EXPECT_FALSE(root->OpenBelow("secret").ok()) << "no folder";
}

TEST(Root, ListsAndSaysWhatIsMissing) {
  const TemporaryFolder folder;
  folder.Write("dev/b", "");
  folder.Write("dev/a", "");
  const auto root = Root::Open(folder.path());
  ASSERT_TRUE(root.ok());
  EXPECT_THAT(*root->List("/dev"), ElementsAre("a", "b"));
  EXPECT_THAT(*root->List("/"), ElementsAre("dev"));
  const auto missing = root->Read("/dev/c");
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("/dev/c in " + folder.path()));
  EXPECT_EQ(Root::Open(folder / "none").error().code(), Code::kNotFound);
}

TEST(Root, ReportsWhereAFileLiesWithoutLinks) {
  TemporaryFolder folder;
  folder.Write("root/usr/lib64/libx.so.1.2", "x");
  folder.Link("root/lib64", "usr/lib64");
  folder.Link("root/usr/lib64/libx.so", "/lib64/libx.so.1.2");
  folder.Link("to-root", "root");
  folder.Write("outside", "x");
  const auto root = Root::Open(folder / "to-root");
  ASSERT_TRUE(root.ok());
  const auto file = root->OpenFile("/lib64/libx.so", O_RDONLY);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(root->PathOf(*file).value_or("none"), "/usr/lib64/libx.so.1.2");
  EXPECT_EQ(root->PathOf(*root->OpenFile("/", O_PATH)).value_or("none"), "/");
  EXPECT_EQ(Root::Open("/")->PathOf(*file).value_or("none"), folder / "root/usr/lib64/libx.so.1.2");

  const UniqueFd outside(::open((folder / "outside").c_str(), O_PATH | O_CLOEXEC));
  EXPECT_EQ(root->PathOf(outside).error().code(), base::Code::kNotFound);
  std::filesystem::remove(folder / "root/usr/lib64/libx.so.1.2");
  EXPECT_EQ(root->PathOf(*file).error().code(), base::Code::kNotFound);
}

TEST(Root, OfTheSystemFollowsLinksOfProc) {
  const auto root = Root::Open("/");
  ASSERT_TRUE(root.ok());
  EXPECT_TRUE(root->OpenFile("/proc/self/exe", O_RDONLY).ok());
}

// The path of a library that every system has, for copying.
std::string PathOf(const char* soname, const char* symbol) {
  void* handle = ::dlopen(soname, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return "";
  Dl_info info{};
  const bool found = ::dladdr(::dlsym(handle, symbol), &info) != 0;
  const std::string path = found ? info.dli_fname : "";
  ::dlclose(handle);
  return path;
}

TEST(Library, AnswersNullForASymbolItLacks) {
  const auto library = Library::Load("libm.so.6");
  ASSERT_TRUE(library.ok());
  EXPECT_NE(library->Symbol("cos"), nullptr);
  EXPECT_EQ(library->Symbol("nvmlInit_v2"), nullptr);
}

TEST(Library, ReportsAMissingFileFromABrokenOne) {
  const TemporaryFolder folder;
  folder.Write("broken.so", "no library");
  EXPECT_EQ(Library::Load("libpenstock-none.so.1").error().code(), Code::kNotFound);
  EXPECT_EQ(Library::Load(folder / "none.so").error().code(), Code::kNotFound);
  EXPECT_EQ(Library::Load(folder / "broken.so").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Library::Load("").error().code(), Code::kInvalidArgument);
  const auto root = Root::Open(folder.path());
  EXPECT_EQ(Library::LoadFrom(*root, "none.so").error().code(), Code::kNotFound);
  const auto broken = Library::LoadFrom(*root, "/broken.so");
  EXPECT_EQ(broken.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(broken.error().message(), HasSubstr(folder / "broken.so"));
}

TEST(ReadFolder, GivesFilesBySuffixWithTheirTextOrWhyThereIsNone) {
  const TemporaryFolder folder;
  folder.Write("b.json", "{}");
  folder.Write("a.yaml", "a");
  folder.Write("c.yml", "no");
  folder.Write("below.json/d.json", "no");
  folder.Write("large.json", std::string(101, ' '));
  folder.Link("link.json", folder / "b.json");
  folder.Link("dangling.json", folder / "none");
  folder.Link("folder.json", folder / "below.json");
  ASSERT_EQ(::mkfifo((folder / "pipe.json").c_str(), 0600), 0);

  constexpr std::string_view kSuffixes[] = {".json", ".yaml"};
  const auto files = ReadFolder(folder.path(), kSuffixes, 100);
  std::vector<std::string> found;
  for (const FolderFile& file : files)
    found.push_back(file.path.substr(folder.path().size() + 1) + "=" +
                    (file.text.ok() ? *file.text : "?"));
  EXPECT_THAT(found, ElementsAre("a.yaml=a", "b.json={}", "dangling.json=?", "folder.json=?",
                                 "large.json=?", "link.json={}", "pipe.json=?"));
}

TEST(ReadFolder, ReportsAFolderThatIsNotThereFromOneThatIsNone) {
  const TemporaryFolder folder;
  folder.Write("there/a.json", "a");
  folder.Write("file", "");
  folder.Link("link", folder / "there");
  constexpr std::string_view kSuffixes[] = {".json"};
  EXPECT_TRUE(ReadFolder(folder / "none", kSuffixes, 100).empty());
  for (const char* none : {"file", "link"}) {
    const auto files = ReadFolder(folder / none, kSuffixes, 100);
    ASSERT_EQ(files.size(), 1u) << none;
    EXPECT_EQ(files[0].path, folder / none);
    EXPECT_THAT(files[0].text.error().message(), HasSubstr(folder / none));
  }
}

TEST(Library, IsLoadedFromTheRootThatItsLinksMean) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "lib");
  std::filesystem::copy_file(PathOf("libm.so.6", "cos"), folder / "lib/libthing.so.1");
  folder.Link("usr/lib/libthing.so", "/lib/libthing.so.1");
  const auto root = Root::Open(folder.path());
  const auto library = Library::LoadFrom(*root, "/usr/lib/libthing.so");
  ASSERT_TRUE(library.ok()) << library.error().message();
  const auto cosine = reinterpret_cast<double (*)(double)>(library->Symbol("cos"));
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
}

// The loader identifies libraries by the name they were opened with, and descriptor numbers are
// reused.
TEST(Library, IsNeverMistakenForAnotherWithTheSameDescriptorNumber) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(PathOf("libm.so.6", "cos"), folder / "first.so");
  std::filesystem::copy_file(PathOf("libresolv.so.2", "ns_name_pton"), folder / "second.so");
  const auto root = Root::Open(folder.path());
  auto first = Library::LoadFrom(*root, "first.so");
  auto second = Library::LoadFrom(*root, "second.so");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(second->Symbol("cos"), nullptr);
  EXPECT_NE(second->Symbol("ns_name_pton"), nullptr);
  *first = *std::move(second);
  EXPECT_EQ(first->Symbol("cos"), nullptr);
  EXPECT_NE(first->Symbol("ns_name_pton"), nullptr);
}

}  // namespace
}  // namespace penstock::os
