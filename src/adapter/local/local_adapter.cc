#include "adapter/local/local_adapter.h"

#include <algorithm>
#include <utility>

#include <unistd.h>

#include "base/core/strings.h"
#include "base/log.h"
#include "node/allocate/allocate.h"
#include "node/allocate/outlook.h"
#include "os/process/process.h"

namespace penstock::adapter::local {

using node::allocate::Devices;
using node::allocate::Waiting;
using protocol::broker::Operation;
using protocol::broker::Request;
using protocol::broker::RunRequest;

namespace {

/// How long queued programs have after an agent restart to reclaim their places; they look for an
/// agent twice a second.
constexpr base::Duration kComeBackWithin = std::chrono::seconds(10);
constexpr base::Duration kKeepWithin = std::chrono::milliseconds(20);
/// Minimum time between two writes of queue.json, which every permitted user can cause: each write
/// waits for the disk twice, and so does everything else that is written.
constexpr base::Duration kKeepApart = std::chrono::milliseconds(200);
/// Ticket numbers are reserved on disk in advance, so that a run that comes and goes changes
/// nothing on disk, and no number is issued twice after a crash.
constexpr std::uint64_t kTicketsAhead = 1000;

protocol::broker::WaitingRun Describe(const Waiting& waiting, std::size_t position,
                                      bool resumable) {
  return {.ticket = waiting.ticket,
          .position = static_cast<int>(position),
          .reason = waiting.reason,
          .user = waiting.user,
          .command = waiting.command,
          .count = waiting.request.count,
          .share = waiting.request.share,
          .model = waiting.request.model,
          .devices = waiting.request.devices,
          .since = base::FormatTime(waiting.since),
          .time = waiting.time,
          .expected_start = "",
          .resumable = resumable,
          .profile = waiting.request.profile,
          .min_memory = waiting.request.least_memory,
          .vendor = waiting.request.vendor};
}

/// "limits of each user while others wait: 4 devices, 16 requests"; empty if there are none.
std::string DescribeLimits(const api::QueueConfig& limits) {
  std::vector<std::string> parts;
  if (limits.devices > 0) parts.push_back(std::to_string(limits.devices) + " devices");
  if (limits.waiting > 0) parts.push_back(std::to_string(limits.waiting) + " requests");
  if (limits.time > base::Duration::zero()) parts.push_back(base::FormatDuration(limits.time));
  return parts.empty() ? ""
                       : "limits of each user while others wait: " + base::Join(parts, ", ") +
                             " (queue.perUser)";
}

std::string NameOf(device::Enforcer enforcer) {
  return enforcer == device::Enforcer::kNothing ? "" : std::string(device::ToString(enforcer));
}

protocol::broker::GrantedDevice Describe(const node::ledger::Slot& slot, const device::Facts& facts,
                                         const device::SharedDevices& servers) {
  return {.id = facts.id,
          .index = facts.index,
          .model = facts.model,
          .slot = slot.id,
          .shares = slot.shape.shares,
          .sharing = std::string(device::ToString(slot.shape.sharing)),
          .isolation = std::string(
              device::ToString(node::share::IsolationOf(facts.id, slot.shape, servers))),
          .memory_limit = slot.limits.memory,
          .compute_percent = slot.limits.compute_percent,
          .memory_limit_by = NameOf(slot.limits.memory_by),
          .compute_by = NameOf(slot.limits.compute_by),
          .number = facts.number,
          .profile = facts.profile};
}

void Refuse(const std::shared_ptr<protocol::broker::Session>& session, Code code,
            const std::string& message) {
  session->Answer(protocol::broker::EncodeError(Error(code, message)));
}

protocol::broker::DivideProgress ToBroker(const node::change::DeviceDivision& device) {
  return {device.device, device.number, device.state, device.reason};
}

protocol::broker::AssignProgress ToBroker(const node::change::DeviceMove& move,
                                          const node::inventory::Snapshot& inventory) {
  const auto* entry = inventory.Find(move.device);
  return {move.device,
          move.index,
          move.from,
          move.to,
          std::string(ToString(move.state)),
          move.reason,
          entry == nullptr ? "" : entry->facts->number};
}

}  // namespace

LocalAdapter::LocalAdapter(os::Loop& loop, base::Executor& io, Node node, Options options,
                           Callbacks callbacks, node::lease::LocalLeases::OpenGroups open_groups)
    : loop_(loop),
      io_(io),
      node_(std::move(node)),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      leases_(loop, io, options_.proc_root, node_.inventory, node_.ledger, std::move(open_groups),
              [this] {
                queue_.Try();
                KeepSoon();
              }),
      policy_(
          loop,
          {node_.inventory, node_.ledger, node_.offers, leases_.terms(), node_.dialect_of,
           [this] { return Create(); },
           [this](const Waiting& waiting) { return IsPreparing(waiting); }},
          {[this](const std::string& lease, const std::string& why) { leases_.End(lease, why); },
           [this] { queue_.Try(); }}),
      queue_(loop, {[this](const Waiting& waiting, const Devices& kept_back) {
                      return Attempt(waiting, kept_back);
                    },
                    [this](const Waiting& waiting) { return CouldUse(waiting); },
                    [this](const Waiting& waiting) { return policy_.ClaimOf(waiting); },
                    [this](uid_t uid) { return policy_.HeldBy(uid); },
                    [this](const Waiting& waiting) { return AmountOf(waiting); },
                    [this](const Waiting& waiting, std::size_t position) {
                      ReportProgress(waiting, position);
                    },
                    [this](const Waiting& waiting, const base::Status& status) {
                      ReportDone(waiting, status);
                    },
                    [this](const Waiting& waiting) { return IsPreparing(waiting); }}),
      server_(
          loop, options_.run_dir, options_.group,
          [this](const SessionPtr& session, const Request& request) { Handle(session, request); }) {
  if (!options_.queue_file.empty() && options_.enabled)
    writer_.emplace(loop, io, options_.queue_file,
                    "cannot write the run queue; a restart would lose the places of queued runs");
}

LocalAdapter::~LocalAdapter() {
  lifetime_.End();
  loop_.Cancel(keep_);
  // The queued programs come back to the next agent.
  if (writer_ && closed_reason_.empty()) writer_->Keep(EncodeCheckpoint(queue_.next_ticket()));
}

void LocalAdapter::Follow(const node::share::NodeDevices& now,
                          const node::share::NodeDevices& before) {
  if (now.inventory != before.inventory) leases_.DevicesChanged();
  if (now.offers != before.offers || now.ledger != before.ledger) queue_.Try();
  if (now.ledger != before.ledger) KeepSoon();
}

void LocalAdapter::Recover(const std::vector<node::ledger::Lease>& checkpoint,
                           node::lease::QueueCheckpoint queue,
                           const std::vector<node::ledger::LeaseLimits>& limits) {
  leases_.Recover(checkpoint, queue.runs, limits);
  std::erase_if(queue.waiting, [this](const Waiting& waiting) {
    const auto start = os::ReadProcessStart(options_.proc_root, waiting.waiter.pid);
    return !start.ok() || *start != waiting.waiter.start;
  });
  for (Waiting& waiting : queue.waiting) waiting.request.allocator = api::kLocalAllocator;
  queue_.Restore(std::move(queue.waiting), queue.next_ticket, kComeBackWithin);
}

void LocalAdapter::Configure(const api::QueueConfig& limits) {
  policy_.Configure(limits);
  queue_.Configure(limits);
}

std::string LocalAdapter::EncodeCheckpoint(std::uint64_t next_ticket) const {
  node::lease::QueueCheckpoint queue{
      .waiting = queue_.List(), .next_ticket = next_ticket, .runs = leases_.terms()};
  std::erase_if(queue.waiting, [this](const Waiting& waiting) {
    const auto requester = requesters_.find(waiting.ticket);
    return requester != requesters_.end() && !requester->second.waits;
  });
  return node::lease::EncodeQueueCheckpoint(queue, options_.boot_id);
}

bool LocalAdapter::TicketsRunOut() const {
  return queue_.next_ticket() + kTicketsAhead / 2 > tickets_noted_;
}

// Combines many changes into one write.
void LocalAdapter::KeepSoon() {
  if (!writer_ || keep_ != 0) return;
  keep_ = loop_.PostAfter(std::max(kKeepWithin, keep_again_ - loop_.clock().Now()), [this] {
    keep_ = 0;
    keep_again_ = loop_.clock().Now() + kKeepApart;
    if (TicketsRunOut()) tickets_noted_ = queue_.next_ticket() + kTicketsAhead;
    writer_->Keep(EncodeCheckpoint(tickets_noted_));
  });
}

base::Status LocalAdapter::Open() {
  auto started = server_.Start();
  closed_reason_ = started.ok() ? "" : started.error().message();
  if (options_.enabled && !leases_.visibility_reason().empty())
    base::Log(base::kWarn, "cannot create control groups; leases have visibility only",
              {{"reason", leases_.visibility_reason()}});
  return started;
}

api::AllocatorReport LocalAdapter::Report() const {
  api::AllocatorReport report;
  report.name = api::kLocalAllocator;
  if (!options_.enabled || !closed_reason_.empty()) {
    report.state = "closed";
    report.reason = options_.enabled
                        ? closed_reason_
                        : "switched off in the configuration (allocators.local.enabled)";
    return report;
  }
  report.state = "open";
  report.reason = server_.access();
  report.enforcement =
      ToString(leases_.visibility_reason().empty() ? node::ledger::Enforcement::kDevices
                                                   : node::ledger::Enforcement::kVisibility);
  if (!leases_.visibility_reason().empty())
    report.reason += "; visibility only: " + leases_.visibility_reason();
  if (const std::string limits = DescribeLimits(policy_.limits()); !limits.empty())
    report.reason += "; " + limits;
  for (const auto& offer : *node_.offers.Get())
    if (offer.allocator == api::kLocalAllocator) report.resources.push_back(offer.resource);
  report.closed_cgroups = leases_.closed().cgroups;
  report.closed_problem = leases_.closed().problem;
  return report;
}

void LocalAdapter::Handle(const SessionPtr& session, const Request& request) {
  switch (request.operation) {
    case Operation::kVersion:
      return session->Answer(
          protocol::broker::EncodeVersion({.version = PENSTOCK_VERSION, .pid = ::getpid()}));
    case Operation::kRun: return HandleRun(session, request.run);
    case Operation::kQueue: return HandleQueue(session);
    case Operation::kCancel: return HandleCancel(session, request.ticket);
    case Operation::kStatus: return HandleReport(session, false);
    case Operation::kPs: return HandleReport(session, true);
    case Operation::kPreview: return HandlePreview(session, request.preview);
    case Operation::kDown: return HandleDown(session);
    case Operation::kAssign: return HandleAssign(session, request.assign);
    case Operation::kSamples: return HandleSamples(session);
    case Operation::kUsage: return HandleUsage(session, request.usage);
    case Operation::kDivide: return HandleDivide(session, request.divide);
    case Operation::kRelease: return HandleRelease(session, request.release.vendor);
  }
}

// Looks up the user on the I/O thread, since a user database may be slow. Requests keep their order
// there.
void LocalAdapter::HandleRun(const SessionPtr& session, const RunRequest& run) {
  if (!options_.enabled)
    return Refuse(session, Code::kFailedPrecondition,
                  "this agent allocates no devices to local users: " + Report().reason);
  const protocol::broker::Peer& peer = session->peer();
  if (peer.pid <= 0)
    return Refuse(session, Code::kFailedPrecondition,
                  "the agent cannot see the requesting process, which is in another PID namespace "
                  "(a container)");
  if (!peer.pidfd) return session->Close();
  const auto gone = std::make_shared<bool>(false);
  session->OnClosed([gone] { *gone = true; });
  const auto read = lifetime_.Guard([this, gone, session, run](node::ledger::Process& process) {
    if (!*gone) Enqueue(session, run, std::move(process));
  });
  io_.Post([read, &loop = loop_, proc = options_.proc_root, command = run.command, pid = peer.pid,
            uid = peer.uid] {
    node::ledger::Process process{pid, os::ReadProcessStart(proc, pid).value_or(0),
                                  os::UserName(uid), command};
    loop.Post([read, process = std::move(process)]() mutable { read(process); });
  });
}

void LocalAdapter::Enqueue(const SessionPtr& session, const RunRequest& run,
                           node::ledger::Process process) {
  if (const auto may = leases_.MayAdmit(process.pid); !may.ok())
    return session->Answer(protocol::broker::EncodeError(may.error()));
  Waiting waiting;
  waiting.request = {.allocator = std::string(api::kLocalAllocator),
                     .count = run.count,
                     .share = run.share,
                     .limits = {.memory = run.memory, .compute_percent = run.compute_percent},
                     .model = run.model,
                     .vendor = run.vendor,
                     .profile = run.profile,
                     .least_memory = run.min_memory,
                     .devices = run.devices};
  waiting.ticket = run.ticket;
  waiting.time = run.time;
  waiting.waiter = {session->peer().uid, process.pid, process.start};
  waiting.user = process.user;
  waiting.command = run.command;
  waiting.since = loop_.clock().Wall();
  const base::Duration wait = run.wait.value_or(node::allocate::Queue::kIndefinitely);
  const bool waits = wait > base::Duration::zero();
  const auto ticket = queue_.Add(std::move(waiting), wait);
  if (!ticket.ok()) return session->Answer(protocol::broker::EncodeError(ticket.error()));
  requesters_[*ticket] = {session, std::move(process), run.labels, {}, waits};
  if (waits || TicketsRunOut()) KeepSoon();
  session->OnClosed(lifetime_.Guard(
      [this, ticket = *ticket] { (void)queue_.Cancel(ticket, "the waiting process exited"); }));
}

const std::vector<node::share::Offer>& LocalAdapter::OffersWithout(const Devices& kept_back) {
  auto offers = node_.offers.Get();
  if (reduced_.from != offers || reduced_.without != kept_back)
    reduced_ = {offers, kept_back, node::allocate::WithoutDevices(*offers, kept_back)};
  return reduced_.offers;
}

// --- parts that are created for a request

node::change::PartsOnDemand* LocalAdapter::OnDemand() const {
  return callbacks_.on_demand ? callbacks_.on_demand() : nullptr;
}

/// Has the parts created that the request lacks, where that is possible. Returns what it waits for
/// then, or why it cannot be served.
Error LocalAdapter::Prepare(const Waiting& waiting, const Devices& kept_back,
                            const Error& why_not) {
  const node::allocate::Request& request = waiting.request;
  auto* on_demand = OnDemand();
  const bool possible = on_demand != nullptr && node::allocate::MayBeCreatedFor(request) &&
                        why_not.code() != Code::kInvalidArgument;
  if (!possible) return why_not;
  const auto there = node::allocate::ReserveSome(
      request, *node_.inventory.published().Get(), *node_.ledger.Get(),
      OffersWithout(WithoutReserved(waiting, kept_back)), node_.dialect_of);
  const auto preparing = on_demand->Prepare({.ticket = waiting.ticket,
                                             .profile = request.profile,
                                             .model = request.model,
                                             .count = static_cast<std::size_t>(request.count),
                                             .missing = static_cast<std::size_t>(there.missing),
                                             .kept_back = kept_back},
                                            why_not);
  if (preparing.ok()) return {Code::kResourceExhausted, *preparing};
  if (preparing.error().code() == Code::kNotFound) return why_not;
  if (why_not.code() != Code::kResourceExhausted) return preparing.error();
  return {why_not.code(), why_not.message() + "; " + preparing.error().message()};
}

/// Foresees what Prepare does.
node::allocate::Create LocalAdapter::Create() const {
  const auto* on_demand = OnDemand();
  auto forecast = on_demand == nullptr ? nullptr : on_demand->Foresee();
  if (!forecast) return nullptr;
  return [foresee = std::move(forecast)](
             const node::allocate::Request& request, int missing,
             const node::ledger::Snapshot& then) -> std::optional<std::vector<node::ledger::Slot>> {
    auto slots = foresee({.ticket = "",
                          .profile = request.profile,
                          .model = request.model,
                          .count = static_cast<std::size_t>(request.count),
                          .missing = static_cast<std::size_t>(missing),
                          .kept_back = {}},
                         then);
    if (slots.empty()) return std::nullopt;
    return slots;
  };
}

bool LocalAdapter::IsPreparing(const Waiting& waiting) const {
  const auto* on_demand = OnDemand();
  return on_demand != nullptr && on_demand->IsPreparing(waiting.ticket);
}

Devices LocalAdapter::WithoutReserved(const Waiting& waiting, Devices kept_back) const {
  if (const auto* on_demand = OnDemand())
    kept_back.merge(on_demand->ReservedForOthers(waiting.ticket));
  return kept_back;
}

Devices LocalAdapter::CouldUse(const Waiting& waiting) const {
  Devices devices = policy_.CouldUse(waiting);
  if (const auto* on_demand = OnDemand(); on_demand != nullptr && !waiting.request.profile.empty())
    devices.merge(on_demand->CouldServe(waiting.request.profile, waiting.request.model));
  return devices;
}

double LocalAdapter::AmountOf(const Waiting& waiting) const {
  const node::allocate::Request& request = waiting.request;
  const auto* on_demand = OnDemand();
  const double fraction =
      on_demand == nullptr || request.profile.empty() ? 0 : on_demand->FractionOf(request.profile);
  return fraction > 0 ? request.count * fraction / request.share : policy_.AmountOf(waiting);
}

base::Status LocalAdapter::Attempt(const Waiting& waiting, const Devices& kept_back) {
  Requester& requester = requesters_.at(waiting.ticket);
  const auto inventory = node_.inventory.published().Get();
  const auto reserved =
      node::allocate::Reserve(waiting.request, *inventory, *node_.ledger.Get(),
                              OffersWithout(WithoutReserved(waiting, kept_back)), node_.dialect_of);
  if (!reserved.ok()) return Prepare(waiting, kept_back, reserved.error());
  const std::vector<node::ledger::Slot>& slots = *reserved;
  const auto servers = node_.offers.Servers();
  ASSIGN(const auto edits, node::allocate::Commit(slots, node::allocate::ConsumerKind::kProcess,
                                                  *inventory, node_.dialect_of, *servers));
  if (!edits.mounts.empty())
    return Error(Code::kFailedPrecondition,
                 "device " + slots.front().device +
                     " is shared through a server that meets its clients in containers only, "
                     "because pods use the devices of this machine too: share what is assigned to "
                     "local users by time-slicing");
  ASSIGN(const auto lease,
         leases_.Admit({slots, waiting.waiter.uid, waiting.user, waiting.command, requester.process,
                        requester.session->peer().pidfd.get(), requester.labels, waiting.time}));
  requester.granted.lease = lease.id;
  requester.granted.environment = edits.environment;
  requester.granted.time = waiting.time;
  requester.granted.time_while_others_wait = policy_.TimeOf(waiting.waiter.uid);
  requester.granted.enforcement = node::ledger::ToString(lease.enforcement);
  if (lease.enforcement == node::ledger::Enforcement::kVisibility)
    requester.granted.reason = leases_.visibility_reason();
  for (const auto& slot : slots)
    if (const auto* entry = inventory->Find(slot.device))
      requester.granted.devices.push_back(Describe(slot, *entry->facts, *servers));
  return {};
}

void LocalAdapter::ReportProgress(const Waiting& waiting, std::size_t position) {
  requesters_.at(waiting.ticket)
      .session->Progress(
          protocol::broker::EncodeWaiting(Describe(waiting, position, writer_.has_value())));
}

void LocalAdapter::ReportDone(const Waiting& waiting, const base::Status& status) {
  if (auto* on_demand = OnDemand()) on_demand->Release(waiting.ticket);
  const auto requester = requesters_.extract(waiting.ticket);
  if (!requester || requester.mapped().waits) KeepSoon();
  if (!requester) return;
  requester.mapped().session->Answer(
      status.ok() ? protocol::broker::EncodeGranted(requester.mapped().granted)
                  : protocol::broker::EncodeError(status.error()));
}

/// The ledger has users by name. The I/O thread looks the name up, see HandleRun; viewers who see
/// everything need none.
void LocalAdapter::WithViewer(const SessionPtr& session,
                              std::function<void(const api::Viewer&)> then) {
  if (MayAdminister(*session)) return then({.sees_all = true});
  const auto read = lifetime_.Guard(std::move(then));
  io_.Post([read, &loop = loop_, uid = session->peer().uid] {
    loop.Post([read, viewer = api::Viewer{.user = os::UserName(uid)}]() mutable { read(viewer); });
  });
}

bool LocalAdapter::MayAdminister(const Session& session) const {
  return session.peer().uid == 0 || session.peer().uid == ::geteuid();
}

void LocalAdapter::HandleCancel(const SessionPtr& session, const std::string& ticket) {
  const Waiting* waiting = queue_.Find(ticket);
  if (waiting != nullptr && !MayAdminister(*session) && waiting->waiter.uid != session->peer().uid)
    return Refuse(
        session, Code::kPermissionDenied,
        ticket + " belongs to " + waiting->user + ": only that user and root may cancel it");
  const auto cancelled =
      queue_.Cancel(ticket, "cancelled by `penstock queue cancel " + ticket + "`");
  session->Answer(cancelled.ok() ? protocol::broker::EncodeDone(ticket + " is cancelled")
                                 : protocol::broker::EncodeError(cancelled.error()));
}

view::PageQueue LocalAdapter::Queue() {
  view::PageQueue queue{.runs = queue_.InOrder()};
  queue.expected_starts = policy_.ExpectedStarts(queue.runs);
  return queue;
}

void LocalAdapter::HandleQueue(const SessionPtr& session) {
  std::vector<protocol::broker::WaitingRun> queue;
  const auto in_order = queue_.InOrder();
  const auto& starts = policy_.ExpectedStarts(in_order);
  for (const Waiting& waiting : in_order) {
    queue.push_back(Describe(waiting, queue.size(), writer_.has_value()));
    if (const auto start = starts.find(waiting.ticket); start != starts.end())
      queue.back().expected_start = base::FormatTime(start->second);
    if (!MayAdminister(*session) && waiting.waiter.uid != session->peer().uid)
      queue.back().command = api::ProgramOf(waiting.command);
  }
  session->Answer(protocol::broker::EncodeQueue(queue));
}

void LocalAdapter::HandleReport(const SessionPtr& session, bool holders_only) {
  WithViewer(session, [this, session, holders_only](const api::Viewer& viewer) {
    leases_.RefreshProcesses([this, session, holders_only, viewer] {
      api::Report report = callbacks_.report();
      api::HideCommands(viewer, report);
      session->Answer(holders_only ? api::HoldersToJson(report) : api::ToJson(report));
    });
  });
}

void LocalAdapter::HandleSamples(const SessionPtr& session) {
  if (!callbacks_.samples)
    return Refuse(session, Code::kUnimplemented, "this agent collects no samples");
  WithViewer(session, [this, session](const api::Viewer& viewer) {
    leases_.RefreshProcesses([this, session, viewer] {
      api::Samples samples = callbacks_.samples();
      api::HideCommands(viewer, samples);
      session->Answer(api::ToJson(samples));
    });
  });
}

// Queued, since it reads records.
void LocalAdapter::HandleUsage(const SessionPtr& session,
                               const protocol::broker::UsageRequest& request) {
  if (!callbacks_.usage)
    return Refuse(session, Code::kUnimplemented, "this agent does not record usage");
  WithViewer(session, [this, session, request](const api::Viewer& viewer) {
    sums_.Add(session, [&usage = callbacks_.usage, request, viewer](AnswerQueue::Done done) {
      usage(request, viewer, std::move(done));
    });
  });
}

void LocalAdapter::HandlePreview(const SessionPtr& session,
                                 const protocol::broker::PreviewRequest& request) {
  if (!callbacks_.preview)
    return Refuse(session, Code::kUnimplemented,
                  "this agent computes no previews of configurations");
  previews_.Add(session, [&preview = callbacks_.preview, request](AnswerQueue::Done done) {
    preview(request, std::move(done));
  });
}

void LocalAdapter::HandleDown(const SessionPtr& session) {
  if (!MayAdminister(*session))
    return Refuse(session, Code::kPermissionDenied,
                  "only root and the user that the agent runs as may stop it");
  base::Log(base::kInfo, "stop requested",
            {{"uid", static_cast<long>(session->peer().uid)},
             {"pid", static_cast<long>(session->peer().pid)}});
  session->Answer(protocol::broker::EncodeDone("the agent ends"));
  callbacks_.end();
}

// A closed session gets no further lines; a move that has begun continues.
void LocalAdapter::HandleAssign(const SessionPtr& session,
                                const protocol::broker::AssignRequest& request) {
  if (!callbacks_.move)
    return Refuse(session, Code::kUnimplemented, "this agent cannot assign devices");
  if (!request.dry_run && !MayAdminister(*session))
    return Refuse(session, Code::kPermissionDenied,
                  "only root and the user that the agent runs as may assign devices");
  if (!request.dry_run)
    base::Log(base::kInfo, "device move requested",
              {{"devices", base::Join(request.devices, ",")},
               {"allocator", request.allocator},
               {"uid", static_cast<long>(session->peer().uid)}});
  leases_.CheckAllGroups();  // processes that just ended hold nothing
  node::inventory::Inventory& inventory = node_.inventory;  // outlives the moves
  callbacks_.move(
      {request.devices, request.allocator, request.wait, request.dry_run},
      [session, &inventory](const node::change::DeviceMove& move) {
        session->Progress(
            protocol::broker::EncodeMoving(ToBroker(move, *inventory.published().Get())));
      },
      [session, &inventory](const base::Result<std::vector<node::change::DeviceMove>>& moves) {
        if (!moves.ok()) return session->Answer(protocol::broker::EncodeError(moves.error()));
        std::vector<protocol::broker::AssignProgress> moved;
        const auto now = inventory.published().Get();
        for (const node::change::DeviceMove& move : *moves) moved.push_back(ToBroker(move, *now));
        session->Answer(protocol::broker::EncodeMoved(moved));
      });
}

// As for a move: it continues when the session is closed.
void LocalAdapter::HandleDivide(const SessionPtr& session,
                                const protocol::broker::DivideRequest& request) {
  if (!callbacks_.divide)
    return Refuse(session, Code::kUnimplemented, "this agent cannot divide devices");
  if (!MayAdminister(*session))
    return Refuse(session, Code::kPermissionDenied,
                  "only root and the user that the agent runs as may divide devices");
  auto layout = api::DecodeLayout(request.layout, "layout");
  if (!layout.ok()) return Refuse(session, layout.error().code(), layout.error().message());
  base::Log(base::kInfo, "layout requested",
            {{"layout", layout->name},
             {"vendor", request.vendor},
             {"uid", static_cast<long>(session->peer().uid)}});
  leases_.CheckAllGroups();  // processes that just ended hold nothing
  callbacks_.divide(
      request.vendor,
      {.layout = *std::move(layout),
       .source = "user",
       .mode_only = request.mode_only,
       .skip_reset = request.skip_reset,
       .wait = request.wait},
      [session](const node::change::DeviceDivision& device) {
        session->Progress(protocol::broker::EncodeDividing(ToBroker(device)));
      },
      [session](const base::Result<std::vector<node::change::DeviceDivision>>& devices) {
        if (!devices.ok()) return session->Answer(protocol::broker::EncodeError(devices.error()));
        std::vector<protocol::broker::DivideProgress> divided;
        for (const auto& device : *devices) divided.push_back(ToBroker(device));
        session->Answer(protocol::broker::EncodeDivided(divided));
      });
}

// The request is never answered to the end: the driver is released as long as the session lives.
void LocalAdapter::HandleRelease(const SessionPtr& session, const std::string& vendor) {
  if (!callbacks_.release.begin)
    return Refuse(session, Code::kUnimplemented, "this agent cannot release a driver");
  if (!MayAdminister(*session))
    return Refuse(session, Code::kPermissionDenied,
                  "only root and the user that the agent runs as may have a driver released");
  base::Log(base::kInfo, "driver release requested",
            {{"vendor", vendor},
             {"uid", static_cast<long>(session->peer().uid)},
             {"pid", static_cast<long>(session->peer().pid)}});
  session->OnClosed(lifetime_.Guard([this, vendor] {
    base::Log(base::kInfo, "driver release ended", {{"vendor", vendor}});
    callbacks_.release.end(vendor);
  }));
  callbacks_.release.begin(
      vendor, [session, vendor](const base::Result<std::vector<std::string>>& remaining) {
        if (!remaining.ok())
          return Refuse(session, remaining.error().code(), remaining.error().message());
        session->Progress(protocol::broker::EncodeReleased({vendor, *remaining}));
      });
}

}  // namespace penstock::adapter::local
