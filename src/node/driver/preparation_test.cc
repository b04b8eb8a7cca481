#include "node/driver/preparation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const device::KernelDriver& Acme() {
  static const device::KernelDriver driver{
      .module = "acme",
      .modules = {"acme_drm", "acme_modeset", "acme_uvm", "acme_fs", "acmecopy"},
      .rivals = {"freeacme"},
      .device_files = {"acme"},
      .libraries = {},
      .container_root = "acme/driver",
      .digest_file = "acme/driver.state",
      .pid_file = "acme/driver.pid",
      .ready_files = {}};
  return driver;
}

void Load(Modules& modules, const std::string& name, std::vector<std::string> users = {},
          int by_processes = 0) {
  const int references = static_cast<int>(users.size()) + by_processes;
  modules[name] = {name, std::move(users), references};
}

Modules Usual() {
  Modules modules;
  Load(modules, "acme", {"acme_modeset", "acme_uvm"});
  Load(modules, "acme_modeset", {"acme_drm"});
  Load(modules, "acme_drm");
  Load(modules, "acme_uvm");
  return modules;
}

TEST(DriverUnload, UnloadsEachModuleBeforeThoseThatItUses) {
  const UnloadPlan plan = PlanUnload(Acme(), Usual());
  EXPECT_THAT(plan.order, ElementsAre("acme_drm", "acme_modeset", "acme_uvm", "acme"));
  EXPECT_FALSE(plan.Blocked());
  EXPECT_THAT(PlanUnload(Acme(), {}).order, IsEmpty());
}

TEST(DriverUnload, TakesModulesOfTheVendorThatAreNotListed) {
  Modules modules = Usual();
  Load(modules, "acme_new");
  Load(modules, "acme", {"acme_modeset", "acme_new", "acme_uvm"});
  const UnloadPlan plan = PlanUnload(Acme(), modules);
  EXPECT_THAT(plan.order, ElementsAre("acme_drm", "acme_modeset", "acme_uvm", "acme_new", "acme"));
  EXPECT_FALSE(plan.Blocked());
}

TEST(DriverUnload, LeavesModulesOfOthersAlone) {
  Modules modules = Usual();
  Load(modules, "storage");
  Load(modules, "acme", {"acme_modeset", "acme_uvm", "storage"});
  const UnloadPlan plan = PlanUnload(Acme(), modules);
  EXPECT_THAT(plan.foreign, ElementsAre("storage"));
  EXPECT_THAT(plan.order, testing::Not(testing::Contains("storage")));
  EXPECT_TRUE(plan.Blocked());
}

TEST(DriverUnload, KnowsWhichModulesProcessesUse) {
  Modules modules = Usual();
  Load(modules, "acme_uvm", {}, 2);
  Load(modules, "acme", {"acme_modeset", "acme_uvm"}, 1);
  EXPECT_THAT(PlanUnload(Acme(), modules).in_use, ElementsAre("acme_uvm", "acme"));
}

TEST(DriverUnload, ExpectsAReferenceOfAModuleThatLookedUpFunctionsByName) {
  Modules modules = Usual();
  Load(modules, "acme_fs");
  Load(modules, "acmecopy");
  Load(modules, "acme", {"acme_modeset", "acme_uvm"}, 2);  // by the two
  const UnloadPlan plan = PlanUnload(Acme(), modules);
  EXPECT_THAT(plan.order,
              ElementsAre("acme_drm", "acme_modeset", "acme_uvm", "acme_fs", "acmecopy", "acme"));
  EXPECT_FALSE(plan.Blocked());
  Load(modules, "acme", {"acme_modeset", "acme_uvm"}, 3);
  EXPECT_THAT(PlanUnload(Acme(), modules).in_use, ElementsAre("acme"));
}

TEST(DriverUnload, ExpectsNoReferenceOfAModuleThatTheDriverUses) {
  Modules modules;
  Load(modules, "acme", {}, 1);
  Load(modules, "acme_fs", {"acme"});
  Load(modules, "helper", {"acme"});
  Load(modules, "acmecopy", {"helper"});
  UnloadPlan plan = PlanUnload(Acme(), modules);
  EXPECT_THAT(plan.in_use, ElementsAre("acme"));
  Load(modules, "acme");
  plan = PlanUnload(Acme(), modules);
  EXPECT_THAT(plan.in_use, IsEmpty());
  EXPECT_THAT(plan.order, ElementsAre("acme", "acme_fs", "acmecopy"));
}

TEST(DriverUnload, EndsWhereSysfsSaysThatModulesUseEachOther) {
  Modules modules;
  Load(modules, "acme", {"acme_uvm"});
  Load(modules, "acme_uvm", {"acme"});
  EXPECT_THAT(PlanUnload(Acme(), modules).order.size(), 2u);
}

DriverState State() { return {.modules = Usual(), .digest = "a", .root_mounted = true}; }

TEST(DriverPreparation, KeepsTheWantedDriver) {
  DriverState state = State();
  Preparation made = Prepare(Acme(), state, {.digest = "a"});
  EXPECT_EQ(made.kind, PreparationKind::kKeep);
  EXPECT_FALSE(made.unmount);
  // The container that mounted these files has ended.
  state.container_ended = true;
  EXPECT_TRUE(Prepare(Acme(), state, {.digest = "a"}).unmount);
  // An earlier preparation unmounted them, and then the container failed.
  state.root_mounted = false;
  made = Prepare(Acme(), state, {.digest = "a"});
  EXPECT_EQ(made.kind, PreparationKind::kKeep);
  EXPECT_FALSE(made.unmount);
  made = Prepare(Acme(), State(), {.digest = "a", .reinstall = true});
  EXPECT_EQ(made.kind, PreparationKind::kReplace);
  EXPECT_TRUE(made.unmount);
}

TEST(DriverPreparation, ReplacesAnotherDriver) {
  EXPECT_EQ(Prepare(Acme(), State(), {.digest = "b"}).kind, PreparationKind::kReplace);
  DriverState unknown = State();
  unknown.digest = "";
  EXPECT_EQ(Prepare(Acme(), unknown, {.digest = "b"}).kind, PreparationKind::kReplace);
  // Without a digest nothing is known to be the same.
  EXPECT_EQ(Prepare(Acme(), unknown, {}).kind, PreparationKind::kReplace);
  DriverState part = State();
  part.modules.clear();
  Load(part.modules, "acme_uvm");
  EXPECT_EQ(Prepare(Acme(), part, {.digest = "a"}).kind, PreparationKind::kReplace);
}

TEST(DriverPreparation, RemovesWhatAContainerLeftIfNoDriverIsLoaded) {
  DriverState state = State();
  state.modules.clear();
  Load(state.modules, "freeacme");
  const Preparation made = Prepare(Acme(), state, {.digest = "a"});
  EXPECT_EQ(made.kind, PreparationKind::kClean);
  EXPECT_TRUE(made.unmount);
  EXPECT_THAT(made.rivals, ElementsAre("freeacme"));
}

TEST(DriverPreparation, RefusesANodeWithADriverOfItsOwn) {
  DriverState state = State();
  state.root_mounted = false;
  state.host_library = "/usr/lib/libacme.so";
  state.digest = "";
  const Preparation made = Prepare(Acme(), state, {.digest = "a"});
  EXPECT_EQ(made.kind, PreparationKind::kRefuse);
  EXPECT_THAT(made.reason, HasSubstr("/usr/lib/libacme.so"));
  // The node's files are a driver container's.
  state.root_mounted = true;
  EXPECT_EQ(Prepare(Acme(), state, {.digest = "a"}).kind, PreparationKind::kReplace);
}

}  // namespace
}  // namespace penstock::node::driver
