// Reports to the caller that had a layout applied: progress, and one answer.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "node/change/layout_state.h"

namespace penstock::node::change {

/// On the control executor. At most one caller at a time.
class LayoutAnswer {
 public:
  using Progress = std::function<void(const DeviceDivision&)>;
  using Done = std::function<void(base::Result<std::vector<DeviceDivision>>)>;
  struct Caller {
    Progress progress;                     ///< may be null
    Done done;                             ///< may be null
    bool waits = false;                    ///< for holders
    std::optional<base::TimePoint> until;  ///< this long; nothing: as long as it takes
  };

  void Begin(Caller caller);

  /// Ends it with this answer; without a caller, does nothing.
  void End(base::Result<std::vector<DeviceDivision>> answer);

  /// Reports devices whose state is new, and answers once all is done, or can no longer be.
  /// `problem`: why the layout cannot be applied at all; empty: it can.
  void Report(const LayoutState& state, const std::string& problem, base::TimePoint now);

 private:
  void ReportDevices(const std::vector<DeviceDivision>& devices);
  void AnswerNow(const LayoutState& state, const std::string& problem, base::TimePoint now);

  std::optional<Caller> caller_;
  std::map<std::string, DeviceDivision> reported_;  // by device
};

}  // namespace penstock::node::change
