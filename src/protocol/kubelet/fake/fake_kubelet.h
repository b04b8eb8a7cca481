// A fake of the kubelet's device manager in this process, for tests and benchmarks: registration,
// one client per resource that behaves like the real one, and pod-resources. Shares only the
// messages with the plugin.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::protocol::kubelet {

/// What a ListAndWatch message contained about one device.
struct SeenDevice {
  bool healthy = false;
  std::vector<int> numa_nodes;
  bool operator==(const SeenDevice&) const = default;
};

/// A flattened answer to Allocate or GetPreferredAllocation.
struct SeenAllocation {
  std::map<std::string, std::string> environment;
  std::vector<std::string> files;  ///< "container_path:host_path:permissions"
  std::vector<std::string> mounts;
  std::vector<std::string> cdi_devices;
  std::map<std::string, std::string> annotations;
};

/// One pod's devices for pod-resources List.
struct FakePod {
  std::string namespace_name, pod, container, resource;
  std::vector<std::string> ids;
};

/// Behaves like Kubernetes 1.36's device manager, including its odd habits: a new registration
/// replaces the client but leaves the old one's stream open, and when any stream of a resource
/// ends, the newest client is closed and all devices are unhealthy. tests/contract compares it with
/// that code itself. Call its functions from any thread.
class FakeKubelet {
 public:
  /// Works in <kubelet_dir>/device-plugins and /pod-resources; creates neither before Start.
  explicit FakeKubelet(std::string kubelet_dir);
  ~FakeKubelet();

  /// Starts as a kubelet does: creates the folders, removes all sockets in device-plugins, listens.
  void Start();

  /// Ends as a killed kubelet does: its connections break, its socket files stay.
  void Kill();

  void Restart() {
    Kill();
    Start();
  }

  std::string kubelet_dir() const;

  /// Waits until the kubelet's view of a resource satisfies the predicate; false after `within`.
  using Devices = std::map<std::string, SeenDevice>;
  bool WaitForDevices(const std::string& resource,
                      const std::function<bool(const Devices&)>& predicate,
                      std::chrono::milliseconds within = std::chrono::seconds(60)) const;

  /// Waits until a resource has exactly this many healthy devices.
  bool WaitForHealthy(const std::string& resource, std::size_t count,
                      std::chrono::milliseconds within = std::chrono::seconds(60)) const;

  /// The number of accepted and refused registrations of a resource; the other function waits until
  /// there were at least `count`.
  int Registrations(const std::string& resource) const;
  bool WaitForRegistrations(const std::string& resource, int count,
                            std::chrono::milliseconds within = std::chrono::seconds(60)) const;

  /// Names of the sockets that registered, in order.
  std::vector<std::string> Endpoints(const std::string& resource) const;

  /// The smallest number of healthy devices of a resource at any moment since the last call.
  std::size_t FewestHealthy(const std::string& resource);

  /// The devices of a resource that were in any message since the last call.
  std::vector<std::string> TakeReported(const std::string& resource);

  /// The devices of a resource that were healthy in every message since the last call, and in the
  /// one before that.
  std::vector<std::string> TakeSteady(const std::string& resource);

  /// True: ListAndWatch messages are received but have no effect until this is false again, like
  /// the kubelet's own lag.
  void CountLate(bool late);

  /// True: the devices of a plugin whose stream ends still count until this is false again.
  void DropLate(bool late);

  /// How often pod-resources GetAllocatableResources was answered; the other function waits until
  /// it was `count` times.
  int Requests() const;
  bool WaitForRequests(int count,
                       std::chrono::milliseconds within = std::chrono::seconds(30)) const;

  /// ListAndWatch messages received for a resource.
  int Messages(const std::string& resource) const;
  bool WaitForMessages(const std::string& resource, int count,
                       std::chrono::milliseconds within = std::chrono::seconds(30)) const;

  /// Calls the plugin of a resource, as the kubelet would for one container, on the caller's
  /// thread.
  base::Result<SeenAllocation> Allocate(const std::string& resource,
                                        const std::vector<std::string>& ids) const;
  base::Result<std::vector<std::string>> Prefer(const std::string& resource,
                                                const std::vector<std::string>& available,
                                                const std::vector<std::string>& must_include,
                                                int size) const;
  /// Sends bytes unchanged to a method of the plugin ("/v1beta1.DevicePlugin/Allocate") and returns
  /// its answer.
  base::Status SendBytes(const std::string& resource, const std::string& method,
                         const std::string& bytes) const;

  /// Ends the resource's newest stream from the kubelet's side.
  void EndStream(const std::string& resource);

  /// Refuses registrations with this message; empty: accepts them.
  void Refuse(const std::string& message);

  /// How often pod-resources' List was answered.
  int Lists() const;

  /// Sets the answer of List, and how long pod-resources takes to answer anything.
  void SetPods(std::vector<FakePod> pods);
  void SetPodResourcesDelay(std::chrono::milliseconds delay);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace penstock::protocol::kubelet
