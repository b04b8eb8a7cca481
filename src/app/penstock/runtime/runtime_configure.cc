// Defines the options: those of `nvidia-ctk runtime configure`, and Penstock's own.
#include "app/penstock/runtime/runtime_configure.h"

#include <iostream>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/penstock/common/programs.h"
#include "base/core/quantity.h"

namespace penstock::app {

using base::Code;
using base::Error;
using protocol::engine::ConfigureOptions;
using protocol::engine::ConfigureResult;
using protocol::engine::Engine;
using protocol::engine::EngineInstall;
using Json = nlohmann::ordered_json;

namespace {

constexpr char kConfigureFooter[] = R"(Examples:
  penstock runtime configure --runtime containerd --cdi.enabled --dry-run   # what would be written, as a diff
  penstock runtime configure --cdi.enabled --no-runtime --restart-mode systemd
  penstock runtime configure --runtime docker --set-as-default --restart-mode systemd    # and `docker run --gpus` works
  penstock runtime configure --runtime crio --nvidia-runtime-path /opt/penstock/penstock-runtime

--runtime: auto (the engine that the kubelet uses), containerd, crio, docker, podman, or a distribution with files of its own: k3s, rke2,
k0s, microk8s, microshift. The smallest change is made: a drop-in file where the engine merges them, else lines in its own file, whose
comments, order and mode are kept. The engine's effective configuration is compared before and after; the engine is restarted only if that
changed and --restart-mode is set; if it does not come up again, the old files are restored. `unconfigure` restores them byte by byte.

docker supports --gpus (compose: driver: nvidia) if it finds nvidia-container-runtime-hook or nvidia-cdi-hook on its PATH when it starts:
links with these names to penstock-hook are created in --gpus-links unless another program has them; for a daemon with another --config only if
--gpus-links is given.

Exit status: 0 configured, or it was already; 1 failed, and nothing has changed: the message says why, and which lines to write manually if
a file cannot be edited safely.)";

constexpr char kUnconfigureFooter[] = R"(Examples:
  penstock runtime unconfigure --dry-run
  penstock runtime unconfigure --runtime containerd --restart-mode systemd
  penstock runtime unconfigure --all --restart-mode systemd     # every engine that was configured here; run this before removing Penstock

Files that no other program changed are restored byte by byte; in other files the added lines are removed, and later changes by others
are kept.

Exit status: 0 undone, or nothing to undo; 1 failed, and nothing has changed.)";

struct ConfigureFlags {
  EngineOptions engine;
  std::string name = "nvidia", path, mode, hook, links = protocol::engine::DesiredLinks().folder;
  bool set_as_default = false, cdi = false, no_runtime = false;
  bool runtime_given = false;  ///< the runtime's name or path was given
  bool links_given = false;    ///< the links' folder was given
};

struct UnconfigureFlags {
  EngineOptions engine;
  bool all = false;
};

int Fail(const std::string& verb, const Error& error) {
  std::cerr << "penstock runtime " << verb << ": " << error.message() << "\n";
  return 1;
}

base::Result<ConfigureOptions> Options(const EngineOptions& flags, const api::NodeConfig& config) {
  ConfigureOptions options;
  options.dry_run = flags.dry_run;
  options.drop_in_wanted = flags.drop_in_given && !flags.drop_in.empty();
  options.state_dir = config.paths.state_dir;
  options.proc_root = config.paths.proc_root;
  if (flags.restart == "systemd") options.restart = protocol::engine::Restart::kSystemd;
  if (flags.restart == "signal") options.restart = protocol::engine::Restart::kSignal;
  if (flags.source == "command") options.source = protocol::engine::Source::kCommand;
  if (flags.source == "file") options.source = protocol::engine::Source::kFile;
  auto patience = base::ParseDuration(flags.timeout);
  if (!patience.ok()) return patience.error().Within("--timeout");
  options.patience = *patience;
  return options;
}

base::Result<protocol::engine::DesiredConfig> DesiredOf(const ConfigureFlags& flags,
                                                        Engine engine) {
  protocol::engine::DesiredConfig desired{.cdi = flags.cdi};
  // podman runs `--runtime PATH` without configuration, and always reads CDI specifications.
  const bool requested = flags.set_as_default || flags.runtime_given;
  if (engine == Engine::kPodman) desired.cdi = true;
  if (flags.no_runtime || (engine == Engine::kPodman && !requested)) return desired;
  std::string path = flags.path;
  if (path.empty()) {
    auto found = FindProgram("penstock-runtime");
    if (!found.ok())
      return found.error().Within("cannot find the program of runtime " + flags.name +
                                  "; pass --nvidia-runtime-path");
    path = *found;
  }
  desired.handlers = {{flags.name, path}};
  if (flags.set_as_default) desired.default_handler = flags.name;
  return desired;
}

constexpr char kHook[] = "penstock-hook";

/// The links for Docker's `--gpus`: penstock-hook beside the given runtime, else beside this
/// program. A daemon with a configuration file of its own may have a PATH of its own as well, so
/// its links require an explicit folder.
std::optional<protocol::engine::DesiredLinks> LinksOf(const ConfigureFlags& flags,
                                                      const EngineInstall& install) {
  if (install.engine != Engine::kDocker || flags.links.empty()) return std::nullopt;
  if (!flags.links_given && install.config != protocol::engine::RecipeOf("docker")->config)
    return std::nullopt;
  protocol::engine::DesiredLinks desired{.program = flags.hook, .folder = flags.links};
  while (desired.folder.size() > 1 && desired.folder.ends_with('/')) desired.folder.pop_back();
  // Scripts for nvidia-ctk name NVIDIA's own hook program; Penstock's links never lead to it.
  if (!desired.program.ends_with(kHook)) desired.program.clear();
  if (desired.program.empty() && !flags.path.empty())
    desired.program = flags.path.substr(0, flags.path.find_last_of('/') + 1) + kHook;
  if (desired.program.empty()) desired.program = FindProgram(kHook).value_or(kHook);
  return desired;
}

protocol::engine::ConfigureProgress Reported(const Common& common) {
  if (common.json) return nullptr;
  return [](const std::string& what) { std::cerr << what << "\n"; };
}

int Configure(const Common& common, const ConfigureFlags& flags) {
  constexpr char kVerb[] = "configure";
  if (flags.mode == "hook" || flags.mode == "oci-hook")
    return Fail(
        kVerb,
        Error(
            Code::kUnimplemented,
            "--config-mode=" + flags.mode +
                ": no hooks are written to /usr/share/containers/oci/hooks.d, because a hook runs "
                "after a container's devices are decided. Omit the option: `penstock runtime "
                "configure --runtime crio` writes a runtime, and CRI-O enables CDI by default"));
  if (flags.no_runtime && (flags.set_as_default || flags.runtime_given || !flags.cdi))
    return Fail(
        kVerb,
        Error(
            Code::kInvalidArgument,
            "--no-runtime configures CDI only: pass --cdi.enabled, and no options of the runtime"));
  const auto config = Resolve(common.settings);
  if (!config.ok()) return Fail(kVerb, config.error());
  auto options = Options(flags.engine, *config);
  if (!options.ok()) return Fail(kVerb, options.error());
  const auto install =
      FindInstall(flags.engine, config->paths.proc_root, config->paths.kubelet_dir);
  if (!install.ok()) return Fail(kVerb, install.error());
  auto desired = DesiredOf(flags, install->engine);
  if (!desired.ok()) return Fail(kVerb, desired.error());
  options->desired = *std::move(desired);
  options->beside = true;
  options->links = LinksOf(flags, *install);
  if (!flags.hook.empty() && (!options->links || options->links->program != flags.hook) &&
      !common.json)
    std::cerr << "penstock runtime: --nvidia-runtime-hook-path " << flags.hook
              << " has no effect: only docker needs a hook, and that is " << kHook << "\n";
  const auto done = protocol::engine::Configure(*install, *options, Reported(common));
  return done.ok() ? ShowConfigured(*install, *done, common, flags.engine.dry_run)
                   : Fail(kVerb, done.error());
}

int Unconfigure(const Common& common, const UnconfigureFlags& flags) {
  constexpr char kVerb[] = "unconfigure";
  const auto config = Resolve(common.settings);
  if (!config.ok()) return Fail(kVerb, config.error());
  const auto options = Options(flags.engine, *config);
  if (!options.ok()) return Fail(kVerb, options.error());
  std::vector<EngineInstall> installs;
  if (flags.all) {
    auto configured = protocol::engine::ConfiguredInstalls(config->paths.state_dir);
    if (!configured.ok()) return Fail(kVerb, configured.error());
    installs = *std::move(configured);
    if (installs.empty() && !common.json) std::cout << "No engine was configured here.\n";
  } else {
    auto install = FindInstall(flags.engine, config->paths.proc_root, config->paths.kubelet_dir);
    if (!install.ok()) return Fail(kVerb, install.error());
    installs.push_back(*std::move(install));
  }
  int status = 0;
  for (const EngineInstall& install : installs) {
    const auto done = protocol::engine::Configure(install, *options, Reported(common));
    const int one = done.ok() ? ShowConfigured(install, *done, common, flags.engine.dry_run)
                              : Fail(kVerb, done.error());
    status = std::max(status, one);
  }
  return status;
}

Json LinksJson(const std::vector<protocol::engine::GpusLink>& links) {
  Json list = Json::array();
  for (const auto& link : links) list.push_back({{"path", link.path}, {"target", link.target}});
  return list;
}

void AddEngineOptions(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--runtime", options.runtime, "container engine or distribution")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--config", options.config, "its configuration file, if not the default one")
      ->type_name("PATH");
  verb.add_option("--socket", options.socket, "its socket, instead of --runtime")
      ->type_name("PATH");
  verb.add_option("--executable-path", options.program,
                  "its program, which prints the effective configuration")
      ->type_name("PATH");
  verb.add_option("--config-source", options.source,
                  "command: ask the engine for its effective configuration, or fail; file: read "
                  "only its files")
      ->check(CLI::IsMember({"command", "file"}));
  verb.add_option("--restart-mode", options.restart,
                  "how to restart it if the effective configuration changed")
      ->check(CLI::IsMember({"systemd", "signal", "none"}))
      ->capture_default_str();
  verb.add_option("--timeout", options.timeout, "how long the restart may take")
      ->type_name("DURATION")
      ->capture_default_str();
  verb.add_flag("--dry-run", options.dry_run, "show the change as a diff without making it");
}

}  // namespace

int ShowConfigured(const EngineInstall& install, const ConfigureResult& done, const Common& common,
                   bool dry_run) {
  if (common.json) {
    Json files = Json::array();
    for (const auto& file : done.change.files) files.push_back(file.path);
    std::cout << Json{{"engine", install.name},
                      {"config", install.config},
                      {"files", files},
                      {"links",
                       {{"made", LinksJson(done.linked)}, {"removed", LinksJson(done.unlinked)}}},
                      {"diff", done.diff},
                      {"restarted", done.restarted},
                      {"remarks", done.remarks},
                      {"dryRun", dry_run}}
                     .dump(2)
              << "\n";
    return 0;
  }
  if (dry_run) std::cout << done.diff;
  if (done.diff.empty())
    std::cout << install.name << ": nothing " << (dry_run ? "would change" : "changed") << "\n";
  if (!dry_run) {
    for (const auto& link : done.unlinked) std::cout << "removed " << link.path << "\n";
    for (const auto& link : done.linked)
      std::cout << "wrote " << link.path << ", a link to " << link.target << "\n";
    for (const auto& file : done.change.files)
      std::cout << (file.to ? file.from ? "changed " : "wrote " : "removed ") << file.path << "\n";
  }
  if (done.restarted) std::cout << install.name << " is running again\n";
  for (const std::string& remark : done.remarks)
    std::cerr << "penstock runtime: " << remark << "\n";
  return 0;
}

void AddRuntimeConfigure(CLI::App& runtime, const Common& common, int& exit_code) {
  auto flags = std::make_shared<ConfigureFlags>();
  CLI::App* verb =
      runtime
          .add_subcommand("configure",
                          "Configure a container engine for CDI and for Penstock's runtime")
          ->fallthrough();
  verb->footer(kConfigureFooter);
  AddEngineOptions(*verb, flags->engine);
  CLI::Option* drop_in =
      verb->add_option("--drop-in-config,--drop-in", flags->engine.drop_in,
                       "Penstock's drop-in file; \"\": none, the engine's own file is edited");
  drop_in->type_name("PATH");
  CLI::Option* name = verb->add_option("--nvidia-runtime-name", flags->name, "name of the runtime")
                          ->type_name("NAME");
  name->capture_default_str();
  CLI::Option* path = verb->add_option(
      "--nvidia-runtime-path,--runtime-path", flags->path,
      "program of the runtime, as the engine sees it [penstock-runtime beside this program]");
  path->type_name("PATH");
  verb->add_flag("--nvidia-set-as-default,--set-as-default", flags->set_as_default,
                 "use this runtime for containers that name none");
  verb->add_flag("--cdi.enabled,--cdi.enable,--enable-cdi", flags->cdi, "enable CDI");
  verb->add_flag("--no-runtime", flags->no_runtime, "configure CDI only, no runtime");
  CLI::Option* links = verb->add_option(
      "--gpus-links", flags->links,
      "docker: the folder on dockerd's PATH for the links that enable --gpus; \"\": no links");
  links->type_name("DIR")->capture_default_str();
  verb->add_option("--nvidia-runtime-hook-path,--oci-hook-path", flags->hook,
                   "docker: target of these links, penstock-hook as the engine sees it [beside the "
                   "runtime, or this program]")
      ->type_name("PATH");
  // Options that scripts for nvidia-ctk may pass and that have no effect here.
  verb->add_option("--config-mode", flags->mode)->group("");
  verb->callback([flags, &common, &exit_code, drop_in, name, path, links] {
    flags->links_given = links->count() > 0;
    flags->engine.drop_in_given = drop_in->count() > 0;
    flags->runtime_given = name->count() > 0 || path->count() > 0;
    exit_code = Configure(common, *flags);
  });
}

void AddRuntimeUnconfigure(CLI::App& runtime, const Common& common, int& exit_code) {
  auto flags = std::make_shared<UnconfigureFlags>();
  CLI::App* verb =
      runtime.add_subcommand("unconfigure", "Undo what `configure` wrote")->fallthrough();
  verb->footer(kUnconfigureFooter);
  AddEngineOptions(*verb, flags->engine);
  verb->add_flag("--all", flags->all, "every engine that was configured on this machine");
  verb->callback([flags, &common, &exit_code] { exit_code = Unconfigure(common, *flags); });
}

}  // namespace penstock::app
