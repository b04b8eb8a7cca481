// What `penstock runtime doctor` knows of this machine: files, and what engines answer when they are asked.
#include <algorithm>
#include <cstdlib>

#include <unistd.h>

#include "app/penstock/cdi_files.h"
#include "app/penstock/doctor.h"
#include "app/penstock/engine_formats.h"
#include "app/penstock/programs.h"
#include "base/core/strings.h"
#include "edge/engine/config_files.h"
#include "edge/engine/site.h"
#include "os/core/file.h"

namespace penstock::app {

namespace {

using edge::engine::ConfigFiles;
using edge::engine::Engine;
using edge::engine::Site;
using edge::engine::SourceFile;

constexpr base::Duration kPatience = std::chrono::seconds(20);  // a daemon that hangs must not hang us
constexpr char kDriverVersion[] = "/proc/driver/nvidia/version";
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
    edge::engine::Facts& facts = state_.facts;
    facts.engine = site_.engine;
    facts.manner = site_.manner;
    facts.name = site_.name;
    facts.main = Read(site_.in_force.empty() ? site_.config : site_.in_force);
    facts.drop_in = Read(site_.drop_in);
    facts.template_file = Read(site_.template_file);
    switch (site_.engine) {
      case Engine::kContainerd: AskContainerd(); break;
      case Engine::kCrio: AskCrio(); break;
      case Engine::kDocker: AskDocker(); break;
      case Engine::kPodman: AskPodman(); break;
    }
    return std::move(state_);
  }

 private:
  SourceFile Read(const std::string& path) const {
    if (path.empty()) return {};
    auto text = files_.Read(path);
    return {path, text.ok() ? *std::move(text) : std::nullopt};
  }

  std::vector<SourceFile> ReadMatching(const std::string& pattern) const {
    std::vector<SourceFile> found;
    for (const std::string& path : files_.Match(pattern)) found.push_back(Read(path));
    return found;
  }

  /// A question to the engine's own program, which sees what the engine sees.
  std::optional<std::string> AskProgram(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = site_.enter;
    command.push_back(site_.program);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return Answer(command);
  }

  /// The release among the words of the answer, into the facts as well.
  void TakeRelease(const std::optional<std::string>& answer) {
    const auto release = answer ? FindRelease(*answer) : std::nullopt;
    if (!release) return;
    state_.version = ToString(*release);
    state_.facts.major = release->major;
    state_.facts.minor = release->minor;
  }

  /// "systemd runc": how it makes control groups, and its low-level runtime.
  void TakeRuntime(const std::optional<std::string>& answer) {
    if (!answer) return;
    const auto words = base::Split(base::Trim(*answer), ' ');
    state_.systemd_cgroups = words.front() == "systemd";
    state_.low_level = words.back();
  }

  /// The files that the main file imports, patterns relative to its folder.
  std::vector<SourceFile> ReadImports() const {
    const SourceFile& main = state_.facts.main;
    std::vector<SourceFile> files;
    const auto document = edge::engine::Read(edge::engine::Format::kToml, main.text.value_or(""), main.path);
    const base::Value* imports = document.ok() ? document->Find("imports") : nullptr;
    if (imports == nullptr || !imports->list) return files;
    for (const base::Value& pattern : *imports->list) {
      const bool absolute = pattern.text.starts_with('/');
      auto more = ReadMatching(absolute ? pattern.text : FolderOf(main.path) + "/" + pattern.text);
      files.insert(files.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
    return files;
  }

  void AskContainerd() {
    state_.facts.imported = ReadImports();
    if (site_.manner == edge::engine::Manner::kPlain) state_.stray = ReadMatching(FolderOf(site_.drop_in) + "/*.toml");
    TakeRelease(AskProgram({"--version"}));
    state_.facts.effective = AskProgram({"--config", state_.facts.main.path, "config", "dump"});
    if (!state_.facts.effective) state_.problem = "`" + site_.program + " config dump` fails, so that only its files are judged";
    TakeContainerdRuntime(state_);
  }

  void AskCrio() {
    state_.facts.imported = ReadMatching(FolderOf(site_.drop_in) + "/*");
    state_.stray = ReadMatching("/etc/crio/conf.d/*");
    TakeRelease(AskProgram({"--version"}));
    state_.facts.effective = AskProgram({"status", "config"});
    if (!state_.facts.effective) state_.facts.effective = AskProgram({"config"});
  }

  void AskDocker() {
    TakeRelease(Answer({"docker", "version", "--format", "{{.Server.Version}}"}));
    if (state_.version.empty()) state_.problem = "its daemon does not answer, so that only its file is judged";
    TakeRuntime(Answer({"docker", "info", "--format", "{{.CgroupDriver}} {{.DefaultRuntime}}"}));
  }

  void AskPodman() {
    TakeRelease(AskProgram({"--version"}));
    TakeRuntime(AskProgram({"info", "--format", "{{.Host.CgroupManager}} {{.Host.OCIRuntime.Path}}"}));
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
std::vector<Site> FindSites() {
  std::vector<Site> sites;
  for (const Site& recipe : edge::engine::Recipes()) {
    const auto listening = recipe.socket.empty() ? base::Result<Site>(recipe) : edge::engine::SiteOfSocket("/proc", recipe.socket);
    if (!IsThere(recipe.program) && (recipe.socket.empty() || !listening.ok())) continue;
    Site site = listening.ok() ? *listening : recipe;
    const auto same = [&site](const Site& other) { return other.config == site.config; };
    if (std::none_of(sites.begin(), sites.end(), same)) sites.push_back(std::move(site));
  }
  return sites;
}

std::vector<EngineState> AskEngines() {
  std::vector<EngineState> engines;
  for (Site& site : FindSites())
    if (auto files = ConfigFiles::Open(site.root); files.ok()) engines.push_back(EngineAsker(std::move(site), *std::move(files)).Ask());
  return engines;
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
  facts.engines = AskEngines();
  if (auto text = os::ReadFile(kNvidiaConfig); text.ok()) facts.nvidia_config = SourceFile{kNvidiaConfig, *std::move(text)};
  GatherPrograms(facts);
  return facts;
}

}  // namespace penstock::app
