#include "node/ledger/checkpoint_writer.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "node/ledger/checkpoint.h"
#include "os/core/file.h"

namespace penstock::node::ledger {
namespace {

class LedgerCheckpointWriterTest : public ::testing::Test {
 protected:
  LedgerCheckpointWriterTest()
      : folder_(testing::TempDir() + "keeper-" + std::to_string(getpid()) + "-" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  ~LedgerCheckpointWriterTest() override { std::filesystem::remove_all(folder_); }

  static Lease One(const std::string& id) {
    Lease lease;
    lease.id = id;
    lease.allocator = "local";
    lease.slots = {{id, id}};
    return lease;
  }
  std::string folder_;
  std::string path_ = folder_ + "/ledger.json";
  base::ManualExecutor executor_;
  Ledger ledger_;
};

TEST_F(LedgerCheckpointWriterTest, WritesOnceForManyChangesAndOnlyAfterThem) {
  LedgerCheckpointWriter keeper(executor_, executor_, ledger_, path_, "boot");
  ASSERT_TRUE(ledger_.Add(One("a")).ok());
  ASSERT_TRUE(ledger_.Add(One("b")).ok());
  EXPECT_FALSE(os::Exists(path_));
  executor_.RunUntilIdle();
  EXPECT_EQ(LedgerCheckpointWriter::Load(path_, "boot")->size(), 2u);
}

TEST_F(LedgerCheckpointWriterTest, WritesAtOnceAndRestsBeforeTheNextTime) {
  LedgerCheckpointWriter keeper(executor_, executor_, ledger_, path_, "boot");
  ASSERT_TRUE(ledger_.Add(One("a")).ok());
  executor_.RunUntilIdle();
  EXPECT_EQ(LedgerCheckpointWriter::Load(path_, "boot")->size(), 1u);
  ASSERT_TRUE(ledger_.Add(One("b")).ok());
  executor_.RunUntilIdle();
  EXPECT_EQ(LedgerCheckpointWriter::Load(path_, "boot")->size(), 1u);
  executor_.Advance(std::chrono::milliseconds(20));
  EXPECT_EQ(LedgerCheckpointWriter::Load(path_, "boot")->size(), 2u);
}

TEST_F(LedgerCheckpointWriterTest, TriesAgainAfterAFailedWrite) {
  std::filesystem::remove_all(folder_);
  LedgerCheckpointWriter keeper(executor_, executor_, ledger_, path_, "boot");
  ASSERT_TRUE(ledger_.Add(One("a")).ok());
  executor_.RunUntilIdle();
  std::filesystem::create_directories(folder_);
  executor_.Advance(std::chrono::seconds(10));
  EXPECT_EQ(LedgerCheckpointWriter::Load(path_, "boot")->size(), 1u);
}

TEST_F(LedgerCheckpointWriterTest, SetsADamagedFileAndANewerOneAside) {
  ASSERT_TRUE(os::WriteFileAtomically(path_, "{half").ok());
  EXPECT_TRUE(LedgerCheckpointWriter::Load(path_, "boot")->empty());
  EXPECT_EQ(*os::ReadFile(path_ + ".damaged"), "{half");
  ASSERT_TRUE(os::WriteFileAtomically(path_, R"({"version": 99})").ok());
  EXPECT_TRUE(LedgerCheckpointWriter::Load(path_, "boot")->empty());
  EXPECT_EQ(*os::ReadFile(path_ + ".newer"), R"({"version": 99})");
}

TEST_F(LedgerCheckpointWriterTest, RefusesAFileThatCannotBeRead) {
  std::filesystem::create_directories(path_);
  const auto loaded = LedgerCheckpointWriter::Load(path_, "boot");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code(), base::Code::kUnavailable);
  EXPECT_NE(loaded.error().message().find(path_ + ": Is a directory"), std::string::npos)
      << loaded.error().message();
}

}  // namespace
}  // namespace penstock::node::ledger
