#include "sim/machine.h"

#include <memory>

#include <gmock/gmock.h>

#include "base/core/testing/must.h"
#include "sim/compile.h"
#include "sim/testing.h"

namespace penstock::sim {
namespace {

using ::testing::AllOf;
using testing::BuiltAssets;
using testing::BuiltCatalogue;
using testing::BuiltMachine;
using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  const auto machine = ReadMachine(text, "lab.yaml", BuiltCatalogue());
  return machine.ok() ? "" : machine.error().message();
}

std::unique_ptr<SimState> Compiled(const std::string& name, const CompileOptions& options = {}) {
  auto state = std::make_unique<SimState>();
  Compile(BuiltMachine(name), BuiltCatalogue(), options, *state);
  return state;
}

TEST(MachineFile, EveryOneThatWeShipIsRead) {
  const auto names = Must(MachineNames(BuiltAssets()));
  EXPECT_THAT(names,
              ::testing::IsSupersetOf({"a100-40gb-x1", "dgx-a100", "empty", "mixed", "t4-x1"}));
  for (const std::string& name : names) EXPECT_EQ(BuiltMachine(name).name, name);
}

TEST(MachineFile, NamesAllItsProblemsWithLineAndColumn) {
  const std::string error = ErrorOf(
      "name: lab\n"
      "drivr: 550.54.15\n"
      "numa: {0: 0-3}\n"
      "gpus:\n"
      "  - {model: a100-sxm4-40bg, pci: \"0000:07:00.0\"}\n"
      "  - {model: t4, pci: \"07:00\", numa: 4}\n");
  EXPECT_THAT(error, AllOf(HasSubstr("lab.yaml:2:"), HasSubstr("drivr"), HasSubstr("driver")));
  EXPECT_THAT(error, AllOf(HasSubstr("lab.yaml:5:13"), HasSubstr("a100-sxm4-40gb")));
  EXPECT_THAT(error, AllOf(HasSubstr("lab.yaml:6:22"), HasSubstr("is not a PCI address")));
  EXPECT_THAT(error, HasSubstr("names a node that the machine's \"numa\" does not list"));
  EXPECT_THAT(error, ::testing::Not(HasSubstr("by PCI address")));  // a typing error is not
                                                                    // reported as a clash
}

TEST(MachineFile, RefusesTwoGpusAtOneAddressAndAWrongOrder) {
  EXPECT_THAT(
      ErrorOf("name: lab\ngpus:\n  - {model: t4, pci: \"0000:07:00.0\"}\n  - {model: t4, pci: "
              "\"0000:07:00.0\"}\n"),
      AllOf(HasSubstr("lab.yaml:4:5"), HasSubstr("two devices at PCI address 0000:07:00.0")));
  EXPECT_THAT(ErrorOf("name: lab\ngpus:\n  - {model: t4, pci: \"0000:08:00.0\"}\n  - {model: t4, "
                      "pci: \"0000:07:00.0\"}\n"),
              HasSubstr("list them by PCI address"));
}

TEST(MachineFile, RefusesMoreGpusThanAMachineHolds) {
  std::string text = "name: lab\ngpus:\n";
  for (int i = 0; i < 17; i++)
    text += "  - {model: t4, pci: \"0000:" + std::to_string(10 + i) + ":00.0\"}\n";
  EXPECT_THAT(ErrorOf(text), HasSubstr("more than 16 GPUs"));
}

TEST(MachineFile, RefusesWhatIsNoMachine) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("lab.yaml"));
  EXPECT_THAT(ErrorOf("- 1\n"), HasSubstr("lab.yaml:1:1"));
  EXPECT_THAT(ErrorOf("name: lab\ngpus: 3\n"), HasSubstr("lab.yaml:2:7"));
  EXPECT_THAT(ErrorOf("name: lab\nname: lab\ngpus: []\n"), HasSubstr("lab.yaml:2:1"));
}

TEST(MachineFile, AnUnknownNameListsTheKnown) {
  EXPECT_THAT(LoadMachine(BuiltAssets(), BuiltCatalogue(), "dgx-a200").error().message(),
              AllOf(HasSubstr("dgx-a200"), HasSubstr("dgx-a100"), HasSubstr("mixed")));
}

TEST(Compile, NamesAndSizesAreThoseOfTheDriver) {
  const auto now = Compiled("a100-40gb-x1"),
             before = Compiled("a100-40gb-x1", {.driver = "460.32.03"});
  EXPECT_STREQ(now->gpus[0].name, "NVIDIA A100-SXM4-40GB");
  EXPECT_STREQ(before->gpus[0].name, "A100-SXM4-40GB");
  EXPECT_EQ(now->gpus[0].memory_total >> 20, 40960u);
  EXPECT_EQ(before->gpus[0].memory_total >> 20, 40536u);
  EXPECT_EQ(now->cuda_version, 12040u);
  EXPECT_EQ(before->cuda_version, 11020u);
}

TEST(Compile, IdentitiesStayTheSameAndASeedDistinguishesMachines) {
  const auto one = Compiled("dgx-a100"), again = Compiled("dgx-a100"),
             other = Compiled("dgx-a100", {.seed = "n2"});
  EXPECT_STREQ(one->gpus[7].uuid, again->gpus[7].uuid);
  EXPECT_STRNE(one->gpus[7].uuid, other->gpus[7].uuid);
  EXPECT_STRNE(one->gpus[7].serial, other->gpus[7].serial);
  EXPECT_STRNE(one->gpus[6].uuid, one->gpus[7].uuid);
}

TEST(Compile, ADgxHasTwoLinksToEachSwitch) {
  const auto state = Compiled("dgx-a100");
  for (std::uint32_t gpu = 0; gpu < 8; gpu++) {
    std::map<std::uint32_t, int> links;
    for (const SimNvLink& link : state->gpus[gpu].nvlinks)
      if (link.active) links[link.remote_bus]++;
    EXPECT_THAT(links, ::testing::ElementsAre(std::pair(0xc4u, 2), std::pair(0xc5u, 2),
                                              std::pair(0xc6u, 2), std::pair(0xc7u, 2),
                                              std::pair(0xc8u, 2), std::pair(0xc9u, 2)));
  }
  EXPECT_EQ(state->gpus[0].topology[1], 20);
  EXPECT_EQ(state->gpus[0].topology[2], 50);
  EXPECT_EQ(state->gpus[0].nvlink_to[5], 12);
}

TEST(Compile, AnHgxH100HasUnevenLinksToItsFourSwitches) {
  const auto machine = Must(ReadMachine(
      "name: hgx\ndriver: 550.54.15\ngpus:\n  - {model: h100-sxm-80gb, pci: \"0000:1b:00.0\"}\n"
      "nvswitches: {pciId: 0x22a3, pci: [\"0000:07:00.0\", \"0000:08:00.0\", \"0000:09:00.0\", "
      "\"0000:0a:00.0\"]}\n",
      "hgx.yaml", BuiltCatalogue()));
  auto state = std::make_unique<SimState>();
  Compile(machine, BuiltCatalogue(), {}, *state);
  std::map<std::uint32_t, int> links;
  for (const SimNvLink& link : state->gpus[0].nvlinks) links[link.remote_bus]++;
  EXPECT_THAT(links, ::testing::ElementsAre(std::pair(7u, 4), std::pair(8u, 5), std::pair(9u, 5),
                                            std::pair(10u, 4)));
  EXPECT_TRUE(state->gpus[0].limits_are_margins);
  EXPECT_EQ(state->gpus[0].fabric, 3u);
}

std::string CatalogueError(std::string_view models) {
  const auto catalogue = ReadCatalogue("models:\n" + std::string(models), "m.yaml");
  return catalogue.ok() ? "" : catalogue.error().message();
}

constexpr std::string_view kOld =
    "  old:\n"
    "    {name: Old, brand: nvidia, architecture: hopper, computeCapability: \"9.0\", pciId: 1,\n"
    "     memory: {total: 10, reserved: 1, busBits: 64}, power: {default: 7}, clocks: {sm: 5},\n"
    "     ecc: true}\n";

TEST(Catalogue, AModelHasTheKeysOfTheOneThatItIsLike) {
  const std::string text = "models:\n" + std::string(kOld) +
                           "  new: {like: old, name: New, memory: {total: 20, reserved: 2}}\n"
                           "  newer: {like: new, pciId: 3}\n";
  const auto catalogue = Must(ReadCatalogue(text, "m.yaml"));
  const Model &old = catalogue.at("old"), &one = catalogue.at("new"), &next = catalogue.at("newer");
  EXPECT_EQ(old.name, "Old");
  EXPECT_EQ(old.memory_total, 10u);
  EXPECT_EQ(one.name, "New");
  EXPECT_EQ(one.memory_total, 20u);
  EXPECT_EQ(one.bus_bits, 0u) << "a key is inherited whole";
  EXPECT_EQ(one.pci_id, 1u);
  EXPECT_TRUE(one.ecc);
  EXPECT_EQ(next.name, "New");
  EXPECT_EQ(next.memory_total, 20u);
  EXPECT_EQ(next.power_default, 7u);
  EXPECT_EQ(next.pci_id, 3u);
}

TEST(Catalogue, AModelIsLikeOneAboveIt) {
  const std::string old(kOld);
  EXPECT_EQ(CatalogueError(old), "");
  EXPECT_THAT(CatalogueError("  new: {like: old}\n" + old),
              ::testing::EndsWith("m.yaml:2:15: \"like\" names no model above: old"));
  EXPECT_THAT(CatalogueError("  new: {like: new}\n"), HasSubstr("names no model above: new"));
  EXPECT_THAT(CatalogueError(old + "  new: {like: [old]}\n"), HasSubstr("names no model above"));
  EXPECT_THAT(CatalogueError(old + "  new: {like: old, colour: red}\n"), HasSubstr("colour"));
  EXPECT_THAT(CatalogueError("  old: 3\n  new: {like: old}\n"), HasSubstr("m.yaml:2:8"));
}

TEST(Compile, AVgpuIsNamedByItsProfile) {
  const auto state = Compiled("vgpu-t4");
  EXPECT_STREQ(state->gpus[0].name, "GRID T4-16Q");
  EXPECT_EQ(state->gpus[0].virtualization, 2u);
  EXPECT_STREQ(state->gpus[0].vgpu_host_driver, "535.183.04");
}

TEST(Compile, WithoutADriverTheGpusAreStillThere) {
  const auto state = Compiled("t4-x1", {.no_driver = true});
  EXPECT_EQ(state->gpu_count, 1u);
  EXPECT_FALSE(state->loaded);
  EXPECT_STREQ(state->driver_version, "");
}

}  // namespace
}  // namespace penstock::sim
