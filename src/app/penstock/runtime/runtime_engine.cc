// Chooses the engine: by name, by socket, or the engine that the kubelet uses.
#include "app/penstock/runtime/runtime_configure.h"
#include "base/core/strings.h"
#include "protocol/engine/cri/find.h"
#include "protocol/engine/machine_process.h"

namespace penstock::app {

using base::Code;
using base::Error;
using protocol::engine::EngineInstall;

namespace {

constexpr char kDockerSocket[] = "/run/docker.sock";

Running FindRunning(const std::string& proc_root, const std::string& kubelet_dir) {
  auto found = protocol::engine::cri::FindSockets(proc_root, kubelet_dir);
  const bool docker = protocol::engine::ListenerOf(proc_root, kDockerSocket).ok();
  return {.kubelet = found.kubelet,
          .sockets = std::move(found.paths),
          .docker = docker ? kDockerSocket : "",
          .problem = std::move(found.problem)};
}

/// Returns the recipe of this name; where the engine runs, completed from its process.
base::Result<EngineInstall> InstallByName(const EngineOptions& options,
                                          const std::string& proc_root) {
  ASSIGN(EngineInstall install, protocol::engine::RecipeOf(options.runtime));
  if (install.socket.empty() || !options.config.empty()) return install;
  auto seen = protocol::engine::InstallOfSocket(proc_root, install.socket);
  if (!seen.ok() || seen->engine != install.engine) return install;
  seen->name = install.name;
  return *std::move(seen);
}

}  // namespace

base::Result<std::string> ChooseSocket(const Running& running) {
  if (running.kubelet && !running.sockets.empty()) return running.sockets.front();
  if (running.kubelet && !running.problem.empty())
    return Error(Code::kFailedPrecondition, running.problem + "; or pass --runtime or --socket");
  // Docker starts a containerd of its own, which is not the engine that users mean.
  if (!running.docker.empty()) return running.docker;
  if (running.sockets.size() == 1) return running.sockets.front();
  if (running.sockets.empty())
    return Error(
        Code::kFailedPrecondition,
        (running.problem.empty() ? "no suitable container engine is running" : running.problem) +
            std::string("; pass --runtime containerd, crio, docker or podman"));
  return Error(Code::kFailedPrecondition,
               "several container engines are running and no kubelet determines which to use (" +
                   base::Join(running.sockets, ", ") + "); pass --runtime or --socket");
}

base::Result<EngineInstall> FindInstall(const EngineOptions& options, const std::string& proc_root,
                                        const std::string& kubelet_dir) {
  EngineInstall install;
  if (options.runtime != "auto" && options.socket.empty()) {
    ASSIGN(install, InstallByName(options, proc_root));
  } else {
    std::string socket = options.socket;
    if (socket.empty()) { ASSIGN(socket, ChooseSocket(FindRunning(proc_root, kubelet_dir))); }
    if (socket == kDockerSocket) {
      // Where systemd listens on the socket, the daemon's process cannot be found through it.
      ASSIGN(install, protocol::engine::RecipeOf("docker"));
    } else {
      ASSIGN(install, protocol::engine::InstallOfSocket(proc_root, socket));
    }
  }
  if (!options.config.empty() && options.config != install.config) {
    install.config = options.config;
    install.in_force.clear();
    install.style = protocol::engine::ConfigStyle::kPlain;
    if (install.engine == protocol::engine::Engine::kContainerd)
      install.drop_in = base::FolderOf(options.config) + "/conf.d/99-penstock.toml";
  }
  if (options.drop_in_given) install.drop_in = options.drop_in;
  if (!options.program.empty()) install.program = options.program;
  for (const std::string* path : {&install.config, &install.drop_in})
    if (!path->empty() && path->front() != '/')
      return Error(Code::kInvalidArgument, "\"" + *path + "\" must be an absolute path");
  return install;
}

}  // namespace penstock::app
