// penstock-vectoradd: adds two vectors on a GPU and says whether the sum is right, in the words of
// NVIDIA's CUDA sample vectorAdd, which people run as their first pod.
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <getopt.h>

#include "backend/nvidia/compute/vector_add.h"

namespace {

namespace cuda = penstock::backend::nvidia::cuda;

enum ExitStatus { kOk = 0, kFailed = 1, kUsage = 2, kBusy = 3, kCannotTry = 4 };

constexpr int kMostElements = 100'000'000;

constexpr char kHelp[] =
    R"(penstock-vectoradd [options]

Adds two vectors on a GPU through the CUDA driver and compares the sum. Prints "Test PASSED" and "Done" if it is
right. It needs the driver's libcuda.so.1 and no CUDA toolkit.

Options:
  --device ID       the GPU or MIG device: its UUID, or its index among the visible ones (default: the first)
  --elements N      length of the vectors (default 50000)
  --library FILE    load this libcuda.so.1
  --driver-root DIR load the libcuda.so.1 of a driver below this folder (default: as the loader finds it)
  --ptx             print the program that runs on the GPU, in PTX, and do nothing else
  --help, --version

Examples:
  penstock-vectoradd
  penstock-vectoradd --device GPU-4404041a-04cf-1ccf-9e70-f139a9b1e23c
  penstock run --gpus 1 -- penstock-vectoradd

Exit status: 0 the sum is right, 1 it is wrong or the GPU cannot compute, 2 wrong arguments, 3 the GPU is in exclusive
mode and used by another process, or its memory is full, 4 there is no libcuda.so.1, or it is older than driver 470.
)";

struct Arguments {
  std::string library, driver_root;
  cuda::VectorAdd wanted;
};

int Usage(const std::string& problem) {
  std::fprintf(stderr, "penstock-vectoradd: %s; see penstock-vectoradd --help\n", problem.c_str());
  return kUsage;
}

bool ReadElements(std::string_view text, int& elements) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), elements);
  return error == std::errc{} && end == text.data() + text.size() && elements > 0 &&
         elements <= kMostElements;
}

/// Returns the arguments, or the exit status where there is nothing to run.
std::pair<std::optional<Arguments>, int> Parse(int argc, char** argv) {
  Arguments arguments;
  const std::array<option, 8> options{option{"device", required_argument, nullptr, 'd'},
                                      option{"elements", required_argument, nullptr, 'n'},
                                      option{"library", required_argument, nullptr, 'l'},
                                      option{"driver-root", required_argument, nullptr, 'r'},
                                      option{"ptx", no_argument, nullptr, 'p'},
                                      option{"help", no_argument, nullptr, 'h'},
                                      option{"version", no_argument, nullptr, 'V'},
                                      option{nullptr, 0, nullptr, 0}};
  for (int found = 0; (found = ::getopt_long(argc, argv, "", options.data(), nullptr)) != -1;) {
    switch (found) {
      case 'd': arguments.wanted.device = optarg; break;
      case 'n':
        if (!ReadElements(optarg, arguments.wanted.elements))
          return {std::nullopt,
                  Usage("--elements " + std::string(optarg) + ": a number from 1 to " +
                        std::to_string(kMostElements) + " is expected")};
        break;
      case 'l': arguments.library = optarg; break;
      case 'r': arguments.driver_root = optarg; break;
      case 'p':
        std::fputs(std::string(cuda::VectorAddPtx()).c_str(), stdout);
        return {std::nullopt, kOk};
      case 'h': std::fputs(kHelp, stdout); return {std::nullopt, kOk};
      case 'V':
        std::printf("penstock-vectoradd %s\n", PENSTOCK_VERSION);
        return {std::nullopt, kOk};
      default: return {std::nullopt, kUsage};  // getopt has printed the problem
    }
  }
  if (optind != argc)
    return {std::nullopt, Usage("unexpected argument \"" + std::string(argv[optind]) + "\"")};
  return {std::move(arguments), kOk};
}

int Failed(const penstock::base::Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "penstock-vectoradd: %s\nTest FAILED\n", error.message().c_str());
  return error.code() == penstock::base::Code::kResourceExhausted ? kBusy : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  auto [arguments, status] = Parse(argc, argv);
  if (!arguments) return status;
  // Other GPUs are not initialized, and nothing is left in a home folder.
  if (const std::string& device = arguments->wanted.device; device.find('-') != std::string::npos)
    ::setenv("CUDA_VISIBLE_DEVICES", device.c_str(), 1);
  ::setenv("CUDA_CACHE_DISABLE", "1", 0);
  const std::string& root = arguments->driver_root;
  const auto library = root.empty() || root == "/" ? cuda::Cuda::Load(arguments->library)
                                                   : cuda::Cuda::LoadBelow(root);
  if (!library.ok()) {
    using penstock::base::Code;
    const Code code = library.error().code();
    const bool missing = code == Code::kNotFound;
    const std::string remedy =
        missing
            ? ": no NVIDIA driver is visible here; see that the container requests a GPU, or name "
              "the library with --library"
            : "";
    const int failed = Failed({code, library.error().message() + remedy});
    return missing || code == Code::kUnimplemented ? kCannotTry : failed;
  }
  arguments->wanted.step = [](const std::string& step) { std::printf("%s\n", step.c_str()); };
  if (const auto done = cuda::AddVectors(*library, arguments->wanted); !done.ok())
    return Failed(done.error());
  std::printf("Test PASSED\nDone\n");
  return std::fflush(stdout) == 0 ? kOk : kFailed;
}
