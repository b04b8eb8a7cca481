// Computes on the real GPUs of the machine. Allocates less than 1 MiB of device memory.
#include "backend/nvidia/compute/vector_add.h"

#include <gtest/gtest.h>

namespace penstock::backend::nvidia::cuda {
namespace {

TEST(VectorAdd, GetsTheRightSumOnEveryVisibleGpu) {
  const auto cuda = Cuda::Load("");
  ASSERT_TRUE(cuda.ok()) << cuda.error().message();
  ASSERT_TRUE(cuda->Check(cuda->api().init(0), "cuInit").ok());
  int count = 0;
  ASSERT_EQ(cuda->api().device_count(&count), kSuccess);
  ASSERT_GT(count, 0);
  for (int i = 0; i < count; ++i)
    for (const int elements : {1, 255, 256, 257, 50'000}) {
      const auto done = AddVectors(*cuda, {.device = std::to_string(i), .elements = elements});
      EXPECT_TRUE(done.ok()) << done.error().message();
    }
}

TEST(VectorAdd, NamesADeviceThatIsNotVisible) {
  const auto cuda = Cuda::Load("");
  ASSERT_TRUE(cuda.ok()) << cuda.error().message();
  const auto done = AddVectors(*cuda, {.device = "GPU-00000000-0000-0000-0000-000000000000"});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), base::Code::kNotFound);
}

}  // namespace
}  // namespace penstock::backend::nvidia::cuda
