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
  HealthSockets(os::Loop& control, node::inventory::Inventory& inventory,
                node::ledger::Ledger& ledger)
      : control_(control), inventory_(inventory), ledger_(ledger) {}
  ~HealthSockets();
  HealthSockets(const HealthSockets&) = delete;
  HealthSockets& operator=(const HealthSockets&) = delete;

  /// Call after each change of either.
  void Follow();

 private:
  struct Socket {
    std::string vendor;
    std::unique_ptr<os::PathWatch> watch;
    std::unique_ptr<protocol::metricssvc::HealthServer> server;
    std::vector<protocol::metricssvc::DeviceHealth> devices;  ///< as published last
    std::string problem;                                      ///< as last written to the log
    base::TimerId retry = 0;
  };
  void Try(const std::string& path);
  void Publish(Socket& socket);

  os::Loop& control_;
  node::inventory::Inventory& inventory_;
  node::ledger::Ledger& ledger_;
  std::map<std::string, Socket> sockets_;  // by path
};

}  // namespace penstock::app
