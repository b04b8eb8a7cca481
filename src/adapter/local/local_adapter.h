// Joins the broker's socket to the node: programs of this machine request devices, wait in the
// queue and hold devices.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapter/local/answer_queue.h"
#include "api/commands.h"
#include "api/report.h"
#include "api/samples.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "node/allocate/queue.h"
#include "node/allocate/queue_policy.h"
#include "node/change/device_moves.h"
#include "node/change/divisions.h"
#include "node/change/parts_on_demand.h"
#include "node/lease/local_leases.h"
#include "node/lease/queue_checkpoint.h"
#include "node/share/offers.h"
#include "node/share/turns.h"
#include "os/kept_file.h"
#include "os/loop.h"
#include "protocol/broker/server.h"
#include "view/page_state.h"

namespace penstock::adapter::local {

/// Lets go of a vendor's driver while another program replaces it; empty: unsupported.
struct DriverRelease {
  using Done = std::function<void(const base::Result<std::vector<std::string>>& remaining)>;
  /// `done` gets what of the agent still uses the driver; an error: nothing has begun.
  std::function<void(const std::string& vendor, Done done)> begin;
  std::function<void(const std::string& vendor)> end;
};

/// Use on the control executor, which is `loop`.
class LocalAdapter {
 public:
  struct Options {
    std::string run_dir;
    std::string group = "penstock";
    std::string proc_root = "/proc";
    /// False: allocates nothing; status, ps, queue and down are still answered.
    bool enabled = true;
    std::string queue_file = "";  ///< keeps the queue for the next agent; empty: not kept
    std::string boot_id = "";
  };
  /// The parts of the node that this adapter uses. All must outlive the adapter.
  struct Node {
    node::inventory::Inventory& inventory;
    node::ledger::Ledger& ledger;
    node::share::Offers& offers;
    device::DialectOf dialect_of;
  };
  struct Callbacks {
    std::function<api::Report()> report;  ///< for status and ps
    std::function<void()> end;            ///< a permitted user asked the agent to end
    /// Passes what another configuration would change, as JSON, perhaps later; empty: unsupported.
    std::function<void(const protocol::broker::PreviewRequest&, AnswerQueue::Done)> preview = {};
    /// DeviceMoves::Set; empty: this agent moves no devices.
    std::function<void(const node::change::MoveRequest&, node::change::MoveRequests::Progress,
                       node::change::MoveRequests::Done)>
        move = {};
    /// Current measurements of the devices, for a viewer; empty: nothing is measured.
    std::function<api::Samples()> samples = {};
    /// Passes which user used what, as JSON (api/usage.h), as far as this viewer may see it,
    /// perhaps later; empty: no usage is recorded.
    std::function<void(const protocol::broker::UsageRequest&, const api::Viewer&,
                       AnswerQueue::Done)>
        usage = {};
    /// Divisions::Apply on the devices of a vendor, whose name comes from a client and may be
    /// empty; empty: this agent divides no devices.
    std::function<void(const std::string& vendor, const node::change::LayoutRequest&,
                       node::change::Divisions::Progress, node::change::Divisions::Done)>
        divide = {};
    /// Creates parts that requests lack; null, or empty: this agent creates none.
    std::function<node::change::PartsOnDemand*()> on_demand = {};
    DriverRelease release = {};
  };

  /// `open_groups` is OpenCgroups in production. `io` reads /proc and the user database.
  LocalAdapter(os::Loop& loop, base::Executor& io, Node node, Options options, Callbacks callbacks,
               node::lease::LocalLeases::OpenGroups open_groups);
  ~LocalAdapter();

  /// Restores what an earlier agent allocated; `checkpoint` is a hint. Call before Open, and before
  /// another adapter adds a lease. Blocks.
  void Recover(const std::vector<node::ledger::Lease>& checkpoint,
               node::lease::QueueCheckpoint queue = {},
               const std::vector<node::ledger::LeaseLimits>& limits = {});

  /// Sets the limits of users from now on.
  void Configure(const api::QueueConfig& limits);

  /// LocalLeases::CloseDevices.
  void CloseDevices(std::vector<std::string> cgroups) { leases_.CloseDevices(std::move(cgroups)); }

  /// Takes the next turn of the devices (share::Turns).
  void Follow(const node::share::NodeDevices& now, const node::share::NodeDevices& before);

  /// Starts to listen. The caller holds the run directory's lock.
  base::Status Open();

  /// "open", with who may connect and how firmly leases are enforced; or "closed" and why.
  api::AllocatorReport Report() const;

  /// A request that waits may be served now.
  void TryQueue() { queue_.Try(); }

  /// Number of queued runs.
  std::size_t waiting() const { return queue_.size(); }

  /// The queued runs in the order in which they are served, with their expected starts.
  view::PageQueue Queue();

 private:
  using Session = protocol::broker::Session;
  using SessionPtr = std::shared_ptr<Session>;
  /// A program that requested a run.
  struct Requester {
    SessionPtr session;
    node::ledger::Process process;
    std::map<std::string, std::string> labels;
    protocol::broker::GrantedRun granted;
    /// False: it leaves if the first attempt fails, so it has no place in the queue to keep.
    bool waits = true;
  };

  void Handle(const SessionPtr& session, const protocol::broker::Request& request);
  void HandleRun(const SessionPtr& session, const protocol::broker::RunRequest& run);
  void HandleCancel(const SessionPtr& session, const std::string& ticket);
  void HandleQueue(const SessionPtr& session);
  void HandleReport(const SessionPtr& session, bool holders_only);
  void HandleSamples(const SessionPtr& session);
  void HandleUsage(const SessionPtr& session, const protocol::broker::UsageRequest& request);
  void HandlePreview(const SessionPtr& session, const protocol::broker::PreviewRequest& request);
  void HandleDown(const SessionPtr& session);
  void HandleDivide(const SessionPtr& session, const protocol::broker::DivideRequest& request);
  void HandleRelease(const SessionPtr& session, const std::string& vendor);
  void HandleAssign(const SessionPtr& session, const protocol::broker::AssignRequest& request);
  void Enqueue(const SessionPtr& session, const protocol::broker::RunRequest& run,
               node::ledger::Process process);

  base::Status Attempt(const node::allocate::Waiting& waiting,
                       const node::allocate::Devices& kept_back);
  node::change::PartsOnDemand* OnDemand() const;
  base::Error Prepare(const node::allocate::Waiting& waiting,
                      const node::allocate::Devices& kept_back, const base::Error& why_not);
  node::allocate::Devices CouldUse(const node::allocate::Waiting& waiting) const;
  double AmountOf(const node::allocate::Waiting& waiting) const;
  node::allocate::Create Create() const;
  bool IsPreparing(const node::allocate::Waiting& waiting) const;
  node::allocate::Devices WithoutReserved(const node::allocate::Waiting& waiting,
                                          node::allocate::Devices kept_back) const;
  const std::vector<node::share::Offer>& OffersWithout(const node::allocate::Devices& kept_back);
  std::string EncodeCheckpoint(std::uint64_t next_ticket) const;
  bool TicketsRunOut() const;
  void KeepSoon();
  void ReportProgress(const node::allocate::Waiting& waiting, std::size_t position);
  void ReportDone(const node::allocate::Waiting& waiting, const base::Status& status);
  bool MayAdminister(const Session& session) const;
  /// Calls `then` with the viewer of the session, at once or later; not after this object ended.
  void WithViewer(const SessionPtr& session, std::function<void(const api::Viewer&)> then);

  os::Loop& loop_;
  base::Executor& io_;
  const Node node_;
  const Options options_;
  const Callbacks callbacks_;
  node::lease::LocalLeases leases_;
  node::allocate::QueuePolicy policy_;
  std::map<std::string, Requester> requesters_;  // by ticket
  node::allocate::Queue queue_;
  base::TimerId keep_ = 0;
  std::optional<os::KeptFile> writer_;  // queue.json
  base::TimePoint keep_again_{};        // earliest time of the next write
  std::uint64_t tickets_noted_ = 0;     // noted in it: no ticket from this number on was issued
  /// The offers that were requested last: many queued runs need the same ones.
  struct Reduced {
    base::Published<std::vector<node::share::Offer>>::Snapshot from;
    node::allocate::Devices without;
    std::vector<node::share::Offer> offers;
  } reduced_;
  std::string closed_reason_ = "not open yet";  // empty while it listens
  AnswerQueue previews_{"plan"}, sums_{"usage"};
  base::Lifetime lifetime_;
  // Last: its sessions call back into the other members while they close.
  protocol::broker::Server server_;
};

}  // namespace penstock::adapter::local
