// Describes where an engine has its files and how it is queried and restarted, from the
// distributions' recipes and from the process that listens at its socket.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"
#include "protocol/engine/apply/desired_config.h"
#include "protocol/engine/machine_process.h"

namespace penstock::protocol::engine {

/// One engine on one machine. Paths are as the engine sees them.
struct EngineInstall {
  std::string name;  ///< "containerd", "k3s"
  Engine engine = Engine::kContainerd;
  ConfigStyle style = ConfigStyle::kPlain;
  std::string socket;  ///< empty: it has none
  std::string config;  ///< the edited file
  std::string
      in_force;  ///< the file with which it is started, if that is another one (MicroK8s, k0s)
  std::string drop_in;        ///< where our own file would be; empty: it reads no such files
  std::string template_file;  ///< ConfigStyle::kTemplated: the template of its configuration
  std::string program;        ///< its executable: a path, or a name to look up
  std::string unit;           ///< of systemd; empty: none
  bool supervised =
      false;  ///< its process was seen in that unit; else the unit is the recipe's assumption
  std::string root =
      "/";  ///< where this program sees its files: /proc/1/root if we are in a container
  std::vector<std::string> enter;  ///< prefix of commands that must see what the engine sees
  pid_t pid = 0;                   ///< 0: it does not run, or cannot be seen
};

/// The known engines and distributions, by name: containerd, k3s, rke2, k0s, microk8s, crio,
/// microshift, docker, podman.
const std::vector<EngineInstall>& Recipes();

/// Returns the recipe of that name; kInvalidArgument lists the known names.
base::Result<EngineInstall> RecipeOf(std::string_view name);

/// Returns the engine that listens at a socket (by ListenerOf's rule; Identify must trust the
/// process): its program, configuration file and systemd unit by its process, the rest by the
/// recipe that fits. kPermissionDenied if the socket or the process is not trusted,
/// kFailedPrecondition if the program is no known engine.
base::Result<EngineInstall> InstallOfSocket(const std::string& proc_root,
                                            const std::string& socket);

/// If this process sees other files than the machine's first process: makes the engine's files
/// those that the first process sees, and runs the engine's programs among them.
void SeeAsTheMachine(EngineInstall& install, const std::string& proc_root);

/// Returns the path at which this process reaches the engine's socket.
std::string SocketHere(const EngineInstall& install);

/// Describes the engine of a trusted process. Pure.
base::Result<EngineInstall> InstallOfProcess(const MachineProcess& process,
                                             const std::string& socket);

}  // namespace penstock::protocol::engine
