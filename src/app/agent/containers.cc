#include "app/agent/containers.h"

#include <unistd.h>

#include "app/devices/paths.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "os/core/file.h"
#include "protocol/engine/apply/engine_configurator.h"

namespace penstock::app {

using protocol::engine::cri::EngineAbilities;

namespace {

constexpr const char* kHook = "penstock-hook";
constexpr const char* kProbe = "penstock-probe";
constexpr const char* kRuntime = "penstock-runtime";
constexpr const char* kPrograms[] = {kHook, kRuntime};

/// Whether files can be created at `path`, or in the nearest existing folder above it.
bool MayWrite(std::string path) {
  while (!os::Exists(path) && path.rfind('/') != std::string::npos && path.rfind('/') > 0)
    path.resize(path.rfind('/'));
  return ::access(path.c_str(), W_OK) == 0;
}

/// Copies a program to the host's folder. A running instance keeps the old file: the new file
/// replaces it by rename.
base::Status Install(const std::string& from, const std::string& to) {
  constexpr unsigned kExecutable = 0755;
  ASSIGN(const std::string program, os::ReadFile(from));
  if (const auto there = os::ReadFile(to); there.ok() && *there == program) return {};
  return os::WriteFileAtomically(to, program, kExecutable);
}

base::Status InstallAll(const std::string& from, const std::string& to) {
  TRY(os::MakeDirectories(to));
  for (const char* program : kPrograms) TRY(Install(from + "/" + program, to + "/" + program));
  // Containers do without it.
  if (const std::string probe = from + "/" + kProbe; os::Exists(probe))
    TRY(Install(probe, to + "/" + kProbe));
  return {};
}

/// What an engine that does not read the groups leaves to do.
std::string WhyNoGroups(const EngineAbilities& engine) {
  return Describe(engine) +
         " does not read version 0.7.0 of CDI (containerd reads it from 1.7.16 on, CRI-O from "
         "1.30 on); name the groups in securityContext.supplementalGroups of the pods";
}

/// The kinds for which the kubelet's specifications are this agent's.
std::set<std::string> KindsOfKubelet(bool for_pods) {
  std::set<std::string> kinds;
  if (for_pods)
    for (const device::Dialect* dialect : backend::Dialects())
      kinds.merge(node::cdi::KindsOf(*dialect));
  return kinds;
}

std::string WhyOff(const api::NodeConfig& config) {
  if (config.cdi.enabled == api::Switch::kOff) return "switched off";
  if (config.cdi.enabled == api::Switch::kAuto && !MayWrite(config.paths.cdi_root))
    return "no permission to write to " + config.paths.cdi_root;
  return "";
}

}  // namespace

std::vector<std::string> RuntimeHandlersOf(const node::inventory::Snapshot& inventory) {
  std::vector<std::string> names;
  for (const node::inventory::VendorEntry& vendor : inventory.vendors) {
    if (vendor.driver == nullptr && vendor.reason.empty()) continue;
    const device::Dialect* dialect = backend::FindDialect(vendor.vendor);
    if (dialect != nullptr && !dialect->runtime_handler().empty())
      names.emplace_back(dialect->runtime_handler());
  }
  return names;
}

node::cdi::Groups GroupsFor(api::Switch configured, const std::optional<EngineAbilities>& engine) {
  if (configured == api::Switch::kOff) return {};
  node::cdi::Groups groups{.for_users = configured == api::Switch::kOn};
  groups.for_kubelet = groups.for_users || (engine && engine->cdi_groups);
  if (engine && !groups.for_kubelet) groups.why_not = WhyNoGroups(*engine);
  return groups;
}

Containers::Containers(os::Loop& control, base::Executor& io, const api::NodeConfig& config,
                       node::inventory::Inventory& inventory, const node::ledger::Ledger& ledger,
                       std::string own_folder, bool for_pods, const std::function<void()>& changed)
    : control_(control),
      io_(io),
      inventory_(inventory),
      own_folder_(std::move(own_folder)),
      folder_(config.paths.cdi_root),
      state_dir_(config.paths.state_dir),
      config_(config.cdi),
      why_off_(WhyOff(config)) {
  if (for_pods) {
    engine_.emplace(
        control, io,
        protocol::engine::cri::EngineWatcher::Options{.socket = config.containers.engine_socket,
                                                      .proc_root = config.paths.proc_root,
                                                      .kubelet_dir = config.paths.kubelet_dir});
    engine_setup_.emplace(
        control, *engine_,
        adapter::kubelet::EngineReconciler::Options{.state_dir = config.paths.state_dir,
                                                    .proc_root = config.paths.proc_root,
                                                    .runtime = HostFolder() + "/" + kRuntime,
                                                    .failed = changed});
    on_engine_ = engine_->published().Subscribe([this, changed](const auto&) {
      engine_setup_->EngineChanged();
      Regroup();
      BeginToWrite();
      LookAtEngines();
      changed();
    });
  }
  if (why_off_.empty()) WriteSpecifications(control, io, config, inventory, for_pods);
  if (config_.enabled == api::Switch::kOff)
    left_.emplace(control, io, ledger, folder_, KindsOfKubelet(for_pods), config_.hook, changed);
  if (writer_) on_written_ = writer_->published().Subscribe([changed](const auto&) { changed(); });
}

void Containers::WriteSpecifications(os::Loop& control, base::Executor& io,
                                     const api::NodeConfig& config,
                                     node::inventory::Inventory& inventory, bool for_pods) {
  if (!config_.install.empty()) {
    if (const auto installed = InstallAll(own_folder_, config_.install); !installed.ok()) {
      why_no_hook_ = installed.error().message();
      base::Log(base::kWarn, "cannot install the programs for containers", {{"why", why_no_hook_}});
    }
  } else if (config_.hook.empty() && !os::Exists(own_folder_ + "/" + kHook)) {
    why_no_hook_ = "there is no " + own_folder_ + "/" + kHook;
  }
  groups_ = ChooseGroups();
  writer_.emplace(control, io, inventory, backend::FindDialect,
                  node::cdi::CdiSpecWriter::Settings{.folder = folder_,
                                                     .places = PlacesOf(config),
                                                     .options = OptionsOf(config_),
                                                     .groups = groups_,
                                                     .for_kubelet = for_pods});
}

void Containers::Begin(const api::NodeConfig& config) {
  begun_ = true;
  engine_wanted_ = config.containers.configure_engine;
  SetUpEngine();
  BeginToWrite();
  LookAtEngines();
}

void Containers::DevicesChanged() {
  SetUpEngine();
  if (writer_) writer_->DevicesChanged();
}

void Containers::HoldersKnown() {
  if (left_) left_->HoldersKnown();
}

void Containers::LedgerChanged() {
  if (left_) left_->LedgerChanged();
}

/// Not before the first look at the devices: the engine would be restarted once more for the
/// vendors that it finds. A vendor that goes leaves its handler, for which no restart is worth it.
void Containers::SetUpEngine() {
  if (!engine_setup_ || !begun_) return;
  for (std::string& name : RuntimeHandlersOf(*inventory_.published().Get()))
    handlers_.insert(std::move(name));
  engine_setup_->Configure(engine_wanted_, {handlers_.begin(), handlers_.end()});
}

/// Not before the engine was asked: what it reads decides on the groups, and a specification that
/// the agent before wrote must not lose them meanwhile.
void Containers::BeginToWrite() {
  if (!writer_ || !begun_ || writing_) return;
  if (engine_ && !engine_->published().Get()->queried) return;
  writing_ = true;
  writer_->Begin();
}

void Containers::Configure(const api::NodeConfig& config) {
  engine_wanted_ = config.containers.configure_engine;
  SetUpEngine();
  LookAtEngines();
  if (!writer_ || config.cdi == config_) return;
  config_ = config.cdi;
  groups_ = ChooseGroups();
  writer_->Configure(OptionsOf(config_), groups_);
}

void Containers::Regroup() {
  if (!writer_) return;
  node::cdi::Groups groups = ChooseGroups();
  if (groups == groups_) return;
  groups_ = std::move(groups);
  writer_->Configure(OptionsOf(config_), groups_);
}

node::cdi::Groups Containers::ChooseGroups() {
  return GroupsFor(config_.additional_gids,
                   engine_ ? engine_->published().Get()->engine : std::nullopt);
}

node::cdi::Options Containers::OptionsOf(const api::CdiConfig& config) const {
  node::cdi::Options options;
  options.disable_hooks = config.disable_hooks;
  options.enable_hooks = config.enable_hooks;
  options.hook = config.hook.empty() ? HostFolder() + "/" + kHook : config.hook;
  if (!why_no_hook_.empty()) options.hook.clear();
  return options;
}

/// The folder of Penstock's programs, as the host names it.
std::string Containers::HostFolder() const {
  if (config_.install.empty()) return own_folder_;
  return config_.host_install.empty() ? config_.install : config_.host_install;
}

std::optional<ContainerStart> Containers::StartedBy() {
  if (!writer_ || !engine_) return std::nullopt;
  const auto known = engine_->published().Get();
  if (!known->engine || !known->problem.empty()) return std::nullopt;
  const EngineAbilities& engine = *known->engine;
  const bool installed = !config_.install.empty();
  const std::string own = (installed ? config_.install : own_folder_) + "/" + kProbe;
  return ContainerStart{.socket = engine.socket,
                        .folder = folder_,
                        .own_program = own,
                        .program = HostFolder() + "/" + kProbe,
                        .runtime = HostFolder() + "/" + kRuntime,
                        .installed = installed,
                        .instance = Describe(engine) + " " + engine.socket + " " +
                                    std::to_string(engine.pid) + " " + engine.why + " " +
                                    base::Join(engine.cdi_folders, ",") + " " +
                                    std::to_string(writer_->published().Get()->text)};
}

std::map<std::string, std::string> Containers::MismatchedDrivers() {
  return writer_ ? writer_->published().Get()->mismatched : std::map<std::string, std::string>();
}

api::CdiReport Containers::Report(bool setup_known) {
  api::CdiReport report{.folder = folder_, .kinds = {}, .problems = {}, .remarks = {}};
  if (writer_) {
    const auto written = writer_->published().Get();
    report.kinds = written->kinds;
    report.problems = written->problems;
    report.remarks = written->remarks;
    if (!why_no_hook_.empty())
      report.remarks.push_back("CDI specifications have no hooks: " + why_no_hook_);
  } else {
    report.problems.push_back(why_off_);
  }
  if (left_ && !left_->problem().empty()) report.problems.push_back(left_->problem());
  if (engine_setup_ && !engine_setup_->problem().empty())
    report.problems.push_back(engine_setup_->problem());
  if (const std::string why = WhyEngineUnknown(); !why.empty())
    report.problems.push_back("the container engine is not configured: " + why);
  if (setup_known && IsNothingToBeWritten())
    report.remarks.insert(report.remarks.end(), in_engines_.begin(), in_engines_.end());
  return report;
}

/// What is written stays then: containers may run by it. Where no specifications are written, the
/// agent's own may: an administrator has set up a class for it.
bool Containers::IsNothingToBeWritten() const {
  return engine_setup_ && writer_ && begun_ && engine_wanted_ == api::EngineSetup::kOff;
}

/// For which engines there are lines of an agent, or of `penstock runtime configure`.
void Containers::LookAtEngines() {
  if (!IsNothingToBeWritten()) return;
  const auto found = lifetime_.Guard(
      [this](std::vector<std::string> in_engines) { in_engines_ = std::move(in_engines); });
  io_.Post([found, &control = control_, state_dir = state_dir_] {
    std::vector<std::string> remarks;
    for (const auto& install : protocol::engine::ConfiguredInstalls(state_dir).value_or({}))
      remarks.push_back(
          "containers.configureEngine is off; what an agent or `penstock runtime configure` wrote "
          "for " +
          install.name + " (" + install.config +
          ") stays until `penstock runtime unconfigure --all`");
    control.Post([found, remarks] { found(remarks); });
  });
}

/// Why nothing is known of an engine that is to be configured.
std::string Containers::WhyEngineUnknown() {
  if (!engine_ || !begun_ || engine_wanted_ == api::EngineSetup::kOff) return "";
  const auto known = engine_->published().Get();
  return known->engine ? "" : known->problem;
}

node::validate::Toolkit Containers::Toolkit() {
  node::validate::Toolkit toolkit{.off = why_off_};
  if (engine_setup_) toolkit.engine_problem = engine_setup_->problem();
  if (!writer_) return toolkit;
  judged_ = writer_->published().Get();
  toolkit.named = &judged_->devices;
  toolkit.problems = judged_->problems;
  toolkit.why_no_hook = why_no_hook_;
  return toolkit;
}

}  // namespace penstock::app
