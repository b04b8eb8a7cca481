// Chooses which offers the kubelet is shown: withholds devices that cannot be injected into
// containers yet. Pure except for its memory of what it showed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "adapter/kubelet/device_list.h"
#include "node/cdi/spec_writer.h"
#include "node/share/offer.h"

namespace penstock::adapter::kubelet {

/// Use on the control loop.
class AdvertisementFilter {
 public:
  struct Gate {
    DeviceListChoice listing;
    const node::cdi::Written* written = nullptr;  ///< null: no specifications are written here
    std::vector<std::string> missing;             ///< required classes of devices that are missing
    std::map<std::string, std::string> waiting = {};  ///< device id → why it is not shown yet
  };

  /// Returns the kubelet's part of the offers. A withheld device that was never shown is left out,
  /// so that it adds no capacity; one that was shown stays as unusable, since removing it would
  /// look like a broken machine.
  std::vector<node::share::Offer> Show(const std::vector<node::share::Offer>& offers,
                                       const Gate& gate);

  /// Device id → why it is withheld from the last offers, one sentence each.
  const std::map<std::string, std::string>& withheld() const { return withheld_; }

 private:
  std::set<std::string> shown_;
  std::map<std::string, std::string> withheld_;
};

}  // namespace penstock::adapter::kubelet
