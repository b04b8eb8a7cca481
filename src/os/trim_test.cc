#include "os/trim.h"

#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "os/process/process.h"
#include "os/testing/sanitized.h"

namespace penstock::os {
namespace {

/// Resident kilobytes of this program's own file.
long Resident() {
  std::ifstream maps("/proc/self/smaps");
  const std::string own = OwnPath();
  long sum = 0;
  bool ours = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' '))
      ours = line.ends_with(own);
    if (ours && line.starts_with("Rss:")) sum += std::stol(line.substr(4));
  }
  return sum;
}

TEST(TrimLoaded, GivesBackCodeThatIsNotUsedAndTheProgramGoesOn) {
  const long before = Resident();
  ASSERT_GT(before, 0);
  TrimLoaded([](std::string_view path) { return path.empty(); });
  const long after = Resident();
  EXPECT_LT(after, before);
  std::ostringstream text;
  text << 1.5 << "goes on";
  EXPECT_EQ(text.str(), "1.5goes on");
}

TEST(TrimLoaded, LeavesAloneWhatIsNotWanted) {
  // The pages were unmapped and reread before, so that only a trim can reduce the value. This trim
  // releases the libraries' pages; the program's own code stays.
  const long before = Resident();
  int libraries = 0;
  TrimLoaded([&libraries](std::string_view path) {
    libraries += path.empty() ? 0 : 1;
    return !path.empty();
  });
  EXPECT_GE(Resident(), before);
  EXPECT_GT(libraries, 1);
  TrimLoaded([](std::string_view) { return false; });
  EXPECT_GE(Resident(), before);
}

TEST(SpareMemory, GivesBackWhatABurstFreedAndThenNothing) {
  if (kSanitized) GTEST_SKIP() << "sanitizers have an allocator of their own";
  TrimHeap();  // of what earlier tests freed
  SpareMemory memory;
  EXPECT_FALSE(memory.GiveBack());
  std::vector<std::unique_ptr<std::string>> blocks;
  for (int i = 0; i < 20000; ++i) blocks.push_back(std::make_unique<std::string>(1000, 'x'));
  const auto last = std::move(blocks.back());  // above what is freed: malloc keeps all of it
  const std::uint64_t most = AnonymousBytes();
  blocks.clear();
  EXPECT_TRUE(memory.GiveBack());
  EXPECT_LT(AnonymousBytes() + (10u << 20), most);
  EXPECT_FALSE(memory.GiveBack()) << "nothing is left of it";
  EXPECT_FALSE(memory.GiveBack());
  EXPECT_EQ(last->size(), 1000u);
  EXPECT_EQ(ReadResident("none"), 0u);
}

}  // namespace
}  // namespace penstock::os
