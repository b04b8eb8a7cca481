#include "api/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kSecret[] = "/opt/train --hf-token=hf_SECRET";

Report TwoHolders() {
  Report report;
  report.agent_pid = 41;
  report.devices.resize(1);
  report.devices[0].holders.resize(2);
  report.devices[0].holders[0].user = "eva";
  report.devices[0].holders[1].user = "udo";
  for (HolderReport& holder : report.devices[0].holders) {
    holder.command = kSecret;
    holder.pids = {4711};
  }
  report.devices[0].graphics = {report.devices[0].holders[1]};
  report.removed = {report.devices[0].holders[1]};
  return report;
}

TEST(Commands, OfOthersAreShownAsTheirProgram) {
  Report report = TwoHolders();
  HideCommands({.user = "eva"}, report);
  EXPECT_EQ(report.devices[0].holders[0].command, kSecret) << "their own";
  EXPECT_EQ(report.devices[0].holders[1].command, "/opt/train");
  EXPECT_EQ(report.devices[0].graphics[0].command, "/opt/train");
  EXPECT_EQ(report.removed[0].command, "/opt/train");
  EXPECT_EQ(report.devices[0].holders[1].pids.size(), 1u);
}

TEST(Commands, AreShownWholeToRoot) {
  Report report = TwoHolders();
  HideCommands({.sees_all = true}, report);
  EXPECT_EQ(report.devices[0].holders[1].command, kSecret);
}

TEST(Commands, OfSomeoneUnknownAreNoOnesOwn) {
  Samples samples;
  samples.processes = {
      {.command = kSecret}, {.user = "udo", .command = kSecret}, {.user = "eva", .command = "sh"}};
  HideCommands({}, samples);
  for (const SampledProcess& process : samples.processes)
    EXPECT_THAT(process.command, Not(HasSubstr("SECRET")));
  std::vector<IdleHolder> idle{{.user = "udo", .command = kSecret}};
  HideCommands({.user = "eva"}, idle);
  EXPECT_EQ(idle[0].command, "/opt/train");
}

TEST(Commands, LeaveNothingForReadersOfWhomNothingIsKnown) {
  Report report = TwoHolders();
  HideProcesses(report);
  EXPECT_EQ(report.agent_pid, 0);
  auto holders = report.devices[0].holders;
  holders.push_back(report.devices[0].graphics[0]);
  holders.push_back(report.removed[0]);
  for (const HolderReport& holder : holders) {
    EXPECT_THAT(holder.command, IsEmpty());
    EXPECT_THAT(holder.pids, IsEmpty());
    EXPECT_THAT(holder.user, Not(IsEmpty()));
  }
}

TEST(Commands, AProgramIsWhatComesBeforeTheFirstBlank) {
  EXPECT_EQ(ProgramOf("python train.py"), "python");
  EXPECT_EQ(ProgramOf("python"), "python");
  EXPECT_EQ(ProgramOf("[kworker/0:1]"), "[kworker/0:1]");
  EXPECT_EQ(ProgramOf(""), "");
}

}  // namespace
}  // namespace penstock::api
