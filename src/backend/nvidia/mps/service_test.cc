// Tests the service with the simulated programs and, for faults that these do not have, with a
// script.
#include "backend/nvidia/mps/service.h"

#include <array>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/mps/testing/testing.h"
#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::backend::nvidia {
namespace {

using device::Isolation;
using device::SharedDevice;
using device::SharedSet;
using mps::Client;
using mps::RunningService;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// For tests of a daemon that hangs: answers that are to come take less, also on a busy machine.
constexpr auto kHangs = std::chrono::seconds(3);

/// Options with quick retries, and deadlines that no test is meant to miss.
MpsOptions Quick(const std::string& driver_root, const std::string& root) {
  MpsOptions options;
  options.driver_root = driver_root;
  options.root = options.host_root = root;
  options.own_shm = false;
  options.answer_deadline = options.start_deadline = std::chrono::minutes(1);
  options.poll_every = milliseconds(50);
  options.poll_often = milliseconds(20);
  options.first_retry = milliseconds(20);
  options.last_retry = milliseconds(100);
  options.settle = {};
  return options;
}

/// A client that has a server, and holds on to it.
class HoldingClient : public Client {
 public:
  HoldingClient(const SimulatedMachine& machine, const std::string& pipe)
      : Client(machine, pipe, {"--hold"}) {
    EXPECT_THAT(Line(), HasSubstr("mps server "));
  }
};

class Mps : public testing::Test {
 protected:
  void SetUp() override {
    gpus_ = mps::GpusOf(machine_);
    ASSERT_EQ(gpus_.size(), 8u);
    Restart();
  }
  void TearDown() override {
    machine_.Sim({"heal", "mps"});
    service_->Want({});  // a server may not know yet that its last client was killed
    EXPECT_TRUE(service_->WaitUntilEmpty());
  }

  void Restart(base::Duration answer_deadline = std::chrono::minutes(1)) {
    service_.reset();
    MpsOptions options = Quick(machine_.root(), root());
    options.answer_deadline = answer_deadline;
    service_ = std::make_unique<RunningService>(options);
  }
  std::string root() const { return folder_ / "mps"; }
  std::string pipe() const { return root() + "/nvidia.com-gpu/pipe"; }
  const std::string& id(std::size_t i) const { return gpus_[i]->id; }
  SharedSet Set(std::vector<std::size_t> gpus, int shares) const {
    SharedSet set{"nvidia.com/gpu", {}};
    for (const std::size_t i : gpus) set.members.push_back({gpus_[i], shares});
    return set;
  }
  std::string DaemonPid() const { return mps::DaemonPid(root()); }
  std::string ComputeMode(std::size_t i) const {
    std::array<char, 128> line{};
    FILE* output =
        ::popen((machine_.root() +
                 "/usr/bin/nvidia-smi --query-gpu=compute_mode --format=csv,noheader -i " + id(i))
                    .c_str(),
                "re");
    if (std::fgets(line.data(), line.size(), output) == nullptr) line[0] = '\0';
    ::pclose(output);
    return std::string(base::Trim(line.data()));
  }
  /// Wants one set with these GPUs alone, and waits until the first of them is ready.
  bool Share(const std::vector<std::size_t>& gpus, int shares) {
    service_->Want({Set(gpus, shares)});
    return service_->WaitUntilReady(id(gpus.front()));
  }
  bool WaitForClients(std::size_t i, int clients) {
    return service_->WaitFor(id(i),
                             [&](const SharedDevice& device) { return device.clients == clients; });
  }

  const SimulatedMachine machine_{"dgx-a100"};
  const os::TemporaryFolder folder_;
  std::vector<std::shared_ptr<const device::Facts>> gpus_;
  std::unique_ptr<RunningService> service_;
};

TEST_F(Mps, HoldsTheLimitsThatTheSharesStandFor) {
  service_->Want({Set({0, 3}, 4)});
  ASSERT_TRUE(service_->WaitUntilReady(id(3))) << service_->Of(id(3)).reason;
  const SharedDevice device = service_->Of(id(3));
  EXPECT_EQ(device.set, "nvidia.com/gpu");
  EXPECT_EQ(device.isolation, Isolation::kMemoryPerProcess) << device.reason;
  EXPECT_EQ(device.memory, base::Mebibytes(gpus_[3]->memory.mebibytes() / 4));
  EXPECT_EQ(device.compute_percent, 25);
  EXPECT_EQ(device.reason, "");
  EXPECT_EQ(ComputeMode(3), "Exclusive_Process");
  EXPECT_EQ(ComputeMode(1), "Default");

  const std::string limit = std::to_string(device.memory.mebibytes());
  Client fits(machine_, pipe(), {"--device", "1", "--allocate", limit, "--hold"});
  EXPECT_THAT(fits.Line(), HasSubstr("mps server "));
  EXPECT_EQ(fits.Line(), "limit " + limit + " 25.0");
  EXPECT_EQ(fits.Line(), "allocated " + limit);
  ASSERT_TRUE(WaitForClients(3, 1));
  EXPECT_EQ(service_->Of(id(0)).servers.size(), 1u);
  Client greedy(machine_, pipe(), {"--device", "1", "--allocate", limit, "--allocate", "1"});
  EXPECT_EQ(greedy.Status(), 2) << "out of memory";
  (void)fits.End();
  EXPECT_TRUE(WaitForClients(3, 0));
}

TEST_F(Mps, ReportsContainersAndProcessesHowToReachIt) {
  ASSERT_TRUE(Share({0}, 2));
  const SharedDevice device = service_->Of(id(0));
  EXPECT_EQ(device.container.environment.at("CUDA_MPS_PIPE_DIRECTORY"), "/mps/nvidia.com/gpu/pipe");
  ASSERT_EQ(device.container.mounts.size(), 2u);
  EXPECT_EQ(device.container.mounts[0],
            (device::Edits::Mount{"/mps/nvidia.com/gpu/pipe", pipe(), true}));
  EXPECT_EQ(device.container.mounts[1], (device::Edits::Mount{"/dev/shm", "/dev/shm", false}));
  EXPECT_EQ(device.process.environment.at("CUDA_MPS_PIPE_DIRECTORY"), pipe());
  EXPECT_TRUE(device.process.mounts.empty());
}

TEST_F(Mps, LeavesAloneWhatIsAsItWas) {
  ASSERT_TRUE(Share({0}, 4));
  const std::string pid = DaemonPid();
  service_->Want({Set({0}, 4)});
  HoldingClient client(machine_, pipe());
  ASSERT_TRUE(WaitForClients(0, 1));
  EXPECT_EQ(DaemonPid(), pid);
}

TEST_F(Mps, EndsASetThatIsNotWantedAnyMoreAndLeavesNothing) {
  ASSERT_TRUE(Share({0}, 4));
  service_->Want({});
  ASSERT_TRUE(service_->WaitUntilEmpty());
  EXPECT_EQ(ComputeMode(0), "Default");
  EXPECT_FALSE(os::Exists(root() + "/nvidia.com-gpu"));
}

TEST_F(Mps, Issue669AServerIsNeverRestartedUnderLiveClients) {
  ASSERT_TRUE(Share({0}, 4));
  HoldingClient client(machine_, pipe());
  ASSERT_TRUE(WaitForClients(0, 1));
  const std::string pid = DaemonPid();
  service_->Want({Set({0}, 2)});
  ASSERT_TRUE(
      service_->WaitUntilNot(id(0), "1 clients) and is replaced when its last client has exited"));
  EXPECT_EQ(DaemonPid(), pid);
  EXPECT_EQ(client.End(), 128 + SIGKILL) << "the client ran until now";
  ASSERT_TRUE(service_->WaitUntilReady(id(0)));
  EXPECT_NE(DaemonPid(), pid);
  EXPECT_EQ(service_->Of(id(0)).compute_percent, 50);
}

TEST_F(Mps, ASetThatIsWantedAfterAllIsKept) {
  ASSERT_TRUE(Share({0}, 4));
  HoldingClient client(machine_, pipe());
  ASSERT_TRUE(WaitForClients(0, 1));
  const std::string pid = DaemonPid();
  service_->Want({});
  ASSERT_TRUE(Share({0}, 4));
  (void)client.End();
  ASSERT_TRUE(WaitForClients(0, 0));
  EXPECT_EQ(DaemonPid(), pid);
}

TEST_F(Mps, IsTakenOverByTheNextAgent) {
  ASSERT_TRUE(Share({0, 1}, 4));
  HoldingClient client(machine_, pipe());
  const std::string pid = DaemonPid();
  Restart();
  ASSERT_TRUE(Share({0, 1}, 4));
  ASSERT_TRUE(WaitForClients(0, 1));
  EXPECT_EQ(DaemonPid(), pid);
  EXPECT_EQ(service_->Of(id(0)).isolation, Isolation::kMemoryPerProcess);
}

TEST_F(Mps, WhatAnEarlierAgentLeftAndNoOneWantsEnds) {
  ASSERT_TRUE(Share({0}, 4));
  Restart();
  service_->Want({});
  EXPECT_TRUE(service_->WaitUntilEmpty());
  EXPECT_EQ(ComputeMode(0), "Default");
  EXPECT_FALSE(os::Exists(root() + "/nvidia.com-gpu"));
}

TEST_F(Mps, ADaemonWhoseFolderWasTakenAwayIsReplacedWhenItsClientsHaveGone) {
  ASSERT_TRUE(Share({0}, 4));
  HoldingClient client(machine_, pipe());
  service_.reset();
  std::filesystem::remove_all(root());
  Restart();
  service_->Want({Set({0}, 4)});
  ASSERT_TRUE(
      service_->WaitUntilNot(id(0), "it is restarted when the clients of its server have exited"));
  EXPECT_EQ(client.End(), 128 + SIGKILL);
  ASSERT_TRUE(service_->WaitUntilReady(id(0)));
  EXPECT_NE(DaemonPid(), "none") << "a daemon must be running";
}

TEST_F(Mps, ADaemonThatDiesIsStartedAgain) {
  ASSERT_TRUE(Share({0}, 4));
  const std::string pid = DaemonPid();
  machine_.Sim({"fault", "mps", "die"});
  ASSERT_TRUE(service_->WaitFor(
      id(0), [&](const SharedDevice& device) { return device.ready && DaemonPid() != pid; }));
}

TEST_F(Mps, ADaemonThatDiesUnderClientsIsStartedAgainWhenTheyHaveGone) {
  ASSERT_TRUE(Share({0}, 4));
  HoldingClient client(machine_, pipe());
  ASSERT_TRUE(WaitForClients(0, 1));
  machine_.Sim({"fault", "mps", "die"});
  ASSERT_TRUE(service_->WaitUntilNot(
      id(0), "has exited; it is restarted when the clients of its server have exited"));
  EXPECT_EQ(client.End(), 128 + SIGKILL);
  ASSERT_TRUE(service_->WaitUntilReady(id(0)));
}

TEST_F(Mps, ADaemonThatHangsIsNotReadyAndIsReplaced) {
  ASSERT_TRUE(Share({0}, 4));
  Restart(kHangs);
  machine_.Sim({"fault", "mps", "hang"});
  service_->Want({Set({0}, 4)});
  ASSERT_TRUE(service_->WaitUntilNot(id(0), "did not answer within 3s"));
  machine_.Sim({"heal", "mps"});
  ASSERT_TRUE(service_->WaitUntilReady(id(0)));
}

TEST_F(Mps, ADaemonThatHangsUnderClientsIsWaitedFor) {
  ASSERT_TRUE(Share({0}, 4));
  HoldingClient client(machine_, pipe());
  ASSERT_TRUE(WaitForClients(0, 1));
  const std::string pid = DaemonPid();
  Restart(kHangs);
  service_->Want({Set({0}, 4)});
  machine_.Sim({"fault", "mps", "hang"});
  ASSERT_TRUE(
      service_->WaitUntilNot(id(0), "it is restarted when the clients of its server have exited"));
  machine_.Sim({"heal", "mps"});
  ASSERT_TRUE(service_->WaitUntilReady(id(0)));
  EXPECT_EQ(DaemonPid(), pid);
  EXPECT_EQ(client.End(), 128 + SIGKILL) << "the client ran until now";
}

TEST_F(Mps, ADaemonThatAnswersNonsenseIsNotReady) {
  machine_.Sim({"fault", "mps", "nonsense"});
  service_->Want({Set({0}, 4)});
  ASSERT_TRUE(service_->WaitUntilNot(id(0), "answered \"??%s 3 pears ?\" instead of a percentage"));
  machine_.Sim({"heal", "mps"});
  ASSERT_TRUE(service_->WaitUntilReady(id(0)));
}

TEST_F(Mps, ADaemonThatEndsAtOnceIsNotReady) {
  machine_.Sim({"fault", "mps", "exit"});
  service_->Want({Set({0}, 4)});
  ASSERT_TRUE(service_->WaitUntilNot(id(0), "exits immediately after its start"));
  machine_.Sim({"heal", "mps"});
  ASSERT_TRUE(service_->WaitUntilReady(id(0)));
}

TEST_F(Mps, Issue569AModelThatHoldsNoLimitsIsSharedAndSaysSo) {
  auto pascal = std::make_shared<device::Facts>(*gpus_[0]);
  pascal->architecture_version = "6.1";
  service_->Want({{"nvidia.com/gpu", {{pascal, 4}}}});
  ASSERT_TRUE(service_->WaitUntilReady(id(0)));
  const SharedDevice device = service_->Of(id(0));
  EXPECT_EQ(device.isolation, Isolation::kNone);
  EXPECT_EQ(device.memory, base::Bytes{});
  EXPECT_THAT(device.reason, HasSubstr("compute capability 7.0 is required"));
}

TEST_F(Mps, WhenTheAgentGoesForGoodIdleServersHaveEndedAndBusyOnesStay) {
  SharedSet other = Set({1}, 2);
  other.name = "nvidia.com/gpu.shared";
  service_->Want({Set({0}, 4), other});
  ASSERT_TRUE(service_->WaitUntilReady(id(0)) && service_->WaitUntilReady(id(1)));
  HoldingClient client(machine_, pipe());
  ASSERT_TRUE(WaitForClients(0, 1));
  service_->EndIdle();
  EXPECT_FALSE(os::Exists(root() + "/nvidia.com-gpu.shared"));
  EXPECT_EQ(ComputeMode(1), "Default");
  EXPECT_TRUE(os::Exists(pipe() + "/control"));
  EXPECT_EQ(client.End(), 128 + SIGKILL) << "the client ran until now";
}

TEST_F(Mps, AMigDeviceHasAServerOfItsOwnWithLimitsOfItsMemory) {
  machine_.Smi({"-i", "0", "-mig", "1"});
  machine_.Smi({"mig", "-i", "0", "-cgi", "1g.5gb,3g.20gb", "-C"});
  const auto parts = mps::MigDevicesOf(machine_);
  ASSERT_EQ(parts.size(), 2u);
  const auto set = [](const std::shared_ptr<const device::Facts>& part, int shares) {
    return SharedSet{part->id, {{part, shares}}};
  };
  service_->Want({Set({1}, 2), set(parts[0], 3), set(parts[1], 2)});
  for (const auto& part : parts)
    ASSERT_TRUE(service_->WaitUntilReady(part->id)) << service_->Of(part->id).reason;
  ASSERT_TRUE(service_->WaitUntilReady(id(1)));

  const SharedDevice device = service_->Of(parts[0]->id);
  const base::Bytes limit = base::Mebibytes(parts[0]->memory.mebibytes() / 3);
  EXPECT_EQ(device.memory, limit);
  EXPECT_EQ(device.compute_percent, 33);
  EXPECT_EQ(device.isolation, Isolation::kNone) << "programs can bypass the server";
  EXPECT_EQ(device.reason, "");
  const std::string folder = root() + "/" + parts[0]->id;
  EXPECT_EQ(device.container.environment.at("CUDA_MPS_PIPE_DIRECTORY"),
            "/mps/" + parts[0]->id + "/pipe");
  EXPECT_EQ(device.container.mounts.at(0),
            (device::Edits::Mount{"/mps/" + parts[0]->id + "/pipe", folder + "/pipe", true}));
  EXPECT_EQ(device.process.environment.at("CUDA_MPS_PIPE_DIRECTORY"), folder + "/pipe");
  EXPECT_EQ(ComputeMode(1), "Exclusive_Process") << "GPUs have the mode, as ever";

  const std::string most = std::to_string(limit.mebibytes());
  Client fits(machine_, folder + "/pipe", {"--allocate", most, "--hold"});
  EXPECT_THAT(fits.Line(), HasSubstr("mps server "));
  EXPECT_EQ(fits.Line(), "limit " + most + " 33.0");
  EXPECT_EQ(fits.Line(), "allocated " + most);
  Client greedy(machine_, folder + "/pipe", {"--allocate", most, "--allocate", "1"});
  EXPECT_EQ(greedy.Status(), 2) << "out of memory";
  ASSERT_TRUE(
      service_->WaitFor(parts[0]->id, [](const SharedDevice& now) { return now.clients == 1; }));
  EXPECT_EQ(service_->Of(parts[0]->id).servers.size(), 1u);
  EXPECT_EQ(service_->Of(parts[1]->id).clients, 0) << "its server is another one";

  // Another agent takes all of them over; one that is not needed any more ends without clients.
  const std::string pid = mps::DaemonPid(root(), parts[0]->id);
  Restart();
  service_->Want({Set({1}, 2), set(parts[0], 3)});
  ASSERT_TRUE(service_->WaitUntilReady(parts[0]->id));
  EXPECT_EQ(mps::DaemonPid(root(), parts[0]->id), pid);
  ASSERT_TRUE(service_->Wait([&](const auto& now) { return !now.contains(parts[1]->id); }));
  EXPECT_FALSE(os::Exists(root() + "/" + parts[1]->id));
  service_->Want({});
  ASSERT_TRUE(service_->Wait([&](const auto& now) { return !now.contains(id(1)); }));
  EXPECT_EQ(mps::DaemonPid(root(), parts[0]->id), pid) << "it has a client";
  (void)fits.End();
  EXPECT_TRUE(service_->WaitUntilEmpty());
}

TEST_F(Mps, EachSetHasItsOwnServer) {
  SharedSet other = Set({1}, 2);
  other.name = "nvidia.com/gpu.shared";
  service_->Want({Set({0}, 4), other});
  ASSERT_TRUE(service_->WaitUntilReady(id(0)));
  ASSERT_TRUE(service_->WaitUntilReady(id(1)));
  EXPECT_EQ(service_->Of(id(1)).compute_percent, 50);
  EXPECT_TRUE(os::Exists(root() + "/nvidia.com-gpu.shared/pipe/control"));
}

TEST(MpsWithoutPrograms, SaysWhatIsMissing) {
  const os::TemporaryFolder folder;
  RunningService service(Quick(folder.path(), folder / "mps"));
  const auto gpu = std::make_shared<device::Facts>(device::Facts{.id = "GPU-a"});
  service.Want({{"nvidia.com/gpu", {{gpu, 4}}}});
  EXPECT_TRUE(
      service.WaitUntilNot("GPU-a", "there is no nvidia-cuda-mps-control below " + folder.path()));
}

/// A driver's control program without memory limits, and no nvidia-smi beside it.
class OldDriver : public testing::Test {
 protected:
  OldDriver() {
    const std::string bin = machine_.root() + "/usr/bin/",
                      program = bin + "nvidia-cuda-mps-control";
    std::filesystem::create_directories(machine_.root() + "/usr/libexec");
    std::filesystem::rename(program, machine_.root() + "/usr/libexec/nvidia-cuda-mps-control");
    std::filesystem::remove(bin + "nvidia-smi");
    EXPECT_TRUE(os::WriteFileAtomically(program, R"(#!/bin/sh
real="${0%/*}/../libexec/nvidia-cuda-mps-control"
[ "$1" = -d ] && exec "$real" -d
read command rest
case "$command" in
  get_default_active_thread_percentage) echo 100.0;;
  get_server_list | quit) echo "$command" | "$real";;
  *) echo "Unknown command";;
esac
)",
                                        0755)
                    .ok());
  }
  const SimulatedMachine machine_{"a100-40gb-x1"};
  const os::TemporaryFolder folder_;
};

TEST_F(OldDriver, IsReadyAndClaimsNoIsolationThatItDoesNotGive) {
  RunningService service(Quick(machine_.root(), folder_ / "mps"));
  const auto gpu = std::make_shared<device::Facts>(device::Facts{
      .id = "GPU-a", .memory = base::Mebibytes(16384), .architecture_version = "7.0"});
  service.Want({{"nvidia.com/gpu", {{gpu, 4}}}});
  ASSERT_TRUE(service.WaitUntilReady("GPU-a")) << service.Of("GPU-a").reason;
  const SharedDevice device = service.Of("GPU-a");
  EXPECT_EQ(device.isolation, Isolation::kNone);
  EXPECT_THAT(device.reason, HasSubstr("does not enforce the memory limit of 4 GiB"));
  EXPECT_THAT(device.reason, HasSubstr("there is no nvidia-smi"));
  EXPECT_THAT(device.reason, HasSubstr("enforces 100% of compute where 25% was requested"));
  service.EndIdle();
  EXPECT_TRUE(service.WaitUntilEmpty());
}

TEST_F(OldDriver, SaysThatAFolderIsTooDeepForSockets) {
  RunningService service(Quick(machine_.root(), folder_ / std::string(90, 'm')));
  const auto gpu = std::make_shared<device::Facts>(device::Facts{.id = "GPU-a"});
  service.Want({{"nvidia.com/gpu", {{gpu, 4}}}});
  EXPECT_TRUE(service.WaitUntilNot("GPU-a", "is too long for a socket"));
}

}  // namespace
}  // namespace penstock::backend::nvidia
