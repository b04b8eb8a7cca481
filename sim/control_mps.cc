// The faults of MPS: a word in a file beside the state, which its programs watch; and their death.
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
  // Renamed, so that nobody reads half of it.
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
  // By its path: machines have their programs as links to one file.
  const fs::path program = fs::canonical(root + "/usr/bin/nvidia-cuda-mps-control", error);
  if (error) return;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const auto pid = base::ParseInt(at->path().filename().string());
    std::error_code other;
    if (pid && *pid > 0 && fs::read_symlink(at->path() / "exe", other) == program) ::kill(static_cast<pid_t>(*pid), SIGKILL);
  }
}

}  // namespace penstock::sim
