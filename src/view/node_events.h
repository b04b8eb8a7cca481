// Derives events on the Node object from the difference between two reports.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/report.h"
#include "node/health/status.h"

namespace penstock::view {

struct NodeEvent {
  bool warning = false;
  std::string
      reason;  ///< "DeviceUnhealthy", "DeviceRecovered", "DeviceGone", "DeviceBack",
               ///< "DriverMissing", "DriverLoaded", "ConfigurationApplied", "ConfigurationRefused",
               ///< "LayoutApplied", "LayoutFailed", "OtherPluginServes", "KubeletDoorOpen",
               ///< "SharingServerReady", "SharingServerNotReady", "ValidationFailed",
               ///< "ValidationPassed", and those of node::health::Notice
  std::string message;
  bool operator==(const NodeEvent&) const = default;
};

/// Keeps the last known state of each item; a state that is temporarily unknown is no event.
class ReportEvents {
 public:
  /// Sets what was reported before this agent started, from the node's own object. Call it before
  /// the first Next; otherwise the first report yields no events.
  void Remember(const api::Report& before);

  /// `notices` are those since this agent started; each is reported once, also on the first call.
  std::vector<NodeEvent> Next(const api::Report& now,
                              const std::vector<node::health::Notice>& notices = {});

 private:
  std::vector<NodeEvent> Take(const api::Report& now);
  void Drivers(const api::Report& now, std::vector<NodeEvent>& events);
  void Devices(const api::Report& now, std::vector<NodeEvent>& events);
  void Allocators(const api::Report& now, std::vector<NodeEvent>& events);
  void Servers(const api::Report& now, std::vector<NodeEvent>& events);
  void Layout(const api::Report& now, std::vector<NodeEvent>& events);
  void Configuration(const api::Report& now, std::vector<NodeEvent>& events);
  void Validation(const api::Report& now, std::vector<NodeEvent>& events);

  bool begun_ = false;
  bool remembered_ = false;                     // from an object: times in it are another agent's
  std::map<std::string, std::string> drivers_;  // vendor → version, empty while there is none
  std::map<std::string, std::string> devices_;  // id → "healthy", "unhealthy", "gone"
  std::map<std::string, std::string> allocators_;  // name → "open", "stepped-back"
  /// A server through which devices are shared.
  struct Server {
    std::string state, reason;
    bool reported = false;  // that it is not ready: once, until it is ready
  };
  std::map<std::string, Server> servers_;  // by set
  std::uint64_t next_notice_ = 0;
  api::ConfigurationReport configuration_;
  api::LayoutReport layout_;                  // as last reported
  std::map<std::string, std::string> steps_;  // of the validation → "passed", "failed"
};

}  // namespace penstock::view
