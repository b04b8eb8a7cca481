// Serves the health of a vendor's devices on the socket of that vendor's exporter, for its device
// plugin, which can serve the kubelet on until it is replaced.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "os/loop.h"
#include "os/watch/watch.h"
#include "protocol/metricssvc/health_server.h"

namespace penstock::app {

/// On the control loop. A socket is served while its folder exists, the vendor has a driver, and no
/// other process serves it; an exporter that ends is replaced within half a minute.
class HealthSockets {
 public:
  explicit HealthSockets(os::Loop& control) : control_(control) {}
  ~HealthSockets();
  HealthSockets(const HealthSockets&) = delete;
  HealthSockets& operator=(const HealthSockets&) = delete;

  /// Call with each change of either.
  void Follow(const node::inventory::Snapshot& inventory, const node::ledger::Snapshot& ledger);

 private:
  struct Socket {
    std::unique_ptr<os::PathWatch> watch;
    std::unique_ptr<protocol::metricssvc::HealthServer> server;
    std::vector<protocol::metricssvc::DeviceHealth> devices;
    std::string problem;  ///< as last written to the log
    base::TimerId retry = 0;
  };
  void Try(const std::string& path);

  os::Loop& control_;
  std::map<std::string, Socket> sockets_;  // by path
};

}  // namespace penstock::app
