// Compares the NVIDIA backend's samples on this machine with nvidia-smi's values of the same GPUs.
// Prints all values and the cost of each sample. PENSTOCK_DRIVER_ROOT sets a driver root other than
// /.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "backend/all.h"

namespace penstock {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

/// Runs one nvidia-smi query of one GPU, without units; nothing where it has no value.
std::optional<double> Ask(const std::string& address, const std::string& query) {
  const std::string command =
      "nvidia-smi -i " + address + " --format=csv,noheader,nounits --query-gpu=" + query;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  char line[256] = "";
  if (pipe == nullptr || std::fgets(line, sizeof line, pipe.get()) == nullptr) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(line, &end);
  return end == line ? std::nullopt : std::optional(number);
}

struct Comparison {
  const char *key, *query;
  double factor;     ///< the query's unit in Penstock's unit
  double tolerance;  ///< in the query's unit: how much the value may change between two readings
};
constexpr Comparison kComparisons[] = {
    {"memory.total", "memory.total", 1.0 / 1048576, 1},
    {"memory.used", "memory.used", 1.0 / 1048576, 256},
    {"memory.reserved", "memory.reserved", 1.0 / 1048576, 64},
    {"temperature.gpu", "temperature.gpu", 1, 5},
    {"temperature.memory", "temperature.memory", 1, 5},
    {"power.limit", "power.limit", 0.001, 0.1},
    {"power.limit.default", "power.default_limit", 0.001, 0.1},
    {"power.limit.max", "power.max_limit", 0.001, 0.1},
    {"clock.max.sm", "clocks.max.sm", 1, 0},
    {"clock.max.memory", "clocks.max.memory", 1, 0},
    {"pcie.generation.max", "pcie.link.gen.max", 1, 0},
    {"pcie.width", "pcie.link.width.current", 1, 0},
    {"pcie.width.max", "pcie.link.width.max", 1, 0},
    {"ecc.volatile.corrected", "ecc.errors.corrected.volatile.total", 1, 0},
    {"ecc.volatile.uncorrected", "ecc.errors.uncorrected.volatile.total", 1, 0},
    {"ecc.aggregate.uncorrected", "ecc.errors.uncorrected.aggregate.total", 1, 0},
    {"utilization.gpu", "utilization.gpu", 1, 100},
    {"fan", "fan.speed", 1, 10},
};

class RealTelemetry : public testing::Test {
 protected:
  void SetUp() override {
    device::Paths paths;
    if (const char* root = std::getenv("PENSTOCK_DRIVER_ROOT")) paths.driver_root = root;
    backend_ = backend::MakeBackend("nvidia", paths);
    const auto driver = backend_->Open();
    ASSERT_TRUE(driver.ok()) << driver.error().ToString();
    addresses_ = backend_->List().value_or({});
    ASSERT_FALSE(addresses_.empty());
    for (const std::string& address : addresses_) ASSERT_TRUE(backend_->Describe(address).ok());
    request_.processes = true;
    for (std::size_t id = 0; id < quantities().size(); ++id)
      request_.quantities.push_back(static_cast<device::QuantityId>(id));
  }

  std::span<const device::Quantity> quantities() const {
    return backend::FindDialect("nvidia")->Quantities();
  }

  device::Sample Take(const std::string& address) {
    const auto start = steady_clock::now();
    auto sample = backend_->TakeSample(address, request_);
    std::cout << "GPU " << address << ": a sample of all took "
              << duration_cast<microseconds>(steady_clock::now() - start).count() << " us\n";
    EXPECT_TRUE(sample.ok()) << sample.error().ToString();
    return sample.ok() ? *std::move(sample) : device::Sample{};
  }

  std::optional<double> ValueOf(const device::Sample& sample, std::string_view key) const {
    for (const device::SampleValue& value : sample.values)
      if (quantities()[value.quantity].key == key) return device::ToDouble(value.number);
    return std::nullopt;
  }

  std::unique_ptr<device::Backend> backend_;
  std::vector<std::string> addresses_;
  device::SampleRequest request_;
};

TEST_F(RealTelemetry, IsWhatNvidiaSmiShows) {
  for (const std::string& address : addresses_) {
    (void)Take(address);
    std::this_thread::sleep_for(
        std::chrono::seconds(1));  // the driver measures rates over a window of real time
    const device::Sample sample = Take(address);
    for (const device::SampleValue& value : sample.values) {
      const device::Quantity& quantity = quantities()[value.quantity];
      const double number = device::ToDouble(value.number);
      std::cout << "  " << quantity.key
                << (value.link < 0 ? "" : "[" + std::to_string(value.link) + "]") << " = " << number
                << '\n';
      EXPECT_LE(number, quantity.most) << quantity.key;
      EXPECT_EQ(value.link >= 0, quantity.per_link) << quantity.key;
    }
    for (const device::QuantityId id : sample.unsupported)
      std::cout << "  without " << quantities()[id].key << '\n';
    for (const Comparison& comparison : kComparisons) {
      const auto theirs = Ask(address, comparison.query);
      const auto ours = ValueOf(sample, comparison.key);
      EXPECT_EQ(ours.has_value(), theirs.has_value()) << comparison.key;
      if (ours && theirs) {
        EXPECT_NEAR(*ours * comparison.factor, *theirs, comparison.tolerance) << comparison.key;
      }
    }
  }
}

TEST_F(RealTelemetry, CountersOnlyGrow) {
  for (const std::string& address : addresses_) {
    const device::Sample before = Take(address);
    const device::Sample after = Take(address);
    for (const device::SampleValue& value : after.values)
      for (const device::SampleValue& old : before.values)
        if (quantities()[value.quantity].counter && old.quantity == value.quantity &&
            old.link == value.link) {
          EXPECT_GE(device::ToDouble(value.number), device::ToDouble(old.number))
              << quantities()[value.quantity].key;
        }
  }
}

}  // namespace
}  // namespace penstock
