// Tests ld.so.cache with this machine's own, with glibc's tools as second readers, and with broken
// ones.
#include "os/core/ld_cache.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/core/testing/elf_maker.h"
#include "os/core/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::int32_t kX86 = 0x0303;

// A program's output; empty if it cannot be executed.
std::string Output(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string output;
  char piece[4096];
  while (pipe) {
    const std::size_t got = std::fread(piece, 1, sizeof piece, pipe.get());
    if (got == 0) break;
    output.append(piece, got);
  }
  return output;
}

// The output of "ldconfig -p" for a file: name and path of each entry, in its order.
std::vector<std::string> AsLdconfigReads(const std::string& path) {
  std::vector<std::string> lines;
  for (const std::string& line :
       base::Split(Output("/sbin/ldconfig -p -C " + path + " 2>&1"), '\n')) {
    const auto arrow = line.find(" => ");
    if (arrow != std::string::npos)
      lines.push_back(std::string(base::Trim(line.substr(0, line.find(" (")))) + " => " +
                      line.substr(arrow + 4));
  }
  return lines;
}

std::vector<std::string> Lines(const std::vector<LdCacheEntry>& entries) {
  std::vector<std::string> lines;
  for (const LdCacheEntry& entry : entries) lines.push_back(entry.soname + " => " + entry.path);
  return lines;
}

std::vector<std::string> Sonames(const std::vector<LdCacheEntry>& entries) {
  std::vector<std::string> names;
  for (const LdCacheEntry& entry : entries) names.push_back(entry.soname);
  return names;
}

LdCacheEntry Entry(const std::string& soname, const std::string& folder = "/usr/lib") {
  return {.soname = soname, .path = folder + "/" + soname, .flags = kX86};
}

TEST(LdCache, ReadsThisMachinesOwnAsLdconfigDoes) {
  const auto bytes = ReadFile("/etc/ld.so.cache");
  ASSERT_TRUE(bytes.ok()) << bytes.error().message();
  const auto entries = ReadLdCache(*bytes);
  ASSERT_TRUE(entries.ok()) << entries.error().message();
  EXPECT_EQ(Lines(*entries), AsLdconfigReads("/etc/ld.so.cache"));
}

TEST(LdCache, WritesThisMachinesOwnInTheSameOrderAndWithoutLoss) {
  const auto entries = ReadLdCache(*ReadFile("/etc/ld.so.cache"));
  ASSERT_TRUE(entries.ok());
  // Reversed, so that only the writer determines the order; entries that differ only in their path
  // keep their order.
  std::vector<LdCacheEntry> shuffled(entries->rbegin(), entries->rend());
  std::stable_sort(shuffled.begin(), shuffled.end(),
                   [&](const LdCacheEntry& a, const LdCacheEntry& b) {
                     const auto place = [&](const LdCacheEntry& entry) {
                       return std::find(entries->begin(), entries->end(), entry);
                     };
                     return a.soname == b.soname && place(a) < place(b);
                   });
  EXPECT_EQ(*ReadLdCache(WriteLdCache(*entries)), *entries);
  EXPECT_EQ(Sonames(*ReadLdCache(WriteLdCache(shuffled))), Sonames(*entries));
}

TEST(LdCache, IsReadByLdconfig) {
  const TemporaryFolder folder;
  const std::vector<LdCacheEntry> entries = {
      Entry("libb.so.10"),
      Entry("libb.so.9"),
      Entry("liba.so.1"),
      {.soname = "liba.so.1", .path = "/lib32/liba.so.1", .flags = 0x0003}};
  folder.Write("cache", WriteLdCache(entries));
  EXPECT_THAT(AsLdconfigReads(folder / "cache"),
              ElementsAre("libb.so.10 => /usr/lib/libb.so.10", "libb.so.9 => /usr/lib/libb.so.9",
                          "liba.so.1 => /usr/lib/liba.so.1", "liba.so.1 => /lib32/liba.so.1"));
  const std::string text = Output("/sbin/ldconfig -p -C " + (folder / "cache"));
  EXPECT_THAT(text, HasSubstr("liba.so.1 (libc6,x86-64) => /usr/lib/liba.so.1"));
  EXPECT_THAT(text, HasSubstr("liba.so.1 (libc6) => /lib32/liba.so.1"));
  EXPECT_THAT(text, HasSubstr("Penstock"));
}

TEST(LdCache, KeepsFoldersOfGlibcHwcaps) {
  const std::vector<LdCacheEntry> entries = {
      {.soname = "liba.so.1", .path = "/usr/lib/liba.so.1", .flags = kX86},
      {.soname = "liba.so.1",
       .path = "/usr/lib/glibc-hwcaps/x86-64-v4/liba.so.1",
       .flags = kX86,
       .hwcap = 1ull << 62,
       .hwcaps = "x86-64-v4"},
      {.soname = "liba.so.1",
       .path = "/usr/lib/glibc-hwcaps/x86-64-v3/liba.so.1",
       .flags = kX86,
       .hwcap = 1ull << 62,
       .hwcaps = "x86-64-v3"}};
  const std::string bytes = WriteLdCache(entries);
  EXPECT_THAT(*ReadLdCache(bytes), ElementsAre(entries[2], entries[1], entries[0]));
  const TemporaryFolder folder;
  folder.Write("cache", bytes);
  EXPECT_THAT(Output("/sbin/ldconfig -p -C " + (folder / "cache")),
              HasSubstr("liba.so.1 (libc6,x86-64, hwcap: \"x86-64-v3\") => "
                        "/usr/lib/glibc-hwcaps/x86-64-v3/liba.so.1"));
}

TEST(LdCache, FindsTheFirstOfEntriesThatAreAlikeFirst) {
  EXPECT_THAT(Lines(*ReadLdCache(WriteLdCache(
                  {Entry("liba.so", "/first"), Entry("libz.so"), Entry("liba.so", "/second")}))),
              ElementsAre("libz.so => /usr/lib/libz.so", "liba.so => /first/liba.so",
                          "liba.so => /second/liba.so"));
}

TEST(LdCache, ReadsTheNewFormatBehindTheOldOne) {
  const std::string list = WriteLdCache({Entry("liba.so.1")});
  std::string bytes = "ld.so-1.7.0";
  bytes += '\0';
  const std::uint32_t count = 3;
  bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
  bytes.append(3 * 12, 'o');
  bytes.append((8 - bytes.size() % 8) % 8, '\0');
  EXPECT_THAT(*ReadLdCache(bytes + list), ElementsAre(Entry("liba.so.1")));
  EXPECT_FALSE(ReadLdCache(bytes).ok());
}

TEST(LdCache, AnEmptyListIsAList) { EXPECT_THAT(*ReadLdCache(WriteLdCache({})), SizeIs(0)); }

TEST(LdCache, RefusesWhatIsNoCache) {
  for (const std::string bytes : {"", "ld.so-1.7.0", "glibc-ld.so.cache1.1",
                                  "glibc-ld.so.cache1.0 and more of it than a header has bytes"}) {
    EXPECT_EQ(ReadLdCache(bytes).error().code(), Code::kInvalidArgument) << bytes;
  }
}

TEST(LdCache, RefusesTheOtherByteOrder) {
  std::string bytes = WriteLdCache({});
  bytes[28] ^= 1;
  EXPECT_THAT(ReadLdCache(bytes).error().message(), HasSubstr("opposite byte order"));
  bytes[28] = 0;  // glibc before 2.33 did not set the flags
  EXPECT_TRUE(ReadLdCache(bytes).ok());
}

TEST(LdCache, RefusesAFileThatIsCutShortWhereverThatIs) {
  const std::string bytes = WriteLdCache({Entry("liba.so.1"), Entry("libb.so.1")});
  const std::size_t names_end =
      bytes.find("/usr/lib/liba.so.1") + std::strlen("/usr/lib/liba.so.1");
  for (std::size_t length = 0; length <= names_end; ++length)
    EXPECT_FALSE(ReadLdCache(bytes.substr(0, length)).ok()) << length;
}

TEST(LdCache, RefusesCountsAndPlacesThatItCannotHave) {
  const std::string good = WriteLdCache({Entry("liba.so.1")});
  for (const std::size_t field : {20u, 52u, 56u}) {  // number of entries; the entry's name and path
    std::string bytes = good;
    std::memset(bytes.data() + field, 0xff, 4);
    EXPECT_EQ(ReadLdCache(bytes).error().code(), Code::kInvalidArgument) << field;
  }
  std::string bytes = good;
  const std::uint64_t hwcap = (1ull << 62) | 7;  // of a folder that is not named
  std::memcpy(bytes.data() + 64, &hwcap, sizeof hwcap);
  EXPECT_THAT(ReadLdCache(bytes).error().message(), HasSubstr("glibc-hwcaps"));
}

TEST(LdCache, ASmallFileCannotBecomeALargeList) {
  // All entries share the same long text.
  const std::size_t count = 20'000;
  std::vector<LdCacheEntry> entries(count, Entry(std::string(4000, 'a')));
  const std::string bytes = WriteLdCache(entries);
  ASSERT_LT(bytes.size(), 1u << 20);
  EXPECT_EQ(ReadLdCache(bytes).error().code(), Code::kInvalidArgument);
}

TEST(LdCache, NamesOfGlibcHwcapsFoldersAreFewAndShort) {
  const auto read = [](int folders, std::size_t name, std::size_t entries = 0) {
    std::vector<LdCacheEntry> list(entries, Entry("liba.so.1"));
    for (int i = 0; i < folders; ++i) list.push_back(Entry("liba.so.1"));
    for (std::size_t i = 0; i < list.size(); ++i)
      list[i].hwcaps =
          std::string(name, 'x') + std::to_string(100 + i % static_cast<std::size_t>(folders));
    return ReadLdCache(WriteLdCache(list));
  };
  EXPECT_TRUE(read(64, 9).ok());
  EXPECT_THAT(read(65, 9).error().message(), HasSubstr("more than 64 glibc-hwcaps folders"));
  EXPECT_THAT(read(1, 300).error().message(), HasSubstr("303 bytes"));
  EXPECT_THAT(read(1, 250, 65'000).error().message(), HasSubstr("its names have more than"))
      << "each entry has its own copy";
}

TEST(LdCache, ComparesNamesAsLdSoDoes) {
  const std::vector<std::string> ascending = {"",           "lib",     "liba.so", "liba.so.2",
                                              "liba.so.10", "libb.so", "lib1.so", "lib10.so"};
  for (std::size_t i = 0; i + 1 < ascending.size(); ++i) {
    EXPECT_LT(CompareLibraryNames(ascending[i], ascending[i + 1]), 0) << ascending[i];
    EXPECT_GT(CompareLibraryNames(ascending[i + 1], ascending[i]), 0) << ascending[i];
  }
  EXPECT_EQ(CompareLibraryNames("liba.so.01", "liba.so.1"), 0);
  // A number beyond an int wraps around in ld.so, and its search relies on that: it takes
  // 20260101123456 for the smaller one.
  EXPECT_LT(CompareLibraryNames("libx-20260101123456.so", "libx-2000000000.so"), 0);
}

TEST(LdCache, KnowsTheKindsOfLibraries) {
  EXPECT_EQ(LdCacheFlags({.wide = true, .machine = EM_X86_64}), 0x0303);
  EXPECT_EQ(LdCacheFlags({.wide = false, .machine = EM_X86_64}), 0x0803);
  EXPECT_EQ(LdCacheFlags({.wide = false, .machine = EM_386}), 0x0003);
  EXPECT_EQ(LdCacheFlags({.wide = true, .machine = EM_AARCH64}), 0x0a03);
  EXPECT_EQ(LdCacheFlags({.wide = true, .machine = EM_S390}), std::nullopt);
}

}  // namespace
}  // namespace penstock::os
