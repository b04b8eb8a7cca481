// Serves the health of devices as an exporter does, for a device plugin that asks an exporter for
// it: the gRPC service metricssvc.MetricsService on a unix socket.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::protocol::metricssvc {

struct DeviceHealth {
  std::string number;  ///< "0"
  std::string id;
  std::string pci;  ///< "0000:05:00.0": the plugin's name of the device
  bool healthy = true;
  std::vector<std::string> holders;  ///< "pod : train-0, namespace : ml, container: main"
  bool operator==(const DeviceHealth&) const = default;
};

/// Serves from Start to its destructor.
class HealthServer {
 public:
  /// Only root and this process's user can connect. kAlreadyExists: another process serves there;
  /// kPermissionDenied: another user than root or this process's could replace the socket;
  /// kNotFound: its folder is not there; kUnavailable: the socket cannot be created. A socket that
  /// no process serves is replaced. Blocks for milliseconds.
  static base::Result<std::unique_ptr<HealthServer>> Start(const std::string& socket);

  /// Ends the calls under way (milliseconds) and removes the socket, if it is still this one.
  ~HealthServer();

  /// The answer from now on. Any thread.
  void Publish(std::vector<DeviceHealth> devices);

  /// Whether the socket is still this one: another process may have replaced it.
  bool IsServed() const;

 private:
  struct Impl;
  explicit HealthServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::protocol::metricssvc
