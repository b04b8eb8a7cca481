// Tests the NVIDIA backend on this machine's driver: facts are plausible, and every GPU can be
// read. Prints the facts as JSON for manual comparison with nvidia-smi. PENSTOCK_DRIVER_ROOT sets a
// driver root other than /.
#include <chrono>
#include <cstdlib>
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "backend/all.h"
#include "device/codec.h"

namespace penstock {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;
using testing::Not;
using testing::StartsWith;

void ExpectPlausible(const device::Facts& gpu) {
  EXPECT_THAT(gpu.id, StartsWith("GPU-"));
  EXPECT_FALSE(gpu.model.empty());
  EXPECT_GT(gpu.memory.mebibytes(), 1000u);
  EXPECT_TRUE(gpu.pci.has_value());
  EXPECT_FALSE(gpu.architecture.empty()) << "compute capability " << gpu.architecture_version;
  ASSERT_EQ(gpu.files.size(), 1u);
  struct stat about {};
  ASSERT_EQ(::stat(gpu.files[0].path.c_str(), &about), 0) << gpu.files[0].path;
  EXPECT_EQ(major(about.st_rdev), gpu.files[0].major);
  EXPECT_EQ(minor(about.st_rdev), gpu.files[0].minor);
}

TEST(RealNvml, ReportsFactsAndReadings) {
  device::Paths paths;
  if (const char* root = std::getenv("PENSTOCK_DRIVER_ROOT")) paths.driver_root = root;
  const auto backend = backend::MakeBackend("nvidia", paths);
  const auto driver = backend->Open();
  ASSERT_TRUE(driver.ok()) << driver.error().ToString();
  std::cout << device::codec::Encode(*driver) << '\n';
  EXPECT_THAT(driver->version, Not(""));
  EXPECT_THAT(driver->runtime_version, Not(""));

  const auto addresses = backend->List();
  ASSERT_TRUE(addresses.ok()) << addresses.error().ToString();
  ASSERT_FALSE(addresses->empty());
  for (const std::string& address : *addresses) (void)backend->Describe(address);
  for (const std::string& address : *addresses) {
    const auto start = steady_clock::now();
    const auto facts = backend->Describe(address);
    const auto described = steady_clock::now();
    ASSERT_TRUE(facts.ok()) << facts.error().ToString();
    ExpectPlausible(*facts);
    EXPECT_EQ(facts->links.size(), addresses->size() - 1);
    const auto reading = backend->Read(address);
    const auto read = steady_clock::now();
    ASSERT_TRUE(reading.ok()) << reading.error().ToString();
    EXPECT_TRUE(reading->reachable);
    std::cout << device::codec::Encode(*facts) << '\n' << device::codec::Encode(*reading) << '\n';
    std::cout << "described in " << duration_cast<microseconds>(described - start).count()
              << " us, read in " << duration_cast<microseconds>(read - described).count()
              << " us\n";
  }
  const auto events = backend->Wait(std::chrono::milliseconds(10));
  EXPECT_TRUE(events.ok() || events.error().code() == base::Code::kUnimplemented)
      << events.error().ToString();
}

}  // namespace
}  // namespace penstock
