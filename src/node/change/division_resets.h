// Resets devices while they are divided, for a mode to take effect.
#pragma once

#include <functional>
#include <string>

#include "base/core/result.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "device/model.h"
#include "node/change/divisions.h"

namespace penstock::node::change {

/// On the control executor. Waits until nothing else uses the driver, and releases the agent's own
/// connection to it meanwhile.
class DivisionResets {
 public:
  using Done = std::function<void(base::Status)>;

  DivisionResets(base::Executor& control, const Divisions::Node& node,
                 Divisions::VendorOf vendor_of);

  /// Calls `done` once, when the driver can be called again; not after the destructor.
  void Reset(const device::Facts& device, Done done);

 private:
  void AwaitDriverUnused(const std::string& device, std::function<void()> then);
  void ResetAlone(const Divisions::Vendor& vendor, const device::Facts& device, Done done);
  void AwaitDriver(const std::function<bool()>& ready, base::TimePoint until, Done done);

  base::Executor& control_;
  const Divisions::Node node_;
  const Divisions::VendorOf vendor_of_;
  base::Lifetime lifetime_;
};

}  // namespace penstock::node::change
