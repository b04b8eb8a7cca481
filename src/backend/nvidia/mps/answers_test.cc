#include "backend/nvidia/mps/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::backend::nvidia::mps {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(Answers, PercentagesAreNumbersUpToAHundred) {
  EXPECT_EQ(ReadPercentage("25.0\n"), 25.0);
  EXPECT_EQ(ReadPercentage("100"), 100.0);
  for (const char* bad : {"", "0", "-5", "101", "25 %", "nan", "inf", "1e1",
                          "Cannot find MPS control daemon process"})
    EXPECT_EQ(ReadPercentage(bad), std::nullopt) << bad;
}

TEST(Answers, MemoryComesInSeveralForms) {
  EXPECT_EQ(ReadMemory("3G\n"), base::Mebibytes(3072));
  EXPECT_EQ(ReadMemory("10137M"), base::Mebibytes(10137));
  EXPECT_EQ(ReadMemory("0x140000000"), base::Mebibytes(5120));
  EXPECT_EQ(ReadMemory("1048576"), base::Mebibytes(1));
  EXPECT_EQ(ReadMemory(" \n"), base::Bytes{}) << "no limit";
  for (const char* bad : {"Unknown command", "M", "-3G", "99999999999999999999G", "0xzz", "3T"})
    EXPECT_EQ(ReadMemory(bad), std::nullopt) << bad;
}

// NVIDIA's 535.261 and 550.163 answer "9G" if 10137M was set.
TEST(Answers, WholeGigabytesStandForTheLimitThatWasAskedForIfItIsThatMany) {
  EXPECT_EQ(ReadMemory("9G\n", base::Mebibytes(10137)), base::Mebibytes(10137));
  EXPECT_EQ(ReadMemory("10G\n", base::Mebibytes(10137)), base::Mebibytes(10240));
  EXPECT_EQ(ReadMemory("8G\n", base::Mebibytes(10137)), base::Mebibytes(8192));
  EXPECT_EQ(ReadMemory("1000M\n", base::Mebibytes(1000)), base::Mebibytes(1000));
  EXPECT_EQ(ReadMemory("", base::Mebibytes(512)), base::Bytes{}) << "no limit";
  EXPECT_EQ(ReadMemory("0G", base::Mebibytes(512)), base::Bytes{}) << "no limit";
}

TEST(Answers, ListsOfProcessesMayBeEmptyAndNameStrangers) {
  EXPECT_THAT(ReadPids(""), Optional(ElementsAre()));
  EXPECT_THAT(ReadPids("12\n34\n"), Optional(ElementsAre(12, 34)));
  EXPECT_THAT(ReadPids("30112 30119"), Optional(ElementsAre(30112, 30119)));
  EXPECT_THAT(ReadPids("0\n0\n"), Optional(ElementsAre(0, 0)))
      << "processes of other PID namespaces count, too";
  for (const char* bad : {"12 and more", "-1", "99999999999", "Invalid server PID"})
    EXPECT_EQ(ReadPids(bad), std::nullopt) << bad;
}

TEST(Answers, AreQuotedAsOneReadableLine) {
  EXPECT_EQ(Quote("\x01\xff pears \x7f\nmore"), "\"?? pears ?\"");
}

}  // namespace
}  // namespace penstock::backend::nvidia::mps
