// Sets the faults of MPS, as a word in a file beside the state, which the MPS programs watch, and
// kills the MPS daemons.
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/core/strings.h"
#include "sim/control.h"

namespace penstock::sim {

namespace fs = std::filesystem;

base::Status Control::FaultMps(const std::string& fault) {
  const std::string path = root_ + "/.penstock-sim/mps-fault";
  std::error_code error;
  if (fault.empty()) {
    fs::remove(path, error);
    return error ? base::Status(base::ErrnoError(error.value(), "remove " + path)) : base::Status();
  }
  // Renamed into place, so that no reader sees half of it.
  const std::string fresh = path + ".new";
  std::ofstream(fresh) << fault << "\n";
  fs::rename(fresh, path, error);
  return error ? base::Status(base::ErrnoError(error.value(), "write " + path)) : base::Status();
}

base::Status Control::KillMps() {
  EndMps(root_);
  return {};
}

void EndMps(const std::string& root) {
  std::error_code error;
  const fs::path program = root + "/usr/bin/nvidia-cuda-mps-control";
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const auto pid = base::ParseInt(at->path().filename().string());
    std::error_code other;
    if (pid && *pid > 0 && fs::equivalent(at->path() / "exe", program, other))
      ::kill(static_cast<pid_t>(*pid), SIGKILL);
  }
}

}  // namespace penstock::sim
