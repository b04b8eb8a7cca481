#include "app/penstock/top/top_frame.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/build_tree.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ResultOf;
using ::testing::SizeIs;

constexpr double kGiB = 1024.0 * 1024 * 1024;

api::SampledDevice Device(int index) {
  api::SampledDevice device{.id = "GPU-" + std::to_string(index),
                            .vendor = "nvidia",
                            .model = "NVIDIA H100 80GB HBM3",
                            .index = index};
  device.memory_bytes = 80 * static_cast<std::uint64_t>(kGiB);
  device.health_state = "healthy";
  device.sharing = "none";
  device.free = 1;
  device.allocator = "kubelet";
  device.utilization = index / 8.0;
  device.memory_used = index * 9.7 * kGiB;
  device.temperature = 30 + index * 5;
  device.power = 71 + index * 80;
  device.power_limit = 700;
  device.clock = index == 0 ? 345e6 : 1980e6;
  for (int i = 0; i < 100; ++i) {
    device.history["utilization"].push_back(i < 90 ? std::optional((i * (index + 1)) % 50 / 50.0)
                                                   : std::nullopt);
    device.history["memoryUsed"].push_back(i * index * 0.1 * kGiB);
  }
  return device;
}

api::SampledProcess Process(int index, std::int64_t pid, const std::string& user,
                            const std::string& command, double gib, std::optional<double> compute) {
  api::SampledProcess process{.device = "GPU-" + std::to_string(index),
                              .index = index,
                              .pid = pid,
                              .user = user,
                              .command = command};
  process.kind = "run";
  process.memory_bytes = static_cast<std::uint64_t>(gib * kGiB);
  process.compute = compute;
  return process;
}

api::Samples Machine() {
  api::Samples samples{.node = "gpu-1", .time = "2026-11-21T03:42:00.123Z", .interval_seconds = 1};
  for (int i = 0; i < 8; ++i) samples.devices.push_back(Device(i));
  samples.devices[1].free = 0;
  samples.devices[2].sharing = "time-slicing";
  samples.devices[2].shares = 4;
  samples.devices[2].free = 2;
  samples.devices[3].health_state = "unhealthy";
  samples.devices[3].health_reason = "XID 79: GPU has fallen off the bus";
  samples.devices[4].problem = "\"sample 4\" did not answer within 5s";
  samples.devices[5] = {
      .id = "GPU-5", .vendor = "nvidia", .model = "NVIDIA H100 80GB HBM3", .index = 5};
  samples.devices[5].health_state = "unknown";
  samples.devices[5].health_reason = "not looked at yet";
  samples.devices[6].allocator = "";
  samples.processes = {Process(1, 4711, "ann", "python train.py --epochs 90", 9.2, 0.12),
                       Process(2, 815, "bob", "python -m http.server", 0.5, std::nullopt),
                       Process(2, 99, "root", "nvidia-cuda-mps-server", 0.03, 0.0),
                       Process(7, 123456, "a-long-user-name", "x\033[2Jy", 60, 0.99)};
  samples.processes[1].kind = "outside";
  samples.processes[3].kind = "pod";
  samples.processes[3].namespace_name = "ml";
  samples.processes[3].pod = "train-0";
  samples.processes[3].container = "main";
  samples.processes[3].encoder = 0.25;
  api::SampledProcess idle{.device = "GPU-2",
                           .index = 2,
                           .kind = "pod",
                           .lease = "k-1",
                           .pod = "notebook-eva-0",
                           .namespace_name = "lab"};
  samples.processes.push_back(idle);
  return samples;
}

std::vector<std::string> Frame(const TopView& view, const TopSize& size, const Pen& pen = {}) {
  return TopFrame(Machine(), view, size, pen);
}

/// The form of the golden file: no blanks at the ends of lines.
std::string Kept(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  return text;
}

void ExpectGolden(const std::string& name, const std::vector<std::string>& lines) {
  const std::string path = base::SourcePath("src/app/penstock/top/testdata/") + name;
  if (std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(os::WriteFileAtomically(path, Kept(lines)).ok());
  }
  EXPECT_EQ(Kept(lines), os::ReadFile(path).value_or(""))
      << "if this is meant, run with PENSTOCK_UPDATE_GOLDEN=1";
}

std::size_t LineWith(const std::vector<std::string>& lines, const std::string& text) {
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].find(text) != std::string::npos) return i;
  return lines.size();
}

std::vector<std::int64_t> Pids(const TopView& view) {
  std::vector<std::int64_t> pids;
  for (const auto& process : ShownProcesses(Machine(), view)) pids.push_back(process.pid);
  return pids;
}

TEST(TopFrame, FillsATerminalOf80By24) {
  const auto lines = Frame({}, {80, 24});
  EXPECT_THAT(lines, AllOf(SizeIs(24), Each(ResultOf(Columns, 80u))));
  ExpectGolden("top-80x24.txt", lines);
}

/// GPU 0 is divided: 0:1 and 0:10 are its parts.
api::Samples DividedMachine() {
  api::Samples samples{.node = "gpu-1", .interval_seconds = 1};
  samples.devices = {Device(1), Device(1), Device(1), Device(2)};
  samples.devices[0].index = 0;
  for (const auto& [at, number] : {std::pair(1, "0:1"), {2, "0:10"}}) {
    api::SampledDevice& part = samples.devices[static_cast<std::size_t>(at)];
    part.index = -1;
    part.number = number;
    part.profile = "1g.10gb";
    part.power.reset();
    samples.processes.push_back(Process(-1, 10 + at, "ann", "python", 1, std::nullopt));
    samples.processes.back().number = number;
  }
  samples.processes.push_back(Process(2, 1, "bob", "x", 1, std::nullopt));
  samples.processes.push_back(Process(0, 9, "eve", "y", 1, std::nullopt));
  return samples;
}

TEST(TopFrame, PartsHaveTheirNumberAndProfile) {
  const auto lines = TopFrame(DividedMachine(), {}, {80, 24}, {});
  EXPECT_THAT(lines, Each(ResultOf(Columns, 80u)));
  EXPECT_EQ(LineWith(lines, " 0 H100 80GB HBM3"), 1u);
  EXPECT_EQ(LineWith(lines, "0:1 1g.10gb"), 3u);
  EXPECT_EQ(LineWith(lines, "0:10 1g.10gb"), 5u);
  EXPECT_LT(LineWith(lines, "ann       0:10"), lines.size());
}

TEST(TopFrame, ASumCountsADeviceOnceAndNotItsParts) {
  EXPECT_THAT(TopFrame(DividedMachine(), {}, {80, 24}, {})[0],
              HasSubstr("2 devices, 2 parts  busy 19%  memory 29.1G/160G  power 382/1400W"));
}

TEST(TopFrame, PartsAreSortedBehindTheirDevice) {
  std::vector<std::int64_t> pids;
  for (const auto& process : ShownProcesses(DividedMachine(), {.sort = TopSort::kDevice}))
    pids.push_back(process.pid);
  EXPECT_THAT(pids, ElementsAre(9, 11, 12, 1));
  EXPECT_THAT(ShownProcesses(DividedMachine(), {.filter = "gpu 0:1"}), SizeIs(2));
}

TEST(TopFrame, FillsATerminalOf160By50) {
  const auto lines = Frame({}, {160, 50});
  EXPECT_THAT(lines, AllOf(SizeIs(50), Each(ResultOf(Columns, 160u))));
  ExpectGolden("top-160x50.txt", lines);
}

TEST(TopFrame, IsAllLettersWhereTheTerminalHasNoOthers) {
  for (const std::string& line : Frame({}, {80, 24}, {.unicode = false}))
    for (const char c : line) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << line;
}

TEST(TopFrame, FitsAnySize) {
  for (std::size_t columns = 60; columns < 220; ++columns) {
    for (const std::size_t rows : {5, 6, 10, 24, 30}) {
      const auto lines = Frame({}, {columns, rows});
      EXPECT_THAT(lines, AllOf(SizeIs(rows), Each(ResultOf(Columns, columns))))
          << columns << "x" << rows;
    }
  }
  for (const std::size_t rows : {1, 2, 3, 4}) EXPECT_THAT(Frame({}, {80, rows}), SizeIs(rows));
  EXPECT_THAT(Frame({}, {10, 24}), SizeIs(24)) << "cut by the terminal";
}

TEST(TopFrame, WithoutRowsToFillItHasAllDevicesAndProcesses) {
  const auto lines = Frame({}, {80, 0});
  EXPECT_THAT(lines, SizeIs(1 + 2 * 8 + 1 + 5));
}

TEST(TopFrame, LeavesRoomForProcessesWhereDevicesAreMany) {
  api::Samples samples = Machine();
  for (int i = 8; i < 64; ++i) samples.devices.push_back(Device(i));
  const auto lines = TopFrame(samples, {}, {80, 24}, {});
  EXPECT_THAT(lines[0], HasSubstr("64 devices"));
  EXPECT_LT(LineWith(lines, "train-0"), 24u);
  const auto scrolled = TopFrame(samples, {.first_device = 1000}, {80, 24}, {});
  EXPECT_LT(LineWith(scrolled, "63 H100"), 24u) << "no further than the last one";
}

TEST(TopFrame, PaintsOnlyWhereColoursAreUsed) {
  EXPECT_THAT(Kept(Frame({}, {80, 24})), Not(HasSubstr("\033")));
  const auto painted = Frame({}, {80, 24}, {.style = {.color = true}});
  EXPECT_THAT(painted[LineWith(painted, "unhealthy")], HasSubstr("\033[31munhealthy"));
}

TEST(TopFrame, ShowsNoControlCharactersOfOthers) {
  for (const std::string& line : Frame({}, {160, 50})) EXPECT_THAT(line, Not(HasSubstr("\033")));
  api::Samples samples = Machine();
  samples.node = "a\033[31mb";
  samples.devices[0].model = "x\ny";
  for (const std::string& line : TopFrame(samples, {}, {80, 24}, {}))
    EXPECT_THAT(line, AllOf(Not(HasSubstr("\033")), Not(HasSubstr("\n"))));
}

TEST(TopFrame, SortsByWhatIsWanted) {
  EXPECT_THAT(Pids({.sort = TopSort::kCompute}), ElementsAre(123456, 4711, 99, 815, 0));
  EXPECT_THAT(Pids({.sort = TopSort::kMemory}), ElementsAre(123456, 4711, 815, 99, 0));
  EXPECT_THAT(Pids({.sort = TopSort::kPid}), ElementsAre(0, 99, 815, 4711, 123456));
  EXPECT_THAT(Pids({.sort = TopSort::kDevice}), ElementsAre(4711, 0, 99, 815, 123456));
  EXPECT_THAT(Pids({.sort = TopSort::kUser}), ElementsAre(0, 123456, 4711, 815, 99));
  EXPECT_THAT(Pids({.sort = TopSort::kPid, .reverse = true}),
              ElementsAre(123456, 4711, 815, 99, 0));
}

TEST(TopFrame, FiltersByAPartOfAnyColumn) {
  EXPECT_THAT(Pids({.filter = "TRAIN"}), ElementsAre(123456, 4711));
  EXPECT_THAT(Pids({.filter = "gpu 2"}), ElementsAre(99, 815, 0));
  EXPECT_THAT(Pids({.filter = "lab"}), ElementsAre(0));
  EXPECT_THAT(Pids({.filter = "471"}), ElementsAre(4711));
  EXPECT_THAT(Pids({.filter = "711"}), IsEmpty()) << "of ids only the start counts";
  EXPECT_THAT(Pids({.filter = "nobody"}), IsEmpty());
  EXPECT_THAT(Kept(Frame({.filter = "train"}, {80, 24})), HasSubstr("(2 of 5 processes)"));
  EXPECT_THAT(Kept(Frame({.filter = "nobody"}, {80, 24})), HasSubstr("no matches"));
}

TEST(TopFrame, ScrollsNoFurtherThanTheLastProcess) {
  api::Samples samples = Machine();
  for (int i = 0; i < 100; ++i)
    samples.processes.push_back(Process(0, 1000 + i, "eva", "job", 1, 0.001 * i));
  const auto lines =
      TopFrame(samples, {.sort = TopSort::kPid, .first_process = 5000}, {80, 40}, {});
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr("123456"));
}

TEST(TopFrame, SaysWhyItIsNotOfNow) {
  EXPECT_THAT(Frame({.problem = "no agent answers"}, {80, 24})[0],
              HasSubstr("outdated: no agent answers"));
}

TEST(TopFrame, AMachineWithoutDevicesSaysWhereToLook) {
  const auto lines = TopFrame({.node = "n"}, {}, {80, 24}, {});
  EXPECT_THAT(lines[1], HasSubstr("penstock status"));
  EXPECT_THAT(lines, SizeIs(24));
}

TEST(TopDraw, SaysBytesInFewColumns) {
  EXPECT_EQ(ShortBytes(0), "0");
  EXPECT_EQ(ShortBytes(512.0 * 1024 * 1024), "512M");
  EXPECT_EQ(ShortBytes(41.2 * kGiB), "41.2G");
  EXPECT_EQ(ShortBytes(141 * kGiB), "141G");
  EXPECT_EQ(ShortBytes(1126 * kGiB), "1.1T");
  EXPECT_EQ(ShortBytes(999.7 * 1024 * 1024), "1.0G");
  EXPECT_EQ(ShortBytes(std::nullopt), "-");
}

TEST(TopDraw, FillsBarsByEighths) {
  EXPECT_EQ(Bar(0.5, 4, Color::kNone, {}), "██··");
  EXPECT_EQ(Bar(0.5 + 1.0 / 32, 4, Color::kNone, {}), "██▏·");
  EXPECT_EQ(Bar(2, 4, Color::kNone, {}), "████");
  EXPECT_EQ(Bar(-1, 4, Color::kNone, {}), "····");
  EXPECT_EQ(Bar(std::nullopt, 4, Color::kNone, {}), "    ");
  EXPECT_EQ(Bar(0.6, 4, Color::kNone, {.unicode = false}), "||..");
}

TEST(TopDraw, ShowsTheLastValuesOfAHistory) {
  EXPECT_EQ(Sparkline({0, 0.5, 1, 7}, 3, Color::kNone, {}), "▅██");
  EXPECT_EQ(Sparkline({0.2, std::nullopt, 0}, 5, Color::kNone, {}), "  ▂ ▁");
  EXPECT_EQ(Sparkline({}, 2, Color::kNone, {}), "  ");
}

}  // namespace
}  // namespace penstock::app
