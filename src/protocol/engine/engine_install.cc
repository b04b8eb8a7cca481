// Defines the recipes as the distributions document them; what a process shows takes precedence.
#include "protocol/engine/engine_install.h"

#include "base/core/strings.h"

namespace penstock::protocol::engine {
namespace {

EngineInstall Rancher(const std::string& name, const std::string& unit) {
  const std::string folder = "/var/lib/rancher/" + name + "/agent/etc/containerd/";
  return {.name = name,
          .engine = Engine::kContainerd,
          .style = ConfigStyle::kTemplated,
          .socket = "/run/k3s/containerd/containerd.sock",
          .config = folder + "config.toml",
          .drop_in = folder + "config-v3.toml.d/99-penstock.toml",
          .template_file = folder + "config.toml.tmpl",
          .program = "/var/lib/rancher/" + name + "/data/current/bin/containerd",
          .unit = unit};
}

EngineInstall CrioAs(const std::string& name) {
  return {.name = name,
          .engine = Engine::kCrio,
          .socket = "/run/crio/crio.sock",
          .config = "/etc/crio/crio.conf",
          .drop_in = "/etc/crio/crio.conf.d/99-penstock.toml",
          .program = "crio",
          .unit = "crio.service"};
}

std::vector<EngineInstall> MakeRecipes() {
  return {
      // kind's nodes use this one as well.
      {.name = "containerd",
       .engine = Engine::kContainerd,
       .socket = "/run/containerd/containerd.sock",
       .config = "/etc/containerd/config.toml",
       .drop_in = "/etc/containerd/conf.d/99-penstock.toml",
       .program = "containerd",
       .unit = "containerd.service"},
      // docs.k3s.io/advanced, docs.rke2.io/advanced: "Configuring containerd".
      Rancher("k3s", "k3s.service"),
      Rancher("rke2", "rke2-agent.service"),
      // docs.k0sproject.io/stable/runtime: "k0s managed dynamic runtime configuration".
      {.name = "k0s",
       .engine = Engine::kContainerd,
       .style = ConfigStyle::kMerged,
       .socket = "/run/k0s/containerd.sock",
       .config = "/etc/k0s/containerd.toml",
       .drop_in = "/etc/k0s/containerd.d/99-penstock.toml",
       .program = "/var/lib/k0s/bin/containerd",
       .unit = "k0sworker.service"},
      // microk8s.io/docs/configuring-services: args/containerd-template.toml becomes
      // args/containerd.toml.
      {.name = "microk8s",
       .engine = Engine::kContainerd,
       .style = ConfigStyle::kCopied,
       .socket = "/var/snap/microk8s/common/run/containerd.sock",
       .config = "/var/snap/microk8s/current/args/containerd-template.toml",
       .in_force = "/var/snap/microk8s/current/args/containerd.toml",
       .program = "/snap/microk8s/current/bin/containerd",
       .unit = "snap.microk8s.daemon-containerd.service"},
      CrioAs("crio"),
      CrioAs("microshift"),
      {.name = "docker",
       .engine = Engine::kDocker,
       .socket = "/run/docker.sock",
       .config = "/etc/docker/daemon.json",
       .program = "dockerd",
       .unit = "docker.service"},
      {.name = "podman",
       .engine = Engine::kPodman,
       .config = "/etc/containers/containers.conf",
       .drop_in = "/etc/containers/containers.conf.d/99-penstock.conf",
       .program = "podman"},
  };
}

std::optional<Engine> EngineOf(const std::string& name) {
  if (name == "containerd") return Engine::kContainerd;
  if (name == "crio") return Engine::kCrio;
  if (name == "dockerd" || name == "cri-dockerd") return Engine::kDocker;
  return std::nullopt;
}

/// Returns the last value of one of these flags.
std::string ArgumentOf(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& flags) {
  std::string value;
  for (std::size_t i = 1; i < arguments.size(); ++i)
    for (const std::string& flag : flags) {
      if (arguments[i] == flag && i + 1 < arguments.size()) value = arguments[i + 1];
      if (arguments[i].starts_with(flag + "=")) value = arguments[i].substr(flag.size() + 1);
    }
  return value;
}

/// "/run" and "/var/run" are the same folder everywhere.
std::string Plain(const std::string& path) {
  return path.starts_with("/var/run/") ? path.substr(4) : path;
}

EngineInstall BestRecipe(Engine engine, const std::string& config, const std::string& socket) {
  const EngineInstall* best = nullptr;
  for (const EngineInstall& recipe : Recipes()) {
    if (recipe.engine != engine) continue;
    const bool by_file = !config.empty() && (recipe.config == config || recipe.in_force == config);
    const bool by_socket = Plain(recipe.socket) == Plain(socket);
    if (by_file) return recipe;
    // Two recipes share a socket: the file distinguishes them, and only these have files elsewhere.
    if (best == nullptr || (by_socket && Plain(best->socket) != Plain(socket))) best = &recipe;
  }
  return *best;
}

/// Sets the files of an engine whose configuration file is in no recipe.
void TakeConfig(EngineInstall& install, const std::string& config) {
  if (config.empty() || config == install.config || config == install.in_force) return;
  install = {.name = std::string(Name(install.engine)),
             .engine = install.engine,
             .socket = install.socket,
             .config = config,
             .drop_in = install.drop_in,
             .program = install.program,
             .unit = install.unit};
  if (install.engine == Engine::kContainerd)
    install.drop_in = base::FolderOf(config) + "/conf.d/99-penstock.toml";
}

/// Returns the service among the control groups of a process.
std::string UnitOf(const std::vector<std::string>& cgroups) {
  for (const std::string& cgroup : cgroups)
    for (const std::string& part : base::Split(cgroup, '/'))
      if (part.ends_with(".service")) return part;
  return "";
}

}  // namespace

const std::vector<EngineInstall>& Recipes() {
  static const std::vector<EngineInstall> kRecipes = MakeRecipes();
  return kRecipes;
}

base::Result<EngineInstall> RecipeOf(std::string_view name) {
  std::vector<std::string> names;
  for (const EngineInstall& recipe : Recipes()) {
    if (recipe.name == name) return recipe;
    names.push_back(recipe.name);
  }
  return Error(Code::kInvalidArgument, "\"" + std::string(name) + "\" is not a known engine: " +
                                           base::Join(names, ", ") + " are known");
}

base::Result<EngineInstall> InstallOfProcess(const MachineProcess& process,
                                             const std::string& socket) {
  const auto engine = EngineOf(process.name);
  if (!engine)
    return Error(Code::kFailedPrecondition,
                 "the process at " + socket + " is " + process.program +
                     ", which is not containerd, crio or dockerd: pass --runtime and --config");
  const std::string config = ArgumentOf(
      process.arguments, *engine == Engine::kDocker ? std::vector<std::string>{"--config-file"}
                                                    : std::vector<std::string>{"--config", "-c"});
  EngineInstall install = BestRecipe(*engine, config, socket);
  TakeConfig(install, config);
  if (process.name != "cri-dockerd") {
    install.socket = socket;
    // A program with several functions is run as in the recipe: by its own name.
    if (base::LeafOf(process.program) == process.name) install.program = process.program;
    const std::string unit = UnitOf(process.cgroups);
    install.supervised = !unit.empty();
    if (install.supervised) install.unit = unit;
  }
  return install;
}

base::Result<EngineInstall> InstallOfSocket(const std::string& proc_root,
                                            const std::string& socket) {
  ASSIGN(const pid_t pid, ListenerOf(proc_root, socket));
  if (pid == 0)
    return Error(Code::kFailedPrecondition,
                 "the process that listens at " + socket +
                     " cannot be determined from here: pass --runtime and --config");
  auto process = Identify(proc_root, pid);
  if (!process.ok())
    return Error(process.error().code(),
                 "the process at " + socket + " is not trusted: " + process.error().message());
  ASSIGN(EngineInstall install, InstallOfProcess(*process, WithoutMachineFiles(proc_root, socket)));
  install.pid = pid;
  if (!process->sees_our_files) SeeAsTheMachine(install, proc_root);
  return install;
}

std::string SocketHere(const EngineInstall& install) {
  return install.root == "/" ? install.socket : install.root + install.socket;
}

void SeeAsTheMachine(EngineInstall& install, const std::string& proc_root) {
  const std::string files = MachineFiles(proc_root);
  if (files.empty()) return;
  install.root = files;
  install.enter = EnterMachine(proc_root);
}

}  // namespace penstock::protocol::engine
