// How the devices of the node stand under the layout that applies.
#pragma once

#include <string>
#include <vector>

namespace penstock::node::change {

/// How a device stands under the layout.
struct DeviceDivision {
  std::string device;  ///< id
  std::string number;  ///< by which users know it
  /// "unselected": the layout has no rule for it; "divided": it is as the layout says, and was
  /// since; "changed": it was, and another program has changed it; "waiting": it cannot be divided
  /// yet; "dividing"; "failed": it could not be divided, which is tried again later; "refused": it
  /// cannot be divided so.
  std::string state;
  std::string reason;  ///< of all but "divided"; of "dividing" what is done
  bool operator==(const DeviceDivision&) const = default;
};

struct LayoutState {
  std::string layout;  ///< name; empty: none was applied
  std::string source;
  std::string state;   ///< "pending", "success", "failed"
  std::string reason;  ///< of "failed", for each device; of "pending", that no device is there
  std::vector<DeviceDivision> devices;
  bool operator==(const LayoutState&) const = default;
};

/// Whether there is nothing to do for the device.
bool IsGood(const DeviceDivision& division);

/// Of the others, those with the same reason together: "0, 2: held by pod ml/a; 3: …"
std::string Reasons(const std::vector<DeviceDivision>& devices);

}  // namespace penstock::node::change
