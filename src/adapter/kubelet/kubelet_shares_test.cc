// Tests shares and resource names: what changes of the configuration do to the kubelet's lists
// while pods hold devices.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapter/kubelet/plugin_set.h"
#include "adapter/kubelet/testing/kubelet_adapter_fixture.h"
#include "base/core/testing/must.h"
#include "os/testing/eventually.h"

namespace penstock::adapter::kubelet {
namespace {
using node::ledger::Lease;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kShared[] = "acme.com/gpu.shared";

api::NodeConfig Shared(int replicas, const std::string& rename = "",
                       std::vector<std::string> devices = {}) {
  api::NodeConfig config;
  config.sharing.rules = {{.devices = std::move(devices),
                           .strategy = api::ShareStrategy::kTimeSlicing,
                           .replicas = replicas,
                           .rename = rename}};
  return config;
}

class KubeletSharesTest : public KubeletAdapterTest {
 protected:
  /// Opens with this configuration and waits until the kubelet has this many healthy devices.
  void Serve(const api::NodeConfig& config, std::size_t healthy) {
    OpenWith(config);
    ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, healthy));
  }

  /// Resources whose plugins have a socket, from the names of the sockets.
  std::set<std::string> Sockets() const {
    std::set<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(kubelet_.kubelet_dir() + "/device-plugins")) {
      const std::string name = entry.path().filename();
      if (name.starts_with("penstock-"))
        names.insert(name.substr(0, name.find("-" + std::to_string(::getpid()))));
    }
    return names;
  }

  bool WaitForSockets(const std::set<std::string>& names) {
    return os::Eventually([&] { return Sockets() == names; });
  }

  Lease HolderOf(const std::string& device) {
    const Lease* lease = ledger_.Get()->HolderOf(device);
    return lease == nullptr ? Lease{} : *lease;
  }
};

TEST_F(KubeletSharesTest, Issue628OneGpuIsSharedAndTheOthersStayExclusive) {
  OpenWith(Shared(3, kShared, {"3"}));
  EXPECT_TRUE(WaitForIds(kGpu, {"G0", "G1", "G2"}));
  EXPECT_TRUE(WaitForIds(kShared, {"G3::0", "G3::1", "G3::2"}));
  ASSERT_TRUE(kubelet_.Allocate(kShared, {"G3::1"}).ok());
  const auto slots = HolderOf("G3").slots;
  ASSERT_EQ(slots.size(), 1u);
  EXPECT_EQ(slots[0],
            (node::ledger::Slot{"G3::1", "G3", kShared, {device::Sharing::kTimeSlicing, 3}}));
  EXPECT_TRUE(kubelet_.Allocate(kShared, {"G3::0"}).ok());
  On([this] {
    EXPECT_EQ(adapter_->Report().resources, (std::vector<std::string>{kGpu, kShared}));
  });
}

TEST_F(KubeletSharesTest, WhatIsSoOfAllNamesIsSaidOnce) {
  kubelet_.Kill();
  OpenWith(Shared(3, kShared, {"3"}));
  std::string reason;
  const auto said_once = [&reason] {  // without a resource's name before it
    return reason.starts_with("no kubelet answers at") &&
           reason.find("no kubelet answers") == reason.rfind("no kubelet answers");
  };
  EXPECT_TRUE(os::Eventually([&] {
    On([&] { reason = adapter_->Report().reason; });
    return said_once();
  })) << reason;
}

TEST_F(KubeletSharesTest, Issue424EachModelHasAResourceOnRequest) {
  Open();
  api::NodeConfig config;
  config.resource_per_model = true;
  Configure(config);
  EXPECT_TRUE(WaitForIds("acme.com/small", {"G0"}));
  EXPECT_TRUE(WaitForIds("acme.com/big", {"G1", "G2", "G3"}));
  EXPECT_TRUE(WaitForIds(kGpu, {}));
}

TEST_F(KubeletSharesTest, ASingleShareOnlyIsRefusedInNvidiasWords) {
  api::NodeConfig config = Shared(4);
  config.sharing.rules[0].fail_requests_greater_than_one = true;
  Serve(config, 16);
  EXPECT_THAT(
      kubelet_.Allocate(kGpu, {"G0::0", "G1::0", "G0::1"}).error().message(),
      HasSubstr("invalid request: maximum request size for shared resources is 1; found 3"));
  EXPECT_TRUE(ledger_.Get()->Free("G0"));
  EXPECT_TRUE(kubelet_.Allocate(kGpu, {"G0::0"}).ok());
}

TEST_F(KubeletSharesTest, ANameThatIsNotOfferedAnyMoreGoesAndComesBack) {
  Open();
  for (int round = 0; round < 3; ++round) {
    Configure(Shared(2, kShared));
    EXPECT_TRUE(kubelet_.WaitForHealthy(kShared, 8));
    EXPECT_TRUE(WaitForIds(kGpu, {}));
    EXPECT_TRUE(WaitForSockets({"penstock-acme.com-gpu.shared"}))
        << "the plugin of a resource without devices has stopped";
    Configure({});
    EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
    EXPECT_TRUE(WaitForIds(kShared, {}));
    EXPECT_TRUE(WaitForSockets({"penstock-acme.com-gpu"}));
  }
}

TEST_F(KubeletSharesTest, ANameThatComesBackAtOnceKeepsItsPlugin) {
  Open();
  On([this] {
    offers_.Configure(Shared(2, kShared), {});
    offers_.Configure({}, {});
  });
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
  EXPECT_TRUE(WaitForSockets({"penstock-acme.com-gpu"}));
  EXPECT_EQ(kubelet_.Registrations(kGpu), 1);
}

TEST_F(KubeletSharesTest, APluginStaysWhileAnythingOfItsNameIsHeld) {
  Open();
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G0"}).ok());
  kubelet_.SetPods({{"ml", "train", "main", kGpu, {"G0"}}});
  ASSERT_TRUE(WaitForPod("G0", "train"));
  Configure(Shared(2, kShared));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kShared, 6))
      << "without the shares of the GPU that is held whole";
  EXPECT_TRUE(WaitForIds(kGpu, {"G0"})) << "what the pod has";
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 0));
  EXPECT_THAT(kubelet_.Allocate(kShared, {"G0::0"}).error().message(), HasSubstr("ml/train"));
  On([this] { adapter_->AwaitReleases(true); });
  EXPECT_EQ(Sockets().size(), 2u) << "the resource is still held";
  EXPECT_EQ(HolderOf("G0").pod, "train") << "the kubelet lists it under the previous resource name";
  kubelet_.SetPods({});
  EXPECT_TRUE(kubelet_.WaitForHealthy(kShared, 8));
  EXPECT_TRUE(WaitForIds(kGpu, {}));
  EXPECT_TRUE(WaitForSockets({"penstock-acme.com-gpu.shared"}));
}

/// The kubelet says which devices it counts as healthy, but not whether it still has unhealthy
/// ones, which it would count for 5 minutes if the plugin ended before it has read the empty list.
TEST_F(KubeletSharesTest, APluginStaysUntilTheKubeletHasReadThatNothingIsLeft) {
  list_read_within_ = std::chrono::hours(1);
  Make();
  Open();
  Configure(Shared(2, kShared));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kShared, 8));
  EXPECT_TRUE(WaitForIds(kGpu, {}));
  EXPECT_TRUE(kubelet_.WaitForRequests(kubelet_.Requests() + 3));
  EXPECT_EQ(Sockets().size(), 2u);
}

/// A kubelet of 1.36 ends with a panic where a device that it allocates leaves its list before it
/// has stored the answer.
TEST_F(KubeletSharesTest, WhatIsAllocatedStaysInTheListAsUnhealthyIfItIsWithdrawn) {
  Open();
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G0"}).ok());
  On([this] { offers_.SetWithdrawals({{"G0", {.reason = "new"}}, {"G1", {.reason = "new"}}}); });
  EXPECT_TRUE(WaitForIds(kGpu, {"G0", "G2", "G3"}));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
  EXPECT_TRUE(WaitForKubeletHas(3, 2));
  EXPECT_FALSE(kubelet_.Allocate(kGpu, {"G0"}).ok());
  kubelet_.SetPods({{"ml", "train", "main", kGpu, {"G0"}}});
  ASSERT_TRUE(WaitForPod("G0", "train"));
  kubelet_.SetPods({});
  On([this] { adapter_->AwaitReleases(true); });
  EXPECT_TRUE(WaitForIds(kGpu, {"G2", "G3"}));
  On([this] { offers_.SetWithdrawals({}); });
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
}

TEST_F(KubeletSharesTest, OfAResourceThatAnotherPluginServesNothingIsListedForPodsThatHaveIt) {
  kubelet_.SetPods({{"ml", "old", "main", "acme.com/forgotten", {"G2"}}});
  On([this] { adapter_->Open(); });
  EXPECT_TRUE(WaitForPod("G2", "old"));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 3));
  EXPECT_EQ(kubelet_.Registrations("acme.com/forgotten"), 0);
}

TEST_F(KubeletSharesTest, SeveralSharesOfOneGpuNameItOnceToTheContainer) {
  Serve(Shared(4), 16);
  const auto answer = Must(kubelet_.Allocate(kGpu, {"G1::0", "G1::3", "G2::0"}));
  EXPECT_EQ(answer.environment.at("ACME"), "G1,G2");
  EXPECT_EQ(std::count(answer.files.begin(), answer.files.end(), "/dev/acme1:/host/dev/acme1:rw"),
            1);
  EXPECT_EQ(HolderOf("G1").slots.size(), 3u);
}

TEST_F(KubeletSharesTest, PodsUnderANameThatAnAgentBeforeUsGaveAreKnown) {
  kubelet_.SetPods({{"ml", "old", "main", "acme.com/forgotten", {"G2"}}});
  On([this] { adapter_->Open(); });
  EXPECT_TRUE(WaitForLedger([](const auto& ledger) { return ledger.HolderOf("G2") != nullptr; }));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 3)) << "held under another resource name";
}

TEST_F(KubeletSharesTest, PodsFoundAfterARestartHoldSharesAsTheyWere) {
  kubelet_.SetPods({{"ml", "old", "main", kGpu, {"G2::1", "G2::3"}}});
  OpenWith(Shared(4));
  EXPECT_TRUE(WaitForLedger([](const auto& ledger) { return ledger.HolderOf("G2") != nullptr; }));
  const auto slots = HolderOf("G2").slots;
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[1],
            (node::ledger::Slot{"G2::3", "G2", kGpu, {device::Sharing::kTimeSlicing, 4}}));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 16));
}

TEST_F(KubeletSharesTest, WhatIsHandedAgainWasGivenBackOnlyUnderTheSameName) {
  Serve(Shared(2), 8);
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G0::0"}).ok());
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G0::1"}).ok());
  const auto before = ledger_.Get()->leases;
  ASSERT_EQ(before.size(), 2u);
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G0::0"}).ok());
  const auto after = ledger_.Get()->leases;
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(ledger_.Get()->FindLease(before[0].id), nullptr);
  EXPECT_NE(ledger_.Get()->FindLease(before[1].id), nullptr) << "the other share's holder";
}

TEST_F(KubeletSharesTest, AChangeOfSharingReachesTheKubeletWhilePodsHoldShares) {
  Serve(Shared(4), 16);
  for (const char* id : {"G0::0", "G0::3", "G1::2"})
    ASSERT_TRUE(kubelet_.Allocate(kGpu, {id}).ok());
  Configure(Shared(2));
  EXPECT_TRUE(kubelet_.WaitForDevices(kGpu, [](const auto& devices) {
    return devices.size() == 10;
  })) << "two of the three shares that are held have numbers that are not offered any more";
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 6))
      << "both shares of G0 and one of G1 are held under previous numbers";
  EXPECT_EQ(ledger_.Get()->leases.size(), 3u);
  Configure(Shared(6));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 24));
}

TEST_F(KubeletSharesTest, AChangeOfFiveThousandSharesIsOneMessage) {
  Serve(Shared(1250), 5000);
  const int before = kubelet_.Messages(kGpu);
  SetHealth("G2", device::HealthState::kUnhealthy, "XID 79");
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 3750));
  EXPECT_EQ(kubelet_.Messages(kGpu), before + 1);
  EXPECT_TRUE(kubelet_.Allocate(kGpu, {"G3::1249"}).ok());
}

TEST_F(KubeletSharesTest, Issue1929AReplicaSetOnABadGpuIsUnhealthyAsAWholeAndItsNeighboursAreNot) {
  Serve(Shared(4), 16);
  SetHealth("G1", device::HealthState::kUnhealthy, "XID 79");
  EXPECT_TRUE(kubelet_.WaitForDevices(kGpu, [](const auto& devices) {
    return std::all_of(devices.begin(), devices.end(), [](const auto& one) {
      return one.second.healthy != one.first.starts_with("G1::");
    });
  }));
}

TEST_F(KubeletSharesTest, Issue231OneGpuOffTheBusFailsNoPreference) {
  Open();
  SetHealth("G0", device::HealthState::kGone, "fell off the bus");
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 3));
  const auto chosen = Must(kubelet_.Prefer(kGpu, {"G1", "G2", "G3"}, {}, 2));
  EXPECT_THAT(chosen, ElementsAre("G2", "G3"));
}

TEST_F(KubeletSharesTest, Issue1223ADriverThatIsLostLeavesNoHealthyDeviceAtOnce) {
  OpenWith(Shared(2, kShared, {"3"}));
  ASSERT_TRUE(kubelet_.WaitForHealthy(kShared, 2));
  On([this] {
    inventory_.SetVendor({"acme", nullptr, "the library is not there"});
    inventory_.SetFacts("acme", {}, "the driver is gone", control_.clock().Wall());
  });
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 0));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kShared, 0));
  EXPECT_TRUE(WaitForIds(kShared, {"G3::0", "G3::1"}))
      << "capacity stays because the devices are returning";
}

TEST_F(KubeletSharesTest, Issue118559AKubeletThatIsRestartedHasAllItsListsAgain) {
  OpenWith(Shared(2, kShared, {"3"}));
  ASSERT_TRUE(kubelet_.WaitForHealthy(kShared, 2));
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 3));
  kubelet_.Restart();
  EXPECT_TRUE(kubelet_.WaitForHealthy(kShared, 2));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 3));
  EXPECT_TRUE(kubelet_.Allocate(kShared, {"G3::1"}).ok());
}

TEST_F(KubeletSharesTest, Issue426DeviceFilesAreInEachAnswerSoThatADaemonReloadKeepsThem) {
  Serve(Shared(2), 8);
  const auto answer = Must(kubelet_.Allocate(kGpu, {"G1::1"}));
  EXPECT_THAT(answer.files, testing::UnorderedElementsAre("/dev/acme1:/host/dev/acme1:rw",
                                                          "/dev/acmectl:/host/dev/acmectl:rw"));
}

TEST_F(KubeletSharesTest, Issue386SharesAreSpreadOrPackedAsThePolicySays) {
  Serve(Shared(4), 16);
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G2::0"}).ok());
  const std::vector<std::string> left = {"G0::0", "G1::0", "G1::1", "G2::1", "G2::2", "G3::0"};
  policy_ = api::SharePolicy::kPacked;
  const auto packed = Must(kubelet_.Prefer(
      kGpu, {"G1::0", "G1::1", "G1::2", "G1::3", "G2::1", "G2::2", "G2::3"}, {}, 1));
  EXPECT_THAT(packed, ElementsAre("G2::1"));
  policy_ = api::SharePolicy::kDistributed;
  const auto spread = Must(kubelet_.Prefer(
      kGpu, {"G1::0", "G1::1", "G1::2", "G1::3", "G2::1", "G2::2", "G2::3"}, {}, 1));
  EXPECT_THAT(spread, ElementsAre("G1::0"));
  const auto two = kubelet_.Prefer(kGpu, left, {}, 2);
  ASSERT_TRUE(two.ok() && two->size() == 2);
  EXPECT_NE((*two)[0].substr(0, 2), (*two)[1].substr(0, 2))
      << "the two shares of one request come from different GPUs";
}

/// Three of four devices are shared through a server; the first one has none.
class KubeletServersTest : public KubeletSharesTest {
 protected:
  KubeletServersTest() {
    On([this] { offers_.FollowServers("acme", servers_); });
    api::NodeConfig config;
    config.sharing.rules = {
        {.devices = {"1", "2", "3"}, .strategy = api::ShareStrategy::kServer, .replicas = 2}};
    OpenWith(config);
  }

  void Servers(bool ready, const std::string& reason = "") {
    device::SharedDevice device{.set = kGpu, .ready = ready, .reason = reason};
    if (ready) device.isolation = device::Isolation::kMemoryPerProcess;
    device.container.environment["MPS_PIPE"] = "/mps/pipe";
    device.container.mounts = {{"/mps/pipe", "/run/mps/gpu/pipe", false},
                               {"/dev/shm/mps", "/run/mps/gpu/shm", true}};
    On([&] {
      servers_.Set(device::SharedDevices{{"G1", device}, {"G2", device}, {"G3", device}});
    });
  }
};

TEST_F(KubeletServersTest, Issue634NothingIsGivenOutBeforeTheServerIsReady) {
  EXPECT_TRUE(WaitForIds(kGpu, {"G0", "G1::0", "G1::1", "G2::0", "G2::1", "G3::0", "G3::1"}));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 1))
      << "a GPU that is not shared does not wait for a server";
  Servers(false, "its MPS server is being started");
  EXPECT_THAT(kubelet_.Allocate(kGpu, {"G1::0"}).error().message(),
              HasSubstr("its MPS server is being started"));
  Servers(true);
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 7));
  EXPECT_TRUE(kubelet_.Allocate(kGpu, {"G1::0"}).ok());
}

TEST_F(KubeletServersTest, Issue1132TheServersFoldersAreMountedBesideThePodsOwnSharedMemory) {
  Servers(true);
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 7));
  const auto answer = Must(kubelet_.Allocate(kGpu, {"G1::0", "G2::0"}));
  EXPECT_EQ(answer.environment.at("MPS_PIPE"), "/mps/pipe");
  EXPECT_EQ(answer.environment.at("ACME"), "G1,G2");
  EXPECT_THAT(answer.mounts,
              ElementsAre("/mps/pipe:/run/mps/gpu/pipe", "/dev/shm/mps:/run/mps/gpu/shm"))
      << "each once";
  EXPECT_TRUE(kubelet_.Allocate(kGpu, {"G0"})->mounts.empty());
}

TEST_F(KubeletServersTest, Issue647AServerThatDiesTakesItsSharesOutOfTheListUntilItIsBack) {
  Servers(true);
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 7));
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G1::0"}).ok());
  Servers(false, "its MPS control daemon has died");
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 1));
  EXPECT_EQ(ledger_.Get()->leases.size(), 1u) << "the holder of a share keeps it";
  Servers(true);
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 7));
}

TEST(SocketPrefixOf, IsShortEnoughAndDistinguishesLongNames) {
  EXPECT_EQ(SocketPrefixOf("nvidia.com/gpu.shared"), "penstock-nvidia.com-gpu.shared");
  const std::string one = SocketPrefixOf("nvidia.com/" + std::string(50, 'a') + "1"),
                    other = SocketPrefixOf("nvidia.com/" + std::string(50, 'a') + "2");
  EXPECT_NE(one, other);
  EXPECT_LE(std::string("/var/lib/kubelet/device-plugins/").size() + one.size() +
                std::string("-4194304-01234567.sock").size(),
            107u);
}

}  // namespace
}  // namespace penstock::adapter::kubelet
