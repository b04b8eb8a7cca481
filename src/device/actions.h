// Interface to the actions on a vendor's devices. The caller decides whether an action is allowed.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "device/backend.h"
#include "device/model.h"

namespace penstock::device {

/// The longest that an action takes, with what it waits for: it then ends with kDeadlineExceeded.
/// What waits for actions is bounded by these.
inline constexpr base::Duration kLongestReset = std::chrono::minutes(25);
inline constexpr base::Duration kLongestReload = std::chrono::hours(2);

/// The actions of one vendor, which run the programs of its driver. On the control executor.
class Actions {
 public:
  virtual ~Actions() = default;

  /// Which of these devices must be reset together with this one, including itself (those linked
  /// with it, if the hardware cannot reset one alone). Pure.
  virtual std::vector<std::string> ResetTogether(const Facts& device,
                                                 const std::vector<const Facts*>& all) const = 0;

  /// The driver and its programs are now elsewhere. A reset under way ends as it began.
  virtual void SetPaths(const Paths& /*paths*/) {}

  /// Resets these devices; takes seconds to minutes, kLongestReset at most. `done` is called once,
  /// on the control executor, and never after the destructor. kNotFound: a program is missing, the
  /// message names it; kFailedPrecondition: refused, with the output of the driver's program (a
  /// process is on the device); kDeadlineExceeded.
  virtual void Reset(const std::vector<Facts>& devices, std::function<void(base::Status)> done) = 0;

  /// Unloads the driver and loads it again, while no device of this vendor is in use and the
  /// agent's connection to the driver is released; takes seconds to minutes, kLongestReload at
  /// most. `done` as for Reset, but kUnimplemented, where no mode takes effect so, at once.
  virtual void ReloadDriver(std::function<void(base::Status)> done) {
    done(base::Error(base::Code::kUnimplemented, "Penstock does not load this driver again"));
  }
};

}  // namespace penstock::device
