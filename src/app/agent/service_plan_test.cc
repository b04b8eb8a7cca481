// Which services are stopped: tables of units.
#include "app/agent/service_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::app {
namespace {

using protocol::systemd::ServiceUnit;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

ServiceUnit Active(const std::string& name, std::vector<std::string> stopped_with = {}) {
  return {.id = name,
          .names = {name},
          .exists = true,
          .active = true,
          .control_group = "/system.slice/" + name,
          .stopped_with = std::move(stopped_with)};
}

/// Each unit of the list has the device open.
ServiceFacts Facts(std::vector<std::string> listed, std::vector<ServiceUnit> units) {
  ServiceFacts facts{
      .listed = listed, .holders = {}, .own = {"/kubepods/pod1"}, .units = {}, .asked = {}};
  for (const std::string& name : listed) {
    facts.holders.insert("/system.slice/" + name);
    facts.asked.insert(name);
  }
  for (const ServiceUnit& unit : units) facts.asked.insert(unit.id);
  facts.units = std::move(units);
  return facts;
}

TEST(ServicePlan, AsksAboutWhatIsListedFirst) {
  ServiceFacts facts = Facts({"a.service", "b.service"}, {});
  facts.asked.clear();
  EXPECT_THAT(PlanServices(facts).unknown, UnorderedElementsAre("a.service", "b.service"));
  facts.asked = {"a.service", "b.service"};
  const ServicePlan plan = PlanServices(facts);
  EXPECT_THAT(plan.unknown, IsEmpty()) << "they do not exist";
  EXPECT_THAT(plan.stop, IsEmpty());
}

TEST(ServicePlan, StopsInTheOrderOfTheListWhatHasTheDeviceOpen) {
  ServiceFacts facts = Facts({"b.service", "a.service", "c.service"},
                             {Active("a.service"), Active("b.service"), Active("c.service")});
  facts.holders.erase("/system.slice/c.service");
  EXPECT_THAT(PlanServices(facts).stop, ElementsAre("b.service", "a.service"));
  EXPECT_THAT(PlanServices(facts).stopped, ElementsAre("b.service", "a.service"));
}

TEST(ServicePlan, AControlGroupIsThatOfTheUnitByItsWholePath) {
  const auto stops = [](const std::string& group) {
    ServiceFacts facts = Facts({"a.service"}, {Active("a.service")});
    facts.holders = {group};
    return !PlanServices(facts).stop.empty();
  };
  EXPECT_TRUE(stops("/system.slice/a.service"));
  EXPECT_TRUE(stops("/system.slice/a.service/below"));
  EXPECT_TRUE(stops("/../../system.slice/a.service")) << "as a container sees it";
  EXPECT_FALSE(stops("/system.slice/a.service.d"));
  EXPECT_FALSE(stops("/user.slice/user-1000.slice/user@1000.service/app.slice/a.service"));
  EXPECT_FALSE(stops("/user.slice/system.slice/a.service"));
  EXPECT_FALSE(stops("/"));
}

TEST(ServicePlan, LeavesWhatDoesNotRunOrHasNoProcess) {
  ServiceUnit stopped = Active("a.service"), missing = Active("b.service"),
              empty = Active("c.service");
  stopped.active = false;
  missing.exists = false;
  empty.control_group.clear();
  const ServicePlan plan =
      PlanServices(Facts({"a.service", "b.service", "c.service"}, {stopped, missing, empty}));
  EXPECT_THAT(plan.stop, IsEmpty());
  EXPECT_THAT(plan.kept, IsEmpty());
}

TEST(ServicePlan, WhatStopsWithAServiceIsStartedAfterIt) {
  ServiceFacts facts =
      Facts({"a.service"}, {Active("a.service", {"b.service", "d.service"}),
                            Active("b.service", {"c.socket"}), Active("c.socket")});
  EXPECT_THAT(PlanServices(facts).unknown, ElementsAre("d.service"));
  ServiceUnit inactive = Active("d.service");
  inactive.active = false;
  facts.units.push_back(inactive);
  const ServicePlan plan = PlanServices(facts);
  EXPECT_THAT(plan.stop, ElementsAre("a.service"));
  EXPECT_THAT(plan.stopped, ElementsAre("c.socket", "b.service", "a.service"));
}

TEST(ServicePlan, AServiceOnACircleIsStoppedOnce) {
  const ServicePlan plan =
      PlanServices(Facts({"a.service", "b.service"},
                         {Active("a.service", {"b.service"}), Active("b.service", {"a.service"})}));
  EXPECT_THAT(plan.stop, ElementsAre("a.service", "b.service"));
  EXPECT_THAT(plan.stopped, ElementsAre("b.service", "a.service"));
}

TEST(ServicePlan, NeverStopsWhatTheNodeNeeds) {
  for (const char* name :
       {"kubelet.service", "containerd.service", "k3s.service", "rke2-server.service",
        "crio.service", "docker.service", "systemd-journald.service", "dbus.service",
        "sshd.service", "auditd.service"}) {
    const ServicePlan plan = PlanServices(Facts({name}, {Active(name)}));
    EXPECT_THAT(plan.stop, IsEmpty()) << name;
    EXPECT_THAT(plan.kept, ElementsAre(Pair(name, HasSubstr("the node needs it"))));
  }
}

TEST(ServicePlan, AnAliasHidesNothing) {
  ServiceUnit unit = Active("containerd.service");
  unit.names.emplace_back("gpu.service");
  ServiceFacts facts = Facts({"gpu.service"}, {unit});
  facts.holders = {unit.control_group};
  EXPECT_THAT(PlanServices(facts).stop, IsEmpty());
  EXPECT_THAT(PlanServices(facts).kept, ElementsAre(Pair("containerd.service", testing::_)));
}

TEST(ServicePlan, NeverStopsTheAgentItself) {
  ServiceFacts facts = Facts({"gpu-agent.service"}, {Active("gpu-agent.service")});
  facts.own = {"/system.slice/gpu-agent.service/main"};
  EXPECT_THAT(PlanServices(facts).kept,
              ElementsAre(Pair("gpu-agent.service", "this agent runs in it")));
}

TEST(ServicePlan, AServiceWithWhichMoreStopsThanCanBeStartedAgainIsKept) {
  const ServicePlan needed = PlanServices(
      Facts({"a.service"}, {Active("a.service", {"kubelet.service"}), Active("kubelet.service")}));
  EXPECT_THAT(needed.stop, IsEmpty());
  EXPECT_THAT(needed.kept, ElementsAre(Pair("a.service",
                                            "kubelet.service would stop with it, and the node "
                                            "needs it")));
  const ServicePlan target = PlanServices(Facts(
      {"a.service"}, {Active("a.service", {"multi-user.target"}), Active("multi-user.target")}));
  EXPECT_THAT(target.kept, ElementsAre(Pair("a.service", HasSubstr("multi-user.target"))));
  std::vector<ServiceUnit> units{Active("a.service")};
  for (int i = 0; i < 70; ++i) {
    units.push_back(Active("x" + std::to_string(i) + ".service"));
    units.front().stopped_with.push_back(units.back().id);
  }
  EXPECT_THAT(PlanServices(Facts({"a.service"}, units)).kept,
              ElementsAre(Pair("a.service", "more than 64 units stop with it")));
}

}  // namespace
}  // namespace penstock::app
