// Tests the kernel's log with texts and plain files.
#include "os/watch/kmsg.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

void Append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

std::vector<std::string> Texts(const std::vector<KernelRecord>& records) {
  std::vector<std::string> texts;
  for (const auto& record : records) texts.push_back(record.text);
  return texts;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(KernelRecord, IsReadAsTheKernelWritesIt) {
  const auto record = ParseKernelRecord(
      "4,1523,98765432,-,caller=T77;NVRM: Xid (PCI:0000:3b:00): 79, pid=1; GPU has fallen off the "
      "bus.\n SUBSYSTEM=pci\n");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->priority, 4);
  EXPECT_EQ(record->sequence, 1523u);
  EXPECT_EQ(record->microseconds, 98765432u);
  EXPECT_EQ(record->text, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1; GPU has fallen off the bus.");
  EXPECT_TRUE(ParseKernelRecord("6,0,18446744073709551615,c;"));
}

TEST(KernelRecord, IsNothingElse) {
  for (const char* line :
       {"", ";", ";text", " SUBSYSTEM=pci", "6,1,2;no flags", "6,1,2,;empty flags", "-6,1,2,-;x",
        "6,-1,2,-;x", "6, 1,2,-;x", "6,1,2,-", "6,1,18446744073709551616,-;x",
        "99999999999999999999,1,2,-;x", "2048,1,2,-;x", "6.5,1,2,-;x", ",,,;x", "six,1,2,-;x"}) {
    EXPECT_FALSE(ParseKernelRecord(line)) << line;
  }
  EXPECT_TRUE(ParseKernelRecord("6,1,2,-;" + std::string(8184, 'x')));
  EXPECT_FALSE(ParseKernelRecord("6,1,2,-;" + std::string(8185, 'x')));
}

TEST(KernelLog, ReadsWhatIsThereAndThenWhatIsNew) {
  const TemporaryFolder folder;
  folder.Write("kmsg", "6,1,10,-;one\n KEY=value\nrubbish\n6,2,20,-;two\n");
  auto log = KernelLog::Open(folder / "kmsg", false);
  ASSERT_TRUE(log.ok());
  EXPECT_FALSE(log->pollable());
  EXPECT_THAT(Texts(log->Read()), ElementsAre("one", "two"));
  EXPECT_THAT(log->Read(), IsEmpty());
  Append(folder / "kmsg", "6,3,30,-;thr");
  EXPECT_THAT(log->Read(), IsEmpty());
  Append(folder / "kmsg", "ee\n");
  EXPECT_THAT(Texts(log->Read()), ElementsAre("three"));
}

TEST(KernelLog, StartsAtTheEndWhereOnlyNewsCount) {
  const TemporaryFolder folder;
  folder.Write("kmsg", "6,1,10,-;old\n");
  auto log = KernelLog::Open(folder / "kmsg", true);
  ASSERT_TRUE(log.ok());
  EXPECT_THAT(log->Read(), IsEmpty());
  Append(folder / "kmsg", "6,2,20,-;new\n");
  EXPECT_THAT(Texts(log->Read()), ElementsAre("new"));
}

TEST(KernelLog, DropsAnOverlongLineAndNothingElse) {
  const TemporaryFolder folder;
  folder.Write("kmsg", "6,1,10,-;one\n6,2,20,-;" + std::string(50'000, 'x') + "\n6,3,30,-;three\n");
  auto log = KernelLog::Open(folder / "kmsg", false);
  ASSERT_TRUE(log.ok());
  EXPECT_THAT(Texts(log->Read()), ElementsAre("one", "three"));
}

TEST(KernelLog, BeginsAgainWhereTheFileWasCut) {
  const TemporaryFolder folder;
  folder.Write("kmsg", "6,1,10,-;a long first message\n6,2,20,-;half");
  auto log = KernelLog::Open(folder / "kmsg", false);
  ASSERT_TRUE(log.ok());
  log->Read();
  folder.Write("kmsg", "6,1,10,-;anew\n");
  EXPECT_THAT(Texts(log->Read()), ElementsAre("anew"));
}

TEST(KernelLog, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  EXPECT_EQ(KernelLog::Open(folder / "kmsg", true).error().code(), base::Code::kNotFound);
  EXPECT_FALSE(KernelLog::Open(folder.path(), true).ok());
}

}  // namespace
}  // namespace penstock::os
