// Tests what the backend reports of MIG, on the simulated driver library. The profiles of the H200
// are those of a real one with driver 580.159.04.
#include "backend/nvidia/mig.h"

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/backend.h"
#include "backend/nvidia/dialect/kinds.h"
#include "backend/nvidia/testing/simulated_machine.h"
#include "device/kinds.h"

namespace penstock::backend::nvidia {
namespace {

using device::Facts;
using device::PartProfile;
using device::Placement;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using testing::StartsWith;

class MigTest : public testing::Test {
 protected:
  void Start(const std::string& machine, const std::string& driver = "") {
    machine_.emplace(machine, driver);
    backend_ = MakeBackend(machine_->paths());
    ASSERT_TRUE(backend_->Open().ok());
    ASSERT_TRUE(backend_->List().ok());
  }

  Facts Describe(const std::string& address) {
    const auto facts = backend_->Describe(address);
    EXPECT_TRUE(facts.ok()) << address << ": " << facts.error().ToString();
    return facts.ok() ? *facts : Facts{};
  }

  /// The parts of a GPU, with their parts.
  std::vector<Facts> PartsOf(const std::string& gpu) {
    std::vector<Facts> parts;
    for (const std::string& address : Describe(gpu).parts) parts.push_back(Describe(address));
    return parts;
  }

  const PartProfile* Find(const Facts& gpu, std::string_view name) {
    const auto found = std::ranges::find(gpu.profiles, name, &PartProfile::name);
    return found == gpu.profiles.end() ? nullptr : &*found;
  }

  std::optional<SimulatedMachine> machine_;
  std::unique_ptr<device::Backend> backend_;
};

TEST_F(MigTest, ListsWhatAGpuCanBeDividedIntoWhileMigIsOff) {
  Start("dgx-h200");
  const Facts gpu = Describe("0");
  std::vector<std::string> names;
  for (const PartProfile& profile : gpu.profiles)
    if (profile.within.empty()) names.push_back(profile.name);
  EXPECT_THAT(names, ElementsAre("1g.18gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb",
                                 "1g.18gb+me", "1g.35gb"));
  EXPECT_EQ(*Find(gpu, "3g.71gb"),
            (PartProfile{.name = "3g.71gb",
                         .slices = 3,
                         .most = 2,
                         .placements = {{0, 4}, {4, 4}},
                         .capacity = {.memory = base::Mebibytes(71424), .compute_units = 60},
                         .engines = {{"decoder", 3}, {"jpeg", 3}},
                         .kind = 2}));
  EXPECT_EQ(Find(gpu, "1g.18gb")->kind, 0);
  EXPECT_EQ(Find(gpu, "1g.18gb+me")->kind, 7);
  EXPECT_EQ(Find(gpu, "1g.35gb")->kind, 9);
  EXPECT_THAT(Find(gpu, "1g.18gb+me")->engines,
              ElementsAre(Pair("decoder", 1), Pair("jpeg", 1), Pair("ofa", 1)));
  EXPECT_EQ(*Find(gpu, "2c.7g.141gb"), (PartProfile{.name = "2c.7g.141gb",
                                                    .within = "7g.141gb",
                                                    .slices = 2,
                                                    .most = 3,
                                                    .placements = {{0, 2}, {2, 2}, {4, 2}}}));
  EXPECT_EQ(Find(gpu, "3c.4g.71gb"), nullptr);
  EXPECT_THAT(gpu.parts, IsEmpty());
  EXPECT_EQ(gpu.withheld, "");
}

TEST_F(MigTest, AGpuWithoutMigHasNoProfiles) {
  Start("t4-x1");
  EXPECT_THAT(Describe("0").profiles, IsEmpty());
}

TEST_F(MigTest, MigDevicesAreThePartsOfTheirGpu) {
  Start("dgx-a100");
  machine_->Smi({"-i", "1", "-mig", "1"});
  EXPECT_EQ(Describe("1").withheld, "MIG mode is enabled and there are no MIG devices");
  machine_->Smi({"mig", "-i", "1", "-cgi", "3g.20gb:4,1g.5gb", "-C"});
  const Facts gpu = Describe("1");
  EXPECT_EQ(gpu.withheld, "") << "the inventory says that it is divided";
  const std::vector<Facts> parts = PartsOf("1");
  ASSERT_THAT(parts, SizeIs(2));
  const Facts& part = parts[0].profile == "3g.20gb" ? parts[0] : parts[1];
  EXPECT_THAT(part.id, StartsWith("MIG-"));
  EXPECT_EQ(part.address, part.id);
  EXPECT_THAT(part.number, StartsWith("1:"));
  EXPECT_EQ(part.index, -1);
  EXPECT_EQ(part.parent, gpu.id);
  EXPECT_EQ(part.profile, "3g.20gb");
  EXPECT_EQ(part.placement, (Placement{.start = 4, .size = 4}));
  EXPECT_EQ(part.model, gpu.model);
  EXPECT_EQ(part.pci, gpu.pci);
  EXPECT_EQ(part.memory.mebibytes(), 19968u);
  EXPECT_EQ(part.compute_units, 42);
  EXPECT_EQ(part.details.at(kMigProfile), "3g.20gb");
  ASSERT_THAT(part.files, SizeIs(3)) << "the GPU's, its GPU instance's, its own";
  EXPECT_EQ(part.files[0].path, gpu.files[0].path);
  EXPECT_THAT(part.files[1].path, StartsWith("/dev/nvidia-caps/nvidia-cap"));
  EXPECT_EQ(part.files[2].minor, part.files[1].minor + 1) << "mig-minors";
}

TEST_F(MigTest, ComputeInstancesThatShareAGpuInstanceArePartsOfIt) {
  Start("a100-40gb-x1");
  machine_->Smi({"-mig", "1"});
  machine_->Smi({"mig", "-cgi", "3g.20gb:4,2g.10gb"});
  machine_->Smi({"mig", "-gi", "2", "-cci", "2c.3g.20gb,1c.3g.20gb"});
  const std::vector<Facts> parts = PartsOf("0");
  ASSERT_THAT(parts, SizeIs(4));
  const Facts gpu = Describe("0");
  EXPECT_EQ(parts[0].id, "MIG-" + gpu.id + "/2");
  EXPECT_EQ(parts[0].address, "0/2");
  EXPECT_EQ(parts[0].parent, gpu.id);
  EXPECT_EQ(parts[0].withheld, "it has no compute instance that fills it");
  EXPECT_EQ(parts[0].memory.mebibytes(), 19968u);
  EXPECT_THAT(parts[0].files, IsEmpty());
  EXPECT_EQ(parts[1].profile, "2g.10gb") << "it takes its place, without a compute instance, too";
  for (const Facts* one : {&parts[2], &parts[3]}) {
    EXPECT_EQ(one->parent, parts[0].id);
    EXPECT_EQ(one->memory.count, 0u) << "they share it";
    EXPECT_EQ(one->details.at(kMigMemory), "19968");
  }
  EXPECT_EQ(parts[2].profile, "2c.3g.20gb");
  EXPECT_EQ(parts[2].placement, (Placement{0, 2}));
  EXPECT_EQ(parts[3].profile, "1c.3g.20gb");
  EXPECT_EQ(parts[3].placement, (Placement{2, 1}));
  EXPECT_TRUE(backend_->Read("0/2")->reachable);
}

TEST_F(MigTest, PlacementsOfComputeInstancesAreDerivedUntilTheDriverReportsThem) {
  const std::vector<std::string> machines = {"a100-40gb-x1", "a30-x4", "dgx-h200", "h100-nvl-x2",
                                             "rtx-pro-6000-x2"};
  int compared = 0;
  for (const std::string& machine : machines) {
    Start(machine);
    const std::vector<PartProfile> derived = Describe("0").profiles;
    machine_->Smi({"-i", "0", "-mig", "1"});
    for (const PartProfile& outer : derived) {
      if (!outer.within.empty()) continue;
      machine_->Smi({"mig", "-i", "0", "-cgi", outer.name});
      const Facts gpu = Describe("0");
      for (const PartProfile& one : derived) {
        if (one.within != outer.name) continue;
        EXPECT_FALSE(one.placements.empty()) << machine << one.name;
        EXPECT_THAT(Find(gpu, one.name)->placements, testing::IsSupersetOf(one.placements))
            << machine << " " << one.name;
        ++compared;
      }
      machine_->Smi({"mig", "-i", "0", "-dgi"});
    }
    EXPECT_EQ(Describe("0").profiles, derived);
  }
  EXPECT_EQ(compared, 9 + 4 + 9 + 9 + 8);
}

TEST_F(MigTest, ReportsNoPlacementsWhereTheDriverPlacesComputeInstances) {
  Start("a100-40gb-x1", "515.105.01");
  machine_->Smi({"-mig", "1"});
  machine_->Smi({"mig", "-cgi", "7g.40gb"});
  machine_->Smi({"mig", "-cci", "2c.7g.40gb,3c.7g.40gb"});
  for (const char* name : {"1c.7g.40gb", "3c.7g.40gb", "1c.2g.10gb"})
    EXPECT_THAT(Find(Describe("0"), name)->placements, IsEmpty());
  const std::vector<Facts> parts = PartsOf("0");
  ASSERT_THAT(parts, SizeIs(3));
  EXPECT_EQ(parts[1].placement, std::nullopt);
}

TEST_F(MigTest, AComputeInstanceMadeAgainElsewhereIsAnotherOne) {
  Start("a100-40gb-x1");
  machine_->Smi({"-mig", "1"});
  machine_->Smi({"mig", "-cgi", "3g.20gb"});
  machine_->Smi({"mig", "-cci", "2c.3g.20gb,1c.3g.20gb"});
  const std::string id = PartsOf("0").at(2).id;
  machine_->Smi({"mig", "-dci"});
  machine_->Smi({"mig", "-cci", "1c.3g.20gb,1c.3g.20gb"});
  EXPECT_EQ(PartsOf("0").at(2).id, id);
  EXPECT_EQ(PartsOf("0").at(2).placement, (Placement{1, 1}));
  EXPECT_FALSE(backend_->Read("0")->facts_changed);
  for (const char* compute : {"0", "1"}) machine_->Smi({"mig", "-dci", "-ci", compute});
  machine_->Smi({"mig", "-cci", "1c.3g.20gb,1c.3g.20gb,1c.3g.20gb"});
  machine_->Smi({"mig", "-dci", "-ci", "1"});
  machine_->Smi({"mig", "-dci", "-ci", "0"});
  const std::string third = PartsOf("0").at(1).id;
  EXPECT_NE(third, id);
  machine_->Smi({"mig", "-cci", "1c.3g.20gb"});
  EXPECT_TRUE(backend_->Read("0")->facts_changed);
}

TEST_F(MigTest, PlacementsThatCannotBeReadAreErrorsOnlyIfTheyMayBeReadLater) {
  Start("a100-40gb-x1");
  machine_->Smi({"-mig", "1"});
  machine_->Smi({"mig", "-cgi", "3g.20gb"});
  machine_->Smi({"mig", "-cci", "1c.3g.20gb"});
  for (const char* call :
       {"nvmlGpuInstanceGetComputeInstanceById", "nvmlComputeInstanceGetInfo_v2"}) {
    machine_->Sim({"fault", "all", "error", call, "999"});
    EXPECT_EQ(backend_->Describe("0").error().code(), base::Code::kDataLoss) << call;
    machine_->Sim({"heal", "all"});
    machine_->Sim({"fault", "all", "error", call, "3"});
    EXPECT_EQ(PartsOf("0").at(1).placement, std::nullopt) << call;
    machine_->Sim({"heal", "all"});
  }
  EXPECT_EQ(PartsOf("0").at(1).placement, (Placement{0, 1}));
  const auto reported = Find(Describe("0"), "2c.3g.20gb")->placements;
  EXPECT_THAT(reported, ElementsAre(Placement{0, 2}, Placement{1, 2}));
  machine_->Sim(
      {"fault", "all", "error", "nvmlGpuInstanceGetComputeInstancePossiblePlacements", "999"});
  EXPECT_THAT(Find(Describe("0"), "2c.3g.20gb")->placements, ElementsAre(Placement{0, 2}));
}

TEST_F(MigTest, SaysThatThePartsAreNotThoseDescribed) {
  Start("a100-40gb-x1");
  machine_->Smi({"-mig", "1"});
  machine_->Smi({"mig", "-cgi", "1g.5gb", "-C"});
  const std::string first = Describe("0").parts.at(0);
  EXPECT_FALSE(backend_->Read("0")->facts_changed);
  machine_->Smi({"mig", "-cgi", "2g.10gb", "-C"});
  EXPECT_TRUE(backend_->Read("0")->facts_changed);
  EXPECT_THAT(Describe("0").parts, SizeIs(2));
  EXPECT_FALSE(backend_->Read("0")->facts_changed);
  machine_->Smi({"mig", "-dci"});
  machine_->Smi({"mig", "-dgi"});
  EXPECT_TRUE(backend_->Read("0")->facts_changed);
  EXPECT_EQ(backend_->Read(first).error().code(), base::Code::kNotFound);
  EXPECT_EQ(backend_->TakeSample(first, {}).error().code(), base::Code::kNotFound);
  EXPECT_THAT(Describe("0").parts, IsEmpty());
  EXPECT_EQ(backend_->Describe(first).error().code(), base::Code::kNotFound);
}

TEST_F(MigTest, PartsMadeAgainAreOthersAlsoWithTheSameUuid) {
  Start("a100-40gb-x1");
  machine_->Smi({"-mig", "1"});
  machine_->Smi({"mig", "-cgi", "3g.20gb:4", "-C"});
  const Facts before = PartsOf("0").at(0);
  machine_->Smi({"mig", "-dci"});
  machine_->Smi({"mig", "-dgi"});
  machine_->Smi({"mig", "-cgi", "4g.20gb", "-C"});
  EXPECT_TRUE(backend_->Read("0")->facts_changed);
  machine_->Smi({"mig", "-dci"});
  machine_->Smi({"mig", "-dgi"});
  machine_->Smi({"mig", "-cgi", "3g.20gb:4", "-C"});
  EXPECT_EQ(PartsOf("0").at(0), before);
}

TEST_F(MigTest, ACallThatFailsSaysNothingOfTheParts) {
  Start("a100-40gb-x1");
  machine_->Smi({"-mig", "1"});
  machine_->Smi({"mig", "-cgi", "3g.20gb,2g.10gb", "-C"});
  const std::string part = Describe("0").parts.at(0);
  for (const char* call : {"nvmlDeviceGetMigMode", "nvmlDeviceGetGpuInstances",
                           "nvmlGpuInstanceGetInfo", "nvmlDeviceGetMigDeviceHandleByIndex",
                           "nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetAttributes_v2"}) {
    machine_->Sim({"fault", "all", "error", call, "999"});
    EXPECT_FALSE(backend_->Read("0")->facts_changed) << call;
    EXPECT_EQ(backend_->Describe("0").error().code(), base::Code::kDataLoss) << call;
    machine_->Sim({"heal", "all"});
  }
  machine_->Sim({"fault", "all", "error", "nvmlDeviceGetMigDeviceHandleByIndex", "15"});
  EXPECT_FALSE(backend_->Read(part)->reachable) << "the GPU is lost, not the part removed";
  machine_->Sim({"heal", "all"});
  EXPECT_TRUE(backend_->Read(part)->reachable);
}

TEST_F(MigTest, ProcessesThatMayNotListTheInstancesSaySo) {
  Start("a100-40gb-x1");
  machine_->Smi({"-mig", "1"});
  machine_->Sim({"fault", "all", "error", "nvmlDeviceGetGpuInstances", "4"});
  EXPECT_EQ(Describe("0").withheld,
            "MIG mode is enabled, and this process may not list the MIG devices");
}

TEST_F(MigTest, APartWhoseCapabilityFilesAreUnknownIsWithheld) {
  Start("a100-40gb-x1");
  machine_->Smi({"-mig", "1"});
  machine_->Smi({"mig", "-cgi", "3g.20gb", "-C"});
  EXPECT_EQ(PartsOf("0").at(0).withheld, "");
  std::filesystem::remove(machine_->root() + "/proc/driver/nvidia-caps/mig-minors");
  EXPECT_EQ(PartsOf("0").at(0).withheld,
            "the driver does not say which files in /dev/nvidia-caps permit its use");
}

TEST_F(MigTest, AProcessIsOnItsMigDeviceAlone) {
  Start("a100-40gb-x1");
  machine_->Smi({"-mig", "1"});
  machine_->Smi({"mig", "-cgi", "3g.20gb,3g.20gb", "-C"});
  const std::vector<Facts> parts = PartsOf("0");
  ASSERT_THAT(parts, SizeIs(2));
  machine_->Sim(
      {"set", "0", "process=4711:1000:python:C:gi" + parts[0].details.at(kGpuInstance) + "/ci0"});
  const auto on = backend_->Read(parts[0].address);
  ASSERT_THAT(on->processes, SizeIs(1));
  EXPECT_EQ(on->processes[0].pid, 4711);
  EXPECT_THAT(backend_->Read(parts[1].address)->processes, IsEmpty());
  EXPECT_THAT(backend_->Read("0")->processes, IsEmpty()) << "else no part could be allocated";
}

TEST_F(MigTest, AnXidNamesTheInstanceThatItIsAbout) {
  Start("dgx-h200", "580.159.04");
  machine_->Smi({"-i", "0", "-mig", "1"});
  machine_->Smi({"mig", "-i", "0", "-cgi", "3g.71gb,3g.71gb", "-C"});
  const std::vector<Facts> parts = PartsOf("0");
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[1].part, parts[1].details.at(kGpuInstance) + "/0");
  const auto heard = [&](const std::string& instance) {
    std::vector<std::string> words{"fault", "0", "xid", "94", "--alone"};
    if (!instance.empty()) words.insert(words.end(), {"--instance", instance});
    machine_->Sim(words);
    while (true) {
      const auto evidence = backend_->Wait(std::chrono::seconds(20));
      if (!evidence.ok() || evidence->empty()) return device::Evidence{};
      for (const device::Evidence& one : *evidence)
        if (one.kind == kXid) return one;
    }
  };
  EXPECT_EQ(heard(parts[1].part).part, parts[1].part);
  EXPECT_EQ(heard(parts[1].part).device, Describe("0").id);
  EXPECT_EQ(heard(parts[1].details.at(kGpuInstance)).part, parts[1].details.at(kGpuInstance));
  EXPECT_EQ(heard("").part, "");
}

TEST_F(MigTest, AChangeOfInstancesIsAnEvent) {
  Start("a100-40gb-x1");
  const std::string id = Describe("0").id;
  machine_->Smi({"-mig", "1"});
  machine_->Smi({"mig", "-cgi", "1g.5gb", "-C"});
  const auto evidence = backend_->Wait(std::chrono::seconds(20));
  ASSERT_TRUE(evidence.ok()) << evidence.error().ToString();
  EXPECT_THAT(*evidence, testing::Contains(testing::AllOf(
                             testing::Field(&device::Evidence::kind, device::kFactsChanged),
                             testing::Field(&device::Evidence::device, id),
                             testing::Field(&device::Evidence::part, ""))));
}

TEST_F(MigTest, ADriverThatDoesNotNameItsProfiles) {
  Start("a100-40gb-x1");
  machine_->Smi({"-mig", "1"});
  machine_->Smi({"mig", "-cgi", "1g.5gb+me", "-C"});
  machine_->Sim({"fault", "all", "error", "nvmlDeviceGetGpuInstanceProfileInfoV", "13"});
  const std::vector<Facts> parts = PartsOf("0");
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_EQ(parts[0].profile, "1g.5gb+me");
}

TEST(MigProfileName, IsThatOfNvidiasPrograms) {
  const auto name = [](unsigned kind, unsigned slices, unsigned long long memory,
                       unsigned long long total) {
    return MigProfileName(kind, slices, memory, base::Mebibytes(total));
  };
  EXPECT_EQ(name(0, 1, 4864, 40960), "1g.5gb");
  EXPECT_EQ(name(7, 1, 4864, 40960), "1g.5gb+me");
  EXPECT_EQ(name(2, 3, 40192, 81920), "3g.40gb");
  EXPECT_EQ(name(0, 1, 16384, 143771), "1g.18gb");
  EXPECT_EQ(name(2, 3, 71424, 143771), "3g.71gb");
  EXPECT_EQ(name(9, 1, 33280, 143771), "1g.35gb");
  EXPECT_EQ(name(4, 7, 143360, 143771), "7g.141gb");
  EXPECT_EQ(name(0, 1, 4864, 0), "1g.0gb") << "an unknown size";
}

}  // namespace
}  // namespace penstock::backend::nvidia
