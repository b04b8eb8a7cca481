// Resets devices while they are divided, for a mode to take effect.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "device/model.h"
#include "node/change/divisions.h"

namespace penstock::node::change {

/// On the control executor. Waits until all changes that divide a device with a reset have come so
/// far or have failed, and nothing else uses the driver. Then resets all of their devices in one
/// operation, for which the agent's own connection to the driver is released once. If that fails,
/// those whose mode has not taken effect are reset one by one: a device that is in use does not
/// stop the others.
class DivisionResets {
 public:
  using Done = std::function<void(base::Status)>;

  DivisionResets(base::Executor& control, const Divisions::Node& node,
                 const Divisions::VendorOf& vendor_of);

  /// Calls `done` once, when the driver can be called again; not after the destructor. The result
  /// is that of this device. kUnimplemented: it cannot be reset, or only together with others that
  /// are not to be reset now.
  void Reset(const device::Facts& device, Done done);

  /// A device that waits is not to be reset any more.
  void Forget(const std::string& device);

 private:
  struct Waiting {
    device::Facts device;
    Done done;
    bool alone = false;
  };
  using Batch = std::vector<Waiting>;

  void Next();
  bool IsAnyToCome(const std::set<std::string>& here) const;
  Batch Take();
  void Refuse(Batch& batch);
  void Begin(Batch batch);
  void Ended(Batch batch, const base::Status& result, const base::Status& opened);
  void ReadBack(Waiting one, const base::Status& result);
  void AwaitDriver(const std::function<bool()>& ready, base::TimePoint until, Done done);

  base::Executor& control_;
  const Divisions::Node node_;
  const Divisions::VendorOf& vendor_of_;
  Batch waiting_;
  bool busy_ = false, polling_ = false;
  base::Lifetime lifetime_;
};

}  // namespace penstock::node::change
