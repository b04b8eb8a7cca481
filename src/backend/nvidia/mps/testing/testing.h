// Shared by the tests of MPS: a service on a loop of its own, a simulated machine, and programs
// that use the service. For tests only.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/nvidia/backend.h"
#include "backend/nvidia/mps/processes.h"
#include "backend/nvidia/mps/service.h"
#include "backend/nvidia/testing/simulated_machine.h"

namespace penstock::backend::nvidia::mps {

/// The facts of a machine's GPUs, as the backend reports them.
inline std::vector<std::shared_ptr<const device::Facts>> GpusOf(const SimulatedMachine& machine) {
  std::vector<std::shared_ptr<const device::Facts>> gpus;
  const auto backend = MakeBackend(machine.paths());
  EXPECT_TRUE(backend->Open().ok());
  for (const std::string& address : backend->List().value_or({}))
    if (auto facts = backend->Describe(address); facts.ok())
      gpus.push_back(std::make_shared<device::Facts>(*std::move(facts)));
  return gpus;
}

/// Those of its MIG devices, which exist already.
inline std::vector<std::shared_ptr<const device::Facts>> MigDevicesOf(
    const SimulatedMachine& machine) {
  std::vector<std::shared_ptr<const device::Facts>> devices;
  const auto backend = MakeBackend(machine.paths());
  EXPECT_TRUE(backend->Open().ok());
  for (const std::string& address : backend->List().value_or({}))
    if (const auto gpu = backend->Describe(address); gpu.ok())
      for (const std::string& part : gpu->parts)
        if (auto facts = backend->Describe(part); facts.ok())
          devices.push_back(std::make_shared<device::Facts>(*std::move(facts)));
  return devices;
}

/// The pid of a set's only control daemon; "none" if there is none, or several.
inline std::string DaemonPid(const std::string& root, const std::string& set = "nvidia.com/gpu") {
  const auto daemons = FindDaemons("/proc", FoldersOf(root, set));
  return daemons.size() == 1 ? std::to_string(daemons.front().pid) : "none";
}

/// Runs calls on the service's own thread, and waits until the published state is as expected.
class RunningService {
 public:
  explicit RunningService(const MpsOptions& options) : loop_("mps-test") {
    loop_.Start();
    Do([&] { service_ = MakeMpsService(loop_, options); });
    subscription_ = service_->published().Subscribe([this](const auto&) {
      const std::scoped_lock lock(mutex_);
      news_.notify_all();
    });
  }
  ~RunningService() {
    subscription_.Reset();
    Do([&] { service_.reset(); });
  }

  void Want(std::vector<device::SharedSet> sets) {
    Do([&] { service_->Want(std::move(sets)); });
  }
  void EndIdle() {
    Do([&] { service_->EndIdle(); });
  }

  device::SharedDevice Of(const std::string& id) const {
    const auto devices = service_->published().Get();
    const auto at = devices->find(id);
    return at == devices->end() ? device::SharedDevice{} : at->second;
  }

  /// False after a minute.
  bool Wait(const std::function<bool(const device::SharedDevices&)>& as_expected) {
    std::unique_lock lock(mutex_);
    return news_.wait_for(lock, std::chrono::minutes(1),
                          [&] { return as_expected(*service_->published().Get()); });
  }
  bool WaitFor(const std::string& id,
               const std::function<bool(const device::SharedDevice&)>& as_expected) {
    return Wait([&](const device::SharedDevices& devices) {
      const auto at = devices.find(id);
      return at != devices.end() && as_expected(at->second);
    });
  }
  bool WaitUntilReady(const std::string& id) {
    return WaitFor(id, [](const device::SharedDevice& device) { return device.ready; });
  }
  bool WaitUntilNot(const std::string& id, const std::string& reason) {
    return WaitFor(id, [&](const device::SharedDevice& device) {
      return !device.ready && device.reason.find(reason) != std::string::npos;
    });
  }
  bool WaitUntilEmpty() {
    return Wait([](const device::SharedDevices& devices) { return devices.empty(); });
  }

 private:
  void Do(const std::function<void()>& what) {
    std::promise<void> done;
    loop_.Post([&] {
      what();
      done.set_value();
    });
    done.get_future().wait();
  }

  os::Loop loop_;
  std::unique_ptr<device::SharingService> service_;
  std::mutex mutex_;
  std::condition_variable news_;
  base::Subscription subscription_;
};

/// mps-client of a simulated machine, killed with this object.
class Client {
 public:
  Client(const SimulatedMachine& machine, const std::string& pipe,
         std::vector<std::string> arguments, std::vector<std::string> wrapper = {}) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    output_.Reset(ends[0]);
    const os::UniqueFd theirs(ends[1]);
    os::SpawnOptions spawn;
    spawn.arguments = std::move(wrapper);
    spawn.arguments.push_back(machine.root() + "/usr/bin/mps-client");
    spawn.arguments.insert(spawn.arguments.end(), arguments.begin(), arguments.end());
    spawn.environment = {"CUDA_MPS_PIPE_DIRECTORY=" + pipe, "PATH=/usr/bin:/bin"};
    spawn.standard_output = theirs.get();
    auto child = os::Spawn(spawn);
    EXPECT_TRUE(child.ok());
    if (child.ok()) child_ = *std::move(child);
  }
  ~Client() { (void)End(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// The next line of its output; empty at the end.
  std::string Line() {
    std::string line;
    for (char c = 0; ::read(output_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  /// Its exit status, or 128 + signal.
  int Status() {
    int status = 0;
    if (child_.pid == 0 || ::waitpid(std::exchange(child_.pid, 0), &status, 0) < 0) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int End() {
    if (child_.pid > 0) ::kill(child_.pid, SIGKILL);
    return Status();
  }

 private:
  os::Child child_;
  os::UniqueFd output_;
};

}  // namespace penstock::backend::nvidia::mps
