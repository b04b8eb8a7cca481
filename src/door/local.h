// The local door: programs of this machine ask the broker, wait their turn, and hold devices. Joins edge/broker to the node.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/commands.h"
#include "api/report.h"
#include "api/samples.h"
#include "base/executor.h"
#include "door/local_leases.h"
#include "door/move_orders.h"
#include "door/queue_file.h"
#include "door/turns.h"
#include "edge/broker/server.h"
#include "node/allocate/queue.h"
#include "node/allocate/queue_policy.h"
#include "node/share/offers.h"
#include "os/kept_file.h"
#include "os/loop.h"

namespace penstock::door {

/// On the control executor, which is the loop.
class LocalDoor {
 public:
  struct Options {
    std::string run_dir;
    std::string group = "penstock";
    std::string proc_root = "/proc";
    bool enabled = true;          ///< false: nothing is given out here; status, ps, queue and down are answered all the same
    std::string queue_file = "";  ///< where who waits is kept for the next agent; empty: nowhere
    std::string boot_id = "";
  };
  /// The node, as far as this door needs it. All must outlive the door.
  struct Node {
    node::inventory::Inventory& inventory;
    node::ledger::Ledger& ledger;
    node::share::Offers& offers;
    node::share::DialectOf dialect_of;
  };
  struct Callbacks {
    std::function<api::Report()> report;  ///< for status and ps
    std::function<void()> end;            ///< somebody entitled asks the agent to end
    /// What another configuration would change, as JSON, perhaps later; empty: nobody knows.
    std::function<void(const edge::broker::PlanRequest&, Turns::Done)> plan = {};
    /// DoorMoves::Set; empty: nothing moves here.
    std::function<void(const edge::broker::DoorRequest&, MoveOrders::Progress, MoveOrders::Done)> move = {};
    /// What devices measure, for somebody who looks just now; empty: nothing is measured.
    std::function<api::Samples()> samples = {};
    /// Who used what, as JSON (api/usage.h), as this viewer may see it, perhaps later; empty: nobody knows.
    std::function<void(const edge::broker::UsageRequest&, const api::Viewer&, Turns::Done)> usage = {};
  };

  /// `open_groups` is OpenCgroups in production. `io` is where /proc and the user database are read.
  LocalDoor(os::Loop& loop, base::Executor& io, Node node, Options options, Callbacks callbacks, LocalLeases::OpenGroups open_groups);
  ~LocalDoor();

  /// Takes over what an agent before us gave out; `checkpoint` is a hint. Before Open, and before another door hands anything. Blocks.
  void Recover(const std::vector<node::ledger::Lease>& checkpoint, QueueMemory memory = {});

  /// Limits of users from now on.
  void Configure(const api::QueueConfig& limits);

  /// LocalLeases::CloseDevices.
  void CloseDevices(std::vector<std::string> cgroups) { leases_.CloseDevices(std::move(cgroups)); }

  /// Begins to listen. The caller holds the run directory's lock.
  base::Status Open();

  /// "open", with who may come in and how far leases are enforced; "closed" and why.
  api::DoorReport Report() const;

  /// How many wait.
  std::size_t waiting() const { return queue_.size(); }

 private:
  using Session = edge::broker::Session;
  using SessionPtr = std::shared_ptr<Session>;
  /// One who asked to run something.
  struct Asker {
    SessionPtr session;
    node::ledger::Process process;
    std::map<std::string, std::string> labels;
    edge::broker::GrantedRun granted;
    bool waits = true;  ///< false: it leaves where the first try does not serve it, and has no place to be kept
  };

  void Handle(const SessionPtr& session, const edge::broker::Request& request);
  void HandleRun(const SessionPtr& session, const edge::broker::RunRequest& run);
  void HandleCancel(const SessionPtr& session, const std::string& ticket);
  void HandleQueue(const SessionPtr& session);
  void HandleReport(const SessionPtr& session, bool holders_only);
  void HandleSamples(const SessionPtr& session);
  void HandleUsage(const SessionPtr& session, const edge::broker::UsageRequest& request);
  void HandlePlan(const SessionPtr& session, const edge::broker::PlanRequest& request);
  void HandleDown(const SessionPtr& session);
  void HandleDoor(const SessionPtr& session, const edge::broker::DoorRequest& request);
  void StandInLine(const SessionPtr& session, const edge::broker::RunRequest& run, node::ledger::Process process);

  base::Status Attempt(const node::allocate::Waiting& waiting, const node::allocate::Devices& kept_back);
  const std::vector<node::share::Offer>& OffersWithout(const node::allocate::Devices& kept_back);
  std::string Memory(std::uint64_t next_ticket) const;
  bool TicketsRunOut() const;
  void KeepSoon();
  void TellProgress(const node::allocate::Waiting& waiting, std::size_t position);
  void TellDone(const node::allocate::Waiting& waiting, const base::Status& status);
  bool MayRule(const Session& session) const;
  /// Calls with who asks there, at once or later; not once this has ended.
  void WithViewer(const SessionPtr& session, std::function<void(const api::Viewer&)> then);

  os::Loop& loop_;
  base::Executor& io_;
  const Node node_;
  const Options options_;
  const Callbacks callbacks_;
  LocalLeases leases_;
  node::allocate::QueuePolicy policy_;
  std::map<std::string, Asker> askers_;  // by ticket
  node::allocate::Queue queue_;
  base::TimerId keep_ = 0;
  std::optional<os::KeptFile> memory_;  // queue.json
  base::TimePoint keep_again_{};        // not sooner
  std::uint64_t tickets_noted_ = 0;     // in it: no ticket from this number on was given out
  /// The offers that were asked for last: many who wait ask for the same ones.
  struct Reduced {
    base::Published<std::vector<node::share::Offer>>::Snapshot from;
    node::allocate::Devices without;
    std::vector<node::share::Offer> offers;
  } reduced_;
  base::Subscription on_offers_, on_ledger_;
  std::string closed_reason_ = "not open yet";  // empty while it listens
  Turns plans_{"plan"}, sums_{"sum of usage"};
  std::shared_ptr<LocalDoor*> self_;  // null inside once destroyed: for functions on their way
  edge::broker::Server server_;       // last: its sessions call back into the rest while they are closed
};

}  // namespace penstock::door
