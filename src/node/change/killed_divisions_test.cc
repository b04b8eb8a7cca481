// Tests divisions and parts on demand of an agent that is killed at every point of them; moves,
// resets and reloads: device_changes_test.cc.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "node/change/divisions.h"
#include "node/change/parts_on_demand.h"
#include "node/change/testing/slow_driver.h"
#include "node/change/testing/usable_devices.h"
#include "node/inventory/testing/acme_inventory.h"
#include "node/share/offers.h"
#include "node/share/turns.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::change {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

/// What outlives an agent: the device, calls that its driver was asked for, who holds parts, what
/// the kubelet counts, and the disk.
struct Hardware {
  os::TemporaryFolder folder;
  testing::DivisibleDevice device;
  testing::SlowDriver::Asked asked;
  std::set<std::string> held;
  std::set<std::string> counted;  // by the kubelet
  bool on_demand = false;         // the device is set aside for parts on demand

  /// As an earlier change left it.
  void Divide(const std::vector<int>& starts) {
    device.device.modes[0].current = device.device.modes[0].pending = "on";
    for (const int start : starts)
      device.CreatePart("0",
                        {.profile = "1g", .placement = {{start, 1}}, .within = {}, .outer = {}},
                        [](const auto&) {});
  }
  /// Likewise, into an outer part and two parts in it: P1, P2 and P3.
  void DivideWithin() {
    Divide({});
    const auto created = [](const auto&) {};
    device.AllowPartsWithin();
    device.CreatePart("0", {.profile = "2g", .placement = {{0, 2}}, .within = {}, .outer = true},
                      created);
    for (const int start : {0, 1})
      device.CreatePart(
          "0", {.profile = "1c", .placement = {{start, 1}}, .within = "P1", .outer = false},
          created);
  }
  std::string Mode() const { return device.device.modes[0].current; }
  /// For holders, wherever they lie.
  std::set<std::string> Parts() const {
    std::set<std::string> ids;
    for (const device::Facts& part : device.parts)
      if (part.withheld.empty()) ids.insert(part.id);
    return ids;
  }
};

ledger::Lease LeaseOfPart(const std::string& part) {
  return {.id = part,
          .allocator = "local",
          .slots = {{.id = part, .device = part, .resource = "acme.com/gpu"}}};
}

/// An agent on this machine. Its executor dies with it.
class DividingAgent final : private device::Actions {
 public:
  explicit DividingAgent(Hardware& hardware) : hardware_(hardware) {
    api::NodeConfig config;
    if (hardware.on_demand) config.parts_on_demand = {"0"};
    offers_.Configure(config, {});
    hardware.device.before_change = [&hardware](const std::string& id) {
      EXPECT_FALSE(hardware.counted.contains(id)) << "the kubelet may allocate " << id;
    };
    Look();
    for (const std::string& part : hardware.held) EXPECT_TRUE(ledger_.Add(LeaseOfPart(part)).ok());
    auto under_way = LoadChanges(hardware.folder / "changes.json");
    auto applied = LoadAppliedLayout(hardware.folder / "layout.json");
    auto created = LoadOnDemandParts(hardware.folder / "parts.json", "boot");
    EXPECT_TRUE(under_way.ok() && applied.ok() && created.ok());
    changes_.emplace(
        executor_, executor_, DeviceChanges::Node{inventory_, ledger_, offers_},
        [this](auto done) { done(hardware_.counted); }, hardware.folder / "changes.json",
        *under_way);
    const Divisions::Node node{inventory_, ledger_, *changes_};
    const auto vendor = [this](std::string_view) {
      return Divisions::Vendor{.backend = &driver_,
                               .dialect = &dialect_,
                               .ready = [] { return true; },
                               .describe =
                                   [this](const std::function<void()>& done) {
                                     executor_.Post([this, done] {
                                       Look();
                                       if (done) done();
                                     });
                                   },
                               .actions = this,
                               .release = [this](auto done) { executor_.Post(std::move(done)); },
                               .reopen = [] {}};
    };
    divisions_.emplace(executor_, executor_, node, vendor, hardware.folder / "layout.json",
                       *applied, "boot");
    on_demand_.emplace(executor_, executor_, node, vendor, hardware.folder / "parts.json", *created,
                       "boot");
    on_demand_->SetDevices(config.parts_on_demand);
    on_demand_->OnChange([] {});
    changes_->Start();
  }
  ~DividingAgent() override {
    on_demand_.reset();
    divisions_.reset();
    changes_.reset();
  }

  /// Runs one callback; where there is none, time passes, the kubelet reads its list, and the
  /// devices are found. Returns whether anything is still under way.
  bool Turn() {
    if (executor_.RunOne()) {
      Check();
      return true;
    }
    KubeletReads();
    executor_.Advance(500ms);
    Look();
    Check();
    const bool under_way = changes_->OfKind(kDivideKind) != nullptr ||
                           changes_->OfKind(PartsOnDemand::kName) != nullptr;
    return under_way || ++idle_ < 10;
  }

  void Apply(const std::string& name, bool divided, int parts, const char* profile = "1g") {
    api::Layout layout{name, {{.all_devices = true, .partitioned = divided, .parts = {}}}};
    if (parts > 0) layout.rules[0].parts = {{profile, parts}};
    divisions_->Apply({.layout = layout, .source = "user", .wait = kStanding}, nullptr,
                      [](const auto&) {});
  }
  void Prepare(const std::string& ticket) {
    (void)on_demand_->Prepare({.ticket = ticket, .profile = "1g", .model = ""},
                              base::Error(base::Code::kFailedPrecondition, "there are none"));
  }
  /// The request is served once its part is offered.
  void ServeIfThere(const std::string& ticket) {
    if (!hardware_.held.empty() || on_demand_->IsPreparing(ticket)) return;
    for (const std::string& id : Usable()) {
      EXPECT_TRUE(ledger_.Add(LeaseOfPart(id)).ok());
      hardware_.held.insert(id);
      return on_demand_->Release(ticket);
    }
  }
  void End() {
    for (const std::string& part : std::exchange(hardware_.held, {})) ledger_.Release(part);
    idle_ = 0;
  }

  void KubeletReads() { hardware_.counted = testing::UsableDevices(offers_, "kubelet"); }

  std::set<std::string> Usable() { return testing::UsableDevices(offers_); }
  const LayoutState& state() const { return divisions_->state(); }

 private:
  /// What must hold at any time.
  void Check() {
    for (const std::string& part : hardware_.held)
      ASSERT_TRUE(hardware_.device.Has(part)) << part << " was destroyed under its holder";
    for (const std::string& id : Usable()) {
      const bool whole = id == hardware_.device.device.id;
      ASSERT_TRUE(whole || hardware_.device.Has(id)) << id << " is offered and not there";
      ASSERT_FALSE(whole && !hardware_.device.parts.empty()) << "the device is offered with parts";
    }
  }

  /// As discovery does.
  void Look() {
    std::vector<device::Facts> all = {hardware_.device.Now()};
    if (hardware_.Mode() == "on") all[0].withheld = "only its parts can be used";
    all.insert(all.end(), hardware_.device.parts.begin(), hardware_.device.parts.end());
    inventory::ReportHealthy(inventory_, all, executor_.clock().Wall());
    for (const device::Facts& facts : all)
      inventory_.SetReading(facts.id, {}, executor_.clock().Wall());
    inventory_.PublishReadTimes();
  }

  std::vector<std::string> ResetTogether(const device::Facts& device,
                                         const std::vector<const device::Facts*>&) const override {
    return {device.id};
  }
  void Reset(const std::vector<device::Facts>&, std::function<void(base::Status)> done) override {
    executor_.Post([this, done = std::move(done)] {
      hardware_.device.Reset();
      executor_.Post([done] { done({}); });
    });
  }

  Hardware& hardware_;
  base::ManualExecutor executor_;
  testing::SlowDriver driver_{{&hardware_.device}, hardware_.asked, executor_};
  testing::DivisibleDialect dialect_;
  inventory::Inventory inventory_;
  ledger::Ledger ledger_;
  share::Offers offers_{
      inventory_,
      ledger_,
      [this](std::string_view vendor) { return vendor == "acme" ? &dialect_ : nullptr; },
      {"local", "kubelet"}};
  int idle_ = 0;
  std::optional<DeviceChanges> changes_;
  std::optional<Divisions> divisions_;
  std::optional<PartsOnDemand> on_demand_;
  share::Turns turns_{executor_, inventory_, ledger_, offers_,
                      [this](const auto& now, const auto& before) {
                        if (changes_) changes_->Follow(now, before);
                      }};
};

struct DivisionCase {
  const char* name;
  std::function<void(Hardware&)> before;
  std::function<void(DividingAgent&)> begin;  // not called after a restart
  /// The division is as it was, or as it is wanted.
  std::function<bool(const Hardware&)> is_old, is_new;
  std::function<void(DividingAgent&)> meanwhile = [](DividingAgent&) {};  // after each callback
  bool only_alive = false;  // no killed agent can have brought about what is wanted
};

void PrintTo(const DivisionCase& one, std::ostream* stream) { *stream << one.name; }

bool IsWhole(const Hardware& hardware) {
  return hardware.device.parts.empty() && hardware.Mode() == "off";
}
std::function<bool(const Hardware&)> HasParts(std::size_t count) {
  return [count](const Hardware& hardware) {
    return hardware.device.parts.size() == count && hardware.Mode() == "on";
  };
}

/// As many parts within others, of profile "1c", and nothing else.
std::function<bool(const Hardware&)> HasPartsWithin(std::size_t outer, std::size_t inner) {
  return [outer, inner](const Hardware& hardware) {
    const auto of = [&](std::string_view profile) {
      return std::ranges::count(hardware.device.parts, profile, &device::Facts::profile);
    };
    return of("2g") == static_cast<std::ptrdiff_t>(outer) &&
           of("1c") == static_cast<std::ptrdiff_t>(inner) && HasParts(outer + inner)(hardware) &&
           hardware.Parts().size() == inner;
  };
}

const DivisionCase kDivisionCases[] = {
    {"AWholeDevice", [](Hardware&) {}, [](DividingAgent& agent) { agent.Apply("two", true, 2); },
     IsWhole, HasParts(2)},
    {"ADividedDevice",
     [](Hardware& hardware) {
       hardware.Divide({0, 1, 2});
     },
     [](DividingAgent& agent) { agent.Apply("whole", false, 0); }, HasParts(3), IsWhole},
    {"ADividedDeviceWhoseDriverFailsAfterTheEffect",
     [](Hardware& hardware) {
       hardware.Divide({0, 1, 2});
       hardware.device.fails_after = {{"destroy", {false, true}}, {"create", {true}}};
     },
     [](DividingAgent& agent) { agent.Apply("whole", false, 0); }, HasParts(3), IsWhole},
    {"ADeviceWithAPartThatIsHeld",
     [](Hardware& hardware) {
       hardware.Divide({0, 1});
       hardware.held = {"P2"};
     },
     [](DividingAgent& agent) { agent.Apply("one", true, 1); }, HasParts(2),
     [](const Hardware& hardware) {
       return hardware.device.Parts() == std::vector<std::string>{"1g at 1"};
     }},
    {"AWholeDeviceIntoPartsWithinParts",
     [](Hardware& hardware) { hardware.device.AllowPartsWithin(); },
     [](DividingAgent& agent) { agent.Apply("within", true, 3, "1c"); }, IsWhole,
     HasPartsWithin(2, 3)},
    {"PartsWithinAPart", [](Hardware& hardware) { hardware.DivideWithin(); },
     [](DividingAgent& agent) { agent.Apply("whole", false, 0); }, HasPartsWithin(1, 2), IsWhole},
    {"PartsWithinAPartOfWhichOneIsHeld",
     [](Hardware& hardware) {
       hardware.DivideWithin();
       hardware.held = {"P3"};
     },
     [](DividingAgent& agent) { agent.Apply("one", true, 1, "1c"); }, HasPartsWithin(1, 2),
     [](const Hardware& hardware) {
       return HasPartsWithin(1, 1)(hardware) && hardware.device.Has("P3");
     }},
    {"APartForARequest",
     [](Hardware& hardware) {
       hardware.on_demand = true;
       hardware.Divide({});
     },
     [](DividingAgent& agent) { agent.Prepare("q-1"); }, HasParts(0), HasParts(1),
     [](DividingAgent&) {}, true},
    {"APartForARequestThatIsServed",
     [](Hardware& hardware) {
       hardware.on_demand = true;
       hardware.Divide({});
     },
     [](DividingAgent& agent) { agent.Prepare("q-1"); }, HasParts(0),
     [](const Hardware& hardware) { return HasParts(1)(hardware) && hardware.held.size() == 1; },
     [](DividingAgent& agent) { agent.ServeIfThere("q-1"); }},
};

class KilledDivision : public ::testing::TestWithParam<std::tuple<DivisionCase, bool>> {};

/// kill -9: what was not written to disk by now is lost, and the driver completes what it was asked
/// for, or does nothing of it. The kubelet counts no device of a plugin whose connection has ended.
void KillAgent(Hardware& hardware, std::optional<DividingAgent>& agent, bool completes) {
  std::map<std::string, std::string> files;
  const auto each_file = [&hardware](const auto& act) {
    for (const auto& file : std::filesystem::directory_iterator(hardware.folder / ""))
      act(file.path());
  };
  each_file([&](const auto& path) { files[path] = os::ReadFile(path).value_or(""); });
  agent.reset();
  each_file([](const auto& path) { std::filesystem::remove(path); });
  for (const auto& [path, text] : files) std::ofstream(path) << text;
  hardware.counted.clear();
  for (const auto& call : std::exchange(hardware.asked, {}))
    if (completes) call();
}

TEST_P(KilledDivision, EndsInTheOldOrTheNewState) {
  const auto& [division, completes] = GetParam();
  int old_ends = 0, new_ends = 0;  // of agents that were killed
  bool completed = false;
  for (int point = 0; !completed; ++point) {
    SCOPED_TRACE("killed after " + std::to_string(point) + " callbacks");
    ASSERT_LT(point, 1000);
    Hardware hardware;
    division.before(hardware);
    std::optional<DividingAgent> agent(std::in_place, hardware);
    agent->KubeletReads();
    division.begin(*agent);
    completed = true;
    const auto turn = [&] {
      const bool more = agent->Turn();
      division.meanwhile(*agent);
      return more;
    };
    for (int turns = 0; turns < point && completed; ++turns) completed = turn();
    completed = !completed;  // there was nothing left to kill
    if (!completed) {
      KillAgent(hardware, agent, completes);
      agent.emplace(hardware);
    }
    for (int turns = 0; turns < 10'000 && agent->Turn(); ++turns) {}
    ASSERT_TRUE(division.is_old(hardware) || division.is_new(hardware))
        << ::testing::PrintToString(hardware.device.Parts()) << ", mode " << hardware.Mode();
    if (!completed || division.only_alive) ++(division.is_new(hardware) ? new_ends : old_ends);
    std::set<std::string> there = hardware.Parts();
    if (IsWhole(hardware)) there.insert(hardware.device.device.id);
    std::set<std::string> served = agent->Usable();
    served.insert(hardware.held.begin(), hardware.held.end());
    EXPECT_EQ(served, there) << "all that is there is offered or held, and nothing else";
    if (!hardware.on_demand && division.is_new(hardware)) {
      EXPECT_EQ(agent->state().state, "success");
    }
    agent->End();
    for (int turns = 0; turns < 10'000 && agent->Turn(); ++turns) {}
    if (hardware.on_demand && !completed) {
      EXPECT_THAT(hardware.device.Parts(), IsEmpty()) << "what no one holds is removed";
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(old_ends, 0);
  EXPECT_GT(new_ends, 0);
}

INSTANTIATE_TEST_SUITE_P(Changes, KilledDivision,
                         ::testing::Combine(::testing::ValuesIn(kDivisionCases), ::testing::Bool()),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param).name) +
                                  (std::get<1>(one.param) ? "DriverCompletes" : "DriverDoesNot");
                         });

}  // namespace
}  // namespace penstock::node::change
