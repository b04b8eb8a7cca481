#include "node/ledger/checkpoint_writer.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::ledger {
namespace {

class LedgerCheckpointWriterTest : public ::testing::Test {
 protected:
  static Lease One(const std::string& id) {
    return {.id = id, .allocator = "local", .slots = {{id, id}}};
  }
  /// The number of leases in the file.
  std::size_t Written() const { return LedgerCheckpointWriter::Load(path_, "boot")->size(); }

  const os::TemporaryFolder folder_;
  const std::string path_ = folder_ / "ledger.json";
  base::ManualExecutor executor_;
  Ledger ledger_;
};

TEST_F(LedgerCheckpointWriterTest, WritesOnceForManyChangesAndOnlyAfterThem) {
  LedgerCheckpointWriter keeper(executor_, executor_, ledger_, path_, "boot");
  const auto subscription =
      ledger_.published().Subscribe([&keeper](const auto&) { keeper.LedgerChanged(); });
  ASSERT_TRUE(ledger_.Add(One("a")).ok());
  ASSERT_TRUE(ledger_.Add(One("b")).ok());
  EXPECT_FALSE(os::Exists(path_));
  executor_.RunUntilIdle();
  EXPECT_EQ(Written(), 2u);
}

TEST_F(LedgerCheckpointWriterTest, WritesAtOnceAndRestsBeforeTheNextTime) {
  LedgerCheckpointWriter keeper(executor_, executor_, ledger_, path_, "boot");
  const auto subscription =
      ledger_.published().Subscribe([&keeper](const auto&) { keeper.LedgerChanged(); });
  ASSERT_TRUE(ledger_.Add(One("a")).ok());
  executor_.RunUntilIdle();
  EXPECT_EQ(Written(), 1u);
  ASSERT_TRUE(ledger_.Add(One("b")).ok());
  executor_.RunUntilIdle();
  EXPECT_EQ(Written(), 1u);
  executor_.Advance(std::chrono::milliseconds(20));
  EXPECT_EQ(Written(), 2u);
}

TEST_F(LedgerCheckpointWriterTest, TriesAgainAfterAFailedWrite) {
  std::filesystem::remove_all(folder_.path());
  LedgerCheckpointWriter keeper(executor_, executor_, ledger_, path_, "boot");
  const auto subscription =
      ledger_.published().Subscribe([&keeper](const auto&) { keeper.LedgerChanged(); });
  ASSERT_TRUE(ledger_.Add(One("a")).ok());
  executor_.RunUntilIdle();
  std::filesystem::create_directories(folder_.path());
  executor_.Advance(std::chrono::seconds(10));
  EXPECT_EQ(Written(), 1u);
}

TEST_F(LedgerCheckpointWriterTest, SetsADamagedFileAndANewerOneAside) {
  folder_.Write("ledger.json", "{half");
  EXPECT_EQ(Written(), 0u);
  EXPECT_EQ(*os::ReadFile(path_ + ".damaged"), "{half");
  folder_.Write("ledger.json", R"({"version": 99})");
  EXPECT_EQ(Written(), 0u);
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
