// Tests the simulated library through a real dlopen, as other programs load it.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <dlfcn.h>
#include <fcntl.h>

#include "sim/testing_library.h"

namespace penstock::sim {
namespace {

namespace fs = std::filesystem;
using testing::Folder;
using testing::Library;
using testing::Running;
using testing::Session;
using testing::Started;

TEST(Library, FindsItsMachineByWhereItLies) {
  Folder folder;
  (void)Started(folder / "a", "dgx-a100");
  (void)Started(folder / "b", "t4-x1");
  const Library dgx(folder / "a"), t4(folder / "b");
  ASSERT_EQ(dgx("nvmlInit_v2"), NV_SUCCESS);
  ASSERT_EQ(t4("nvmlInit_v2"), NV_SUCCESS);
  NvUint count = 0;
  EXPECT_EQ(dgx("nvmlDeviceGetCount_v2", &count), NV_SUCCESS);
  EXPECT_EQ(count, 8u);
  EXPECT_EQ(t4("nvmlDeviceGetCount_v2", &count), NV_SUCCESS);
  EXPECT_EQ(count, 1u);
}

TEST(Library, FindsItsMachineThroughAnOpenFile) {
  Running machine("t4-x1");
  const int fd = open((machine / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.183.01").c_str(),
                      O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  void* handle = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
  close(fd);
  ASSERT_NE(handle, nullptr) << dlerror();
  EXPECT_EQ(reinterpret_cast<NvReturn (*)()>(dlsym(handle, "nvmlInit_v2"))(), NV_SUCCESS);
  dlclose(handle);
}

TEST(Library, CountsItsSessions) {
  Running machine("t4-x1");
  const Library nvml(machine.root());
  NvUint count = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetCount_v2", &count), NV_UNINITIALIZED);
  EXPECT_EQ(nvml("nvmlShutdown"), NV_UNINITIALIZED);
  ASSERT_EQ(nvml("nvmlInit_v2"), NV_SUCCESS);
  ASSERT_EQ(nvml("nvmlInit_v2"), NV_SUCCESS);
  EXPECT_EQ(nvml("nvmlShutdown"), NV_SUCCESS);
  EXPECT_EQ(nvml("nvmlDeviceGetCount_v2", &count), NV_SUCCESS);
  EXPECT_EQ(nvml("nvmlShutdown"), NV_SUCCESS);
  EXPECT_EQ(nvml("nvmlDeviceGetCount_v2", &count), NV_UNINITIALIZED);
}

TEST(Library, AnswersUnknownForABrokenStateAndNotLoadedForNone) {
  Running machine("t4-x1");
  const Library nvml(machine.root());
  const std::string path = StatePath(machine.root());
  ASSERT_EQ(truncate(path.c_str(), 100), 0);
  EXPECT_EQ(nvml("nvmlInit_v2"), NV_UNKNOWN);
  std::ofstream(path) << "something else that is longer than sixteen bytes";
  EXPECT_EQ(nvml("nvmlInit_v2"), NV_UNKNOWN);
  fs::remove(path);
  EXPECT_EQ(nvml("nvmlInit_v2"), NV_DRIVER_NOT_LOADED);
}

TEST(Library, AnOldDriverLacksNewFunctions) {
  Folder folder;
  (void)Started(folder / "old", "a100-40gb-x1", {.driver = "450.80.02"});
  (void)Started(folder / "new", "a100-40gb-x1");
  const Library old(folder / "old"), fresh(folder / "new");
  EXPECT_FALSE(old.Has("nvmlDeviceGetMemoryInfo_v2") || old.Has("nvmlDeviceGetGspFirmwareMode"));
  EXPECT_TRUE(old.Has("nvmlDeviceGetMemoryInfo") &&
              old.Has("nvmlDeviceGetComputeRunningProcesses_v2"));
  EXPECT_TRUE(fresh.Has("nvmlDeviceGetMemoryInfo_v2") && fresh.Has("nvmlDeviceGetGspFirmwareMode"));
  EXPECT_FALSE(fresh.Has("nvmlDeviceGetTemperatureV"));
  EXPECT_EQ(old("nvmlInit_v2"), NV_SUCCESS);
}

TEST(Library, ALostGpuShowsWhereItIsAskedTo) {
  Session machine("dgx-a100");
  const NvDevice kept = machine.nvml.Device(4);
  NvDevice device = nullptr;
  NvUint watts = 0;
  const auto look_up = [&] {
    return machine.nvml("nvmlDeviceGetHandleByIndex_v2", NvUint{4}, &device);
  };
  const auto get = [&] { return machine.nvml("nvmlDeviceGetPowerUsage", kept, &watts); };
  ASSERT_TRUE(machine.control.Lose(4, kSimLostInHandle).ok());
  EXPECT_EQ(look_up(), NV_GPU_IS_LOST);
  EXPECT_EQ(get(), NV_SUCCESS);
  ASSERT_TRUE(machine.control.Lose(4, kSimLostInGetter).ok());
  EXPECT_EQ(look_up(), NV_SUCCESS);
  EXPECT_EQ(get(), NV_GPU_IS_LOST);
  ASSERT_TRUE(machine.control.HealGpu(4).ok());
  EXPECT_EQ(look_up(), NV_SUCCESS);
  EXPECT_EQ(get(), NV_SUCCESS);
}

TEST(Library, CountedErrorsStrikeThatOften) {
  Session machine("dgx-a100");
  ASSERT_TRUE(
      machine.control.FaultCall(1, "nvmlDeviceGetPowerUsage", kSimFaultError, 0, NV_UNKNOWN, 2)
          .ok());
  NvUint watts = 0;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetPowerUsage", machine.nvml.Device(0), &watts), NV_SUCCESS);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetPowerUsage", machine.nvml.Device(1), &watts), NV_UNKNOWN);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetPowerUsage", machine.nvml.Device(1), &watts), NV_UNKNOWN);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetPowerUsage", machine.nvml.Device(1), &watts), NV_SUCCESS);
}

TEST(Library, AHangingInitHangsUntilHealedAndOthersGoOn) {
  Session machine("dgx-a100");
  ASSERT_TRUE(machine.control.FaultCall(-1, "nvmlInit", kSimFaultHang, 0, 0, 0).ok());
  std::atomic<bool> done = false;
  std::thread stuck([&] {
    EXPECT_EQ(machine.nvml("nvmlInit_v2"), NV_SUCCESS);
    done = true;
  });
  NvUint count = 0;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetCount_v2", &count), NV_SUCCESS);
  EXPECT_FALSE(done);
  ASSERT_TRUE(machine.control.HealCalls().ok());
  stuck.join();
  EXPECT_TRUE(done);
}

TEST(Library, EverySetSeesAnEventOnceAndNoneFromBeforeIt) {
  Session machine("dgx-a100");
  ASSERT_TRUE(machine.control.Xid(0, 31, {}).ok());
  NvEventSet sets[2] = {};
  for (NvEventSet& set : sets) {
    ASSERT_EQ(machine.nvml("nvmlEventSetCreate", &set), NV_SUCCESS);
    ASSERT_EQ(machine.nvml("nvmlDeviceRegisterEvents", machine.nvml.Device(0),
                           NvUlong{NV_EVENT_XID}, set),
              NV_SUCCESS);
  }
  NvEventData data{};
  EXPECT_EQ(machine.nvml("nvmlEventSetWait_v2", sets[0], &data, NvUint{0}), NV_TIMEOUT);
  ASSERT_TRUE(machine.control.Xid(1, 13, {}).ok());  // its type is not registered
  ASSERT_TRUE(machine.control.Xid(0, 43, {}).ok());
  for (NvEventSet& set : sets) {
    EXPECT_EQ(machine.nvml("nvmlEventSetWait_v2", set, &data, NvUint{1000}), NV_SUCCESS);
    EXPECT_EQ(data.device, machine.nvml.Device(0));
    EXPECT_EQ(data.eventData, 43u);
    EXPECT_EQ(machine.nvml("nvmlEventSetWait_v2", set, &data, NvUint{0}), NV_TIMEOUT);
    EXPECT_EQ(machine.nvml("nvmlEventSetFree", set), NV_SUCCESS);
  }
}

TEST(Library, AFabricCanReachBeyondTheMachine) {
  Session machine("dgx-h100");
  NvFabric alone{}, joined{};
  ASSERT_EQ(machine.nvml("nvmlDeviceGetGpuFabricInfo", machine.nvml.Device(0), &alone), NV_SUCCESS);
  EXPECT_EQ(alone.state, 3u);
  EXPECT_EQ(alone.clusterUuid[0] | alone.clusterUuid[15], 0);
  EXPECT_FALSE(machine.control.Set({0}, {"fabric=nonsense"}).ok());
  ASSERT_TRUE(machine.control.Set({0}, {"fabric=50000000-0000-0000-0000-000000000004.7"}).ok());
  ASSERT_EQ(machine.nvml("nvmlDeviceGetGpuFabricInfo", machine.nvml.Device(0), &joined),
            NV_SUCCESS);
  EXPECT_EQ(joined.clusterUuid[0], 0x50);
  EXPECT_EQ(joined.clusterUuid[15], 0x04);
  EXPECT_EQ(joined.cliqueId, 7u);
}

TEST(Library, OneUnsupportedEventTypeFailsTheRegistration) {
  Session machine("mixed");
  NvEventSet set = nullptr;
  ASSERT_EQ(machine.nvml("nvmlEventSetCreate", &set), NV_SUCCESS);
  const NvDevice geforce = machine.nvml.Device(1);
  EXPECT_EQ(machine.nvml("nvmlDeviceRegisterEvents", geforce,
                         NvUlong{NV_EVENT_XID | NV_EVENT_DOUBLE_BIT_ECC}, set),
            NV_NOT_SUPPORTED);
  NvUlong types = 0;
  ASSERT_EQ(machine.nvml("nvmlDeviceGetSupportedEventTypes", geforce, &types), NV_SUCCESS);
  EXPECT_EQ(machine.nvml("nvmlDeviceRegisterEvents", geforce, types, set), NV_SUCCESS);
  EXPECT_EQ(machine.nvml("nvmlEventSetFree", set), NV_SUCCESS);
}

TEST(Library, RefusesHandlesAndBuffersThatAreNoGood) {
  Session machine("t4-x1");
  char text[96];
  char* const buffer = text;
  NvUint value = 0;
  const NvDevice device = machine.nvml.Device(0), wild = reinterpret_cast<NvDevice>(&value);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetName", wild, buffer, NvUint{96}), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetName", NvDevice{nullptr}, buffer, NvUint{96}),
            NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetName", device, buffer, NvUint{8}), NV_INSUFFICIENT_SIZE);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetName", device, buffer, NvUint{9}), NV_SUCCESS);
  EXPECT_STREQ(text, "Tesla T4");
  NvDevice other = nullptr;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetHandleByIndex_v2", NvUint{1}, &other), NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetHandleByUUID", static_cast<const char*>("GPU-none"), &other),
            NV_NOT_FOUND);
  NvMemory2 memory{};
  EXPECT_EQ(machine.nvml("nvmlDeviceGetMemoryInfo_v2", device, &memory),
            NV_ARGUMENT_VERSION_MISMATCH);
}

TEST(Library, ProcessListsAskForRoom) {
  Session machine("t4-x1");
  ASSERT_TRUE(
      machine.control.Set({0}, {"process=10:100", "process=11:100", "process=12:50:desktop:G"})
          .ok());
  NvUint count = 0;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetComputeRunningProcesses_v3", machine.nvml.Device(0), &count,
                         static_cast<NvProcess2*>(nullptr)),
            NV_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 2u);
  NvProcess2 processes[4] = {};
  NvProcess2* const list = processes;
  count = 4;
  EXPECT_EQ(
      machine.nvml("nvmlDeviceGetComputeRunningProcesses_v3", machine.nvml.Device(0), &count, list),
      NV_SUCCESS);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(processes[1].pid, 11u);
  EXPECT_EQ(processes[1].usedGpuMemory, 100u << 20);
}

TEST(Library, AnotherDriverUnderneathEndsTheSession) {
  Session machine("t4-x1");
  NvUint count = 0;
  ASSERT_TRUE(machine.control.UnloadDriver().ok());
  EXPECT_EQ(machine.nvml("nvmlDeviceGetCount_v2", &count), NV_DRIVER_NOT_LOADED);
  ASSERT_TRUE(machine.control.LoadDriver("").ok());
  EXPECT_EQ(machine.nvml("nvmlDeviceGetCount_v2", &count), NV_UNKNOWN);
  EXPECT_EQ(machine.nvml("nvmlShutdown"), NV_SUCCESS);
  EXPECT_EQ(machine.nvml("nvmlInit_v2"), NV_SUCCESS);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetCount_v2", &count), NV_SUCCESS);
}

}  // namespace
}  // namespace penstock::sim
