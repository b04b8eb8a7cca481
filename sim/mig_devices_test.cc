// Tests MIG devices as programs and users see them: handles, UUIDs, readings, files, visibility.
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sim/mig.h"
#include "sim/testing_mig.h"

namespace penstock::sim {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MigSession;

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct TwoDevices : MigSession {
  explicit TwoDevices(const std::string& name = "dgx-a100",
                      const Control::StartOptions& options = {})
      : MigSession(name, options) {
    EXPECT_EQ(Mode(NV_ENABLED), NV_SUCCESS);
    first = Make(9, 2);   // GPU instance 2
    second = Make(9, 2);  // GPU instance 1
  }
  NvGpuInstance first, second;
};

TEST(MigDevice, IsAnsweredByIndexInTheOrderOfIds) {
  TwoDevices machine;
  NvUint is_mig = 9, id = 9, count = 9;
  NvDevice mig = nullptr, parent = nullptr;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetMaxMigDeviceCount", machine.gpu, &count), NV_SUCCESS);
  EXPECT_EQ(count, 7u);
  for (NvUint index = 0; index < 2; index++) {
    mig = machine.Mig(index);
    EXPECT_EQ(machine.nvml("nvmlDeviceIsMigDeviceHandle", mig, &is_mig), NV_SUCCESS);
    EXPECT_EQ(is_mig, 1u);
    EXPECT_EQ(machine.nvml("nvmlDeviceGetIndex", mig, &id), NV_SUCCESS);
    EXPECT_EQ(id, index);
    EXPECT_EQ(machine.nvml("nvmlDeviceGetGpuInstanceId", mig, &id), NV_SUCCESS);
    EXPECT_EQ(id, index + 1);
    EXPECT_EQ(machine.nvml("nvmlDeviceGetComputeInstanceId", mig, &id), NV_SUCCESS);
    EXPECT_EQ(id, 0u);
    EXPECT_EQ(machine.nvml("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", mig, &parent),
              NV_SUCCESS);
    EXPECT_EQ(parent, machine.gpu);
    EXPECT_EQ(machine.Text("nvmlDeviceGetName", mig), "NVIDIA A100-SXM4-40GB MIG 3g.20gb");
  }
  EXPECT_EQ(machine.Find(2, mig), NV_NOT_FOUND);
  EXPECT_EQ(machine.Find(7, mig), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.nvml("nvmlDeviceIsMigDeviceHandle", machine.gpu, &is_mig), NV_SUCCESS);
  EXPECT_EQ(is_mig, 0u);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetGpuInstanceId", machine.gpu, &id), NV_INVALID_ARGUMENT);
}

TEST(MigDevice, OtherCallsDoNotSupportIt) {
  TwoDevices machine;
  const NvDevice mig = machine.Mig(0);
  NvUint number = 0, limit = 0;
  NvPciInfo pci{};
  EXPECT_EQ(machine.nvml("nvmlDeviceGetPowerUsage", mig, &number), NV_NOT_SUPPORTED);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetMinorNumber", mig, &number), NV_NOT_SUPPORTED);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetPciInfo_v3", mig, &pci), NV_NOT_SUPPORTED);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetMigMode", mig, &number, &limit), NV_NOT_SUPPORTED);
  EXPECT_EQ(machine.nvml("nvmlDeviceSetPersistenceMode", mig, NvUint{1}), NV_NOT_SUPPORTED);
}

TEST(MigDevice, KeepsItsUuidWhileItExistsAndIsFoundByBothSpellings) {
  TwoDevices machine;
  const std::string uuid = machine.Text("nvmlDeviceGetUUID", machine.Mig(0));
  EXPECT_THAT(uuid, ::testing::MatchesRegex(
                        "MIG-[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  const auto find = [&](const std::string& text) {
    NvDevice found = nullptr;
    const NvReturn result = machine.nvml("nvmlDeviceGetHandleByUUID", text.c_str(), &found);
    EXPECT_EQ(found != nullptr, result == NV_SUCCESS);
    return result == NV_SUCCESS ? machine.Text("nvmlDeviceGetUUID", found) : std::to_string(result);
  };
  const std::string old = "MIG-" + machine.Text("nvmlDeviceGetUUID", machine.gpu) + "/1/0";
  EXPECT_EQ(find(uuid), uuid);
  EXPECT_EQ(find(old), uuid);
  EXPECT_EQ(find("MIG-" + machine.Text("nvmlDeviceGetUUID", machine.gpu) + "/1/1"), "6");
  EXPECT_EQ(find("MIG-"), "6");
  EXPECT_NE(machine.Text("nvmlDeviceGetUUID", machine.Mig(1)), uuid);
  const NvDevice kept = machine.Mig(0);
  (void)machine.nvml("nvmlShutdown");
  ASSERT_EQ(machine.nvml("nvmlInit_v2"), NV_SUCCESS);
  EXPECT_EQ(machine.Text("nvmlDeviceGetUUID", machine.Mig(0)), uuid) << "in a later session";
  // A handle ends with its device, also if another one with the same ids follows.
  NvComputeInstance compute = nullptr;
  ASSERT_EQ(
      machine.nvml("nvmlGpuInstanceGetComputeInstanceById", machine.second, NvUint{0}, &compute),
      NV_SUCCESS);
  ASSERT_EQ(machine.DestroyCompute(compute), NV_SUCCESS);
  EXPECT_EQ(find(uuid), "6");
  NvUint id = 0;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetIndex", kept, &id), NV_INVALID_ARGUMENT);
  ASSERT_EQ(machine.CreateCompute(machine.second, 2, compute), NV_SUCCESS);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetIndex", kept, &id), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.Text("nvmlDeviceGetUUID", machine.Mig(0)), uuid) << "the ids are the same";
}

TEST(MigDevice, HasTheOldUuidBefore470) {
  TwoDevices machine("a100-40gb-x1", {.driver = "460.32.03"});
  const std::string gpu = machine.Text("nvmlDeviceGetUUID", machine.gpu);
  EXPECT_EQ(machine.Text("nvmlDeviceGetUUID", machine.Mig(0)), "MIG-" + gpu + "/1/0");
  EXPECT_EQ(machine.Text("nvmlDeviceGetName", machine.Mig(0)), "A100-SXM4-40GB MIG 3g.20gb");
}

TEST(MigDevice, IsFoundByTheBytesOfItsUuid) {
  TwoDevices machine("dgx-h200");
  const std::string uuid = machine.Text("nvmlDeviceGetUUID", machine.Mig(1));
  NvUuid wanted{.version = NV_STRUCT_VERSION(NvUuid, 1), .type = 2, .value = {}};
  std::string digits = uuid.substr(4);
  std::erase(digits, '-');
  for (int i = 0; i < 16; i++)
    wanted.value.bytes[i] =
        static_cast<unsigned char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  NvDevice found = nullptr;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetHandleByUUIDV", &wanted, &found), NV_SUCCESS);
  EXPECT_EQ(found, machine.Mig(1));
  wanted.value.bytes[0] ^= 1;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetHandleByUUIDV", &wanted, &found), NV_NOT_FOUND);
}

TEST(MigDevice, HasItsOwnMemoryAndProcesses) {
  TwoDevices machine("dgx-h200");
  ASSERT_TRUE(
      machine.control
          .Set({0}, {"process=7:1024:a:40:gi1/ci0", "process=8:2048:b:20:gi2/ci0", "process=9:1:c"})
          .ok());
  EXPECT_THAT(machine.control.Set({0}, {"process=7:1:a:gi3/ci0"}).error().message(),
              HasSubstr("no MIG instance gi3/ci0"));
  NvMemory memory{};
  ASSERT_EQ(machine.nvml("nvmlDeviceGetMemoryInfo", machine.Mig(0), &memory), NV_SUCCESS);
  EXPECT_EQ(memory.total >> 20, 71424u);
  EXPECT_EQ(memory.used >> 20, 1024u);
  EXPECT_EQ(memory.free + memory.used, memory.total);
  NvMemory2 second{.version = NV_STRUCT_VERSION(NvMemory2, 2)};
  ASSERT_EQ(machine.nvml("nvmlDeviceGetMemoryInfo_v2", machine.Mig(1), &second), NV_SUCCESS);
  EXPECT_EQ(second.used >> 20, 2048u);
  NvBar1Memory bar{};
  ASSERT_EQ(machine.nvml("nvmlDeviceGetBAR1MemoryInfo", machine.Mig(1), &bar), NV_SUCCESS);
  EXPECT_EQ(bar.bar1Total >> 20, 131072u);
  NvProcess2 processes[8];
  const auto list = [&](NvDevice device) {
    NvUint count = 8;
    EXPECT_EQ(machine.nvml("nvmlDeviceGetComputeRunningProcesses_v3", device, &count,
                           static_cast<NvProcess2*>(processes)),
              NV_SUCCESS);
    std::vector<std::string> all;
    for (NvUint i = 0; i < count; i++)
      all.push_back(std::to_string(processes[i].pid) + ":" +
                    std::to_string(static_cast<int>(processes[i].gpuInstanceId)) + "/" +
                    std::to_string(static_cast<int>(processes[i].computeInstanceId)));
    return all;
  };
  EXPECT_THAT(list(machine.Mig(0)), ElementsAre("7:1/0"));
  EXPECT_THAT(list(machine.gpu), ElementsAre("7:1/0", "8:2/0", "9:-1/-1"));
}

TEST(MigDevice, HasAPartOfTheGpusGpmMetrics) {
  TwoDevices machine("dgx-h200");
  ASSERT_TRUE(machine.control.StopClock().ok());
  ASSERT_TRUE(
      machine.control.Set({0}, {"process=7:1:a:40:gi1/ci0", "process=8:1:b:20:gi2/ci0"}).ok());
  NvGpmMetrics request{};
  request.version = 1;
  request.numMetrics = 1;
  request.metrics[0].metricId = 2;
  for (NvGpmSample* sample : {&request.sample1, &request.sample2}) {
    ASSERT_EQ(machine.nvml("nvmlGpmSampleAlloc", sample), NV_SUCCESS);
    ASSERT_EQ(machine.nvml("nvmlGpmMigSampleGet", machine.gpu, NvUint{1}, *sample), NV_SUCCESS);
    ASSERT_TRUE(machine.control.AdvanceClock(1000000).ok());
  }
  ASSERT_EQ(machine.nvml("nvmlGpmMetricsGet", &request), NV_SUCCESS);
  EXPECT_DOUBLE_EQ(request.metrics[0].value, 40.0);
  EXPECT_EQ(machine.nvml("nvmlGpmSampleGet", machine.Mig(1), request.sample2), NV_SUCCESS);
  EXPECT_EQ(machine.nvml("nvmlGpmMetricsGet", &request), NV_INVALID_ARGUMENT)
      << "samples of two instances";
  EXPECT_EQ(machine.nvml("nvmlGpmMigSampleGet", machine.gpu, NvUint{5}, request.sample2),
            NV_INVALID_ARGUMENT);
  for (const NvGpmSample sample : {request.sample1, request.sample2})
    EXPECT_EQ(machine.nvml("nvmlGpmSampleFree", sample), NV_SUCCESS);
}

// As with a state that another program has damaged: the library runs in processes that must survive
// it.
TEST(MigDevice, OfANonsensicalStateEndsNoProgram) {
  TwoDevices machine("dgx-h200");
  const NvDevice mig = machine.Mig(0);
  std::fstream state(StatePath(machine.root()), std::ios::in | std::ios::out | std::ios::binary);
  state.seekp(offsetof(SimState, gpus) + offsetof(SimGpu, instances));
  state << std::string(sizeof(SimGpu::instances), '\xff');
  state.close();
  NvGpuInstance made = nullptr;
  NvDevice found = nullptr;
  NvMemory memory{};
  NvAttributes attributes{};
  char name[96];
  EXPECT_EQ(machine.nvml("nvmlDeviceGetMemoryInfo", mig, &memory), NV_INVALID_ARGUMENT);
  ASSERT_EQ(machine.Find(0, found), NV_SUCCESS);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetMemoryInfo", found, &memory), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetAttributes_v2", found, &attributes), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetName", found, static_cast<char*>(name), NvUint{96}),
            NV_INVALID_ARGUMENT);
  EXPECT_LE(machine.Remaining(19), 7u);
  EXPECT_THAT(machine.Create(19, made), ::testing::AnyOf(NV_SUCCESS, NV_INSUFFICIENT_RESOURCES));
  EXPECT_EQ(machine.Destroy(machine.first), NV_INVALID_ARGUMENT);
  EXPECT_FALSE(machine.control.Set({0}, {"mig=disabled"}).ok());
  ASSERT_TRUE(machine.control.UnloadDriver().ok());
  EXPECT_FALSE(SimHasInstances(&machine.control.state().gpus[0]));
}

struct Node {
  bool there, device;
  unsigned minor_number;
};
Node NodeAt(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return {false, false, 0};
  return {true, S_ISCHR(info.st_mode), minor(info.st_rdev)};
}

TEST(MigFiles, ComeAndGoWithInstances) {
  MigSession machine("dgx-a100");
  const std::string capabilities = machine / "proc/driver/nvidia/capabilities/gpu0/mig",
                    nodes = machine / "dev/nvidia-caps/nvidia-cap";
  EXPECT_TRUE(fs::is_empty(capabilities));
  ASSERT_EQ(machine.Mode(NV_ENABLED), NV_SUCCESS);
  const NvGpuInstance instance = machine.Make(5, 3);  // GPU instance 1
  EXPECT_EQ(TextOf(capabilities + "/gi1/access"),
            "DeviceFileMinor: 12\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
  EXPECT_EQ(TextOf(capabilities + "/gi1/ci0/access"),
            "DeviceFileMinor: 13\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
  const Node first = NodeAt(nodes + "1");
  for (const unsigned number : {12u, 13u}) {
    const Node made = NodeAt(nodes + std::to_string(number));
    EXPECT_TRUE(made.there);
    EXPECT_EQ(made.device, first.device);
    if (made.device) { EXPECT_EQ(made.minor_number, number); }
  }
  EXPECT_FALSE(NodeAt(nodes + "14").there);
  NvComputeInstance compute = nullptr;
  ASSERT_EQ(machine.nvml("nvmlGpuInstanceGetComputeInstanceById", instance, NvUint{0}, &compute),
            NV_SUCCESS);
  ASSERT_EQ(machine.DestroyCompute(compute), NV_SUCCESS);
  EXPECT_FALSE(fs::exists(capabilities + "/gi1/ci0") || NodeAt(nodes + "13").there);
  EXPECT_TRUE(fs::exists(capabilities + "/gi1/access"));
  ASSERT_EQ(machine.Destroy(instance), NV_SUCCESS);
  EXPECT_TRUE(fs::is_empty(capabilities));
  EXPECT_FALSE(NodeAt(nodes + "12").there);
  (void)machine.Make(5, 3);
  ASSERT_TRUE(machine.control.Unplug(0).ok());
  EXPECT_FALSE(fs::exists(machine / "proc/driver/nvidia/capabilities/gpu0") ||
               NodeAt(nodes + "12").there);
  EXPECT_TRUE(fs::exists(machine / "proc/driver/nvidia/capabilities/gpu1/mig"));
  ASSERT_TRUE(machine.control.HealGpu(0).ok());
  EXPECT_TRUE(fs::is_empty(capabilities)) << "the instances are lost";
}

TEST(MigFiles, EndWithTheDriver) {
  TwoDevices machine;
  const std::string caps = machine / "dev/nvidia-caps";
  const auto count = [&] {
    return std::distance(fs::directory_iterator(caps), fs::directory_iterator());
  };
  EXPECT_EQ(count(), 2 + 4);
  ASSERT_TRUE(machine.control.UnloadDriver().ok());
  EXPECT_EQ(count(), 2);
  ASSERT_TRUE(machine.control.LoadDriver("").ok());
  EXPECT_EQ(count(), 2);
  EXPECT_TRUE(fs::is_empty(machine / "proc/driver/nvidia/capabilities/gpu0/mig"));
}

// As in a container that got the devices of one MIG device.
TEST(MigFiles, DecideWhatAProcessSeesAndMayChange) {
  TwoDevices machine;
  const std::string nodes = machine / "dev/nvidia-caps/nvidia-cap";
  NvGpuInstance made = nullptr, room[7];
  NvDevice mig = nullptr;
  NvUint count = 0;
  const std::string uuid = machine.Text("nvmlDeviceGetUUID", machine.Mig(1));
  fs::remove(nodes + "1");
  EXPECT_EQ(machine.Create(19, made), NV_NO_PERMISSION);
  EXPECT_EQ(machine.Destroy(machine.first), NV_NO_PERMISSION);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetGpuInstances", machine.gpu, NvUint{9}, room, &count),
            NV_SUCCESS);
  fs::remove(nodes + "2");
  EXPECT_EQ(machine.nvml("nvmlDeviceGetGpuInstances", machine.gpu, NvUint{9}, room, &count),
            NV_NO_PERMISSION);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetGpuInstanceById", machine.gpu, NvUint{1}, &made),
            NV_NO_PERMISSION);
  fs::remove(nodes + "12");  // GPU instance 1
  EXPECT_EQ(machine.Text("nvmlDeviceGetUUID", machine.Mig(0)), uuid);
  EXPECT_EQ(machine.Find(1, mig), NV_NOT_FOUND);
}

}  // namespace
}  // namespace penstock::sim
