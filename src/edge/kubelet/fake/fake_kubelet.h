// A kubelet's device manager for tests and benches, in this process: registration, one client per resource with the real one's habits, and
// pod-resources. Shares no code with the plugin but the messages.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::edge::kubelet {

/// What a ListAndWatch message said of one device.
struct SeenDevice {
  bool healthy = false;
  std::vector<int> numa_nodes;
  bool operator==(const SeenDevice&) const = default;
};

/// An Allocate answer, flattened, or GetPreferredAllocation's.
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

/// Behaves as Kubernetes 1.36's device manager does, odd habits included: a new registration replaces the client but leaves the old one's
/// stream open, and when any stream of a resource ends, the newest client is closed and all devices are unhealthy. Compared with that code
/// itself by tests/contract. Functions from any thread.
class FakeKubelet {
 public:
  /// Works in <kubelet_dir>/device-plugins and /pod-resources; makes neither before Start.
  explicit FakeKubelet(std::string kubelet_dir);
  ~FakeKubelet();

  /// As a kubelet starts: makes the folders, removes all sockets in device-plugins, listens.
  void Start();

  /// As a kubelet that was killed: its connections break, its socket files stay.
  void Kill();

  void Restart() {
    Kill();
    Start();
  }

  std::string kubelet_dir() const;

  /// Waits until the kubelet's view of a resource satisfies the predicate; false after the time given.
  using Devices = std::map<std::string, SeenDevice>;
  bool WaitForDevices(const std::string& resource, const std::function<bool(const Devices&)>& predicate,
                      std::chrono::milliseconds within = std::chrono::seconds(60)) const;

  /// Waits until a resource has exactly so many healthy devices.
  bool WaitForHealthy(const std::string& resource, std::size_t count, std::chrono::milliseconds within = std::chrono::seconds(60)) const;

  /// Accepted and refused registrations of a resource; waits until there were at least so many.
  int Registrations(const std::string& resource) const;
  bool WaitForRegistrations(const std::string& resource, int count, std::chrono::milliseconds within = std::chrono::seconds(60)) const;

  /// Names of the sockets that registered, in order.
  std::vector<std::string> Endpoints(const std::string& resource) const;

  /// The fewest devices of a resource that were healthy at any moment since this was asked last.
  std::size_t FewestHealthy(const std::string& resource);

  /// The devices of a resource that any message since this was asked last had in it.
  std::vector<std::string> TakeTold(const std::string& resource);

  /// Whether ListAndWatch messages are received but count for nothing until this is false again: the kubelet's own lag.
  void CountLate(bool late);

  /// Whether the devices of a plugin whose stream ends still count until this is false again.
  void DropLate(bool late);

  /// How often pod-resources GetAllocatableResources was answered; waits until it was so often.
  int Questions() const;
  bool WaitForQuestions(int count, std::chrono::milliseconds within = std::chrono::seconds(30)) const;

  /// ListAndWatch messages received for a resource.
  int Messages(const std::string& resource) const;
  bool WaitForMessages(const std::string& resource, int count, std::chrono::milliseconds within = std::chrono::seconds(30)) const;

  /// Calls the plugin of a resource, as the kubelet would for one container, in the caller's thread.
  base::Result<SeenAllocation> Allocate(const std::string& resource, const std::vector<std::string>& ids) const;
  base::Result<std::vector<std::string>> Prefer(const std::string& resource, const std::vector<std::string>& available,
                                                const std::vector<std::string>& must_include, int size) const;
  /// Sends bytes as they are to a method of the plugin ("/v1beta1.DevicePlugin/Allocate"); what it answers.
  base::Status SendBytes(const std::string& resource, const std::string& method, const std::string& bytes) const;

  /// Ends the resource's newest stream from the kubelet's side.
  void EndStream(const std::string& resource);

  /// Registrations are refused with this message; empty: accepted.
  void Refuse(const std::string& message);

  /// How often pod-resources' List was answered.
  int Lists() const;

  /// What List answers, and how long pod-resources takes to answer anything.
  void SetPods(std::vector<FakePod> pods);
  void SetPodResourcesDelay(std::chrono::milliseconds delay);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace penstock::edge::kubelet
