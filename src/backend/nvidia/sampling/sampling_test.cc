// Tests samples through a real dlopen of the simulated driver library, whose counters' clock is
// stopped unless a test advances it.
#include "backend/nvidia/sampling/sampling.h"

#include <algorithm>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/dialect/quantities.h"
#include "backend/nvidia/testing/simulated_machine.h"
#include "base/core/clock.h"
#include "base/core/testing/fake_clock.h"

namespace penstock::backend::nvidia {
namespace {

using device::QuantityId;
using device::Sample;
using device::SampleRequest;
using std::chrono::milliseconds;
using testing::IsEmpty;

QuantityId Id(std::string_view key) {
  const auto id = FindQuantity(key);
  EXPECT_TRUE(id.has_value()) << key;
  return id.value_or(0);
}

SampleRequest All() {
  SampleRequest request;
  for (std::size_t id = 0; id < TheQuantities().size(); ++id)
    request.quantities.push_back(static_cast<QuantityId>(id));
  return request;
}

std::optional<double> ValueOf(const Sample& sample, std::string_view key, int link = -1) {
  for (const device::SampleValue& value : sample.values)
    if (value.quantity == Id(key) && value.link == link) return device::ToDouble(value.number);
  return std::nullopt;
}

bool Lacks(const Sample& sample, std::string_view key) {
  return std::find(sample.unsupported.begin(), sample.unsupported.end(), Id(key)) !=
         sample.unsupported.end();
}

/// A machine whose driver is open and whose time advances only on request.
class Sampled {
 public:
  explicit Sampled(const std::string& name, const std::string& driver = "")
      : machine(name, driver) {
    machine.Sim({"clock", "stop"});
    auto loaded = Nvml::Load(machine.paths());
    EXPECT_TRUE(loaded.ok()) << loaded.error().ToString();
    nvml.emplace(*std::move(loaded));
    EXPECT_EQ((*nvml)->init(), abi::kSuccess);
    sampling.emplace(nvml->functions(), clock);
  }
  ~Sampled() {
    sampling.reset();
    (*nvml)->shutdown();
  }

  base::Result<Sample> Try(unsigned index, const SampleRequest& request) {
    abi::Device device = nullptr;
    EXPECT_EQ((*nvml)->handle_by_index(index, &device), abi::kSuccess);
    return sampling->Take(device, std::to_string(index), request);
  }
  Sample Take(unsigned index, const SampleRequest& request) {
    auto sample = Try(index, request);
    EXPECT_TRUE(sample.ok()) << sample.error().ToString();
    return sample.ok() ? *std::move(sample) : Sample{};
  }
  Sample Take(std::initializer_list<std::string_view> keys) {
    SampleRequest request;
    for (const std::string_view key : keys) request.quantities.push_back(Id(key));
    return Take(0, request);
  }

  void Pass(milliseconds time) {
    machine.Sim({"clock", "advance", std::to_string(time.count()) + "ms"});
    clock.Advance(time);
  }

  const SimulatedMachine machine;
  base::FakeClock clock;
  std::optional<Nvml> nvml;
  std::optional<Sampling> sampling;
};

TEST(Sampling, GivesWhatIsAskedForAndNothingElse) {
  Sampled gpu("dgx-a100");
  gpu.machine.Sim({"set", "0", "temperature=61", "power=321", "memory-used=1024", "sm-clock=1215"});
  const Sample sample = gpu.Take({"temperature.gpu", "power", "memory.used"});
  EXPECT_EQ(ValueOf(sample, "temperature.gpu"), 61);
  EXPECT_EQ(ValueOf(sample, "power"), 321000);
  EXPECT_EQ(ValueOf(sample, "memory.used"), 1024.0 * 1048576);
  EXPECT_EQ(sample.values.size(), 3u);
  EXPECT_THAT(sample.unsupported, IsEmpty());
  EXPECT_THAT(gpu.Take(0, {}).values, IsEmpty());
}

// Each quantity is requested by some call: it has a value, or is reported as missing, or needs
// another sample.
TEST(Sampling, KnowsEachQuantityOfEachMachine) {
  for (const std::string name : {"dgx-a100", "dgx-h100", "dgx-b200", "t4-x1", "vgpu-t4", "dgx-2"}) {
    Sampled gpu(name);
    Sample sample;
    for (int round = 0; round < 4; ++round) {
      sample = gpu.Take(0, All());
      gpu.Pass(milliseconds(1000));
    }
    for (std::size_t id = 0; id < TheQuantities().size(); ++id) {
      const auto quantity = static_cast<QuantityId>(id);
      const bool valued = std::any_of(sample.values.begin(), sample.values.end(),
                                      [&](const auto& v) { return v.quantity == quantity; });
      const bool missing =
          std::count(sample.unsupported.begin(), sample.unsupported.end(), quantity) == 1;
      const std::string_view key = TheQuantities()[id].key;
      // Quantities of a GPU that has not joined a fabric are not missing permanently.
      const bool waits = key.starts_with("fabric.");
      EXPECT_TRUE(valued != missing || waits)
          << name << ": " << key << (valued ? " has a value and is missing" : " is neither");
    }
  }
}

TEST(Sampling, GivesNothingBeyondWhatCanBe) {
  Sampled gpu("dgx-h100");
  gpu.machine.Sim({"set", "all", "utilisation=100"});
  for (int round = 0; round < 3; ++round) {
    for (const device::SampleValue& value : gpu.Take(0, All()).values) {
      const device::Quantity& quantity = TheQuantities()[value.quantity];
      EXPECT_LE(device::ToDouble(value.number), quantity.most) << quantity.key;
      EXPECT_EQ(value.link >= 0, quantity.per_link) << quantity.key;
    }
    gpu.Pass(milliseconds(1000));
  }
}

TEST(Sampling, AsksNoMoreForWhatAGpuNeverHas) {
  Sampled gpu("dgx-a100");
  EXPECT_TRUE(Lacks(gpu.Take({"active.sm", "fan", "power"}), "active.sm"));
  // A fault that affects any call of these would show.
  for (const char* call : {"nvmlGpmQueryDeviceSupport", "nvmlDeviceGetFanSpeed"})
    gpu.machine.Sim({"fault", "0", "error", call, "15"});
  const Sample sample = gpu.Take({"active.sm", "fan", "power"});
  EXPECT_TRUE(Lacks(sample, "active.sm"));
  EXPECT_TRUE(Lacks(sample, "fan"));
  EXPECT_TRUE(ValueOf(sample, "power").has_value());
}

TEST(Sampling, ForgetsWhatADeviceNeverHadWhenItIsAskedTo) {
  Sampled gpu("dgx-a100");
  gpu.machine.Sim({"set", "0", "mig=enabled", "utilisation=50"});
  EXPECT_TRUE(Lacks(gpu.Take({"utilization.gpu"}), "utilization.gpu"));
  gpu.machine.Sim({"set", "0", "mig=disabled"});
  EXPECT_TRUE(Lacks(gpu.Take({"utilization.gpu"}), "utilization.gpu"));
  gpu.sampling->Forget("0");
  EXPECT_EQ(ValueOf(gpu.Take({"utilization.gpu"}), "utilization.gpu"), 50);
}

TEST(Sampling, PassesOverWhatFailsOnce) {
  Sampled gpu("dgx-a100");
  gpu.machine.Sim({"fault", "0", "error", "nvmlDeviceGetPowerUsage", "999", "--count", "1"});
  const Sample first = gpu.Take({"power", "temperature.gpu"});
  EXPECT_FALSE(ValueOf(first, "power").has_value());
  EXPECT_FALSE(Lacks(first, "power"));
  EXPECT_TRUE(ValueOf(first, "temperature.gpu").has_value());
  EXPECT_TRUE(ValueOf(gpu.Take({"power"}), "power").has_value());
}

TEST(Sampling, PassesOverAFieldThatFailsOnce) {
  Sampled gpu("dgx-a100");
  gpu.machine.Sim({"fault", "0", "field", "82", "status=999", "--count", "1"});
  const Sample first = gpu.Take({"temperature.memory", "energy"});
  EXPECT_FALSE(ValueOf(first, "temperature.memory").has_value());
  EXPECT_TRUE(ValueOf(first, "energy").has_value());
  EXPECT_TRUE(ValueOf(gpu.Take({"temperature.memory"}), "temperature.memory").has_value());
}

TEST(Sampling, ReadsAFieldOfWhateverTypeTheDriverGivesIt) {
  Sampled gpu("dgx-a100");
  for (const char* type : {"uint", "ulong", "ulonglong", "longlong", "int"}) {
    gpu.machine.Sim({"fault", "0", "field", "82", "value=47", std::string("type=") + type});
    EXPECT_EQ(ValueOf(gpu.Take({"temperature.memory"}), "temperature.memory"), 47) << type;
    gpu.machine.Sim({"heal", "0"});
  }
  gpu.machine.Sim(
      {"fault", "0", "field", "82", "value=4626744929681408000", "type=double"});  // 21.5
  EXPECT_EQ(ValueOf(gpu.Take({"temperature.memory"}), "temperature.memory"), 21.5);
}

TEST(Sampling, SaysThatAGpuIsLost) {
  Sampled gpu("dgx-a100");
  ASSERT_TRUE(ValueOf(gpu.Take({"power"}), "power").has_value());
  gpu.machine.Sim({"fault", "0", "lost", "--where", "getter"});
  const auto sample = gpu.Try(0, All());
  ASSERT_FALSE(sample.ok());
  EXPECT_EQ(sample.error().code(), Code::kDataLoss);
  EXPECT_TRUE(gpu.Try(1, All()).ok()) << "another process is not";
}

TEST(Sampling, SaysThatTheDriverWentAway) {
  Sampled gpu("dgx-a100");
  abi::Device device = nullptr;
  ASSERT_EQ((*gpu.nvml)->handle_by_index(0, &device), abi::kSuccess);
  (*gpu.nvml)->shutdown();
  const auto sample = gpu.sampling->Take(device, "0", All());
  ASSERT_FALSE(sample.ok());
  EXPECT_EQ(sample.error().code(), Code::kUnavailable);
  (*gpu.nvml)->init();
}

TEST(Sampling, CountsEnergyAndTimeUnderALimit) {
  Sampled gpu("dgx-a100");
  gpu.machine.Sim({"set", "0", "power=300", "energy=1000", "limited-by-heat=500",
                   "clock-events=power-cap,sw-thermal"});
  gpu.Pass(milliseconds(10000));
  const Sample sample = gpu.Take(
      {"energy", "clocks.reasons", "clocks.reason.power", "clocks.reason.idle", "limited.power"});
  EXPECT_EQ(ValueOf(sample, "energy"), 1000 + 300 * 1000 * 10);
  EXPECT_EQ(ValueOf(sample, "clocks.reasons"), 0x24);
  EXPECT_EQ(ValueOf(sample, "clocks.reason.power"), 1);
  EXPECT_EQ(ValueOf(sample, "clocks.reason.idle"), 0);
  EXPECT_EQ(ValueOf(sample, "limited.power"), 1e10);
}

TEST(Sampling, ReportsNoReasonThatTheDriverDoesNotKnow) {
  Sampled gpu("dgx-a100", "550.54.15");
  const Sample sample = gpu.Take({"clocks.reason.power_brake", "clocks.reason.reliability"});
  EXPECT_EQ(ValueOf(sample, "clocks.reason.power_brake"), 0);
  EXPECT_TRUE(Lacks(sample, "clocks.reason.reliability"));
}

TEST(Sampling, GivesLimitsAsMarginsWhereTheDriverDoes) {
  Sampled gpu("dgx-h100");
  const Sample sample =
      gpu.Take({"temperature.limit.shutdown", "temperature.limit_margin.shutdown"});
  EXPECT_TRUE(Lacks(sample, "temperature.limit.shutdown"));
  EXPECT_LT(ValueOf(sample, "temperature.limit_margin.shutdown").value_or(1), 0);
}

TEST(Sampling, MeasuresWithGpmBetweenTwoSamples) {
  Sampled gpu("dgx-h100");
  gpu.machine.Sim({"set", "0", "gpm-sm=62.5", "gpm-tensor=37.5", "pcie-tx=1Gi"});
  const auto take = [&] { return gpu.Take({"active.sm", "active.tensor", "pcie.tx_rate"}); };
  EXPECT_THAT(take().values, IsEmpty()) << "the first sample";
  gpu.Pass(milliseconds(50));
  EXPECT_THAT(take().values, IsEmpty()) << "too soon";
  gpu.Pass(milliseconds(950));
  const Sample sample = take();
  EXPECT_NEAR(ValueOf(sample, "active.sm").value_or(-1), 62.5, 0.01);
  EXPECT_NEAR(ValueOf(sample, "active.tensor").value_or(-1), 37.5, 0.01);
  EXPECT_NEAR(ValueOf(sample, "pcie.tx_rate").value_or(-1), 1073741824, 1048576);
  EXPECT_THAT(sample.unsupported, IsEmpty());
}

TEST(Sampling, LetsAShortWindowGrow) {
  Sampled gpu("dgx-h100");
  gpu.machine.Sim({"set", "0", "gpm-sm=0"});
  (void)gpu.Take({"active.sm"});
  gpu.Pass(milliseconds(500));
  EXPECT_NEAR(ValueOf(gpu.Take({"active.sm"}), "active.sm").value_or(-1), 0, 0.01);
  gpu.machine.Sim({"set", "0", "gpm-sm=100"});
  gpu.Pass(milliseconds(500));
  EXPECT_NEAR(ValueOf(gpu.Take({"active.sm"}), "active.sm").value_or(-1), 50, 0.01)
      << "averaged over both halves of the second";
  gpu.Pass(milliseconds(1000));
  EXPECT_NEAR(ValueOf(gpu.Take({"active.sm"}), "active.sm").value_or(-1), 100, 0.01);
}

TEST(Sampling, BeginsAgainWithGpmAfterALongPauseAndAfterAnError) {
  Sampled gpu("dgx-h100");
  gpu.machine.Sim({"set", "0", "gpm-sm=40"});
  (void)gpu.Take({"active.sm"});
  gpu.Pass(std::chrono::minutes(11));
  EXPECT_THAT(gpu.Take({"active.sm"}).values, IsEmpty());
  gpu.Pass(milliseconds(1000));
  EXPECT_NEAR(ValueOf(gpu.Take({"active.sm"}), "active.sm").value_or(-1), 40, 0.01);
  gpu.machine.Sim({"fault", "0", "error", "nvmlGpmSampleGet", "999", "--count", "1"});
  gpu.Pass(milliseconds(1000));
  EXPECT_THAT(gpu.Take({"active.sm", "power"}).values, testing::SizeIs(1))
      << "unknown values are never 0";
  gpu.Pass(milliseconds(1000));
  EXPECT_THAT(gpu.Take({"active.sm"}).values, IsEmpty()) << "the window was interrupted";
  gpu.Pass(milliseconds(1000));
  EXPECT_NEAR(ValueOf(gpu.Take({"active.sm"}), "active.sm").value_or(-1), 40, 0.01);
}

TEST(Sampling, DecidesForEachGpuWhetherItHasGpm) {
  Sampled gpu("mixed");
  SampleRequest request{{Id("active.sm"), Id("power")}, false};
  bool some = false;
  for (unsigned index = 0; index < 4; ++index) {
    abi::Device device = nullptr;
    if ((*gpu.nvml)->handle_by_index(index, &device) != abi::kSuccess) break;
    const Sample sample = gpu.Take(index, request);
    some = some || Lacks(sample, "active.sm");
    EXPECT_TRUE(ValueOf(sample, "power").has_value()) << index;
  }
  EXPECT_TRUE(some);
}

TEST(Sampling, GivesPcieTrafficBeforeHopperFromTheCounters) {
  Sampled gpu("dgx-a100", "570.133.20");
  gpu.machine.Sim({"set", "0", "pcie-tx=3Gi", "pcie-rx-bytes=123456789012"});
  const auto take = [&] {
    return gpu.Take({"pcie.tx_rate", "pcie.rx", "pcie.replays", "pcie.width"});
  };
  const Sample first = take();
  EXPECT_FALSE(ValueOf(first, "pcie.tx_rate").has_value());
  EXPECT_EQ(ValueOf(first, "pcie.rx"), 123456789012);
  EXPECT_EQ(ValueOf(first, "pcie.width"), 16);
  gpu.Pass(milliseconds(2000));
  EXPECT_EQ(ValueOf(take(), "pcie.tx_rate"), 3.0 * 1073741824);
}

TEST(Sampling, TakesNoRateFromACounterOf32Bits) {
  Sampled gpu("dgx-a100", "570.133.20");
  gpu.machine.Sim({"fault", "0", "field", "197", "type=uint"});
  for (int round = 0; round < 3; ++round) {
    const Sample sample = gpu.Take({"pcie.tx"});
    EXPECT_FALSE(ValueOf(sample, "pcie.tx").has_value());
    EXPECT_EQ(Lacks(sample, "pcie.tx"), round > 0);
    gpu.Pass(milliseconds(1000));
  }
}

TEST(Sampling, CountsWhatGoesOverNvlink) {
  for (const std::string name : {"dgx-a100", "dgx-h100", "dgx-b200"}) {
    Sampled gpu(name);
    gpu.machine.Sim({"set", "0", "nvlink-tx=6Gi", "nvlink-rx=12Gi"});
    const auto take = [&] {
      return gpu.Take({"nvlink.tx", "nvlink.rx", "nvlink.rate", "nvlink.tx_rate", "nvlink.link.tx",
                       "nvlink.link.rate", "nvlink.link.state"});
    };
    for (int round = 0; round < 4; ++round) {
      (void)take();
      gpu.Pass(milliseconds(1000));
    }
    const Sample before = take();
    gpu.Pass(milliseconds(1000));
    const Sample after = take();
    EXPECT_NEAR(ValueOf(after, "nvlink.tx").value_or(0) - ValueOf(before, "nvlink.tx").value_or(0),
                6 * 1048576, 32)
        << name;
    EXPECT_NEAR(ValueOf(after, "nvlink.rate").value_or(-1), 18.0 * 1073741824, 1e6) << name;
    EXPECT_NEAR(ValueOf(after, "nvlink.tx_rate").value_or(-1), 6.0 * 1073741824, 1e7) << name;
    const double links = static_cast<double>(
        std::count_if(after.values.begin(), after.values.end(),
                      [](const auto& v) { return v.quantity == Id("nvlink.link.state"); }));
    EXPECT_GT(links, 0) << name;
    EXPECT_EQ(ValueOf(after, "nvlink.link.state", 0), 1) << name;
    EXPECT_NEAR(ValueOf(after, "nvlink.link.rate", 0).value_or(-1), 18.0 * 1073741824 / links, 1e6)
        << name;
    EXPECT_TRUE(ValueOf(after, "nvlink.link.tx", 0).has_value()) << name;
  }
}

TEST(Sampling, CountsErrorsOfLinks) {
  Sampled gpu("dgx-a100");
  gpu.machine.Sim({"set", "0", "nvlink-replay=3:17"});
  const Sample sample =
      gpu.Take({"nvlink.errors.replay", "nvlink.link.errors.replay", "nvlink.links"});
  EXPECT_EQ(ValueOf(sample, "nvlink.errors.replay"), 17);
  EXPECT_EQ(ValueOf(sample, "nvlink.link.errors.replay", 3), 17);
  EXPECT_EQ(ValueOf(sample, "nvlink.link.errors.replay", 4), 0);
  EXPECT_EQ(ValueOf(sample, "nvlink.links"), 12);
}

TEST(Sampling, HasNothingOfLinksOfAGpuWithoutThem) {
  Sampled gpu("t4-x1");
  const Sample sample =
      gpu.Take({"nvlink.tx", "nvlink.rate", "nvlink.link.tx", "nvlink.link.rate",
                "nvlink.link.state", "nvlink.link.errors.replay", "nvlink.link.errors.symbol"});
  EXPECT_THAT(sample.values, IsEmpty());
  EXPECT_EQ(sample.unsupported.size(), 7u);
}

TEST(Sampling, SeesErrorsOfTheMemory) {
  Sampled gpu("dgx-a100");
  gpu.machine.Sim(
      {"set", "0", "remapped-correctable=3", "remapped-uncorrectable=2", "pcie-replays=5"});
  gpu.machine.Sim({"fault", "0", "ecc", "--count", "4"});
  const Sample sample =
      gpu.Take({"remapped.corrected", "remapped.uncorrected", "remapped.banks.max",
                "ecc.volatile.uncorrected", "ecc.volatile.corrected", "ecc.mode", "pcie.replays",
                "retired.corrected"});
  EXPECT_EQ(ValueOf(sample, "remapped.corrected"), 3);
  EXPECT_EQ(ValueOf(sample, "remapped.uncorrected"), 2);
  EXPECT_EQ(ValueOf(sample, "ecc.volatile.uncorrected"), 4);
  EXPECT_EQ(ValueOf(sample, "ecc.volatile.corrected"), 0);
  EXPECT_EQ(ValueOf(sample, "ecc.mode"), 1);
  EXPECT_EQ(ValueOf(sample, "pcie.replays"), 5);
  EXPECT_GT(ValueOf(sample, "remapped.banks.max").value_or(0), 0);
  EXPECT_TRUE(Lacks(sample, "retired.corrected"));
}

TEST(Sampling, ReportsTheFabric) {
  Sampled gpu("dgx-h100", "580.65.06");
  gpu.machine.Sim({"set", "0", "fabric-state=3", "fabric-status=0", "fabric-summary=1"});
  const auto take = [&] { return gpu.Take({"fabric.state", "fabric.status", "fabric.health"}); };
  const Sample joined = take();
  EXPECT_EQ(ValueOf(joined, "fabric.state"), 3);
  EXPECT_EQ(ValueOf(joined, "fabric.status"), 0);
  EXPECT_EQ(ValueOf(joined, "fabric.health"), 1);
  gpu.machine.Sim({"set", "0", "fabric-status=999"});
  EXPECT_EQ(ValueOf(take(), "fabric.state"), 4) << "it completed with an error";
  gpu.machine.Sim({"set", "0", "fabric-state=2"});
  const Sample joining = take();
  EXPECT_EQ(ValueOf(joining, "fabric.state"), 2);
  EXPECT_FALSE(ValueOf(joining, "fabric.status").has_value());
}

TEST(Sampling, ReportsWhatProcessesUse) {
  Sampled gpu("dgx-a100");
  gpu.machine.Sim({"set", "0", "process=1234:30000:python:60/30", "process=1235:10000:python:20"});
  const SampleRequest request{{}, true};
  (void)gpu.Take(0, request);
  gpu.Pass(milliseconds(2000));
  const Sample sample = gpu.Take(0, request);
  ASSERT_EQ(sample.processes.size(), 2u);
  EXPECT_EQ(sample.processes[0].pid, 1234);
  EXPECT_EQ(sample.processes[0].memory, base::Mebibytes(30000));
  EXPECT_EQ(sample.processes[0].compute, 60);
  EXPECT_EQ(sample.processes[0].memory_copy, 30);
  EXPECT_EQ(sample.processes[1].compute, 20);
  EXPECT_THAT(gpu.Take({"power"}).processes, IsEmpty()) << "processes were not requested";
}

TEST(Sampling, LeavesJunkAmongTheProcessesOut) {
  Sampled gpu("dgx-a100");
  gpu.machine.Sim({"set", "0", "process=1234:30000:python:60"});
  gpu.machine.Sim({"fault", "0", "junk-samples"});
  const SampleRequest request{{}, true};
  const Sample sample = gpu.Take(0, request);
  ASSERT_EQ(sample.processes.size(), 1u) << "the first sample lists only running processes";
  EXPECT_EQ(sample.processes[0].pid, 1234);
  EXPECT_LE(sample.processes[0].compute.value_or(0), 100);
}

TEST(Sampling, KeepsMemoryOfProcessesWhereTheirUseIsNotReported) {
  Sampled gpu("dgx-a100");
  gpu.machine.Sim({"set", "0", "process=1234:30000:python:60"});
  gpu.machine.Sim({"fault", "0", "error", "nvmlDeviceGetProcessUtilization", "4"});
  const Sample sample = gpu.Take(0, {{}, true});
  ASSERT_EQ(sample.processes.size(), 1u);
  EXPECT_EQ(sample.processes[0].memory, base::Mebibytes(30000));
  EXPECT_FALSE(sample.processes[0].compute.has_value());
}

TEST(Sampling, LivesWithAnOldDriver) {
  Sampled gpu("a100-40gb-x1", "450.80.02");
  gpu.machine.Sim({"set", "0", "memory-used=2048"});
  Sample sample;
  for (int round = 0; round < 3; ++round) {
    sample = gpu.Take(0, All());
    gpu.Pass(milliseconds(1000));
  }
  EXPECT_GE(ValueOf(sample, "memory.used").value_or(0), 2048.0 * 1048576)
      << "includes reserved memory";
  EXPECT_TRUE(Lacks(sample, "memory.reserved"));
  EXPECT_TRUE(Lacks(sample, "utilization.jpeg"));
  EXPECT_TRUE(Lacks(sample, "recovery_action"));
  EXPECT_TRUE(ValueOf(sample, "clocks.reasons").has_value()) << "under its older name";
  EXPECT_TRUE(ValueOf(sample, "energy").has_value());
}

// Field 251 of driver 575 is another field in 570, which does not refuse it; 580.95 calls it 269,
// which was another field before.
TEST(Sampling, AsksForRenumberedFieldsByTheDriversOwnNumber) {
  for (const auto& [driver, has] : {std::pair{"570.133.20", false},
                                    {"575.57.08", true},
                                    {"580.65.06", true},
                                    {"580.95.05", true}}) {
    Sampled gpu("dgx-h100", driver);
    gpu.machine.Sim({"set", "0", "limited-by-hw-heat=77"});
    const Sample sample = gpu.Take({"limited.hardware_thermal"});
    EXPECT_EQ(Lacks(sample, "limited.hardware_thermal"), !has) << driver;
    EXPECT_EQ(ValueOf(sample, "limited.hardware_thermal"), has ? std::optional(77.0) : std::nullopt)
        << driver;
  }
}

}  // namespace
}  // namespace penstock::backend::nvidia
