#include <gtest/gtest.h>

#include "base/core/hash.h"
#include "base/core/printable.h"
#include "base/core/quantity.h"
#include "base/core/result.h"
#include "base/core/strings.h"
#include "base/executor.h"
#include "base/published.h"
#include "base/testing/manual_executor.h"

namespace penstock::base {
namespace {

using namespace std::chrono_literals;

Result<int> Half(int n) {
  if (n % 2 != 0) return Error(Code::kInvalidArgument, "odd");
  return n / 2;
}

Result<int> Quarter(int n) {
  ASSIGN(const int half, Half(n));
  return Half(half);
}

TEST(Strings, PlacesOfItemsAndPartsOfPathsAreNamed) {
  EXPECT_EQ(Item("sharing.rules", 2), "sharing.rules[2]");
  EXPECT_EQ(FolderOf("/etc/docker/daemon.json"), "/etc/docker");
  EXPECT_EQ(FolderOf("daemon.json"), "daemon.json");
  EXPECT_EQ(LeafOf("/etc/docker/daemon.json"), "daemon.json");
  EXPECT_EQ(LeafOf("daemon.json"), "daemon.json");
}

TEST(Result, PassesTheFirstErrorUp) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).error().message(), "odd");
  EXPECT_EQ(Quarter(6).error().Within("quarter").ToString(), "INVALID_ARGUMENT: quarter: odd");
  EXPECT_EQ(ErrnoError(ENOENT, "open").code(), Code::kNotFound);
}

TEST(Hash, IsThatOfNamesThatLieOnDisks) {  // the reference values of FNV's authors
  EXPECT_EQ(Hash(""), 0xcbf29ce484222325u);
  EXPECT_EQ(Hash("foobar"), 0x85944171f73967e8u);
}

TEST(Quantity, ReadsSizesAsKubernetesDoes) {
  EXPECT_EQ(ParseBytes("10Gi")->count, 10ull << 30);
  EXPECT_EQ(ParseBytes("1.5G")->count, 1'500'000'000u);
  EXPECT_EQ(ParseBytes("4096")->count, 4096u);
  for (const char* wrong : {"", "Gi", "-1", "10gb", "1e30", "99999999999999999999Pi", "1.2.3Mi"})
    EXPECT_FALSE(ParseBytes(wrong).ok()) << wrong;
  EXPECT_EQ(FormatBytes(Mebibytes(40960)), "40 GiB");
}

TEST(Quantity, ReadsDurationsAsGoDoes) {
  EXPECT_EQ(*ParseDuration("1h30m"), 90min);
  EXPECT_EQ(*ParseDuration("2.5s"), 2500ms);
  for (const char* wrong : {"", "10", "m", "10 m", "-5s", "999999999999h"})
    EXPECT_FALSE(ParseDuration(wrong).ok()) << wrong;
}

TEST(Clock, WritesTimesThatItReadsBack) {
  const WallTime time = WallTime(1'700'000'000s) + 123ms;
  EXPECT_EQ(FormatTime(time), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(ParseTime(FormatTime(time)), time);
  EXPECT_EQ(FormatDuration(250s), "4m10s");
  EXPECT_EQ(FormatDuration(320ms), "320ms");
}

TEST(Clock, ReadsTimesThatCannotBeCountedAsTheEpoch) {
  for (const char* text :
       {"", "soon", "2262-04-12T00:00:00.000Z", "9999-12-31T23:59:59.999Z",
        "1969-12-31T23:59:59.999Z", "0000-01-01T00:00:00.000Z", "1970-01-01T00:00:00.-1Z"})
    EXPECT_EQ(ParseTime(text), WallTime{}) << text;
  EXPECT_EQ(FormatTime(ParseTime("2199-12-31T23:59:59.999Z")), "2199-12-31T23:59:59.999Z");
}

TEST(Strings, MatchGlobsWithoutCase) {
  EXPECT_TRUE(GlobMatch("*a100*", "NVIDIA A100-SXM4-40GB"));
  EXPECT_TRUE(GlobMatch("tesla ?4", "Tesla T4"));
  EXPECT_FALSE(GlobMatch("*a100", "NVIDIA A100-SXM4-40GB"));
  EXPECT_TRUE(GlobMatch("*", ""));
}

TEST(Shortened, CutsBetweenCharacters) {
  EXPECT_EQ(Shortened("12345", 5), "12345");
  EXPECT_EQ(Shortened("123456", 5), "12...");
  EXPECT_EQ(Shortened("1\xc3\xbc"
                      "3456",
                      5),
            "1...")
      << "two bytes are one character";
  EXPECT_EQ(Shortened("123456", 5, ""), "12345");
  EXPECT_EQ(Shortened("123456", 2), "...") << "there is always the mark";
}

TEST(Printable, LeavesNothingThatATerminalActsOn) {
  for (const char* text : {"", "plain",
                           "\xc2\xa0"
                           "gr\xc3\xbc\xc3\x9f",
                           "漢字 😀 – “x”", "\xe2\x80\xaf \xe2\x81\xa5 \xe2\x81\xaa"}) {
    EXPECT_TRUE(IsPrintable(text)) << text;
    EXPECT_EQ(Printable(text), text);
  }
  const std::pair<const char*, const char*> replaced[] = {
      {"a\x1b[31mb\n\x7f", "a?[31mb??"},  // C0 and DEL
      {"\xc2\x80 \xc2\x9b"
       "31m \xc2\x9f",
       "? ?31m ?"},                          // C1
      {"\xe2\x80\xaa \xe2\x80\xae", "? ?"},  // embeddings and overrides
      {"\xe2\x81\xa6 \xe2\x81\xa9", "? ?"},  // isolates
      {"\xff\xc3 \xe2\x82", "?? ??"}};       // not UTF-8
  for (const auto& [text, shown] : replaced) {
    EXPECT_FALSE(IsPrintable(text)) << shown;
    EXPECT_EQ(Printable(text), shown);
    EXPECT_TRUE(IsPrintable(Printable(text)));
  }
}

TEST(Strings, KnowUtf8) {
  EXPECT_TRUE(IsUtf8("µ–漢😀"));
  for (const char* wrong : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe6\xbc"})
    EXPECT_FALSE(IsUtf8(wrong));
}

TEST(ManualExecutor, RunsTimersInOrderOfTime) {
  ManualExecutor executor;
  std::string order;
  executor.PostAfter(2s, [&] { order += 'b'; });
  executor.PostAfter(1s, [&] {
    order += 'a';
    executor.PostAfter(500ms, [&] { order += 'x'; });
  });
  const TimerId cancelled = executor.PostAfter(1s, [&] { order += '!'; });
  executor.Cancel(cancelled);
  executor.Advance(3s);
  EXPECT_EQ(order, "axb");
}

TEST(Published, ReportsSubscribersUntilTheyLeave) {
  Published<int> value(1);
  int seen = 0;
  auto subscription = value.Subscribe([&](const auto& snapshot) { seen = *snapshot; }, true);
  EXPECT_EQ(seen, 1);
  value.Set(2);
  EXPECT_EQ(seen, 2);
  subscription.Reset();
  value.Set(3);
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(*value.Get(), 3);
}

}  // namespace
}  // namespace penstock::base
