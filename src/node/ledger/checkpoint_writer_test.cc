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
  std::size_t Written() const {
    return LedgerCheckpointWriter::Load(files_, "boot")->leases.size();
  }

  const os::TemporaryFolder folder_;
  /// With one share of a device that a server limits.
  static Lease Limited(const std::string& id) {
    Lease lease = One(id);
    lease.slots[0].id = id + "::0";
    lease.slots[0].shape = {device::Sharing::kServer, 2};
    lease.slots[0].limits = {.memory = base::Mebibytes(500),
                             .memory_by = device::Enforcer::kServer,
                             .compute_percent = 50,
                             .compute_by = device::Enforcer::kServer};
    return lease;
  }
  /// The writer of an agent that follows its ledger.
  struct Agent {
    explicit Agent(LedgerCheckpointWriterTest& test, Ledger& ledger)
        : writer(test.executor_, test.io_, ledger, test.files_, "boot"),
          following(ledger.published().Subscribe([this](const auto&) { writer.LedgerChanged(); })) {
    }
    LedgerCheckpointWriter writer;
    base::Subscription following;
  };
  std::vector<Lease> Read() const { return LedgerCheckpointWriter::Load(files_, "boot")->leases; }
  /// Copies of the files as they are after each step on the disk.
  std::vector<std::pair<bool, bool>> WriteStepByStep() {
    std::vector<std::pair<bool, bool>> written;
    for (int i = 0; i < 100; ++i) {
      executor_.RunUntilIdle();
      written.emplace_back(os::Exists(files_.leases), os::Exists(files_.limits));
      if (!io_.RunOne()) break;
    }
    return written;
  }

  const std::string path_ = folder_ / "ledger.json";
  const LedgerCheckpointWriter::Files files_{path_, folder_ / "ledger-limits.json"};
  base::ManualExecutor executor_, io_;
  Ledger ledger_;
};

TEST_F(LedgerCheckpointWriterTest, WritesOnceForManyChangesAndOnlyAfterThem) {
  LedgerCheckpointWriter keeper(executor_, executor_, ledger_, files_, "boot");
  const auto subscription =
      ledger_.published().Subscribe([&keeper](const auto&) { keeper.LedgerChanged(); });
  ASSERT_TRUE(ledger_.Add(One("a")).ok());
  ASSERT_TRUE(ledger_.Add(One("b")).ok());
  EXPECT_FALSE(os::Exists(path_));
  executor_.RunUntilIdle();
  EXPECT_EQ(Written(), 2u);
}

TEST_F(LedgerCheckpointWriterTest, WritesAtOnceAndRestsBeforeTheNextTime) {
  LedgerCheckpointWriter keeper(executor_, executor_, ledger_, files_, "boot");
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
  LedgerCheckpointWriter keeper(executor_, executor_, ledger_, files_, "boot");
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

TEST_F(LedgerCheckpointWriterTest, LimitsAreInAFileOfTheirOwn) {
  const Lease limited = Limited("b");
  {
    Agent agent(*this, ledger_);
    ASSERT_TRUE(ledger_.Add(One("a")).ok());
    ASSERT_TRUE(ledger_.Add(limited).ok());
  }
  EXPECT_EQ(os::ReadFile(path_)->find("limits"), std::string::npos) << "0.1.0 reads it, too";
  ASSERT_EQ(Read().size(), 2u);
  EXPECT_EQ(Read()[1].slots, limited.slots);
  EXPECT_EQ(Read()[0].slots[0].limits, device::Limits{});
  const auto other = LedgerCheckpointWriter::Load(files_, "another boot");
  EXPECT_TRUE(other->leases.empty() && other->limits.empty());
}

TEST_F(LedgerCheckpointWriterTest, LimitsAreOnDiskBeforeTheirLease) {
  Agent agent(*this, ledger_);
  ASSERT_TRUE(ledger_.Add(Limited("a")).ok());
  const auto written = WriteStepByStep();
  EXPECT_EQ(written.back(), std::pair(true, true));
  for (const auto& [leases, limits] : written) EXPECT_TRUE(limits || !leases);
  EXPECT_TRUE(std::ranges::find(written, std::pair(false, true)) != written.end())
      << "an agent that is killed here finds the lease by its group, and the limits in the file";
}

/// A write for an earlier lease, which comes after a rest, does not take the next one along.
TEST_F(LedgerCheckpointWriterTest, AnotherLeaseTakesNoneAlongWhoseLimitsAreNotOnDisk) {
  LedgerCheckpointWriter keeper(executor_, io_, ledger_, files_, "boot");
  ASSERT_TRUE(ledger_.Add(One("a")).ok());
  keeper.LedgerChanged();
  WriteStepByStep();
  ASSERT_TRUE(ledger_.Add(One("b")).ok());
  keeper.LedgerChanged();
  ASSERT_TRUE(ledger_.Add(Limited("c")).ok());  // the rest ends before the writer learns of it
  executor_.Advance(std::chrono::milliseconds(20));
  WriteStepByStep();
  EXPECT_EQ(Read().size(), 2u);
  keeper.LedgerChanged();
  executor_.Advance(std::chrono::milliseconds(20));
  WriteStepByStep();
  EXPECT_EQ(Read().size(), 3u);
}

TEST_F(LedgerCheckpointWriterTest, WithoutLimitsThereIsNoFileOfThem) {
  {
    Agent agent(*this, ledger_);
    ASSERT_TRUE(ledger_.Add(One("a")).ok());
    WriteStepByStep();
    EXPECT_EQ(Read().size(), 1u);
  }
  EXPECT_FALSE(os::Exists(files_.limits));
}

TEST_F(LedgerCheckpointWriterTest, LimitsThatCannotBeWrittenHoldNoLeaseBack) {
  std::filesystem::create_directories(files_.limits + "/in the way");
  {
    Agent agent(*this, ledger_);
    ASSERT_TRUE(ledger_.Add(Limited("a")).ok());
    WriteStepByStep();
  }
  std::filesystem::remove_all(files_.limits);
  EXPECT_EQ(Read().size(), 1u);
}

TEST_F(LedgerCheckpointWriterTest, LimitsOfLeasesThatHaveEndedAreForgotten) {
  {
    Agent agent(*this, ledger_);
    ASSERT_TRUE(ledger_.Add(Limited("a")).ok());
  }
  Ledger next;  // the lease ended while no agent ran
  Agent agent(*this, next);
  WriteStepByStep();
  EXPECT_TRUE(LedgerCheckpointWriter::Load(files_, "boot")->limits.empty());
}

TEST_F(LedgerCheckpointWriterTest, ALeaseIsThereWithoutItsLimitsWhereTheirFileIsDamaged) {
  {
    Agent agent(*this, ledger_);
    ASSERT_TRUE(ledger_.Add(Limited("a")).ok());
  }
  folder_.Write("ledger-limits.json", "{half");
  ASSERT_EQ(Read().size(), 1u);
  EXPECT_EQ(Read()[0].slots[0].limits, device::Limits{});
  EXPECT_EQ(*os::ReadFile(files_.limits + ".damaged"), "{half");
}

TEST_F(LedgerCheckpointWriterTest, RefusesAFileThatCannotBeRead) {
  std::filesystem::create_directories(path_);
  const auto loaded = LedgerCheckpointWriter::Load(files_, "boot");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code(), base::Code::kUnavailable);
  EXPECT_NE(loaded.error().message().find(path_ + ": Is a directory"), std::string::npos)
      << loaded.error().message();
}

}  // namespace
}  // namespace penstock::node::ledger
