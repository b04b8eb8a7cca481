// Asks the machine's service manager about units, and stops and starts them, by systemctl(1): what
// reaches the machine's first process from a container without a D-Bus of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "os/loop.h"
#include "os/process/command.h"

namespace penstock::protocol::systemd {

/// A unit as the service manager has it (systemd.unit(5)).
struct ServiceUnit {
  std::string id;                         ///< its name, where it was asked for by an alias
  std::vector<std::string> names;         ///< all names, with that one
  bool exists = false;                    ///< there is a unit file
  bool active = false;                    ///< it runs, or is about to
  std::string control_group;              ///< "/system.slice/x.service"; empty: no process
  std::vector<std::string> stopped_with;  ///< units that a stop of this one stops, too, and that a
                                          ///< start of it does not start again
};

/// What `systemctl show` prints of units, each a block of lines KEY=VALUE. Pure.
std::vector<ServiceUnit> ParseUnits(std::string_view shown);

/// On the loop. One request at a time: the next one, and the destructor, end the wait for the one
/// before, which the service manager completes.
class Services {
 public:
  /// `enter`: prefix of the command that must see what the machine's first process sees
  /// (os::LaunchArguments); empty: this process does.
  Services(os::Loop& loop, std::vector<std::string> enter);

  /// Errors of all three: kNotFound, there is no systemctl; kDeadlineExceeded; kUnavailable, what
  /// systemctl said. A unit that does not exist is no error here.
  using Shown = std::function<void(base::Result<std::vector<ServiceUnit>>)>;
  void Show(const std::vector<std::string>& units, Shown shown);

  /// Waits until the unit has stopped or started.
  using Done = std::function<void(base::Status)>;
  void Stop(const std::string& unit, Done done);
  void Start(const std::string& unit, Done done);

 private:
  using Answered = std::function<void(base::Result<std::string>)>;
  void Run(std::vector<std::string> arguments, const std::vector<std::string>& units,
           base::Duration most, Answered answered);

  os::Loop& loop_;
  const std::vector<std::string> enter_;
  std::unique_ptr<os::Command> command_;
};

}  // namespace penstock::protocol::systemd
