// A simulated machine for one test, driven through penstock-sim as a user would. For tests only.
#pragma once

#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>

#include "base/testing/build_tree.h"
#include "device/backend.h"
#include "os/process/process.h"
#include "os/testing/temporary_folder.h"

namespace penstock::backend::nvidia {

class SimulatedMachine {
 public:
  explicit SimulatedMachine(const std::string& machine, const std::string& driver = "") {
    std::vector<std::string> start{"start", machine};
    if (!driver.empty()) start.insert(start.end(), {"--driver", driver});
    Sim(start);
  }

  /// Runs penstock-sim with these words and this machine's root; fails the test if it fails.
  void Sim(std::vector<std::string> words) const {
    words.insert(words.begin(), base::BuildPath("bin/penstock-sim"));
    words.insert(words.begin() + 2, {"--root", root()});
    Run({.arguments = words});
  }

  /// Runs this machine's nvidia-smi with these words; fails the test if it fails.
  void Smi(std::vector<std::string> words) const {
    words.insert(words.begin(), root() + "/usr/bin/nvidia-smi");
    Run({.arguments = words,
         .environment = {"LD_LIBRARY_PATH=" + root() + "/usr/lib/x86_64-linux-gnu"}});
  }

  std::string root() const { return folder_ / "machine"; }

  device::Paths paths() const {
    device::Paths paths;
    paths.driver_root = paths.dev_root = root();
    paths.sysfs_root = root() + "/sys";
    paths.proc_root = root() + "/proc";
    return paths;
  }

 private:
  static void Run(os::SpawnOptions spawn) {
    const os::UniqueFd quiet(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    spawn.standard_output = quiet.get();
    const auto child = os::Spawn(spawn);
    ASSERT_TRUE(child.ok()) << child.error().ToString();
    int status = 0;
    ASSERT_EQ(::waitpid(child->pid, &status, 0), child->pid);
    ASSERT_EQ(status, 0) << spawn.arguments[0] << " " << spawn.arguments[1] << " failed";
  }

  os::TemporaryFolder folder_;
};

}  // namespace penstock::backend::nvidia
