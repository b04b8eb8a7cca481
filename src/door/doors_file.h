// doors.json: which devices were moved between doors by hand, for an agent that starts later. No I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::door {

/// A device that belongs to another door than the configuration says.
struct ByHand {
  std::optional<std::string> door;  ///< "kubelet", "local", "none"; nothing: where the configuration wants it

  /// Set while it is on its way there.
  struct Way {
    std::string from;                     ///< the door that it left; "" for none
    std::optional<std::string> back;      ///< what was said by hand before; nothing: nothing was
    std::optional<base::WallTime> until;  ///< then it goes back; nothing: it waits for ever
    bool operator==(const Way&) const = default;
  };
  std::optional<Way> way;
  bool operator==(const ByHand&) const = default;
};
using DevicesByHand = std::map<std::string, ByHand>;  ///< by device id

std::string EncodeDoors(const DevicesByHand& devices);

/// kFailedPrecondition where a newer version of the agent wrote it, kDataLoss where it is damaged.
base::Result<DevicesByHand> DecodeDoors(std::string_view text, std::string_view file);

}  // namespace penstock::door
