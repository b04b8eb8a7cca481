// Defines the options: those of `nvidia-ctk runtime configure`, and Penstock's own.
#include "app/penstock/runtime/runtime_configure.h"

#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "app/penstock/common/programs.h"
#include "backend/all.h"
#include "base/core/json_text.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::app {

using base::Code;
using base::Error;
using base::Result;
using protocol::engine::ConfigureOptions;
using protocol::engine::ConfigureResult;
using protocol::engine::Engine;
using protocol::engine::EngineInstall;

namespace {

using Json = nlohmann::ordered_json;

constexpr char kConfigureExamples[] =
    R"(penstock runtime configure --runtime containerd --cdi.enabled --dry-run   # what would be written, as a diff
penstock runtime configure --cdi.enabled --no-runtime --restart-mode systemd
penstock runtime configure --runtime docker --set-as-default --restart-mode systemd    # and `docker run --gpus` works
penstock runtime configure --runtime docker --vendor amd --restart-mode systemd        # docker run --runtime=amd -e AMD_VISIBLE_DEVICES=0
penstock runtime configure --runtime crio --nvidia-runtime-path /opt/penstock/penstock-runtime)";

constexpr char kConfigureDetails[] =
    R"(--runtime: auto (the engine that the kubelet uses), containerd, crio, docker, podman, or a distribution
with files of its own: k3s, rke2, k0s, microk8s, microshift. The smallest change is made: a drop-in
file where the engine merges them, else lines in its own file, whose comments, order and mode are
kept. The engine's effective configuration is compared before and after; the engine is restarted only
if that changed and --restart-mode is set; if it does not come up again, the old files are restored.
`unconfigure` restores them byte by byte.

docker supports --gpus (compose: driver: nvidia) if it finds nvidia-container-runtime-hook or
nvidia-cdi-hook on its PATH when it starts: links with these names to penstock-hook are created in
--gpus-links unless another program has them; for a daemon with another --config only if --gpus-links
is given.)";

constexpr char kUnconfigureExamples[] =
    R"(penstock runtime unconfigure --dry-run
penstock runtime unconfigure --runtime containerd --restart-mode systemd
penstock runtime unconfigure --all --restart-mode systemd     # every engine that was configured here; run this before removing Penstock)";

constexpr char kUnconfigureDetails[] =
    R"(Files that no other program changed are restored byte by byte; in other files the added lines are
removed, and later changes by others are kept.)";

/// As with nvidia-ctk.
constexpr char kUsualName[] = "nvidia";

struct ConfigureFlags {
  EngineOptions engine;
  std::string name = kUsualName, vendor, path, mode, hook;
  std::string links = protocol::engine::DesiredLinks().folder;
  bool set_as_default = false, cdi = false, no_runtime = false;
  bool name_given = false, path_given = false;
  bool links_given = false;  ///< the links' folder was given

  bool runtime_given() const { return name_given || path_given || !vendor.empty(); }
  /// The name under which the engine is to know the runtime.
  std::string handler() const {
    return vendor.empty() ? name : std::string(backend::FindDialect(vendor)->runtime_handler());
  }
};

struct UnconfigureFlags {
  EngineOptions engine;
  bool all = false;
};

base::Status CheckTimeout(const EngineOptions& flags) {
  const auto patience = base::ParseDuration(flags.timeout);
  return patience.ok() ? base::Status() : patience.error().Within("--timeout");
}

Result<ConfigureOptions> Options(const EngineOptions& flags, const api::NodeConfig& config) {
  ConfigureOptions options;
  options.dry_run = flags.dry_run;
  options.drop_in_wanted = flags.drop_in_given && !flags.drop_in.empty();
  options.state_dir = config.paths.state_dir;
  options.proc_root = config.paths.proc_root;
  if (flags.restart == "systemd") options.restart = protocol::engine::Restart::kSystemd;
  if (flags.restart == "signal") options.restart = protocol::engine::Restart::kSignal;
  if (flags.source == "command") options.source = protocol::engine::Source::kCommand;
  if (flags.source == "file") options.source = protocol::engine::Source::kFile;
  ASSIGN(options.patience, base::ParseDuration(flags.timeout));
  return options;
}

Result<protocol::engine::DesiredConfig> DesiredOf(const ConfigureFlags& flags, Engine engine) {
  protocol::engine::DesiredConfig desired{.cdi = flags.cdi};
  // podman runs `--runtime PATH` without configuration, and always reads CDI specifications.
  const bool requested = flags.set_as_default || flags.runtime_given();
  if (engine == Engine::kPodman) desired.cdi = true;
  if (flags.no_runtime || (engine == Engine::kPodman && !requested)) return desired;
  std::string path = flags.path;
  if (path.empty()) {
    auto found = FindProgram("penstock-runtime");
    if (!found.ok())
      return found.error().Within("cannot find the program of runtime " + flags.handler() +
                                  "; pass --nvidia-runtime-path");
    path = *found;
  }
  desired.handlers = {{flags.handler(), path}};
  if (flags.set_as_default) desired.default_handler = flags.handler();
  return desired;
}

constexpr char kHook[] = "penstock-hook";

/// The links for Docker's `--gpus`, which is for NVIDIA's devices: penstock-hook beside the given
/// runtime, else beside this program. A daemon with a configuration file of its own may have a PATH
/// of its own as well, so its links require an explicit folder.
std::optional<protocol::engine::DesiredLinks> LinksOf(const ConfigureFlags& flags,
                                                      const EngineInstall& install) {
  if (install.engine != Engine::kDocker || flags.links.empty()) return std::nullopt;
  const bool other_vendor = !flags.vendor.empty() && flags.handler() != kUsualName;
  if (!flags.links_given &&
      (other_vendor || install.config != protocol::engine::RecipeOf("docker")->config))
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
  if (common.json()) return nullptr;
  return [](const std::string& what) { std::cerr << what << "\n"; };
}

base::Status CheckConfigure(const ConfigureFlags& flags) {
  if (flags.no_runtime && (flags.set_as_default || flags.runtime_given() || !flags.cdi))
    return Error(
        Code::kInvalidArgument,
        "--no-runtime configures CDI only: pass --cdi.enabled, and no options of the runtime");
  if (flags.name_given && !flags.vendor.empty())
    return Error(Code::kInvalidArgument,
                 "--vendor and --nvidia-runtime-name both name the runtime: pass one of them");
  return CheckTimeout(flags.engine);
}

/// Those whose users know a runtime.
std::vector<std::string> VendorsWithRuntime() {
  std::vector<std::string> names;
  for (const device::Dialect* dialect : backend::Dialects())
    if (!dialect->runtime_handler().empty()) names.emplace_back(dialect->vendor());
  return names;
}

Result<Shown> Configure(const Common& common, const ConfigureFlags& flags) {
  if (flags.mode == "hook" || flags.mode == "oci-hook")
    return Error(
        Code::kUnimplemented,
        "--config-mode=" + flags.mode +
            ": no hooks are written to /usr/share/containers/oci/hooks.d, because a hook runs "
            "after a container's devices are decided. Omit the option: `penstock runtime configure "
            "--runtime crio` writes a runtime, and CRI-O enables CDI by default");
  ASSIGN(const auto config, Resolve(common.settings));
  ASSIGN(auto options, Options(flags.engine, config));
  ASSIGN(const auto install,
         FindInstall(flags.engine, config.paths.proc_root, config.paths.kubelet_dir));
  ASSIGN(options.desired, DesiredOf(flags, install.engine));
  options.beside = true;
  options.links = LinksOf(flags, install);
  if (!flags.hook.empty() && (!options.links || options.links->program != flags.hook) &&
      !common.json())
    std::cerr << "penstock runtime: --nvidia-runtime-hook-path " << flags.hook
              << " has no effect: only docker needs a hook, and that is " << kHook << "\n";
  ASSIGN(const auto done, protocol::engine::Configure(install, options, Reported(common)));
  return Shown(ShowConfigured(install, done, common, flags.engine.dry_run));
}

/// Undoes each engine even where another one fails. As JSON a list where there are several.
Result<Shown> Unconfigure(const Common& common, const UnconfigureFlags& flags) {
  ASSIGN(const auto config, Resolve(common.settings));
  ASSIGN(const auto options, Options(flags.engine, config));
  std::vector<EngineInstall> installs;
  if (flags.all) {
    ASSIGN(installs, protocol::engine::ConfiguredInstalls(config.paths.state_dir));
    if (installs.empty() && !common.json()) return Shown("No engine was configured here.");
  } else {
    ASSIGN(EngineInstall install,
           FindInstall(flags.engine, config.paths.proc_root, config.paths.kubelet_dir));
    installs.push_back(std::move(install));
  }
  std::vector<std::string> texts;
  int status = command::kDone;
  for (const EngineInstall& install : installs) {
    const auto done = protocol::engine::Configure(install, options, Reported(common));
    if (done.ok()) {
      texts.push_back(ShowConfigured(install, *done, common, flags.engine.dry_run));
    } else {
      std::cerr << "penstock runtime unconfigure: " << done.error().message() << "\n";
      status = command::kFailed;
    }
  }
  if (!common.json()) return Shown(base::Join(texts, ""), status);
  // An object, as in 0.1.0, where only one engine was configured.
  return Shown(texts.size() == 1 ? texts.front() : "[" + base::Join(texts, ",") + "]", status);
}

Json LinksJson(const std::vector<protocol::engine::GpusLink>& links) {
  Json list = Json::array();
  for (const auto& link : links) list.push_back({{"path", link.path}, {"target", link.target}});
  return list;
}

std::vector<command::Option> EngineOptionsOf(EngineOptions& options) {
  return {
      Value("--runtime", &options.runtime, "NAME", "container engine or distribution [auto]"),
      Value("--config", &options.config, "PATH", "its configuration file, if not the default one"),
      Value("--socket", &options.socket, "PATH", "its socket, instead of --runtime"),
      Value("--executable-path", &options.program, "PATH",
            "its program, which prints the effective configuration"),
      Value("--config-source", &options.source, "SOURCE",
            "command: ask the engine for its effective configuration, or fail; file: read only its "
            "files")
          .OneOf({"command", "file"}),
      Value("--restart-mode", &options.restart, "MODE",
            "how to restart it if the effective configuration changed: systemd, signal or none "
            "[none]")
          .OneOf({"systemd", "signal", "none"}),
      Value("--timeout", &options.timeout, "DURATION", "how long the restart may take [2m]"),
      Flag("--dry-run", &options.dry_run, "show the change as a diff without making it")};
}

std::string JsonOf(const EngineInstall& install, const ConfigureResult& done, bool dry_run) {
  Json files = Json::array();
  for (const auto& file : done.change.files) files.push_back(file.path);
  const Json tree = {
      {"engine", install.name},
      {"config", install.config},
      {"files", files},
      {"links", {{"made", LinksJson(done.linked)}, {"removed", LinksJson(done.unlinked)}}},
      {"diff", done.diff},
      {"restarted", done.restarted},
      {"remarks", done.remarks},
      {"dryRun", dry_run}};
  return base::JsonText(tree);
}

}  // namespace

std::string ShowConfigured(const EngineInstall& install, const ConfigureResult& done,
                           const Common& common, bool dry_run) {
  if (common.json()) return JsonOf(install, done, dry_run);
  std::string text = dry_run ? done.diff : "";
  if (done.diff.empty())
    text += install.name + ": nothing " + (dry_run ? "would change" : "changed") + "\n";
  if (!dry_run) {
    for (const auto& link : done.unlinked) text += "removed " + link.path + "\n";
    for (const auto& link : done.linked)
      text += "wrote " + link.path + ", a link to " + link.target + "\n";
    for (const auto& file : done.change.files)
      text += (file.to ? file.from ? "changed " : "wrote " : "removed ") + file.path + "\n";
  }
  if (done.restarted) text += install.name + " is running again\n";
  for (const std::string& remark : done.remarks)
    std::cerr << "penstock runtime: " << remark << "\n";
  return text;
}

Verb RuntimeConfigureVerb(const Common& common) {
  const auto flags = std::make_shared<ConfigureFlags>();
  Verb verb{
      .name = "configure",
      .summary = "Configure a container engine for CDI and for Penstock's runtime",
      .examples = kConfigureExamples,
      .details = kConfigureDetails,
      .exit_status =
          "0 configured, or it was already; 1 failed, and nothing has changed: the message says "
          "why, and which lines to write manually if a file cannot be edited safely; 2 usage error",
      .options = EngineOptionsOf(flags->engine),
      .formats = {"text", "json", "yaml", "jsonpath=TEMPLATE"},
      .check = [flags] { return CheckConfigure(*flags); },
      .show = [flags, &common] { return Configure(common, *flags); }};
  const std::vector<command::Option> more = {
      Value("--drop-in-config,--drop-in", &flags->engine.drop_in, "PATH",
            "Penstock's drop-in file; \"\": none, the engine's own file is edited")
          .Given(&flags->engine.drop_in_given),
      Value("--vendor", &flags->vendor, "VENDOR",
            "name the runtime as this vendor's tools do; under any name it serves the variables of "
            "all vendors. One of")
          .OneOf(VendorsWithRuntime()),
      Value("--nvidia-runtime-name,--runtime-name", &flags->name, "NAME",
            "name of the runtime [nvidia]")
          .Given(&flags->name_given),
      Value("--nvidia-runtime-path,--runtime-path", &flags->path, "PATH",
            "program of the runtime, as the engine sees it [penstock-runtime beside this program]")
          .Given(&flags->path_given),
      Flag("--nvidia-set-as-default,--set-as-default", &flags->set_as_default,
           "use this runtime for containers that name none"),
      Flag("--cdi.enabled,--cdi.enable,--enable-cdi", &flags->cdi, "enable CDI"),
      Flag("--no-runtime", &flags->no_runtime, "configure CDI only, no runtime"),
      Value("--gpus-links", &flags->links, "DIR",
            "docker: the folder on dockerd's PATH for the links that enable --gpus; \"\": no links "
            "[" +
                flags->links + "]")
          .Given(&flags->links_given),
      Value("--nvidia-runtime-hook-path,--oci-hook-path", &flags->hook, "PATH",
            "docker: target of these links, penstock-hook as the engine sees it [beside the "
            "runtime, or this program]"),
      // Scripts for nvidia-ctk may pass this, without effect.
      Value("--config-mode", &flags->mode, "MODE").Hidden()};
  verb.options.insert(verb.options.end(), more.begin(), more.end());
  return verb;
}

Verb RuntimeUnconfigureVerb(const Common& common) {
  const auto flags = std::make_shared<UnconfigureFlags>();
  Verb verb{.name = "unconfigure",
            .summary = "Undo what `configure` wrote",
            .examples = kUnconfigureExamples,
            .details = kUnconfigureDetails,
            .exit_status =
                "0 undone, or nothing to undo; 1 failed, and nothing has changed; 2 usage error",
            .options = EngineOptionsOf(flags->engine),
            .formats = {"text", "json", "yaml", "jsonpath=TEMPLATE"},
            .check = [flags] { return CheckTimeout(flags->engine); },
            .show = [flags, &common] { return Unconfigure(common, *flags); }};
  verb.options.push_back(
      Flag("--all", &flags->all, "every engine that was configured on this machine"));
  return verb;
}

}  // namespace penstock::app
