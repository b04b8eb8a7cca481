// Judges whether an engine passes the devices of CDI specifications to containers: by its release,
// its configuration and its low-level runtimes.
#include <algorithm>

#include "analysis/doctor/doctor.h"
#include "analysis/doctor/engine_formats.h"
#include "base/core/strings.h"
#include "protocol/engine/links.h"

namespace penstock::analysis {

namespace {

using base::Value;
using protocol::engine::Engine;
using protocol::engine::FileFormat;
using protocol::engine::FindAt;
using protocol::engine::Path;
using protocol::engine::SourceFile;

constexpr Release kRuncThatKeepsDevices{1, 1, 7};
constexpr char kNvidiaConfig[] = "/etc/nvidia-container-runtime/config.toml";
constexpr char kUnprivileged[] = "accept-nvidia-visible-devices-envvar-when-unprivileged";

std::string NameOf(const EngineState& engine) {
  const std::string name(engine.facts.name.empty() ? protocol::engine::Name(engine.facts.engine)
                                                   : engine.facts.name);
  return engine.version.empty() ? name : name + " " + engine.version;
}

/// Returns the configuration that the engine reports as effective, else the content of its file; an
/// empty document where neither can be read.
Value InForce(const protocol::engine::EngineFacts& facts) {
  const FileFormat format = facts.engine == Engine::kDocker ? FileFormat::kJson : FileFormat::kToml;
  const bool effective = facts.effective.has_value();
  auto read = protocol::engine::Read(effective ? FileFormat::kToml : format,
                                     effective ? *facts.effective : facts.main.text.value_or(""),
                                     facts.main.path);
  return read.ok() ? *std::move(read) : Value();
}

/// The table of containerd's CRI plugin.
const Value* CriTable(const Value& document) {
  for (const char* section : {"io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "cri"})
    if (const Value* table = FindAt(document, {"plugins", section})) return table;
  return nullptr;
}

/// The folders in which this engine's configuration looks for specifications; empty: the default
/// folders.
std::vector<std::string> FoldersOf(const protocol::engine::EngineFacts& facts,
                                   const Value& document) {
  const Value* folders = nullptr;
  switch (facts.engine) {
    case Engine::kContainerd:
      if (const Value* table = CriTable(document)) folders = table->Find("cdi_spec_dirs");
      break;
    case Engine::kCrio: folders = FindAt(document, {"crio", "runtime", "cdi_spec_dirs"}); break;
    case Engine::kDocker: folders = document.Find("cdi-spec-dirs"); break;
    case Engine::kPodman: folders = FindAt(document, {"engine", "cdi_spec_dirs"}); break;
  }
  std::vector<std::string> texts;
  if (folders != nullptr && folders->list)
    for (const Value& one : *folders->list) texts.push_back(one.text);
  return texts;
}

/// /var/run is a symbolic link to /run.
std::string Canonical(std::string folder) {
  if (folder.starts_with("/var/run/")) folder.erase(0, 4);
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder;
}

std::string KeyOfFolders(Engine engine) {
  return engine == Engine::kDocker ? "\"cdi-spec-dirs\": " : "cdi_spec_dirs = ";
}

/// Judges one engine, rule by rule.
class EngineJudge {
 public:
  EngineJudge(const EngineState& engine, const DoctorFacts& facts)
      : engine_(engine),
        facts_(facts),
        about_(NameOf(engine)),
        document_(InForce(engine.facts)),
        release_(FindRelease(engine.version)) {}

  std::vector<DoctorFinding> Judge() {
    if (!engine_.problem.empty()) Add(FindingState::kUnknown, engine_.problem);
    if (JudgeCdi()) {
      JudgeFolders();
      JudgeFormats();
    }
    JudgeStray();
    JudgeRuntimes();
    JudgeUnprivileged();
    JudgeCgroups();
    const auto bad = [](const DoctorFinding& finding) {
      return finding.verdict != FindingState::kOk;
    };
    if (std::ranges::none_of(findings_, bad))
      Add(FindingState::kOk, "gives containers the devices that specifications name");
    if (engine_.facts.engine == Engine::kDocker) JudgeGpus();
    return std::move(findings_);
  }

 private:
  void Add(FindingState verdict, std::string why, std::string file = "",
           std::vector<std::string> write = {}, std::vector<std::string> run = {}) {
    findings_.push_back(
        {about_, verdict, std::move(why), std::move(file), std::move(write), std::move(run)});
  }

  /// Adds a finding about a line that is missing in the engine's own configuration.
  void AddSetting(std::string why, const std::string& file, std::vector<std::string> write) {
    Add(FindingState::kBad, std::move(why), file, std::move(write),
        engine_.restart.empty() ? std::vector<std::string>()
                                : std::vector<std::string>{engine_.restart});
  }

  /// Returns whether the engine supports CDI and has it enabled.
  bool JudgeCdi() {
    const auto goal = protocol::engine::MakeGoal(
        engine_.facts, {.cdi = true, .handlers = {}, .default_handler = ""});
    if (!goal.ok()) {
      Add(FindingState::kBad, goal.error().message());
      return false;
    }
    if (goal->targets.empty()) return true;
    for (const auto& target : goal->targets) {
      const std::string text = target.format == FileFormat::kToml
                                   ? protocol::engine::AsToml(target.settings)
                                   : target.after;
      AddSetting("has CDI disabled: devices requested by name are silently omitted", target.path,
                 LinesOf(text));
    }
    return false;
  }

  static std::vector<std::string> LinesOf(const std::string& text) {
    auto lines = base::Split(text, '\n');
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }

  /// Reports specifications in folders that this engine does not read.
  void JudgeFolders() {
    const auto folders = FoldersOf(engine_.facts, document_);
    if (folders.empty()) return;
    std::set<std::string> searched, missed;
    for (const std::string& folder : folders) searched.insert(Canonical(folder));
    for (const auto& file : facts_.files)
      if (searched.count(Canonical(base::FolderOf(file.path))) == 0)
        missed.insert(base::FolderOf(file.path));
    if (missed.empty()) return;
    std::vector<std::string> all;
    for (const auto& list : {folders, std::vector<std::string>(missed.begin(), missed.end())})
      for (const std::string& folder : list) all.push_back("\"" + folder + "\"");
    AddSetting("does not read " +
                   base::Join(std::vector<std::string>(missed.begin(), missed.end()), ", ") +
                   ", where specifications are",
               engine_.facts.main.path,
               {KeyOfFolders(engine_.facts.engine) + "[" + base::Join(all, ", ") + "]"});
  }

  /// Reports specifications of a version that this release does not support: the engine skips such
  /// files entirely.
  void JudgeFormats() {
    const auto formats = release_ ? FormatsOf(engine_.facts.engine, *release_) : std::nullopt;
    if (!formats) return;
    for (const auto& file : facts_.files) {
      if (!file.text.ok()) continue;
      const auto spec = api::cdi::Parse(*file.text, file.path);
      if (!spec.ok() || !api::cdi::IsLater(spec->version, formats->latest)) continue;
      JudgeFormat(file.path, *spec, *formats);
    }
  }

  void JudgeFormat(const std::string& file, const api::cdi::Spec& spec, const Formats& formats) {
    const std::string is = file + " has version " + spec.version + ", ";
    if (!formats.exact)
      return Add(FindingState::kUnknown, is + "and it is not known whether this release reads it");
    const std::string reads =
        is + "but this release reads no version after " + formats.latest + ": it skips the file";
    if (!api::cdi::IsLater(api::cdi::MinimumVersion(spec), formats.latest))
      return Add(FindingState::kBad, reads, file,
                 {"cdiVersion: \"" + api::cdi::MinimumVersion(spec) + "\""});
    Add(FindingState::kBad, reads + "; remove " + api::cdi::WhatTakesMinimum(spec) +
                                " from it, or use a newer " +
                                std::string(protocol::engine::Name(engine_.facts.engine)));
  }

  /// Reports drop-ins that the engine does not read (#1404).
  void JudgeStray() {
    for (const SourceFile& file : engine_.stray) {
      const auto same = [&file](const SourceFile& one) { return one.path == file.path; };
      if (std::ranges::any_of(engine_.facts.imported, same)) continue;
      if (engine_.facts.engine == Engine::kContainerd) {
        AddSetting(file.path + " is not read, since nothing imports it", engine_.facts.main.path,
                   {"imports = [\"" + base::FolderOf(file.path) + "/*.toml\"]"});
      } else {
        Add(FindingState::kBad, file.path + " is not read: it is not in a drop-in folder");
      }
    }
  }

  /// Reports runtimes whose program does not exist.
  void JudgeRuntimes() {
    for (const auto& [name, program] : RuntimesOf(engine_.facts).programs)
      if (facts_.absent.count(program) != 0)
        Add(FindingState::kBad,
            "its runtime \"" + name + "\" is " + program +
                ", which does not exist: its containers cannot start",
            "", {},
            {"penstock runtime configure --runtime " +
             std::string(protocol::engine::Name(engine_.facts.engine))});
  }

  /// Reports that images can request all devices through their own environment, as CUDA's images do
  /// (#87).
  void JudgeUnprivileged() {
    const EngineRuntimes runtimes = RuntimesOf(engine_.facts);
    const auto found = runtimes.programs.find(runtimes.by_default);
    if (found == runtimes.programs.end() || facts_.own_programs.count(found->second) != 0) return;
    if (FileNameOf(found->second).find("nvidia-container-runtime") == std::string::npos ||
        RefusesUnprivileged())
      return;
    Add(FindingState::kBad,
        "every container whose image sets NVIDIA_VISIBLE_DEVICES=all, as CUDA images do, gets all "
        "devices, because \"" +
            runtimes.by_default +
            "\" is the default runtime and accepts the variable from unprivileged containers",
        kNvidiaConfig, {std::string(kUnprivileged) + " = false"});
  }

  static std::string FileNameOf(const std::string& path) {
    return path.substr(path.find_last_of('/') + 1);
  }

  bool RefusesUnprivileged() const {
    if (!facts_.nvidia_config || !facts_.nvidia_config->text) return false;
    const auto document = protocol::engine::Read(FileFormat::kToml, *facts_.nvidia_config->text,
                                                 facts_.nvidia_config->path);
    const Value* accepts = document.ok() ? document->Find(kUnprivileged) : nullptr;
    return accepts != nullptr && accepts->kind == Value::Kind::kBool && !accepts->boolean;
  }

  /// With runc before 1.1.7, systemd revokes access to devices at the next daemon-reload (#48,
  /// #1227; runc#3708).
  void JudgeCgroups() {
    const auto version = facts_.low_level.find(engine_.low_level);
    if (engine_.systemd_cgroups != true || FileNameOf(engine_.low_level) != "runc" ||
        version == facts_.low_level.end())
      return;
    const auto release = FindRelease(version->second);
    if (release && *release < kRuncThatKeepsDevices)
      Add(FindingState::kBad,
          "its runc is " + ToString(*release) +
              " and it uses systemd's control groups: containers lose their devices at the next "
              "`systemctl daemon-reload`; install runc 1.1.7 or newer");
  }

  /// Judges `docker run --gpus` and compose's `driver: nvidia`. A machine where they are not used
  /// has no problem.
  void JudgeGpus() {
    about_ += " --gpus";
    const std::string configure =
        "penstock runtime configure --runtime docker --restart-mode systemd";
    if (!engine_.runtime_hook && !engine_.cdi_hook)
      return Add(FindingState::kUnknown,
                 "is refused (\"could not select device driver\"): neither "
                 "nvidia-container-runtime-hook nor nvidia-cdi-hook is on dockerd's PATH; use "
                 "--device nvidia.com/gpu=0 or --runtime instead",
                 "", {}, {configure});
    const bool converts =
        protocol::engine::LinkNames(engine_.facts.major, engine_.facts.minor).size() == 1;
    if (!engine_.runtime_hook) {
      if (converts) return Add(FindingState::kOk, "injects the devices with CDI");
      return Add(
          FindingState::kUnknown,
          "is refused: this release requires nvidia-container-runtime-hook, which was not found",
          "", {}, {configure});
    }
    if (DefaultGivesDevices())
      return Add(FindingState::kOk, "injects the devices with the default runtime");
    if (!engine_.runtime_hook->is_penstock)
      return Add(FindingState::kOk, "uses NVIDIA's own " + engine_.runtime_hook->path);
    if (converts && engine_.cdi_hook)
      return Add(FindingState::kUnknown,
                 "may use " + engine_.runtime_hook->path + ", which this release no longer needs",
                 "", {}, {configure});
    Add(FindingState::kUnknown,
        "fails with an error unless --runtime is given, because the default runtime injects no "
        "devices",
        "", {}, {configure + " --set-as-default"});
  }

  bool DefaultGivesDevices() const {
    const EngineRuntimes runtimes = RuntimesOf(engine_.facts);
    const auto found = runtimes.programs.find(runtimes.by_default);
    if (found == runtimes.programs.end()) return false;
    const std::string name = FileNameOf(found->second);
    return facts_.own_programs.count(found->second) != 0 ||
           name.find("penstock-runtime") != std::string::npos ||
           name.find("nvidia-container-runtime") != std::string::npos;
  }

  const EngineState& engine_;
  const DoctorFacts& facts_;
  std::string about_;
  Value document_;
  std::optional<Release> release_;
  std::vector<DoctorFinding> findings_;
};

void AddProgram(EngineRuntimes& runtimes, const std::string& name, const Value* program) {
  if (program != nullptr && !program->text.empty()) runtimes.programs[name] = program->text;
}

const Value* ProgramOf(Engine engine, const Value& runtime) {
  switch (engine) {
    case Engine::kContainerd: return FindAt(runtime, {"options", "BinaryName"});
    case Engine::kCrio: return runtime.Find("runtime_path");
    case Engine::kDocker: return runtime.Find("path");
    case Engine::kPodman:
      return runtime.list && !runtime.list->empty() ? &runtime.list->front() : nullptr;
  }
  return nullptr;
}

}  // namespace

EngineRuntimes RuntimesOf(const protocol::engine::EngineFacts& facts) {
  const Value document = InForce(facts);
  const Value* top = &document;
  Path tables, by_default;
  switch (facts.engine) {
    case Engine::kContainerd:
      top = CriTable(document);
      tables = {"containerd", "runtimes"}, by_default = {"containerd", "default_runtime_name"};
      break;
    case Engine::kCrio:
      tables = {"crio", "runtime", "runtimes"}, by_default = {"crio", "runtime", "default_runtime"};
      break;
    case Engine::kDocker: tables = {"runtimes"}, by_default = {"default-runtime"}; break;
    case Engine::kPodman:
      tables = {"engine", "runtimes"}, by_default = {"engine", "runtime"};
      break;
  }
  EngineRuntimes runtimes;
  if (top == nullptr) return runtimes;
  if (const Value* found = FindAt(*top, tables); found != nullptr && found->map)
    for (const Value::Entry& entry : *found->map)
      AddProgram(runtimes, entry.key, ProgramOf(facts.engine, entry.value));
  if (const Value* found = FindAt(*top, by_default)) runtimes.by_default = found->text;
  return runtimes;
}

void TakeContainerdRuntime(EngineState& state) {
  const Value document = InForce(state.facts);
  const Value* table = CriTable(document);
  if (table == nullptr) return;
  const EngineRuntimes runtimes = RuntimesOf(state.facts);
  const std::string name = runtimes.by_default.empty() ? "runc" : runtimes.by_default;
  const Value* systemd =
      FindAt(*table, {"containerd", "runtimes", name, "options", "SystemdCgroup"});
  if (systemd != nullptr) state.systemd_cgroups = systemd->boolean;
  const auto program = runtimes.programs.find(name);
  state.low_level = program == runtimes.programs.end() ? name : program->second;
}

std::vector<DoctorFinding> JudgeEngine(const EngineState& engine, const DoctorFacts& facts) {
  return EngineJudge(engine, facts).Judge();
}

namespace {

DoctorFinding JudgeEnroot(const EnrootHook& hook) {
  const std::string needs = hook.path + " executes nvidia-container-cli";
  if (hook.has_cli)
    return {"enroot", FindingState::kOk,
            needs + ": keep NVIDIA's container toolkit for it (docs/nvidia-toolkit.md)"};
  return {"enroot", FindingState::kBad,
          needs +
              ", which does not exist: every container of enroot (and of pyxis in Slurm) fails; "
              "reinstall NVIDIA's container toolkit (docs/nvidia-toolkit.md)"};
}

}  // namespace

std::vector<DoctorFinding> Judge(const DoctorFacts& facts) {
  std::vector<DoctorFinding> findings = JudgeSpecifications(facts);
  for (const UntrustedEngine& engine : facts.untrusted)
    findings.push_back({engine.name, FindingState::kUnknown,
                        "listens at " + engine.socket + " and was not queried: " + engine.why});
  if (facts.engines.empty() && facts.untrusted.empty())
    findings.push_back({"engines", FindingState::kUnknown,
                        "no container engine was found (containerd, CRI-O, docker or podman)"});
  for (const EngineState& engine : facts.engines) {
    auto of_engine = JudgeEngine(engine, facts);
    findings.insert(findings.end(), std::make_move_iterator(of_engine.begin()),
                    std::make_move_iterator(of_engine.end()));
  }
  if (facts.enroot) findings.push_back(JudgeEnroot(*facts.enroot));
  return findings;
}

}  // namespace penstock::analysis
