// Removes what an agent leaves in its folders: known names only, so that other files in those
// folders are kept.
#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <map>
#include <set>

#include <unistd.h>

#include "api/compat/nvidia/node_status.h"
#include "app/kept_configuration.h"
#include "app/penstock/cluster/cleanup.h"
#include "app/state_files.h"
#include "app/stopped_services.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "node/cdi/folder.h"
#include "node/ledger/checkpoint.h"
#include "node/usage/record_files.h"
#include "os/core/file.h"
#include "os/lock_file.h"
#include "os/loop.h"
#include "os/marker_files.h"
#include "os/process/process.h"
#include "protocol/engine/apply/engine_configurator.h"
#include "protocol/engine/cri/probe_container.h"
#include "protocol/engine/machine_process.h"
#include "protocol/systemd/services.h"

namespace penstock::app {

namespace {

constexpr char kCleanHost[] = "penstock cleanup --host";

/// Where an agent writes outside its own folders: by this configuration, and by those that the
/// node's agent had last. They may be others, as where one of two policies was deleted just before
/// the other.
struct Written {
  std::set<std::string> features_files;
  std::set<std::string> cdi_roots, installs, validations;  // folders
  std::set<std::string> hooks;  // of specifications; empty: penstock-hook
};

Written WrittenBy(const api::NodeConfig& config) {
  std::vector<api::NodeConfig> all;
  const std::string path = KeptConfigurationPath(config.paths.state_dir);
  const auto text = os::ReadFile(path);
  if (const auto kept = text.ok() ? DecodeKept(*text, path) : text.error(); kept.ok())
    all = LastConfigs({}, *kept);
  // Where the default applied, a flag that is not kept may have named another folder, and the
  // default may be another agent's.
  for (api::NodeConfig& last : all)
    if (last.paths.cdi_root == api::PathsConfig().cdi_root)
      last.paths.cdi_root = config.paths.cdi_root;
  all.push_back(config);
  Written written;
  for (const api::NodeConfig& one : all) {
    written.features_files.insert(one.labels.features_file);
    written.cdi_roots.insert(one.paths.cdi_root);
    written.installs.insert(one.cdi.install);
    written.hooks.insert(one.cdi.hook);
    written.validations.insert(one.validation.directory);
  }
  for (auto* paths : {&written.features_files, &written.installs, &written.validations})
    paths->erase("");
  return written;
}

/// The specification files that an agent has written, for any vendor.
std::vector<std::string> OwnSpecifications(const Written& written) {
  std::set<std::string> kinds;
  for (const device::Dialect* dialect : backend::Dialects())
    kinds.merge(node::cdi::KindsOf(*dialect));
  std::vector<std::string> files;
  for (const std::string& folder : written.cdi_roots)
    for (const std::string& file :
         node::cdi::OwnFiles(os::ListDirectory(folder).value_or({}), kinds)) {
      const bool is_theirs = std::ranges::all_of(written.hooks, [&](const std::string& hook) {
        return node::cdi::IsOfAnotherPlugin(folder, file, hook);
      });
      if (!is_theirs) files.push_back(folder + "/" + file);
    }
  return files;
}

/// Whether devices were held when the agent ended, as its NodeState says, too; also where its
/// record cannot be read.
bool AreDevicesHeld(const api::NodeConfig& config) {
  const std::string path = config.paths.state_dir + "/ledger.json";
  const auto text = os::ReadFile(path, node::ledger::kMaxCheckpointBytes);
  if (!text.ok()) return text.error().code() != base::Code::kNotFound;
  const auto leases = node::ledger::DecodeCheckpoint(
      *text, os::ReadBootId(config.paths.proc_root).value_or(""), path);
  return !leases.ok() || !leases->empty();
}

/// The files by which engines and NFD know what the node has.
std::vector<std::string> Announcements(const api::NodeConfig& config, const Written& written) {
  std::vector<std::string> files;
  for (const std::string& file : written.features_files)
    if (os::Exists(file)) files.push_back(file);
  if (!AreDevicesHeld(config))
    for (std::string& file : OwnSpecifications(written)) files.push_back(std::move(file));
  return files;
}

/// A container with process ids of its own, whose first process is this one: it sees no file of the
/// machine but those that are mounted, so that an engine's file seems to be gone.
bool SeesOnlyItself(const std::string& proc_root) {
  return os::ReadLink(proc_root + "/self").value_or("") == "1";
}

/// Removes from the engines' configurations what an agent, or `penstock runtime configure`, wrote.
/// In a container, the files are those in the root of the machine's first process. `command` does
/// it where this container cannot.
void UndoEngines(const api::NodeConfig& config, const std::string& command,
                 CleanupOutcome& outcome) {
  const std::string& state_dir = config.paths.state_dir;
  auto installs = protocol::engine::ConfiguredInstalls(state_dir);
  if (!installs.ok()) outcome.failures.push_back(installs.error().message());
  for (protocol::engine::EngineInstall& install :
       installs.ok() ? *installs : std::vector<protocol::engine::EngineInstall>()) {
    if (SeesOnlyItself(config.paths.proc_root)) {
      outcome.failures.push_back(
          "Penstock's lines in " + install.config + " (" + install.name +
          ") stay: this container does not see the machine's files (hostPID); `" + command +
          "` on the machine removes them");
      continue;
    }
    protocol::engine::SeeAsTheMachine(install, config.paths.proc_root);
    protocol::engine::ConfigureOptions undo{.state_dir = state_dir,
                                            .proc_root = config.paths.proc_root};
    const auto running =
        protocol::engine::InstallOfSocket(config.paths.proc_root, SocketHere(install));
    if (running.ok() && running->supervised) undo.restart = protocol::engine::Restart::kSystemd;
    const auto undone = protocol::engine::Configure(install, undo, nullptr);
    if (undone.ok()) {
      for (const auto& file : undone->change.files)
        outcome.removed.push_back("Penstock's lines in " + file.path + " (" + install.name + ")");
      for (const auto& link : undone->unlinked)
        outcome.removed.push_back("Penstock's link " + link.path + " (" + install.name + ")");
    } else {
      outcome.failures.push_back("cannot remove Penstock's lines from " + install.name + ": " +
                                 undone.error().message());
    }
  }
  ::unlink((state_dir + "/engines/lock").c_str());
  ::rmdir((state_dir + "/engines").c_str());
}

/// Starts the services of the host that an agent has stopped while it divided devices.
void StartServices(const api::NodeConfig& config, CleanupOutcome& outcome) {
  const std::string path = StoppedServicesPath(config.paths.state_dir);
  const auto text = os::ReadFile(path);
  if (!text.ok()) return;
  const auto stopped = DecodeStoppedServices(*text, path);
  if (!stopped.ok()) return outcome.failures.push_back(stopped.error().message());
  // Another boot has started what is to run.
  if (stopped->units.empty() ||
      stopped->boot != os::ReadBootId(config.paths.proc_root).value_or(""))
    return;
  os::Loop loop("services");
  protocol::systemd::Services services(loop,
                                       protocol::engine::EnterMachine(config.paths.proc_root));
  std::vector<std::string> left = stopped->units;
  const std::function<void()> next = [&] {
    if (left.empty()) return loop.Stop();
    services.Start(left.back(), [&](const base::Status& started) {
      if (started.ok())
        outcome.remarks.push_back(left.back() + " was started again");
      else
        outcome.failures.push_back(left.back() +
                                   " was stopped while a device was divided, and cannot be "
                                   "started again: " +
                                   started.error().message());
      left.pop_back();
      next();
    });
  };
  loop.Post(next);
  loop.Run();
}

/// The folder of usage records where it is Penstock's default. Empty for a configured folder: its
/// records belong to the user and are kept.
std::string OwnRecords(const api::NodeConfig& config) {
  return config.usage.dir.empty() ? config.paths.state_dir + "/usage" : "";
}

/// The files to remove, the lock last: while it is held, no agent can start.
std::vector<std::string> Files(const api::NodeConfig& config, const Written& written,
                               bool with_lock) {
  std::vector<std::string> files;
  const auto add = [&files](const std::string& path) {
    if (os::Exists(path)) files.push_back(path);
  };
  for (const char* name :
       {"configuration.json", "ledger.json", "ledger-limits.json", "health.json",
        "health-marks.json", "doors.json", "changes.json", "layout.json", "layout-amd.json",
        "parts.json", "services.json", "queue.json", "usage.json", "usage-end.json", "agent.log",
        protocol::engine::cri::kProbeLog})
    add(config.paths.state_dir + "/" + name);
  for (const std::string& file : node::usage::RecordFiles(OwnRecords(config)).List()) add(file);
  for (const std::string& file : written.features_files) add(file);
  for (const std::string& file : OwnSpecifications(written)) add(file);
  // Another configuration, or another policy, may have had them in the state folder.
  std::set<std::string> programs = written.installs;
  programs.insert(config.paths.state_dir);
  for (const std::string& folder : programs)
    for (const char* program : {"penstock-hook", "penstock-runtime", "penstock-probe"})
      add(folder + "/" + program);
  add(config.paths.run_dir + "/penstock.sock");
  const std::string lock = LockPath(config.paths.run_dir);
  add(lock + ".replaced");
  if (with_lock) add(lock);
  return files;
}

/// While it is held, no agent can start; nothing: none was here. kFailedPrecondition: one runs.
base::Result<std::optional<os::LockFile>> LockAgentsOut(const api::NodeConfig& config) {
  if (!os::Exists(config.paths.run_dir)) return std::optional<os::LockFile>();
  auto taken = os::LockFile::Take(LockPath(config.paths.run_dir));
  if (!taken.ok()) return base::Error(base::Code::kFailedPrecondition, taken.error().message());
  return std::optional<os::LockFile>(*std::move(taken));
}

/// The files by which other programs wait for the node, by folder.
std::map<std::string, std::vector<std::string>> ReadyFiles(const Written& written) {
  std::map<std::string, std::vector<std::string>> files;
  for (const std::string& folder : written.validations)
    for (const std::string_view name : api::compat::ValidationFileNames())
      if (const std::string file = folder + "/" + std::string(name); os::Exists(file))
        files[folder].push_back(file);
  return files;
}

std::vector<std::string> ReadyFilesOfAll(const Written& written) {
  std::vector<std::string> all;
  for (const auto& [folder, files] : ReadyFiles(written))
    all.insert(all.end(), files.begin(), files.end());
  return all;
}

void RemoveFile(const std::string& file, bool reported, CleanupOutcome& outcome) {
  if (::unlink(file.c_str()) == 0) {
    if (reported) outcome.removed.push_back(file);
  } else if (errno != ENOENT) {
    outcome.failures.push_back(base::ErrnoError(errno, "remove " + file).message());
  }
}

/// The files in which it is recorded what was changed in container engines.
std::vector<std::string> EngineJournals(const api::NodeConfig& config) {
  std::vector<std::string> left;
  const std::string journals = config.paths.state_dir + "/engines";
  for (const std::string& journal : os::ListDirectory(journals).value_or({}))
    if (journal.ends_with(".json")) left.push_back(journals + "/" + journal);
  return left;
}

/// Whether an engine that still has Penstock's lines needs it: a program that it starts, without
/// which pods of the runtime's class fail and running ones cannot be deleted, or what says where
/// those are.
bool IsForEngines(const std::string& file) {
  const std::string leaf = base::LeafOf(file);
  return leaf == "penstock-runtime" || leaf == "penstock-hook" || leaf == "configuration.json";
}

/// Not through a link that another user has put in the folder's place.
void RemoveReadyFiles(const Written& written, CleanupOutcome& outcome) {
  std::vector<std::string> names;
  for (const std::string_view name : api::compat::ValidationFileNames()) names.emplace_back(name);
  for (const auto& [folder, files] : ReadyFiles(written)) {
    const base::Status removed = os::UpdateMarkers(folder, {}, names);
    if (removed.ok())
      outcome.removed.insert(outcome.removed.end(), files.begin(), files.end());
    else
      outcome.failures.push_back(removed.error().message());
  }
}

}  // namespace

std::vector<std::string> LeftOnHost(const api::NodeConfig& config) {
  const Written written = WrittenBy(config);
  auto left = Files(config, written, true);
  for (const std::string& file : ReadyFilesOfAll(written)) left.push_back(file);
  for (const std::string& journal : EngineJournals(config)) left.push_back(journal);
  return left;
}

std::vector<std::string> SeenOnHost(const api::NodeConfig& config) {
  const Written written = WrittenBy(config);
  std::vector<std::string> left = EngineJournals(config);
  for (const auto& files : {ReadyFilesOfAll(written), Announcements(config, written)})
    left.insert(left.end(), files.begin(), files.end());
  return left;
}

base::Result<CleanupOutcome> CleanSeen(const api::NodeConfig& config, bool dry_run) {
  CleanupOutcome outcome;
  if (dry_run) {
    outcome.removed = SeenOnHost(config);
    return outcome;
  }
  ASSIGN(const auto lock, LockAgentsOut(config));
  const Written written = WrittenBy(config);
  UndoEngines(config, "penstock cleanup --host --keep-state", outcome);
  const std::size_t failures = outcome.failures.size();
  StartServices(config, outcome);
  // A later agent would start them again, also where someone has stopped them meanwhile.
  if (outcome.failures.size() == failures)
    RemoveFile(StoppedServicesPath(config.paths.state_dir), false, outcome);
  RemoveReadyFiles(written, outcome);
  for (const std::string& file : Announcements(config, written)) RemoveFile(file, true, outcome);
  return outcome;
}

base::Result<CleanupOutcome> CleanHost(const api::NodeConfig& config, bool dry_run) {
  CleanupOutcome outcome;
  if (dry_run) {
    outcome.removed = LeftOnHost(config);
    return outcome;
  }
  const std::string lock_path = LockPath(config.paths.run_dir);
  const bool locked_before = os::Exists(lock_path);
  ASSIGN(const auto lock, LockAgentsOut(config));
  const bool has_folder = lock.has_value();
  const Written written = WrittenBy(config);
  UndoEngines(config, kCleanHost, outcome);
  const bool engines_left = !EngineJournals(config).empty();
  StartServices(config, outcome);
  RemoveReadyFiles(written, outcome);
  const auto remove_folder = [&outcome](const std::string& folder) {
    if (!folder.empty() && ::rmdir(folder.c_str()) == 0) outcome.removed.push_back(folder);
  };
  std::vector<std::string> kept;
  for (const std::string& file : Files(config, written, has_folder)) {
    if (engines_left && IsForEngines(file)) {
      kept.push_back(file);
      continue;
    }
    if (file == lock_path)  // removing the lock completes the removal
      for (const std::string& folder : written.installs) remove_folder(folder);
    RemoveFile(file, file != lock_path || locked_before, outcome);
  }
  if (!kept.empty())
    outcome.failures.push_back(
        "what container engines start by Penstock's lines stays with them: " +
        base::Join(kept, ", ") + "; `" + kCleanHost + "` on the machine removes both");
  // Keeps mount points and folders that contain other files.
  for (const auto* folders : {&written.installs, &written.validations})
    for (const std::string& folder : *folders) remove_folder(folder);
  for (const std::string& folder :
       {OwnRecords(config), config.paths.state_dir, config.paths.run_dir})
    remove_folder(folder);
  return outcome;
}

}  // namespace penstock::app
