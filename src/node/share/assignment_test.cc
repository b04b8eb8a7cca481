#include "node/share/assignment.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"

namespace penstock::node::share {
namespace {

using api::ShareStrategy;
using api::SharingRule;
using device::HealthState;
using device::Shape;
using device::Sharing;
using device::testing::AcmeDevice;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Shape kNotShared{};
constexpr Shape kFour{Sharing::kTimeSlicing, 4};

inventory::Entry Entry(device::Facts facts, HealthState state = HealthState::kHealthy) {
  const int number = facts.index;
  return {std::make_shared<const device::Facts>(std::move(facts)),
          {state, "", {}},
          nullptr,
          {},
          "",
          "",
          number};
}

/// Acme's devices: the first is small, the others are big.
inventory::Snapshot Box(int count) {
  inventory::Snapshot box;
  for (int i = 0; i < count; ++i) box.devices.push_back(Entry(AcmeDevice(i, count)));
  return box;
}

SharingRule Rule(std::vector<std::string> devices, ShareStrategy strategy, int replicas,
                 const std::string& rename = "") {
  SharingRule rule;
  rule.devices = std::move(devices);
  rule.strategy = strategy;
  rule.replicas = replicas;
  rule.rename = rename;
  return rule;
}

SharingRule Sliced(std::vector<std::string> devices, int replicas, const std::string& rename = "") {
  return Rule(std::move(devices), ShareStrategy::kTimeSlicing, replicas, rename);
}

DesiredAssignments AssignmentsOf(const api::NodeConfig& config, const inventory::Snapshot& box,
                                 const Moves& moves = {},
                                 EnabledAllocators open = {"kubelet", "local"}) {
  return ComputeAssignments(config, open, moves, box, device::testing::FindAcme);
}

DesiredAssignments AssignmentsOf(std::vector<SharingRule> rules, const inventory::Snapshot& box) {
  api::NodeConfig config;
  config.sharing.rules = std::move(rules);
  return AssignmentsOf(config, box);
}

std::vector<std::string> Shared(const DesiredAssignments& desired) {
  std::vector<std::string> ids;
  for (const auto& [id, assignment] : desired.assignments)
    if (assignment.shape.shares > 1) ids.push_back(id);
  return ids;
}

/// A box whose devices from `first` on are divided into two parts of this profile each.
inventory::Snapshot DividedBox(int count, int first, const std::string& profile) {
  inventory::Snapshot box = Box(count);
  for (int i = first; i < count; ++i) {
    inventory::Entry& whole = box.devices[static_cast<std::size_t>(i)];
    whole.withheld = inventory::kDivided;
    const std::string id = whole.facts->id;
    for (int part = 0; part < 2; ++part) {
      device::Facts facts;
      facts.id = id + "." + std::to_string(part);
      facts.vendor = "acme";
      facts.number = std::to_string(i) + ":" + std::to_string(part);
      facts.parent = id;
      facts.profile = profile;
      inventory::Entry entry = Entry(facts);
      entry.number = i;
      entry.ancestors = {{id, {}}};
      box.devices.push_back(entry);
    }
  }
  return box;
}

/// The ids that an allocator offers, by resource.
std::map<std::string, std::set<std::string>> OfferedIn(const inventory::Snapshot& box,
                                                       api::PartsStrategy strategy) {
  api::NodeConfig config;
  config.parts = strategy;
  std::map<std::string, std::set<std::string>> offered;
  for (const auto& [id, assignment] : AssignmentsOf(config, box).assignments)
    if (!assignment.allocator.empty() && box.Find(id)->withheld.empty())
      offered[assignment.resource].insert(id);
  return offered;
}

TEST(PartsStrategy, MixedNamesPartsByTheirProfile) {
  const auto box = DividedBox(2, 1, "big");
  const std::string whole = box.devices[0].facts->id, divided = box.devices[1].facts->id;
  using Offered = std::map<std::string, std::set<std::string>>;
  EXPECT_EQ(
      OfferedIn(box, api::PartsStrategy::kMixed),
      (Offered{{"acme.com/big", {divided + ".0", divided + ".1"}}, {"acme.com/gpu", {whole}}}));
  EXPECT_EQ(OfferedIn(box, api::PartsStrategy::kNone), (Offered{{"acme.com/gpu", {whole}}}));
}

/// A vendor whose users know parts by the name of whole devices, or each profile by its own.
class NamedAlike final : public device::testing::AcmeDialect {
 public:
  std::string WholeResource(const device::Facts&) const override { return "acme.com/whole"; }
  device::PartNames usual_part_names() const override { return device::PartNames::kOfDevices; }
};

TEST(PartsStrategy, TheDefaultIsThatOfTheVendor) {
  const auto box = DividedBox(2, 0, "big");
  EXPECT_EQ(OfferedIn(box, api::PartsStrategy::kDefault).begin()->first, "acme.com/big");
  static const NamedAlike alike;
  const auto resources = [](const inventory::Snapshot& of, api::PartsStrategy strategy) {
    api::NodeConfig config;
    config.parts = strategy;
    std::map<std::string, int> offered;
    const auto find = [](std::string_view) -> const device::Dialect* { return &alike; };
    for (const auto& [id, assignment] :
         ComputeAssignments(config, {"kubelet"}, {}, of, find).assignments)
      if (!assignment.allocator.empty() && of.Find(id)->withheld.empty())
        ++offered[assignment.resource];
    return offered;
  };
  using Counts = std::map<std::string, int>;
  EXPECT_EQ(resources(box, api::PartsStrategy::kDefault), (Counts{{"acme.com/gpu", 4}}));
  EXPECT_EQ(resources(DividedBox(4, 3, "big"), api::PartsStrategy::kDefault),
            (Counts{{"acme.com/gpu", 3}}))
      << "one is divided otherwise than most";
  EXPECT_EQ(resources(DividedBox(2, 1, "big"), api::PartsStrategy::kMixed),
            (Counts{{"acme.com/big", 2}, {"acme.com/whole", 1}}));
}

class Dividing final : public device::testing::AcmeDialect {
 public:
  explicit Dividing(bool has_naming_option)
      : terms_{.mode = "cut", .has_naming_option = has_naming_option} {}
  const device::PartTerms* part_terms() const override { return &terms_; }

 private:
  const device::PartTerms terms_;
};

TEST(PartsStrategy, TheOptionOfOneVendorsUsersGoesFirstAndSaysNothingOfOthers) {
  using enum api::PartsStrategy;
  const Dividing own(true), other(false);
  EXPECT_EQ(PartNamesOf(kMixed, kSingle, own), device::PartNames::kOfDevices);
  EXPECT_EQ(PartNamesOf(kSingle, kDefault, own), device::PartNames::kOfDevices);
  EXPECT_EQ(PartNamesOf(kDefault, kDefault, own), device::PartNames::kOfProfiles);
  EXPECT_EQ(PartNamesOf(kSingle, kMixed, other), device::PartNames::kOfDevices);
}

TEST(PartsStrategy, AnOfferSaysWhetherItIsThatOfAProfile) {
  for (const auto strategy : {api::PartsStrategy::kMixed, api::PartsStrategy::kSingle}) {
    const auto box = DividedBox(2, 0, "big");
    api::NodeConfig config;
    config.parts = strategy;
    const auto offers = ComputeOffers(AssignmentsOf(config, box).assignments, box, {}, {});
    ASSERT_EQ(offers.size(), 1u);
    EXPECT_EQ(offers[0].by_profile, strategy == api::PartsStrategy::kMixed);
  }
  const auto whole = DividedBox(1, 1, "big");
  EXPECT_FALSE(ComputeOffers(AssignmentsOf(api::NodeConfig{}, whole).assignments, whole, {}, {})[0]
                   .by_profile);
}

TEST(PartsStrategy, SingleOffersWhatMostDevicesAre) {
  const auto count = [](const inventory::Snapshot& box) {
    const auto offered = OfferedIn(box, api::PartsStrategy::kSingle);
    return offered.contains("acme.com/gpu") ? offered.at("acme.com/gpu").size() : 0;
  };
  EXPECT_EQ(count(DividedBox(4, 4, "big")), 4u) << "no device is divided";
  EXPECT_EQ(count(DividedBox(4, 3, "big")), 3u) << "the whole ones";
  EXPECT_EQ(count(DividedBox(4, 2, "big")), 4u) << "as many are divided: their parts";
  EXPECT_EQ(count(DividedBox(4, 0, "big")), 8u);
  auto box = DividedBox(4, 1, "big");
  for (auto& entry : box.devices)
    if (entry.number == 3 && !entry.ancestors.empty()) {
      device::Facts other = *entry.facts;
      other.profile = "small";
      entry.facts = std::make_shared<const device::Facts>(other);
    }
  EXPECT_EQ(count(box), 4u) << "two devices against one";
  api::NodeConfig config;
  config.parts = api::PartsStrategy::kSingle;
  const auto desired = AssignmentsOf(config, box);
  EXPECT_THAT(desired.assignments.at(box.devices[0].facts->id).reason,
              testing::HasSubstr("most devices of this node are divided into big, and this one is "
                                 "whole"));
}

TEST(PartsStrategy, ANumberOfDevicesCountsThoseThatAreOffered) {
  const auto box = DividedBox(2, 0, "big");
  api::NodeConfig config;
  config.parts = api::PartsStrategy::kSingle;
  api::SharingRule rule = Sliced({}, 3);
  rule.most = 3;
  config.sharing.rules = {rule};
  int shared = 0;
  for (const std::string& id : Shared(AssignmentsOf(config, box)))
    shared += box.Find(id)->withheld.empty() ? 1 : 0;
  EXPECT_EQ(shared, 3);
}

TEST(PartsStrategy, APartIsSelectedByItsNumber) {
  const auto box = DividedBox(2, 1, "big");
  EXPECT_THAT(Shared(AssignmentsOf({Sliced({"1:1"}, 2)}, box)),
              testing::ElementsAre(box.devices[1].facts->id + ".1"));
}

// Items of reference/device-plugin-gfd-mig.md §8 by number.

TEST(Assignments, Issue424MixedModelsHaveOneNameOrOnRequestOneEach) {
  const auto box = Box(3);
  for (const auto& [id, assignment] : AssignmentsOf(api::NodeConfig{}, box).assignments)
    EXPECT_EQ(assignment.resource, "acme.com/gpu") << id;
  api::NodeConfig config;
  config.resource_per_model = true;
  EXPECT_EQ(AssignmentsOf(config, box).assignments.at("G0").resource, "acme.com/small");
  EXPECT_EQ(AssignmentsOf(config, box).assignments.at("G1").resource, "acme.com/big");
}

TEST(Assignments, Issue1024AResourcePatternNamesTheModelsThatItMatches) {
  api::NodeConfig config;
  config.resources = {{"*Big", "acme.com/train"}, {"*", "acme.com/rest"}};
  const auto assignments = AssignmentsOf(config, Box(2)).assignments;
  EXPECT_EQ(assignments.at("G0").resource, "acme.com/rest");
  EXPECT_EQ(assignments.at("G1").resource, "acme.com/train")
      << "the first rule that matches counts";
}

TEST(Assignments, Issue628OnlyOneGpuIsSharedAndTheOthersStayWhole) {
  const auto desired = AssignmentsOf({Sliced({"3"}, 4, "acme.com/slice")}, Box(4));
  EXPECT_THAT(Shared(desired), ElementsAre("G3"));
  EXPECT_EQ(
      desired.assignments.at("G3"),
      (Assignment{
          .allocator = "kubelet", .resource = "acme.com/slice", .shape = kFour, .renamed = true}));
  EXPECT_EQ(desired.assignments.at("G0"),
            (Assignment{.allocator = "kubelet", .resource = "acme.com/gpu"}));
  EXPECT_THAT(desired.remarks, IsEmpty());
}

TEST(Assignments, Issue353EachGpuOfANodeCanBeSharedInAnotherWay) {
  const auto assignments =
      AssignmentsOf({Sliced({"G0"}, 2), Rule({"1"}, ShareStrategy::kServer, 8),
                     Rule({"2"}, ShareStrategy::kNone, 1), Sliced({"*Big"}, 4)},
                    Box(4))
          .assignments;
  EXPECT_EQ(assignments.at("G0").shape, (Shape{Sharing::kTimeSlicing, 2}));
  EXPECT_EQ(assignments.at("G1").shape, (Shape{Sharing::kServer, 8}));
  EXPECT_EQ(assignments.at("G2").shape, kNotShared);
  EXPECT_EQ(assignments.at("G3").shape, kFour);
}

TEST(Assignments, ARuleIsForTheResourceThatItNames) {
  api::NodeConfig config;
  config.resources = {{"*Small", "acme.com/small"}};
  config.sharing.rules = {Sliced({}, 4)};
  config.sharing.rules[0].resource = "acme.com/small";
  EXPECT_THAT(Shared(AssignmentsOf(config, Box(3))), ElementsAre("G0"));
}

TEST(Assignments, Issue1022ReplicasOneIsNoSharing) {
  auto one = Sliced({"0"}, 1, "acme.com/slice");
  one.fail_requests_greater_than_one = true;
  const auto desired = AssignmentsOf({one, Sliced({}, 4)}, Box(2));
  EXPECT_EQ(desired.assignments.at("G0"),
            (Assignment{.allocator = "kubelet", .resource = "acme.com/gpu"}))
      << "and it keeps its name";
  EXPECT_EQ(desired.assignments.at("G1").shape, kFour)
      << "one rule disables sharing for one device";
}

TEST(Assignments, ACountOfDevicesTakesTheFirstOnesAndSaysWhereThereAreTooFew) {
  auto two = Sliced({}, 4);
  two.most = 2;
  EXPECT_THAT(Shared(AssignmentsOf({two}, Box(4))), ElementsAre("G0", "G1"));
  two.most = 6;
  const auto desired = AssignmentsOf({two}, Box(4));
  EXPECT_EQ(Shared(desired).size(), 4u);
  EXPECT_THAT(desired.remarks,
              ElementsAre("sharing.rules[0]: requests 6 devices but applies to 4"));
}

TEST(Assignments, ACountOfDevicesMeansTheSameOnesWhileOneOfThemIsAway) {
  auto two = Sliced({}, 4);
  two.most = 2;
  auto box = Box(4);
  const auto before = AssignmentsOf({two}, box).assignments;
  box.devices[1].health.state = HealthState::kGone;
  EXPECT_EQ(AssignmentsOf({two}, box).assignments, before);

  // The driver renumbers the devices that it still sees.
  for (const int moved_up : {2, 3}) {
    auto facts = AcmeDevice(moved_up, 4);
    facts.index = moved_up - 1;
    box.devices[static_cast<std::size_t>(moved_up)] = Entry(facts);
  }
  std::reverse(box.devices.begin(), box.devices.end());
  EXPECT_EQ(AssignmentsOf({two}, box).assignments, before);
}

TEST(Assignments, ADeviceInThePlaceOfAnotherTakesItsPlaceInTheCount) {
  auto two = Sliced({}, 4);
  two.most = 2;
  auto box = Box(4);
  box.devices[1].health.state = HealthState::kGone;
  auto successor = AcmeDevice(1, 4);
  successor.id = "G9";
  box.devices.push_back(Entry(successor));
  const auto assignments = AssignmentsOf({two}, box).assignments;
  EXPECT_EQ(assignments.at("G9").shape, kFour);
  EXPECT_EQ(assignments.at("G2").shape, kNotShared);
}

TEST(Assignments, DevicesThatDoNotExistAreRemarked) {
  const auto desired =
      AssignmentsOf({Sliced({"0", "9", "G-none"}, 2), Sliced({"7"}, 2), Sliced({"G0"}, 3)}, Box(2));
  EXPECT_THAT(Shared(desired), ElementsAre("G0"));
  EXPECT_THAT(desired.remarks,
              ElementsAre("sharing.rules[0]: no device on this node matches \"9\"",
                          "sharing.rules[0]: no device on this node matches \"G-none\"",
                          "sharing.rules[1]: matches no device of this node",
                          "sharing.rules[2]: applies to no device on this node: earlier rules "
                          "apply to all devices that it matches"));
  api::NodeConfig config;
  config.resources = {{"H100*", "acme.com/h100"}};
  EXPECT_THAT(AssignmentsOf(config, Box(1)).remarks,
              ElementsAre("resources[0]: matches no device of this node"));
  EXPECT_THAT(AssignmentsOf(config, Box(0)).remarks, IsEmpty())
      << "no remarks before any device was found";
}

TEST(Assignments, MpsOnAModelThatCannotIsOfferedNowhereAndSaysWhatToDo) {
  const auto desired = AssignmentsOf({Rule({}, ShareStrategy::kServer, 4)}, Box(2));
  EXPECT_EQ(desired.assignments.at("G0").allocator, "");
  EXPECT_EQ(desired.assignments.at("G0").reason, "an Acme Small has no server; use time-slicing");
  EXPECT_THAT(desired.remarks, ElementsAre("sharing: Acme Small G0 is not offered: an Acme "
                                           "Small has no server; use time-slicing"));
  EXPECT_EQ(desired.assignments.at("G1").shape, (Shape{Sharing::kServer, 4}))
      << "a device that cannot be shared does not prevent sharing of another";
}

TEST(Assignments, AMoveCountsMoreThanTheConfigurationButOpensNoAllocator) {
  const Moves moves = {{"G0", {"local"}}, {"G1", {""}}};
  const auto assignments = AssignmentsOf(api::NodeConfig{}, Box(3), moves).assignments;
  EXPECT_EQ(assignments.at("G0").allocator, "local");
  EXPECT_EQ(assignments.at("G1").allocator, "");
  EXPECT_EQ(assignments.at("G2").allocator, "kubelet");
  const auto closed = AssignmentsOf(api::NodeConfig{}, Box(1), moves, {"kubelet"}).assignments;
  EXPECT_EQ(closed.at("G0").allocator, "");
  EXPECT_THAT(closed.at("G0").reason, HasSubstr("local users, whose allocator is closed"));
}

TEST(Assignments, AWithdrawnDeviceIsHiddenOrListedAsUnusable) {
  const Withdrawals withdrawals = {{"G0", {"being moved to local users", false}},
                                   {"G1", {"reset in progress", true}}};
  const auto assignments = ComputeAssignments({}, {"kubelet", "local"}, {{"G0", {"local"}}}, Box(3),
                                              device::testing::FindAcme, withdrawals)
                               .assignments;
  EXPECT_EQ(assignments.at("G0").allocator, "");
  EXPECT_EQ(assignments.at("G0").reason, "being moved to local users");
  EXPECT_EQ(assignments.at("G1").allocator, "kubelet");
  EXPECT_EQ(assignments.at("G1").withdrawn, "reset in progress");
  EXPECT_EQ(assignments.at("G2").withdrawn, "");
}

// --- sets of devices behind a server

ledger::Lease Lease(const std::string& id, const std::string& slot, const std::string& device,
                    const std::string& resource, Shape shape) {
  return {.id = id, .allocator = "kubelet", .slots = {{slot, device, resource, shape}}};
}

std::vector<std::string> Describe(const std::vector<device::SharedSet>& sets) {
  std::vector<std::string> text;
  for (const auto& set : sets) {
    text.push_back(set.name + ":");
    for (const auto& member : set.members)
      text.back() += " " + member.device->id + "/" + std::to_string(member.shares);
  }
  return text;
}

TEST(SetsOf, AreByResourceAndDoNotDependOnHealthOrAbsence) {
  auto box = Box(4);
  const auto desired = AssignmentsOf({Rule({"1", "2"}, ShareStrategy::kServer, 4),
                                      Rule({"3"}, ShareStrategy::kServer, 2, "acme.com/half")},
                                     box);
  const auto sets = SetsOf(desired.assignments, box, {});
  EXPECT_THAT(Describe(sets), ElementsAre("acme.com/gpu: G1/4 G2/4", "acme.com/half: G3/2"));
  box.devices[1].health.state = HealthState::kUnhealthy;
  box.devices[2].health.state = HealthState::kGone;
  ledger::Snapshot ledger;
  ledger.outside["G3"] = {{42, 1, "ann", "python"}};
  EXPECT_EQ(SetsOf(desired.assignments, box, ledger), sets);
}

TEST(SetsOf, ThereIsNoneWhileADeviceOfItIsResetUnlessItIsInUse) {
  const auto box = Box(4);
  auto desired = AssignmentsOf({Rule({"1", "2"}, ShareStrategy::kServer, 4),
                                Rule({"3"}, ShareStrategy::kServer, 2, "acme.com/half")},
                               box);
  desired.assignments.at("G1").withdrawn = "reset in progress";
  EXPECT_THAT(Describe(SetsOf(desired.assignments, box, {})), ElementsAre("acme.com/half: G3/2"));
  const Shape four{Sharing::kServer, 4};
  const ledger::Snapshot held{.leases = {Lease("k-1", "G2::0", "G2", "acme.com/gpu", four)}};
  EXPECT_THAT(Describe(SetsOf(desired.assignments, box, held)),
              ElementsAre("acme.com/gpu: G1/4 G2/4", "acme.com/half: G3/2"));
}

TEST(SetsOf, EachPartHasASetOfItsOwnAsLongAsItIsThere) {
  auto box = DividedBox(2, 0, "1g");
  const auto desired = AssignmentsOf({Rule({}, ShareStrategy::kServer, 3)}, box);
  EXPECT_EQ(desired.assignments.at("G1.0").resource, "acme.com/1g");
  EXPECT_TRUE(desired.assignments.at("G1.0").single) << "a process cannot use two servers";
  EXPECT_THAT(desired.remarks, IsEmpty()) << "that a divided device cannot be shared is no news";
  EXPECT_THAT(Describe(SetsOf(desired.assignments, box, {})),
              ElementsAre("G0.0: G0.0/3", "G0.1: G0.1/3", "G1.0: G1.0/3", "G1.1: G1.1/3"));
  const Shape two{Sharing::kServer, 2};
  const ledger::Snapshot held{.leases = {Lease("k-1", "G0.0::0", "G0.0", "acme.com/old", two),
                                         Lease("k-2", "G0.1::0", "G0.1", "acme.com/1g", two)}};
  box.devices[3].health.state = HealthState::kGone;
  ASSERT_EQ(box.devices[3].facts->id, "G0.1");
  EXPECT_THAT(Describe(SetsOf(desired.assignments, box, held)),
              ElementsAre("G0.0: G0.0/2", "G1.0: G1.0/3", "G1.1: G1.1/3"));
  for (auto& entry : box.devices)
    if (entry.facts->id == "G0.0" || entry.facts->id == "G1.1") entry.withheld = "it is empty";
  EXPECT_THAT(Describe(SetsOf(desired.assignments, box, held)),
              ElementsAre("G0.0: G0.0/2", "G1.0: G1.0/3"))
      << "without a holder";
}

TEST(SetsOf, Issue669ADeviceKeepsItsShapeAndSetWhileAnyoneHoldsAShare) {
  const auto box = Box(3);
  const Shape four{Sharing::kServer, 4};
  const ledger::Snapshot ledger{.leases = {Lease("k-1", "G1::0", "G1", "acme.com/gpu", four)}};
  EXPECT_THAT(
      Describe(SetsOf(AssignmentsOf({Rule({"1", "2"}, ShareStrategy::kServer, 8)}, box).assignments,
                      box, ledger)),
      ElementsAre("acme.com/gpu: G1/4 G2/8"));
  EXPECT_THAT(
      Describe(SetsOf(
          AssignmentsOf({Rule({"1"}, ShareStrategy::kServer, 4, "acme.com/new")}, box).assignments,
          box, ledger)),
      ElementsAre("acme.com/gpu: G1/4"));
  EXPECT_THAT(Describe(SetsOf(AssignmentsOf({Sliced({}, 2)}, box).assignments, box, ledger)),
              ElementsAre("acme.com/gpu: G1/4"));
  EXPECT_THAT(SetsOf(AssignmentsOf({Sliced({}, 2)}, box).assignments, box, {}), IsEmpty());
}

TEST(SetsOf, ADeviceJoinsOnlyWhenThoseWhoHoldItOtherwiseHaveGone) {
  const auto box = Box(3);
  const auto assignments =
      AssignmentsOf({Rule({"1", "2"}, ShareStrategy::kServer, 4)}, box).assignments;
  for (const Shape former : {kNotShared, kFour}) {
    const ledger::Snapshot ledger{.leases = {Lease("k-1", former == kNotShared ? "G1" : "G1::3",
                                                   "G1", "acme.com/gpu", former)}};
    EXPECT_THAT(Describe(SetsOf(assignments, box, ledger)), ElementsAre("acme.com/gpu: G2/4"))
        << "its server would exclude them";
  }
}

TEST(LabelSharesOf, ReportWhatTheDriverReallyHolds) {
  const auto box = Box(3);
  const auto desired = AssignmentsOf(
      {Sliced({"0"}, 4, "acme.com/slice"), Rule({"1"}, ShareStrategy::kServer, 2)}, box);
  device::SharedDevices servers;
  servers["G1"] = {
      .set = "acme.com/gpu", .ready = true, .isolation = device::Isolation::kMemoryPerProcess};
  const auto shares = LabelSharesOf(desired.assignments, servers);
  EXPECT_EQ(shares.at("G0").shape, kFour);
  EXPECT_TRUE(shares.at("G0").renamed);
  EXPECT_EQ(shares.at("G0").isolation, "none");
  EXPECT_EQ(shares.at("G1").isolation, "memory-per-process");
  EXPECT_FALSE(shares.at("G1").renamed);
  EXPECT_EQ(shares.at("G2").isolation, "hardware");
  EXPECT_EQ(LabelSharesOf(desired.assignments, {}).at("G1").isolation, "none")
      << "without a server there is no limit";
}

TEST(SlotId, IsAsTheDevicePluginSpellsIt) {
  EXPECT_EQ(SlotId("GPU-1", kNotShared, 0), "GPU-1");
  EXPECT_EQ(SlotId("GPU-1", kFour, 3), "GPU-1::3");
  EXPECT_EQ(DeviceOf("GPU-1::3"), "GPU-1");
  EXPECT_EQ(DeviceOf("GPU-1"), "GPU-1");
  EXPECT_EQ(DeviceOf("::"), "");
}

}  // namespace
}  // namespace penstock::node::share
