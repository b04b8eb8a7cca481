#include "sim/xid.h"

#include <cstring>
#include <memory>

#include "sim/compile.h"
#include "sim/testing.h"

namespace penstock::sim {
namespace {

std::string Line(const std::string& driver, std::uint32_t xid, bool busy) {
  auto state = std::make_unique<SimState>();
  Compile(testing::BuiltMachine("dgx-a100"), testing::BuiltCatalogue(), {.driver = driver}, *state);
  if (busy) {
    state->gpus[1].process_count = 1;
    state->gpus[1].processes[0].pid = 4711;
    std::strcpy(state->gpus[1].processes[0].name, "train.py");
  }
  return XidLine(*state, state->gpus[1], xid, "text");
}

TEST(Xid, TheLineHasTheFormOfTheDriver) {
  EXPECT_EQ(Line("470.82.01", 31, true), "NVRM: Xid (PCI:0000:0f:00): 31, pid=4711, text");
  EXPECT_EQ(Line("470.82.01", 79, true), "NVRM: Xid (PCI:0000:0f:00): 79, text");
  EXPECT_EQ(Line("550.54.15", 31, true),
            "NVRM: Xid (PCI:0000:0f:00): 31, pid=4711, name=train.py, text");
  EXPECT_EQ(Line("550.54.15", 79, true),
            "NVRM: Xid (PCI:0000:0f:00): 79, pid='<unknown>', name=<unknown>, text");
  EXPECT_EQ(Line("570.133.20", 31, false), "NVRM: Xid (PCI:0000:0f:00): 31, text");
  EXPECT_EQ(Line("570.133.20", 31, true),
            "NVRM: Xid (PCI:0000:0f:00): 31, pid=4711, name=train.py, text");
}

TEST(Xid, TheLineNamesTheMigInstanceAndAProcessOnIt) {
  auto state = std::make_unique<SimState>();
  Compile(testing::BuiltMachine("dgx-a100"), testing::BuiltCatalogue(), {.driver = "570.133.20"},
          *state);
  SimGpu& gpu = state->gpus[1];
  gpu.process_count = 2;
  for (std::uint32_t i = 0; i < 2; i++) {
    gpu.processes[i].pid = 4711 + i;
    std::strcpy(gpu.processes[i].name, "a");
    gpu.processes[i].gpu_instance = i + 1;
    gpu.processes[i].compute_instance = 0;
  }
  EXPECT_EQ(XidLine(*state, gpu, 31, "text", {2, 0}),
            "NVRM: Xid (PCI:0000:0f:00 GPU-I:02 GPU-CI:00): 31, pid=4712, name=a, text");
  EXPECT_EQ(XidLine(*state, gpu, 95, "text", {13, {}}),
            "NVRM: Xid (PCI:0000:0f:00 GPU-I:13): 95, text");
  for (const char* wrong : {"", "x", "1/", "/1", "65535", "1/65535"})
    EXPECT_FALSE(ParseXidInstance(wrong)) << wrong;
}

TEST(Xid, OnlySomeRaiseEventsAndLaterDriversMore) {
  const auto types = [](std::uint32_t branch, std::uint32_t xid) {
    std::uint64_t all = 0;
    for (const XidEvent& event : XidEvents(branch, xid)) all |= event.type;
    return all;
  };
  EXPECT_EQ(types(550, 48), 0x8u);
  EXPECT_EQ(types(550, 79), 0u);
  EXPECT_EQ(types(570, 79), 0x4000u);
  EXPECT_EQ(types(590, 79), 0x4008u);
  EXPECT_EQ(types(590, 119), 0x4000u);
  EXPECT_EQ(types(550, 154), 0u);
  EXPECT_EQ(types(565, 154), 0x8000u);
  EXPECT_EQ(types(595, 140), 0u);
}

}  // namespace
}  // namespace penstock::sim
