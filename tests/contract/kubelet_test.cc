// Runs the same test cases against the fake kubelet and against the kubelet's own device manager,
// checkpoint and pod-resources server, which tests/e2e/cluster/go/kubelet-devices runs without the
// rest of a kubelet. The cases contain each message that a kubelet and Penstock's plugin exchange.
// tests/contract/real_test.py passes that program in PENSTOCK_CONTRACT_KUBELET.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deviceplugin.grpc.pb.h"
#include "os/core/testing/temporary_folder.h"
#include "protocol/kubelet/checkpoint.h"
#include "protocol/kubelet/fake/fake_kubelet.h"
#include "protocol/kubelet/pod_resources.h"
#include "protocol/kubelet/testing/plugin_fixture.h"
#include "protocol/rpc/unix.h"

namespace penstock::protocol::kubelet {
namespace {

using Json = nlohmann::json;
using Phase = PluginState::Phase;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using namespace std::chrono_literals;

constexpr auto kWithin = 60s;

/// A kubelet's counts of a resource.
struct Counts {
  long capacity = 0, allocatable = 0;
  bool operator==(const Counts&) const = default;
};

/// A pod's container, admitted or rejected.
struct Container {
  std::string error;
  std::vector<std::string> ids;  ///< sorted
  SeenAllocation edits;
};

class Kubelet {
 public:
  explicit Kubelet(std::string folder) : folder_(std::move(folder)) {}
  virtual ~Kubelet() = default;

  virtual void Start() = 0;
  virtual void Kill() = 0;
  virtual Counts Of(const std::string& resource) = 0;
  virtual int Registrations(const std::string& resource) = 0;
  /// Starts a pod "test/NAME" with one container "c" that requests `count` of a resource.
  virtual Container Run(const std::string& pod, const std::string& resource, int count) = 0;
  virtual void End(const std::string& pod) = 0;
  /// Closes the connection to the resource's plugin.
  virtual void Drop(const std::string& resource) = 0;

  const std::string& folder() const { return folder_; }

 private:
  const std::string folder_;
};

class Fake final : public Kubelet {
 public:
  explicit Fake(const std::string& folder) : Kubelet(folder), fake_(folder) {}

  void Start() override { fake_.Start(); }
  void Kill() override { fake_.Kill(); }
  Counts Of(const std::string& resource) override {
    Counts counts;
    for (const auto& [id, device] : DevicesOf(resource)) {
      ++counts.capacity;
      counts.allocatable += device.healthy ? 1 : 0;
    }
    return counts;
  }
  int Registrations(const std::string& resource) override { return fake_.Registrations(resource); }

  /// The steps of the kubelet's admission, with the messages of the fake.
  Container Run(const std::string& pod, const std::string& resource, int count) override {
    std::set<std::string> held;
    for (const FakePod& other : pods_) held.insert(other.ids.begin(), other.ids.end());
    std::vector<std::string> free;
    for (const auto& [id, device] : DevicesOf(resource))
      if (device.healthy && !held.contains(id)) free.push_back(id);
    const auto preferred = fake_.Prefer(resource, free, {}, count);
    if (!preferred.ok()) return {.error = preferred.error().message()};
    Container container{.ids = preferred->empty() ? std::vector(free.begin(), free.begin() + count)
                                                  : *preferred};
    std::sort(container.ids.begin(), container.ids.end());
    const auto answer = fake_.Allocate(resource, container.ids);
    if (!answer.ok()) return {.error = answer.error().message()};
    container.edits = *answer;
    pods_.push_back({"test", pod, "c", resource, container.ids});
    fake_.SetPods(pods_);
    return container;
  }
  void End(const std::string& pod) override {
    std::erase_if(pods_, [&](const FakePod& one) { return one.pod == pod; });
    fake_.SetPods(pods_);
  }
  void Drop(const std::string& resource) override { fake_.EndStream(resource); }

 private:
  FakeKubelet::Devices DevicesOf(const std::string& resource) {
    FakeKubelet::Devices devices;
    fake_.WaitForDevices(
        resource,
        [&](const FakeKubelet::Devices& now) {
          devices = now;
          return true;
        },
        0ms);
    return devices;
  }

  FakeKubelet fake_;
  std::vector<FakePod> pods_;
};

class Real final : public Kubelet {
 public:
  Real(const std::string& folder, std::string program)
      : Kubelet(folder), program_(std::move(program)) {}
  ~Real() override { Kill(); }

  void Start() override {
    int in[2], out[2];
    ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::execl(program_.c_str(), program_.c_str(), folder().c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = ::fdopen(in[1], "w");
    from_ = ::fdopen(out[0], "r");
    Read();  // it serves now
  }
  void Kill() override {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(std::exchange(child_, 0), nullptr, 0);
    std::fclose(to_);
    std::fclose(from_);
  }
  Counts Of(const std::string& resource) override {
    const Json answer = Ask({{"do", "resource"}, {"resource", resource}});
    return {answer["capacity"], answer["allocatable"]};
  }
  int Registrations(const std::string& resource) override {
    return Ask({{"do", "resource"}, {"resource", resource}})["registrations"];
  }
  Container Run(const std::string& pod, const std::string& resource, int count) override {
    const Json answer = Ask({{"do", "run"},
                             {"namespace", "test"},
                             {"pod", pod},
                             {"container", "c"},
                             {"resource", resource},
                             {"count", count}});
    if (answer.contains("error")) return {.error = answer["error"]};
    Container container{.ids = Texts(answer["devices"])};
    std::sort(container.ids.begin(), container.ids.end());
    container.edits = {answer["environment"], Texts(answer["files"]), Texts(answer["mounts"]),
                       Texts(answer["cdi"]), answer["annotations"]};
    return container;
  }
  void End(const std::string& pod) override {
    Ask({{"do", "end"}, {"namespace", "test"}, {"pod", pod}});
  }
  void Drop(const std::string& resource) override { Ask({{"do", "drop"}, {"resource", resource}}); }

 private:
  static std::vector<std::string> Texts(const Json& list) {
    return list.is_null() ? std::vector<std::string>() : list.get<std::vector<std::string>>();
  }

  Json Ask(const Json& command) {
    std::fprintf(to_, "%s\n", command.dump().c_str());
    std::fflush(to_);
    return Read();
  }
  Json Read() {
    std::string line;
    for (int c = std::fgetc(from_); c != '\n' && c != EOF; c = std::fgetc(from_))
      line += static_cast<char>(c);
    Json answer = Json::parse(line, nullptr, false);
    EXPECT_FALSE(answer.is_discarded()) << "the program ended: " << line;
    return answer.is_object() ? answer : Json::object();
  }

  const std::string program_;
  pid_t child_ = 0;
  std::FILE *to_ = nullptr, *from_ = nullptr;
};

class KubeletContract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string folder = folder_ / "kubelet";
    if (GetParam() == "fake") {
      kubelet_ = std::make_unique<Fake>(folder);
    } else {
      const char* program = std::getenv("PENSTOCK_CONTRACT_KUBELET");
      ASSERT_NE(program, nullptr) << "tests/contract/real_test.py names the program";
      kubelet_ = std::make_unique<Real>(folder, program);
    }
  }

  void Serve() {
    kubelet_->Start();
    plugin_.Start(TwoDevices());
    ASSERT_TRUE(Has({2, 2}));
  }

  static bool Eventually(const std::function<bool()>& predicate) {
    for (const auto end = std::chrono::steady_clock::now() + kWithin;
         std::chrono::steady_clock::now() < end;) {
      if (predicate()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return predicate();
  }
  bool Has(const Counts& counts, const std::string& resource = kGpu) {
    return Eventually([&] { return kubelet_->Of(resource) == counts; });
  }
  bool Registered(int times) {
    return Eventually([&] { return kubelet_->Registrations(kGpu) >= times; });
  }
  /// After a new registration. The end of an earlier stream ends the newest one, too, whenever the
  /// kubelet comes to it; the plugin then registers once more.
  bool Runs(int devices) {
    return Eventually([&] { return kubelet_->Run("p", kGpu, devices).error.empty(); });
  }

  /// Queries pod-resources with Penstock's own client.
  template <typename T>
  T PodResourcesSay(void (PodResources::*ask)(std::function<void(base::Result<T>)>)) {
    os::Loop loop("resources");
    base::Result<T> result = T();
    std::optional<PodResources> client(std::in_place, loop, folder_ / "kubelet");
    loop.Post([&] {
      ((*client).*ask)([&](base::Result<T> answer) {
        result = std::move(answer);
        loop.Stop();
      });
    });
    loop.Run();
    client.reset();
    EXPECT_TRUE(result.ok()) << result.error().ToString();
    return result.ok() ? *result : T();
  }
  auto Allocatable() { return PodResourcesSay(&PodResources::GetAllocatable); }
  auto Listed() {
    std::vector<std::string> lines;
    for (const PodDevices& pod : PodResourcesSay(&PodResources::List)) {
      std::string line =
          pod.namespace_name + "/" + pod.pod + "/" + pod.container + " " + pod.resource;
      for (const std::string& id : pod.ids) line += " " + id;
      lines.push_back(line);
    }
    return lines;
  }

  std::vector<std::string> Sockets() const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_ / "kubelet/device-plugins"))
      if (entry.is_socket()) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  grpc::Status Register(const std::string& version, const std::string& resource,
                        const std::string& endpoint) {
    rpc::StartGrpc();
    const auto stub = v1beta1::Registration::NewStub(
        rpc::OpenChannel(folder_ / "kubelet/device-plugins/kubelet.sock"));
    v1beta1::RegisterRequest request;
    request.set_version(version);
    request.set_resource_name(resource);
    request.set_endpoint(endpoint);
    grpc::ClientContext context;
    v1beta1::Empty empty;
    return stub->Register(&context, request, &empty);
  }

  const os::TemporaryFolder folder_;
  std::unique_ptr<Kubelet> kubelet_;
  RunningPlugin plugin_{folder_ / "kubelet"};
};

INSTANTIATE_TEST_SUITE_P(Contract, KubeletContract, testing::Values("fake", "real"),
                         [](const auto& where) { return where.param; });

TEST_P(KubeletContract, ReadsTheListOfARegisteredPlugin) {
  Serve();
  EXPECT_TRUE(plugin_.WaitFor(Phase::kServing));
  EXPECT_EQ(kubelet_->Registrations(kGpu), 1);
  EXPECT_THAT(Allocatable(), ElementsAre(Pair(kGpu, ElementsAre("GPU-a", "GPU-b"))));
  EXPECT_THAT(Listed(), IsEmpty());
}

TEST_P(KubeletContract, FollowsEachListThatTheStreamCarries) {
  Serve();
  plugin_.Update({{"GPU-a", true, {0}}, {"GPU-b", false, {1}}});
  EXPECT_TRUE(Has({2, 1}));
  EXPECT_THAT(Allocatable(), ElementsAre(Pair(kGpu, ElementsAre("GPU-a"))));
  plugin_.Update({{"GPU-c", true, {}}});
  EXPECT_TRUE(Has({1, 1}));
  EXPECT_THAT(Allocatable(), ElementsAre(Pair(kGpu, ElementsAre("GPU-c"))));
  plugin_.Update({});
  EXPECT_TRUE(Has({0, 0}));
  EXPECT_THAT(Allocatable(), IsEmpty());
}

TEST_P(KubeletContract, GivesAContainerWhatThePluginAnswers) {
  plugin_.handler.allocate = [](const AllocateRequest& request,
                                const Reply<std::vector<ContainerEdits>>& reply) {
    EXPECT_EQ(request.containers.size(), 1u);
    ContainerEdits edits;
    edits.environment["IDS"] = request.containers[0][0] + "," + request.containers[0][1];
    edits.files.push_back({"/dev/nvidia0", "/host/dev/nvidia0", "rw"});
    edits.mounts.push_back({"/etc/x", "/host/etc/x", true});
    edits.cdi_devices.push_back("nvidia.com/gpu=0");
    edits.annotations["penstock.io/x"] = "y";
    reply({{edits}});
  };
  Serve();
  const Container container = kubelet_->Run("p", kGpu, 2);
  EXPECT_EQ(container.error, "");
  EXPECT_THAT(container.ids, ElementsAre("GPU-a", "GPU-b"));
  EXPECT_THAT(container.edits.environment, ElementsAre(Pair("IDS", "GPU-a,GPU-b")));
  EXPECT_THAT(container.edits.files, ElementsAre("/dev/nvidia0:/host/dev/nvidia0:rw"));
  EXPECT_THAT(container.edits.mounts, ElementsAre("/etc/x:/host/etc/x"));
  EXPECT_THAT(container.edits.cdi_devices, ElementsAre("nvidia.com/gpu=0"));
  EXPECT_THAT(container.edits.annotations, ElementsAre(Pair("penstock.io/x", "y")));
  EXPECT_THAT(Listed(), ElementsAre("test/p/c nvidia.com/gpu GPU-a GPU-b"));
  EXPECT_THAT(Allocatable(), ElementsAre(Pair(kGpu, ElementsAre("GPU-a", "GPU-b"))))
      << "given out or not";
  kubelet_->End("p");
  EXPECT_THAT(Listed(), IsEmpty());
}

TEST_P(KubeletContract, AsksForAPreferenceAndFollowsIt) {
  std::promise<PreferRequest> asked;
  plugin_.handler.prefer = [&](const PreferRequest& request,
                               const Reply<std::vector<std::vector<std::string>>>& reply) {
    asked.set_value(request);
    reply({{{"GPU-b"}}});
  };
  Serve();
  const Container container = kubelet_->Run("p", kGpu, 1);
  EXPECT_EQ(container.error, "");
  EXPECT_THAT(container.ids, ElementsAre("GPU-b"));
  EXPECT_EQ(container.edits.environment.at("IDS"), "GPU-b");
  const PreferRequest request = asked.get_future().get();
  ASSERT_EQ(request.containers.size(), 1u);
  EXPECT_THAT(request.containers[0].available, ElementsAre("GPU-a", "GPU-b"));
  EXPECT_THAT(request.containers[0].must_include, IsEmpty());
  EXPECT_EQ(request.containers[0].size, 1);
}

TEST_P(KubeletContract, ChoosesItselfWhereThePluginHasNoPreference) {
  Serve();
  EXPECT_THAT(kubelet_->Run("p", kGpu, 1).ids, testing::SizeIs(1));
  EXPECT_THAT(kubelet_->Run("q", kGpu, 1).ids, testing::SizeIs(1));
  EXPECT_THAT(Listed(), UnorderedElementsAre(HasSubstr("test/p/c nvidia.com/gpu GPU-"),
                                             HasSubstr("test/q/c nvidia.com/gpu GPU-")));
}

TEST_P(KubeletContract, ReportsWhyThePluginRefusedAContainer) {
  plugin_.handler.allocate = [](const AllocateRequest&,
                                const Reply<std::vector<ContainerEdits>>& reply) {
    reply(base::Error(base::Code::kFailedPrecondition, "these two are not linked"));
  };
  Serve();
  EXPECT_THAT(kubelet_->Run("p", kGpu, 2).error, HasSubstr("these two are not linked"));
  EXPECT_THAT(Listed(), IsEmpty());
}

TEST_P(KubeletContract, CountsNothingOnceThePluginHasEnded) {
  kubelet_->Start();
  {
    RunningPlugin plugin(folder_ / "kubelet");
    plugin.Start(TwoDevices());
    ASSERT_TRUE(Has({2, 2}));
  }
  EXPECT_TRUE(Has({2, 0})) << "unhealthy, for the time being";
  EXPECT_THAT(Allocatable(), IsEmpty());
}

TEST_P(KubeletContract, IsRegisteredWithOnceMoreAfterItDroppedThePlugin) {
  Serve();
  kubelet_->Drop(kGpu);
  EXPECT_TRUE(Registered(2));
  EXPECT_TRUE(Has({2, 2}));
  EXPECT_TRUE(Runs(2));
}

TEST_P(KubeletContract, RemovesAllSocketsWhenItStartsAndLeavesItsOwnWhenItIsKilled) {
  Serve();
  const auto before = Sockets();
  ASSERT_EQ(before.size(), 2u);
  kubelet_->Kill();
  EXPECT_EQ(Sockets(), before);
  EXPECT_TRUE(plugin_.WaitFor(Phase::kWaitingForKubelet, "no kubelet answers"));
  std::ofstream(folder_ / "kubelet/device-plugins/file").close();
  kubelet_->Start();
  EXPECT_TRUE(Has({2, 2})) << plugin_.last().reason;
  EXPECT_EQ(Sockets().size(), 2u);
  EXPECT_NE(Sockets(), before) << "the plugin's socket was removed and made again by another name";
  EXPECT_TRUE(std::filesystem::exists(folder_ / "kubelet/device-plugins/file"));
  EXPECT_EQ(kubelet_->Run("p", kGpu, 2).error, "");
}

TEST_P(KubeletContract, IsRegisteredWithByANewSocketWhereTheOldOneWasRemoved) {
  Serve();
  for (const auto& socket : Sockets())
    if (socket != "kubelet.sock")
      std::filesystem::remove(folder_ / ("kubelet/device-plugins/" + socket));
  kubelet_->Drop(kGpu);
  EXPECT_TRUE(Registered(2));
  EXPECT_TRUE(Has({2, 2}));
  EXPECT_EQ(Sockets().size(), 2u);
}

TEST_P(KubeletContract, ClosesTheNewerPluginWhenTheOlderOneEnds) {
  kubelet_->Start();
  auto older = std::make_unique<RunningPlugin>(folder_ / "kubelet");
  older->Start(TwoDevices());
  ASSERT_TRUE(Has({2, 2}));
  plugin_.Start(TwoDevices());
  ASSERT_TRUE(plugin_.WaitFor(Phase::kServing));
  ASSERT_TRUE(Registered(2));
  older.reset();
  EXPECT_TRUE(Registered(3));
  EXPECT_TRUE(Has({2, 2}));
  EXPECT_TRUE(Runs(1));
}

TEST_P(KubeletContract, LeavesTheOlderStreamOpenWhenTheNewerPluginEnds) {
  Serve();
  auto newcomer = std::make_unique<RunningPlugin>(folder_ / "kubelet");
  newcomer->Start(TwoDevices());
  ASSERT_TRUE(newcomer->WaitFor(Phase::kServing));
  newcomer.reset();  // its devices disappear; only the older plugin's audit notices
  EXPECT_TRUE(Registered(3));
  EXPECT_TRUE(Has({2, 2}));
  EXPECT_TRUE(Runs(1));
}

TEST_P(KubeletContract, RefusesNamesThatAreNoExtendedResource) {
  plugin_.options.resource = "gpu";
  kubelet_->Start();
  plugin_.Start(TwoDevices());
  EXPECT_TRUE(plugin_.WaitFor(Phase::kRefused, "the ResourceName \"gpu\" is invalid"))
      << plugin_.last().reason;
  for (const char* name : {"gpu", "kubernetes.io/gpu", "x.kubernetes.io/gpu",
                           "requests.nvidia.com/gpu", "nvidia.com/", "/gpu"}) {
    const auto status = Register("v1beta1", name, "x.sock");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNKNOWN) << name;
    EXPECT_EQ(status.error_message(), "the ResourceName \"" + std::string(name) + "\" is invalid");
  }
}

TEST_P(KubeletContract, RefusesAnotherVersion) {
  kubelet_->Start();
  const auto status = Register("v1alpha", kGpu, "x.sock");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_EQ(status.error_message(),
            "requested API version \"v1alpha\" is not supported by kubelet. Supported version is "
            "[\"v1beta1\"]");
}

/// What only a real kubelet writes.
class KubeletCheckpoint : public KubeletContract {};
INSTANTIATE_TEST_SUITE_P(Contract, KubeletCheckpoint, testing::Values("real"),
                         [](const auto& where) { return where.param; });

TEST_P(KubeletCheckpoint, NamesThePodsAndTheHealthyDevices) {
  Serve();
  ASSERT_EQ(kubelet_->Run("p", kGpu, 2).error, "");
  plugin_.Update({{"GPU-a", true, {0}}, {"GPU-b", false, {1}}});
  ASSERT_TRUE(Has({2, 1}));
  ASSERT_TRUE(Eventually([&] {
    const auto found = ReadCheckpoint(folder_ / "kubelet");
    return found.ok() && found->registered.at(kGpu).size() == 1;
  }));
  const auto checkpoint = ReadCheckpoint(folder_ / "kubelet");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().ToString();
  EXPECT_THAT(checkpoint->entries,
              ElementsAre(CheckpointEntry{"uid-of-p", "c", kGpu, {"GPU-a", "GPU-b"}}));
  EXPECT_THAT(checkpoint->registered, ElementsAre(Pair(kGpu, ElementsAre("GPU-a"))));
}

}  // namespace
}  // namespace penstock::protocol::kubelet
