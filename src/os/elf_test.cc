// Tests ELF files: generated ones, this machine's, and broken ones.
#include "os/core/elf.h"

#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include "os/core/fd.h"
#include "os/core/testing/elf_maker.h"
#include "os/core/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class ElfTest : public testing::Test {
 protected:
  UniqueFd Open(const std::string& content) {
    folder_.Write("file", content);
    return UniqueFd(::open((folder_ / "file").c_str(), O_RDONLY | O_CLOEXEC));
  }
  base::Result<ElfFacts> Read(const std::string& content) {
    return ReadElf(Open(content).get(), "libx.so");
  }
  base::Result<std::string> ReadSection(const std::string& content, const std::string& section,
                                        std::size_t most = 100) {
    return ReadElfSection(Open(content).get(), "libx.so", section, most);
  }

  TemporaryFolder folder_;
};

// A generated file with one field of its header replaced.
template <typename Field>
std::string With(Field Elf64_Ehdr::*field, Field value,
                 const ElfRecipe& recipe = {.soname = "libx.so.1"}) {
  std::string file = MakeElf(recipe);
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  header.*field = value;
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

TEST_F(ElfTest, SaysWhatAFileCallsItselfAndWhatItNeeds) {
  const auto facts = Read(MakeElf(
      {.machine = EM_AARCH64, .soname = "libcuda.so.1", .needed = {"libc.so.6", "libdl.so.2"}}));
  ASSERT_TRUE(facts.ok()) << facts.error().message();
  EXPECT_TRUE(facts->wide);
  EXPECT_EQ(facts->machine, EM_AARCH64);
  EXPECT_EQ(facts->soname, "libcuda.so.1");
  EXPECT_THAT(facts->needed, ElementsAre("libc.so.6", "libdl.so.2"));
}

TEST_F(ElfTest, ReadsFilesFor32BitPrograms) {
  const auto facts = Read(MakeElf(
      {.wide = false, .machine = EM_386, .soname = "libcuda.so.1", .needed = {"libc.so.6"}}));
  ASSERT_TRUE(facts.ok()) << facts.error().message();
  EXPECT_FALSE(facts->wide);
  EXPECT_EQ(facts->soname, "libcuda.so.1");
  EXPECT_THAT(facts->needed, ElementsAre("libc.so.6"));
}

TEST_F(ElfTest, ReadsThisMachinesLibraries) {
  Dl_info info{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&::gnu_get_libc_version), &info), 0);
  const UniqueFd fd(::open(info.dli_fname, O_RDONLY | O_CLOEXEC));
  const auto facts = ReadElf(fd.get(), info.dli_fname);
  ASSERT_TRUE(facts.ok()) << facts.error().message();
  EXPECT_EQ(facts->soname, "libc.so.6");
  EXPECT_THAT(facts->needed, Contains(HasSubstr("ld-linux")));
  EXPECT_TRUE(ReadElfSection(fd.get(), "libc.so.6", ".note.gnu.build-id").ok());
}

TEST_F(ElfTest, ALibraryMayHaveNoName) { EXPECT_EQ(Read(MakeElf({}))->soname, ""); }

TEST_F(ElfTest, ReadsASection) {
  const std::string file =
      MakeElf({.sections = {{".note.a", "first"}, {".note.cuda.fwd_compatibility", "second"}}});
  EXPECT_EQ(*ReadSection(file, ".note.cuda.fwd_compatibility"), "second");
  EXPECT_EQ(ReadSection(file, ".note.b").error().code(), Code::kNotFound);
  EXPECT_EQ(ReadSection(file, ".note.a", 4).error().code(), Code::kResourceExhausted);
  EXPECT_EQ(
      *ReadSection(MakeElf({.wide = false, .machine = EM_386, .sections = {{".note.a", "narrow"}}}),
                   ".note.a"),
      "narrow");
}

TEST_F(ElfTest, RefusesWhatIsNoElfFile) {
  for (const std::string content : {"", "\x7f",
                                    "\x7f"
                                    "ELF",
                                    "INPUT(libc.so.6)\n"}) {
    EXPECT_EQ(Read(content).error().code(), Code::kInvalidArgument) << content;
    EXPECT_THAT(Read(content).error().message(), HasSubstr("libx.so is not an ELF file"));
  }
}

TEST_F(ElfTest, RefusesTheOtherByteOrder) {
  std::string file = MakeElf({});
  file[EI_DATA] = ELFDATA2MSB;
  EXPECT_THAT(Read(file).error().message(), HasSubstr("opposite byte order"));
}

TEST_F(ElfTest, RefusesAFileThatIsCutShortWhereverThatIs) {
  const std::string file = MakeElf({.soname = "libx.so.1", .needed = {"libc.so.6"}});
  // Bytes after the names are not read.
  const std::size_t end = file.find("libx.so.1") + std::strlen("libx.so.1");
  for (std::size_t length = 0; length < end; ++length)
    EXPECT_FALSE(Read(file.substr(0, length)).ok()) << length;
  EXPECT_FALSE(ReadSection(file.substr(0, file.size() - 1), ".note").ok());
}

TEST_F(ElfTest, RefusesCountsAndPlacesThatNoFileHas) {
  EXPECT_THAT(Read(With(&Elf64_Ehdr::e_phnum, Elf64_Half{0xffff})).error().message(),
              HasSubstr("65535 segments"));
  EXPECT_EQ(Read(With(&Elf64_Ehdr::e_phoff, ~Elf64_Off{0})).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Read(With(&Elf64_Ehdr::e_phentsize, Elf64_Half{1})).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(ReadSection(With(&Elf64_Ehdr::e_shnum, Elf64_Half{0xffff}), ".a").error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(ReadSection(With(&Elf64_Ehdr::e_shoff, ~Elf64_Off{0}), ".a").error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(ReadSection(With(&Elf64_Ehdr::e_shstrndx, Elf64_Half{0xfff0}), ".a").error().code(),
            Code::kNotFound);
}

TEST_F(ElfTest, RefusesNamesWithoutEnd) {
  const auto facts = Read(MakeElf({.soname = std::string(5000, 'x')}));
  ASSERT_FALSE(facts.ok());
  EXPECT_THAT(facts.error().message(), HasSubstr("longer than 4096 bytes"));
}

TEST_F(ElfTest, RefusesMoreNeededLibrariesThanAnyoneHas) {
  EXPECT_TRUE(Read(MakeElf({.needed = std::vector<std::string>(1024, "a")})).ok());
  EXPECT_FALSE(Read(MakeElf({.needed = std::vector<std::string>(1025, "a")})).ok());
  EXPECT_FALSE(Read(MakeElf({.needed = std::vector<std::string>(5000, "a")})).ok());
}

TEST_F(ElfTest, RefusesADirectory) {
  const UniqueFd fd(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_FALSE(ReadElf(fd.get(), "folder").ok());
}

}  // namespace
}  // namespace penstock::os
