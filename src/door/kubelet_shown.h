// Which of the offers the kubelet is shown: a device that containers could not be given yet is not among them. Pure but for its memory.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "door/device_list.h"
#include "node/cdi/keeper.h"
#include "node/share/offer.h"

namespace penstock::door {

/// On the control loop.
class KubeletShown {
 public:
  struct Gate {
    DeviceListing listing;
    const node::cdi::Written* written = nullptr;  ///< null: no specifications are written here
    std::vector<std::string> missing;             ///< classes of devices that are required and not there
  };

  /// The kubelet's part of the offers. Where something is in the way of a device, one that it was never shown is left out, so that it
  /// counts no capacity that was never there; one that it was shown stays, not usable, since taking it away would look like a broken
  /// machine.
  std::vector<node::share::Offer> Show(const std::vector<node::share::Offer>& offers, const Gate& gate);

  /// What is in the way of devices of the last offers, by device id: one sentence each.
  const std::map<std::string, std::string>& withheld() const { return withheld_; }

 private:
  std::set<std::string> shown_;
  std::map<std::string, std::string> withheld_;
};

}  // namespace penstock::door
