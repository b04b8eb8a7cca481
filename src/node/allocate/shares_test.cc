// Tests Reserve, Prefer and Commit with shared devices.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "node/allocate/allocate.h"
#include "node/allocate/ranked.h"
#include "node/inventory/testing/acme_inventory.h"

namespace penstock::node::allocate {
namespace {

using api::SharePolicy;
using device::HealthState;
using device::Shape;
using device::Sharing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kGpu[] = "acme.com/gpu";
constexpr Shape Sliced(int shares) { return {Sharing::kTimeSlicing, shares}; }
constexpr Shape Mps(int shares) { return {Sharing::kServer, shares}; }

/// A machine with linked pairs (0,1), (2,3), ..., all healthy and of one allocator, whose devices
/// are shared as the test says.
struct Box {
  explicit Box(const std::vector<Shape>& shapes, const std::string& allocator = "local")
      : inventory(inventory::AcmeSnapshot(static_cast<int>(shapes.size()))) {
    for (std::size_t i = 0; i < shapes.size(); ++i)
      assignments["G" + std::to_string(i)] = {
          .allocator = allocator, .resource = kGpu, .shape = shapes[i]};
  }

  std::vector<share::Offer> Offers() const {
    return share::ComputeOffers(assignments, inventory, *ledger.Get(), servers);
  }

  /// Reserves and allocates, as the local adapter does.
  std::vector<std::string> Take(Request request) {
    request.allocator = "local";
    const auto slots = Reserve(request, inventory, *ledger.Get(), Offers());
    if (!slots.ok()) return {slots.error().ToString()};
    ledger::Lease lease{.id = "r-" + std::to_string(++leases),
                        .allocator = "local",
                        .slots = *slots,
                        .user = "ann"};
    std::vector<std::string> ids;
    for (const auto& slot : *slots) ids.push_back(slot.id);
    const auto handed = ledger.Add(std::move(lease));
    return handed.ok() ? ids : std::vector<std::string>{handed.error().ToString()};
  }
  base::Error Refused(Request request) {
    request.allocator = "local";
    const auto slots = Reserve(request, inventory, *ledger.Get(), Offers());
    return slots.ok() ? base::Error(Code::kInternal, "it was not refused") : slots.error();
  }

  share::Assignments assignments;
  inventory::Snapshot inventory;
  ledger::Ledger ledger;
  device::SharedDevices servers;
  int leases = 0;
};

// --- Reserve

TEST(ReserveShares, CutsAFreeDeviceForTheCallerAndPacksTheNextOnesOnIt) {
  Box box({Sliced(1), Sliced(1)});
  EXPECT_THAT(box.Take({.share = 4}), ElementsAre("G0::0"));
  EXPECT_EQ(box.ledger.Get()->leases[0].slots[0], (ledger::Slot{"G0::0", "G0", kGpu, Sliced(4)}));
  for (const char* next : {"G0::1", "G0::2", "G0::3", "G1::0"})
    EXPECT_THAT(box.Take({.share = 4}), ElementsAre(next));
  box.ledger.Release("r-2");
  EXPECT_THAT(box.Take({.share = 4}), ElementsAre("G0::1")) << "the fuller one, not the next";
}

TEST(ReserveShares, ADeviceIsWholeAgainWhenTheLastShareIsGivenBack) {
  Box box({Sliced(1)});
  box.Take({.share = 2});
  box.Take({.share = 2});
  const auto waits = box.Refused({});
  EXPECT_EQ(waits.code(), Code::kResourceExhausted) << "it becomes whole again";
  EXPECT_THAT(waits.message(), HasSubstr("divided into 2 shares, held by r-1 of ann"));
  EXPECT_EQ(box.Refused({.share = 3}).code(), Code::kResourceExhausted)
      << "and can be cut in another way then";
  EXPECT_THAT(box.Refused({.share = 2}).message(),
              HasSubstr("none of its 2 shares is available: held by r-1 of ann"));
  box.ledger.Release("r-1");
  box.ledger.Release("r-2");
  EXPECT_THAT(box.Take({}), ElementsAre("G0"));
}

TEST(ReserveShares, TakesDevicesThatAreConfiguredSoBeforeItCutsAWholeOne) {
  Box box({Sliced(1), Sliced(4), Mps(2)});
  box.servers["G2"] = {.ready = true};
  EXPECT_THAT(box.Take({.share = 4}), ElementsAre("G1::0"));
  EXPECT_THAT(box.Take({.share = 2}), ElementsAre("G2::0"));
  EXPECT_THAT(box.Take({.share = 3}), ElementsAre("G0::0"));
}

// Limits.

TEST(ReserveLimits, AShareIsGivenWhereItsServerEnforcesAsMuchOrLess) {
  Box box({Mps(2), Mps(2), Mps(2)});
  box.servers["G0"] = {.ready = true, .memory = base::Mebibytes(900), .compute_percent = 50};
  box.servers["G1"] = {.ready = true, .memory = base::Mebibytes(400), .compute_percent = 20};
  box.servers["G2"] = {.ready = true, .memory = base::Mebibytes(500)};
  const device::Limits wanted{.memory = base::Mebibytes(500)};
  EXPECT_THAT(box.Take({.count = 2, .share = 2, .limits = wanted}), ElementsAre("G1::0", "G2::0"));
  const device::Limits both{.memory = base::Mebibytes(400), .compute_percent = 20};
  EXPECT_THAT(box.Take({.share = 2, .limits = both}), ElementsAre("G1::1"));
  EXPECT_EQ(box.ledger.Get()->leases[1].slots[0].limits,
            (device::Limits{.memory = base::Mebibytes(400),
                            .memory_by = device::Enforcer::kServer,
                            .compute_percent = 20,
                            .compute_by = device::Enforcer::kServer}))
      << "what is in force";
  const auto waits = box.Refused({.count = 2, .share = 2, .limits = wanted});
  EXPECT_EQ(waits.code(), Code::kResourceExhausted) << waits.message();
}

TEST(ReserveLimits, WhatNoServerEnforcesIsRefusedWithTheReason) {
  Box box({Mps(2), Mps(2)});
  box.servers["G0"] = {.ready = true, .memory = base::Mebibytes(900), .compute_percent = 50};
  box.servers["G1"] = {.ready = true, .memory = base::Mebibytes(900)};
  const auto memory = box.Refused({.share = 2, .limits = {.memory = base::Mebibytes(500)}});
  EXPECT_EQ(memory.code(), Code::kFailedPrecondition);
  EXPECT_EQ(memory.message(),
            "requested one of 2 shares of 1 GPU, but this node has 0 GPUs assigned to local users "
            "with the requested limits; GPU 0 (G0): its sharing server limits the memory of a "
            "process to 900 MiB, not to 500 MiB");
  EXPECT_THAT(box.Refused({.count = 2, .share = 2, .limits = {.compute_percent = 50}}).message(),
              HasSubstr("this node has 1 GPU assigned to local users with the requested limits; "
                        "GPU 1 (G1): its sharing server enforces no limit of compute time"));
  const Request named{.share = 2, .limits = {.compute_percent = 49}, .devices = {"0"}};
  EXPECT_EQ(box.Refused(named).message(),
            "GPU 0 (G0): its sharing server limits the compute time of a process to 50 %, not to "
            "49 %");
  EXPECT_EQ(box.Refused({.share = 4, .limits = {.memory = base::Mebibytes(900)}}).message(),
            "requested one of 4 shares of 1 GPU, but this node has 0 GPUs with such shares "
            "assigned to local users; GPU 0 (G0) is shared 2 ways: request it with --share 2");
}

TEST(ReserveLimits, NothingEnforcesThemOnWholeDevicesAndTimeSlices) {
  const device::Limits wanted{.compute_percent = 50};
  for (const Request& request : {Request{.limits = wanted}, {.share = 2, .limits = wanted}}) {
    Box box({Sliced(1), Sliced(2)});
    const auto refused = box.Refused(request);
    EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
    EXPECT_EQ(refused.message(),
              "this node cannot enforce a limit of compute time for a single run; request a share "
              "or a whole device without it");
    Box beside({Sliced(1), Sliced(2), Mps(4)});
    beside.servers["G2"] = {.ready = true, .compute_percent = 25};
    EXPECT_THAT(beside.Refused(request).message(),
                HasSubstr("GPU 0 (G0): this node cannot enforce a limit of compute time on it"));
  }
}

TEST(ReserveLimits, AServerThatHasNotStartedIsWaitedForAndThenJudged) {
  Box box({Mps(2)});
  const Request request{.share = 2, .limits = {.memory = base::Mebibytes(500)}};
  const auto waits = box.Refused(request);
  EXPECT_EQ(waits.code(), Code::kUnavailable);
  EXPECT_THAT(waits.message(), HasSubstr("its sharing server has not started yet"));
  box.servers["G0"] = {.ready = true};
  EXPECT_THAT(box.Refused(request).message(), HasSubstr("enforces no limit of memory"));
  box.servers["G0"].memory = base::Mebibytes(500);
  EXPECT_THAT(box.Take(request), ElementsAre("G0::0"));
}

TEST(ReserveShares, OneShareEachOfSeveralDevices) {
  Box box({Sliced(1), Sliced(1), Sliced(1), Sliced(1)});
  EXPECT_THAT(box.Take({.devices = {"0"}}), ElementsAre("G0"));
  EXPECT_THAT(box.Take({.count = 2, .share = 2}), ElementsAre("G2::0", "G3::0")) << "a linked pair";
  EXPECT_THAT(box.Take({.count = 3, .share = 2}), ElementsAre("G1::0", "G2::1", "G3::1"));
  EXPECT_EQ(box.Refused({.count = 2, .share = 2}).code(), Code::kResourceExhausted);
  EXPECT_EQ(box.Refused({.count = 5, .share = 2}).code(), Code::kFailedPrecondition);
}

TEST(ReserveShares, SaysHowItIsConfiguredWhereSomethingElseIsAskedFor) {
  Box box({Sliced(4)});
  const auto other = box.Refused({.share = 8});
  EXPECT_EQ(other.code(), Code::kFailedPrecondition);
  EXPECT_EQ(
      other.message(),
      "requested one of 8 shares of 1 GPU, but this node has 0 GPUs with such shares assigned to "
      "local users; "
      "GPU 0 (G0) is shared 4 ways: request it with --share 4");
  const auto whole = box.Refused({});
  EXPECT_EQ(whole.code(), Code::kFailedPrecondition);
  EXPECT_EQ(
      whole.message(),
      "all GPUs assigned to local users are shared, and a whole GPU was requested; GPU 0 (G0) is "
      "shared 4 ways: request it with --share 4");
  EXPECT_EQ(box.Refused({.devices = {"G0"}}).message(),
            "GPU 0 (G0) is shared 4 ways: request it with --share 4");
  EXPECT_EQ(box.Refused({.share = 0}).code(), Code::kInvalidArgument);
  EXPECT_EQ(box.Refused({.share = -4}).code(), Code::kInvalidArgument);
}

TEST(ReserveShares, OfNamedDevices) {
  Box box({Sliced(1), Sliced(2), Sliced(1)});
  EXPECT_THAT(box.Take({.share = 2, .devices = {"2", "G1"}}), ElementsAre("G2::0", "G1::0"));
  EXPECT_EQ(box.Refused({.share = 2, .devices = {"1", "G1"}}).code(), Code::kInvalidArgument);
  EXPECT_THAT(box.Take({.share = 2, .devices = {"1"}}), ElementsAre("G1::1"));
  EXPECT_THAT(box.Refused({.share = 2, .devices = {"1"}}).message(),
              HasSubstr("GPU 1 (G1): none of its 2 shares is available"));
  EXPECT_EQ(box.Refused({.devices = {"2"}}).code(), Code::kResourceExhausted) << "cut for a caller";
  EXPECT_EQ(box.Refused({.share = 2, .devices = {"7"}}).code(), Code::kNotFound);
}

TEST(ReserveShares, NeverTakesWhatCannotBeUsed) {
  Box box({Sliced(1), Sliced(2), Mps(2)});
  box.inventory.devices[0].health = {HealthState::kUnhealthy, "XID 79", {}};
  EXPECT_THAT(box.Take({.share = 2}), ElementsAre("G1::0"));
  EXPECT_THAT(box.Take({.share = 2}), ElementsAre("G1::1"));
  EXPECT_THAT(
      box.Refused({.share = 2}).message(),
      HasSubstr(
          "GPU 2 (G2): none of its 2 shares is available: its sharing server has not started yet"));
}

// --- Prefer

std::vector<std::string> Prefer(const Box& box, const std::vector<std::string>& available,
                                std::size_t size, SharePolicy policy = SharePolicy::kDistributed,
                                const std::vector<std::string>& must = {}, bool single = false) {
  auto offer = box.Offers().at(0);
  offer.single = single;
  return allocate::Prefer({available, must, size}, offer, policy, box.inventory, *box.ledger.Get());
}

/// Three shares of G0 are left, one of G1, two of G2, all four of G3.
const std::vector<std::string> kLeft = {"G3::3", "G0::1", "G0::2", "G0::3", "G1::0",
                                        "G2::2", "G2::1", "G3::0", "G3::1", "G3::2"};
Box FourByFour() { return Box({Sliced(4), Sliced(4), Sliced(4), Sliced(4)}, "kubelet"); }

TEST(PreferShares, Issue491DistributedTakesTheEmptiestDeviceAndPackedTheFullest) {
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 1), ElementsAre("G3::0"));
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 1, SharePolicy::kPacked), ElementsAre("G1::0"));
}

TEST(PreferShares, Issue1621SharesOfOneRequestAreOnDifferentDevicesUnderEitherPolicy) {
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 2), ElementsAre("G0::1", "G3::0"));
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 2, SharePolicy::kPacked), ElementsAre("G1::0", "G2::1"));
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 4), ElementsAre("G0::1", "G1::0", "G2::1", "G3::0"));
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 6),
              ElementsAre("G0::1", "G0::2", "G1::0", "G2::1", "G3::0", "G3::1"));
  EXPECT_EQ(Prefer(FourByFour(), kLeft, 10).size(), 10u);
}

TEST(PreferShares, AmongEquallyUsedDevicesThoseThatAreLinkedBest) {
  // G0 has one share less; G1, G2 and G3 are equal, and (2,3) are linked.
  const std::vector<std::string> left = {"G0::3", "G1::0", "G1::1", "G2::0",
                                         "G2::1", "G3::0", "G3::1"};
  EXPECT_THAT(Prefer(FourByFour(), left, 2), ElementsAre("G2::0", "G3::0"));
  EXPECT_THAT(Prefer(FourByFour(), left, 2, SharePolicy::kPacked), ElementsAre("G0::3", "G1::0"))
      << "near to the one that policy takes";
}

TEST(PreferShares, HonoursWhatMustBeIn) {
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 2, SharePolicy::kDistributed, {"G2::2"}),
              ElementsAre("G2::2", "G3::0"));
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 3, SharePolicy::kDistributed, {"G3::3", "G3::2"}),
              ElementsAre("G0::1", "G3::2", "G3::3"));
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 2, SharePolicy::kDistributed, {"G3::3", "G3::2"}),
              ElementsAre("G3::2", "G3::3"));
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 1, SharePolicy::kDistributed, {"G3::3", "G3::2"}),
              IsEmpty());
}

TEST(PreferShares, AreTheSameForAnyOrderOfTheQuestion) {
  auto left = kLeft;
  std::mt19937 random(7);
  for (const auto policy : {SharePolicy::kDistributed, SharePolicy::kPacked})
    for (std::size_t size = 1; size <= left.size(); ++size) {
      const auto first = Prefer(FourByFour(), left, size, policy);
      EXPECT_EQ(first.size(), size);
      for (int i = 0; i < 5; ++i) {
        std::shuffle(left.begin(), left.end(), random);
        EXPECT_EQ(Prefer(FourByFour(), left, size, policy), first);
      }
    }
}

TEST(PreferShares, NothingIsSaidOfWhatIsNotKnown) {
  EXPECT_THAT(Prefer(FourByFour(), {"G0::0", "G0::4"}, 1), IsEmpty());
  EXPECT_THAT(Prefer(FourByFour(), {"G0::0", "G0"}, 1), IsEmpty());
  EXPECT_THAT(Prefer(FourByFour(), {"G0::0"}, 2), IsEmpty());
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 2, SharePolicy::kDistributed, {"G0::0"}), IsEmpty())
      << "not among those available";
}

TEST(PreferShares, OnlyOneShareIsPreferredWhereARequestMayHaveOne) {
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 2, SharePolicy::kDistributed, {}, true), IsEmpty());
  EXPECT_THAT(Prefer(FourByFour(), kLeft, 1, SharePolicy::kDistributed, {}, true),
              ElementsAre("G3::0"));
  const Box mixed({Sliced(2), Sliced(1), Sliced(1)}, "kubelet");
  EXPECT_THAT(Prefer(mixed, {"G0::0", "G0::1", "G1", "G2"}, 2, SharePolicy::kDistributed, {}, true),
              ElementsAre("G1", "G2"));
}

TEST(PreferShares, Issue231ABadDeviceSpoilsNoAnswer) {
  Box box = FourByFour();
  box.inventory.devices[3].health = {HealthState::kGone, "fallen off the bus", {}};
  EXPECT_THAT(Prefer(box, kLeft, 1), ElementsAre("G0::1")) << "the kubelet has not heard of it yet";
  EXPECT_THAT(Prefer(box, kLeft, 2, SharePolicy::kDistributed, {"G3::0"}),
              ElementsAre("G0::1", "G3::0"));
  EXPECT_THAT(Prefer(box, {"G3::0", "G3::1"}, 1), IsEmpty());
}

TEST(ChooseRanked, TakesWholeRanksAndOfTheLastOneTheBestLinked) {
  std::vector<device::Facts> facts;
  std::vector<const device::Facts*> borrowed;
  for (int i = 0; i < 6; ++i) facts.push_back(device::testing::AcmeDevice(i, 6));
  for (const auto& one : facts) borrowed.push_back(&one);
  const DeviceLinks links(borrowed);
  const auto choose = [&links](std::vector<Ranked> candidates,
                               const std::vector<std::size_t>& fixed, std::size_t size) {
    PartsInUse in_use;
    return ChooseRanked(links, std::move(candidates), fixed, size, in_use);
  };
  EXPECT_THAT(choose({{0, 1}, {1, 1}, {2, 1}, {3, 0}}, {}, 2), ElementsAre(2, 3))
      << "2 is linked with 3";
  EXPECT_THAT(choose({{0, 1}, {4, 1}, {3, 0}}, {1}, 2), ElementsAre(0, 3))
      << "0 is linked with 1, that is there already";
  EXPECT_THAT(choose({{5, 1}, {4, 0}}, {}, 2), ElementsAre(4, 5));
  EXPECT_THAT(choose({{5, 1}}, {}, 3), ElementsAre(5));
  EXPECT_THAT(choose({}, {}, 1), IsEmpty());
}

// --- Commit

base::Result<device::Edits> CommitTo(const Box& box, const std::vector<ledger::Slot>& slots,
                                     ConsumerKind consumer = ConsumerKind::kContainer) {
  return Commit(slots, consumer, box.inventory, device::testing::FindAcme, box.servers);
}

TEST(CommitShares, SharesOfOneDeviceAreThatDeviceOnce) {
  const Box box({Sliced(4), Sliced(4)});
  const auto edits = CommitTo(box, {{"G1::3", "G1", kGpu, Sliced(4)},
                                    {"G0::1", "G0", kGpu, Sliced(4)},
                                    {"G1::0", "G1", kGpu, Sliced(4)}});
  ASSERT_TRUE(edits.ok());
  EXPECT_EQ(edits->environment.at("ACME"), "G0,G1");
  EXPECT_EQ(edits->files.size(), 3u);
  EXPECT_EQ(AccessFor({{"G1::3", "G1"}, {"G1::0", "G1"}}, box.inventory).admitted.size(), 1u);
}

TEST(CommitShares, WhatTheServerNeedsGoesToTheContainerOrToTheProcess) {
  Box box({Mps(2), Mps(2), Mps(2)});
  for (const char* device : {"G0", "G1"}) {
    auto& server = box.servers[device];
    server = {.set = kGpu, .ready = true};
    server.container = {.environment = {{"PIPE", "/mps/pipe"}},
                        .files = {},
                        .mounts = {{"/mps/pipe", "/run/mps/gpu/pipe", false}}};
    server.process = {.environment = {{"PIPE", "/run/mps/gpu/pipe"}}, .files = {}, .mounts = {}};
  }
  const std::vector<ledger::Slot> slots = {{"G0::0", "G0", kGpu, Mps(2)},
                                           {"G1::0", "G1", kGpu, Mps(2)}};
  const auto container = CommitTo(box, slots);
  ASSERT_TRUE(container.ok());
  EXPECT_EQ(container->environment.at("PIPE"), "/mps/pipe");
  EXPECT_EQ(container->environment.at("ACME"), "G0,G1");
  EXPECT_THAT(container->mounts,
              ElementsAre(device::Edits::Mount{"/mps/pipe", "/run/mps/gpu/pipe", false}))
      << "once for both";
  const auto process = CommitTo(box, slots, ConsumerKind::kProcess);
  EXPECT_EQ(process->environment.at("PIPE"), "/run/mps/gpu/pipe");
  EXPECT_THAT(process->mounts, IsEmpty());
  EXPECT_FALSE(CommitTo(box, {{"G0::0", "G0", kGpu, Sliced(2)}})->environment.contains("PIPE"))
      << "time-slicing needs no server";
}

TEST(CommitShares, Issue685NoOneGetsAShareWithoutItsServer) {
  Box box({Mps(2)});
  const std::vector<ledger::Slot> slot = {{"G0::0", "G0", kGpu, Mps(2)}};
  EXPECT_EQ(CommitTo(box, slot).error().code(), Code::kUnavailable);
  box.servers["G0"] = {
      .set = kGpu, .ready = false, .reason = "the MPS control daemon does not answer"};
  const auto dead = CommitTo(box, slot).error();
  EXPECT_EQ(dead.code(), Code::kUnavailable);
  EXPECT_THAT(dead.message(), HasSubstr("the MPS control daemon does not answer"));
  box.servers["G0"].ready = true;
  EXPECT_TRUE(CommitTo(box, slot).ok());
}

TEST(CommitShares, NoOneCanUseTwoServers) {
  Box box({Mps(2), Mps(2)});
  box.servers["G0"] = {.set = "acme.com/one", .ready = true};
  box.servers["G1"] = {.set = "acme.com/two", .ready = true};
  EXPECT_EQ(
      CommitTo(box, {{"G0::0", "G0", kGpu, Mps(2)}, {"G1::0", "G1", kGpu, Mps(2)}}).error().code(),
      Code::kFailedPrecondition);
}

}  // namespace
}  // namespace penstock::node::allocate
