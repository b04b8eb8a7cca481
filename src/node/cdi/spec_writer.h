// Keeps this node's CDI specifications on disk current: writes a device's specification before the
// device is announced, and removes it with its driver.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/published.h"
#include "node/cdi/folder.h"
#include "node/cdi/generate.h"
#include "node/inventory/inventory.h"
#include "node/share/offer.h"
#include "os/loop.h"

namespace penstock::node::cdi {

/// What the agent has written to the folder.
struct Written {
  std::set<std::string> devices;  ///< ids that specifications for the kubelet name; of an agent
                                  ///< that writes none, those that they would name
  std::set<std::string> others;   ///< devices of further classes that are written, qualified:
                                  ///< "k8s.device-plugin.nvidia.com/gds=all"
  std::size_t text = 0;  ///< differs where the texts of the specifications for the kubelet do
  std::vector<std::string> kinds;                 ///< all that are written, sorted
  std::vector<std::string> problems;              ///< what is not written, why, and what to do
  std::map<std::string, std::string> mismatched;  ///< vendor → why programs cannot use its driver:
                                                  ///< the libraries are of another version
  std::vector<std::string> remarks;  ///< what was not found of the driver, and what containers
                                     ///< cannot do for it
  bool operator==(const Written&) const = default;
};

/// In which specifications containers join the groups of device files that are not open to all
/// users. Without that, a container whose program does not run as root cannot open them. Such a
/// specification has version 0.7.0, and a reader that does not know it ignores all of it.
struct Groups {
  bool for_users = false;  ///< in those of other programs, such as podman
  bool for_kubelet = false;
  std::string why_not;  ///< why not for the kubelet, where that is worth a remark, and what to do:
                        ///< one clause
  bool operator==(const Groups&) const = default;
};

/// Runs on the control loop. Writes where something changed in the facts of devices, in a driver,
/// or in the folders that a specification is made from. Files are read and written on the I/O
/// executor, each as a whole, and only where their text differs from what is there. Other programs'
/// files stay; where one defines the same devices, the agent's is not written. What cannot be
/// written is retried every 10 s.
class CdiSpecWriter {
 public:
  struct Settings {
    std::string folder = "/var/run/cdi";
    Places places;
    Options options;
    Groups groups;
    bool for_kubelet = true;  ///< false: this agent serves no pods. It writes nothing for the
                              ///< kubelet, and leaves the files of these names as they are
                              ///< (OwnFiles)
  };

  CdiSpecWriter(os::Loop& control, base::Executor& io, inventory::Inventory& inventory,
                device::DialectOf dialect_of, Settings settings);
  ~CdiSpecWriter();

  /// Writes now and on each change. Call it after the first look at all vendors: before that, the
  /// absence of devices would mean nothing.
  void Begin();

  /// The inventory has changed.
  void DevicesChanged();

  /// Applies these as if the agent had started with them. `groups` decide instead of
  /// `options.additional_gids`.
  void Configure(Options options, Groups groups);

  base::Published<Written>& published();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::cdi
