// Tests samples of MIG devices and GPU instances, on the simulated driver library, whose counters'
// clock advances only on request.
#include <algorithm>
#include <optional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/backend.h"
#include "backend/nvidia/dialect/quantities.h"
#include "backend/nvidia/sampling/sampling.h"
#include "backend/nvidia/testing/simulated_machine.h"
#include "base/core/testing/fake_clock.h"

namespace penstock::backend::nvidia {
namespace {

using device::QuantityId;
using device::Sample;
using device::SampleRequest;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

SampleRequest Everything() {
  SampleRequest request{.quantities = {}, .processes = true};
  for (std::size_t id = 0; id < TheQuantities().size(); ++id)
    request.quantities.push_back(static_cast<QuantityId>(id));
  return request;
}

std::optional<double> MigValue(const Sample& sample, std::string_view key) {
  for (const device::SampleValue& value : sample.values)
    if (value.quantity == FindQuantity(key)) return device::ToDouble(value.number);
  return std::nullopt;
}

std::vector<std::int32_t> PidsOf(const Sample& sample) {
  std::vector<std::int32_t> pids;
  for (const device::ProcessSample& process : sample.processes) pids.push_back(process.pid);
  return pids;
}

/// GPU 0 with the GPU instances 1 and 2, of which each is a MIG device.
class SamplingMig : public testing::Test {
 protected:
  void Start(const std::string& machine, const std::string& profile) {
    machine_.emplace(machine);
    machine_->Sim({"clock", "stop"});
    machine_->Smi({"-i", "0", "-mig", "1"});
    machine_->Smi({"mig", "-i", "0", "-cgi", profile + "," + profile, "-C"});
    auto loaded = Nvml::Load(machine_->paths());
    ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
    nvml_.emplace(*std::move(loaded));
    ASSERT_EQ((*nvml_)->init(), abi::kSuccess);
    sampling_.emplace(nvml_->functions(), clock_);
    ASSERT_EQ((*nvml_)->handle_by_index(0, &gpu_), abi::kSuccess);
  }
  ~SamplingMig() override {
    sampling_.reset();
    if (nvml_) (*nvml_)->shutdown();
  }

  SampledInstance Instance(unsigned index) {
    SampledInstance instance{.gpu = gpu_};
    unsigned id = 0;
    EXPECT_EQ((*nvml_)->mig_device_by_index(gpu_, index, &instance.device), abi::kSuccess);
    EXPECT_EQ((*nvml_)->gpu_instance_id(instance.device, &id), abi::kSuccess);
    instance.gpu_instance = id;
    return instance;
  }
  base::Result<Sample> Try(const SampledInstance& instance) {
    return sampling_->Take(instance, "MIG-" + std::to_string(*instance.gpu_instance), Everything());
  }
  Sample Take(unsigned index) {
    auto sample = Try(Instance(index));
    EXPECT_TRUE(sample.ok()) << sample.error().ToString();
    return sample.ok() ? *std::move(sample) : Sample{};
  }
  void Pass(milliseconds time) {
    machine_->Sim({"clock", "advance", std::to_string(time.count()) + "ms"});
    clock_.Advance(time);
  }

  std::optional<SimulatedMachine> machine_;
  base::FakeClock clock_;
  std::optional<Nvml> nvml_;
  std::optional<Sampling> sampling_;
  abi::Device gpu_ = nullptr;
};

TEST_F(SamplingMig, AnInstanceHasItsOwnMemoryAndActivity) {
  Start("dgx-h200", "3g.71gb");
  machine_->Sim({"set", "0", "process=7:1024:a:40:gi1/ci0", "process=8:2048:b:20:gi2/ci0"});
  const Sample first = Take(0);
  EXPECT_EQ(MigValue(first, "memory.used"), 1024.0 * 1048576);
  EXPECT_EQ(MigValue(first, "memory.total"), 71424.0 * 1048576);
  EXPECT_EQ(MigValue(first, "active.sm"), std::nullopt) << "that needs two samples";
  EXPECT_THAT(PidsOf(first), ElementsAre(7));
  Take(1);
  Pass(milliseconds(1000));
  const Sample one = Take(0), other = Take(1);
  EXPECT_DOUBLE_EQ(MigValue(one, "active.sm").value_or(-1), 40);
  EXPECT_DOUBLE_EQ(MigValue(other, "active.sm").value_or(-1), 20);
  EXPECT_THAT(PidsOf(other), ElementsAre(8));
}

// The fields that DCGM has for instances, and no others: values of the board are the GPU's.
TEST_F(SamplingMig, AnInstanceHasTheQuantitiesThatDcgmHasOfIt) {
  Start("dgx-h200", "3g.71gb");
  Take(0);
  Pass(milliseconds(1000));
  const Sample sample = Take(0);
  std::set<std::string_view> keys;
  for (const device::SampleValue& value : sample.values)
    keys.insert(TheQuantities()[value.quantity].key);
  EXPECT_THAT(keys, testing::UnorderedElementsAre(
                        "active.dram", "active.fp16", "active.fp32", "active.fp64",
                        "active.graphics", "active.integer", "active.sm", "active.sm_occupancy",
                        "active.tensor", "active.tensor_dfma", "active.tensor_hmma",
                        "active.tensor_imma", "bar1.free", "bar1.total", "bar1.used", "memory.free",
                        "memory.reserved", "memory.total", "memory.used", "memory.used_ratio"));
  EXPECT_EQ(sample.values.size() + sample.unsupported.size(), TheQuantities().size());
}

TEST_F(SamplingMig, BeforeHopperThereIsNoActivity) {
  Start("a100-40gb-x1", "3g.20gb");
  Take(0);
  Pass(milliseconds(1000));
  const Sample sample = Take(0);
  EXPECT_NE(MigValue(sample, "memory.used"), std::nullopt);
  EXPECT_THAT(sample.unsupported, testing::Contains(*FindQuantity("active.sm")));
}

TEST_F(SamplingMig, ADeviceThatSharesItsInstanceHasNoActivityOfItsOwn) {
  Start("dgx-h200", "3g.71gb");
  const auto take = [this] {
    SampledInstance shared = Instance(0);
    shared.gpu_instance.reset();
    const auto sample = sampling_->Take(shared, "MIG-shared", Everything());
    EXPECT_TRUE(sample.ok());
    return sample.ok() ? *sample : Sample{};
  };
  take();
  Pass(milliseconds(1000));
  const Sample sample = take();
  EXPECT_NE(MigValue(sample, "memory.used"), std::nullopt);
  EXPECT_EQ(MigValue(sample, "active.sm"), std::nullopt);
}

TEST_F(SamplingMig, AnInstanceWithoutProcessesOfItsOwnHasNone) {
  Start("dgx-h200", "3g.71gb");
  machine_->Sim({"set", "0", "process=7:1024:a:40:gi1/ci0"});
  SampledInstance instance = Instance(0);
  instance.has_processes = false;
  EXPECT_THAT(Try(instance)->processes, IsEmpty());
}

// nvmlGpmMigSampleGet fails: nothing is reported, never 0, and the next good window is reported.
TEST_F(SamplingMig, AFailedSampleOfActivityIsNoValue) {
  Start("dgx-h200", "3g.71gb");
  machine_->Sim({"set", "0", "process=7:1024:a:40:gi1/ci0"});
  Take(0);
  machine_->Sim({"fault", "0", "error", "nvmlGpmMigSampleGet", "999"});
  Pass(milliseconds(1000));
  const Sample broken = Take(0);
  EXPECT_EQ(MigValue(broken, "active.sm"), std::nullopt);
  EXPECT_NE(MigValue(broken, "memory.used"), std::nullopt);
  machine_->Sim({"heal", "all"});
  for (int i = 0; i < 2; ++i) {
    Pass(milliseconds(1000));
    Take(0);
  }
  Pass(milliseconds(1000));
  EXPECT_DOUBLE_EQ(MigValue(Take(0), "active.sm").value_or(-1), 40);
}

TEST_F(SamplingMig, ALostGpuAndARemovedInstanceAreErrors) {
  Start("dgx-h200", "3g.71gb");
  Take(0);
  SampledInstance instance = Instance(0);
  machine_->Sim({"fault", "0", "lost", "--where", "getter"});
  EXPECT_EQ(Try(instance).error().code(), base::Code::kDataLoss);
  machine_->Sim({"heal", "all"});
  EXPECT_TRUE(Try(instance).ok());
  machine_->Smi({"mig", "-i", "0", "-dci"});
  machine_->Smi({"mig", "-i", "0", "-dgi"});
  EXPECT_EQ(Try(instance).error().code(), base::Code::kNotFound);
  // What the removed one refused is not taken for missing in the next one.
  machine_->Smi({"mig", "-i", "0", "-cgi", "3g.71gb,3g.71gb", "-C"});
  EXPECT_NE(MigValue(Take(0), "memory.used"), std::nullopt);
}

TEST_F(SamplingMig, TheBackendFindsPartsByTheirAddresses) {
  const SimulatedMachine machine("dgx-h200");
  machine.Smi({"-i", "0", "-mig", "1"});
  machine.Smi({"mig", "-i", "0", "-cgi", "3g.71gb,2g.35gb"});
  machine.Smi({"mig", "-i", "0", "-gi", "2", "-cci", "1c.3g.71gb,1c.3g.71gb"});
  machine.Sim({"set", "0", "process=7:1024:a:40:gi2/ci0", "process=9:16:c"});
  const auto backend = MakeBackend(machine.paths());
  ASSERT_TRUE(backend->Open().ok() && backend->List().ok());
  const auto gpu = backend->Describe("0");
  ASSERT_TRUE(gpu.ok());
  ASSERT_THAT(gpu->parts, SizeIs(4)) << "two GPU instances, and two devices on one of them";
  const auto used = [&](const std::string& address) {
    const auto sample = backend->TakeSample(address, Everything());
    EXPECT_TRUE(sample.ok()) << address << ": " << sample.error().ToString();
    return sample.ok() ? MigValue(*sample, "memory.used") : std::nullopt;
  };
  EXPECT_EQ(used("0/2"), 1024.0 * 1048576);
  EXPECT_EQ(used("0/3"), std::nullopt) << "nothing runs on it";
  EXPECT_EQ(used(gpu->parts[2]), 1024.0 * 1048576) << "they share it";
  EXPECT_THAT(PidsOf(*backend->TakeSample(gpu->parts[2], Everything())), ElementsAre(7));
  EXPECT_THAT(PidsOf(*backend->TakeSample("0/2", Everything())), IsEmpty());
  EXPECT_THAT(PidsOf(*backend->TakeSample("0", Everything())), ElementsAre(9))
      << "the others are on its parts";
  for (const char* wrong : {"0/7", "9/2", "MIG-x"}) {
    const auto sample = backend->TakeSample(wrong, Everything());
    EXPECT_TRUE(!sample.ok() || sample->values.empty()) << wrong;
  }
}

}  // namespace
}  // namespace penstock::backend::nvidia
