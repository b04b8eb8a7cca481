// Tests health from a simulated machine's driver and kernel log to the offers: worker, discovery,
// monitor, resets and offers together.
#include <fstream>
#include <future>
#include <map>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/all.h"
#include "backend/nvidia/testing/simulated_machine.h"
#include "base/testing/build_tree.h"
#include "device/remote.h"
#include "node/change/device_changes.h"
#include "node/change/resets.h"
#include "node/health/kernel_log.h"
#include "node/inventory/discovery.h"
#include "node/share/offers.h"
#include "os/loop.h"
#include "os/testing/temporary_folder.h"

namespace penstock {
namespace {

using backend::nvidia::SimulatedMachine;
using device::HealthState;
using node::change::Resets;
using node::health::Monitor;
using node::inventory::Discovery;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr auto kProbation = 300ms;

std::vector<std::string> WorkerOn(const device::Paths& paths) {
  return {base::BuildPath("bin/penstock-worker"),
          "nvidia",
          "--driver-root",
          paths.driver_root,
          "--sysfs-root",
          paths.sysfs_root,
          "--dev-root",
          paths.dev_root,
          "--proc-root",
          paths.proc_root};
}

/// The parts of an agent under test. Use on the loop's thread.
struct Node {
  Node(os::Loop& a_loop, const SimulatedMachine& machine)
      : loop(a_loop),
        monitor(loop, inventory, backend::FindDialect, {.probation = kProbation}),
        offers(inventory, ledger, backend::FindDialect, {"kubelet"}),
        remote(loop, {.command = WorkerOn(machine.paths())}),
        discovery(loop, remote, inventory, {.vendor = "nvidia", .poll = 500ms},
                  {.reading =
                       [this](const std::string& id, const auto& reading, base::Duration ago) {
                         ++readings[id];
                         monitor.OnReading(id, reading, ago);
                       },
                   .evidence = [this](const device::Evidence& evidence) { Hear(evidence); },
                   .described =
                       [this](bool fresh) {
                         if (fresh) monitor.OnDriverOpened("nvidia", {"any", ""});
                       }}),
        actions(backend::MakeActions("nvidia", loop, machine.paths())),
        changes(loop, loop, {inventory, ledger, offers}, nullptr, folder / "changes.json", {}),
        resets(loop, inventory, ledger, monitor, changes, [this](std::string_view) {
          return Resets::Vendor{
              .actions = actions.get(),
              .release = [this](std::function<void()> done) { discovery.Release(std::move(done)); },
              .reopen = [this] { discovery.Reopen(); }};
        }) {
    auto feed =
        node::health::KernelLogFeed::Open(loop, machine.root() + "/dev/kmsg", backend::Dialects(),
                                          [this](std::string_view, const device::Evidence& evidence,
                                                 base::Duration) { Hear(evidence); },
                                          {});
    if (feed.ok()) kernel_log = *std::move(feed);
    discovery.OnFirstScan([this] {
      looked = true;
      changes.Start();
    });
    discovery.Start();
  }

  void Hear(const device::Evidence& evidence) {
    const std::string id = monitor.OnEvidence(evidence);
    if (!id.empty()) discovery.ReadSoon(id);
  }
  const device::Health& Health(std::size_t index) const {
    return inventory.published().Get()->devices.at(index).health;
  }
  bool Healthy(std::size_t index) const { return Health(index).state == HealthState::kHealthy; }
  std::string Id(std::size_t index) const {
    return inventory.published().Get()->devices.at(index).facts->id;
  }

  os::Loop& loop;
  node::inventory::Inventory inventory;
  node::ledger::Ledger ledger;
  Monitor monitor;
  node::share::Offers offers;
  device::Remote remote;
  Discovery discovery;
  std::unique_ptr<device::Actions> actions;
  os::TemporaryFolder folder;
  node::change::DeviceChanges changes;
  Resets resets;
  node::share::Turns turns{
      loop, inventory, ledger, offers,
      [this](const auto& now, const auto& before) { changes.Follow(now, before); }};
  std::unique_ptr<node::health::KernelLogFeed> kernel_log;
  std::map<std::string, int> readings;
  bool looked = false;
};

class Health : public ::testing::Test {
 protected:
  /// Call before the node is created. Drivers from 565 on report by themselves when a fault is
  /// over.
  void Make(const std::string& machine, const std::string& driver = "") {
    machine_ = std::make_unique<SimulatedMachine>(machine, driver);
    loop_.Start();
    OnLoop([this] { node_ = std::make_unique<Node>(loop_, *machine_); });
    Await([this] { return node_->looked; });
  }
  ~Health() override {
    if (machine_) OnLoop([this] { node_.reset(); });
    loop_.Stop();
  }

  void OnLoop(const std::function<void()>& function, base::Duration after = {}) {
    std::promise<void> ran;
    loop_.PostAfter(after, [&] {
      function();
      ran.set_value();
    });
    ran.get_future().wait();
  }
  /// Waits until the condition holds, evaluating it on the loop; the test fails after a minute.
  void Await(const std::function<bool()>& what) {
    const base::TimePoint begin = loop_.clock().Now();
    for (bool so = false; !so;) {
      OnLoop([&] { so = what(); }, 2ms);
      if (loop_.clock().Now() - begin < 60s) continue;
      ADD_FAILURE() << "waited for a minute";
      return;
    }
  }
  /// Waits until the device was read `more` times.
  void AwaitReadings(std::size_t index, int more) {
    int before = 0;
    OnLoop([&] { before = node_->readings[node_->Id(index)]; });
    Await([&] { return node_->readings[node_->Id(index)] >= before + more; });
  }

  std::unique_ptr<SimulatedMachine> machine_;
  os::Loop loop_{"control"};
  std::unique_ptr<Node> node_;
};

TEST_F(Health, ACuredGpuIsBackAfterItsProbationAndLaterAfterARelapse) {
  Make("dgx-a100", "550.54.15");
  for (int falls = 1; falls <= 2; ++falls) {
    machine_->Sim({"fault", "2", "lost"});
    Await([this] { return !node_->Healthy(2); });
    AwaitReadings(2, 2);  // the first may have begun before the fault: it starts the probation
    const base::TimePoint healed = loop_.clock().Now();
    machine_->Sim({"heal", "2"});
    Await([this] { return node_->Healthy(2); });
    EXPECT_GE(loop_.clock().Now() - healed, falls * kProbation);
  }
}

TEST_F(Health, Issue1929AReplicaSetOnABadGpuIsUnhealthyAsAWhole) {
  Make("dgx-a100");
  OnLoop([this] {
    api::NodeConfig config;
    config.sharing.rules = {{.strategy = api::ShareStrategy::kTimeSlicing, .replicas = 4}};
    node_->offers.Configure(config, {});
  });
  machine_->Sim({"fault", "3", "xid", "95"});
  Await([this] { return !node_->Healthy(3); });
  OnLoop([this] {
    const auto offers = node_->offers.Get();
    ASSERT_EQ(offers->size(), 1u);
    ASSERT_EQ(offers->front().slots.size(), 32u);
    for (const node::share::OfferedSlot& slot : offers->front().slots)
      EXPECT_EQ(slot.usable, slot.slot.device != node_->Id(3)) << slot.slot.id;
  });
}

TEST_F(Health, Issue231OneLostGpuTouchesNoOther) {
  Make("dgx-a100");
  machine_->Sim({"fault", "5", "xid", "79"});
  Await([this] { return !node_->Healthy(5); });
  AwaitReadings(5, 2);
  for (const std::size_t other : {0, 7}) AwaitReadings(other, 1);
  OnLoop([this] {
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(node_->Healthy(i), i != 5) << i;
    EXPECT_THAT(node_->Health(5).reason, HasSubstr("XID 79"));
  });
}

TEST_F(Health, Issue669AnEventWaitThatFailsMarksNoOneAndDoesNotSpin) {
  Make("dgx-a100");
  pid_t worker = 0;
  OnLoop([&] { worker = node_->remote.pid(); });
  const auto heard = [this] {
    std::uint64_t sum = 0;
    for (const auto& count : node_->monitor.Counts()) sum += count.count;
    return sum;
  };
  // Nineteen waits in a row fail. The first sixteen are retried at once, since each failure may
  // belong to a lost GPU; then there is a second between two waits. The first event ends the
  // current wait, unless that wait has failed already; the second event arrives after all failures.
  const base::TimePoint begin = loop_.clock().Now();
  machine_->Sim({"fault", "all", "error", "nvmlEventSetWait", "999", "--count", "19"});
  for (std::uint64_t events = 1; events <= 2; ++events) {
    machine_->Sim({"fault", "0", "xid", "31", "--no-log"});
    Await([&] { return heard() == events; });
  }
  EXPECT_GE(loop_.clock().Now() - begin, 3s) << "three pauses";
  OnLoop([this, worker] {
    EXPECT_EQ(node_->remote.pid(), worker);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_TRUE(node_->Healthy(i)) << i;
  });
}

TEST_F(Health, Issue1223WithoutNvmlNoGpuIsHealthyAtOnceAndAllAreBackWithIt) {
  Make("dgx-a100");
  const auto healthy = [this] {
    int count = 0;
    for (std::size_t i = 0; i < 8; ++i) count += node_->Healthy(i) ? 1 : 0;
    return count;
  };
  machine_->Sim({"fault", "driver", "unload"});
  OnLoop([this] { node_->discovery.Refresh(); });  // the agent watches the driver's files
  Await([&] { return healthy() == 0; });
  machine_->Sim({"heal", "driver"});
  OnLoop([this] { node_->discovery.Refresh(); });
  Await([&] { return healthy() == 8; });
}

TEST_F(Health, AStormInTheKernelsLogIsCountedExactlyAndBlocksNoOne) {
  Make("dgx-a100");
  std::string storm;
  for (int i = 0; i < 10'000; ++i)
    storm += "4," + std::to_string(100'000 + i) + ",5000000,-;NVRM: Xid (PCI:0000:07:00): " +
             std::to_string(i % 2 == 0 ? 31 : 200 + i % 700) + ", pid=1, name=x, simulated\n";
  const auto heard = [this] {
    std::uint64_t sum = 0;
    for (const auto& count : node_->monitor.Counts()) sum += count.count;
    return sum;
  };
  // A task that is always in the loop's queue: it measures how many records are handled between two
  // of its turns.
  std::uint64_t last = 0, most = 0;
  bool over = false;
  std::function<void()> turn = [&] {
    const std::uint64_t now = heard();
    most = std::max(most, now - std::exchange(last, now));
    if (!over) loop_.Post(turn);
  };
  loop_.Post(turn);
  std::ofstream(machine_->root() + "/dev/kmsg", std::ios::app) << storm;
  Await([&] { return heard() == 10'000u; });
  OnLoop([&] { over = true; });
  OnLoop([] {});
  EXPECT_EQ(last, 10'000u);
  EXPECT_LE(most, 5'000u)
      << "the storm is taken in pieces, and others have their turns between them";
  OnLoop([this] {
    for (std::size_t i = 0; i < 8; ++i) EXPECT_TRUE(node_->Healthy(i)) << i;
  });
}

TEST_F(Health, AnIdleGpuIsResetAndUsedAgain) {
  Make("dgx-a100", "550.54.15");
  machine_->Sim({"fault", "3", "xid", "48"});
  Await([this] { return !node_->Healthy(3); });
  AwaitReadings(3, 2);
  OnLoop([this] { EXPECT_TRUE(node_->monitor.Resets().empty()) << "never by default"; });
  OnLoop([this] { node_->resets.SetPolicy(api::ResetPolicy::kIdle); });
  Await([this] { return node_->Healthy(3); });
  OnLoop([this] {
    ASSERT_EQ(node_->monitor.Resets().size(), 1u);
    EXPECT_EQ(node_->monitor.Resets()[0].result, "done");
    EXPECT_EQ(node_->monitor.Notices().back().reason, "DeviceReset");
    for (std::size_t i = 0; i < 8; ++i) EXPECT_TRUE(node_->Healthy(i)) << i;
  });
}

TEST_F(Health, AGpuWithAProcessOnItIsNotReset) {
  Make("dgx-a100", "550.54.15");
  machine_->Sim({"set", "3", "process=4242:1024:train"});
  machine_->Sim({"fault", "3", "xid", "48"});
  OnLoop([this] { node_->resets.SetPolicy(api::ResetPolicy::kIdle); });
  Await([this] {
    return node_->Health(3).reason.find("when it is no longer in use") != std::string::npos;
  });
  machine_->Sim({"set", "3", "no-processes"});
  Await([this] { return node_->Healthy(3); });
  OnLoop([this] { EXPECT_EQ(node_->monitor.Resets().size(), 1u); });
}

}  // namespace
}  // namespace penstock
