// The specifications of this node, kept on disk as the machine is: written before anybody is told of a device, gone with its driver.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/executor.h"
#include "base/published.h"
#include "node/cdi/folder.h"
#include "node/cdi/generate.h"
#include "node/inventory/inventory.h"
#include "node/share/offer.h"
#include "os/loop.h"

namespace penstock::node::cdi {

/// What is in the folder by our hand.
struct Written {
  std::set<std::string> devices;      ///< ids that specifications for the kubelet name
  std::set<std::string> others;       ///< devices of further classes that are written, qualified: "k8s.device-plugin.nvidia.com/gds=all"
  std::vector<std::string> kinds;     ///< all that are written, sorted
  std::vector<std::string> problems;  ///< what is not written, and why, with what to do
  std::map<std::string, std::string> mismatched;  ///< vendor → why programs cannot use its driver: the libraries are of another version
  std::vector<std::string> remarks;               ///< what was not found of the driver
  bool operator==(const Written&) const = default;
};

/// On the control loop. Writes where something changed in the facts of devices, in a driver, or in the folders that a specification is made
/// of: files are looked at and written on the I/O executor, each as a whole, and only where they are another text than is there already.
/// Files of others stay; one that gives the same devices makes ours stay away. What cannot be written is tried again every 10 s.
class Keeper {
 public:
  struct Settings {
    std::string folder = "/var/run/cdi";
    Places places;
    Options options;
  };

  Keeper(os::Loop& control, base::Executor& io, inventory::Inventory& inventory, share::DialectOf dialect_of, Settings settings);
  ~Keeper();

  /// Writes now, and whenever something changes. All vendors have been looked at: before that no device would mean nothing.
  void Begin();

  /// As an agent of this configuration would have begun.
  void Configure(Options options);

  base::Published<Written>& published();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::cdi
