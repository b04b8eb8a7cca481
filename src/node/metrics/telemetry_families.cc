// Adds the measured values, under the families that the vendors' tables of quantities name.
#include <string>

#include "api/metrics.h"
#include "node/metrics/families.h"
#include "node/metrics/values.h"

namespace penstock::node::metrics {
namespace {

/// The labels of a value; `text` holds them if they had to be built.
std::string_view LabelsOf(const device::Quantity& quantity, int link, std::string& text) {
  if (link < 0) return quantity.labels;
  text = quantity.labels;
  if (!text.empty()) text += ',';
  text.append("link=\"").append(std::to_string(link)).append("\"");
  return text;
}

/// Adds the value of the whole device if there is one, otherwise those of its links: both in one
/// family would be counted twice.
void AddQuantity(const DeviceRow& device, const Measured::Part& part, Exposition& page) {
  std::string text;
  for (const sample::Latest& latest : ValuesOf(*device.sample, part.id)) {
    if (!IsOfNow(latest, *device.sample, *part.quantity)) continue;
    std::visit(
        [&](auto number) {
          page.Add(device.labels, LabelsOf(*part.quantity, latest.value.link, text), number);
        },
        InBaseUnit(latest.value.number, part.quantity->unit));
    if (latest.value.link < 0) return;
  }
}

}  // namespace

std::vector<Measured> MeasuredFamilies(const std::vector<const device::Dialect*>& dialects) {
  std::vector<Measured> families;
  for (const api::MetricFamily& family : api::MetricFamilies()) {
    if (family.group != api::MetricGroup::kTelemetry) continue;
    Measured measured{.family = family.name, .parts = {}};
    for (const device::Dialect* dialect : dialects) {
      const auto quantities = dialect->Quantities();
      for (std::size_t i = 0; i < quantities.size(); ++i)
        if (quantities[i].family == family.name)
          measured.parts.push_back(
              {dialect->vendor(), static_cast<device::QuantityId>(i), &quantities[i]});
    }
    if (!measured.parts.empty()) families.push_back(std::move(measured));
  }
  return families;
}

void AddTelemetry(const std::vector<DeviceRow>& devices, const std::vector<Measured>& families,
                  Exposition& page) {
  for (const Measured& measured : families) {
    if (!page.Family(measured.family)) continue;
    for (const DeviceRow& device : devices) {
      if (device.sample == nullptr) continue;
      for (const Measured::Part& part : measured.parts)
        if (part.vendor == device.entry->facts->vendor) AddQuantity(device, part, page);
    }
  }
}

}  // namespace penstock::node::metrics
