// Tests what Events say about each step of an upgrade.
#include "operator/driver/upgrade_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cluster {
namespace {

using enum UpgradeState;

UpgradeRecord RecordIn(UpgradeState state, std::string reason = "", std::string message = "") {
  UpgradeRecord record;
  record.state = state;
  record.reason = std::move(reason);
  record.message = std::move(message);
  return record;
}

UpgradeRecord Blocked(UpgradeState state, std::string by) {
  UpgradeRecord record = RecordIn(state);
  record.blocked = std::move(by);
  return record;
}

UpgradeRecord Held(UpgradeState state, std::string reason, std::string message) {
  UpgradeRecord record = RecordIn(state, std::move(reason), std::move(message));
  record.held = "old";
  return record;
}

TEST(UpgradeEvents, SayWhatAnUpgradeComesTo) {
  UpgradeRecord again = RecordIn(kCordon, "DriverNotLoaded", "it crashed");
  again.attempts = 1;
  struct Case {
    UpgradeRecord before, after;
    bool warning;
    std::string message;
  };
  const Case cases[] = {
      {RecordIn(kRequired), RecordIn(kCordon), false, "The upgrade of the driver begins"},
      {RecordIn(kFailed), again, false, "The upgrade of the driver begins again, attempt 2"},
      {RecordIn(kFailed), RecordIn(kValidation), false, "The upgrade of the driver begins"},
      {RecordIn(kUncordon), RecordIn(kDone), false, "The upgrade of the driver is done"},
      {RecordIn(kWaitForJobs), Blocked(kWaitForJobs, "JobsRunning"), true,
       "The upgrade of the driver waits: JobsRunning: what the step says"},
      {Blocked(kPodDeletion, "Evicting"), Blocked(kPodDeletion, "Evicting,NodeNotReady"), true,
       "The upgrade of the driver waits: NodeNotReady: what the step says"},
      {RecordIn(kPodDeletion), RecordIn(kFailed, "EvictionTimedOut", "pod a"), true,
       "The upgrade of the driver failed: EvictionTimedOut: pod a"},
      {RecordIn(kPodRestart), Held(kPodRestart, "DriverNotLoaded", "it crashed"), true,
       "The upgrade of the driver failed, and the one that worked here before is put back: "
       "DriverNotLoaded: it crashed"},
      {Held(kUncordon, "DriverNotLoaded", "it crashed"), Held(kFailed, "RolledBack", "it crashed"),
       true,
       "The driver that worked here before is back, and stays until another one is wanted: "
       "RolledBack: it crashed"},
      {Held(kPodRestart, "", ""), Held(kFailed, "RollBackFailed", "it crashed"), true,
       "The upgrade of the driver failed: RollBackFailed: it crashed"},
      {RecordIn(kDone), RecordIn(kDone, "NotWorking", "validation failed"), true,
       "The driver stopped working after its upgrade, and other nodes wait: validation failed"},
  };
  for (const Case& one : cases)
    EXPECT_EQ(UpgradeEventOf(one.before, {.record = one.after, .message = "what the step says"}),
              (UpgradeEvent{one.warning, one.message}))
        << NameOf(one.before.state) << " to " << NameOf(one.after.state);
}

TEST(UpgradeEvents, SayNothingOfStepsThatGoOnAndOfWhatWasSaid) {
  const std::pair<UpgradeRecord, UpgradeRecord> cases[] = {
      {RecordIn(kUnknown), RecordIn(kDone)},  // its first driver
      {RecordIn(kRequired), RecordIn(kDone)},
      {RecordIn(kDone), RecordIn(kRequired)},
      {RecordIn(kCordon), RecordIn(kWaitForJobs)},
      {Blocked(kWaitForJobs, "JobsRunning"), Blocked(kWaitForJobs, "JobsRunning")},
      {Blocked(kWaitForJobs, "JobsRunning"), RecordIn(kPodDeletion)},
      {RecordIn(kDone, "NotWorking", "a"), RecordIn(kDone)},
      {RecordIn(kFailed, "RolledBack"), RecordIn(kFailed, "RolledBack")},
      {RecordIn(kPodRestart), RecordIn(kUnknown)},  // it shall have no driver
  };
  for (const auto& [before, after] : cases)
    EXPECT_EQ(UpgradeEventOf(before, {.record = after}), std::nullopt)
        << NameOf(before.state) << " to " << NameOf(after.state);
}

}  // namespace
}  // namespace penstock::cluster
