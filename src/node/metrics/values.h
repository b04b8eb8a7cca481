// Selects current values of a sample and converts them to the units of the page. Pure; any thread.
#pragma once

#include <span>
#include <string>

#include "device/exporter.h"
#include "device/telemetry.h"
#include "node/sample/samples.h"

namespace penstock::node::metrics {

/// The values of a quantity: first the device's own, if it has one, then its links'.
std::span<const sample::Latest> ValuesOf(const sample::DeviceSample& sample,
                                         device::QuantityId quantity);

/// Returns false for a repeatedly sampled value that is more than five minutes older than the
/// device's last sample.
bool IsOfNow(const sample::Latest& latest, const sample::DeviceSample& sample,
             const device::Quantity& quantity);

/// Converts to the base unit of `unit`; integers stay exact where possible.
device::Number InBaseUnit(const device::Number& number, device::Unit unit);

/// Formats the value of a field as the vendor's exporter does, under its older or newer naming: as
/// an integer ("%d"), or with six decimals ("%f"). Empty if it cannot be formatted so.
std::string AsExporter(const device::Number& number, const device::ExporterField& field,
                       bool new_naming);

}  // namespace penstock::node::metrics
