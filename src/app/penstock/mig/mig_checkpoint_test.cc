#include "app/penstock/mig/mig_checkpoint.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/partition/plan.h"
#include "node/partition/testing/devices.h"

namespace penstock::app {
namespace {

using api::compat::MigCheckpoint;
using device::Facts;
using ::testing::HasSubstr;

Facts GpuWithMode(int index, const std::string& mode) {
  Facts gpu = node::partition::testing::DeviceOf(
      index, "0x20b0", node::partition::testing::SevenSlices(5, 10, 20, 40));
  int kind = 0;
  for (device::PartProfile& profile : gpu.profiles)
    if (profile.within.empty()) profile.kind = kind++;
  gpu.modes = {{"mig", mode, mode, {"disabled", "enabled"}}};
  return gpu;
}

int KindOf(const std::string& profile) {
  for (const device::PartProfile& one : GpuWithMode(0, "enabled").profiles)
    if (one.name == profile) return one.kind;
  ADD_FAILURE() << profile;
  return -1;
}

/// `part` is "GPU instance/compute instance", or the first of both alone.
Facts PartNamed(const std::string& parent, const std::string& id, const std::string& profile,
                const std::string& part, std::optional<device::Placement> at) {
  Facts facts;
  facts.id = id;
  facts.parent = parent;
  facts.profile = profile;
  facts.part = part;
  facts.placement = at;
  if (part.find('/') == std::string::npos) facts.withheld = "no compute instance";
  return facts;
}

MigMachine Divided() {
  MigMachine machine;
  machine.devices = {GpuWithMode(0, "enabled"),
                     GpuWithMode(1, "disabled"),
                     PartNamed("GPU-0", "MIG-b", "1g.5gb", "13/0", device::Placement{6, 1}),
                     PartNamed("GPU-0", "MIG-a", "1g.5gb", "9/0", device::Placement{4, 1}),
                     PartNamed("GPU-0", "GPU-0/2", "3g.20gb", "2", device::Placement{0, 4}),
                     PartNamed("GPU-0/2", "MIG-d", "2c.3g.20gb", "2/1", device::Placement{0, 2}),
                     PartNamed("GPU-0/2", "MIG-c", "1c.3g.20gb", "2/0", device::Placement{2, 1}),
                     PartNamed("GPU-0", "GPU-0/5", "1g.5gb", "5", device::Placement{5, 1})};
  Facts old = GpuWithMode(2, "");
  old.modes.clear();
  old.profiles.clear();
  machine.devices.push_back(old);
  return machine;
}

MigCheckpoint Recorded() {
  const int one = KindOf("1g.5gb"), three = KindOf("3g.20gb");
  MigCheckpoint checkpoint{
      {{"GPU-0",
        true,
        {{one, 5, 1, {}},
         {one, 4, 1, {{0, 0}}},
         {one, 6, 1, {{0, 0}}},
         {three,
          0,
          4,
          {{0, 0, MigCheckpoint::Placement{2, 1}}, {1, 0, MigCheckpoint::Placement{0, 2}}}}}},
       {"GPU-1", false, {}}}};
  std::ranges::stable_sort(checkpoint.gpus[0].instances, {}, &MigCheckpoint::GpuInstance::profile);
  return checkpoint;
}

/// What is wrong with a checkpoint of GPU-0 with this instance.
std::string ProblemWith(const MigCheckpoint::GpuInstance& instance) {
  const auto layout = LayoutOf({{{"GPU-0", true, {instance}}}}, Divided(), false);
  if (layout.ok()) return "";
  EXPECT_EQ(layout.error().code(), Code::kInvalidArgument);
  return layout.error().message();
}

TEST(MigCheckpoints, RecordEachInstanceInTheOrderOfMigParted) {
  const auto checkpoint = CheckpointOf(Divided());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
  EXPECT_EQ(*checkpoint, Recorded()) << WriteMigCheckpoint(*checkpoint);
}

TEST(MigCheckpoints, AreNotWrittenOfWhatIsNotSeen) {
  MigMachine machine = Divided();
  machine.devices[2].placement.reset();
  EXPECT_EQ(CheckpointOf(machine).error().message(),
            "GPU 0 (GPU-0): the driver does not report the placement of MIG-b; root may see more");
  machine.devices[2].profile = "9g";
  EXPECT_THAT(CheckpointOf(machine).error().message(), HasSubstr("the profile of MIG-b"));
  machine = Divided();
  machine.remarks = {"device 3 was skipped: it hangs"};
  EXPECT_EQ(CheckpointOf(machine).error().message(), "device 3 was skipped: it hangs");
}

TEST(MigCheckpoints, BecomeLayoutsOfExactlyTheseInstances) {
  const auto layout = LayoutOf(Recorded(), Divided(), false);
  ASSERT_TRUE(layout.ok()) << layout.error().message();
  ASSERT_EQ(layout->rules.size(), 2u);
  EXPECT_EQ(layout->rules[1], (api::LayoutRule{.ids = {"GPU-1"}}));
  EXPECT_EQ(layout->rules[0].parts.size(), 5u);
  // The machine from which it comes is as it says; another one becomes so.
  std::vector<std::string> remarks;
  EXPECT_EQ(*WhyNotApplied(Divided(), *layout, false, remarks), std::vector<std::string>{});
  MigMachine whole = Divided();
  whole.devices.resize(2);
  EXPECT_EQ(WhyNotApplied(whole, *layout, false, remarks)->size(), 1u);
  const auto shown = ShowMigPlan(whole, *layout, false);
  for (const char* step :
       {"Create 3g.20gb at slices 0-3, for parts within it.",
        "Create 1c.3g.20gb at slice 2 of the new 3g.20gb.",
        "Create 2c.3g.20gb at slices 0-1 of the new 3g.20gb.", "Create 1g.5gb at slice 4.",
        "Create 1g.5gb at slice 5, for parts within it.", "Create 1g.5gb at slice 6.",
        "GPU 1 (GPU-1): no change"})
    EXPECT_THAT(shown->text, HasSubstr(step));
}

TEST(MigCheckpoints, WithoutThePlacesOfComputeInstancesPermitAny) {
  MigCheckpoint older = Recorded();
  for (MigCheckpoint::GpuInstance& instance : older.gpus[0].instances)
    for (MigCheckpoint::ComputeInstance& compute : instance.compute_instances)
      compute.placement.reset();
  const auto layout = LayoutOf(older, Divided(), false);
  ASSERT_TRUE(layout.ok()) << layout.error().message();
  std::vector<std::string> remarks;
  EXPECT_EQ(*WhyNotApplied(Divided(), *layout, false, remarks), std::vector<std::string>{});
  MigMachine machine = Divided();
  std::swap(machine.devices[5].placement->start, machine.devices[6].placement->start);
  EXPECT_EQ(*WhyNotApplied(machine, *layout, false, remarks), std::vector<std::string>{});
  EXPECT_EQ(*WhyNotApplied(machine, *LayoutOf(Recorded(), machine, false), false, remarks),
            std::vector<std::string>{"GPU 0 (GPU-0): 1c.3g.20gb at slice 2 in the part at slices "
                                     "0-3 is missing"});
}

TEST(MigCheckpoints, OfAnotherMachineAreRefused) {
  const auto other =
      LayoutOf({{{"GPU-7", false, {}}, {"GPU-8\x1b[2J", true, {}}}}, Divided(), false);
  EXPECT_EQ(other.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(other.error().message(), HasSubstr("GPU GPU-7 is not on this machine\nGPU GPU-8"));
  EXPECT_EQ(other.error().message().find('\x1b'), std::string::npos);
  EXPECT_EQ(ProblemWith({99, 0, 1, {{0, 0}}}),
            "GPU 0 (GPU-0): it has no profile with the number 99");
  const int three = KindOf("3g.20gb");
  for (const MigCheckpoint::ComputeInstance wrong :
       {MigCheckpoint::ComputeInstance{3, 0}, {8, 0}, {0, 1}})
    EXPECT_THAT(ProblemWith({three, 0, 4, {wrong}}), HasSubstr("3g.20gb cannot have"));
  EXPECT_THAT(ProblemWith({three, 0, 4, {{2, 0}, {0, 0}}}), HasSubstr("is beside another"));
}

TEST(MigCheckpoints, NeedProfilesExceptForTheMode) {
  MigMachine machine = Divided();
  machine.devices.resize(2);
  machine.devices[0].profiles.clear();
  const auto layout = LayoutOf(Recorded(), machine, false);
  EXPECT_EQ(layout.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(layout.error().message(), HasSubstr("--mode-only"));
  const auto modes = LayoutOf(Recorded(), machine, true);
  ASSERT_TRUE(modes.ok());
  EXPECT_TRUE(modes->rules[0].partitioned);
  EXPECT_TRUE(modes->rules[0].parts.empty());
}

}  // namespace
}  // namespace penstock::app
