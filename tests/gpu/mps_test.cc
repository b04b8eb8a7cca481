// Tests NVIDIA's own MPS, supervised by Penstock, with a real client: this program, executed again,
// calls the CUDA driver. Requires root and the first GPU, which must be unused.
// PENSTOCK_DRIVER_ROOT sets a driver root other than /.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/mps/testing/testing.h"
#include "base/testing/build_tree.h"
#include "os/core/file.h"

namespace penstock::backend::nvidia {
namespace {

using device::SharedDevice;
using mps::RunningService;

constexpr std::size_t kMebibyte = 1u << 20;

/// Allocates `mebibytes` MiB through the CUDA driver, prints "allocated" or the error number, and
/// waits until killed.
[[noreturn]] void BeClient(std::size_t mebibytes) {
  void* cuda = ::dlopen("libcuda.so.1", RTLD_NOW);
  const auto call = [&](const char* name, auto... arguments) {
    void* symbol = cuda != nullptr ? ::dlsym(cuda, name) : nullptr;
    return symbol != nullptr
               ? reinterpret_cast<int (*)(decltype(arguments)...)>(symbol)(arguments...)
               : -1;
  };
  int device = 0;
  void* context = nullptr;
  unsigned long long memory = 0;
  int result = call("cuInit", 0u);
  if (result == 0) result = call("cuDeviceGet", &device, 0);
  if (result == 0) result = call("cuCtxCreate_v2", &context, 0u, device);
  if (result == 0) result = call("cuMemAlloc_v2", &memory, mebibytes * kMebibyte);
  if (result == 0)
    std::puts("allocated");
  else
    std::printf("error %d\n", result);
  std::fflush(stdout);
  while (result == 0) ::pause();
  ::_exit(1);
}

/// This program as a client of the set, with the set's /dev/shm mounted, as in a container.
class CudaClient {
 public:
  CudaClient(const SharedDevice& device, const std::string& id, std::size_t mebibytes) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    output_.Reset(ends[0]);
    const os::UniqueFd theirs(ends[1]);
    os::SpawnOptions spawn;
    spawn.arguments = {
        "unshare",
        "-m",
        "sh",
        "-c",
        "mount --bind " + device.container.mounts.at(1).host_path + " /dev/shm && exec \"$@\"",
        "sh",
        os::OwnPath()};
    spawn.environment = {
        "PENSTOCK_GPU_TEST_CLIENT=" + std::to_string(mebibytes),
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "CUDA_VISIBLE_DEVICES=" + id,
        "CUDA_MPS_PIPE_DIRECTORY=" + device.process.environment.at("CUDA_MPS_PIPE_DIRECTORY")};
    if (const char* libraries = std::getenv("LD_LIBRARY_PATH"))
      spawn.environment.push_back(std::string("LD_LIBRARY_PATH=") + libraries);
    spawn.standard_output = theirs.get();
    auto child = os::Spawn(spawn);
    EXPECT_TRUE(child.ok());
    if (child.ok()) child_ = *std::move(child);
  }
  ~CudaClient() { End(); }
  void End() {
    if (child_.pid == 0) return;
    ::kill(child_.pid, SIGKILL);
    ::waitpid(std::exchange(child_.pid, 0), nullptr, 0);
  }
  std::string Line() {
    std::string line;
    for (char c = 0; ::read(output_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

 private:
  os::Child child_;
  os::UniqueFd output_;
};

TEST(RealMps, HoldsTheLimitOfAShareCountsItsClientsAndIsTakenOver) {
  device::Paths paths;
  if (const char* root = std::getenv("PENSTOCK_DRIVER_ROOT")) paths.driver_root = root;
  const auto backend = MakeBackend(paths);
  ASSERT_TRUE(backend->Open().ok());
  const auto addresses = backend->List();
  ASSERT_TRUE(addresses.ok() && !addresses->empty());
  const auto gpu = std::make_shared<device::Facts>(*backend->Describe(addresses->front()));
  const os::TemporaryFolder folder;
  MpsOptions options;
  options.driver_root = paths.driver_root;
  options.root = options.host_root = folder / "mps";
  options.launcher = base::BuildPath("bin/penstock-worker");
  options.poll_every = options.poll_often = std::chrono::milliseconds(500);
  options.settle = {};
  auto service = std::make_unique<RunningService>(options);
  const std::vector<device::SharedSet> wanted = {{"nvidia.com/gpu", {{gpu, 4}}}};
  service->Want(wanted);
  ASSERT_TRUE(service->WaitUntilReady(gpu->id)) << service->Of(gpu->id).reason;
  const SharedDevice device = service->Of(gpu->id);
  std::cout << gpu->model << ": " << device::ToString(device.isolation) << ", "
            << device.memory.mebibytes() << " MiB, " << device.compute_percent << "%; "
            << device.reason << "\n";
  // Without nvidia-smi in the driver root the compute mode stays as it is, and the limit holds only
  // for clients of the server.
  EXPECT_EQ(device.isolation, std::filesystem::exists(paths.driver_root + "/usr/bin/nvidia-smi")
                                  ? device::Isolation::kMemoryPerProcess
                                  : device::Isolation::kNone);

  const std::size_t limit = device.memory.mebibytes();
  CudaClient fits(device, gpu->id, limit / 2);
  EXPECT_EQ(fits.Line(), "allocated");
  EXPECT_TRUE(service->WaitFor(gpu->id, [](const SharedDevice& now) { return now.clients == 1; }));
  EXPECT_EQ(CudaClient(device, gpu->id, limit + 1).Line(), "error 2")
      << "out of memory, though the GPU has room";

  service = std::make_unique<RunningService>(options);
  service->Want(wanted);
  EXPECT_TRUE(service->WaitFor(
      gpu->id, [](const SharedDevice& now) { return now.ready && now.clients == 1; }));
  service->Want({});
  EXPECT_TRUE(service->WaitUntilNot(gpu->id, "exits with its last client"));
  fits.End();
  EXPECT_TRUE(service->WaitUntilEmpty());
}

}  // namespace
}  // namespace penstock::backend::nvidia

// Runs before main, so that the client does not run as a test.
__attribute__((constructor)) static void StartedAsClient() {
  if (const char* mebibytes = std::getenv("PENSTOCK_GPU_TEST_CLIENT"))
    penstock::backend::nvidia::BeClient(std::strtoul(mebibytes, nullptr, 10));
}
