#include "backend/nvidia/mps/spec.h"

#include <gtest/gtest.h>

namespace penstock::backend::nvidia::mps {
namespace {

device::SharedSet::Member Member(const std::string& id, std::uint64_t mebibytes, int shares) {
  auto facts = std::make_shared<device::Facts>();
  facts->id = id;
  facts->memory = base::Mebibytes(mebibytes);
  return {facts, shares};
}

TEST(ServerSpec, EachShareHasItsPartOfMemoryAndComputing) {
  const ServerSpec spec =
      SpecOf({"nvidia.com/gpu", {Member("GPU-a", 40537, 4), Member("GPU-b", 16384, 4)}});
  EXPECT_EQ(spec.percentage, 25);
  EXPECT_EQ(MemoryLimits(spec), "0=10134M,1=4096M");
  EXPECT_EQ(VisibleDevices(spec), "GPU-a,GPU-b");
}

TEST(ServerSpec, NoOneHasLessComputingThanAShareWhereGpusAreCutDifferently) {
  EXPECT_EQ(SpecOf({"nvidia.com/gpu", {Member("GPU-a", 40960, 10), Member("GPU-b", 40960, 2)}})
                .percentage,
            50);
  EXPECT_EQ(SpecOf({"nvidia.com/gpu", {Member("GPU-a", 40960, 48)}}).percentage, 2);
  EXPECT_EQ(SpecOf({"nvidia.com/gpu", {Member("GPU-a", 40960, 500)}}).percentage, 1);
}

TEST(ServerSpec, OfAMigDeviceIsLikeThatOfAGpu) {
  for (const std::string id :
       {"MIG-ccfd0314-eec3-5474-9ccc-8097a0082158",
        "MIG-GPU-2bddb522-b7fb-e02a-24b2-ef1e28a0d41c/11/0"}) {  // the latter before 470
    const ServerSpec spec = SpecOf({id, {Member(id, 4864, 3)}});
    EXPECT_TRUE(spec.gpus[0].is_mig_device());
    EXPECT_EQ(spec.percentage, 33);
    EXPECT_EQ(MemoryLimits(spec), "0=1621M");
    EXPECT_EQ(VisibleDevices(spec), id);
    EXPECT_EQ(ReadSpec(WriteSpec(spec)), spec);
  }
  EXPECT_FALSE(SpecOf({"nvidia.com/gpu", {Member("GPU-a", 40960, 4)}}).gpus[0].is_mig_device());
}

TEST(ServerSpec, IsReadBackAsItWasWritten) {
  const ServerSpec spec =
      SpecOf({"nvidia.com/gpu.shared", {Member("GPU-a", 40537, 4), Member("GPU-b", 16384, 8)}});
  EXPECT_EQ(ReadSpec(WriteSpec(spec) + "\n"), spec);
  for (const char* bad : {"", "x", "a;25", "a;0;GPU=1:2", "a;25;GPU", "a;25;=1:2", "a;25;GPU=0:2",
                          "a;25;GPU=1:2;", "a;25;GPU:1=2"})
    EXPECT_EQ(ReadSpec(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace penstock::backend::nvidia::mps
