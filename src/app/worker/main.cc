// penstock-worker: runs one vendor's library in a process of its own, so that a call that hangs in
// the driver blocks no other program. The agent starts it with three lanes; it has no
// configuration, listener or state. Links base, os, device and vendor only. As "launch" it is the
// intermediate step by which the agent starts programs that outlive it.
#include <array>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <getopt.h>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/worker/denied_calls.h"
#include "backend/all.h"
#include "base/log.h"
#include "device/remote.h"
#include "os/core/system_calls.h"
#include "os/process/launch.h"

namespace {

using penstock::device::Paths;

enum ExitStatus { kOk = 0, kFailed = 1, kUsage = 2 };

constexpr char kHelp[] =
    R"(penstock-worker VENDOR [options]

Runs one vendor's driver library for penstock-agent, which starts it and talks to it on descriptors 3, 4 and 5.
It exits when the agent closes them. It is not meant to be started manually.

Vendors: %s

Options:
  --driver-root DIR     where the driver's files are (default /)
  --library FILE        the vendor's library; not relative to the driver root
  --sysfs-root DIR      use instead of /sys
  --dev-root DIR        the folder that holds dev/, or itself a /dev (default /)
  --proc-root DIR       use instead of /proc
  --restrict-system-calls
                        deny the library the system calls that administer the machine: mounts, kernel modules, tracing, ...
  --help, --version

Example, as the agent does it:
  penstock-worker VENDOR --driver-root /run/driver

Exit status: 0 the agent closed the descriptors, 1 it sent an invalid request, 2 wrong arguments.
)";

struct Arguments {
  std::string vendor;
  bool restricted = false;
  Paths paths;
};

std::string KnownVendors() {
  std::string names;
  for (const std::string_view name : penstock::backend::Names())
    names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

int Usage(const std::string& problem) {
  std::fprintf(stderr, "penstock-worker: %s; see penstock-worker --help\n", problem.c_str());
  return kUsage;
}

/// Returns the arguments, or the exit status where there is nothing to run.
std::pair<std::optional<Arguments>, int> Parse(int argc, char** argv) {
  Arguments arguments;
  const std::array<option, 10> options{option{"driver-root", required_argument, nullptr, 'd'},
                                       option{"library", required_argument, nullptr, 'l'},
                                       // As an agent of an earlier version calls it that is still
                                       // running.
                                       option{"nvml-library", required_argument, nullptr, 'l'},
                                       option{"sysfs-root", required_argument, nullptr, 's'},
                                       option{"dev-root", required_argument, nullptr, 'v'},
                                       option{"proc-root", required_argument, nullptr, 'p'},
                                       option{"restrict-system-calls", no_argument, nullptr, 'r'},
                                       option{"help", no_argument, nullptr, 'h'},
                                       option{"version", no_argument, nullptr, 'V'},
                                       option{nullptr, 0, nullptr, 0}};
  for (int found = 0; (found = ::getopt_long(argc, argv, "", options.data(), nullptr)) != -1;) {
    switch (found) {
      case 'd': arguments.paths.driver_root = optarg; break;
      case 'l': arguments.paths.library = optarg; break;
      case 's': arguments.paths.sysfs_root = optarg; break;
      case 'v': arguments.paths.dev_root = optarg; break;
      case 'p': arguments.paths.proc_root = optarg; break;
      case 'r': arguments.restricted = true; break;
      case 'h': std::printf(kHelp, KnownVendors().c_str()); return {std::nullopt, kOk};
      case 'V': std::printf("penstock-worker %s\n", PENSTOCK_VERSION); return {std::nullopt, kOk};
      default: return {std::nullopt, kUsage};  // getopt has printed the problem
    }
  }
  if (optind + 1 != argc)
    return {std::nullopt, Usage("one vendor is expected (" + KnownVendors() + ")")};
  arguments.vendor = argv[optind];
  return {std::move(arguments), kOk};
}

bool HasLanes() {
  for (const int lane : {penstock::device::kControlLane, penstock::device::kSamplingLane,
                         penstock::device::kEventsLane}) {
    int type = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(lane, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == penstock::os::kLaunchVerb)
    return penstock::os::LaunchMain(argc, argv);
  ::mallopt(M_ARENA_MAX, 1);  // three threads that rarely allocate do not need a heap each
  const auto [arguments, status] = Parse(argc, argv);
  if (!arguments) return status;
  // Before the library is loaded and threads are started. The worker exits where the requested
  // restriction is unavailable.
  if (arguments->restricted) {
    if (const auto denied = penstock::os::DenyCalls(penstock::app::kDeniedCalls); !denied.ok()) {
      std::fprintf(stderr, "penstock-worker: %s\n", denied.error().message().c_str());
      return kFailed;
    }
  }
  auto backend = penstock::backend::MakeBackend(arguments->vendor, arguments->paths);
  if (!backend)
    return Usage("unknown vendor \"" + arguments->vendor + "\" (" + KnownVendors() + ")");
  if (!HasLanes())
    return Usage("descriptors 3, 4 and 5 are not sockets; penstock-agent starts this program");

  // Ignores signals to the process group of the agent or the command-line program, which handles
  // them and closes the lanes.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  penstock::base::StartLog("penstock-worker");
  const int served = penstock::device::ServeBackend(std::move(backend));
  ::_exit(served);  // a thread may hang in the driver, so a clean shutdown is impossible
}
