// Collects the facts for `penstock runtime doctor`: files, and the responses of the engines.
#include <algorithm>
#include <cstdlib>

#include <unistd.h>

#include "analysis/doctor/engine_formats.h"
#include "app/penstock/cdi/cdi_files.h"
#include "app/penstock/common/programs.h"
#include "app/penstock/runtime/doctor_verb.h"
#include "base/core/strings.h"
#include "os/core/file.h"
#include "protocol/engine/config_files.h"
#include "protocol/engine/engine_commands.h"
#include "protocol/engine/engine_install.h"
#include "protocol/engine/install_files.h"
#include "protocol/engine/links.h"

namespace penstock::app {

namespace {

using protocol::engine::ConfigFiles;
using protocol::engine::Engine;
using protocol::engine::EngineInstall;
using protocol::engine::SourceFile;

constexpr base::Duration kDaemonPatience =
    std::chrono::seconds(20);  // limit for a daemon that hangs
constexpr char kDriverVersion[] = "/proc/driver/nvidia/version";
constexpr char kEnrootHook[] = "/etc/enroot/hooks.d/98-nvidia.sh";
constexpr char kNvidiaConfig[] = "/etc/nvidia-container-runtime/config.toml";

/// Returns a program's standard output; nothing where the program does not exist, fails or times
/// out.
std::optional<std::string> Answer(const std::vector<std::string>& arguments) {
  const auto outcome = RunFor(arguments, kDaemonPatience);
  if (!outcome.ok() || outcome->status != 0) return std::nullopt;
  return outcome->output;
}

/// Collects one engine's files and responses.
class EngineProbe {
 public:
  EngineProbe(EngineInstall install, ConfigFiles files)
      : install_(std::move(install)), files_(std::move(files)) {}

  analysis::EngineState Run() {
    state_.socket = install_.socket;
    if (!install_.unit.empty())
      state_.restart = base::Join(protocol::engine::RestartCommand(install_), " ");
    // Docker's client reports its daemon's version. The commands of the other engines see what the
    // engine sees (EngineInstall::enter).
    const auto release = analysis::FindRelease(RequestRelease().value_or(""));
    if (release) state_.version = analysis::ToString(*release);
    TakeFiles(release ? release->major : 0);
    state_.facts.major = release ? release->major : 0;
    state_.facts.minor = release ? release->minor : 0;
    TakeEffect();
    switch (install_.engine) {
      case Engine::kContainerd: analysis::TakeContainerdRuntime(state_); break;
      case Engine::kCrio: break;
      case Engine::kDocker:
        TakeGpusHooks();
        TakeRuntime({"docker", "info", "--format", "{{.CgroupDriver}} {{.DefaultRuntime}}"});
        break;
      case Engine::kPodman:
        TakeRuntime({install_.program, "info", "--format",
                     "{{.Host.CgroupManager}} {{.Host.OCIRuntime.Path}}"});
        break;
    }
    return std::move(state_);
  }

 private:
  std::optional<std::string> RequestRelease() {
    if (install_.engine != Engine::kDocker)
      return Answer(protocol::engine::VersionCommand(install_));
    auto answer = Answer({"docker", "version", "--format", "{{.Server.Version}}"});
    if (!answer) state_.problem = "its daemon does not respond, so only its file was checked";
    return answer;
  }

  void TakeFiles(int major) {
    auto gathered = protocol::engine::Gather(install_, files_, {}, major);
    if (gathered.ok()) {
      state_.facts = std::move(gathered->facts);
    } else {
      state_.problem = gathered.error().message();
      state_.facts.engine = install_.engine;
      state_.facts.name = install_.name;
      state_.facts.main.path = install_.config;
    }
    if (install_.engine == Engine::kContainerd &&
        install_.style == protocol::engine::ConfigStyle::kPlain)
      TakeStray(FolderOf(install_.drop_in) + "/*.toml");
    if (install_.engine == Engine::kCrio) TakeStray(FolderOf(install_.config) + "/conf.d/*");
  }

  void TakeGpusHooks() {
    auto folders = protocol::engine::SearchPath("/proc", install_.pid);
    if (folders.empty()) folders = protocol::engine::UsualPath();
    const auto first = [&](std::string_view name) -> std::optional<analysis::GpusHook> {
      for (const std::string& folder : folders) {
        const std::string path = folder + "/" + std::string(name);
        if (files_.Holds(path))
          return analysis::GpusHook{
              path, files_.LinkTarget(path).value_or("").ends_with("penstock-hook")};
      }
      return std::nullopt;
    };
    state_.runtime_hook = first(protocol::engine::kRuntimeHook);
    state_.cdi_hook = first(protocol::engine::kCdiHook);
  }

  void TakeStray(const std::string& pattern) {
    for (const std::string& path : files_.Match(pattern))
      state_.stray.push_back({path, files_.Read(path).value_or(std::nullopt)});
  }

  void TakeEffect() {
    const auto command =
        protocol::engine::EffectCommand(install_, state_.facts.main.text.has_value());
    if (command.empty()) return;
    state_.facts.effective = Answer(command);
    if (!state_.facts.effective)
      state_.problem = "`" + base::Join(command, " ") + "` failed, so only its files were checked";
  }

  /// Runs a command that prints "systemd runc": the control group driver and the low-level runtime.
  void TakeRuntime(const std::vector<std::string>& command) {
    const auto answer = Answer(command);
    if (!answer) return;
    const auto words = base::Split(base::Trim(*answer), ' ');
    state_.systemd_cgroups = words.front() == "systemd";
    state_.low_level = words.back();
  }

  static std::string FolderOf(const std::string& file) { return base::FolderOf(file); }

  EngineInstall install_;
  ConfigFiles files_;
  analysis::EngineState state_;
};

/// Whether a program exists: a path, or a name in a folder of PATH.
bool IsThere(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
  const char* path = ::getenv("PATH");
  const auto folders = base::Split(path == nullptr ? "/usr/sbin:/usr/bin:/sbin:/bin" : path, ':');
  return std::any_of(folders.begin(), folders.end(), [&program](const std::string& folder) {
    return ::access((folder + "/" + program).c_str(), X_OK) == 0;
  });
}

bool IsOwnProgram(const std::string& program) {
  const auto target = os::ReadLink(program);
  return target.ok() && target->find("penstock-runtime") != std::string::npos;
}

/// Parses "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  ..." or "... Open Kernel
/// Module for x86_64  550.54.15".
std::string DriverVersion() {
  const auto text = os::ReadFile(kDriverVersion);
  if (!text.ok()) return "";
  for (const std::string& word : base::Split(base::Split(*text, '\n').front(), ' '))
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  return "";
}

void GatherPrograms(analysis::DoctorFacts& facts) {
  for (const analysis::EngineState& engine : facts.engines) {
    for (const auto& [name, program] : analysis::RuntimesOf(engine.facts).programs) {
      if (!IsThere(program)) facts.absent.insert(program);
      if (IsOwnProgram(program)) facts.own_programs.insert(program);
    }
    if (engine.low_level.empty() || facts.low_level.count(engine.low_level) != 0) continue;
    if (const auto answer = Answer({engine.low_level, "--version"}))
      facts.low_level[engine.low_level] = *answer;
  }
}

/// The engines of this machine: those that listen, and those whose program is installed. Two
/// recipes may describe the same engine.
std::vector<EngineInstall> FindInstalls(std::vector<analysis::UntrustedEngine>& untrusted) {
  std::vector<EngineInstall> installs;
  for (const EngineInstall& recipe : protocol::engine::Recipes()) {
    const auto listening = recipe.socket.empty()
                               ? base::Result<EngineInstall>(recipe)
                               : protocol::engine::InstallOfSocket("/proc", recipe.socket);
    if (!listening.ok() && listening.error().code() == base::Code::kPermissionDenied)
      untrusted.push_back({recipe.name, recipe.socket, listening.error().message()});
    if (!IsThere(recipe.program) && (recipe.socket.empty() || !listening.ok())) continue;
    EngineInstall install = listening.ok() ? *listening : recipe;
    const auto same = [&install](const EngineInstall& other) {
      return other.config == install.config;
    };
    if (std::none_of(installs.begin(), installs.end(), same))
      installs.push_back(std::move(install));
  }
  return installs;
}

void QueryEngines(analysis::DoctorFacts& facts) {
  for (EngineInstall& install : FindInstalls(facts.untrusted))
    if (auto files = ConfigFiles::Open(install.root); files.ok())
      facts.engines.push_back(EngineProbe(std::move(install), *std::move(files)).Run());
}

}  // namespace

analysis::DoctorFacts Gather(const std::vector<std::string>& folders) {
  analysis::DoctorFacts facts;
  facts.folders = folders;
  facts.files = ReadSpecFolders(folders);
  for (const auto& file : facts.files) {
    if (!file.text.ok()) continue;
    if (const auto spec = api::cdi::Parse(*file.text, file.path); spec.ok())
      facts.missing[file.path] = Missing(*spec);
  }
  facts.driver = DriverVersion();
  QueryEngines(facts);
  if (auto text = os::ReadFile(kNvidiaConfig); text.ok())
    facts.nvidia_config = SourceFile{kNvidiaConfig, *std::move(text)};
  if (os::Exists(kEnrootHook))
    facts.enroot = analysis::EnrootHook{kEnrootHook, IsThere("nvidia-container-cli")};
  GatherPrograms(facts);
  return facts;
}

}  // namespace penstock::app
