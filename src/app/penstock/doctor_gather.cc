// What `penstock runtime doctor` knows of this machine: files, and what engines answer when they are asked.
#include <algorithm>
#include <cstdlib>

#include <unistd.h>

#include "app/penstock/cdi_files.h"
#include "app/penstock/doctor.h"
#include "app/penstock/engine_formats.h"
#include "app/penstock/programs.h"
#include "base/core/strings.h"
#include "edge/engine/asking.h"
#include "edge/engine/config_files.h"
#include "edge/engine/links.h"
#include "edge/engine/site.h"
#include "edge/engine/site_files.h"
#include "os/core/file.h"

namespace penstock::app {

namespace {

using edge::engine::ConfigFiles;
using edge::engine::Engine;
using edge::engine::Site;
using edge::engine::SourceFile;

constexpr base::Duration kPatience = std::chrono::seconds(20);  // a daemon that hangs must not hang us
constexpr char kDriverVersion[] = "/proc/driver/nvidia/version";
constexpr char kEnrootHook[] = "/etc/enroot/hooks.d/98-nvidia.sh";
constexpr char kNvidiaConfig[] = "/etc/nvidia-container-runtime/config.toml";

/// What a program writes to its standard output; nothing where it is not there, fails or takes too long.
std::optional<std::string> Answer(const std::vector<std::string>& arguments) {
  const auto outcome = RunFor(arguments, kPatience);
  if (!outcome.ok() || outcome->status != 0) return std::nullopt;
  return outcome->output;
}

/// One engine's files and answers.
class EngineAsker {
 public:
  EngineAsker(Site site, ConfigFiles files) : site_(std::move(site)), files_(std::move(files)) {}

  EngineState Ask() {
    state_.socket = site_.socket;
    state_.restart = base::Join(edge::engine::RestartCommand(site_), " ");
    // docker's and podman's own programs know what their daemons are; engines of the kubelet are asked where they live.
    const auto release = FindRelease(AskForRelease().value_or(""));
    if (release) state_.version = ToString(*release);
    TakeFiles(release ? release->major : 0);
    state_.facts.major = release ? release->major : 0;
    state_.facts.minor = release ? release->minor : 0;
    TakeEffect();
    switch (site_.engine) {
      case Engine::kContainerd: TakeContainerdRuntime(state_); break;
      case Engine::kCrio: break;
      case Engine::kDocker:
        TakeGpusHooks();
        TakeRuntime({"docker", "info", "--format", "{{.CgroupDriver}} {{.DefaultRuntime}}"});
        break;
      case Engine::kPodman: TakeRuntime({site_.program, "info", "--format", "{{.Host.CgroupManager}} {{.Host.OCIRuntime.Path}}"}); break;
    }
    return std::move(state_);
  }

 private:
  std::optional<std::string> AskForRelease() {
    if (site_.engine != Engine::kDocker) return Answer(edge::engine::VersionCommand(site_));
    auto answer = Answer({"docker", "version", "--format", "{{.Server.Version}}"});
    if (!answer) state_.problem = "its daemon does not answer, so that only its file is judged";
    return answer;
  }

  void TakeFiles(int major) {
    auto gathered = edge::engine::Gather(site_, files_, {}, major);
    if (gathered.ok()) {
      state_.facts = std::move(gathered->facts);
    } else {
      state_.problem = gathered.error().message();
      state_.facts.engine = site_.engine;
      state_.facts.name = site_.name;
      state_.facts.main.path = site_.config;
    }
    if (site_.engine == Engine::kContainerd && site_.manner == edge::engine::Manner::kPlain) TakeStray(FolderOf(site_.drop_in) + "/*.toml");
    if (site_.engine == Engine::kCrio) TakeStray(FolderOf(site_.config) + "/conf.d/*");
  }

  void TakeGpusHooks() {
    auto folders = edge::engine::SearchPath("/proc", site_.pid);
    if (folders.empty()) folders = edge::engine::UsualPath();
    const auto first = [&](std::string_view name) -> std::optional<GpusHook> {
      for (const std::string& folder : folders) {
        const std::string path = folder + "/" + std::string(name);
        if (files_.Holds(path)) return GpusHook{path, files_.LinkTarget(path).value_or("").ends_with("penstock-hook")};
      }
      return std::nullopt;
    };
    state_.runtime_hook = first(edge::engine::kRuntimeHook);
    state_.cdi_hook = first(edge::engine::kCdiHook);
  }

  void TakeStray(const std::string& pattern) {
    for (const std::string& path : files_.Match(pattern)) state_.stray.push_back({path, files_.Read(path).value_or(std::nullopt)});
  }

  void TakeEffect() {
    const auto command = edge::engine::EffectCommand(site_, state_.facts.main.text.has_value());
    if (command.empty()) return;
    state_.facts.effective = Answer(command);
    if (!state_.facts.effective) state_.problem = "`" + base::Join(command, " ") + "` fails, so that only its files are judged";
  }

  /// Asks for "systemd runc": how it makes control groups, and its low-level runtime.
  void TakeRuntime(const std::vector<std::string>& command) {
    const auto answer = Answer(command);
    if (!answer) return;
    const auto words = base::Split(base::Trim(*answer), ' ');
    state_.systemd_cgroups = words.front() == "systemd";
    state_.low_level = words.back();
  }

  static std::string FolderOf(const std::string& file) { return file.substr(0, file.find_last_of('/')); }

  Site site_;
  ConfigFiles files_;
  EngineState state_;
};

/// Whether a program is there: a path, or a name among the folders of PATH.
bool IsThere(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
  const char* path = ::getenv("PATH");
  const auto folders = base::Split(path == nullptr ? "/usr/sbin:/usr/bin:/sbin:/bin" : path, ':');
  return std::any_of(folders.begin(), folders.end(),
                     [&program](const std::string& folder) { return ::access((folder + "/" + program).c_str(), X_OK) == 0; });
}

bool IsOurs(const std::string& program) {
  const auto target = os::ReadLink(program);
  return target.ok() && target->find("penstock-runtime") != std::string::npos;
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  ...", also "... Open Kernel Module for x86_64  550.54.15".
std::string DriverVersion() {
  const auto text = os::ReadFile(kDriverVersion);
  if (!text.ok()) return "";
  for (const std::string& word : base::Split(base::Split(*text, '\n').front(), ' '))
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return "";
}

void GatherPrograms(DoctorFacts& facts) {
  for (const EngineState& engine : facts.engines) {
    for (const auto& [name, program] : RuntimesOf(engine.facts).programs) {
      if (!IsThere(program)) facts.absent.insert(program);
      if (IsOurs(program)) facts.ours.insert(program);
    }
    if (engine.low_level.empty() || facts.low_level.count(engine.low_level) != 0) continue;
    if (const auto answer = Answer({engine.low_level, "--version"})) facts.low_level[engine.low_level] = *answer;
  }
}

/// The engines of this machine: those that listen, and those whose program lies where it is looked for. Two recipes may be one engine.
std::vector<Site> FindSites(std::vector<UntrustedEngine>& untrusted) {
  std::vector<Site> sites;
  for (const Site& recipe : edge::engine::Recipes()) {
    const auto listening = recipe.socket.empty() ? base::Result<Site>(recipe) : edge::engine::SiteOfSocket("/proc", recipe.socket);
    if (!listening.ok() && listening.error().code() == base::Code::kPermissionDenied)
      untrusted.push_back({recipe.name, recipe.socket, listening.error().message()});
    if (!IsThere(recipe.program) && (recipe.socket.empty() || !listening.ok())) continue;
    Site site = listening.ok() ? *listening : recipe;
    const auto same = [&site](const Site& other) { return other.config == site.config; };
    if (std::none_of(sites.begin(), sites.end(), same)) sites.push_back(std::move(site));
  }
  return sites;
}

void AskEngines(DoctorFacts& facts) {
  for (Site& site : FindSites(facts.untrusted))
    if (auto files = ConfigFiles::Open(site.root); files.ok())
      facts.engines.push_back(EngineAsker(std::move(site), *std::move(files)).Ask());
}

}  // namespace

DoctorFacts Gather(const std::vector<std::string>& folders) {
  DoctorFacts facts;
  facts.folders = folders;
  facts.files = ReadSpecFolders(folders);
  for (const auto& file : facts.files) {
    if (!file.text.ok()) continue;
    if (const auto spec = api::cdi::Parse(*file.text, file.path); spec.ok()) facts.missing[file.path] = Missing(*spec);
  }
  facts.driver = DriverVersion();
  AskEngines(facts);
  if (auto text = os::ReadFile(kNvidiaConfig); text.ok()) facts.nvidia_config = SourceFile{kNvidiaConfig, *std::move(text)};
  if (os::Exists(kEnrootHook)) facts.enroot = EnrootHook{kEnrootHook, IsThere("nvidia-container-cli")};
  GatherPrograms(facts);
  return facts;
}

}  // namespace penstock::app
