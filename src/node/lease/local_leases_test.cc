// Tests leases from start to end, with fake groups and a fake clock.
#include "node/lease/local_leases.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/manual_executor.h"
#include "node/allocate/outlook.h"
#include "node/lease/lease_note.h"
#include "node/lease/testing/fake_cgroup_manager.h"
#include "os/process/process.h"

namespace penstock::node::lease {
namespace {

using allocate::kKillWait;
using ledger::Enforcement;
using ledger::Lease;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uid_t kEva = 1000;

/// A child process of the test.
class Sleeper {
 public:
  Sleeper() : child_(*os::Spawn({.arguments = {"/bin/sleep", "600"}})) {}
  ~Sleeper() { End(); }
  void End() {
    if (ended_) return;
    ::kill(child_.pid, SIGKILL);
    ::waitid(P_PID, static_cast<id_t>(child_.pid), nullptr, WEXITED);
    ended_ = true;
  }
  pid_t pid() const { return child_.pid; }
  int pidfd() const { return child_.pidfd.get(); }

 private:
  os::Child child_;
  bool ended_ = false;
};

class LocalLeasesTest : public testing::Test {
 protected:
  LocalLeasesTest() {
    device::Driver driver;
    driver.vendor = "nvidia";
    driver.guarded = {{195, 0, 127}};
    inventory_.SetVendor({"nvidia", std::make_shared<const device::Driver>(driver), ""});
    std::vector<device::Facts> facts(2);
    for (int i = 0; i < 2; ++i) {
      auto& one = facts[static_cast<std::size_t>(i)];
      one.id = "GPU-" + std::to_string(i);
      one.vendor = "nvidia";
      one.index = i;
      one.files = {{"/dev/nvidia" + std::to_string(i), 195, static_cast<std::uint32_t>(i)}};
    }
    inventory_.SetFacts("nvidia", facts, "", executor_.clock().Wall());
    pidfd_ = *os::OpenPidfd(::getpid());
    StartAgent();
  }

  void StartAgent(const std::vector<Lease>& checkpoint = {},
                  const std::map<std::string, Term>& terms = {}, base::Executor* io = nullptr,
                  const std::vector<ledger::LeaseLimits>& limits = {}) {
    leases_.reset();
    ledger_ = std::make_unique<ledger::Ledger>();
    leases_ = std::make_unique<LocalLeases>(
        executor_, io != nullptr ? *io : executor_, "/proc", inventory_, *ledger_,
        [this]() -> base::Result<std::unique_ptr<CgroupManager>> {
          if (!no_rights_.empty()) return Error(Code::kPermissionDenied, no_rights_);
          return std::unique_ptr<CgroupManager>(std::make_unique<FakeCgroupManager>(kernel_));
        },
        [this] { ++reported_to_end_; });
    leases_->Recover(checkpoint, terms, limits);
  }
  void Refresh() {
    bool refreshed = false;
    leases_->RefreshProcesses([&refreshed] { refreshed = true; });
    executor_.RunUntilIdle();
    EXPECT_TRUE(refreshed);
  }
  static LocalLeases::Admission AdmissionOf(const std::string& device, pid_t pid, int pidfd) {
    const std::uint64_t start = *os::ReadProcessStart("/proc", pid);
    return {{{device, device}}, kEva, "eva", "train", {pid, start, "eva", "train"}, pidfd};
  }
  LocalLeases::Admission AdmissionOf(const std::string& device) const {
    return AdmissionOf(device, ::getpid(), pidfd_.get());
  }
  /// That of a process whose user is this test's, as it is without rights.
  static LocalLeases::Admission OwnAdmissionOf(const std::string& device, const Sleeper& process) {
    LocalLeases::Admission admission = AdmissionOf(device, process.pid(), process.pidfd());
    admission.uid = ::getuid();
    admission.user = admission.process.user = os::UserName(::getuid());
    return admission;
  }
  base::Result<Lease> Admit(const std::string& device) {
    return leases_->Admit(AdmissionOf(device));
  }
  base::Result<Lease> Admit(const Sleeper& requester) {
    return leases_->Admit(AdmissionOf("GPU-1", requester.pid(), requester.pidfd()));
  }
  ledger::Leases Held() const { return ledger_->Get()->leases; }

  base::ManualExecutor executor_;
  inventory::Inventory inventory_;
  FakeKernel kernel_;
  std::string no_rights_;
  int reported_to_end_ = 0;
  os::UniqueFd pidfd_;
  std::unique_ptr<ledger::Ledger> ledger_;
  std::unique_ptr<LocalLeases> leases_;
};

TEST_F(LocalLeasesTest, PutsTheProcessIntoAGroupThatAdmitsItsDevicesOnly) {
  const auto lease = Admit("GPU-1");
  ASSERT_TRUE(lease.ok()) << lease.error().ToString();
  EXPECT_EQ(lease->enforcement, Enforcement::kDevices);
  const auto& group = kernel_.groups.at(lease->id);
  EXPECT_THAT(group.rules.guarded, ElementsAre(os::DeviceRange{195, 0, 127}));
  EXPECT_THAT(group.rules.admitted, ElementsAre(os::DeviceRange{195, 1, 1}));
  EXPECT_THAT(group.members, ElementsAre(::getpid()));
  EXPECT_THAT(Held(), ElementsAre(*lease));
}

TEST_F(LocalLeasesTest, GivesTheDevicesBackWhenTheGroupIsEmpty) {
  const std::string id = Admit("GPU-1")->id;
  kernel_.groups.at(id).changed();
  EXPECT_THAT(Held(), SizeIs(1)) << "the group is not empty yet";
  kernel_.End(id);
  EXPECT_THAT(Held(), IsEmpty());
  EXPECT_THAT(kernel_.groups, IsEmpty());
}

TEST_F(LocalLeasesTest, RemovesAGroupLaterThatTheKernelStillHolds) {
  const std::string id = Admit("GPU-1")->id;
  kernel_.busy = 3;
  kernel_.End(id);
  EXPECT_THAT(Held(), IsEmpty()) << "devices are released without waiting for the removal";
  EXPECT_THAT(kernel_.groups, SizeIs(1));
  executor_.Advance(seconds(2));
  EXPECT_THAT(kernel_.groups, IsEmpty());
}

TEST_F(LocalLeasesTest, OneThatIsEndingWhenItIsAdmittedHoldsNothing) {
  kernel_.ending = true;
  const auto lease = Admit("GPU-0");
  ASSERT_FALSE(lease.ok());
  EXPECT_EQ(lease.error().code(), Code::kCancelled);
  EXPECT_THAT(Held(), IsEmpty()) << "no event would report that its group is empty";
  EXPECT_THAT(kernel_.groups, IsEmpty());
}

TEST_F(LocalLeasesTest, HoldsNothingAfterAFailureAtAnyStep) {
  for (const char* call : {"create", "watch", "enter"}) {
    kernel_.fail = call;
    const auto lease = Admit("GPU-1");
    ASSERT_FALSE(lease.ok()) << call;
    EXPECT_EQ(lease.error().code(), Code::kAborted)
        << "the request would be queued although devices are free";
    EXPECT_THAT(Held(), IsEmpty()) << call;
    EXPECT_THAT(kernel_.groups, IsEmpty()) << call;
  }
  kernel_.fail.clear();
  EXPECT_TRUE(Admit("GPU-1").ok());
}

TEST_F(LocalLeasesTest, NoticesAProcessThatEndedOnTheWay) {
  EXPECT_EQ(leases_->Admit(AdmissionOf("GPU-1", ::getpid(), -1)).error().code(), Code::kCancelled);
  Sleeper requester;
  kernel_.entering = [&requester] { requester.End(); };
  const auto lease = Admit(requester);
  EXPECT_EQ(lease.error().code(), Code::kCancelled);
  EXPECT_THAT(Held(), IsEmpty());
}

TEST_F(LocalLeasesTest, MovesNoOneWhoGotTheNumberWhileTheGroupWasMade) {
  Sleeper requester;
  kernel_.created = [&requester] { requester.End(); };
  kernel_.entering = [] {
    ADD_FAILURE() << "the process that has this PID now is not the requesting one";
  };
  EXPECT_EQ(Admit(requester).error().code(), Code::kCancelled);
  EXPECT_THAT(kernel_.groups, IsEmpty());
  EXPECT_THAT(Held(), IsEmpty());
}

TEST_F(LocalLeasesTest, PutsBackWhoGotTheNumberInTheLastMoment) {
  Sleeper requester, bystander;
  kernel_.entering = [&] {
    requester.End();
    kernel_.groups.begin()->second.members = {bystander.pid()};
  };
  EXPECT_EQ(Admit(requester).error().code(), Code::kCancelled);
  EXPECT_EQ(kernel_.moved[bystander.pid()], *os::ReadUnifiedCgroup("/proc", ::getpid()))
      << "the process is in its parent's group";
  EXPECT_THAT(kernel_.groups, IsEmpty());
  EXPECT_THAT(Held(), IsEmpty());
}

TEST_F(LocalLeasesTest, AGroupLiesWhereItsCallersLimitsHold) {
  const auto lease = Admit("GPU-1");
  ASSERT_TRUE(lease.ok()) << lease.error().ToString();
  const std::string place = *os::ReadUnifiedCgroup("/proc", ::getpid()) + "/" + lease->id;
  EXPECT_EQ(kernel_.groups.at(lease->id).place, place);
  EXPECT_EQ(lease->cgroup, place);
  StartAgent();
  EXPECT_EQ(Held().at(0).cgroup, place);
}

TEST_F(LocalLeasesTest, GivesNothingToOneWhoseGroupHasNoPlaceForAnother) {
  kernel_.refusal = "it belongs to a job";
  EXPECT_THAT(leases_->MayAdmit(::getpid()).error().message(), HasSubstr("a job"));
  const auto lease = Admit("GPU-1");
  EXPECT_EQ(lease.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(Held(), IsEmpty());
  no_rights_ = "root is needed";
  StartAgent();
  EXPECT_TRUE(leases_->MayAdmit(::getpid()).ok()) << "no process is moved";
}

TEST_F(LocalLeasesTest, DoesNotGiveADeviceTwice) {
  ASSERT_TRUE(Admit("GPU-1").ok());
  EXPECT_EQ(Admit("GPU-1").error().code(), Code::kAlreadyExists);
  EXPECT_THAT(kernel_.groups, SizeIs(1));
}

TEST_F(LocalLeasesTest, TakesOverItsLeasesAfterARestart) {
  const auto lease = Admit("GPU-1");
  StartAgent();
  ASSERT_THAT(Held(), SizeIs(1));
  const Lease taken = Held().at(0);
  EXPECT_EQ(taken.id, lease->id);
  EXPECT_EQ(taken.slots, lease->slots);
  EXPECT_EQ(taken.user, "eva");
  EXPECT_EQ(taken.command, "train");
  EXPECT_EQ(base::FormatTime(taken.since), base::FormatTime(lease->since));
  EXPECT_EQ(taken.processes.at(0).pid, ::getpid());
  kernel_.End(lease->id);
  EXPECT_THAT(Held(), IsEmpty());
}

TEST_F(LocalLeasesTest, ARunsLabelsComeBackWithItsGroup) {
  LocalLeases::Admission admission = AdmissionOf("GPU-1");
  admission.labels = {{"experiment", "lr=0.1"}};
  ASSERT_TRUE(leases_->Admit(admission).ok());
  EXPECT_EQ(Held().at(0).labels, admission.labels);
  StartAgent();
  EXPECT_EQ(Held().at(0).labels, admission.labels);
}

TEST_F(LocalLeasesTest, RemovesAtStartWhatEndedWhileNoAgentRan) {
  const std::string id = Admit("GPU-1")->id;
  leases_.reset();
  kernel_.groups.at(id).members.clear();
  StartAgent();
  EXPECT_THAT(Held(), IsEmpty());
  EXPECT_THAT(kernel_.groups, IsEmpty());
}

TEST_F(LocalLeasesTest, FallsBackToTheCheckpointForADamagedNote) {
  const auto lease = Admit("GPU-1");
  kernel_.groups.at(lease->id).note = "{\"lease\":";
  StartAgent({*lease});
  ASSERT_THAT(Held(), SizeIs(1));
  EXPECT_EQ(Held().at(0).slots, lease->slots);
}

TEST_F(LocalLeasesTest, AGroupsLeaseHasItsLimitsAlsoWhereTheCheckpointDoesNotHaveIt) {
  LocalLeases::Admission admission = AdmissionOf("GPU-1");
  admission.slots[0].id = "GPU-1::0";
  admission.slots[0].shape = {device::Sharing::kServer, 2};
  admission.slots[0].limits = {.memory = base::Mebibytes(500),
                               .memory_by = device::Enforcer::kServer};
  const auto lease = leases_->Admit(admission);
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(kernel_.groups.at(lease->id).note.find("limits"), std::string::npos);
  StartAgent({}, {}, nullptr, {{lease->id, {{"GPU-1::0", lease->slots[0].limits}}}});
  ASSERT_THAT(Held(), SizeIs(1));
  EXPECT_EQ(Held().at(0).slots, lease->slots);
}

TEST_F(LocalLeasesTest, TakesOverALeaseByItsProcessesWhereGroupsCannotBeOpened) {
  const auto lease = Admit("GPU-1");
  no_rights_ = "no space left";
  StartAgent({*lease});
  ASSERT_THAT(Held(), SizeIs(1));
  EXPECT_EQ(Held().at(0).slots, lease->slots);
  EXPECT_EQ(Admit("GPU-1").error().code(), Code::kAlreadyExists);
}

TEST_F(LocalLeasesTest, LeavesTheProcessesOfAnUnknownGroupAlone) {
  kernel_.groups["r-0-1"] = {"/r-0-1", {}, "rubbish", {::getpid()}, {}};
  StartAgent();
  EXPECT_THAT(Held(), IsEmpty());
  kernel_.End("r-0-1");
  EXPECT_THAT(kernel_.groups, IsEmpty()) << "empty groups are removed";
}

TEST_F(LocalLeasesTest, NamesNoLeaseTwiceOverRestarts) {
  const std::string first = Admit("GPU-1")->id;
  executor_.Advance(seconds(1));
  StartAgent();
  EXPECT_NE(Admit("GPU-0")->id, first);
}

TEST_F(LocalLeasesTest, FollowsTheProcessWithoutRightsForGroups) {
  no_rights_ = "root is needed";
  StartAgent();
  EXPECT_EQ(leases_->visibility_reason(), "root is needed");
  Sleeper child;
  const auto lease = leases_->Admit(OwnAdmissionOf("GPU-0", child));
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(lease->enforcement, Enforcement::kVisibility);
  executor_.Advance(seconds(3));
  ASSERT_THAT(Held(), SizeIs(1));

  StartAgent({Held().at(0)});
  ASSERT_THAT(Held(), SizeIs(1)) << "the lease survives a restart by the checkpoint";
  child.End();
  executor_.Advance(seconds(2));
  EXPECT_THAT(Held(), IsEmpty());
}

TEST_F(LocalLeasesTest, FindsOutThatRightsCameLater) {
  no_rights_ = "read-only";
  StartAgent();
  no_rights_.clear();
  executor_.Advance(seconds(60));
  EXPECT_EQ(Admit("GPU-0")->enforcement, Enforcement::kDevices);
  EXPECT_EQ(leases_->visibility_reason(), "");
}

TEST_F(LocalLeasesTest, BringsTheProcessesOfAGroupUpToDate) {
  const std::string id = Admit("GPU-0")->id;
  kernel_.groups.at(id).members = {::getppid()};
  Refresh();
  EXPECT_EQ(Held().at(0).processes.at(0).pid, ::getppid());
}

TEST_F(LocalLeasesTest, ReadsProcessesOnTheOtherThreadInOneLookForAllWhoAskMeanwhile) {
  base::ManualExecutor io;
  StartAgent({}, {}, &io);
  kernel_.groups.at(Admit("GPU-0")->id).members = {::getppid()};
  std::vector<int> answered;
  for (int requester = 0; requester < 3; ++requester)
    leases_->RefreshProcesses([&answered, requester] { answered.push_back(requester); });
  executor_.RunUntilIdle();
  EXPECT_THAT(answered, IsEmpty()) << "no file is read on the control executor";
  io.RunUntilIdle();
  executor_.RunUntilIdle();
  EXPECT_THAT(answered, ElementsAre(0)) << "the other requests came while it was reading";
  io.RunUntilIdle();
  executor_.RunUntilIdle();
  EXPECT_THAT(answered, ElementsAre(0, 1, 2));
  EXPECT_EQ(Held().at(0).processes.at(0).pid, ::getppid());
}

TEST_F(LocalLeasesTest, AnswersWithWhatIsKnownWhereReadingTakesLong) {
  base::ManualExecutor io;
  StartAgent({}, {}, &io);
  kernel_.groups.at(Admit("GPU-0")->id).members = {::getppid()};
  int answered = 0;
  leases_->RefreshProcesses([&answered] { ++answered; });
  leases_->RefreshProcesses([&answered] { ++answered; });
  executor_.Advance(LocalLeases::kLongestRefresh);
  EXPECT_EQ(answered, 2);
  EXPECT_EQ(Held().at(0).processes.at(0).pid, ::getpid());
  io.RunUntilIdle();
  executor_.RunUntilIdle();
  EXPECT_EQ(answered, 2) << "each once";
  EXPECT_EQ(Held().at(0).processes.at(0).pid, ::getppid());
}

TEST_F(LocalLeasesTest, ClosesDevicesToGroupsAndLooksAgain) {
  leases_->CloseDevices({"/user.slice", "/x"});
  EXPECT_THAT(kernel_.closed, ElementsAre("/user.slice", "/x"));
  EXPECT_THAT(kernel_.closed_devices, ElementsAre(os::DeviceRange{195, 0, 127}));
  EXPECT_THAT(leases_->closed().cgroups, ElementsAre("/user.slice", "/x"));
  EXPECT_EQ(leases_->closed().problem, "");

  kernel_.fail = "close /x";  // the group was removed
  executor_.Advance(LocalLeases::kCloseAgain);
  EXPECT_THAT(leases_->closed().cgroups, ElementsAre("/user.slice"));
  EXPECT_EQ(leases_->closed().problem, "/x: close /x fails");
  kernel_.fail.clear();
  executor_.Advance(LocalLeases::kCloseAgain);
  EXPECT_EQ(leases_->closed().problem, "");

  device::Facts another;
  another.id = "GPU-2";
  another.vendor = "nvidia";
  another.files = {{"/dev/dri/card9", 226, 9}};
  inventory_.SetFacts("nvidia", {another}, "", executor_.clock().Wall());
  leases_->DevicesChanged();
  EXPECT_THAT(kernel_.closed_devices, testing::Contains(os::DeviceRange{226, 9, 9}))
      << "as soon as its facts are known";
  const int closings = kernel_.closings;
  inventory_.SetHealth("GPU-2", device::HealthState::kHealthy, "", executor_.clock().Wall());
  leases_->DevicesChanged();
  EXPECT_EQ(kernel_.closings, closings) << "no facts changed";

  leases_->CloseDevices({});
  EXPECT_THAT(kernel_.closed, IsEmpty());
  EXPECT_THAT(leases_->closed().cgroups, IsEmpty());
}

TEST_F(LocalLeasesTest, ClosesNothingWhileALeaseLivesThatHasNoGroup) {
  no_rights_ = "read-only";
  StartAgent();
  Sleeper requester;
  const auto lease = leases_->Admit(OwnAdmissionOf("GPU-1", requester));
  ASSERT_EQ(lease->enforcement, Enforcement::kVisibility);
  leases_->CloseDevices({"/user.slice"});
  no_rights_.clear();
  executor_.Advance(seconds(60));
  EXPECT_EQ(leases_->visibility_reason(), "") << "permissions are sufficient now";
  EXPECT_THAT(kernel_.closed, IsEmpty()) << "its processes could no longer open its device";
  EXPECT_THAT(leases_->closed().cgroups, IsEmpty());
  EXPECT_THAT(leases_->closed().problem, HasSubstr(lease->id));

  StartAgent({Held().at(0)});  // now with the permissions from the start
  leases_->CloseDevices({"/user.slice"});
  EXPECT_THAT(kernel_.closed, IsEmpty());
  ASSERT_TRUE(Admit("GPU-0").ok()) << "a lease with a group does not prevent closing";
  requester.End();
  executor_.Advance(seconds(5));
  ASSERT_THAT(Held(), SizeIs(1));
  EXPECT_THAT(kernel_.closed, ElementsAre("/user.slice"));
  EXPECT_EQ(leases_->closed().problem, "");
}

TEST_F(LocalLeasesTest, SaysWhyNothingCanBeClosed) {
  no_rights_ = "read-only";
  StartAgent();
  leases_->CloseDevices({"/user.slice"});
  EXPECT_THAT(leases_->closed().cgroups, IsEmpty());
  EXPECT_EQ(leases_->closed().problem, "cannot close devices: read-only");
}

TEST_F(LocalLeasesTest, ALookThatOutlivesTheLeasesHarmsNothing) {
  base::ManualExecutor io;
  StartAgent({}, {}, &io);
  ASSERT_TRUE(Admit("GPU-0").ok());
  leases_->RefreshProcesses([] { FAIL(); });
  leases_.reset();
  io.RunUntilIdle();
  executor_.Advance(LocalLeases::kLongestRefresh);
}

TEST_F(LocalLeasesTest, GivesBackWhatHasEndedAlsoWhereTheKernelHasNotReportedYet) {
  const std::string id = Admit("GPU-0")->id;
  kernel_.busy = 1;
  kernel_.groups.at(id).members.clear();
  Refresh();
  EXPECT_THAT(Held(), IsEmpty());
  Refresh();  // a removal is already pending
  executor_.Advance(seconds(1));
  EXPECT_THAT(kernel_.groups, IsEmpty());
}

TEST(LeaseNote, ReadsWhatItWrites) {
  Lease lease;
  lease.id = "r-1";
  lease.slots = {{"a", "b"}, {"c", "d"}};
  lease.user = "eva";
  lease.command = "x \"y\" \xff";
  const auto read = DecodeNote(EncodeNote(lease), "r-1");
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(read->slots, lease.slots);
  EXPECT_EQ(read->allocator, "local");
}

TEST(LeaseNote, IsRefusedWhereItIsDamaged) {
  Lease lease;
  lease.id = "r-1";
  lease.slots = {{"a", "b"}};
  EXPECT_THAT(DecodeNote(EncodeNote(lease), "r-2").error().message(), HasSubstr("names lease r-1"));
  for (const char* note :
       {"", "x", "{}", "[]", R"({"lease":"r-1"})", R"({"lease":"r-1","slots":[]})",
        R"({"lease":"r-1","slots":[{"id":"a"}]})", R"({"lease":"r-1","slots":[7]})",
        R"({"lease":"r-1","lease":"r-1","slots":[{"id":"a","device":"b"}]})"})
    EXPECT_EQ(DecodeNote(note, "r-1").error().code(), Code::kDataLoss) << note;
}

TEST(CgroupManager, AreNamedAfterTheRunDirectory) {
  EXPECT_EQ(CgroupNameFor("/run/penstock"), "penstock");
  EXPECT_NE(CgroupNameFor("/tmp/a"), CgroupNameFor("/tmp/b"));
  EXPECT_THAT(CgroupNameFor("/tmp/a"), testing::StartsWith("penstock-"));
}

TEST_F(LocalLeasesTest, AnAgentRestartedKnowsWhatAShareIsOneOf) {
  const ledger::Slot share{
      "GPU-1::2", "GPU-1", "nvidia.com/gpu.shared", {device::Sharing::kServer, 4}};
  LocalLeases::Admission admission = AdmissionOf("GPU-1");
  admission.slots = {share};
  ASSERT_TRUE(leases_->Admit(admission).ok());
  StartAgent();
  ASSERT_THAT(Held(), SizeIs(1));
  EXPECT_THAT(Held()[0].slots, ElementsAre(share));
}

TEST(LeaseNote, OfAnAgentThatKnewNoSharesIsOfWholeDevices) {
  const auto lease = DecodeNote(R"({"lease":"r-1","slots":[{"id":"G0","device":"G0"}]})", "r-1");
  ASSERT_TRUE(lease.ok()) << lease.error().ToString();
  EXPECT_THAT(lease->slots, ElementsAre(ledger::Slot{"G0", "G0", "", {}}));
}

TEST(LeaseNote, OneShareOfADeviceIsTheWholeDevice) {
  const auto lease = DecodeNote(
      R"({"lease":"r-1","slots":[{"id":"G0","device":"G0","sharing":"mps","shares":1}]})", "r-1");
  ASSERT_TRUE(lease.ok()) << lease.error().ToString();
  EXPECT_THAT(lease->slots, ElementsAre(ledger::Slot{"G0", "G0", "", {}}));
}

TEST(LeaseNote, WhatOnlyPartsHaveIsNotReadOfADeviceThatIsNoPart) {
  const auto lease = DecodeNote(
      R"({"lease":"r-1","slots":[{"id":"G0","device":"G0","memory":4,"computeUnits":1,
          "limits":{"memory":1,"memoryBy":"server"}}]})",
      "r-1");
  ASSERT_TRUE(lease.ok()) << lease.error().ToString();
  EXPECT_THAT(lease->slots, ElementsAre(ledger::Slot{"G0", "G0", "", {}}));
}

TEST_F(LocalLeasesTest, OfManyProcessesThoseThatAreKnownStay) {
  const std::string id = Admit("GPU-1")->id;
  const pid_t parent = ::getppid();
  Lease lease = Held().at(0);
  lease.processes.push_back(
      {parent, *os::ReadProcessStart("/proc", parent), "eva", "shell"});  // found on a device
  ASSERT_TRUE(ledger_->Update(lease).ok());
  auto& members = kernel_.groups.at(id).members;
  members.clear();
  for (pid_t pid = 1; members.size() < 100; ++pid)
    members.push_back(pid);  // most of them do not exist
  members.push_back(::getpid());
  members.push_back(parent);
  Refresh();
  const auto processes = Held().at(0).processes;
  for (const pid_t pid : {::getpid(), parent})
    EXPECT_TRUE(std::any_of(processes.begin(), processes.end(), [pid](const auto& one) {
      return one.pid == pid;
    })) << pid;
  EXPECT_LE(processes.size(), 64u);
}

using Signals = std::vector<std::pair<std::string, int>>;

TEST_F(LocalLeasesTest, EndsALeaseWhoseTimeIsOver) {
  LocalLeases::Admission admission = AdmissionOf("GPU-1");
  admission.time = seconds(100);
  const auto lease = leases_->Admit(admission);
  ASSERT_TRUE(lease.ok());
  executor_.Advance(seconds(99));
  EXPECT_THAT(kernel_.signals, IsEmpty());
  executor_.Advance(seconds(1));
  EXPECT_EQ(kernel_.signals, (Signals{{lease->id, SIGTERM}, {lease->id, SIGCONT}}));
  EXPECT_TRUE(leases_->terms().at(lease->id).killed);
  executor_.Advance(kKillWait);
  EXPECT_EQ(kernel_.signals.back(), std::pair(lease->id, SIGKILL));
  kernel_.End(lease->id);
  executor_.RunUntilIdle();
  const auto sent = kernel_.signals.size();
  executor_.Advance(seconds(100));
  EXPECT_EQ(kernel_.signals.size(), sent) << "it has ended";
  EXPECT_THAT(leases_->terms(), IsEmpty());
}

TEST_F(LocalLeasesTest, EndsWhatAnAgentBeforeItGaveAnEnd) {
  const std::string id = Admit("GPU-1")->id;
  Term term = leases_->terms().at(id);
  EXPECT_FALSE(term.ends);
  term.ends = executor_.clock().Now() + seconds(5);
  StartAgent({}, {{id, term}});
  EXPECT_EQ(leases_->terms().at(id), term);
  executor_.Advance(seconds(5));
  EXPECT_EQ(kernel_.signals.front(), std::pair(id, SIGTERM));
}

TEST_F(LocalLeasesTest, KillsWhatAnAgentBeforeItAskedToEndAndAsksItNoMore) {
  const std::string id = Admit("GPU-1")->id;
  leases_->End(id, "said so");
  executor_.RunUntilIdle();
  EXPECT_EQ(reported_to_end_, 1) << "another component stores its term";
  leases_->End(id, "said so again");
  EXPECT_EQ(reported_to_end_, 1);
  executor_.Advance(seconds(10));
  kernel_.signals.clear();
  const Term term = leases_->terms().at(id);
  EXPECT_EQ(term.killed, executor_.clock().Now() + kKillWait - seconds(10));
  StartAgent({}, {{id, term}});
  executor_.Advance(kKillWait - seconds(11));
  EXPECT_THAT(kernel_.signals, IsEmpty());
  executor_.Advance(seconds(1));
  EXPECT_EQ(kernel_.signals, (Signals{{id, SIGKILL}}));
}

TEST_F(LocalLeasesTest, KnowsWhoseARunIsWhereAnOlderFileDoesNotSay) {
  const std::string id = Admit("GPU-1")->id;
  EXPECT_EQ(leases_->terms().at(id).uid, kEva);
  StartAgent({}, {{id, Term{executor_.clock().Now()}}});
  EXPECT_EQ(leases_->terms().at(id).uid, ::getuid()) << "the process belongs to the test";
}

TEST_F(LocalLeasesTest, EndsWithoutRightsTheProcessesThatItKnows) {
  no_rights_ = "read-only";
  kernel_ = {};
  StartAgent();
  Sleeper requester;
  const std::string id = Admit(requester)->id;
  leases_->End(id, "said so");
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(requester.pid()), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(ended.si_status, SIGTERM);
}

}  // namespace
}  // namespace penstock::node::lease
