#include "node/attribute/job_files.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/testing/temporary_folder.h"

namespace penstock::node::attribute {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(JobFiles, EachLineIsAJob) {
  EXPECT_THAT(ParseJobs("17\n18.batch\n", false).jobs, ElementsAre("17", "18.batch"));
  EXPECT_THAT(ParseJobs("17\r\n18", false).jobs, ElementsAre("17", "18"));
  EXPECT_THAT(ParseJobs("\n\n17\n\n", false).jobs, ElementsAre("17"));
  EXPECT_THAT(ParseJobs(" a b \n", false).jobs, ElementsAre(" a b ")) << "as the exporter has it";
  EXPECT_THAT(ParseJobs("", false).jobs, IsEmpty());
}

TEST(JobFiles, AJobThatIsListedTwiceIsOne) {
  EXPECT_THAT(ParseJobs("2\n1\n2\n3\n1\n", false).jobs, ElementsAre("2", "1", "3"));
}

// Two jobs that a page shows in the same way would be one series with two values.
TEST(JobFiles, WhatAPageShowsInTheSameWayIsOneJob) {
  const JobList list = ParseJobs("a\x01\na\x02\na\xff\n\xe2\x80\xae\n\xc3\xa9\n\"\\\n", false);
  EXPECT_THAT(list.jobs, ElementsAre("a?", "?", "\xc3\xa9", "\"\\"));
  EXPECT_THAT(ParseJobs(std::string_view("a\0b\n", 4), false).jobs, ElementsAre("a?b"));
}

TEST(JobFiles, LinesThatAreTooLongAreNoJobs) {
  const std::string longest(kLongestJob, 'x');
  const JobList list = ParseJobs("1\n" + longest + "\n" + longest + "y\n2\n", false);
  EXPECT_THAT(list.jobs, ElementsAre("1", longest, "2"));
  EXPECT_THAT(list.problems, ElementsAre("has a line of more than 256 bytes, which is no job"));
}

TEST(JobFiles, OfAFileThatWasCutOnlyWholeLinesCount) {
  const JobList list = ParseJobs("1\n2\n34", true);
  EXPECT_THAT(list.jobs, ElementsAre("1", "2"));
  EXPECT_THAT(list.problems, ElementsAre("is longer than 16384 bytes; the rest is ignored"));
  EXPECT_THAT(ParseJobs("1234", true).jobs, IsEmpty());
}

TEST(JobFiles, ADeviceHasNoMoreJobsThanItMay) {
  std::string text;
  for (std::size_t i = 0; i < kMostJobsOfDevice; ++i) text += std::to_string(i) + "\n";
  EXPECT_THAT(ParseJobs(text + "0\n", false).problems, IsEmpty()) << "listed before";
  const JobList list = ParseJobs(text + "one more\n", false);
  EXPECT_THAT(list.jobs, SizeIs(kMostJobsOfDevice));
  EXPECT_THAT(list.problems,
              ElementsAre("lists more jobs than the 64 that are read; the rest is ignored"));
}

// dcgm-exporter's hpc.go: ^\d+(\.\d+)?$
TEST(JobFiles, AreNamedAsDevices) {
  os::TemporaryFolder folder;
  for (const char* name : {"0", "12", "2.1", "3.10", "00"}) folder.Write(name, "1\n");
  for (const char* name : {"gpu", ".5", "5.", "1.2.3", "+3", "-2", "1e5", "0 ", "0~", ".0.swp",
                           "0000000000000000000000"})
    folder.Write(name, "no\n");
  const JobFolder read = ReadJobFolder(folder.path());
  EXPECT_THAT(read.jobs, ElementsAre(Pair("0", ElementsAre("1")), Pair("00", testing::_),
                                     Pair("12", testing::_), Pair("2.1", testing::_),
                                     Pair("3.10", testing::_)));
  EXPECT_THAT(read.problems, IsEmpty());
}

TEST(JobFiles, AFileThatCannotBeReadLeavesTheOthersTheirs) {
  os::TemporaryFolder folder;
  folder.Write("0", "1\n");
  folder.Link("1", "0");
  folder.Write("2", "");
  std::filesystem::create_directory(folder / "3");
  const JobFolder read = ReadJobFolder(folder.path());
  EXPECT_THAT(read.jobs, ElementsAre(Pair("0", ElementsAre("1"))));
  EXPECT_THAT(read.problems, ElementsAre("file 1 was not read: is a symbolic link",
                                         "file 3 was not read: is a directory"));
}

TEST(JobFiles, AllDevicesTogetherHaveNoMoreJobsThanTheyMay) {
  os::TemporaryFolder folder;
  std::string text;
  for (std::size_t i = 0; i < kMostJobsOfDevice; ++i) text += std::to_string(i) + "\n";
  for (std::size_t i = 0; i <= kMostJobs / kMostJobsOfDevice; ++i)
    folder.Write(std::to_string(i), text);
  const JobFolder read = ReadJobFolder(folder.path());
  EXPECT_THAT(read.jobs, SizeIs(kMostJobs / kMostJobsOfDevice));
  EXPECT_THAT(read.problems,
              ElementsAre("all devices together have more than 1024 jobs; the last are ignored"));
}

TEST(JobFiles, AreReadUpToALimit) {
  os::TemporaryFolder folder;
  for (std::size_t i = 0; i <= kMostJobFiles; ++i) folder.Write(std::to_string(i), "1\n");
  folder.Write("0", std::string(kLongestJobFile + 1, '1'));
  const JobFolder read = ReadJobFolder(folder.path());
  EXPECT_THAT(read.jobs, SizeIs(kMostJobFiles - 1));
  EXPECT_THAT(read.problems,
              ElementsAre("there are more than 256 files of devices; the last are ignored",
                          "file 0 is longer than 16384 bytes; the rest is ignored"));
}

TEST(JobFiles, MayHaveNoFolder) {
  os::TemporaryFolder folder;
  EXPECT_THAT(ReadJobFolder(folder / "missing").problems,
              ElementsAre("the directory does not exist yet"));
  folder.Write("file", "");
  EXPECT_THAT(ReadJobFolder(folder / "file").problems,
              ElementsAre(HasSubstr("is not a directory")));
}

}  // namespace
}  // namespace penstock::node::attribute
