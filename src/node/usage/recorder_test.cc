#include "node/usage/recorder.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/testing/manual_executor.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::usage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

std::vector<std::string> AllLines(const RecordFiles& files, std::size_t bytes = 7) {
  std::vector<std::string> lines;
  LineReader reader(files.List());
  while (reader.Read(bytes, [&](std::string_view line) { lines.emplace_back(line); })) {}
  return lines;
}

class RecordFilesTest : public ::testing::Test {
 protected:
  os::TemporaryFolder folder_;
  const std::string dir_ = folder_ / "usage";
  const RecordFiles files_{dir_};
};

TEST_F(RecordFilesTest, AppendsAndReadsBackInPieces) {
  ASSERT_TRUE(files_.Append({"one\n", "two\n"}, {}).ok());
  ASSERT_TRUE(files_.Append({"a rather longer line than a piece\n"}, {}).ok());
  EXPECT_THAT(AllLines(files_), ElementsAre("one", "two", "a rather longer line than a piece"));
  struct stat status {};
  ASSERT_EQ(::stat((dir_ + "/usage-000001.jsonl").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0640u);
}

TEST_F(RecordFilesTest, ALargeFileIsFollowedByTheNextAndTheOldestGo) {
  for (int i = 0; i < 9; ++i)
    ASSERT_TRUE(
        files_.Append({"12345" + std::to_string(i) + "\n"}, {.file_size = {14}, .files = 3}).ok());
  EXPECT_THAT(files_.List(), ElementsAre(dir_ + "/usage-000003.jsonl", dir_ + "/usage-000004.jsonl",
                                         dir_ + "/usage-000005.jsonl"));
  EXPECT_THAT(AllLines(files_), ElementsAre("123454", "123455", "123456", "123457", "123458"));
}

TEST_F(RecordFilesTest, ALineThatACrashToreIsEndedAndReadByNoOne) {
  ASSERT_TRUE(files_.Append({"one\n"}, {}).ok());
  std::ofstream(dir_ + "/usage-000001.jsonl", std::ios::app) << "{\"tor";
  EXPECT_THAT(AllLines(files_), ElementsAre("one"));
  ASSERT_TRUE(files_.Append({"two\n"}, {}).ok());
  EXPECT_THAT(AllLines(files_), ElementsAre("one", "{\"tor", "two"))
      << "what cannot be read is for the reader to count";
}

TEST_F(RecordFilesTest, OthersFilesAreLeftAlone) {
  folder_.Write("usage/usage-7.jsonl", "x\n");
  folder_.Write("usage/usage-000001.jsonl.gz", "x\n");
  folder_.Write("usage/notes", "x\n");
  ASSERT_TRUE(files_.Append({"one\n"}, {.files = 1}).ok());
  EXPECT_THAT(files_.List(), SizeIs(1));
  EXPECT_TRUE(os::Exists(dir_ + "/usage-7.jsonl"));
}

TEST_F(RecordFilesTest, AFileThatIsMovedAwayIsMadeAgain) {
  ASSERT_TRUE(files_.Append({"one\n"}, {}).ok());
  std::filesystem::rename(dir_ + "/usage-000001.jsonl", dir_ + "/taken");
  ASSERT_TRUE(files_.Append({"two\n"}, {}).ok());
  EXPECT_THAT(AllLines(files_), ElementsAre("two"));
}

TEST_F(RecordFilesTest, SaysWhichLinesAreNotThereYet) {
  EXPECT_THAT(files_.Missing({"a\n"}), ElementsAre("a\n"));
  ASSERT_TRUE(files_.Append({"one\n", "two\n"}, {}).ok());
  EXPECT_THAT(files_.Missing({"two\n", "wo\n", "three\n"}), ElementsAre("wo\n", "three\n"));
}

TEST_F(RecordFilesTest, WhatCannotBeWrittenWholeIsNotThereAtAll) {
  ASSERT_TRUE(files_.Append({"one\n"}, {}).ok());
  const std::string path = dir_ + "/usage-000001.jsonl";
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/dev/full", path);
  EXPECT_FALSE(files_.Append({"two\n"}, {}).ok()) << "a link is followed nowhere";
}

class RecorderTest : public RecordFilesTest {
 protected:
  void Start() {
    recorder_ = std::make_unique<Recorder>(
        executor_, executor_, Recorder::Options{.folder = dir_, .state_path = path_},
        [] { return State{.boot_id = "b"}; }, [this] { ++changes_; });
  }
  void SetUp() override { Start(); }

  /// A file in its place prevents creation of the folder.
  void Block() { folder_.Write("usage", ""); }
  void Unblock() { std::filesystem::remove(dir_); }

  base::ManualExecutor executor_;
  const std::string path_ = folder_ / "usage.json";
  int changes_ = 0;
  std::unique_ptr<Recorder> recorder_;
};

TEST_F(RecorderTest, WritesTheStateAndThenTheLines) {
  recorder_->Add("one\n", false);
  recorder_->Add("two\n", false);
  executor_.RunUntilIdle();
  EXPECT_THAT(files_.List(), IsEmpty());
  EXPECT_EQ(recorder_->counts().pending, 2u);
  executor_.Advance(2s);
  EXPECT_THAT(AllLines(files_), ElementsAre("one", "two"));
  EXPECT_EQ(recorder_->counts().pending, 0u);
  EXPECT_EQ(recorder_->counts().written, 2u);
  EXPECT_THAT(DecodeState(*os::ReadFile(path_), "")->pending, SizeIs(2));
  EXPECT_GT(changes_, 0);
}

TEST_F(RecorderTest, WhatCannotBeWrittenIsKeptSaidAndTriedAgain) {
  Block();
  recorder_->Add("one\n", false);
  executor_.Advance(2s);
  EXPECT_EQ(recorder_->counts().failures, 1u);
  EXPECT_FALSE(recorder_->counts().problem.empty());
  recorder_->Add("two\n", false);
  executor_.Advance(4s);
  EXPECT_EQ(recorder_->counts().failures, 2u);
  EXPECT_EQ(recorder_->counts().pending, 2u);
  Unblock();
  executor_.Advance(8s);
  EXPECT_THAT(AllLines(files_), ElementsAre("one", "two"));
  EXPECT_TRUE(recorder_->counts().problem.empty());
  EXPECT_EQ(recorder_->counts().lost, 0u);
}

TEST_F(RecorderTest, WhatWaitsIsBoundedAndCheckpointsGoFirst) {
  Block();
  const std::string filler(Recorder::kMaxPendingBytes / 2, 'x');
  recorder_->Add("end\n", false);
  executor_.Advance(2s);
  ASSERT_EQ(recorder_->counts().failures, 1u);
  recorder_->Add(filler + "\n", true);
  recorder_->Add(filler + "\n", false);
  EXPECT_EQ(recorder_->counts().lost, 1u);
  EXPECT_EQ(recorder_->counts().pending, 2u);
  recorder_->Add(filler + "\n", false);
  EXPECT_EQ(recorder_->counts().lost, 3u) << "the end, and the older of the two";
}

TEST_F(RecorderTest, ABurstIsWrittenAtOnceAndNothingOfItIsLost) {
  const std::string line(1023, 'x');
  for (int i = 0; i < 3072; ++i) recorder_->Add(line + "\n", false);
  executor_.RunUntilIdle();
  EXPECT_THAT(AllLines(files_, 1u << 20), SizeIs(3072));
  EXPECT_EQ(recorder_->counts().written, 3072u);
  EXPECT_EQ(recorder_->counts().lost, 0u);
  recorder_->Add("one\n", false);
  executor_.RunUntilIdle();
  EXPECT_EQ(recorder_->counts().pending, 1u) << "a single one is not in a hurry";
}

TEST_F(RecorderTest, WhatAnAgentHadNoTimeToWriteTheNextOneWrites) {
  recorder_->Add("one\n", false);
  recorder_.reset();
  EXPECT_THAT(files_.List(), IsEmpty());
  Start();
  recorder_->Recover(DecodeState(*os::ReadFile(path_), "")->pending);
  executor_.Advance(2s);
  EXPECT_THAT(AllLines(files_), ElementsAre("one"));
}

TEST_F(RecorderTest, WhatACrashLeftBetweenStateAndLinesIsWrittenOnce) {
  recorder_->Add("one\n", false);
  executor_.Advance(2s);
  // What a crash at this moment would leave.
  const auto pending = DecodeState(*os::ReadFile(path_), "")->pending;
  EXPECT_THAT(pending, ElementsAre("one\n"));
  Start();
  recorder_->Recover(pending);
  executor_.Advance(2s);
  EXPECT_THAT(AllLines(files_), ElementsAre("one"));
}

TEST_F(RecorderTest, AReaderSeesEachLineOnce) {
  recorder_->Add("one\n", false);
  executor_.Advance(2s);
  recorder_->Add("two\n", false);
  std::vector<std::string> seen;
  recorder_->Read([&](LineReader files, const std::vector<std::string>& pending) {
    while (files.Read(100, [&](std::string_view line) { seen.emplace_back(line); })) {}
    for (const std::string& line : pending) seen.push_back("pending " + line);
  });
  executor_.RunUntilIdle();
  EXPECT_THAT(seen, ElementsAre("one", "pending two\n"));
}

TEST_F(RecorderTest, AStateThatChangedIsWrittenWithoutLines) {
  recorder_->Touch();
  executor_.Advance(2s);
  EXPECT_TRUE(os::Exists(path_));
  EXPECT_THAT(files_.List(), IsEmpty());
}

}  // namespace
}  // namespace penstock::node::usage
