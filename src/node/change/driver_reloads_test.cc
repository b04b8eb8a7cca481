#include "node/change/driver_reloads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "node/change/testing/usable_devices.h"
#include "node/inventory/testing/acme_inventory.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::change {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

/// Completes a reload when the test says so.
class ScriptedReloads final : public device::Actions {
 public:
  std::vector<std::string> ResetTogether(const device::Facts& device,
                                         const std::vector<const device::Facts*>&) const override {
    return {device.id};
  }
  void Reset(const std::vector<device::Facts>&, std::function<void(base::Status)>) override {
    FAIL() << "a reset";
  }
  void ReloadDriver(std::function<void(base::Status)> done) override {
    ++count;
    if (before_reload) before_reload();
    done_ = std::move(done);
  }
  void End(const base::Status& status) { std::exchange(done_, nullptr)(status); }

  int count = 0;
  std::function<void()> before_reload;

 private:
  std::function<void(base::Status)> done_;
};

class DriverReloadsTest : public ::testing::Test {
 protected:
  DriverReloadsTest() : DriverReloadsTest({}) { Start(); }
  /// An agent that takes these changes over, before it starts.
  explicit DriverReloadsTest(std::vector<DeviceChange> under_way)
      : under_way_(std::move(under_way)) {
    inventory_.SetVendor(
        {.vendor = "acme", .driver = std::make_shared<device::Driver>(device::Driver{})});
    inventory::ReportHealthy(inventory_, inventory::AcmeDevices(4, 4), executor_.clock().Wall());
    Look();
    offers_.FollowServers("acme", servers_);
    reloads_.SetPolicy(api::ResetPolicy::kIdle);
    actions_.before_reload = [this] {
      EXPECT_THAT(counted_, IsEmpty()) << "the kubelet may allocate them";
    };
  }
  void Start() {
    changes_.Start();
    executor_.RunUntilIdle();
    KubeletReads();
  }
  /// The kubelet's list becomes that of what it is offered.
  void KubeletReads() {
    if (!kubelet_is_stuck_) counted_ = testing::UsableDevices(offers_, "kubelet");
  }
  /// All devices are read.
  void Look() {
    for (int i = 0; i < 4; ++i)
      inventory_.SetReading("G" + std::to_string(i), {}, executor_.clock().Wall());
    inventory_.PublishReadTimes();
    executor_.RunUntilIdle();
  }
  void Need(const ReloadNeed& need) {
    need_ = need;
    changes_.Wake();
    executor_.RunUntilIdle();
  }
  /// All devices are read again meanwhile, and then the kubelet's list.
  int ReloadsAfter(base::Duration time) {
    executor_.Advance(time / 2);
    Look();
    KubeletReads();
    executor_.Advance(time - time / 2);
    return actions_.count;
  }
  void End(const base::Status& status) {
    actions_.End(status);
    executor_.Advance(1s);
    Look();
    KubeletReads();
  }
  void Hold(const std::string& id) {
    ASSERT_TRUE(
        ledger_.Add({.id = "lease", .allocator = "local", .slots = {{.id = id, .device = id}}})
            .ok());
    executor_.RunUntilIdle();
  }
  void Release() {
    ledger_.Release("lease");
    executor_.RunUntilIdle();
  }
  /// Of each device, why it is not offered; empty: it is.
  std::vector<std::string> Withheld() {
    std::vector<std::string> reasons;
    for (const auto& [id, assignment] : offers_.Desired()->assignments)
      reasons.push_back(assignment.reason);
    return reasons;
  }
  ReloadOutlook Outlook() { return reloads_.OutlookOf("acme", need_); }

  const std::vector<DeviceChange> under_way_;
  base::ManualExecutor executor_;
  inventory::Inventory inventory_;
  ledger::Ledger ledger_;
  ScriptedReloads actions_;
  int released_ = 0, opened_ = 0;
  ReloadNeed need_{.known = true};
  bool kubelet_is_stuck_ = false;
  std::set<std::string> counted_;  // the devices that the kubelet counts
  os::TemporaryFolder folder_;
  base::Published<device::SharedDevices> servers_;
  share::Offers offers_{inventory_, ledger_, device::testing::FindAcme, {"local", "kubelet"}};
  DeviceChanges changes_{executor_,
                         executor_,
                         {inventory_, ledger_, offers_},
                         [this](auto done) { done(counted_); },
                         folder_ / "changes.json",
                         under_way_};
  share::Turns turns_{
      executor_, inventory_, ledger_, offers_,
      [this](const auto& now, const auto& before) { changes_.Follow(now, before); }};
  DriverReloads reloads_{executor_,
                         inventory_,
                         ledger_,
                         changes_,
                         [this](std::string_view) {
                           return Resets::Vendor{.actions = &actions_,
                                                 .release =
                                                     [this](const std::function<void()>& done) {
                                                       ++released_;
                                                       done();
                                                     },
                                                 .reopen = [this] { ++opened_; },
                                                 .read_soon = [](const std::string&) {}};
                         },
                         [this](std::string_view) { return need_; }};
};

constexpr ReloadNeed kReady{.known = true, .wanted = true, .ready = true};

TEST_F(DriverReloadsTest, AllDevicesAreWithdrawnAndBackAfterwards) {
  Need({.known = true, .wanted = true});
  EXPECT_EQ(ReloadsAfter(1min), 0) << "another device was not asked yet";
  Need(kReady);
  EXPECT_THAT(Withheld(), AllOf(::testing::SizeIs(4), Each(HasSubstr("is being loaded again"))));
  EXPECT_EQ(actions_.count, 0) << "an allocation in progress at its start may still arrive";
  ASSERT_EQ(ReloadsAfter(5s), 1);
  EXPECT_TRUE(Outlook().now);
  EXPECT_EQ(released_, 1);
  EXPECT_EQ(opened_, 0);
  need_ = {.known = true};
  End({});
  EXPECT_EQ(opened_, 1);
  EXPECT_THAT(Withheld(), Each(""));
  EXPECT_EQ(ReloadsAfter(1h), 1);
}

TEST_F(DriverReloadsTest, ThePolicyExcludesIt) {
  reloads_.SetPolicy(api::ResetPolicy::kNever);
  Need(kReady);
  EXPECT_EQ(ReloadsAfter(1h), 0);
  EXPECT_FALSE(Outlook().now);
  EXPECT_EQ(Outlook().why_not, "");
  reloads_.SetPolicy(api::ResetPolicy::kIdle);
  executor_.RunUntilIdle();
  EXPECT_EQ(ReloadsAfter(5s), 1);
}

TEST_F(DriverReloadsTest, WhoUsesAnyDeviceIsNamedAndWaitedFor) {
  Hold("G2");
  Need(kReady);
  EXPECT_EQ(ReloadsAfter(1h), 0);
  EXPECT_FALSE(Outlook().now);
  EXPECT_THAT(Outlook().why_not, AllOf(HasSubstr("G2"), HasSubstr("held")));
  EXPECT_EQ(Withheld()[0], "") << "the others serve on meanwhile";
  Release();
  EXPECT_EQ(ReloadsAfter(5s), 1);
}

TEST_F(DriverReloadsTest, WhoComesWhileTheyAreWithdrawnKeepsTheDevice) {
  Need(kReady);
  Hold("G3");
  EXPECT_EQ(ReloadsAfter(5s), 0);
  EXPECT_THAT(Outlook().why_not, HasSubstr("in use again"));
  Release();
  EXPECT_EQ(ReloadsAfter(5s), 0)
      << "whoever comes and goes does not have it withdrawn all the time";
  EXPECT_THAT(Withheld(), Each(""));
  executor_.Advance(1min);
  EXPECT_EQ(ReloadsAfter(5s), 1) << "that was no attempt";
}

TEST_F(DriverReloadsTest, ARequestThatChangesMeanwhileIsNotLoaded) {
  Need(kReady);
  executor_.Advance(1s);
  Need({.known = true, .wanted = true});
  EXPECT_EQ(ReloadsAfter(10s), 0);
  EXPECT_THAT(Withheld(), Each(""));
}

TEST_F(DriverReloadsTest, ADeviceThatComesMeanwhilePreventsIt) {
  Need(kReady);
  executor_.Advance(1s);
  inventory::ReportHealthy(inventory_, inventory::AcmeDevices(5, 5), executor_.clock().Wall());
  executor_.RunUntilIdle();
  EXPECT_EQ(ReloadsAfter(10s), 0);
}

TEST_F(DriverReloadsTest, AProcessThatOnlyANewReadingShowsPreventsIt) {
  Need(kReady);
  executor_.Advance(5s);
  KubeletReads();
  device::Reading reading;
  reading.processes = {{.pid = 7}};
  inventory_.SetReading("G1", reading, executor_.clock().Wall());
  for (const char* id : {"G0", "G2", "G3"}) inventory_.SetReading(id, {}, executor_.clock().Wall());
  inventory_.PublishReadTimes();
  executor_.Advance(10s);
  EXPECT_EQ(actions_.count, 0);
  EXPECT_THAT(Outlook().why_not, HasSubstr("a process"));
}

TEST_F(DriverReloadsTest, AFailureIsSaidAndTriedAgainLaterEachTime) {
  Need(kReady);
  ASSERT_EQ(ReloadsAfter(5s), 1);
  End(base::Error(base::Code::kFailedPrecondition, "modprobe: Module amdgpu is in use"));
  EXPECT_EQ(opened_, 1) << "the driver may be there";
  EXPECT_THAT(Outlook().why_not, HasSubstr("Module amdgpu is in use"));
  EXPECT_THAT(Withheld(), Each(""));
  EXPECT_EQ(ReloadsAfter(9min), 1);
  EXPECT_EQ(ReloadsAfter(2min), 1);
  EXPECT_EQ(ReloadsAfter(5s), 2);
  End(base::Error(base::Code::kFailedPrecondition, "modprobe: Module amdgpu is in use"));
  EXPECT_EQ(ReloadsAfter(19min), 2) << "twice as long";
  EXPECT_EQ(ReloadsAfter(2min), 2);
  EXPECT_EQ(ReloadsAfter(5s), 3);
}

TEST_F(DriverReloadsTest, AKubeletThatDoesNotTakeNoteIsTheReasonAndTheDriverStays) {
  kubelet_is_stuck_ = true;
  Need(kReady);
  EXPECT_EQ(ReloadsAfter(1min), 0);
  EXPECT_THAT(Withheld(), Each(HasSubstr("the kubelet still lists it as allocatable")));
  EXPECT_EQ(ReloadsAfter(2min), 0);
  EXPECT_THAT(Outlook().why_not, HasSubstr("the step \"await release\" did not end within 2m: the "
                                           "kubelet still lists it as allocatable"));
  EXPECT_THAT(Withheld(), Each("")) << "they serve meanwhile";
  EXPECT_EQ(ReloadsAfter(1h), 0);
  EXPECT_EQ(released_, 0);
  kubelet_is_stuck_ = false;
  ReloadNeed applied = kReady;
  applied.request = 1;
  Need(applied);
  EXPECT_EQ(ReloadsAfter(5s), 1) << "a layout was applied";
}

TEST_F(DriverReloadsTest, OneThatDoesNotEndIsAFailureAndWhatItSaysLaterCountsForNone) {
  Need(kReady);
  ASSERT_EQ(ReloadsAfter(5s), 1);
  EXPECT_EQ(ReloadsAfter(2h + 5min), 1);
  Look();
  EXPECT_EQ(opened_, 1);
  EXPECT_THAT(Outlook().why_not, HasSubstr("the step \"reload driver\" did not end within 2h5m"));
  EXPECT_THAT(Withheld(), Each(""));
  End({});
  EXPECT_EQ(ReloadsAfter(11min), 1);
  EXPECT_EQ(ReloadsAfter(5s), 2);
}

TEST_F(DriverReloadsTest, OneThatWorksAlthoughItsProgramFailsIsNotMadeAgain) {
  Need(kReady);
  ASSERT_EQ(ReloadsAfter(5s), 1);
  need_ = {.known = true};  // as the driver says once it is open
  End(base::Error(base::Code::kDeadlineExceeded, "modprobe was killed"));
  EXPECT_EQ(opened_, 1);
  EXPECT_THAT(Withheld(), Each(""));
  EXPECT_EQ(ReloadsAfter(5min), 1);
  Need(kReady);
  EXPECT_EQ(ReloadsAfter(5s), 2) << "the next need does not wait for that failure";
}

TEST_F(DriverReloadsTest, ADriverThatDoesNotTakeTheModeOnIsNotLoadedAgainAndAgain) {
  Need(kReady);
  ASSERT_EQ(ReloadsAfter(5s), 1);
  End({});
  EXPECT_THAT(Outlook().why_not, HasSubstr("the mode did not change"));
  Need({});  // as while a driver is away
  Need({.known = true, .wanted = true});
  Need(kReady);
  EXPECT_EQ(ReloadsAfter(9min), 1);
  Need({.known = true});
  Need(kReady);
  EXPECT_EQ(ReloadsAfter(5s), 2) << "another need, after that one had ended";
  End({});
  EXPECT_EQ(ReloadsAfter(1min), 2);
  ReloadNeed applied = kReady;
  applied.request = 1;
  Need(applied);
  EXPECT_EQ(ReloadsAfter(5s), 3) << "a layout was applied";
}

TEST_F(DriverReloadsTest, ADisplayPreventsIt) {
  device::Reading reading;
  reading.processes = {{.pid = 7, .graphics_only = true}};
  inventory_.SetReading("G1", reading, executor_.clock().Wall());
  executor_.RunUntilIdle();
  Need(kReady);
  EXPECT_EQ(actions_.count, 0);
  EXPECT_THAT(Outlook().why_not, HasSubstr("used by a display"));
}

/// Of an agent that ended while the driver was to be loaded again.
class ReloadUnderWay : public DriverReloadsTest {
 protected:
  ReloadUnderWay() : DriverReloadsTest({Change()}) { need_ = {.known = true, .wanted = true}; }

  static DeviceChange Change() {
    DeviceChange change;
    change.kind = kReloadKind;
    change.details = "acme";
    change.step = "reload driver";
    for (int i = 0; i < 4; ++i)
      change.devices.push_back({.id = "G" + std::to_string(i), .allocator = "kubelet"});
    return change;
  }
};

TEST_F(ReloadUnderWay, IsNotBegunAgainWhereTheDriverIsLoadedAndSomeoneHasComeMeanwhile) {
  inventory_.SetHealth("G3", device::HealthState::kGone, "fell off", executor_.clock().Wall());
  Hold("G1");
  Start();
  EXPECT_EQ(actions_.count, 0);
  EXPECT_THAT(Withheld(), Each(""));
}

TEST_F(ReloadUnderWay, IsBegunAgainWhereTheDriverIsNotLoadedWhateverTheLedgerSays) {
  for (int i = 0; i < 4; ++i)
    inventory_.SetHealth("G" + std::to_string(i), device::HealthState::kGone, "no driver",
                         executor_.clock().Wall());
  Hold("G1");
  Start();
  EXPECT_EQ(actions_.count, 1);
}

}  // namespace
}  // namespace penstock::node::change
