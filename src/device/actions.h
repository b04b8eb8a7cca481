// The third seam to a vendor: what can be done to its devices. Decides nothing: whether it may be done is the caller's to know.
#pragma once

#include <functional>
#include <vector>

#include "base/core/result.h"
#include "device/model.h"

namespace penstock::device {

/// One vendor's, over the programs of its driver. On the control executor.
class Actions {
 public:
  virtual ~Actions() = default;

  /// Which of these devices have to be reset together with this one, itself among them (those it is linked with, where the hardware cannot
  /// reset one alone). Pure.
  virtual std::vector<std::string> ResetTogether(const Facts& device, const std::vector<const Facts*>& all) const = 0;

  /// Resets these devices; takes seconds to minutes. `done` is called once, on the control executor, not after the destructor. kNotFound:
  /// no program for it, the message says which; kFailedPrecondition: refused, with what the driver's program said (a process is on it);
  /// kDeadlineExceeded.
  virtual void Reset(const std::vector<Facts>& devices, std::function<void(base::Status)> done) = 0;
};

}  // namespace penstock::device
