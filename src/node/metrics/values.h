// Measured values: those that are of now, and in the units that pages show. Pure; any thread.
#pragma once

#include <span>
#include <string>

#include "device/exporter.h"
#include "device/telemetry.h"
#include "node/sample/samples.h"

namespace penstock::node::metrics {

/// Of a quantity: the device's first, if it has one, then its links'.
std::span<const sample::Latest> ValuesOf(const sample::DeviceSample& sample, device::QuantityId quantity);

/// False where a value came again and again and has not for five minutes, although the device answers.
bool IsOfNow(const sample::Latest& latest, const sample::DeviceSample& sample, const device::Quantity& quantity);

/// In the unit's base unit; what is whole stays exact where it can.
device::Number InBaseUnit(const device::Number& number, device::Unit unit);

/// As a vendor's exporter writes the value of a field, under its older or its newer naming: whole ("%d"), or with six decimals ("%f").
/// Empty where it cannot be written so.
std::string AsExporter(const device::Number& number, const device::ExporterField& field, bool new_naming);

}  // namespace penstock::node::metrics
