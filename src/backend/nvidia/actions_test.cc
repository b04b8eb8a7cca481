#include "backend/nvidia/actions.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/backend.h"
#include "backend/nvidia/testing/simulated_machine.h"

namespace penstock::backend::nvidia {
namespace {

using device::Facts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

Facts Connected(const std::string& id, const std::string& capability,
                std::vector<std::string> linked = {}) {
  Facts facts;
  facts.id = id;
  facts.architecture_version = capability;
  for (const std::string& peer : linked) facts.links.push_back({peer, device::Nearness::kNode, 2});
  return facts;
}

std::vector<std::string> Together(const std::vector<Facts>& machine) {
  os::Loop loop("test");
  std::vector<const Facts*> all;
  for (const Facts& facts : machine) all.push_back(&facts);
  return MakeActions(loop, {})->ResetTogether(machine.front(), all);
}

TEST(NvidiaActions, FromAmpereOnEachGpuIsResetByItself) {
  EXPECT_THAT(Together({Connected("A", "8.0", {"B"}), Connected("B", "8.0", {"A"})}),
              ElementsAre("A"));
  EXPECT_THAT(Together({Connected("A", "9.0", {"B"}), Connected("B", "9.0", {"A"})}),
              ElementsAre("A"));
  EXPECT_THAT(Together({Connected("A", "7.5")}), ElementsAre("A"));
}

TEST(NvidiaActions, BeforeAmpereAllThatAreLinkedAreResetTogetherAlsoOverOthers) {
  EXPECT_THAT(Together({Connected("A", "7.0", {"B"}), Connected("B", "7.0", {"A", "C"}),
                        Connected("C", "7.0", {"B"}), Connected("D", "7.0")}),
              ElementsAre("A", "B", "C"));
}

class ResetTest : public ::testing::Test {
 protected:
  /// Resets these devices through the loop and returns the result.
  base::Status Reset(const std::vector<Facts>& devices, const device::Paths& paths) {
    const auto actions = MakeActions(loop_, paths);
    std::optional<base::Status> status;
    loop_.Post([&] {
      actions->Reset(devices, [&](const base::Status& done) {
        status = done;
        loop_.Stop();
      });
    });
    loop_.Run();
    return *status;
  }
  static std::pair<Facts, device::Reading> Look(const device::Paths& paths,
                                                const std::string& index) {
    const auto backend = MakeBackend(paths);
    EXPECT_TRUE(backend->Open().ok());
    auto facts = backend->Describe(index);
    auto reading = backend->Read(index);
    return {*facts, *reading};
  }
  os::Loop loop_{"test"};
};

TEST_F(ResetTest, CuresAGpuWithTheMachinesOwnNvidiaSmi) {
  const SimulatedMachine machine("dgx-a100", "570.124.06");
  machine.Sim({"fault", "3", "xid", "48"});
  const auto [facts, before] = Look(machine.paths(), "3");
  ASSERT_FALSE(before.evidence.empty());
  const base::Status status = Reset({facts}, machine.paths());
  EXPECT_TRUE(status.ok()) << status.error().message();
  EXPECT_TRUE(Look(machine.paths(), "3").second.evidence.empty());
}

TEST_F(ResetTest, ARefusalIsReportedInNvidiaSmisWords) {
  const SimulatedMachine machine("dgx-a100");
  machine.Sim({"set", "3", "process=4242:1024:train"});
  const base::Status status = Reset({Look(machine.paths(), "3").first}, machine.paths());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.error().message(), HasSubstr("it's being used by some other process"));
}

TEST_F(ResetTest, SaysWhereThereIsNoNvidiaSmi) {
  const SimulatedMachine machine("dgx-a100");
  const Facts facts = Look(machine.paths(), "3").first;
  std::filesystem::remove(machine.root() + "/usr/bin/nvidia-smi");
  const base::Status status = Reset({facts}, machine.paths());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kNotFound);
  EXPECT_THAT(status.error().message(), HasSubstr("nvidia-smi"));
}

}  // namespace
}  // namespace penstock::backend::nvidia
