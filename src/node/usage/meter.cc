// Reacts to three kinds of events: the ledger changed, a sample came, a timer fired.
#include "node/usage/meter.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "base/lifetime.h"
#include "base/log.h"
#include "node/usage/cgroup_usage_reader.h"
#include "node/usage/device_activity.h"
#include "node/usage/recorder.h"
#include "node/usage/sums.h"
#include "node/usage/usage_accumulator.h"
#include "os/core/file.h"
#include "os/kept_file.h"

namespace penstock::node::usage {
namespace {

constexpr base::Duration kSave = std::chrono::minutes(1);
/// By then the kubelet has reported which devices its pods hold (adapter/kubelet/pod_tracker.h).
constexpr base::Duration kOrphanWait = std::chrono::minutes(1);
// A sample of at most this age shows the current state of the counters.
constexpr base::Duration kFresh = std::chrono::seconds(1);
constexpr std::size_t kCrowd = 250;  // ended holders that wait for a sample, each of some 1.5 KiB
constexpr std::size_t kPiece = 256u << 10;  // bytes of a file that are summed in one go

UsageAccumulator::Settings SettingsOf(const api::NodeConfig& config) {
  return {.labels = config.telemetry.holder_labels,
          .keep_ended = config.telemetry.keep_ended,
          .idle_after = config.usage.idle_after,
          .idle_below = config.usage.idle_below};
}

RecordFiles::Limits LimitsOf(const api::NodeConfig& config) {
  return {.file_size = config.usage.file_size, .files = config.usage.files};
}

}  // namespace

struct Meter::State : std::enable_shared_from_this<State> {
  State(Node n, const api::NodeConfig& c)
      : node(std::move(n)),
        config(c),
        accumulator([this](const std::string& device) { return ModelOf(device); }),
        groups(node.control, node.io, node.proc_root,
               [this](const std::string& lease, const os::CgroupUsage& usage) {
                 accumulator.SetGroup(lease, usage.cpu,
                                      usage.memory_peak ? usage.memory_peak : usage.memory);
                 Changed();
               }) {
    accumulator.Configure(SettingsOf(c));
  }

  base::Timestamp Now() const { return {node.control.clock().Now(), node.control.clock().Wall()}; }

  std::string ModelOf(const std::string& device) const {
    const auto inventory = node.inventory.published().Get();
    const auto* entry = inventory->Find(device);
    return entry == nullptr ? "" : entry->facts->model;
  }

  // Events.

  void LedgerChanged(const std::shared_ptr<const ledger::Snapshot>& ledger) {
    groups.Follow(*ledger);
    const bool others = !std::ranges::equal(ledger->leases, last_ledger->leases, {},
                                            &ledger::Lease::id, &ledger::Lease::id);
    last_ledger = ledger;
    accumulator.Follow(ledger, Now());
    if (others) {
      if (recorder) recorder->Touch();
      if (Now().steady - last_sample > kFresh) node.sample_soon();
      if (accumulator.waiting() >= kCrowd) node.sample_now();
    }
    Update();
  }

  void SamplesChanged(const std::shared_ptr<const sample::Snapshot>& samples) {
    bool any = false;
    for (const auto& [id, sample] : samples->devices) {
      Seen& last = seen[id];
      if (std::exchange(last.sample, sample) == sample) continue;
      const device::Dialect* dialect = node.dialect_of(sample->vendor);
      if (dialect == nullptr) continue;
      const DeviceActivity activity =
          TakeActivity(*sample, *dialect, RolesFor(*dialect), last.used);
      accumulator.Take(id, activity, sample->processes, samples->interval, Now());
      WriteEnded();
      any = true;
    }
    std::erase_if(seen, [&](const auto& one) { return !samples->devices.contains(one.first); });
    if (!any) return;
    last_sample = Now().steady;
    groups.Refresh();
    Update();
  }

  const Roles& RolesFor(const device::Dialect& dialect) {
    const auto found = roles.find(dialect.vendor());
    return found != roles.end() ? found->second
                                : roles.emplace(dialect.vendor(), RolesOf(dialect)).first->second;
  }

  /// Call after a change of the accumulator: records ended holders and schedules the next Tick.
  void Update() {
    accumulator.Tick(Now());
    WriteEnded();
    node.control.Cancel(std::exchange(tick, 0));
    if (const auto due = accumulator.due()) tick = After(*due - Now().steady, &State::Update);
    Changed();
  }

  void Changed() {
    shown = nullptr;
    if (on_change) on_change();
  }

  std::shared_ptr<const Snapshot> Get() {
    if (shown == nullptr)
      shown = std::make_shared<const Snapshot>(
          Snapshot{accumulator.Show(Now()), accumulator.forgotten(), Counts()});
    return shown;
  }

  RecordCounts Counts() const {
    RecordCounts counts = recorder ? recorder->counts() : RecordCounts();
    if (!refused.empty()) counts.problem = refused;
    return counts;
  }

  // Records.

  void WriteEnded() {
    for (Record& record : accumulator.TakeRecords()) Write(std::move(record));
  }

  void Write(Record record) {
    if (!recorder || !config.usage.records) return;
    record.node = node.name;
    recorder->Add(EncodeRecord(record), !record.ended);
  }

  void Serve(const std::string& boot) {
    boot_id = boot;
    const std::string path = config.paths.state_dir + "/usage.json";
    std::string state_text;
    auto state =
        os::LoadKept<usage::State>(path, "what was used so far", [&](const std::string& text) {
          state_text = text;
          return DecodeState(text, path);
        });
    if (!state.ok()) {
      refused = state.error().message();
      base::Log(base::kWarn, "usage is not recorded", {{"why", refused}});
      return;
    }
    const std::string folder =
        config.usage.dir.empty() ? config.paths.state_dir + "/usage" : config.usage.dir;
    recorder.emplace(
        node.control, node.io,
        Recorder::Options{.folder = folder, .state_path = path, .limits = LimitsOf(config)},
        [this] { return Keep(); }, [this] { Changed(); });
    recorder->Recover(state->pending);
    const bool same_boot = state->boot_id == boot_id;
    accumulator.Recall(
        std::move(state->holders),
        same_boot ? std::move(state->energy) : std::map<std::string, EnergyReading>(),
        TakeCleanEnd(state_text));
    if (!same_boot) accumulator.EndOrphans();
    orphans = After(kOrphanWait, &State::EndOrphans);
    save = After(kSave, &State::Save);
    checkpoint = After(config.usage.checkpoint, &State::Checkpoint);
    Update();
  }

  std::string CleanEndPath() const { return config.paths.state_dir + "/usage-end.json"; }

  /// Reads and removes what the previous agent left when it ended cleanly: it is outdated once this
  /// agent's page shows more.
  std::optional<std::vector<Hidden>> TakeCleanEnd(const std::string& state_text) const {
    using Left = std::optional<std::vector<Hidden>>;
    const std::string path = CleanEndPath();
    const auto left = os::LoadKept<Left>(
        path, "what the page showed of usage",
        [&](const std::string& text) { return DecodeCleanEnd(text, state_text, path); });
    (void)std::remove(path.c_str());
    return left.ok() ? *left : std::nullopt;
  }

  void End() {
    if (!recorder) return;
    if (const auto text = recorder->End(); text.ok())
      if (const auto done = os::WriteFileAtomically(
              CleanEndPath(), EncodeCleanEnd(accumulator.KeepHidden(), *text), 0600);
          !done.ok())
        base::Log(base::kWarn, "counters of holders will restart at 0 with the next agent",
                  {{"why", done.error().message()}});
    recorder.reset();
  }

  void EndOrphans() {
    accumulator.EndOrphans();
    Update();
  }

  usage::State Keep() {
    usage::State state{
        .boot_id = boot_id, .holders = accumulator.Keep(Now()), .energy = accumulator.KeepEnergy()};
    for (Kept& kept : state.holders) kept.record.node = node.name;
    return state;
  }

  void Save() {
    if (accumulator.running() > 0) recorder->Touch();
    save = After(kSave, &State::Save);
  }

  void Checkpoint() {
    for (Kept& kept : accumulator.Keep(Now()))
      if (!kept.record.ended) Write(std::move(kept.record));
    checkpoint = After(config.usage.checkpoint, &State::Checkpoint);
  }

  base::TimerId After(base::Duration delay, void (State::*what)()) {
    return node.control.PostAfter(std::max(delay, base::Duration::zero()),
                                  base::IfAlive(this, what));
  }

  // Sums.

  /// A query over all records. It processes a piece of a file at a time, so that other work gets
  /// its turn on the I/O executor.
  struct Summing {
    Summing(api::UsageQuery query, std::vector<Record> records)
        : sums(std::move(query)), running(std::move(records)) {}

    void Add(std::string_view line) {
      const auto record = DecodeRecord(line);
      record.ok() ? sums.Add(*record) : void(++damaged);
    }

    Sums sums;
    std::vector<Record> running;  // of running holders, added at the end
    std::optional<LineReader> files;
    std::vector<std::string> pending;
    std::uint64_t damaged = 0;
    std::function<void(base::Result<api::UsageReport>)> done;
  };

  void Sum(const std::shared_ptr<Summing>& sum) {
    const auto start = [weak = weak_from_this(), sum](LineReader files,
                                                      std::vector<std::string> pending) {
      sum->files = std::move(files);
      sum->pending = std::move(pending);
      if (const auto self = weak.lock()) self->SumNext(sum);
    };
    if (recorder) return recorder->Read(start);
    node.io.Post([start] { start(LineReader({}), {}); });
  }

  /// On the I/O executor.
  void SumNext(const std::shared_ptr<Summing>& sum) {
    if (sum->files->Read(kPiece, [&](std::string_view line) { sum->Add(line); })) {
      node.io.Post(base::IfAlive(this, [sum](State& self) { self.SumNext(sum); }));
      return;
    }
    for (const std::string& line : sum->pending) sum->Add(line);
    for (const Record& record : sum->running) sum->sums.Add(record);
    node.control.Post([weak = weak_from_this(), sum, report = sum->sums.Finish()]() mutable {
      const auto self = weak.lock();
      if (!self) return;
      self->summing = false;
      if (report.ok()) report->damaged = sum->damaged;
      if (report.ok()) report->problem = self->Counts().problem;
      sum->done(std::move(report));
    });
  }

  /// The last sample of a device, and when its values were requested.
  struct Seen {
    std::shared_ptr<const sample::DeviceSample> sample;
    Used used;
  };

  const Node node;
  api::NodeConfig config;
  UsageAccumulator accumulator;
  CgroupUsageReader groups;
  std::map<std::string, Seen> seen;                 // by device
  std::map<std::string, Roles, std::less<>> roles;  // by vendor
  std::shared_ptr<const ledger::Snapshot> last_ledger = std::make_shared<const ledger::Snapshot>();
  base::TimePoint last_sample{};
  std::string boot_id, refused;
  std::optional<Recorder> recorder;  // set by Serve
  base::TimerId tick = 0, orphans = 0, save = 0, checkpoint = 0;
  bool summing = false;
  std::shared_ptr<const Snapshot> shown;  // null: changed since
  std::function<void()> on_change;
  base::Subscription on_ledger;
};

Meter::Meter(Node node, const api::NodeConfig& config)
    : state_(std::make_shared<State>(std::move(node), config)) {
  State* const state = state_.get();
  state->on_ledger = state->node.ledger.published().Subscribe(
      [state](const auto& ledger) { state->LedgerChanged(ledger); }, true);
  SamplesChanged();
}

Meter::~Meter() {
  state_->on_ledger.Reset();
  state_->End();
}

void Meter::SamplesChanged() { state_->SamplesChanged(state_->node.samples.Get()); }

void Meter::Configure(const api::NodeConfig& config) {
  const bool pace = config.usage.checkpoint != state_->config.usage.checkpoint;
  state_->config = config;
  state_->accumulator.Configure(SettingsOf(config));
  if (state_->recorder) state_->recorder->SetLimits(LimitsOf(config));
  if (state_->recorder && pace) {
    state_->node.control.Cancel(state_->checkpoint);
    state_->checkpoint = state_->After(config.usage.checkpoint, &State::Checkpoint);
  }
  state_->Update();
}

void Meter::Serve(const std::string& boot_id) { state_->Serve(boot_id); }

base::Subscription Meter::OnChange(std::function<void()> changed) {
  state_->on_change = std::move(changed);
  return base::Subscription([state = state_] { state->on_change = nullptr; });
}

std::shared_ptr<const Snapshot> Meter::Get() const { return state_->Get(); }

void Meter::Sum(const api::UsageQuery& query,
                std::function<void(base::Result<api::UsageReport>)> done) {
  if (const auto checked = api::CheckUsageKeys(query.by); !checked.ok())
    return done(checked.error());
  if (std::exchange(state_->summing, true))
    return done(base::Error(base::Code::kUnavailable,
                            "the agent is summing usage for another request; try again"));
  std::vector<Record> running;
  for (Kept& kept : state_->accumulator.Keep(state_->Now())) {
    kept.record.node = state_->node.name;
    running.push_back(std::move(kept.record));
  }
  const auto sum = std::make_shared<State::Summing>(query, std::move(running));
  sum->done = std::move(done);
  state_->Sum(sum);
}

std::vector<api::IdleHolder> Meter::Idle() const {
  std::vector<api::IdleHolder> idle;
  const auto inventory = state_->node.inventory.published().Get();
  const base::Timestamp now = state_->Now();
  for (const auto& usage : state_->accumulator.Show(now)) {
    if (!usage->idle) continue;
    const ledger::Lease& lease = *usage->holder;
    const auto* entry = inventory->Find(usage->device);
    idle.push_back({.lease = lease.id,
                    .namespace_name = lease.namespace_name,
                    .pod = lease.pod,
                    .container = lease.container,
                    .user = lease.user,
                    .command = lease.command,
                    .device = usage->device,
                    .index = entry == nullptr ? -1 : entry->facts->index,
                    .number = entry == nullptr ? "" : entry->facts->number,
                    .model = usage->model,
                    .slot = usage->slot,
                    .since = usage->since,
                    .last_busy = usage->last_busy,
                    .idle_seconds = base::Seconds(now.wall - usage->last_busy),
                    .memory_bytes = usage->memory_used.value_or(base::Bytes{}).count});
  }
  std::ranges::stable_sort(
      idle, [](const auto& a, const auto& b) { return a.idle_seconds > b.idle_seconds; });
  return idle;
}

}  // namespace penstock::node::usage
