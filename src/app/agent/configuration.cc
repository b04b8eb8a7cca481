// Every text takes the same path: it is read, resolved with environment and flags, validated, and
// only then published.
#include "app/agent/configuration.h"

#include <algorithm>
#include <utility>

#include "api/listen.h"
#include "app/agent/cluster_connection.h"
#include "base/core/strings.h"
#include "base/log.h"

namespace penstock::app {

namespace {

std::string EngineWaits() {
  return "containers.configureEngine: the container engine is left as it is until the labels of "
         "this node's Node are read, since " +
         api::compat::ToolkitLabel() +
         "=false may be among them; `penstock status` says why the cluster cannot be read: the API "
         "server must answer, and the agent's service account needs get, list and watch of nodes";
}

bool IsNodeConfig(const std::string& text) {
  return api::compat::Recognise(text) == api::compat::Document::kNodeConfig;
}

/// "ConfigMap ns/name, key any (label ...)" without the parentheses: a prefix for line and column.
std::string NameIn(const std::string& origin) { return origin.substr(0, origin.find(" (")); }

/// Of many remarks, only the first are shown.
std::vector<std::string> Shown(std::vector<std::string> remarks) {
  constexpr std::size_t kMaxRemarks = 20;
  if (remarks.size() <= kMaxRemarks) return remarks;
  const std::size_t more = remarks.size() - kMaxRemarks;
  remarks.resize(kMaxRemarks);
  remarks.push_back("and " + std::to_string(more) +
                    " more: run penstock config check to list them all");
  return remarks;
}

void LogNotes(const std::vector<std::string>& not_yet, const std::vector<std::string>& remarks) {
  for (const std::string& one : not_yet)
    base::Log(base::kWarn, "requested setting is not in force", {{"what", one}});
  for (const std::string& one : Shown(remarks))
    base::Log(base::kInfo, "configuration remark", {{"remark", one}});
}

std::string Keys(const std::vector<api::ConfigChange>& changes) {
  std::string keys;
  for (const api::ConfigChange& change : changes) keys += (keys.empty() ? "" : ", ") + change.key;
  return keys;
}

}  // namespace

Configuration::Configuration(os::Loop& control, base::Executor& io, Settings settings,
                             Resolved start, base::Duration labels_take)
    : control_(control),
      io_(io),
      settings_(std::move(settings)),
      started_with_(start.config),
      file_{.origin = start.problem.empty() ? start.origin : "file " + settings_.config_file,
            .name = settings_.config_file},
      below_(std::move(start.below)),
      own_(start.config),
      current_(start.config),
      services_known_(!ClusterConnection::Wanted(start.config.cluster)),
      labels_take_(labels_take),
      counters_(control, io, [this] { CountersChanged(); }),
      exporter_(control, io, [this] { ExporterChanged(); }),
      published_(CurrentConfig{.config = start.config}) {
  if (!start.problem.empty())
    base::Log(base::kError, "configuration file rejected; its last applied content is in force",
              {{"in force", start.origin}, {"why", start.problem}});
  refused_ = std::move(start.problem);
  if (!refused_.empty()) refused_origin_ = file_.origin;
  LogNotes(start.not_yet, start.remarks);
  reloads_.last_applied = control_.clock().Wall();
  in_force_ = {.origin = start.origin,
               .since = base::FormatTime(reloads_.last_applied),
               .not_yet = std::move(start.not_yet),
               .remarks = Shown(start.remarks)};
  reloads_.remarks = start.remarks.size();
  counters_.Begin(own_.telemetry);
  exporter_.Begin(own_.telemetry);
  Publish(own_);
}

void Configuration::Follow() {
  if (settings_.config_file.empty()) return;
  watch_ =
      std::make_unique<os::PathWatch>(control_, settings_.config_file, [this] { Read(false); });
  Read(false);
}

void Configuration::Serve(KeptConfiguration kept, const api::ConfigMapConfig& config_map) {
  // Read before this agent had the lock.
  const auto own = std::exchange(kept_, std::move(kept)).file;
  writer_.emplace(control_, io_, KeptConfigurationPath(started_with_.paths.state_dir),
                  "cannot save the configuration in force for the next start of the agent");
  if (own) Keep(&KeptConfiguration::file, *own);
  if (!services_known_)
    control_.PostAfter(labels_take_, lifetime_.Guard([this] {
      labels_late_ = true;
      if (!services_known_) Publish(current_);
    }));
  if (config_map.name.empty()) return;
  unknown_ = "ConfigMap " +
             (config_map.namespace_name.empty() ? "" : config_map.namespace_name + "/") +
             config_map.name;
  const auto& last = kept_.config_map;
  if (last && last->from == NameOfConfigMap(config_map)) Recall(*last);
  Publish(current_);
}

void Configuration::Recall(const KeptText& kept) {
  remote_ = api::RemoteConfig{.origin = kept.origin, .text = kept.text};
  if (!kept.text.empty()) {
    const auto proposal = Propose(MakeBasis(), Now());
    if (!proposal.ok()) {
      base::Log(base::kWarn, "last known content of the ConfigMap rejected",
                {{"from", kept.origin}, {"why", proposal.error().message()}});
      return remote_.reset();
    }
    Apply(*proposal, true);
  }
  recalled_ = true;
  unknown_.clear();
}

void Configuration::RemoteIsKnown() {
  unknown_.clear();
  if (const api::ConfigMapConfig& where = own_.cluster.config_map; !where.name.empty())
    Keep(&KeptConfiguration::config_map, {.from = NameOfConfigMap(where),
                                          .origin = remote_->origin,
                                          .text = remote_->text,
                                          .since = ""});
}

/// Saves the text if it differs from the saved one.
void Configuration::Keep(std::optional<KeptText> KeptConfiguration::*which, KeptText text) {
  std::optional<KeptText>& last = kept_.*which;
  if (last && last->from == text.from && last->origin == text.origin && last->text == text.text)
    return;
  text.since = base::FormatTime(control_.clock().Wall());
  last = std::move(text);
  if (writer_) writer_->Keep(EncodeKept(kept_));
}

void Configuration::Reload() {
  Read(true);
  counters_.Reload();
  exporter_.Reload();
}

void Configuration::Read(bool force) {
  if (settings_.config_file.empty()) return Consider();
  const auto read = lifetime_.Guard(
      [this, force](const base::Result<std::string>& text) { FileRead(text, force); });
  io_.Post(
      [read, &control = control_, settings = settings_, state_dir = started_with_.paths.state_dir] {
        auto text = OwnText(settings, state_dir, ReadConfigText(settings.config_file));
        control.Post([read, text = std::move(text)] { read(text); });
      });
}

void Configuration::FileRead(base::Result<std::string> text, bool force) {
  const bool first = !std::exchange(file_read_, true);
  // A program may truncate the file before it writes it again, so a file that becomes empty is an
  // error, not a configuration without settings.
  if (text.ok() && base::Trim(*text).empty() && !first)
    text = base::Error(base::Code::kInvalidArgument,
                       file_.name + ": is empty; write \"version: v1\" to use the defaults");
  const bool same =
      text.ok() == file_.text.ok() &&
      (text.ok() ? *text == *file_.text : text.error().message() == file_.text.error().message());
  file_.text = std::move(text);
  if (auto resolved = ReadOwn(); resolved.ok()) {
    Keep(&KeptConfiguration::file,
         {.from = NameOfFile(settings_), .origin = file_.origin, .text = *file_.text, .since = ""});
    below_ = std::move(resolved->below);
    own_ = std::move(resolved->config);
    // The agent was started with this text, or one that says the same, so it is already in force.
    const bool says_the_same = resolved->not_yet == in_force_.not_yet &&
                               Shown(resolved->remarks) == in_force_.remarks &&
                               api::Changes(current_, own_).empty();
    if (first && !force && !remote_ && says_the_same) return;
  }
  if (!same || first || force) Consider();
}

base::Result<Resolved> Configuration::ReadOwn() const {
  if (!file_.text.ok()) return file_.text.error();
  return ResolveText(settings_, *file_.text, file_.name);
}

void Configuration::SetRemote(const api::RemoteConfig& remote) {
  const bool first = std::exchange(recalled_, false);
  if (!first && (remote_ ? *remote_ == remote : remote == api::RemoteConfig{})) return;
  remote_ = remote;
  if (!RemoteFails()) {
    if (remote.text.empty()) RemoteIsKnown();
    return Consider();
  }
  ++reloads_.refused;
  base::Log(base::kError,
            "cluster configuration unavailable; the previous configuration stays in force",
            {{"from", remote.origin}, {"why", remote.problem}});
  Publish(current_);
}

Configuration::Source Configuration::Now() const {
  if (!remote_ || remote_->text.empty() || RemoteFails()) return file_;
  return {.origin = remote_->origin,
          .name = NameIn(remote_->origin),
          .text = remote_->text,
          .remote = true};
}

void Configuration::Consider() {
  if (RemoteFails() && remote_in_force_) return;
  const Source source = Now();
  if (!source.remote && !settings_.config_file.empty() && !file_read_) return;  // it is being read
  const auto proposal = Propose(MakeBasis(), source);
  if (!proposal.ok()) return Refuse(source, proposal.error().message());
  if (source.remote && !recalled_) RemoteIsKnown();
  Apply(*proposal, source.remote);
}

Configuration::Basis Configuration::MakeBasis() const {
  return {.settings = settings_,
          .started_with = started_with_,
          .below = below_,
          .own = own_,
          .current = current_};
}

void Configuration::Apply(const Proposal& proposal, bool remote) {
  const auto changes = api::Changes(current_, proposal.config);
  base::Log(base::kInfo, "configuration applied",
            {{"from", proposal.origin}, {"changed", changes.empty() ? "nothing" : Keys(changes)}});
  LogNotes(proposal.not_yet, proposal.remarks);
  const base::WallTime now = control_.clock().Wall();
  if (!changes.empty() || in_force_.origin != proposal.origin)
    in_force_.since = base::FormatTime(now);
  in_force_.origin = proposal.origin;
  in_force_.not_yet = proposal.not_yet;
  in_force_.remarks = Shown(proposal.remarks);
  reloads_.remarks = proposal.remarks.size();
  refused_.clear();
  refused_origin_.clear();
  remote_in_force_ = remote;
  ++reloads_.applied;
  reloads_.last_applied = now;
  Publish(proposal.config);
}

void Configuration::Refuse(const Source& source, const std::string& problem) {
  base::Log(base::kError, "configuration rejected; the previous configuration stays in force",
            {{"from", source.origin}, {"why", problem}});
  refused_ = problem;
  refused_origin_ = source.origin;
  ++reloads_.refused;
  Publish(current_);
}

void Configuration::SetServices(const api::compat::NodeServices& services) {
  const bool first = !std::exchange(services_known_, true);
  if (std::exchange(services_, services) != services_ || first) Publish(current_);
}

void Configuration::Publish(api::NodeConfig config) {
  current_ = std::move(config);
  counters_.Configure(current_.telemetry);
  counters_state_ = counters_.state();
  exporter_.Configure(current_.telemetry);
  exporter_state_ = exporter_.state();
  reloads_.last_successful = Healthy();
  CurrentConfig current{.config = {}, .report = in_force_};
  current.config = api::compat::WithServices(current_, services_, current.report.remarks);
  HoldEngine(current);
  current.report.problem = RemoteFails() ? remote_->problem : refused_;
  current.report.problem_origin = RemoteFails() ? remote_->origin : refused_origin_;
  for (const auto& [problem, origin] :
       {std::pair(counters_state_.problem, counters_state_.problem_origin),
        std::pair(exporter_state_.problem, exporter_state_.problem_origin)}) {
    if (problem.empty()) continue;
    if (current.report.problem.empty())
      current.report.problem_origin = origin;
    else
      current.report.problem += '\n';
    current.report.problem += problem;
  }
  if (!unknown_.empty())
    current.report.waiting =
        unknown_ + (RemoteFails() ? " cannot be used" : " has not been read yet");
  if (recalled_)
    current.report.not_yet.push_back(
        remote_->origin + ": not read since the agent started; its last known content is in force");
  if (current_.telemetry.counters.empty()) current.config.telemetry.counters = counters_state_.rows;
  AddExporterSettings(current);
  published_.Set(std::move(current));
}

/// At a start they are read within a second, and nothing is worth saying.
void Configuration::HoldEngine(CurrentConfig& current) {
  api::EngineSetup& engine = current.config.containers.configure_engine;
  const bool waits = !services_known_ && engine != api::EngineSetup::kOff;
  if (waits) engine = api::EngineSetup::kOff;
  if (waits && labels_late_) current.report.remarks.push_back(EngineWaits());
  if (std::exchange(engine_waits_, waits && labels_late_) == engine_waits_) return;
  if (engine_waits_)
    base::Log(base::kWarn, "configuration remark", {{"remark", EngineWaits()}});
  else
    base::Log(base::kInfo, "the container engine waits for the Node's labels no longer");
}

void Configuration::AddExporterSettings(CurrentConfig& current) const {
  api::TelemetryConfig& telemetry = current.config.telemetry;
  telemetry.counters.insert(telemetry.counters.end(), exporter_state_.rows.begin(),
                            exporter_state_.rows.end());
  telemetry.exporter = exporter_state_.settings;
  std::vector<std::string> remarks = exporter_state_.remarks;
  const auto listen = api::ParseListen(current.config.http.listen);
  if (exporter_state_.port && (!listen.ok() || listen->port != *exporter_state_.port))
    remarks.push_back(telemetry.exporter_file + ": ServerPort: is " +
                      std::to_string(*exporter_state_.port) + ", and the page is at \"" +
                      current.config.http.listen + "\"; http.listen says where it is served");
  for (std::string& remark : Shown(remarks)) current.report.remarks.push_back(std::move(remark));
}

void Configuration::ExporterChanged() {
  const ExporterFollower::State& now = exporter_.state();
  if (now == exporter_state_) return;
  if (now.problem.empty()) {
    base::Log(base::kInfo, "exporter settings applied", {{"fields", now.rows.size()}});
    ++reloads_.applied;
    reloads_.last_applied = control_.clock().Wall();
  } else if (now.problem != exporter_state_.problem) {
    ++reloads_.refused;
  }
  Publish(current_);
}

void Configuration::CountersChanged() {
  const CountersFollower::State now = counters_.state();
  if (now == counters_state_) return;
  if (now.problem.empty()) {
    base::Log(base::kInfo, "counters applied", {{"fields", now.rows.size()}});
    ++reloads_.applied;
    reloads_.last_applied = control_.clock().Wall();
  } else if (now.problem != counters_state_.problem) {
    ++reloads_.refused;
  }
  Publish(current_);
}

base::Result<Proposal> Configuration::Propose(const Basis& basis, const Source& source) {
  if (!source.text.ok()) return source.text.error();
  ASSIGN(Resolved next, ResolveText(basis.settings, *source.text, source.name,
                                    source.remote ? basis.below : api::NodeConfig{}));
  if (source.remote) return ProposeRemote(basis, source, std::move(next));
  Proposal proposal{.config = api::KeepUntilRestart(basis.started_with, next.config),
                    .after_restart = next.config,
                    .changes = api::Changes(basis.current, next.config),
                    .not_yet = std::move(next.not_yet),
                    .remarks = std::move(next.remarks),
                    .origin = source.origin};
  for (const api::ConfigChange& change : proposal.changes)
    if (change.effect == api::Effect::kRestart)
      proposal.not_yet.push_back(change.key + ": becomes \"" + change.to +
                                 "\" at the next start of the agent");
  return proposal;
}

/// A remote configuration does not change what the agent must know before it can read a ConfigMap;
/// differing settings of this kind are reported in `not_yet`.
base::Result<Proposal> Configuration::ProposeRemote(const Basis& basis, const Source& source,
                                                    Resolved next) {
  ASSIGN(const Resolved defaults,
         ResolveText(basis.settings, "", "",
                     IsNodeConfig(*source.text) ? api::NodeConfig{} : basis.below));
  Proposal proposal{.not_yet = std::move(next.not_yet),
                    .remarks = std::move(next.remarks),
                    .origin = source.origin};
  const auto reported = api::Changes(basis.own, next.config);
  for (const api::ConfigChange& given : api::Changes(defaults.config, next.config)) {
    const bool kept = given.effect == api::Effect::kRestart || given.key.starts_with("cluster.");
    const bool differs = std::ranges::any_of(
        reported, [&](const api::ConfigChange& change) { return change.key == given.key; });
    if (kept && differs)
      proposal.not_yet.push_back(
          given.key + ": cannot be set in a ConfigMap; set it in the agent's own configuration");
  }
  next.config.cluster.config_map = basis.own.cluster.config_map;
  proposal.config = api::KeepUntilRestart(basis.started_with, next.config);
  proposal.after_restart = proposal.config;
  proposal.changes = api::Changes(basis.current, proposal.config);
  return proposal;
}

std::function<base::Result<Proposal>()> Configuration::Proposing(std::optional<std::string> text,
                                                                 const std::string& name) const {
  Source source = Now();
  if (text)
    source = {.origin = name, .name = name, .text = *std::move(text), .remote = remote_in_force_};
  return [basis = MakeBasis(), source = std::move(source)] { return Propose(basis, source); };
}

}  // namespace penstock::app
