// Tests that the simulated library's measurements follow from what the GPU does, and which devices
// and drivers do not report them.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <gmock/gmock.h>

#include "sim/testing_library.h"

namespace penstock::sim {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kOneSecond = 1000000;
constexpr NvUint kAllLinks = UINT32_MAX;

// A started machine with a stopped clock, and a session with its library.
struct Machine : testing::Session {
  explicit Machine(const std::string& name, const std::string& driver = "")
      : Session(name, {.driver = driver}) {
    EXPECT_TRUE(control.StopClock().ok());
  }
  void Set(std::uint32_t gpu, const std::vector<std::string>& settings) {
    const base::Status status = control.Set({gpu}, settings);
    EXPECT_TRUE(status.ok()) << status.error().message();
  }
  void Advance(std::uint64_t microseconds) { EXPECT_TRUE(control.AdvanceClock(microseconds).ok()); }
  NvFieldValue Field(NvUint gpu, NvUint id, NvUint scope = 0) {
    NvFieldValue field{};
    field.fieldId = id;
    field.scopeId = scope;
    EXPECT_EQ(nvml("nvmlDeviceGetFieldValues", nvml.Device(gpu), 1, &field), NV_SUCCESS);
    return field;
  }
  std::uint64_t Count(NvUint gpu, NvUint id, NvUint scope = 0) {
    const NvFieldValue field = Field(gpu, id, scope);
    EXPECT_EQ(field.nvmlReturn, NV_SUCCESS) << "field " << id;
    return field.valueType == NV_VALUE_UINT ? field.value.uiVal : field.value.ullVal;
  }
};

TEST(Telemetry, EnergyGrowsWithPowerByTheMachinesClock) {
  Machine machine("dgx-h100");
  machine.Set(0, {"power=300", "energy=5000"});
  NvUlong energy = 0;
  const auto ask = [&] {
    return machine.nvml("nvmlDeviceGetTotalEnergyConsumption", machine.nvml.Device(0), &energy);
  };
  ASSERT_EQ(ask(), NV_SUCCESS);
  EXPECT_EQ(energy, 5000u);
  machine.Advance(10 * kOneSecond);
  ASSERT_EQ(ask(), NV_SUCCESS);
  EXPECT_EQ(energy, 3005000u);
  EXPECT_EQ(machine.Count(0, NV_FI_TOTAL_ENERGY), energy);
  machine.Set(0, {"power=100"});
  machine.Advance(kOneSecond);
  EXPECT_EQ(machine.Count(0, NV_FI_TOTAL_ENERGY), 3105000u);
}

TEST(Telemetry, ACountNeverGoesBackWhileSettingsChange) {
  Machine machine("dgx-a100");
  ASSERT_TRUE(machine.control.RunClock().ok());
  std::uint64_t seen = 0;
  for (int i = 0; i < 300; i++) {
    machine.Set(0, {"utilisation=" + std::to_string(i % 101)});
    const std::uint64_t now = machine.Count(0, NV_FI_TOTAL_ENERGY);
    EXPECT_GE(now, seen);
    seen = now;
  }
}

TEST(Telemetry, TheClockStandsGoesForwardAndRunsOnFromWhereItStood) {
  Machine machine("t4-x1");
  const long long stood = machine.Field(0, NV_FI_POWER_INSTANT).timestamp;
  EXPECT_EQ(machine.Field(0, NV_FI_POWER_INSTANT).timestamp, stood);
  machine.Advance(3600 * kOneSecond);
  const long long forward = stood + 3600 * static_cast<long long>(kOneSecond);
  EXPECT_EQ(machine.Field(0, NV_FI_POWER_INSTANT).timestamp, forward);
  ASSERT_TRUE(machine.control.RunClock().ok());
  long long runs = forward;  // for less than a microsecond
  while (runs == forward) runs = machine.Field(0, NV_FI_POWER_INSTANT).timestamp;
  EXPECT_GT(runs, forward);
  EXPECT_LT(runs, stood + 3700 * static_cast<long long>(kOneSecond));
}

TEST(Telemetry, LinksCarryEqualPartsOfWhatAllCarry) {
  Machine machine("dgx-h100");
  machine.Set(0, {"nvlink-tx=19Gi", "nvlink-rx=1Gi", "nvlink-replay=3:7"});
  machine.Advance(2 * kOneSecond);
  const std::uint64_t all = machine.Count(0, NV_FI_NVLINK_THROUGHPUT_DATA_TX, kAllLinks);
  EXPECT_EQ(all, 38ull << 20) << "KiB";
  std::uint64_t sum = 0;
  for (NvUint link = 0; link < 18; link++)
    sum += machine.Count(0, NV_FI_NVLINK_THROUGHPUT_DATA_TX, link);
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(all), 18);
  EXPECT_EQ(machine.Field(0, NV_FI_NVLINK_THROUGHPUT_DATA_TX, 18).nvmlReturn, NV_INVALID_ARGUMENT);
  EXPECT_EQ(machine.Count(0, NV_FI_NVLINK_REPLAY_TOTAL), 7u);
  EXPECT_EQ(machine.Count(0, NV_FI_NVLINK_DL_REPLAY, 3), 7u);
  EXPECT_EQ(machine.Count(0, NV_FI_NVLINK_REPLAY_L0 + 3), 7u);
  NvUlong errors = 0;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetNvLinkErrorCounter", machine.nvml.Device(0), NvUint{3},
                         NvUint{0}, &errors),
            NV_SUCCESS);
  EXPECT_EQ(errors, 7u);
}

TEST(Telemetry, NvLink5CountsBytesAndItsOwnErrors) {
  Machine machine("dgx-b200");
  machine.Set(0, {"nvlink-tx=18Gi", "nvlink-rx=36Gi", "nvlink-recovery=2:5"});
  machine.Advance(kOneSecond);
  EXPECT_EQ(machine.Count(0, NV_FI_NVLINK_XMIT_BYTES, 0), 1ull << 30);
  EXPECT_EQ(machine.Count(0, NV_FI_NVLINK_RCV_BYTES, kAllLinks), 36ull << 30);
  EXPECT_EQ(machine.Count(0, NV_FI_NVLINK_RECOVERIES, 2), 5u);
  EXPECT_EQ(machine.Field(0, NV_FI_NVLINK_THROUGHPUT_DATA_TX, kAllLinks).nvmlReturn,
            NV_NOT_SUPPORTED);
  EXPECT_EQ(machine.Field(0, NV_FI_NVLINK_RECOVERY_TOTAL).nvmlReturn, NV_NOT_SUPPORTED);
}

TEST(Telemetry, ThrottlingIsMeteredByPolicyAndByReason) {
  Machine machine("dgx-h100", "580.126.09");
  machine.Set(0, {"utilisation=90", "clock-events=power-cap,sw-thermal"});
  machine.Advance(3 * kOneSecond);
  machine.Set(0, {"clock-events=none"});
  machine.Advance(5 * kOneSecond);
  EXPECT_EQ(machine.Count(0, NV_FI_PERF_POLICY_POWER), 3000000000u);
  EXPECT_EQ(machine.Count(0, NV_FI_PERF_POLICY_POWER + 1), 3000000000u);
  EXPECT_EQ(machine.Count(0, NV_FI_PERF_POLICY_POWER + 2), 0u);
  EXPECT_EQ(machine.Count(0, NV_FI_REASON_SW_THERMAL), 3000000000u);
  EXPECT_EQ(machine.Count(0, NV_FI_REASON_SW_THERMAL + 1), 0u);
  NvViolation time{};
  ASSERT_EQ(machine.nvml("nvmlDeviceGetViolationStatus", machine.nvml.Device(0), NvUint{0}, &time),
            NV_SUCCESS);
  EXPECT_EQ(time.violationTime, 3000000000u);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetViolationStatus", machine.nvml.Device(0), NvUint{7}, &time),
            NV_INVALID_ARGUMENT);
}

TEST(Telemetry, AFieldHasTheNumberThatTheDriverGaveIt) {
  struct Case {
    const char* driver;
    NvUint id;
    NvReturn answer;
  };
  const Case cases[] = {{"535.183.01", NV_FI_PCIE_TX_BYTES, NV_INVALID_ARGUMENT},
                        {"550.127.05", NV_FI_PCIE_TX_BYTES, NV_NOT_SUPPORTED},
                        {"555.42.06", NV_FI_PCIE_TX_BYTES, NV_SUCCESS},
                        {"560.35.03", NV_FI_RECOVERY_ACTION, NV_INVALID_ARGUMENT},
                        {"570.133.20", NV_FI_REASON_SW_THERMAL_575, NV_NOT_SUPPORTED},
                        {"570.133.20", NV_FI_REASON_SW_THERMAL, NV_INVALID_ARGUMENT},
                        {"575.57.08", NV_FI_REASON_SW_THERMAL_575, NV_SUCCESS},
                        {"575.57.08", NV_FI_REASON_SW_THERMAL, NV_NOT_SUPPORTED},
                        {"580.65.06", NV_FI_REASON_SW_THERMAL_575, NV_SUCCESS},
                        {"580.95.05", NV_FI_REASON_SW_THERMAL_575, NV_NOT_SUPPORTED},
                        {"580.95.05", NV_FI_REASON_SW_THERMAL, NV_SUCCESS},
                        {"595.80", NV_FI_REASON_SW_THERMAL, NV_SUCCESS}};
  for (const Case& one : cases) {
    Machine machine("dgx-h100", one.driver);
    EXPECT_EQ(machine.Field(0, one.id).nvmlReturn, one.answer) << one.driver << " " << one.id;
  }
}

// Returns those of `ids` that the first GPU of a machine supports.
std::vector<NvUint> Has(Machine& machine, NvUint gpu, const std::vector<NvUint>& ids) {
  std::vector<NvUint> has;
  for (const NvUint id : ids)
    if (machine.Field(gpu, id, id == NV_FI_NVLINK_THROUGHPUT_DATA_TX ? kAllLinks : 0).nvmlReturn ==
        NV_SUCCESS)
      has.push_back(id);
  return has;
}

TEST(Telemetry, EveryModelHasWhatTheRealOneHas) {
  // ECC, retired pages, NVLink errors, violations, memory's temperature, energy, NVLink traffic,
  // remapped rows, mean and instant power.
  const std::vector<NvUint> ids = {3, 29, 52, 74, 82, 83, 138, 142, 185, 186};
  Machine h100("dgx-h100"), v100("dgx-2"), mixed("mixed"), vgpu("vgpu-t4");
  EXPECT_THAT(Has(h100, 0, ids), ElementsAre(3, 52, 74, 82, 83, 138, 142, 185, 186));
  EXPECT_THAT(Has(v100, 0, ids), ElementsAre(3, 29, 52, 74, 82, 83, 138, 186));
  EXPECT_THAT(Has(mixed, 0, ids), ElementsAre(3, 74, 82, 83, 142, 186))
      << "A100 on PCIe: GA100's power is of the moment, its links are down";
  EXPECT_THAT(Has(mixed, 1, ids), ElementsAre(74, 83, 185, 186)) << "GeForce";
  EXPECT_THAT(Has(mixed, 2, ids), ElementsAre(3, 29, 74, 83, 186)) << "T4";
  EXPECT_THAT(Has(vgpu, 0, ids), ElementsAre(3)) << "a vGPU's guest";
}

TEST(Telemetry, MigHidesUseAndRemappedRows) {
  Machine machine("dgx-h100");
  machine.Set(0, {"mig=enabled", "utilisation=50", "process=7:100"});
  NvUtilization use{};
  NvProcessUse samples[100];
  NvUint room = 100;
  const NvDevice device = machine.nvml.Device(0);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetUtilizationRates", device, &use), NV_NOT_SUPPORTED);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetProcessUtilization", device, samples, &room, NvUlong{0}),
            NV_NOT_SUPPORTED);
  EXPECT_EQ(machine.Field(0, NV_FI_REMAPPED_COR).nvmlReturn, NV_NOT_SUPPORTED);
  EXPECT_EQ(machine.Field(0, NV_FI_TOTAL_ENERGY).nvmlReturn, NV_SUCCESS);
}

struct Use {
  NvUint pid, sm, memory, encoder, decoder;
  bool operator==(const Use&) const = default;
};
std::vector<Use> UseOf(Machine& machine, NvUlong since = 0, NvUlong* newest = nullptr) {
  NvProcessUse samples[100];
  NvUint count = 100;
  const NvReturn result = machine.nvml("nvmlDeviceGetProcessUtilization", machine.nvml.Device(0),
                                       samples, &count, since);
  EXPECT_TRUE(result == NV_SUCCESS || (result == NV_NOT_FOUND && count == 0)) << result;
  std::vector<Use> uses;
  for (NvUint i = 0; i < count; i++) {
    uses.push_back({samples[i].pid, samples[i].smUtil, samples[i].memUtil, samples[i].encUtil,
                    samples[i].decUtil});
    if (newest) *newest = std::max(*newest, samples[i].timeStamp);
  }
  return uses;
}

TEST(ProcessUse, IsItsOwnOrAPartOfTheRestAndMakesTheGpus) {
  Machine machine("dgx-h100");
  machine.Set(0, {"process=10:1024:a:60/30/5/6", "process=11:512:b:20", "process=12:100:c:G"});
  EXPECT_THAT(UseOf(machine), ElementsAre(Use{10, 60, 30, 5, 6}, Use{11, 20, 10, 0, 0}));
  NvUtilization use{};
  NvUint encoder = 0, period = 0;
  ASSERT_EQ(machine.nvml("nvmlDeviceGetUtilizationRates", machine.nvml.Device(0), &use),
            NV_SUCCESS);
  EXPECT_EQ(use.gpu, 80u);
  EXPECT_EQ(use.memory, 40u);
  ASSERT_EQ(
      machine.nvml("nvmlDeviceGetEncoderUtilization", machine.nvml.Device(0), &encoder, &period),
      NV_SUCCESS);
  EXPECT_EQ(encoder, 5u);
  machine.Set(0, {"utilisation=90"});
  EXPECT_THAT(UseOf(machine),
              ElementsAre(Use{10, 60, 30, 5, 6}, Use{11, 20, 10, 0, 0}, Use{12, 10, 5, 0, 0}));
  machine.Set(0, {"end-process=10"});
  EXPECT_THAT(UseOf(machine), ElementsAre(Use{11, 20, 10, 0, 0}));
  machine.Set(0, {"no-processes"});
  EXPECT_THAT(UseOf(machine), ElementsAre());
}

TEST(ProcessUse, OnlySamplesNewerThanTheLastAreReported) {
  Machine machine("dgx-h100");
  machine.Set(0, {"process=10:1024:a:60", "process=11:1024:b:30"});
  NvUlong newest = 0;
  EXPECT_EQ(UseOf(machine, 0, &newest).size(), 2u);
  EXPECT_EQ(UseOf(machine, newest).size(), 0u);
  machine.Advance(kOneSecond);
  EXPECT_EQ(UseOf(machine, newest).size(), 2u);
}

TEST(ProcessUse, AsksForTheRoomOfTheDriversBuffer) {
  Machine machine("dgx-h100");
  machine.Set(0, {"process=10:1024:a:60", "process=11:1024:b:30"});
  NvUint count = 0;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetProcessUtilization", machine.nvml.Device(0),
                         static_cast<NvProcessUse*>(nullptr), &count, NvUlong{0}),
            NV_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 100u);
  NvProcessUse one;
  count = 1;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetProcessUtilization", machine.nvml.Device(0), &one, &count,
                         NvUlong{0}),
            NV_INSUFFICIENT_SIZE);
  NvProcessUse2 samples[2];
  NvProcessesUse uses{NV_STRUCT_VERSION(NvProcessesUse, 1), 2, 0, samples};
  ASSERT_EQ(machine.nvml("nvmlDeviceGetProcessesUtilizationInfo", machine.nvml.Device(0), &uses),
            NV_SUCCESS);
  EXPECT_EQ(uses.processSamplesCount, 2u);
  EXPECT_EQ(samples[1].smUtil, 30u);
  uses.version = 1;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetProcessesUtilizationInfo", machine.nvml.Device(0), &uses),
            NV_ARGUMENT_VERSION_MISMATCH);
}

// A GPM request with room for a few metrics.
struct Request {
  NvUint version = 1, count = 0;
  NvGpmSample first = nullptr, second = nullptr;
  NvGpmMetric metrics[32] = {};
};

struct Gpm {
  explicit Gpm(Machine& a_machine) : machine(a_machine) {
    for (NvGpmSample* sample : {&request.first, &request.second})
      EXPECT_EQ(machine.nvml("nvmlGpmSampleAlloc", sample), NV_SUCCESS);
  }
  ~Gpm() {
    for (NvGpmSample sample : {request.first, request.second})
      EXPECT_EQ(machine.nvml("nvmlGpmSampleFree", sample), NV_SUCCESS);
  }
  NvReturn First(NvUint gpu = 0) {
    return machine.nvml("nvmlGpmSampleGet", machine.nvml.Device(gpu), request.first);
  }
  NvReturn Second(NvUint gpu = 0) {
    return machine.nvml("nvmlGpmSampleGet", machine.nvml.Device(gpu), request.second);
  }
  NvReturn Get(const std::vector<NvUint>& ids) {
    request.count = static_cast<NvUint>(ids.size());
    for (std::size_t i = 0; i < ids.size(); i++) request.metrics[i] = {.metricId = ids[i]};
    return machine.nvml("nvmlGpmMetricsGet", reinterpret_cast<NvGpmMetrics*>(&request));
  }
  std::vector<double> Values(const std::vector<NvUint>& ids) {
    EXPECT_EQ(Get(ids), NV_SUCCESS);
    std::vector<double> values;
    for (std::size_t i = 0; i < ids.size(); i++) {
      EXPECT_EQ(request.metrics[i].nvmlReturn, NV_SUCCESS) << ids[i];
      values.push_back(request.metrics[i].value);
    }
    return values;
  }

  Machine& machine;
  Request request;
};

TEST(Gpm, ReportsWhatHappenedBetweenTwoSamples) {
  Machine machine("dgx-h100");
  machine.Set(0, {"utilisation=80", "gpm-tensor=37.5", "decoder=20", "pcie-tx=100Mi",
                  "pcie-rx=50Mi", "nvlink-tx=18Gi", "nvlink-rx=9Gi"});
  Gpm gpm(machine);
  machine.Advance(7 * kOneSecond);  // what happened before the first sample does not count
  ASSERT_EQ(gpm.First(), NV_SUCCESS);
  machine.Advance(2 * kOneSecond);
  ASSERT_EQ(gpm.Second(), NV_SUCCESS);
  EXPECT_THAT(gpm.Values({1, 2, 5, 10, 20, 21, 30, 36, 60, 61, 63}),
              ElementsAre(80, 80, 37.5, 40, 100, 50, 20, 20, 9216, 18432, 1024));
  EXPECT_STREQ(gpm.request.metrics[4].metricInfo.unit, "MiB/s");
}

TEST(Gpm, IsAMeanWhereUseChangedMeanwhile) {
  Machine machine("dgx-h100");
  machine.Set(0, {"utilisation=100"});
  Gpm gpm(machine);
  ASSERT_EQ(gpm.First(), NV_SUCCESS);
  machine.Advance(kOneSecond);
  machine.Set(0, {"utilisation=0"});
  machine.Advance(3 * kOneSecond);
  ASSERT_EQ(gpm.Second(), NV_SUCCESS);
  EXPECT_THAT(gpm.Values({1}), ElementsAre(25));
}

TEST(Gpm, RefusesWhatItCannotCompare) {
  Machine machine("dgx-h100");
  Gpm gpm(machine);
  EXPECT_EQ(gpm.Get({1}), NV_INVALID_ARGUMENT) << "samples that were never taken";
  ASSERT_EQ(gpm.First(0), NV_SUCCESS);
  ASSERT_EQ(gpm.Second(1), NV_SUCCESS);
  EXPECT_EQ(gpm.Get({1}), NV_INVALID_ARGUMENT) << "two GPUs";
  ASSERT_EQ(gpm.Second(0), NV_SUCCESS);
  ASSERT_EQ(gpm.Get({1, 37, 98, 0}), NV_SUCCESS);
  EXPECT_TRUE(std::isnan(gpm.request.metrics[0].value)) << "of one moment";
  EXPECT_EQ(gpm.request.metrics[1].nvmlReturn, NV_NOT_SUPPORTED) << "an eighth decoder";
  EXPECT_EQ(gpm.request.metrics[2].nvmlReturn, NV_INVALID_ARGUMENT) << "a metric of later drivers";
  EXPECT_EQ(gpm.request.metrics[3].nvmlReturn, NV_INVALID_ARGUMENT);
  gpm.request.version = 2;
  EXPECT_EQ(gpm.Get({1}), NV_ARGUMENT_VERSION_MISMATCH);
}

TEST(Gpm, IsOfHopperAndNewer) {
  Machine a100("dgx-a100"), h100("dgx-h100"), b200("dgx-b200");
  const auto supported = [](Machine& machine) {
    NvGpmSupport support{1, 7};
    EXPECT_EQ(machine.nvml("nvmlGpmQueryDeviceSupport", machine.nvml.Device(0), &support),
              NV_SUCCESS);
    return support.isSupportedDevice;
  };
  EXPECT_EQ(supported(a100), 0u);
  EXPECT_EQ(supported(h100), 1u);
  EXPECT_EQ(supported(b200), 1u);
  EXPECT_EQ(Gpm(a100).First(), NV_NOT_SUPPORTED);
  Gpm gpm(h100);
  const auto of_instance = [&] {
    return h100.nvml("nvmlGpmMigSampleGet", h100.nvml.Device(0), NvUint{1}, gpm.request.first);
  };
  EXPECT_EQ(of_instance(), NV_NOT_SUPPORTED) << "MIG is off";
  h100.Set(0, {"mig=enabled"});
  EXPECT_EQ(of_instance(), NV_INVALID_ARGUMENT) << "there is no such instance";
  Machine old("a100-40gb-x1", "515.105.01");
  EXPECT_FALSE(old.nvml.Has("nvmlGpmSampleGet"));
}

TEST(Faults, NonsenseIsAnsweredWithSuccessUntilHealed) {
  Machine machine("dgx-h100");
  machine.Set(0, {"process=9:10:a:50"});
  const NvDevice device = machine.nvml.Device(0);
  ASSERT_TRUE(machine.control.Nonsense(0, kSimReadTemperature, 255).ok());
  ASSERT_TRUE(machine.control.Nonsense(0, kSimReadPower, UINT32_MAX).ok());
  ASSERT_TRUE(machine.control.Nonsense(0, kSimReadMemoryUsed, 1ull << 50).ok());
  ASSERT_TRUE(machine.control.Nonsense(0, kSimReadProcessUse, UINT32_MAX).ok());
  NvUint number = 0;
  EXPECT_EQ(machine.nvml("nvmlDeviceGetTemperature", device, NvUint{0}, &number), NV_SUCCESS);
  EXPECT_EQ(number, 255u);
  EXPECT_EQ(machine.nvml("nvmlDeviceGetPowerUsage", device, &number), NV_SUCCESS);
  EXPECT_EQ(number, UINT32_MAX);
  EXPECT_EQ(machine.Count(0, NV_FI_POWER_INSTANT), UINT32_MAX);
  NvMemory memory{};
  EXPECT_EQ(machine.nvml("nvmlDeviceGetMemoryInfo", device, &memory), NV_SUCCESS);
  EXPECT_GT(memory.used, memory.total);
  EXPECT_EQ(UseOf(machine)[0].sm, UINT32_MAX);
  ASSERT_TRUE(machine.control.HealGpu(0).ok());
  EXPECT_EQ(machine.nvml("nvmlDeviceGetTemperature", device, NvUint{0}, &number), NV_SUCCESS);
  EXPECT_EQ(number, 29u);
  EXPECT_EQ(UseOf(machine)[0].sm, 50u);
}

TEST(Faults, AFieldCanFailChangeItsTypeOrSayAnything) {
  Machine machine("dgx-h100");
  ASSERT_TRUE(machine.control
                  .FaultField(0, NV_FI_TOTAL_ENERGY,
                              {.value = 42, .status = {}, .type = NV_VALUE_DOUBLE}, 1)
                  .ok());
  ASSERT_TRUE(
      machine.control
          .FaultField(-1, NV_FI_MEMORY_TEMP, {.value = {}, .status = NV_UNKNOWN, .type = {}}, 0)
          .ok());
  const NvFieldValue energy = machine.Field(0, NV_FI_TOTAL_ENERGY);
  EXPECT_EQ(energy.valueType, NV_VALUE_DOUBLE);
  EXPECT_EQ(energy.value.ullVal, 42u);
  EXPECT_EQ(machine.Field(0, NV_FI_TOTAL_ENERGY).valueType, NV_VALUE_ULONGLONG) << "it struck once";
  EXPECT_EQ(machine.Field(5, NV_FI_MEMORY_TEMP).nvmlReturn, NV_UNKNOWN);
  EXPECT_EQ(machine.Field(5, NV_FI_POWER_INSTANT).nvmlReturn, NV_SUCCESS) << "others go on";
  ASSERT_TRUE(machine.control.HealCalls().ok());
  EXPECT_EQ(machine.Field(5, NV_FI_MEMORY_TEMP).nvmlReturn, NV_SUCCESS);
}

TEST(Faults, JunkFillsTheBufferOfProcessUse) {
  Machine machine("dgx-h100");
  machine.Set(0, {"process=9:10:a:50"});
  ASSERT_TRUE(machine.control.JunkProcessSamples(0).ok());
  const std::vector<Use> uses = UseOf(machine);
  ASSERT_EQ(uses.size(), 100u);
  EXPECT_EQ(uses[0], (Use{9, 50, 25, 0, 0}));
  EXPECT_GT(uses[1].sm, 100u);
}

TEST(Faults, ANewlyLoadedDriverBeginsItsCountersAgain) {
  Machine machine("dgx-h100");
  machine.Set(0, {"power=100", "nvlink-replay=0:3"});
  machine.Advance(10 * kOneSecond);
  ASSERT_TRUE(machine.control.UnloadDriver().ok());
  ASSERT_TRUE(machine.control.LoadDriver("").ok());
  EXPECT_EQ(machine.nvml("nvmlShutdown"), NV_SUCCESS);
  ASSERT_EQ(machine.nvml("nvmlInit_v2"), NV_SUCCESS);
  EXPECT_EQ(machine.Count(0, NV_FI_TOTAL_ENERGY), 0u);
  EXPECT_EQ(machine.Count(0, NV_FI_NVLINK_REPLAY_TOTAL), 0u);
}

TEST(Settings, RefuseWhatTheModelLacksAndWhatMakesNoSense) {
  Machine machine("mixed");
  const std::map<std::string, std::string> refused = {
      {"memory-temperature=50", "has no memory-temperature"},
      {"nvlink-tx=1Gi", "has no NVLink"},
      {"nvlink-replay=0:1", "has no NVLink 0"},
      {"nvlink-tx=9Ti", "has no NVLink"},
      {"gpm-sm=101", "expected a percentage"},
      {"gpm-sm=", "expected a percentage"},
      {"pcie-tx=fast", "expected a whole number"},
      {"pcie-tx=9Ti", "at most 8Ti"},
      {"clock-events=boredom", "expected one or more of none, idle"},
      {"process=5:10:a:C:101", "its utilization is in percent"},
      {"process=5:10:a:1/2/3/4/5", "its utilization is SM"},
      {"process=5:10:a:X", "the type is C"},
      {"end-process=5", "no such process"},
      {"counters=5", "counters=0"},
      {"pcie-errors=bad:1", "with a kind of"}};
  for (const auto& [setting, why] : refused)
    EXPECT_THAT(machine.control.Set({2}, {setting}).error().message(), ::testing::HasSubstr(why))
        << setting;
}

}  // namespace
}  // namespace penstock::sim
