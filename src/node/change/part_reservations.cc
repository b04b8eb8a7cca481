#include "node/change/part_reservations.h"

#include <algorithm>
#include <iterator>

namespace penstock::node::change {

const Reservation* PartReservations::Of(const std::string& ticket) const {
  const auto found = tickets_.find(ticket);
  return found == tickets_.end() ? nullptr : &found->second;
}

const Reservation& PartReservations::Add(const std::string& ticket, const Reservation& more) {
  Reservation& reserved = tickets_[ticket];
  reserved.insert(reserved.end(), more.begin(), more.end());
  return reserved;
}

bool PartReservations::Has(const std::string& part) const {
  return std::ranges::any_of(tickets_, [&](const auto& reserved) {
    return std::ranges::find(reserved.second, part, &ReservedPart::id) != reserved.second.end();
  });
}

std::set<std::string> PartReservations::OfOthers(const std::string& ticket) const {
  std::set<std::string> ids;
  for (const auto& [other, reserved] : tickets_)
    for (const ReservedPart& one : reserved)
      if (other != ticket && !one.id.empty()) ids.insert(one.id);
  return ids;
}

std::vector<ReservedPart> PartReservations::On(const std::string& device) const {
  std::vector<ReservedPart> parts;
  for (const auto& [ticket, reserved] : tickets_)
    std::ranges::copy_if(reserved, std::back_inserter(parts),
                         [&](const ReservedPart& one) { return one.device == device; });
  return parts;
}

bool PartReservations::Replace(const std::function<void(ReservedPart&)>& replace) {
  bool any = false;
  for (auto& [ticket, reserved] : tickets_)
    for (ReservedPart& one : reserved) {
      if (!one.id.empty()) continue;
      replace(one);
      any = any || !one.id.empty();
    }
  return any;
}

void PartReservations::Created(const std::string& device, const partition::DesiredParts& part,
                               const std::string& id) {
  for (auto& [ticket, reserved] : tickets_)
    for (ReservedPart& one : reserved)
      if (one.id.empty() && one.device == device && one.part == part) one.id = id;
}

bool PartReservations::DropLacking(const std::string& device,
                                   const std::vector<partition::DesiredParts>& parts) {
  const auto lacks = [&](const ReservedPart& one) {
    return one.id.empty() && one.device == device &&
           std::ranges::find(parts, one.part) != parts.end();
  };
  return std::erase_if(tickets_, [&](const auto& reserved) {
           return std::ranges::any_of(reserved.second, lacks);
         }) > 0;
}

}  // namespace penstock::node::change
