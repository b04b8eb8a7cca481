// A kubelet for benchmarks: prints what reaches it to standard output, one JSON document per line
// with the monotonic clock, and makes the calls that standard input requests. Checks nothing.
//
//   bench-kubelet KUBELET_DIR RESOURCE
//   > calls allocate CALLERS EACH PAUSE_US     also: options (an empty call), prefer
//   > quit
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "deviceplugin.pb.h"
#include "protocol/kubelet/fake/fake_kubelet.h"

namespace {

using penstock::protocol::kubelet::FakeKubelet;
using Clock = std::chrono::steady_clock;

std::int64_t Nanoseconds(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

void Say(const std::string& fields) {
  static std::mutex mutex;  // lines of two threads must not mix
  std::lock_guard lock(mutex);
  std::printf("{%s}\n", fields.c_str());
  std::fflush(stdout);
}

std::string At(Clock::time_point time) {
  return "\"at\":" + std::to_string(Nanoseconds(time.time_since_epoch()));
}

/// Prints the state of the resource in the kubelet after every change.
class Teller {
 public:
  Teller(FakeKubelet& kubelet, std::string resource)
      : kubelet_(kubelet), resource_(std::move(resource)) {
    threads_.emplace_back([this] { ReportLists(); });
    threads_.emplace_back([this] { ReportRegistrations(); });
  }
  ~Teller() {
    ended_ = true;
    for (auto& thread : threads_) thread.join();
  }

 private:
  static constexpr std::chrono::milliseconds kTurn{200};

  void ReportLists() {
    FakeKubelet::Devices last;
    while (!ended_) {
      Clock::time_point seen;
      const bool changed = kubelet_.WaitForDevices(
          resource_,
          [&](const FakeKubelet::Devices& devices) {
            if (devices == last) return false;
            seen = Clock::now();
            last = devices;
            return true;
          },
          kTurn);
      if (!changed) continue;
      std::string healthy;
      for (const auto& [id, device] : last)
        if (device.healthy) healthy += (healthy.empty() ? "\"" : ",\"") + id + "\"";
      Say("\"event\":\"list\"," + At(seen) + ",\"devices\":" + std::to_string(last.size()) +
          ",\"healthy\":[" + healthy + "]");
    }
  }

  void ReportRegistrations() {
    for (int reported = 0; !ended_;) {
      if (!kubelet_.WaitForRegistrations(resource_, reported + 1, kTurn)) continue;
      const auto seen = Clock::now();
      reported = kubelet_.Registrations(resource_);
      Say("\"event\":\"registered\"," + At(seen) + ",\"count\":" + std::to_string(reported));
    }
  }

  FakeKubelet& kubelet_;
  const std::string resource_;
  std::atomic<bool> ended_ = false;
  std::vector<std::thread> threads_;
};

std::vector<std::string> HealthyDevices(const FakeKubelet& kubelet, const std::string& resource) {
  std::vector<std::string> ids;
  kubelet.WaitForDevices(
      resource,
      [&ids](const FakeKubelet::Devices& devices) {
        for (const auto& [id, device] : devices)
          if (device.healthy) ids.push_back(id);
        return true;
      },
      std::chrono::milliseconds(0));
  return ids;
}

struct Call {
  std::string method;
  std::vector<std::string> requests;  // used in turn
};

Call MakeCall(const std::string& what, const std::vector<std::string>& ids) {
  const std::string service = "/v1beta1.DevicePlugin/";
  if (what == "options") return {service + "GetDevicePluginOptions", {""}};
  Call call{service + (what == "prefer" ? "GetPreferredAllocation" : "Allocate"), {}};
  if (what == "prefer") {
    v1beta1::PreferredAllocationRequest request;
    auto* container = request.add_container_requests();
    for (const auto& id : ids) container->add_available_deviceids(id);
    container->set_allocation_size(static_cast<int>(ids.size() / 2));
    call.requests.push_back(request.SerializeAsString());
  }
  if (what == "allocate") {
    for (const auto& id : ids) {
      v1beta1::AllocateRequest request;
      request.add_container_requests()->add_devices_ids(id);
      call.requests.push_back(request.SerializeAsString());
    }
  }
  return call;
}

struct Load {
  std::string what;
  int callers = 1, each = 1;
  std::int64_t pause_us = 0;  ///< mean pause of a caller between two calls; 0: none
};

/// Runs all callers, and measures the latency of each call as its caller sees it.
void MakeCalls(const FakeKubelet& kubelet, const std::string& resource, const Load& load) {
  const Call call = MakeCall(load.what, HealthyDevices(kubelet, resource));
  std::vector<std::vector<std::int64_t>> latencies(static_cast<std::size_t>(load.callers));
  std::atomic<int> failed = 0;
  const auto work = [&](std::size_t number) {
    std::mt19937 random(static_cast<unsigned>(number));
    std::uniform_int_distribution<std::int64_t> pause(0, 2 * load.pause_us);
    for (int i = 0; i < load.each; ++i) {
      if (load.pause_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause(random)));
      const std::string& request =
          call.requests[(number + static_cast<std::size_t>(i)) % call.requests.size()];
      const auto begin = Clock::now();
      if (!kubelet.SendBytes(resource, call.method, request).ok()) ++failed;
      latencies[number].push_back(Nanoseconds(Clock::now() - begin));
    }
  };
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < latencies.size(); ++i) threads.emplace_back(work, i);
  for (auto& thread : threads) thread.join();
  std::ostringstream all;
  for (const auto& caller : latencies)
    for (const auto latency : caller) all << (all.tellp() > 0 ? "," : "") << latency;
  Say("\"event\":\"calls\"," + At(Clock::now()) +
      ",\"took\":" + std::to_string(Nanoseconds(Clock::now() - begin)) +
      ",\"failed\":" + std::to_string(failed) + ",\"latencies\":[" + all.str() + "]");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "bench-kubelet KUBELET_DIR RESOURCE; bench/run starts it\n";
    return 2;
  }
  FakeKubelet kubelet(argv[1]);
  kubelet.Start();
  const Teller teller(kubelet, argv[2]);
  Say("\"event\":\"listening\"," + At(Clock::now()));
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    std::istringstream words(line);
    std::string verb;
    Load load;
    if (words >> verb >> load.what >> load.callers >> load.each >> load.pause_us && verb == "calls")
      MakeCalls(kubelet, argv[2], load);
  }
  return 0;
}
