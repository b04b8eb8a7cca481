// ComputeOffers at each change.
#include "node/share/offers.h"

namespace penstock::node::share {

Offers::Offers(inventory::Inventory& inventory, ledger::Ledger& ledger, DoorOf door_of, DialectOf dialect_of)
    : inventory_(inventory), ledger_(ledger), door_of_(std::move(door_of)), dialect_of_(std::move(dialect_of)) {
  on_inventory_ = inventory_.published().Subscribe([this](const auto&) { Compute(); });
  on_ledger_ = ledger_.published().Subscribe([this](const auto&) { Compute(); });
  Compute();
}

void Offers::Compute() {
  auto offers = ComputeOffers(*inventory_.published().Get(), *ledger_.published().Get(), door_of_, dialect_of_);
  if (offers != *published_.Get()) published_.Set(std::move(offers));
}

}  // namespace penstock::node::share
