// Finds a vendor's driver on this node: in the root of a driver container, if one has put its root
// where it was agreed, otherwise in the host's own root. Follows it while the agent runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/config/node_config.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "os/loop.h"
#include "os/watch/mount_watch.h"

namespace penstock::app {

/// Where a vendor's driver is.
struct DriverRoot {
  bool container = false;  ///< in a driver container's root; otherwise in the configured root
  std::string place;       ///< of the container's root, below the configured root, without links
  bool own_dev = false;    ///< device files are in the container's /dev
  std::string instance;    ///< differs for each root that is put there, and for each library in it
  std::string problem;  ///< why what is there is not the driver's root, one sentence; empty: there
                        ///< is nothing, or it is
  std::string seen;     ///< differs for each folder that is there, used or not
  bool operator==(const DriverRoot&) const = default;
};

/// Whether the same driver is in both.
bool SameRoot(const DriverRoot& a, const DriverRoot& b);

/// What decides it, of a configuration.
struct DriverRootSearch {
  api::PathsConfig paths;
  bool fixed_library = false;  ///< the configuration names the library: no root is looked for
  DriverRootSearch(const api::NodeConfig& config, std::string_view vendor);
};

/// Looks for the root now. Only a folder counts that none but root can change, on its whole way,
/// and that has one of the dialect's libraries. Blocks for some system calls. Any thread.
DriverRoot FindDriverRoot(const DriverRootSearch& search, const device::Dialect& dialect);

/// The configured paths, with this root in place of the configured one. Device files follow, unless
/// the configuration has them elsewhere than the host's driver.
api::PathsConfig PathsIn(const api::PathsConfig& paths, const DriverRoot& root);

/// The configuration, for a program that uses the driver of this vendor once. Blocks likewise.
api::NodeConfig WithDriverRoot(api::NodeConfig config, const device::Dialect& dialect);

/// As the inventory describes it; `module` differs for each load of the driver's module.
std::shared_ptr<const node::inventory::DriverLocation> PlaceIn(const api::PathsConfig& paths,
                                                               const DriverRoot& root,
                                                               const std::string& module);

/// Follows where a vendor's driver is, without a timer of its own: looks after mounts have changed,
/// and when asked. On the control loop; files are looked at on `io`, except for the first time.
class DriverRootWatch {
 public:
  /// `changed` is called with what was there before.
  DriverRootWatch(os::Loop& control, base::Executor& io, DriverRootSearch search,
                  const device::Dialect& dialect,
                  std::function<void(const DriverRoot& before)> changed);

  const DriverRoot& now() const { return now_; }

  ~DriverRootWatch();

  /// Files that concern the driver have changed. A container's root that is away counts as there
  /// for three seconds, as long as its module is loaded: a container that starts again takes its
  /// root away and puts it there.
  void Look();

 private:
  void Looked(DriverRoot root, bool loaded);
  bool MayComeBack(const DriverRoot& root, bool loaded);
  bool Follows() const;
  void LogProblem(const std::string& before) const;

  os::Loop& control_;
  base::Executor& io_;
  const DriverRootSearch search_;
  const device::Dialect& dialect_;
  const std::function<void(const DriverRoot& before)> changed_;
  DriverRoot now_;
  bool looking_ = false, again_ = false;
  std::optional<base::TimePoint> away_since_;
  base::TimerId back_by_ = 0;
  std::unique_ptr<os::MountWatch> mounts_;
  base::Lifetime lifetime_;
};

}  // namespace penstock::app
