// Tests MIG's rules through the simulated library: modes, placements, instances.
#include "sim/mig.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "sim/testing_mig.h"

namespace penstock::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MigSession;
using testing::Session;

TEST(MigMode, OfAnIdleAmpereGpuChangesByAResetAndOutlivesTheDriver) {
  MigSession machine("dgx-a100");
  ASSERT_TRUE(machine.control.EccErrors(0, 3, true).ok());
  EXPECT_EQ(machine.Modes(), 0u);
  EXPECT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
  EXPECT_EQ(machine.Modes(), 11u);
  EXPECT_EQ(machine.control.state().gpus[0].ecc_volatile.count[0][1], 0u) << "it was reset";
  EXPECT_EQ(machine.control.state().gpus[1].mig_current, 0u) << "only this one";
  (void)machine.Make(9, 2);
  ASSERT_TRUE(machine.control.UnloadDriver().ok());
  ASSERT_TRUE(machine.control.LoadDriver("").ok());
  const testing::Library again(machine.root());
  EXPECT_EQ(machine.control.state().gpus[0].mig_current, 1u);
  EXPECT_FALSE(SimHasInstances(&machine.control.state().gpus[0]));
}

TEST(MigMode, OfABusyAmpereGpuIsPendingUntilAReset) {
  MigSession machine("a30-x4");
  ASSERT_TRUE(machine.control.Set({0}, {"process=7:100"}).ok());
  EXPECT_EQ(machine.Mode(NV_ENABLED), NV_IN_USE);
  EXPECT_EQ(machine.Modes(), 1u);
  NvGpuInstance made = nullptr;
  EXPECT_EQ(machine.Create(14, made), NV_NOT_SUPPORTED);
  EXPECT_EQ(machine.Mode(NV_DISABLED), NV_SUCCESS) << "nothing is pending any more";
  EXPECT_EQ(machine.Modes(), 0u);
  EXPECT_EQ(machine.Mode(NV_ENABLED), NV_IN_USE);
  ASSERT_TRUE(machine.control.Set({0}, {"no-processes"}).ok());
  EXPECT_EQ(machine.Modes(), 1u) << "the end of the processes changes nothing";
  EXPECT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
  EXPECT_EQ(machine.Modes(), 11u);
}

TEST(MigMode, OfHopperChangesAtOnceAndEndsWithTheDriver) {
  for (const char* name : {"dgx-h200", "dgx-b200"}) {
    MigSession machine(name);
    ASSERT_TRUE(machine.control.EccErrors(0, 3, true).ok());
    ASSERT_TRUE(machine.control.Set({0}, {"process=7:100"}).ok());
    EXPECT_EQ(machine.Mode(NV_ENABLED), NV_IN_USE);
    EXPECT_EQ(machine.Modes(), 0u) << "nothing is pending";
    ASSERT_TRUE(machine.control.Set({0}, {"no-processes"}).ok());
    EXPECT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
    EXPECT_EQ(machine.control.state().gpus[0].ecc_volatile.count[0][1], 3u) << "without a reset";
    const NvGpuInstance instance = machine.Make(9, 2);
    EXPECT_EQ(machine.Mode(NV_DISABLED), NV_IN_USE) << "it has instances";
    EXPECT_EQ(machine.Modes(), 11u);
    EXPECT_EQ(machine.Destroy(instance), NV_IN_USE);
    ASSERT_TRUE(machine.control.LoadDriver("590.44.01").ok());
    EXPECT_EQ(machine.control.state().gpus[0].mig_current, 0u);
    EXPECT_EQ(machine.control.state().gpus[0].mig_pending, 0u);
    EXPECT_FALSE(SimHasInstances(&machine.control.state().gpus[0]));
  }
}

TEST(MigMode, ExistsOnlyWhereThereIsMig) {
  MigSession machine("t4-x1");
  NvReturn activation = NV_SUCCESS;
  NvUint count = 9;
  NvGpuInstance made = nullptr;
  NvGpuInstanceProfile info{};
  EXPECT_EQ(machine.nvml("nvmlDeviceSetMigMode", machine.gpu, NvUint{1}, &activation),
            NV_NOT_SUPPORTED);
  EXPECT_EQ(machine.nvml("nvmlDeviceSetMigMode", machine.gpu, NvUint{2}, &activation),
            NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetMaxMigDeviceCount", machine.gpu, &count), NV_SUCCESS);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetGpuInstanceProfileInfo", machine.gpu, NvUint{0}, &info),
            NV_NOT_SUPPORTED);
  EXPECT_EQ(machine.Create(19, made), NV_NOT_SUPPORTED);
  EXPECT_THAT(machine.control.Set({0}, {"mig=enabled"}).error().message(), HasSubstr("has no MIG"));
}

TEST(MigMode, OfASettingIsTheSame) {
  MigSession machine("dgx-h100");
  ASSERT_TRUE(machine.control.Set({0}, {"process=7:100"}).ok());
  EXPECT_THAT(machine.control.Set({0}, {"mig=enabled"}).error().message(), HasSubstr("is in use"));
  ASSERT_TRUE(machine.control.Set({0}, {"no-processes", "mig=enabled"}).ok());
  EXPECT_EQ(machine.Modes(), 11u);
}

// What an independent reader of the profiles and placements expects of a GPU.
class Expected {
 public:
  explicit Expected(const MigSession& machine) : profiles_(machine.Profiles()) {
    for (const NvGpuInstanceProfile& profile : profiles_)
      placements_.push_back(machine.Placements(profile.id));
    const auto whole = std::max_element(
        profiles_.begin(), profiles_.end(),
        [](const auto& a, const auto& b) { return a.memorySizeMB < b.memorySizeMB; });
    engines_ = Engines(*whole);
  }

  std::size_t profiles() const { return profiles_.size(); }
  NvUint id(std::size_t profile) const { return profiles_[profile].id; }
  const std::vector<NvPlacement>& placements(std::size_t profile) const {
    return placements_[profile];
  }

  bool Fits(std::size_t profile, const NvPlacement& at) const {
    std::array<NvUint, 4> used = Engines(profiles_[profile]);
    NvUint same = 1;
    for (const auto& [other, there] : placed_) {
      if (at.start < there.start + there.size && there.start < at.start + at.size) return false;
      same += other == profile;
      for (std::size_t e = 0; e < used.size(); e++) used[e] += Engines(profiles_[other])[e];
    }
    for (std::size_t e = 0; e < used.size(); e++)
      if (Engines(profiles_[profile])[e] && used[e] > engines_[e]) return false;
    return same <= profiles_[profile].instanceCount;
  }
  // The most instances of a profile that can be added, by trying all.
  NvUint Most(std::size_t profile, std::size_t from = 0) {
    NvUint most = 0;
    for (std::size_t i = from; i < placements_[profile].size(); i++) {
      if (!Fits(profile, placements_[profile][i])) continue;
      placed_.emplace_back(profile, placements_[profile][i]);
      most = std::max(most, 1 + Most(profile, i + 1));
      placed_.pop_back();
    }
    return most;
  }
  void Add(std::size_t profile, const NvPlacement& at) { placed_.emplace_back(profile, at); }
  void Remove(const NvPlacement& at) {
    std::erase_if(placed_, [&](const auto& one) { return one.second.start == at.start; });
  }

 private:
  static std::array<NvUint, 4> Engines(const NvGpuInstanceProfile& profile) {
    return {profile.decoderCount, profile.encoderCount, profile.jpegCount, profile.ofaCount};
  }
  std::vector<NvGpuInstanceProfile> profiles_;
  std::vector<std::vector<NvPlacement>> placements_;
  std::vector<std::pair<std::size_t, NvPlacement>> placed_;
  std::array<NvUint, 4> engines_{};
};

std::string MachineOf(const std::string& model) {
  return "name: one\ndriver: 580.159.04\ngpus:\n  - {model: " + model +
         ", pci: \"0000:07:00.0\"}\n";
}

// A machine with one GPU of a model of the catalogue.
struct OfModel : MigSession {
  explicit OfModel(const std::string& model) : MigSession(File(model)) {}
  static std::string File(const std::string& model) {
    const std::string path = ::testing::TempDir() + "mig-" + model + ".yaml";
    std::ofstream(path) << MachineOf(model);
    return path;
  }
};

class MigOfModel : public ::testing::TestWithParam<const char*> {};

TEST_P(MigOfModel, HoldsWhatFitsAndNothingElse) {
  OfModel machine(GetParam());
  ASSERT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
  Expected expected(machine);
  ASSERT_GE(expected.profiles(), 5u);
  std::mt19937 random(12345);
  std::vector<std::pair<NvGpuInstance, NvPlacement>> made;
  for (int step = 0; step < 300; step++) {
    for (std::size_t i = 0; i < expected.profiles(); i++)
      ASSERT_EQ(machine.Remaining(expected.id(i)), expected.Most(i)) << expected.id(i);
    if (!made.empty() && random() % 3 == 0) {
      const auto one = made.begin() + random() % made.size();
      ASSERT_EQ(machine.Destroy(one->first), NV_SUCCESS);
      expected.Remove(one->second);
      made.erase(one);
      continue;
    }
    const std::size_t profile = random() % expected.profiles();
    const auto& placements = expected.placements(profile);
    NvGpuInstance instance = nullptr;
    if (random() % 2) {
      const NvPlacement at = placements[random() % placements.size()];
      ASSERT_EQ(machine.CreateAt(expected.id(profile), at, instance),
                expected.Fits(profile, at) ? NV_SUCCESS : NV_INSUFFICIENT_RESOURCES);
    } else {
      ASSERT_EQ(machine.Create(expected.id(profile), instance),
                expected.Most(profile) ? NV_SUCCESS : NV_INSUFFICIENT_RESOURCES);
    }
    if (!instance) continue;
    const NvGpuInstanceInfo info = machine.Info(instance);
    ASSERT_TRUE(expected.Fits(profile, info.placement));
    EXPECT_EQ(info.profileId, expected.id(profile));
    EXPECT_TRUE(std::any_of(placements.begin(), placements.end(), [&](const NvPlacement& at) {
      return at.start == info.placement.start && at.size == info.placement.size;
    }));
    expected.Add(profile, info.placement);
    made.emplace_back(instance, info.placement);
  }
}

// One model of each kind: the others have the same profiles but for names, memory and
// multiprocessors.
constexpr std::array kModels = {"a100-sxm4-40gb", "a30-pcie-24gb",  "h100-sxm-80gb",
                                "h200-sxm-141gb", "b200-sxm-180gb", "rtx-pro-6000-blackwell"};

INSTANTIATE_TEST_SUITE_P(AllModels, MigOfModel, ::testing::ValuesIn(kModels));

// What decides which instances a GPU can have.
std::string KindOf(const Model& model) {
  std::string kind = std::to_string(model.decoders) + "," + std::to_string(model.encoders) + "," +
                     std::to_string(model.jpegs) + "," + std::to_string(model.ofas);
  for (const SimMigProfile& profile : model.mig.profiles) {
    kind += ";";
    if (!profile.name[0]) continue;
    for (const std::uint32_t number :
         {profile.id, profile.slices, profile.most, profile.size, profile.starts, profile.decoders,
          profile.encoders, profile.jpegs, profile.ofas, profile.copy_engines})
      kind += std::to_string(number) + ",";
  }
  return kind;
}

TEST(MigCatalogue, EveryModelWithMigIsLikeOneThatIsTested) {
  const Catalogue catalogue = testing::BuiltCatalogue();
  std::set<std::string> tested;
  for (const char* name : kModels) tested.insert(KindOf(catalogue.at(name)));
  for (const auto& [name, model] : catalogue) {
    if (model.mig.devices == 0) continue;
    EXPECT_TRUE(tested.contains(KindOf(model))) << name;
  }
}

TEST(MigPlacement, OfTheDriverIsTheOneThatUsersSee) {
  MigSession machine("dgx-a100");
  ASSERT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
  std::vector<NvUint> starts, ids;
  std::vector<NvGpuInstance> made(7);
  for (NvGpuInstance& instance : made) {
    ASSERT_EQ(machine.Create(19, instance), NV_SUCCESS);
    starts.push_back(machine.Info(instance).placement.start);
    ids.push_back(machine.Info(instance).id);
  }
  EXPECT_THAT(starts, ElementsAre(6, 4, 5, 0, 1, 2, 3));
  EXPECT_THAT(ids, ElementsAre(13, 11, 12, 7, 8, 9, 10));
  for (const NvGpuInstance instance : made) EXPECT_EQ(machine.Destroy(instance), NV_SUCCESS);
  // 19,14,5 of NVIDIA's MIG guide.
  ids.clear();
  for (const NvUint profile : {19, 14, 5}) {
    NvGpuInstance instance = nullptr;
    ASSERT_EQ(machine.Create(profile, instance), NV_SUCCESS);
    ids.push_back(machine.Info(instance).id);
  }
  EXPECT_THAT(ids, ElementsAre(13, 5, 1));
}

TEST(MigPlacement, OfMediaEnginesIsExclusive) {
  OfModel machine("rtx-pro-6000-blackwell");
  ASSERT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
  NvGpuInstance all = nullptr, more = nullptr;
  ASSERT_EQ(machine.Create(65, all), NV_SUCCESS);  // 1g.24gb+me.all
  EXPECT_EQ(machine.Create(14, more), NV_INSUFFICIENT_RESOURCES);
  EXPECT_EQ(machine.Remaining(67), 3u);
  EXPECT_EQ(machine.Create(67, more), NV_SUCCESS);  // 1g.24gb-me
  MigSession a100("dgx-a100");
  ASSERT_EQ(a100.Mode(NV_ENABLED), NV_SUCCESS);
  ASSERT_EQ(a100.Create(20, all), NV_SUCCESS);
  EXPECT_EQ(a100.Create(20, more), NV_INSUFFICIENT_RESOURCES);
}

TEST(MigInstance, ErrorsAreThoseOfTheDocumentation) {
  MigSession machine("dgx-h200");
  NvGpuInstance made = nullptr, other = nullptr;
  NvComputeInstance compute = nullptr;
  NvUint count = 9;
  EXPECT_EQ(machine.Create(19, made), NV_NOT_SUPPORTED) << "MIG is off";
  NvGpuInstance room[7];
  EXPECT_EQ(machine.nvml("nvmlDeviceGetGpuInstances", machine.gpu, NvUint{19}, room, &count),
            NV_SUCCESS);
  EXPECT_EQ(count, 0u);
  ASSERT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
  EXPECT_EQ(machine.Create(47, made), NV_INVALID_ARGUMENT) << "a profile of another model";
  EXPECT_EQ(machine.CreateAt(9, {1, 4}, made), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.CreateAt(9, {0, 8}, made), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.CreateAt(9, {UINT32_MAX, 4}, made), NV_INVALID_ARGUMENT);
  ASSERT_EQ(machine.CreateAt(9, {0, 4}, made), NV_SUCCESS);
  EXPECT_EQ(machine.CreateAt(5, {0, 4}, other), NV_INSUFFICIENT_RESOURCES);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetGpuInstanceById", machine.gpu, NvUint{1}, &other),
            NV_SUCCESS);
  EXPECT_EQ(other, made);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetGpuInstanceById", machine.gpu, NvUint{2}, &other),
            NV_NOT_FOUND);
  EXPECT_EQ(machine.CreateCompute(made, 3, compute), NV_NOT_SUPPORTED) << "four slices of three";
  EXPECT_EQ(machine.CreateCompute(made, 99, compute), NV_NOT_SUPPORTED);
  ASSERT_EQ(machine.CreateCompute(made, 2, compute), NV_SUCCESS);
  NvComputeInstance second = nullptr;
  EXPECT_EQ(machine.CreateCompute(made, 0, second), NV_INSUFFICIENT_RESOURCES);
  EXPECT_EQ(machine.Destroy(made), NV_IN_USE) << "it has a compute instance";
  ASSERT_TRUE(machine.control.Set({0}, {"process=7:100:a:gi1/ci0"}).ok());
  EXPECT_EQ(machine.DestroyCompute(compute), NV_IN_USE) << "it has a process";
  ASSERT_TRUE(machine.control.Set({0}, {"end-process=7"}).ok());
  ASSERT_EQ(machine.DestroyCompute(compute), NV_SUCCESS);
  EXPECT_EQ(machine.DestroyCompute(compute), NV_INVALID_ARGUMENT) << "it is gone";
  ASSERT_EQ(machine.Destroy(made), NV_SUCCESS);
  EXPECT_EQ(machine.Destroy(made), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.Destroy(nullptr), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.Destroy(reinterpret_cast<NvGpuInstance>(machine.gpu)), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.Destroy(reinterpret_cast<NvGpuInstance>(8)), NV_INVALID_ARGUMENT);
}

TEST(MigInstance, OfComputeSlicesFillAGpuInstance) {
  MigSession machine("dgx-a100");
  ASSERT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
  NvGpuInstance whole = nullptr;
  ASSERT_EQ(machine.Create(0, whole), NV_SUCCESS);
  const auto left = [&](NvUint profile) {
    NvUint count = 99;
    EXPECT_EQ(
        machine.nvml("nvmlGpuInstanceGetComputeInstanceRemainingCapacity", whole, profile, &count),
        NV_SUCCESS);
    return count;
  };
  EXPECT_THAT((std::vector{left(0), left(1), left(2), left(3), left(4)}),
              ElementsAre(7, 3, 2, 1, 1));
  NvComputeInstance compute = nullptr;
  ASSERT_EQ(machine.CreateCompute(whole, 0, compute), NV_SUCCESS);
  EXPECT_THAT((std::vector{left(0), left(1), left(2), left(3), left(4)}),
              ElementsAre(6, 3, 2, 1, 0));
  const NvPlacement at{4, 3};
  ASSERT_EQ(machine.nvml("nvmlGpuInstanceCreateComputeInstanceWithPlacement", whole, NvUint{2}, &at,
                         &compute),
            NV_SUCCESS);
  NvComputeInstanceInfo info{};
  ASSERT_EQ(machine.nvml("nvmlComputeInstanceGetInfo_v2", compute, &info), NV_SUCCESS);
  EXPECT_EQ(info.device, machine.gpu);
  EXPECT_EQ(info.gpuInstance, whole);
  EXPECT_THAT((std::vector{info.id, info.profileId, info.placement.start, info.placement.size}),
              ElementsAre(1, 2, 4, 3));
  EXPECT_EQ(machine.Text("nvmlDeviceGetName", machine.Mig(0)),
            "NVIDIA A100-SXM4-40GB MIG 1c.7g.40gb");
  EXPECT_EQ(machine.Text("nvmlDeviceGetName", machine.Mig(1)),
            "NVIDIA A100-SXM4-40GB MIG 3c.7g.40gb");
  NvAttributes attributes{};
  ASSERT_EQ(machine.nvml("nvmlDeviceGetAttributes_v2", machine.Mig(1), &attributes), NV_SUCCESS);
  EXPECT_EQ(attributes.multiprocessorCount, 42u);
  EXPECT_EQ(attributes.gpuInstanceSliceCount * 10 + attributes.computeInstanceSliceCount, 73u);
  EXPECT_EQ(attributes.memorySizeMB, 40192u);
  EXPECT_EQ(attributes.sharedDecoderCount, 5u);
}

/// A GPU instance with all of a GPU, and the compute instances in it.
struct WholeInstance : MigSession {
  explicit WholeInstance(const std::string& name, NvUint whole_profile = 0) : MigSession(name) {
    EXPECT_EQ(Mode(NV_ENABLED), NV_SUCCESS);
    EXPECT_EQ(Create(whole_profile, whole), NV_SUCCESS);
  }
  NvReturn At(NvUint profile, NvPlacement at) {
    NvComputeInstance made = nullptr;
    return nvml("nvmlGpuInstanceCreateComputeInstanceWithPlacement", whole, profile, &at, &made);
  }
  /// Where the driver places one, as "4:3"; the error if it does not.
  std::string Anywhere(NvUint profile) {
    NvComputeInstance made = nullptr;
    NvComputeInstanceInfo info{};
    if (const NvReturn result = CreateCompute(whole, profile, made); result != NV_SUCCESS)
      return std::to_string(result);
    EXPECT_EQ(nvml("nvmlComputeInstanceGetInfo_v2", made, &info), NV_SUCCESS);
    return std::to_string(info.placement.start) + ":" + std::to_string(info.placement.size);
  }
  std::string Possible(NvUint profile) {
    NvPlacement all[16];
    NvUint count = 0;
    EXPECT_EQ(nvml("nvmlGpuInstanceGetComputeInstancePossiblePlacements", whole, profile,
                   static_cast<NvPlacement*>(all), &count),
              NV_SUCCESS);
    std::string text;
    for (NvUint i = 0; i < count; i++)
      text +=
          (i == 0 ? "" : " ") + std::to_string(all[i].start) + ":" + std::to_string(all[i].size);
    return text;
  }
  NvGpuInstance whole = nullptr;
};

TEST(MigInstance, OfComputeSlicesLiesWhereverSlicesAreFree) {
  WholeInstance machine("a100-40gb-x1");
  EXPECT_EQ(machine.Possible(1), "0:2 1:2 2:2 3:2 4:2 5:2");
  EXPECT_EQ(machine.Possible(2), "0:3 1:3 2:3 3:3 4:3");
  EXPECT_EQ(machine.Possible(4), "0:7");
  EXPECT_EQ(machine.Anywhere(2), "0:3");
  EXPECT_EQ(machine.Anywhere(1), "3:2");
  EXPECT_EQ(machine.At(1, {4, 2}), NV_INSUFFICIENT_RESOURCES) << "slice 4 is taken";
  EXPECT_EQ(machine.At(1, {6, 2}), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.At(1, {5, 3}), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.At(1, {UINT32_MAX, 2}), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.At(1, {5, 2}), NV_SUCCESS);
  EXPECT_EQ(machine.Anywhere(0), std::to_string(NV_INSUFFICIENT_RESOURCES));
}

TEST(MigInstance, OfComputeSlicesLiesAtMultiplesOfItsSizeWhereOneLargerSliceIsSo) {
  WholeInstance machine("dgx-h200");
  EXPECT_EQ(machine.Possible(0), "0:1 1:1 2:1 3:1 4:1 5:1 6:1");
  EXPECT_EQ(machine.Possible(1), "0:2 2:2 4:2");
  EXPECT_EQ(machine.Possible(2), "0:4 4:4") << "half of the GPU";
  EXPECT_EQ(machine.Possible(3), "0:4");
  EXPECT_EQ(machine.Possible(4), "0:8");
  EXPECT_EQ(machine.At(1, {1, 2}), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.At(2, {4, 3}), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.At(2, {0, 4}), NV_SUCCESS);
  EXPECT_EQ(machine.At(0, {3, 1}), NV_INSUFFICIENT_RESOURCES);
  EXPECT_EQ(machine.Anywhere(0), "6:1") << "where it leaves the most placements";
  EXPECT_EQ(machine.Anywhere(2), std::to_string(NV_INSUFFICIENT_RESOURCES));
  EXPECT_EQ(machine.Anywhere(1), "4:2");
  EXPECT_EQ(machine.Anywhere(0), std::to_string(NV_INSUFFICIENT_RESOURCES));
}

TEST(MigInstance, OldDriversDoNotPlaceComputeInstances) {
  MigSession machine("a100-40gb-x1", {.driver = "470.57.02"});
  EXPECT_EQ(machine.nvml.Has("nvmlGpuInstanceCreateComputeInstanceWithPlacement"), false);
  EXPECT_EQ(machine.nvml.Has("nvmlGpuInstanceGetComputeInstancePossiblePlacements"), false);
}

TEST(MigInstance, OfOneSliceWithMoreMemoryHasAComputeProfileOfItsOwn) {
  MigSession machine("dgx-h200");
  ASSERT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
  NvGpuInstance instance = nullptr;
  ASSERT_EQ(machine.Create(15, instance), NV_SUCCESS);
  const auto ask = [&](NvUint profile, NvComputeProfile2& info) {
    info = {.version = NV_STRUCT_VERSION(NvComputeProfile2, 2)};
    return machine.nvml("nvmlGpuInstanceGetComputeInstanceProfileInfoV", instance, profile,
                        NvUint{NV_CI_ENGINES_SHARED}, &info);
  };
  NvComputeProfile2 info{};
  EXPECT_EQ(ask(NV_CI_1_SLICE, info), NV_NOT_SUPPORTED);
  EXPECT_EQ(ask(8, info), NV_INVALID_ARGUMENT) << "this driver has no more";
  ASSERT_EQ(ask(NV_CI_1_SLICE_REV1, info), NV_SUCCESS);
  EXPECT_EQ(info.id, 7u);
  EXPECT_EQ(info.multiprocessorCount, 26u);
  EXPECT_STREQ(info.name, "MIG 1g.35gb");
}

TEST(MigInstance, ChangesRaiseEvents) {
  MigSession machine("dgx-h200");
  NvEventSet set = nullptr;
  ASSERT_EQ(machine.nvml("nvmlEventSetCreate", &set), NV_SUCCESS);
  ASSERT_EQ(
      machine.nvml("nvmlDeviceRegisterEvents", machine.gpu, NvUlong{NV_EVENT_MIG_CONFIG}, set),
      NV_SUCCESS);
  const auto events = [&] {
    NvEventData data{};
    int count = 0;
    while (machine.nvml("nvmlEventSetWait_v2", set, &data, NvUint{0}) == NV_SUCCESS) {
      EXPECT_EQ(data.device, machine.gpu);
      EXPECT_EQ(data.eventType, NV_EVENT_MIG_CONFIG);
      count++;
    }
    return count;
  };
  ASSERT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
  EXPECT_EQ(events(), 1);
  ASSERT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
  EXPECT_EQ(events(), 0) << "nothing changed";
  NvGpuInstance instance = nullptr;
  NvComputeInstance compute = nullptr;
  ASSERT_EQ(machine.Create(19, instance), NV_SUCCESS);
  ASSERT_EQ(machine.CreateCompute(instance, 0, compute), NV_SUCCESS);
  EXPECT_EQ(events(), 2);
  EXPECT_EQ(machine.Destroy(instance), NV_IN_USE);
  EXPECT_EQ(events(), 0);
  ASSERT_EQ(machine.DestroyCompute(compute), NV_SUCCESS);
  ASSERT_EQ(machine.Destroy(instance), NV_SUCCESS);
  EXPECT_EQ(events(), 2);
  ASSERT_TRUE(machine.control.Set({0}, {"mig=disabled"}).ok());
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(machine.nvml("nvmlEventSetFree", set), NV_SUCCESS);
}

TEST(MigInstance, CallsFailByFaults) {
  MigSession machine("dgx-h200");
  ASSERT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
  const NvGpuInstance instance = machine.Make(19, 0);
  for (const char* call :
       {"nvmlDeviceCreateGpuInstance", "nvmlGpuInstanceDestroy", "nvmlGpuInstanceGetInfo",
        "nvmlGpuInstanceCreateComputeInstance", "nvmlDeviceGetAttributes"}) {
    ASSERT_TRUE(machine.control.FaultCall(0, call, kSimFaultError, 0, NV_UNKNOWN, 1).ok()) << call;
  }
  NvGpuInstance made = nullptr;
  NvComputeInstance compute = nullptr;
  NvGpuInstanceInfo info{};
  NvAttributes attributes{};
  EXPECT_EQ(machine.nvml("nvmlDeviceCreateGpuInstance", machine.nvml.Device(1), NvUint{19}, &made),
            NV_NOT_SUPPORTED)
      << "the fault is of another GPU";
  EXPECT_EQ(machine.Create(19, made), NV_UNKNOWN);
  EXPECT_EQ(machine.Destroy(instance), NV_UNKNOWN);
  EXPECT_EQ(machine.nvml("nvmlGpuInstanceGetInfo", instance, &info), NV_UNKNOWN);
  EXPECT_EQ(machine.CreateCompute(instance, 0, compute), NV_UNKNOWN);
  const NvDevice mig = machine.Mig(0);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetAttributes_v2", mig, &attributes), NV_UNKNOWN);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetAttributes_v2", mig, &attributes), NV_SUCCESS);
  ASSERT_TRUE(machine.control.Lose(0, kSimLostInGetter).ok());
  EXPECT_EQ(machine.nvml("nvmlGpuInstanceGetInfo", instance, &info), NV_GPU_IS_LOST);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetAttributes_v2", mig, &attributes), NV_GPU_IS_LOST);
}

TEST(MigInstance, OldDriversKnowFewerProfilesAndOnlyInMigMode) {
  const auto known = [](const char* driver, bool on) {
    MigSession machine("a100-40gb-x1", {.driver = driver});
    if (on) { EXPECT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS); }
    return machine.Profiles().size();
  };
  EXPECT_EQ(known("450.80.02", true), 5u);
  EXPECT_EQ(known("470.57.02", true), 6u) << "with +me";
  EXPECT_EQ(known("535.183.01", true), 7u) << "with 1g.10gb";
  EXPECT_EQ(known("535.183.01", false), 0u);
  EXPECT_EQ(known("550.54.15", false), 7u);
}

}  // namespace
}  // namespace penstock::sim
