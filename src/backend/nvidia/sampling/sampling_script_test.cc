// Tests samples of drivers for which there is no simulated machine: tables of functions that answer
// as a test says.
#include <algorithm>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/dialect/quantities.h"
#include "backend/nvidia/sampling/sampling.h"
#include "base/core/testing/fake_clock.h"

namespace penstock::backend::nvidia {
namespace {

using device::Sample;
using std::chrono::milliseconds;
using testing::IsEmpty;

/// The answers of the functions below. It is global because they are C functions.
struct Script {
  abi::Return power = abi::kSuccess;
  unsigned newest_field = 1000;   ///< a call that contains a greater one is refused as a whole
  unsigned newest_metric = 1000;  ///< the same for GPM
  double metric = 50;             ///< value of each metric
  abi::Return metrics = abi::kSuccess;
  int samples = 0;  ///< number of allocated GPM samples
  int field_calls = 0, metric_calls = 0;
  bool links_sum = true;  ///< whether there is a sum over links
  unsigned long long link_count = 0;
  abi::Return links = abi::kSuccess;
} script;

abi::Return Power(abi::Device, unsigned* milliwatts) {
  *milliwatts = 5000;
  return script.power;
}

abi::Return Fields(abi::Device, int count, abi::FieldValue* fields) {
  ++script.field_calls;
  for (int i = 0; i < count; ++i)
    if (fields[i].field > script.newest_field) return abi::kInvalidArgument;
  for (int i = 0; i < count; ++i) {
    abi::FieldValue& field = fields[i];
    field.type = abi::kUnsignedLongLong;
    field.status =
        field.scope == abi::kAllLinks && !script.links_sum ? abi::kNotSupported : script.links;
    field.value.ull = field.field == abi::kFieldLinkSent || field.field == abi::kFieldLinkSent + 1
                          ? script.link_count
                          : 7;
  }
  return abi::kSuccess;
}

abi::Return LinkState(abi::Device, unsigned link, unsigned* active) {
  *active = 1;
  return link < 2 ? abi::kSuccess : abi::kInvalidArgument;
}

abi::Return GpmSupport(abi::Device, abi::GpmSupport* support) {
  support->supported = 1;
  return abi::kSuccess;
}

abi::Return GpmAllocate(abi::GpmSample* sample) {
  ++script.samples;
  *sample = reinterpret_cast<abi::GpmSample>(new int);
  return abi::kSuccess;
}

abi::Return GpmFree(abi::GpmSample sample) {
  --script.samples;
  delete reinterpret_cast<int*>(sample);
  return abi::kSuccess;
}

abi::Return GpmSample(abi::Device, abi::GpmSample) { return abi::kSuccess; }

abi::Return GpmMetrics(abi::GpmMetrics* metrics) {
  ++script.metric_calls;
  for (unsigned i = 0; i < metrics->count; ++i)
    if (metrics->metrics[i].metric > script.newest_metric) return abi::kInvalidArgument;
  for (unsigned i = 0; i < metrics->count; ++i) metrics->metrics[i].value = script.metric;
  return script.metrics;
}

class Scripted : public testing::Test {
 protected:
  Scripted() {
    script = {};
    functions_.power = {"power", Power};
    functions_.field_values = {"fields", Fields};
    functions_.nvlink_state = {"link state", LinkState};
    functions_.gpm_support = {"GPM support", GpmSupport};
    functions_.gpm_allocate = {"GPM allocate", GpmAllocate};
    functions_.gpm_free = {"GPM free", GpmFree};
    functions_.gpm_sample = {"GPM sample", GpmSample};
    functions_.gpm_metrics = {"GPM metrics", GpmMetrics};
  }

  base::Result<Sample> Try(std::initializer_list<std::string_view> keys) {
    device::SampleRequest request;
    for (const std::string_view key : keys) request.quantities.push_back(FindQuantity(key).value());
    return sampling_->Take(nullptr, "0", request);
  }
  Sample Take(std::initializer_list<std::string_view> keys) {
    auto sample = Try(keys);
    EXPECT_TRUE(sample.ok()) << sample.error().ToString();
    return sample.ok() ? *std::move(sample) : Sample{};
  }

  static std::optional<double> ValueOf(const Sample& sample, std::string_view key) {
    for (const device::SampleValue& value : sample.values)
      if (value.quantity == FindQuantity(key)) return device::ToDouble(value.number);
    return std::nullopt;
  }
  static bool Lacks(const Sample& sample, std::string_view key) {
    return std::count(sample.unsupported.begin(), sample.unsupported.end(),
                      FindQuantity(key).value()) == 1;
  }

  Functions functions_{};
  base::FakeClock clock_;
  std::unique_ptr<Sampling> sampling_ = std::make_unique<Sampling>(functions_, clock_);
};

TEST_F(Scripted, ALibraryWithoutAFunctionLacksWhatItWouldGive) {
  const Sample sample = Take({"power", "fan", "clock.sm", "memory.used", "utilization.gpu"});
  EXPECT_EQ(ValueOf(sample, "power"), 5000);
  for (const char* key : {"fan", "clock.sm", "memory.used", "utilization.gpu"})
    EXPECT_TRUE(Lacks(sample, key)) << key;
}

TEST_F(Scripted, OnlyWhatWillNeverBeAnsweredIsMissing) {
  for (const abi::Return never : {abi::kNotSupported, abi::kNoPermission, abi::kFunctionNotFound,
                                  abi::kInvalidArgument, abi::kDeprecated}) {
    script.power = never;
    sampling_->Forget("0");
    EXPECT_TRUE(Lacks(Take({"power"}), "power")) << never;
  }
  for (const abi::Return once : {abi::kTimeout, abi::kInUse, abi::kNotReady, abi::kNoData,
                                 abi::kMemory, abi::kInsufficientResources}) {
    script.power = once;
    sampling_->Forget("0");
    const Sample sample = Take({"power", "energy"});
    EXPECT_FALSE(Lacks(sample, "power")) << once;
    EXPECT_FALSE(ValueOf(sample, "power").has_value()) << once;
    EXPECT_TRUE(ValueOf(sample, "energy").has_value()) << once;
  }
}

TEST_F(Scripted, UnknownErrorsFromAllCallsAreALostDevice) {
  script.power = abi::kUnknown;
  const auto sample = Try({"power"});
  ASSERT_FALSE(sample.ok());
  EXPECT_EQ(sample.error().code(), Code::kDataLoss);
}

TEST_F(Scripted, ADriverThatRefusesAllFieldsForOneIsAskedOneByOne) {
  script.newest_field = 100;
  const Sample first = Take({"energy", "power.instant", "retired.pending"});
  EXPECT_EQ(ValueOf(first, "energy"), 7);
  EXPECT_EQ(ValueOf(first, "retired.pending"), 7);
  EXPECT_TRUE(Lacks(first, "power.instant"));
  script.field_calls = 0;
  (void)Take({"energy", "power.instant", "retired.pending"});
  EXPECT_EQ(script.field_calls, 1) << "a refused field is not requested again";
}

TEST_F(Scripted, ADriverThatRefusesAllMetricsForOneIsAskedOneByOne) {
  script.newest_metric = 100;
  const auto take = [&] { return Take({"active.sm", "cycles.elapsed", "active.tensor"}); };
  (void)take();
  clock_.Advance(milliseconds(1000));
  const Sample sample = take();
  EXPECT_EQ(ValueOf(sample, "active.sm"), 50);
  EXPECT_EQ(ValueOf(sample, "active.tensor"), 50);
  EXPECT_TRUE(Lacks(sample, "cycles.elapsed"));
  script.metric_calls = 0;
  clock_.Advance(milliseconds(1000));
  (void)take();
  EXPECT_EQ(script.metric_calls, 1);
}

TEST_F(Scripted, AShareALittleAboveAllIsAllAndOneFarAboveIsLeftForThoseWhoCountNonsense) {
  const auto measure = [&](double value) {
    script.metric = value;
    clock_.Advance(milliseconds(1000));
    return ValueOf(Take({"active.sm"}), "active.sm");
  };
  (void)measure(0);
  EXPECT_EQ(measure(102.5), 100);
  EXPECT_EQ(measure(250), 250);
  EXPECT_EQ(measure(std::numeric_limits<double>::quiet_NaN()), std::nullopt);
  EXPECT_EQ(measure(-1), std::nullopt);
}

TEST_F(Scripted, MetricsThatFailAreNot0AndTheWindowBeginsAgain) {
  (void)Take({"active.sm"});
  clock_.Advance(milliseconds(1000));
  script.metrics = abi::kTimeout;
  const Sample failed = Take({"active.sm", "power"});
  EXPECT_FALSE(ValueOf(failed, "active.sm").has_value());
  EXPECT_FALSE(Lacks(failed, "active.sm"));
  script.metrics = abi::kSuccess;
  clock_.Advance(milliseconds(1000));
  EXPECT_EQ(ValueOf(Take({"active.sm"}), "active.sm"), 50);
}

TEST_F(Scripted, EndsWithNoSampleOfTheLibraryLeft) {
  (void)Take({"active.sm"});
  EXPECT_EQ(script.samples, 2);
  sampling_->Forget("0");
  EXPECT_EQ(script.samples, 0);
  (void)Take({"active.sm"});
  sampling_.reset();
  EXPECT_EQ(script.samples, 0);
}

TEST_F(Scripted, TheSumOverLinksIsMadeWhereTheDriverMakesNone) {
  script.links_sum = false;
  script.link_count = 1000;
  EXPECT_THAT(Take({"nvlink.tx"}).values, IsEmpty());
  EXPECT_EQ(ValueOf(Take({"nvlink.tx"}), "nvlink.tx"), 2000) << "the sum of two links";
  script.links = abi::kTimeout;
  EXPECT_THAT(Take({"nvlink.tx", "power"}).values, testing::SizeIs(1)) << "no partial sum";
}

TEST_F(Scripted, ACounterThatBeganAgainHasNoRate) {
  const auto measure = [&](unsigned long long count) {
    script.link_count = count;
    clock_.Advance(milliseconds(1000));
    return ValueOf(Take({"nvlink.rate"}), "nvlink.rate");
  };
  EXPECT_EQ(measure(1000), std::nullopt);
  EXPECT_EQ(measure(2000), 2.0 * 1000 * 1024) << "both directions";
  EXPECT_EQ(measure(10), std::nullopt);
  EXPECT_EQ(measure(11), 2.0 * 1024);
}

}  // namespace
}  // namespace penstock::backend::nvidia
