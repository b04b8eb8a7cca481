// Tests that the backend divides GPUs, on the simulated driver library, and that each failure
// leaves what was there.
#include "backend/nvidia/mig_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/backend.h"
#include "backend/nvidia/testing/simulated_machine.h"

namespace penstock::backend::nvidia {
namespace {

using base::Code;
using device::Facts;
using device::NewPart;
using device::Placement;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class MigControlTest : public testing::Test {
 protected:
  void Start(const std::string& machine, const std::string& driver = "") {
    machine_.emplace(machine, driver);
    backend_ = MakeBackend(machine_->paths());
    ASSERT_TRUE(backend_->Open().ok());
    ASSERT_TRUE(backend_->List().ok());
    Describe("0");
  }
  Facts Describe(const std::string& address) {
    const auto facts = backend_->Describe(address);
    EXPECT_TRUE(facts.ok()) << address << ": " << facts.error().ToString();
    return facts.ok() ? *facts : Facts{};
  }
  /// "1g.5gb at 6", of each part of GPU 0.
  std::vector<std::string> Parts() {
    std::vector<std::string> parts;
    for (const std::string& address : Describe("0").parts) {
      const Facts part = Describe(address);
      parts.push_back(part.profile +
                      (part.placement ? " at " + std::to_string(part.placement->start) : ""));
    }
    return parts;
  }
  std::string Create(const NewPart& part) {
    const auto created = backend_->CreatePart("0", part);
    EXPECT_TRUE(created.ok()) << created.error().ToString();
    return created.ok() ? *created : "";
  }
  /// "enabled", or "disabled, enabled" with what is pending.
  std::string Mode() {
    const device::Mode mode = Describe("0").modes.at(0);
    return mode.current + (mode.pending == mode.current ? "" : ", " + mode.pending);
  }

  std::optional<SimulatedMachine> machine_;
  std::unique_ptr<device::Backend> backend_;
};

TEST_F(MigControlTest, DividesAGpuAndMakesItWholeAgain) {
  Start("dgx-h200");
  ASSERT_TRUE(backend_->SetMode("0", "mig", "enabled").ok());
  EXPECT_EQ(Mode(), "enabled");
  const std::string large = Create({.profile = "3g.71gb", .placement = Placement{4, 4}});
  EXPECT_THAT(large, StartsWith("MIG-"));
  const std::string small = Create({.profile = "1g.18gb"});
  EXPECT_THAT(Parts(), SizeIs(2));
  EXPECT_EQ(Describe(large).placement, (Placement{4, 4}));
  EXPECT_EQ(Describe(large).withheld, "");
  ASSERT_TRUE(backend_->DestroyPart(large).ok());
  EXPECT_THAT(Describe("0").parts, ElementsAre(small));
  ASSERT_TRUE(backend_->DestroyPart(small).ok());
  EXPECT_THAT(Describe("0").parts, IsEmpty());
  ASSERT_TRUE(backend_->SetMode("0", "mig", "disabled").ok());
  EXPECT_EQ(Mode(), "disabled");
  EXPECT_EQ(Describe("1").modes.at(0).current, "disabled") << "only the GPU that was named";
}

TEST_F(MigControlTest, CreatesComputeInstancesInAGpuInstance) {
  Start("a100-40gb-x1");
  ASSERT_TRUE(backend_->SetMode("0", "mig", "enabled").ok());
  const std::string outer =
      Create({.profile = "3g.20gb", .placement = Placement{0, 4}, .outer = true});
  EXPECT_THAT(outer, StartsWith("0/"));
  const std::string first = Create({.profile = "1c.3g.20gb", .within = outer});
  const std::string second =
      Create({.profile = "1c.3g.20gb", .placement = Placement{2, 1}, .within = outer});
  EXPECT_NE(first, second);
  EXPECT_THAT(Parts(), ElementsAre("3g.20gb at 0", "1c.3g.20gb at 0", "1c.3g.20gb at 2"));
  const base::Status refused = backend_->DestroyPart(outer);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition) << "it has parts";
  ASSERT_TRUE(backend_->DestroyPart(first).ok());
  ASSERT_TRUE(backend_->DestroyPart(second).ok());
  EXPECT_THAT(Parts(), ElementsAre("3g.20gb at 0"));
  ASSERT_TRUE(backend_->DestroyPart(outer).ok());
  EXPECT_THAT(Parts(), IsEmpty());
}

TEST_F(MigControlTest, PlacesComputeInstancesAsItsDriverCountsThem) {
  Start("dgx-h200");
  ASSERT_TRUE(backend_->SetMode("0", "mig", "enabled").ok());
  const std::string outer =
      Create({.profile = "7g.141gb", .placement = Placement{0, 8}, .outer = true});
  /// Where it is then.
  const auto create = [&](const std::string& profile, Placement at) {
    const std::string part = Create({.profile = profile, .placement = at, .within = outer});
    Describe("0");
    return Describe(part).placement;
  };
  EXPECT_EQ(create("3c.7g.141gb", {4, 3}), (Placement{4, 4})) << "half of the GPU";
  EXPECT_EQ(create("2c.7g.141gb", {2, 2}), (Placement{2, 2}));
  EXPECT_EQ(create("1c.7g.141gb", {60, 1}), (Placement{0, 1})) << "where the driver chooses";
  const auto taken = backend_->CreatePart(
      "0", {.profile = "2c.7g.141gb", .placement = Placement{2, 2}, .within = outer});
  EXPECT_EQ(taken.error().code(), Code::kResourceExhausted);
  machine_->Sim(
      {"fault", "all", "error", "nvmlGpuInstanceGetComputeInstancePossiblePlacements", "999"});
  EXPECT_EQ(create("1c.7g.141gb", {1, 1}), (Placement{1, 1}));
}

TEST_F(MigControlTest, LeavesThePlacementToADriverThatChoosesIt) {
  Start("a100-40gb-x1", "515.105.01");
  machine_->Smi({"-mig", "1"});
  Describe("0");
  const std::string outer =
      Create({.profile = "7g.40gb", .placement = Placement{0, 8}, .outer = true});
  (void)Create({.profile = "3c.7g.40gb", .placement = Placement{4, 3}, .within = outer});
  EXPECT_THAT(Parts(), ElementsAre("7g.40gb at 0", "3c.7g.40gb"));
}

TEST_F(MigControlTest, OfAPartThatCannotBeCreatedNothingIsLeft) {
  Start("a100-40gb-x1");
  machine_->Smi({"-mig", "1"});
  for (const char* call :
       {"nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceGetComputeInstanceProfileInfo",
        "nvmlGpuInstanceCreateComputeInstance", "nvmlDeviceGetAttributes_v2"}) {
    Describe("0");
    machine_->Sim({"fault", "all", "error", call, "999"});
    const auto created =
        backend_->CreatePart("0", {.profile = "3g.20gb", .placement = Placement{4, 4}});
    machine_->Sim({"heal", "all"});
    EXPECT_FALSE(created.ok()) << call;
    // A MIG device that was created, and of which nothing can be read, cannot be destroyed either.
    if (call != std::string("nvmlDeviceGetAttributes_v2"))
      EXPECT_THAT(Parts(), IsEmpty()) << call;
    else
      EXPECT_THAT(created.error().message(), HasSubstr("could not be destroyed"));
  }
}

TEST_F(MigControlTest, WhatIsInUseOrDoesNotExistIsRefused) {
  Start("a100-40gb-x1");
  machine_->Smi({"-mig", "1"});
  machine_->Smi({"mig", "-cgi", "7g.40gb", "-C"});
  const std::string part = Describe("0").parts.at(0);
  machine_->Sim({"set", "0", "process=" + std::to_string(::getpid()) + ":100:python:gi0/ci0"});
  EXPECT_EQ(backend_->DestroyPart(part).error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(Parts(), ElementsAre("7g.40gb at 0"));
  EXPECT_EQ(backend_->CreatePart("0", {.profile = "1g.5gb"}).error().code(),
            Code::kResourceExhausted);
  EXPECT_EQ(backend_->CreatePart("0", {.profile = "1g.6gb"}).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(backend_->CreatePart("0", {.profile = "1c.3g.20gb", .within = "0/9"}).error().code(),
            Code::kNotFound);
  EXPECT_EQ(backend_->CreatePart("7", {.profile = "1g.5gb"}).error().code(), Code::kNotFound);
  for (const char* address : {"MIG-0", "0/9", "0", "", "../0"})
    EXPECT_EQ(backend_->DestroyPart(address).error().code(), Code::kNotFound) << address;
  EXPECT_EQ(backend_->SetMode("0", "mig", "maybe").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(backend_->SetMode("0", "ecc", "enabled").error().code(), Code::kUnimplemented);
}

TEST_F(MigControlTest, AModeThatNeedsAResetIsPending) {
  Start("a100-40gb-x1");
  machine_->Sim({"set", "0", "process=" + std::to_string(::getpid()) + ":100:python"});
  ASSERT_TRUE(backend_->SetMode("0", "mig", "enabled").ok());
  EXPECT_EQ(Mode(), "disabled, enabled");
}

}  // namespace
}  // namespace penstock::backend::nvidia
