#include "protocol/kubelet/device_plugin.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/core/testing/must.h"
#include "os/core/fd.h"
#include "os/core/file.h"
#include "os/testing/eventually.h"
#include "os/testing/temporary_folder.h"
#include "protocol/kubelet/fake/fake_kubelet.h"
#include "protocol/kubelet/testing/plugin_fixture.h"

namespace penstock::protocol::kubelet {
namespace {

using Phase = PluginState::Phase;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

class DevicePluginTest : public testing::Test {
 protected:
  std::vector<std::string> Sockets() const {
    std::vector<std::string> sockets;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_ / "kubelet/device-plugins")) {
      if (entry.is_socket()) sockets.push_back(entry.path().filename());
    }
    return sockets;
  }

  /// A socket without a listener.
  void LeaveDeadSocket(const std::string& name, std::time_t made = std::time(nullptr)) {
    const std::string path = folder_ / ("kubelet/device-plugins/" + name);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    const timespec times[2] = {{made, 0}, {made, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  /// Starts a kubelet, and a plugin whose list it reads.
  void Serve() {
    kubelet_.Start();
    plugin_.Start(TwoDevices());
    ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 2)) << plugin_.last().reason;
    ASSERT_TRUE(plugin_.WaitFor(Phase::kServing));
  }

  os::TemporaryFolder folder_;
  FakeKubelet kubelet_{folder_ / "kubelet"};
  std::optional<os::TurnedLoop> time_;
  RunningPlugin plugin_{folder_ / "kubelet"};
};

TEST_F(DevicePluginTest, WaitsForTheKubeletWithoutMakingItsFolder) {
  plugin_.Start(TwoDevices());
  EXPECT_TRUE(plugin_.WaitFor(Phase::kWaitingForKubelet, "does not exist"));
  EXPECT_FALSE(os::Exists(folder_ / "kubelet"));
  kubelet_.Start();
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
  EXPECT_TRUE(plugin_.WaitFor(Phase::kServing));
  EXPECT_EQ(kubelet_.Registrations(kGpu), 1);
}

TEST_F(DevicePluginTest, ReportsHealthAndNumaNodes) {
  kubelet_.Start();
  plugin_.Start({{"GPU-a", true, {0}},
                 {"GPU-b", false, {1}},
                 {"", true, {}},
                 {"GPU-a", false, {}},
                 {"\xff", true, {}}});
  EXPECT_TRUE(kubelet_.WaitForDevices(kGpu, [](const auto& devices) {
    return devices == FakeKubelet::Devices{{"GPU-a", {true, {0}}}, {"GPU-b", {false, {1}}}};
  }));
}

TEST_F(DevicePluginTest, ReportsNothingTwice) {
  Serve();
  plugin_.Update({{"GPU-a", true, {0}}, {"GPU-b", true, {1}}});  // the same in another order
  plugin_.Update({{"GPU-a", true, {0}}, {"GPU-b", false, {1}}});
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 1));
  EXPECT_EQ(kubelet_.Messages(kGpu), 2);
}

TEST_F(DevicePluginTest, SendsFiveThousandDevices) {
  kubelet_.Start();
  std::vector<PluginDevice> devices;
  for (int i = 0; i < 5000; ++i)
    devices.push_back(
        {"GPU-00000000-0000-0000-0000-000000000000::" + std::to_string(i), true, {0, 1}});
  plugin_.Start(devices);
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 5000));
  devices[17].healthy = false;
  plugin_.Update(devices);
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 4999));
}

TEST_F(DevicePluginTest, SaysAnEmptyListToo) {
  Serve();
  plugin_.Update({});
  EXPECT_TRUE(kubelet_.WaitForDevices(kGpu, [](const auto& devices) { return devices.empty(); }));
}

TEST_F(DevicePluginTest, AnswersAllocateWithSortedIds) {
  Serve();
  const auto answer = Must(kubelet_.Allocate(kGpu, {"GPU-b", "GPU-a"}));
  EXPECT_EQ(answer.environment.at("IDS"), "GPU-a,GPU-b");
  EXPECT_THAT(answer.files, ElementsAre("/dev/nvidia0:/host/dev/nvidia0:rw"));
  EXPECT_THAT(answer.cdi_devices, ElementsAre("nvidia.com/gpu=0"));
}

TEST_F(DevicePluginTest, RefusesForeignIdsAndSaysWhatToDo) {
  Serve();
  EXPECT_THAT(kubelet_.Allocate(kGpu, {"GPU-c"}).error().message(),
              HasSubstr("GPU-c is no longer a device of nvidia.com/gpu"));
  EXPECT_EQ(kubelet_.Allocate(kGpu, {""}).error().code(), base::Code::kInvalidArgument);
  EXPECT_EQ(kubelet_.Allocate(kGpu, {}).error().code(), base::Code::kInvalidArgument);
  EXPECT_THAT(kubelet_.Allocate(kGpu, {"GPU-a", "GPU-a"}).error().message(), HasSubstr("twice"));
  EXPECT_EQ(kubelet_.Allocate(kGpu, std::vector<std::string>(20000, "GPU-a")).error().code(),
            base::Code::kInvalidArgument);
  // A container request whose id is not UTF-8, a truncated message, and an empty message.
  const std::string method = "/v1beta1.DevicePlugin/Allocate";
  EXPECT_FALSE(kubelet_.SendBytes(kGpu, method, "\x0a\x03\x0a\x01\xff").ok());
  EXPECT_FALSE(kubelet_.SendBytes(kGpu, method, "\x0a\x7f\x0a").ok());
  EXPECT_TRUE(kubelet_.SendBytes(kGpu, method, "").ok());
  EXPECT_EQ(kubelet_.SendBytes(kGpu, "/v1beta1.DevicePlugin/Nonsense", "").error().code(),
            base::Code::kUnimplemented);
  EXPECT_TRUE(kubelet_.Allocate(kGpu, {"GPU-a"}).ok());
}

TEST_F(DevicePluginTest, AnswersSixtyFourCallersEachItsOwn) {
  Serve();
  std::atomic<int> right = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 64; ++caller) {
    callers.emplace_back([this, &right, caller] {
      const std::string id = caller % 2 == 0 ? "GPU-a" : "GPU-b";
      for (int i = 0; i < 20; ++i) {
        const auto answer = kubelet_.Allocate(kGpu, {id});
        if (answer.ok() && answer->environment.at("IDS") == id) ++right;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(right, 64 * 20);
}

TEST_F(DevicePluginTest, AnswersForAHandlerThatNeverDoes) {
  std::vector<Reply<std::vector<ContainerEdits>>> kept;
  std::mutex mutex;
  plugin_.options.answer_within = milliseconds(50);
  plugin_.handler.allocate = [&](const AllocateRequest&,
                                 const Reply<std::vector<ContainerEdits>>& reply) {
    std::lock_guard lock(mutex);
    kept.push_back(reply);
  };
  Serve();
  EXPECT_EQ(kubelet_.Allocate(kGpu, {"GPU-a"}).error().code(), base::Code::kDeadlineExceeded);
  EXPECT_EQ(kubelet_.Allocate(kGpu, {"GPU-a"}).error().code(), base::Code::kDeadlineExceeded);
  std::lock_guard lock(mutex);
  for (const auto& reply : kept) reply(std::vector<ContainerEdits>(1));  // too late, and harmless
}

TEST_F(DevicePluginTest, AnswersForAHandlerThatDropsTheRequest) {
  plugin_.options.answer_within = std::chrono::hours(1);
  plugin_.handler.allocate = [](const AllocateRequest&, const Reply<std::vector<ContainerEdits>>&) {
  };
  Serve();
  EXPECT_EQ(kubelet_.Allocate(kGpu, {"GPU-b"}).error().code(), base::Code::kUnavailable);
}

TEST_F(DevicePluginTest, RefusesEditsThatTheKubeletCouldNotRead) {
  plugin_.handler.allocate = [](const AllocateRequest& request,
                                const Reply<std::vector<ContainerEdits>>& reply) {
    ContainerEdits edits;
    edits.environment["X"] = "\xff";
    reply(std::vector<ContainerEdits>(request.containers[0][0] == "GPU-a" ? 1 : 2, edits));
  };
  Serve();
  EXPECT_THAT(kubelet_.Allocate(kGpu, {"GPU-a"}).error().message(), HasSubstr("UTF-8"));
  EXPECT_THAT(kubelet_.Allocate(kGpu, {"GPU-b"}).error().message(),
              HasSubstr("edits for 2 containers"));
}

TEST_F(DevicePluginTest, LetsTheKubeletChooseWhenInDoubt) {
  plugin_.handler.prefer = [&](const PreferRequest& request,
                               const Reply<std::vector<std::vector<std::string>>>& reply) {
    const auto& container = request.containers[0];
    if (container.size == 1)
      return reply(std::vector<std::vector<std::string>>{{container.available[0]}});
    reply(base::Error(base::Code::kInternal, "no idea"));
  };
  Serve();
  EXPECT_THAT(*kubelet_.Prefer(kGpu, {"GPU-b", "GPU-a"}, {}, 1), ElementsAre("GPU-a"));
  EXPECT_THAT(*kubelet_.Prefer(kGpu, {"GPU-b", "GPU-a"}, {}, 2), ElementsAre());
}

TEST_F(DevicePluginTest, LetsTheKubeletChooseWhereNoAnswerComes) {
  plugin_.options.answer_within = milliseconds(50);
  std::vector<Reply<std::vector<std::vector<std::string>>>> kept;
  plugin_.handler.prefer = [&](const PreferRequest&,
                               const Reply<std::vector<std::vector<std::string>>>& reply) {
    kept.push_back(reply);
  };
  Serve();
  const auto chosen = Must(kubelet_.Prefer(kGpu, {"GPU-b", "GPU-a"}, {}, 2));
  EXPECT_THAT(chosen, ElementsAre());
  EXPECT_EQ(kept.size(), 1u);
}

TEST_F(DevicePluginTest, RegistersOnceMoreForEachStreamThatEnds) {
  time_.emplace("plugin");
  plugin_.Follow(*time_);
  Serve();
  constexpr int kEnds = 3;
  for (int ends = 1; ends <= kEnds; ++ends) {
    kubelet_.EndStream(kGpu);
    // The clock is never ahead of the machine's, so that a call that is slow here is not late
    // there.
    ASSERT_TRUE(
        time_->AdvanceUntil(milliseconds(1), [&] { return kubelet_.Registrations(kGpu) > ends; }));
    EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
    EXPECT_TRUE(plugin_.WaitFor(Phase::kServing));
    // A registration over the live stream would come before the next one that is due, and be
    // counted with it.
    for (int step = 0; step < 10; ++step) time_->Advance(std::chrono::seconds(10));
  }
  EXPECT_EQ(kubelet_.Registrations(kGpu), kEnds + 1);
}

TEST_F(DevicePluginTest, FindsARestartedKubeletAlthoughItRemovedAllSockets) {
  Serve();
  for (int restart = 0; restart < 5; ++restart) {
    kubelet_.Restart();
    EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2)) << plugin_.last().reason;
    EXPECT_TRUE(kubelet_.Allocate(kGpu, {"GPU-a"}).ok());
  }
  EXPECT_EQ(Sockets().size(), 2u);  // the kubelet's and ours
}

TEST_F(DevicePluginTest, WaitsForAKilledKubeletWhoseSocketIsStillThere) {
  Serve();
  kubelet_.Kill();
  EXPECT_TRUE(plugin_.WaitFor(Phase::kWaitingForKubelet, "no kubelet answers"));
  kubelet_.Start();
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
}

TEST_F(DevicePluginTest, MakesItsSocketAgainWhenSomeoneRemovedIt) {
  Serve();
  for (const auto& socket : Sockets()) {
    if (socket != "kubelet.sock")
      std::filesystem::remove(folder_ / ("kubelet/device-plugins/" + socket));
  }
  kubelet_.EndStream(kGpu);
  EXPECT_TRUE(kubelet_.WaitForRegistrations(kGpu, 2));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
  const auto endpoints = kubelet_.Endpoints(kGpu);
  EXPECT_NE(endpoints.front(), endpoints.back());
}

TEST_F(DevicePluginTest, SaysWhyTheKubeletRefusesAndTriesAgain) {
  kubelet_.Refuse("the ResourceName \"nvidia.com/gpu\" is invalid");
  kubelet_.Start();
  plugin_.Start(TwoDevices());
  EXPECT_TRUE(plugin_.WaitFor(Phase::kRefused, "is invalid"));
  kubelet_.Refuse("");
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
  EXPECT_TRUE(plugin_.WaitFor(Phase::kServing));
}

TEST_F(DevicePluginTest, TakesOverFromAnOlderAgentThatThenEnds) {
  kubelet_.Start();
  auto older = std::make_unique<RunningPlugin>(folder_ / "kubelet");
  older->Start(TwoDevices());
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
  plugin_.Start(TwoDevices());
  ASSERT_TRUE(plugin_.WaitFor(Phase::kServing));
  older.reset();  // the kubelet answers by closing the newer one's stream
  EXPECT_TRUE(kubelet_.WaitForRegistrations(kGpu, 3));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
  EXPECT_TRUE(kubelet_.Allocate(kGpu, {"GPU-a"}).ok());
}

TEST_F(DevicePluginTest, NoticesThatANewcomerThatLeftTookItsDevicesAlong) {
  plugin_.options.audit = kQuickAudit;
  Serve();
  auto newcomer = std::make_unique<RunningPlugin>(folder_ / "kubelet");
  newcomer->Start(TwoDevices());
  ASSERT_TRUE(newcomer->WaitFor(Phase::kServing));
  newcomer.reset();  // the kubelet now counts no devices and leaves our stream open
  EXPECT_TRUE(kubelet_.WaitForRegistrations(kGpu, 3));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
  EXPECT_TRUE(kubelet_.Allocate(kGpu, {"GPU-a"}).ok());
}

TEST_F(DevicePluginTest, RegisteringAgainTakesNoDevicesAwayFromAKubeletThatOnlyCountsLate) {
  plugin_.options.audit = kQuickAudit;
  Serve();
  kubelet_.CountLate(true);
  (void)kubelet_.FewestHealthy(kGpu);
  plugin_.Update({{"GPU-a::0", true, {0}}, {"GPU-a::1", true, {0}}});
  // This takes longer than the audit waits, so its verdict is wrong.
  ASSERT_TRUE(kubelet_.WaitForRegistrations(kGpu, 2));
  ASSERT_TRUE(plugin_.WaitFor(Phase::kServing));
  EXPECT_TRUE(kubelet_.Allocate(kGpu, {"GPU-a::0"}).ok());
  kubelet_.CountLate(false);
  EXPECT_TRUE(kubelet_.WaitForDevices(
      kGpu, [](const auto& devices) { return devices.contains("GPU-a::1"); }));
  EXPECT_EQ(kubelet_.FewestHealthy(kGpu), 2u);
  plugin_.Update({{"GPU-a::0", true, {0}}, {"GPU-a::1", false, {0}}});
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 1));
}

TEST_F(DevicePluginTest, AKubeletThatIsBehindWhenItIsAskedOnceIsNotRegisteredWithAgain) {
  plugin_.options.audit = kQuickAudit;
  plugin_.options.audit.every = plugin_.options.audit.again = std::chrono::hours(1);
  Serve();
  ASSERT_TRUE(kubelet_.WaitForRequests(1));
  kubelet_.CountLate(true);
  plugin_.Update({{"GPU-a::0", true, {0}}});
  LeaveDeadSocket("somebody-else.sock");  // a reason to ask again
  ASSERT_TRUE(kubelet_.WaitForRequests(2));
  kubelet_.CountLate(false);
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 1));
  EXPECT_EQ(kubelet_.Registrations(kGpu), 1);
}

TEST_F(DevicePluginTest, LeavesTheListOfAPluginAloneThatTookItsPlaceAtTheKubelet) {
  plugin_.options.audit = kQuickAudit;
  Serve();
  auto other = std::make_unique<RunningPlugin>(folder_ / "kubelet", "nvidia-gpu");
  other->options.own_prefix = "penstock-nvidia-gpu";  // it ignores our sockets
  other->Start({{"theirs", true, {}}});
  EXPECT_TRUE(plugin_.WaitFor(Phase::kSteppedBack, "already served by nvidia-gpu-"))
      << plugin_.last().reason;
  plugin_.Update({{"GPU-a", true, {0}}});
  ASSERT_TRUE(kubelet_.WaitForRequests(kubelet_.Requests() + 2));  // it is looked for repeatedly
  EXPECT_TRUE(kubelet_.WaitForDevices(
      kGpu, [](const auto& devices) { return devices.size() == 1 && devices.contains("theirs"); }));
  other.reset();
  EXPECT_TRUE(kubelet_.WaitForDevices(
      kGpu, [](const auto& devices) { return devices.size() == 1 && devices.contains("GPU-a"); }));
  EXPECT_TRUE(plugin_.WaitFor(Phase::kServing));
  // With times this short, it may just register once more.
  EXPECT_TRUE(os::Eventually([this] { return kubelet_.Allocate(kGpu, {"GPU-a"}).ok(); }));
}

TEST_F(DevicePluginTest, StepsBackFromAnotherPluginAndNamesIt) {
  kubelet_.Start();
  auto other = std::make_unique<RunningPlugin>(folder_ / "kubelet", "nvidia-gpu");
  other->Start(TwoDevices());
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
  plugin_.Start(TwoDevices());
  EXPECT_TRUE(plugin_.WaitFor(Phase::kSteppedBack, "already served by nvidia-gpu-"))
      << plugin_.last().reason;
  EXPECT_THAT(plugin_.last().reason, HasSubstr("pid " + std::to_string(::getpid())));
  EXPECT_EQ(kubelet_.Registrations(kGpu), 1);
  other.reset();
  EXPECT_TRUE(plugin_.WaitFor(Phase::kServing));
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
}

TEST_F(DevicePluginTest, PaysNoHeedToPluginsOfOtherResources) {
  kubelet_.Start();
  RunningPlugin other(folder_ / "kubelet", "rdma");
  other.options.resource = "rdma/hca";
  other.Start(TwoDevices());
  ASSERT_TRUE(kubelet_.WaitForHealthy("rdma/hca", 2));
  plugin_.Start(TwoDevices());
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
}

TEST_F(DevicePluginTest,
       AKubeletThatStillCountsWhatOursServedIsNotServedByThePluginOfAnotherResource) {
  kubelet_.Start();
  RunningPlugin other(folder_ / "kubelet", "rdma");
  other.options.resource = "rdma/hca";
  other.Start(TwoDevices());
  ASSERT_TRUE(kubelet_.WaitForHealthy("rdma/hca", 2));
  auto former = std::make_unique<RunningPlugin>(folder_ / "kubelet");
  former->Start(TwoDevices());
  ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
  kubelet_.DropLate(true);
  former.reset();
  plugin_.options.recheck = std::chrono::hours(1);  // a step back would last
  const int asked = kubelet_.Requests();
  plugin_.Start(TwoDevices());
  ASSERT_TRUE(kubelet_.WaitForRequests(asked + 1));
  kubelet_.DropLate(false);
  EXPECT_TRUE(plugin_.WaitFor(Phase::kServing)) << plugin_.last().reason;
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
}

TEST_F(DevicePluginTest, LeavesNoSocketBehindAndTouchesNoOther) {
  kubelet_.Start();
  LeaveDeadSocket("penstock-nvidia-gpu-1-dead.sock", 1000);
  LeaveDeadSocket("penstock-nvidia-gpu-1-young.sock");
  LeaveDeadSocket("somebody-else.sock", 1000);
  {
    RunningPlugin plugin(folder_ / "kubelet");
    plugin.Start(TwoDevices());
    ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
  }
  auto sockets = Sockets();
  std::sort(sockets.begin(), sockets.end());
  EXPECT_THAT(sockets, ElementsAre("kubelet.sock", "penstock-nvidia-gpu-1-young.sock",
                                   "somebody-else.sock"));
}

TEST(DevicePlugin, RefusesAFolderWhosePathIsTooLongForASocket) {
  os::Loop loop("plugin");
  HandlerOfFunctions handler;
  DevicePlugin::Options options;
  options.resource = kGpu;
  options.socket_prefix = "penstock-nvidia-gpu";
  options.kubelet_dir = "/" + std::string(80, 'x');
  EXPECT_THAT(DevicePlugin::Create(loop, options, handler, {}).error().message(), HasSubstr("107"));
  options.kubelet_dir = "kubelet";
  EXPECT_THAT(DevicePlugin::Create(loop, options, handler, {}).error().message(),
              HasSubstr("absolute"));
}

TEST(DevicePlugin, UnderstandsFoldersWithOddCharacters) {
  const os::TemporaryFolder folder;
  FakeKubelet kubelet(folder / "a b%41#?");
  kubelet.Start();
  RunningPlugin plugin(kubelet.kubelet_dir());
  plugin.Start(TwoDevices());
  EXPECT_TRUE(kubelet.WaitForHealthy(kGpu, 2));
}

}  // namespace
}  // namespace penstock::protocol::kubelet
