// Requests of the broker's socket to calls on the node, and back.
#include "door/local.h"

#include <algorithm>
#include <utility>

#include <unistd.h>

#include "base/core/strings.h"
#include "base/log.h"
#include "node/allocate/allocate.h"
#include "node/allocate/outlook.h"
#include "os/process.h"

namespace penstock::door {

using base::Code;
using base::Error;
using edge::broker::Operation;
using edge::broker::Request;
using edge::broker::RunRequest;
using node::allocate::Devices;
using node::allocate::Waiting;

namespace {

/// How long those who waited when the agent ended have to come back to their places; their programs look for an agent twice a second.
constexpr base::Duration kComeBackWithin = std::chrono::seconds(10);
constexpr base::Duration kKeepWithin = std::chrono::milliseconds(20);
/// Between two writes of queue.json, which all who may ask can cause: each waits for the disk twice, and so does all else that is written.
constexpr base::Duration kKeepApart = std::chrono::milliseconds(200);
/// Numbers of tickets are noted ahead, so that one who comes and goes changes nothing on disk, and no number is given twice after a crash.
constexpr std::uint64_t kTicketsAhead = 1000;

edge::broker::WaitingRun Describe(const Waiting& waiting, std::size_t position, bool resumable) {
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
          .resumable = resumable};
}

/// "each user has 4 devices, 16 requests, 24h while others wait"; empty where there are no limits.
std::string InWords(const api::QueueConfig& limits) {
  std::vector<std::string> parts;
  if (limits.gpus > 0) parts.push_back(std::to_string(limits.gpus) + " devices");
  if (limits.waiting > 0) parts.push_back(std::to_string(limits.waiting) + " requests");
  if (limits.time > base::Duration::zero()) parts.push_back(base::FormatDuration(limits.time));
  return parts.empty() ? "" : "each user has " + base::Join(parts, ", ") + " while others wait (queue.perUser)";
}

edge::broker::GrantedDevice Describe(const node::ledger::Slot& slot, const device::Facts& facts, const device::SharedDevices& servers) {
  return {.id = facts.id,
          .index = facts.index,
          .model = facts.model,
          .slot = slot.id,
          .shares = slot.shape.shares,
          .sharing = std::string(device::ToString(slot.shape.sharing)),
          .isolation = std::string(device::ToString(node::share::IsolationOf(facts.id, slot.shape, servers)))};
}

void Refuse(const std::shared_ptr<edge::broker::Session>& session, Code code, const std::string& message) {
  session->Answer(edge::broker::EncodeError(Error(code, message)));
}

}  // namespace

LocalDoor::LocalDoor(os::Loop& loop, base::Executor& io, Node node, Options options, Callbacks callbacks,
                     LocalLeases::OpenGroups open_groups)
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
      policy_(loop, {node_.inventory, node_.ledger, node_.offers, leases_.terms()},
              {[this](const std::string& lease, const std::string& why) { leases_.End(lease, why); }, [this] { queue_.Try(); }}),
      queue_(loop, {[this](const Waiting& waiting, const Devices& kept_back) { return Attempt(waiting, kept_back); },
                    [this](const Waiting& waiting) { return policy_.CouldUse(waiting); },
                    [this](const Waiting& waiting) { return policy_.ClaimOf(waiting); }, [this](uid_t uid) { return policy_.HeldBy(uid); },
                    [this](const Waiting& waiting, std::size_t position) { TellProgress(waiting, position); },
                    [this](const Waiting& waiting, const base::Status& status) { TellDone(waiting, status); }}),
      self_(std::make_shared<LocalDoor*>(this)),
      server_(loop, options_.run_dir, options_.group, [this](SessionPtr session, const Request& request) { Handle(session, request); }) {
  on_offers_ = node_.offers.published().Subscribe([this](const auto&) { queue_.Try(); });
  on_ledger_ = node_.ledger.published().Subscribe([this](const auto&) {
    queue_.Try();
    KeepSoon();
  });
  if (!options_.queue_file.empty() && options_.enabled)
    memory_.emplace(loop, io, options_.queue_file, "who waits for devices cannot be written, and would lose the place by a restart");
}

LocalDoor::~LocalDoor() {
  *self_ = nullptr;
  on_offers_.Reset();
  on_ledger_.Reset();
  loop_.Cancel(keep_);
  // Those who wait come back to the next agent.
  if (memory_ && closed_reason_.empty()) memory_->Keep(Memory(queue_.next_ticket()));
}

void LocalDoor::Recover(const std::vector<node::ledger::Lease>& checkpoint, QueueMemory memory) {
  leases_.Recover(checkpoint, memory.runs);
  std::erase_if(memory.waiting, [this](const Waiting& waiting) {
    const auto start = os::ReadProcessStart(options_.proc_root, waiting.waiter.pid);
    return !start.ok() || *start != waiting.waiter.start;
  });
  for (Waiting& waiting : memory.waiting) waiting.request.door = node::share::kLocalDoor;
  queue_.Restore(std::move(memory.waiting), memory.next_ticket, kComeBackWithin);
}

void LocalDoor::Configure(const api::QueueConfig& limits) {
  policy_.Configure(limits);
  queue_.Configure(limits);
}

std::string LocalDoor::Memory(std::uint64_t next_ticket) const {
  QueueMemory memory{.waiting = queue_.List(), .next_ticket = next_ticket, .runs = leases_.terms()};
  std::erase_if(memory.waiting, [this](const Waiting& waiting) {
    const auto asker = askers_.find(waiting.ticket);
    return asker != askers_.end() && !asker->second.waits;
  });
  return EncodeQueueMemory(memory, options_.boot_id);
}

bool LocalDoor::TicketsRunOut() const { return queue_.next_ticket() + kTicketsAhead / 2 > tickets_noted_; }

// Many changes become one text.
void LocalDoor::KeepSoon() {
  if (!memory_ || keep_ != 0) return;
  keep_ = loop_.PostAfter(std::max(kKeepWithin, keep_again_ - loop_.clock().Now()), [this] {
    keep_ = 0;
    keep_again_ = loop_.clock().Now() + kKeepApart;
    if (TicketsRunOut()) tickets_noted_ = queue_.next_ticket() + kTicketsAhead;
    memory_->Keep(Memory(tickets_noted_));
  });
}

base::Status LocalDoor::Open() {
  const auto started = server_.Start();
  closed_reason_ = started.ok() ? "" : started.error().message();
  if (options_.enabled && !leases_.visibility_reason().empty())
    base::Log(base::kWarn, "no control groups can be made, so leases are visibility only", {{"reason", leases_.visibility_reason()}});
  return started;
}

api::DoorReport LocalDoor::Report() const {
  api::DoorReport report;
  report.name = node::share::kLocalDoor;
  if (!options_.enabled || !closed_reason_.empty()) {
    report.state = "closed";
    report.reason = options_.enabled ? closed_reason_ : "switched off in the configuration (doors.local.enabled)";
    return report;
  }
  report.state = "open";
  report.reason = server_.access();
  report.enforcement =
      ToString(leases_.visibility_reason().empty() ? node::ledger::Enforcement::kDevices : node::ledger::Enforcement::kVisibility);
  if (!leases_.visibility_reason().empty()) report.reason += "; visibility only: " + leases_.visibility_reason();
  if (const std::string limits = InWords(policy_.limits()); !limits.empty()) report.reason += "; " + limits;
  for (const auto& offer : *node_.offers.published().Get())
    if (offer.door == node::share::kLocalDoor) report.resources.push_back(offer.resource);
  report.closed_cgroups = leases_.closed().cgroups;
  report.closed_problem = leases_.closed().problem;
  return report;
}

void LocalDoor::Handle(const SessionPtr& session, const Request& request) {
  switch (request.operation) {
    case Operation::kVersion: return session->Answer(edge::broker::EncodeVersion({.version = PENSTOCK_VERSION, .pid = ::getpid()}));
    case Operation::kRun: return HandleRun(session, request.run);
    case Operation::kQueue: return HandleQueue(session);
    case Operation::kCancel: return HandleCancel(session, request.ticket);
    case Operation::kStatus: return HandleReport(session, false);
    case Operation::kPs: return HandleReport(session, true);
    case Operation::kPlan: return HandlePlan(session, request.plan);
    case Operation::kDown: return HandleDown(session);
    case Operation::kDoor: return HandleDoor(session, request.door);
    case Operation::kSamples: return HandleSamples(session);
    case Operation::kUsage: return HandleUsage(session, request.usage);
  }
}

// Who asks is looked up on the I/O thread: a user database may be slow. Askers keep their order there.
void LocalDoor::HandleRun(const SessionPtr& session, const RunRequest& run) {
  if (!options_.enabled) return Refuse(session, Code::kFailedPrecondition, "the local door is " + Report().reason);
  const edge::broker::Peer& peer = session->peer();
  if (peer.pid <= 0)
    return Refuse(session, Code::kFailedPrecondition,
                  "the agent cannot see your process, which lives in another pid namespace (a container)");
  if (!peer.pidfd) return session->Close();
  const auto gone = std::make_shared<bool>(false);
  session->OnClosed([gone] { *gone = true; });
  io_.Post([self = self_, gone, &loop = loop_, proc = options_.proc_root, session, run, pid = peer.pid, uid = peer.uid] {
    node::ledger::Process process{pid, os::ReadProcessStart(proc, pid).value_or(0), os::UserName(uid), run.command};
    loop.Post([self, gone, session, run, process = std::move(process)] {
      if (*self != nullptr && !*gone) (*self)->StandInLine(session, run, process);
    });
  });
}

void LocalDoor::StandInLine(const SessionPtr& session, const RunRequest& run, node::ledger::Process process) {
  if (const auto may = leases_.MayAdmit(process.pid); !may.ok()) return session->Answer(edge::broker::EncodeError(may.error()));
  Waiting waiting;
  waiting.request = {
      .door = std::string(node::share::kLocalDoor), .count = run.count, .share = run.share, .model = run.model, .devices = run.devices};
  waiting.ticket = run.ticket;
  waiting.time = run.time;
  waiting.waiter = {session->peer().uid, process.pid, process.start};
  waiting.user = process.user;
  waiting.command = run.command;
  waiting.since = loop_.clock().Wall();
  const base::Duration wait = run.wait.value_or(node::allocate::Queue::kForEver);
  const bool waits = wait > base::Duration::zero();
  const auto ticket = queue_.Add(std::move(waiting), wait);
  if (!ticket.ok()) return session->Answer(edge::broker::EncodeError(ticket.error()));
  askers_[*ticket] = {session, std::move(process), run.labels, {}, waits};
  if (waits || TicketsRunOut()) KeepSoon();
  session->OnClosed([self = self_, ticket = *ticket] {
    if (*self != nullptr) (void)(*self)->queue_.Cancel(ticket, "the program that waited has gone");
  });
}

const std::vector<node::share::Offer>& LocalDoor::OffersWithout(const Devices& kept_back) {
  auto offers = node_.offers.published().Get();
  if (reduced_.from != offers || reduced_.without != kept_back)
    reduced_ = {offers, kept_back, node::allocate::WithoutDevices(*offers, kept_back)};
  return reduced_.offers;
}

base::Status LocalDoor::Attempt(const Waiting& waiting, const Devices& kept_back) {
  Asker& asker = askers_.at(waiting.ticket);
  const auto inventory = node_.inventory.published().Get();
  ASSIGN(const auto slots, node::allocate::Reserve(waiting.request, *inventory, *node_.ledger.Get(), OffersWithout(kept_back)));
  const auto servers = node_.offers.servers().Get();
  ASSIGN(const auto edits, node::allocate::Commit(slots, node::allocate::Consumer::kProcess, *inventory, node_.dialect_of, *servers));
  if (!edits.mounts.empty())
    return Error(Code::kFailedPrecondition,
                 "device " + slots.front().device +
                     " is shared through a server that meets its clients in containers only, because the kubelet's door is open on this "
                     "machine: share what belongs to the local door by time-slicing");
  ASSIGN(const auto lease, leases_.Admit({slots, waiting.waiter.uid, waiting.user, waiting.command, asker.process,
                                          asker.session->peer().pidfd.get(), asker.labels, waiting.time}));
  asker.granted.lease = lease.id;
  asker.granted.environment = edits.environment;
  asker.granted.time = waiting.time;
  asker.granted.time_while_others_wait = policy_.TimeOf(waiting.waiter.uid);
  asker.granted.enforcement = node::ledger::ToString(lease.enforcement);
  if (lease.enforcement == node::ledger::Enforcement::kVisibility) asker.granted.reason = leases_.visibility_reason();
  for (const auto& slot : slots)
    if (const auto* entry = inventory->Find(slot.device)) asker.granted.devices.push_back(Describe(slot, *entry->facts, *servers));
  return {};
}

void LocalDoor::TellProgress(const Waiting& waiting, std::size_t position) {
  askers_.at(waiting.ticket).session->Progress(edge::broker::EncodeWaiting(Describe(waiting, position, memory_.has_value())));
}

void LocalDoor::TellDone(const Waiting& waiting, const base::Status& status) {
  const auto asker = askers_.extract(waiting.ticket);
  if (!asker || asker.mapped().waits) KeepSoon();
  if (!asker) return;
  asker.mapped().session->Answer(status.ok() ? edge::broker::EncodeGranted(asker.mapped().granted)
                                             : edge::broker::EncodeError(status.error()));
}

/// The ledger knows users by name. A name is looked up on the I/O thread, see HandleRun; those who see everything need none.
void LocalDoor::WithViewer(const SessionPtr& session, std::function<void(const api::Viewer&)> then) {
  if (MayRule(*session)) return then({.sees_all = true});
  io_.Post([self = self_, &loop = loop_, uid = session->peer().uid, then = std::move(then)] {
    loop.Post([self, viewer = api::Viewer{.user = os::UserName(uid)}, then] {
      if (*self != nullptr) then(viewer);
    });
  });
}

bool LocalDoor::MayRule(const Session& session) const { return session.peer().uid == 0 || session.peer().uid == ::geteuid(); }

void LocalDoor::HandleCancel(const SessionPtr& session, const std::string& ticket) {
  const Waiting* waiting = queue_.Find(ticket);
  if (waiting != nullptr && !MayRule(*session) && waiting->waiter.uid != session->peer().uid)
    return Refuse(session, Code::kPermissionDenied, ticket + " is a ticket of " + waiting->user + ": only they and root may cancel it");
  const auto cancelled = queue_.Cancel(ticket, "cancelled by `penstock queue cancel " + ticket + "`");
  session->Answer(cancelled.ok() ? edge::broker::EncodeDone(ticket + " is cancelled") : edge::broker::EncodeError(cancelled.error()));
}

void LocalDoor::HandleQueue(const SessionPtr& session) {
  std::vector<edge::broker::WaitingRun> queue;
  const auto in_order = queue_.InOrder();
  const auto& starts = policy_.ExpectedStarts(in_order);
  for (const Waiting& waiting : in_order) {
    queue.push_back(Describe(waiting, queue.size(), memory_.has_value()));
    if (const auto start = starts.find(waiting.ticket); start != starts.end())
      queue.back().expected_start = base::FormatTime(start->second);
    if (!MayRule(*session) && waiting.waiter.uid != session->peer().uid) queue.back().command = api::ProgramOf(waiting.command);
  }
  session->Answer(edge::broker::EncodeQueue(queue));
}

void LocalDoor::HandleReport(const SessionPtr& session, bool holders_only) {
  WithViewer(session, [this, session, holders_only](const api::Viewer& viewer) {
    leases_.RefreshProcesses([this, session, holders_only, viewer] {
      api::Report report = callbacks_.report();
      api::HideCommands(viewer, report);
      session->Answer(holders_only ? api::HoldersToJson(report) : api::ToJson(report));
    });
  });
}

void LocalDoor::HandleSamples(const SessionPtr& session) {
  if (!callbacks_.samples) return Refuse(session, Code::kUnimplemented, "this agent measures nothing");
  WithViewer(session, [this, session](const api::Viewer& viewer) {
    leases_.RefreshProcesses([this, session, viewer] {
      api::Samples samples = callbacks_.samples();
      api::HideCommands(viewer, samples);
      session->Answer(api::ToJson(samples));
    });
  });
}

// Records are read for it.
void LocalDoor::HandleUsage(const SessionPtr& session, const edge::broker::UsageRequest& request) {
  if (!callbacks_.usage) return Refuse(session, Code::kUnimplemented, "this agent records no usage");
  WithViewer(session, [this, session, request](const api::Viewer& viewer) {
    sums_.Add(session, [&usage = callbacks_.usage, request, viewer](Turns::Done done) { usage(request, viewer, std::move(done)); });
  });
}

void LocalDoor::HandlePlan(const SessionPtr& session, const edge::broker::PlanRequest& request) {
  if (!callbacks_.plan) return Refuse(session, Code::kUnimplemented, "this agent makes no plans");
  plans_.Add(session, [&plan = callbacks_.plan, request](Turns::Done done) { plan(request, std::move(done)); });
}

void LocalDoor::HandleDown(const SessionPtr& session) {
  if (!MayRule(*session)) return Refuse(session, Code::kPermissionDenied, "only root and the user that the agent runs as may end it");
  base::Log(base::kInfo, "asked to end",
            {{"uid", static_cast<long>(session->peer().uid)}, {"pid", static_cast<long>(session->peer().pid)}});
  session->Answer(edge::broker::EncodeDone("the agent ends"));
  callbacks_.end();
}

// A session that has closed says nothing any more, and a move that has begun goes on.
void LocalDoor::HandleDoor(const SessionPtr& session, const edge::broker::DoorRequest& request) {
  if (!callbacks_.move) return Refuse(session, Code::kUnimplemented, "this agent moves no devices between doors");
  if (!request.dry_run && !MayRule(*session))
    return Refuse(session, Code::kPermissionDenied, "only root and the user that the agent runs as may move devices between doors");
  if (!request.dry_run)
    base::Log(base::kInfo, "asked to move devices",
              {{"devices", base::Join(request.devices, ",")}, {"door", request.door}, {"uid", static_cast<long>(session->peer().uid)}});
  leases_.LookAtAllGroups();  // who has just ended holds nothing
  callbacks_.move(
      request, [session](const edge::broker::DeviceMove& move) { session->Progress(edge::broker::EncodeMoving(move)); },
      [session](const base::Result<std::vector<edge::broker::DeviceMove>>& moves) {
        session->Answer(moves.ok() ? edge::broker::EncodeMoved(*moves) : edge::broker::EncodeError(moves.error()));
      });
}

}  // namespace penstock::door
