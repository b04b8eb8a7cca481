// Where an engine has its files, how it is asked and started: recipes of the distributions, and what the process that listens says of
// itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"
#include "edge/engine/machine_process.h"
#include "edge/engine/plan.h"

namespace penstock::edge::engine {

/// One engine on one machine. Paths are as the engine sees them.
struct Site {
  std::string name;  ///< "containerd", "k3s"
  Engine engine = Engine::kContainerd;
  Manner manner = Manner::kPlain;
  std::string socket;              ///< empty: it has none
  std::string config;              ///< the file that is edited
  std::string in_force;            ///< the file that it is started with, where that is another one (MicroK8s, k0s)
  std::string drop_in;             ///< where a file of ours would be; empty: it reads no such files
  std::string template_file;       ///< Manner::kTemplated: what the file is made from
  std::string program;             ///< its executable: a path, or a name to be found
  std::string unit;                ///< of systemd; empty: none
  bool supervised = false;         ///< its process was seen in that unit; else the unit is what the recipe supposes
  std::string root = "/";          ///< where its files lie as this program sees them: /proc/1/root where we are in a container
  std::vector<std::string> enter;  ///< what goes before a command that shall see what the engine sees
  pid_t pid = 0;                   ///< 0: it does not run, or cannot be seen
};

/// The engines and distributions that are known, by name: containerd, k3s, rke2, k0s, microk8s, crio, microshift, docker, podman.
const std::vector<Site>& Recipes();

/// The recipe of that name; kInvalidArgument with the names there are.
base::Result<Site> RecipeOf(std::string_view name);

/// The engine that listens there (ListenerOf's rule; the process is one that Identify believes): its program, configuration file and
/// systemd unit as its process shows them, the rest by the recipe that fits. kPermissionDenied where socket or process are not trusted,
/// kFailedPrecondition where that program is no engine that is known here.
base::Result<Site> SiteOfSocket(const std::string& proc_root, const std::string& socket);

/// Has the site's files be those that the machine's first process sees, and its programs run among them, where we see others.
void SeeAsTheMachine(Site& site, const std::string& proc_root);

/// The path at which its socket is reached from here.
std::string SocketHere(const Site& site);

/// What a process that is believed says of the engine that it is. Pure.
base::Result<Site> SiteOfProcess(const MachineProcess& process, const std::string& socket);

}  // namespace penstock::edge::engine
