// Which parts are created for which queued request. Pure.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "node/partition/plan.h"

namespace penstock::node::change {

/// A part for a request.
struct ReservedPart {
  std::string device;
  partition::DesiredParts part;  ///< one, with its placement
  std::string id;                ///< empty: it is not created yet
};
using Reservation = std::vector<ReservedPart>;

/// By ticket.
class PartReservations {
 public:
  /// Null: it has none.
  const Reservation* Of(const std::string& ticket) const;

  const Reservation& Add(const std::string& ticket, const Reservation& more);

  /// Returns whether there was one.
  bool Release(const std::string& ticket) { return tickets_.erase(ticket) > 0; }

  bool empty() const { return tickets_.empty(); }

  /// Whether a part that exists is reserved.
  bool Has(const std::string& part) const;

  /// The parts that exist and are reserved for other requests.
  std::set<std::string> OfOthers(const std::string& ticket) const;

  /// All of a device.
  std::vector<ReservedPart> On(const std::string& device) const;

  /// Offers each part that is not created yet to the function, which may set `id` and place of one
  /// that exists. Returns whether it did.
  bool Replace(const std::function<void(ReservedPart&)>& replace);

  /// This part was created.
  void Created(const std::string& device, const partition::DesiredParts& part,
               const std::string& id);

  /// Releases those that still lack one of these parts. Returns whether there were any.
  bool DropLacking(const std::string& device, const std::vector<partition::DesiredParts>& parts);

 private:
  std::map<std::string, Reservation> tickets_;
};

}  // namespace penstock::node::change
