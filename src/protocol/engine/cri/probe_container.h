// Runs penstock-probe in one container over CRI, as the kubelet would start it, and returns what it
// says of the files there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "os/loop.h"

namespace penstock::protocol::engine::cri {

/// The log of such a container, which is empty. A kubelet that removes a container, also one that
/// it has not started, removes all files whose path begins with that of its log; without a log
/// these are the files of its own working folder, "/" (containerLogManager.Clean, seen
/// with 1.36.3).
inline constexpr char kProbeLog[] = "penstock-proof.log";

struct ProbeContainer {
  struct Device {
    std::string container_path, host_path;
    std::string permissions;  ///< some of "rwm"
    bool operator==(const Device&) const = default;
  };
  std::string socket;      ///< of the engine
  std::string image;       ///< in the engine's store; empty: that of the engine's sandboxes
  std::string program;     ///< penstock-probe, as the machine names it; it is mounted
                           ///< read-only and is the only program that runs there
  std::string log_folder;  ///< of the machine, where the engine writes kProbeLog. Without it
                           ///< nothing is started
  std::vector<std::string> files;        ///< that it is to open
  std::vector<std::string> cdi_devices;  ///< qualified names
  bool by_annotation = false;   ///< name them in an annotation, not in CRI's own field for them
  std::vector<Device> devices;  ///< that it gets without CDI
  std::map<std::string, std::string> environment;  ///< by which `handler` gives it devices
  std::string handler;   ///< of the engine, that is to start it: where its program is `runtime`.
                         ///< Else the engine's default starts it, if it gets `devices`
  std::string runtime;   ///< penstock-runtime, as the engine's configuration names it
  bool relabel = false;  ///< with SELinux, make the program's file one that containers may run
  std::string owner = "doctor";  ///< sandboxes that a former run of this owner has left are removed
                                 ///< first, unless it is that
};

struct ProbeAnswer {
  enum class Kind {
    kAnswered,  ///< `text` is the probe's output
    kRefused,   ///< the engine does not create or start this container; `text`: its error
    kLate,      ///< in a sandbox that had started, it did not end in time; `text`: the call's error
    kEnded,     ///< another program ended it or its sandbox, as a kubelet does; `text`: what failed
    kNotTried,  ///< it did not come to that; `text`: why
  };
  Kind kind = Kind::kNotTried;
  std::string text;
  bool handled = false;  ///< its `handler` started it
};

/// Why the engine's default starts a container that has a handler.
std::string WhyNotHandled(const ProbeContainer& container);

/// One run on the machine's own network, as root with CAP_DAC_OVERRIDE alone, who cannot write. The
/// container and its sandbox are removed before the answer; one whose caller has gone ends by
/// itself within a minute. Nothing is pulled. A kubelet stops the container before the sandbox, and
/// gives it its shortest period of grace (2 seconds): the program in it answers first.
class ProbeRun {
 public:
  using Done = std::function<void(const ProbeAnswer&)>;

  /// On the loop's thread. Calls back once, later: the sandbox has `within` to start, and then the
  /// container `within` to end; what the removal takes is added. The destructor cancels the run
  /// without an answer.
  ProbeRun(os::Loop& loop, ProbeContainer container, base::Duration within, Done done);
  ~ProbeRun();
  ProbeRun(const ProbeRun&) = delete;
  ProbeRun& operator=(const ProbeRun&) = delete;

 private:
  class Steps;
  const std::unique_ptr<Steps> steps_;
};

/// The same, blocking. kUnknown if the engine refuses the container, kDeadlineExceeded if that does
/// not end, kUnavailable if it was not tried.
base::Result<std::string> RunContainer(ProbeContainer container, base::Duration within);

/// How an engine starts sandboxes.
struct SandboxSettings {
  std::string image;
  std::string handler;        ///< empty: its default
  std::string cgroup_parent;  ///< that leaves nothing behind; empty: the engine has one
  bool operator==(const SandboxSettings&) const = default;
};

/// Reads them from "config" of a verbose Status. containerd has its configuration there
/// (pkg/cri/config, 1.7; internal/cri/config, 2.x, without the image): where systemd manages
/// control groups, a sandbox that names no slice does not start, elsewhere its group would be below
/// a new one that stays. CRI-O has only the image (server/runtime_status.go), and a group of its
/// own. `handler` is chosen where its BinaryName is `program`. Pure.
SandboxSettings SandboxSettingsIn(std::string_view config, const std::string& handler = "",
                                  const std::string& program = "");

}  // namespace penstock::protocol::engine::cri
