// What happened on this node, from the difference of two reports, for Events on the Node. Tells nothing that was so before.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/report.h"
#include "node/health/status.h"

namespace penstock::door {

struct NodeEvent {
  bool warning = false;
  std::string reason;  ///< "DeviceUnhealthy", "DeviceRecovered", "DeviceGone", "DeviceBack", "DriverMissing", "DriverLoaded",
                       ///< "ConfigurationApplied", "ConfigurationRefused", "OtherPluginServes", "KubeletDoorOpen",
                       ///< "SharingServerReady", "SharingServerNotReady", and those of node::health::Notice
  std::string message;
  bool operator==(const NodeEvent&) const = default;
};

/// Keeps of each thing the last state that means something; what is not known for a while is no event.
class ReportEvents {
 public:
  /// What was told before this agent began, from the node's own object. Before the first Next; else the first report tells nothing.
  void Remember(const api::Report& before);

  /// `notices` are those of this agent's life; each is told once, also the first time.
  std::vector<NodeEvent> Next(const api::Report& now, const std::vector<node::health::Notice>& notices = {});

 private:
  std::vector<NodeEvent> Take(const api::Report& now);
  void Drivers(const api::Report& now, std::vector<NodeEvent>& events);
  void Devices(const api::Report& now, std::vector<NodeEvent>& events);
  void Doors(const api::Report& now, std::vector<NodeEvent>& events);
  void Servers(const api::Report& now, std::vector<NodeEvent>& events);
  void Configuration(const api::Report& now, std::vector<NodeEvent>& events);

  bool begun_ = false;
  bool remembered_ = false;                     // from an object: times in it are another agent's
  std::map<std::string, std::string> drivers_;  // vendor → version, empty while there is none
  std::map<std::string, std::string> devices_;  // id → "healthy", "unhealthy", "gone"
  std::map<std::string, std::string> doors_;    // name → "open", "stepped-back"
  /// A server through which devices are shared.
  struct Server {
    std::string state, reason;
    bool told = false;  // that it is not ready: once, until it is
  };
  std::map<std::string, Server> servers_;  // by set
  std::uint64_t next_notice_ = 0;
  api::ConfigurationReport configuration_;
};

}  // namespace penstock::door
