// Which engine is meant: by name, by socket, or the one that the kubelet uses.
#include "app/penstock/runtime_configure.h"
#include "base/core/strings.h"
#include "edge/engine/cri/find.h"
#include "edge/engine/machine_process.h"

namespace penstock::app {

using base::Code;
using base::Error;
using edge::engine::Site;

namespace {

constexpr char kDockerSocket[] = "/run/docker.sock";

Running LookAround(const std::string& proc_root, const std::string& kubelet_dir) {
  auto found = edge::engine::cri::FindSockets(proc_root, kubelet_dir);
  const bool docker = edge::engine::ListenerOf(proc_root, kDockerSocket).ok();
  return {.kubelet = found.kubelet,
          .sockets = std::move(found.paths),
          .docker = docker ? kDockerSocket : "",
          .problem = std::move(found.problem)};
}

/// A recipe by its name; where the engine runs, with what its process says.
base::Result<Site> SiteByName(const EngineOptions& options, const std::string& proc_root) {
  ASSIGN(Site site, edge::engine::RecipeOf(options.runtime));
  if (site.socket.empty() || !options.config.empty()) return site;
  auto seen = edge::engine::SiteOfSocket(proc_root, site.socket);
  if (!seen.ok() || seen->engine != site.engine) return site;
  seen->name = site.name;
  return *std::move(seen);
}

}  // namespace

base::Result<std::string> ChooseSocket(const Running& running) {
  if (running.kubelet && !running.sockets.empty()) return running.sockets.front();
  if (running.kubelet && !running.problem.empty())
    return Error(Code::kFailedPrecondition, running.problem + "; or say --runtime, or --socket");
  // docker brings a containerd of its own along, which is not the one that people mean.
  if (!running.docker.empty()) return running.docker;
  if (running.sockets.size() == 1) return running.sockets.front();
  if (running.sockets.empty())
    return Error(Code::kFailedPrecondition,
                 (running.problem.empty() ? "no container engine runs here that could be meant" : running.problem) +
                     std::string(": say --runtime containerd, crio, docker or podman"));
  return Error(Code::kFailedPrecondition, "several container engines run and no kubelet tells which is meant (" +
                                              base::Join(running.sockets, ", ") + "): say --runtime, or --socket");
}

base::Result<Site> FindSite(const EngineOptions& options, const std::string& proc_root, const std::string& kubelet_dir) {
  Site site;
  if (options.runtime != "auto" && options.socket.empty()) {
    ASSIGN(site, SiteByName(options, proc_root));
  } else {
    std::string socket = options.socket;
    if (socket.empty()) { ASSIGN(socket, ChooseSocket(LookAround(proc_root, kubelet_dir))); }
    if (socket == kDockerSocket) {
      // Where systemd listens for it, nobody can be seen behind the socket.
      ASSIGN(site, edge::engine::RecipeOf("docker"));
    } else {
      ASSIGN(site, edge::engine::SiteOfSocket(proc_root, socket));
    }
  }
  if (!options.config.empty() && options.config != site.config) {
    site.config = options.config;
    site.in_force.clear();
    site.manner = edge::engine::Manner::kPlain;
    if (site.engine == edge::engine::Engine::kContainerd)
      site.drop_in = options.config.substr(0, options.config.find_last_of('/')) + "/conf.d/99-penstock.toml";
  }
  if (options.drop_in_said) site.drop_in = options.drop_in;
  if (!options.program.empty()) site.program = options.program;
  for (const std::string* path : {&site.config, &site.drop_in})
    if (!path->empty() && path->front() != '/') return Error(Code::kInvalidArgument, "\"" + *path + "\" must be an absolute path");
  return site;
}

}  // namespace penstock::app
