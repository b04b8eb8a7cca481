#include "node/metrics/exporter/exporter_families.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/core/strings.h"
#include "node/metrics/values.h"

namespace penstock::node::metrics {
namespace {

using device::ExporterField;
using device::FieldSource;

device::ExporterStyle StyleOf(const api::TelemetryConfig& config, const std::string& node) {
  device::ExporterStyle style{.old_names = config.old_names,
                              .blanks_replaced = config.blanks_replaced};
  if (node.empty()) return style;
  style.hostname = node;
  const auto is = [&config](api::HostLabel one) {
    return config.host_label == one || config.host_label == api::HostLabel::kBoth;
  };
  if (is(api::HostLabel::kOld)) style.hostname_labels.emplace_back("Hostname");
  if (is(api::HostLabel::kNew)) style.hostname_labels.emplace_back("hostname");
  return style;
}

/// Names of labels that only some series have: the label of a pod must not use them.
device::ExporterLabels Reserved(const device::Exporter& exporter,
                                const device::ExporterStyle& style, bool jobs) {
  device::ExporterLabels reserved = exporter.LabelsOf({.profile = "-"}, nullptr, 0, style);
  const auto add = [&reserved](const device::ExporterLabels& more) {
    reserved.insert(reserved.end(), more.begin(), more.end());
  };
  add(exporter.ErrorLabels(0));
  add(exporter.HolderLabels({"-", "-", "-", "-", "-", jobs ? "-" : ""}, style));
  for (const ExporterField& field : exporter.fields()) {
    add(exporter.PartLabels(field, "-", {}, 0));
    if (field.source == FieldSource::kHealth) add(exporter.WatchLabels({}));
    if (field.source == FieldSource::kFact)
      add({{std::string(field.name), ""}, {std::string(exporter.NewLabel(field.name)), ""}});
  }
  return reserved;
}

/// The usage of the holder's lease on the device, if the lease has not ended; null if it is
/// unknown.
const usage::HolderUsage* FindHolder(const usage::Snapshot* usage, const std::string& lease,
                                     const std::string& device) {
  if (usage == nullptr || lease.empty()) return nullptr;
  const auto& holders = usage->holders;
  auto found = std::partition_point(holders.begin(), holders.end(), [&](const auto& one) {
    return std::tie(one->holder->id, one->device) < std::tie(lease, device);
  });
  for (; found != holders.end() && (*found)->holder->id == lease && (*found)->device == device;
       ++found)
    if (!(*found)->until) return found->get();
  return nullptr;
}

/// The holder's own value in the quantity's unit; nothing if it is unknown.
std::optional<device::Number> OwnValue(const usage::HolderUsage* own, Own what, device::Unit unit) {
  if (own == nullptr) return std::nullopt;
  const double factor = device::BaseOf(unit).factor;
  if (what == Own::kMemory && own->memory_used)
    return static_cast<std::uint64_t>(static_cast<double>(own->memory_used->count) / factor);
  if (what == Own::kUtilization && own->utilization)
    return static_cast<std::uint64_t>(std::llround(*own->utilization / factor));
  return std::nullopt;
}

// Values of a field of kHealth.
constexpr std::int64_t kPass = 0, kWarn = 10, kFail = 20;

/// What is wrong with a device is wrong with its parts.
bool IsAbout(const ExporterView& view, const std::string& device) {
  return device == view.device->id || (view.parent != nullptr && device == view.parent->id);
}

/// The device whose clocks a device has.
const std::string& WithClocks(const ExporterView& view) {
  return view.parent == nullptr ? view.device->id : view.parent->id;
}

std::int64_t HealthOf(device::HealthState state) {
  return state == device::HealthState::kHealthy   ? kPass
         : state == device::HealthState::kUnknown ? kWarn
                                                  : kFail;
}

/// The counts of one kind of error of a device; of a part, with those of its device, which concern
/// it, too. In the order of `counts`, of which each code is one series.
std::vector<std::pair<std::int64_t, std::uint64_t>> ErrorsOf(
    const std::vector<health::EvidenceCount>& counts, const ExporterView& view,
    std::string_view kind) {
  std::vector<std::pair<std::int64_t, std::uint64_t>> errors;
  for (const health::EvidenceCount& count : counts) {
    if (count.kind != kind || !IsAbout(view, count.device)) continue;
    const auto known =
        view.parent == nullptr
            ? errors.end()
            : std::ranges::find(errors, count.code, &std::pair<std::int64_t, std::uint64_t>::first);
    if (known == errors.end())
      errors.emplace_back(count.code, count.count);
    else
      known->second += count.count;
  }
  return errors;
}

std::string PartOf(std::int64_t code) { return code < 0 ? "other" : std::to_string(code); }

}  // namespace

ExporterFamilies::ExporterFamilies(const device::Dialect& dialect,
                                   const api::TelemetryConfig& config, const std::string& node)
    : dialect_(dialect), config_(config), rows_(RowsOf(dialect, config)) {
  const device::ExporterStyle style = StyleOf(config, node);
  setup_ = {.exporter = dialect.exporter(),
            .config = &config_,
            .style = style,
            .rows = rows_.labels,
            .reserved = {}};
  setup_.reserved = Reserved(*dialect.exporter(), style, !config.job_directory.empty());
  reasons_.SetWindow(config.clock_events_window);
}

void ExporterFamilies::AddSample(const sample::DeviceSample& sample, base::TimePoint now) {
  // A family under both namings sees the same sample twice; it counts once.
  for (const ExporterRow& row : rows_.families) {
    const FieldSource source = row.field->source;
    if (source != FieldSource::kReasonsInWindow && source != FieldSource::kReasonsTotal) continue;
    const sample::Latest* latest = sample.Find(*row.quantity);
    const auto* bits =
        latest == nullptr ? nullptr : std::get_if<std::uint64_t>(&latest->value.number);
    if (bits == nullptr) continue;
    if (source == FieldSource::kReasonsInWindow)
      reasons_.AddSample(sample.device, latest->at, *bits, now);
    if (source == FieldSource::kReasonsTotal) rises_.AddSample(sample.device, latest->at, *bits);
  }
}

void ExporterFamilies::Relabel(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger,
                               const attribute::DeviceJobs* jobs) {
  // Jobs of a folder that is no longer configured may still be published for a moment.
  const bool has_jobs = !setup_.config->job_directory.empty();
  views_ = ViewsOf(setup_, dialect_.vendor(), inventory, ledger, has_jobs ? jobs : nullptr);
  link_texts_.assign(views_.size(), {});
  count_ = CountDevices(dialect_.vendor(), inventory);
}

void ExporterFamilies::Add(const std::vector<DeviceRow>& devices, const Snapshots& node,
                           const PageInputs& inputs, Exposition& page) {
  const inventory::VendorEntry* vendor = node.inventory->FindVendor(dialect_.vendor());
  driver_ = vendor == nullptr ? nullptr : vendor->driver.get();
  std::vector<Shown> all;
  std::size_t at = 0;
  for (const ExporterView& view : views_) {
    while (at < devices.size() && devices[at].entry->facts != view.device) ++at;
    if (at == devices.size()) break;
    const auto whole = view.parent == nullptr
                           ? devices.end()
                           : std::ranges::find_if(devices, [&view](const DeviceRow& one) {
                               return one.entry->facts == view.parent;
                             });
    all.push_back({&view, &devices[at], whole == devices.end() ? nullptr : &*whole,
                   FindHolder(node.usage.get(), view.lease, view.device->id),
                   link_texts_[all.size()].data()});
  }
  for (const ExporterRow& row : rows_.families)
    if (page.Family(row.name, row.type, row.help)) AddRow(row, all, inputs, page);
}

/// A device's own value never occurs next to those of its holders: a sum would count it twice.
bool ExporterFamilies::IsIn(const Shown& shown, const ExporterRow& row,
                            const std::vector<Shown>& all) const {
  if (shown.view->shows == Shows::kLinks) return row.field->link;
  if (shown.view->parent != nullptr && row.field->link) return false;
  if (shown.view->shows == Shows::kAll) return true;
  if (row.own == Own::kNothing) return shown.view->shows == Shows::kOthers;
  if (shown.view->shows == Shows::kOwn) return true;
  const device::Unit unit = dialect_.Quantities()[*row.quantity].unit;
  return std::ranges::none_of(all, [&](const Shown& one) {
    return one.view->device == shown.view->device && OwnValue(one.own, row.own, unit).has_value();
  });
}

void ExporterFamilies::AddRow(const ExporterRow& row, const std::vector<Shown>& all,
                              const PageInputs& inputs, Exposition& page) {
  if (row.field->source == FieldSource::kDevices) return AddDeviceCount(page);
  for (const Shown& shown : all) {
    if (!IsIn(shown, row, all)) continue;
    switch (row.field->source) {
      case FieldSource::kQuantity: AddQuantity(row, shown, page); break;
      case FieldSource::kFact: AddFact(row, shown, page); break;
      case FieldSource::kLastError: AddLastError(row, shown, inputs, page); break;
      case FieldSource::kErrorsInWindow: AddErrors(row, shown, inputs, page); break;
      case FieldSource::kReasonsInWindow: AddReasons(row, shown, page); break;
      case FieldSource::kPeers: AddPeers(row, shown, all, page); break;
      case FieldSource::kErrorsTotal: AddErrorTotals(row, shown, inputs, page); break;
      case FieldSource::kReasonsTotal: AddReasonTotals(row, shown, page); break;
      case FieldSource::kHealth: AddHealth(row, shown, inputs, page); break;
      case FieldSource::kHealthy: AddHealthy(row, shown, page); break;
      case FieldSource::kDevices: break;      // one series, above
      case FieldSource::kUnavailable: break;  // no row has such a field
    }
  }
}

void ExporterFamilies::AddQuantity(const ExporterRow& row, const Shown& shown, Exposition& page) {
  const std::string& text = shown.view->texts[row.new_naming ? 1 : 0];
  const device::Quantity& quantity = dialect_.Quantities()[*row.quantity];
  if (row.own != Own::kNothing && !shown.view->lease.empty()) {
    if (const auto own = OwnValue(shown.own, row.own, quantity.unit))
      page.AddWritten(text, AsExporter(*own, *row.field, row.new_naming));
    return;
  }
  if (shown.device->sample != nullptr && AddValues(row, shown, *shown.device->sample, page)) return;
  if (shown.whole != nullptr && shown.whole->sample != nullptr &&
      setup_.exporter->IsOfWhole(*row.field, *shown.view->device))
    AddValues(row, shown, *shown.whole->sample, page);
}

/// Returns whether there is a value.
bool ExporterFamilies::AddValues(const ExporterRow& row, const Shown& shown,
                                 const sample::DeviceSample& sample, Exposition& page) {
  const std::string& text = shown.view->texts[row.new_naming ? 1 : 0];
  const device::Quantity& quantity = dialect_.Quantities()[*row.quantity];
  bool any = false;
  for (const sample::Latest& latest : ValuesOf(sample, *row.quantity)) {
    const int link = latest.value.link;
    const bool many = row.field->link || row.field->index;
    if ((many ? link < 0 : link != row.field->one_link) || !IsOfNow(latest, sample, quantity))
      continue;
    const std::string value = AsExporter(latest.value.number, *row.field, row.new_naming);
    if (value.empty()) continue;
    if (row.field->index) {
      const std::string_view index = IndexText(*row.field, link);
      if (index.empty()) continue;
      page.AddWritten(text, index, value);
    } else {
      page.AddWritten(row.field->link ? LinkText(row, shown, link) : text, value);
    }
    any = true;
  }
  return any;
}

void ExporterFamilies::AddFact(const ExporterRow& row, const Shown& shown, Exposition& page) {
  const std::string value =
      FactOf(*setup_.exporter, *row.field, *shown.view->device, shown.view->parent.get(), driver_);
  if (base::ParseInt(value)) page.AddWritten(shown.view->texts[row.new_naming ? 1 : 0], value);
}

void ExporterFamilies::AddLastError(const ExporterRow& row, const Shown& shown,
                                    const PageInputs& inputs, Exposition& page) {
  const health::EvidenceCount* last = nullptr;
  for (const health::EvidenceCount& count : inputs.evidence)
    if (IsAbout(*shown.view, count.device) && count.kind == row.field->from && count.code >= 0 &&
        (last == nullptr || count.last > last->last))
      last = &count;
  const std::int64_t code = last == nullptr ? 0 : last->code;
  page.AddWritten(
      TextOf(setup_, *shown.view, row.new_naming, -1, {}, setup_.exporter->ErrorLabels(code)),
      std::to_string(code));
}

void ExporterFamilies::AddErrors(const ExporterRow& row, const Shown& shown,
                                 const PageInputs& inputs, Exposition& page) {
  const auto errors = ErrorsOf(inputs.recent_evidence, *shown.view, row.field->from);
  for (const auto& [code, count] : errors)
    AddPart(row, shown, PartOf(code), config_.errors_window, static_cast<std::int64_t>(count),
            page);
  if (errors.empty()) AddPart(row, shown, "", config_.errors_window, 0, page);
}

void ExporterFamilies::AddReasons(const ExporterRow& row, const Shown& shown, Exposition& page) {
  bool any = false;
  for (const auto& [bit, name] : setup_.exporter->reasons()) {
    const std::uint64_t count = reasons_.Count(WithClocks(*shown.view), bit);
    if (count > 0)
      AddPart(row, shown, name, config_.clock_events_window, static_cast<std::int64_t>(count),
              page);
    any = any || count > 0;
  }
  if (!any) AddPart(row, shown, "", config_.clock_events_window, 0, page);
}

/// Only errors that occurred: the exporter's counters, too, start with the first event.
void ExporterFamilies::AddErrorTotals(const ExporterRow& row, const Shown& shown,
                                      const PageInputs& inputs, Exposition& page) {
  for (const auto& [code, count] : ErrorsOf(inputs.evidence, *shown.view, row.field->from))
    if (code != 0) AddPart(row, shown, PartOf(code), {}, static_cast<std::int64_t>(count), page);
}

void ExporterFamilies::AddReasonTotals(const ExporterRow& row, const Shown& shown,
                                       Exposition& page) {
  for (const auto& [bit, name] : setup_.exporter->reasons())
    if (const std::uint64_t count = rises_.Count(WithClocks(*shown.view), bit); count > 0)
      AddPart(row, shown, name, {}, static_cast<std::int64_t>(count), page);
}

/// The whole device, then what is watched of it, each with the most severe concern about it, which
/// is omitted for a device in state unknown. A partition has the concerns of its device, too.
void ExporterFamilies::AddHealth(const ExporterRow& row, const Shown& shown,
                                 const PageInputs& inputs, Exposition& page) {
  const device::Exporter& exporter = *setup_.exporter;
  std::int64_t state = HealthOf(shown.device->entry->health.state);
  if (shown.whole != nullptr) state = std::max(state, HealthOf(shown.whole->entry->health.state));
  const auto worst = [&](std::string_view watch) -> const health::Concern* {
    const health::Concern* found = nullptr;
    for (const DeviceRow* device : {shown.device, shown.whole}) {
      if (device == nullptr) continue;
      const auto status = inputs.health.find(device->entry->facts->id);
      if (status == inputs.health.end()) continue;
      for (const health::Concern& concern : status->second.concerns)
        if ((watch.empty() || exporter.WatchOf(concern.kind, concern.code).watch == watch) &&
            (found == nullptr || concern.severity > found->severity))
          found = &concern;
    }
    return found;
  };
  const auto add = [&](std::string_view watch, const health::Concern* concern, std::int64_t value) {
    std::string_view error =
        concern == nullptr ? "" : exporter.WatchOf(concern->kind, concern->code).error;
    if (error.empty()) error = exporter.UnknownError();
    const device::ExporterLabels labels =
        exporter.WatchLabels({watch, value == kPass ? std::string_view() : error});
    page.AddWritten(TextOf(setup_, *shown.view, row.new_naming, -1, labels, {}),
                    std::to_string(value));
  };
  add({}, worst({}), state);
  if (state == kWarn) return;
  for (const std::string_view watch : exporter.watches()) {
    const health::Concern* concern = worst(watch);
    add(watch, concern,
        concern == nullptr                             ? kPass
        : concern->severity == device::Severity::kWarn ? kWarn
                                                       : kFail);
  }
}

void ExporterFamilies::AddHealthy(const ExporterRow& row, const Shown& shown, Exposition& page) {
  std::int64_t state = HealthOf(shown.device->entry->health.state);
  if (shown.whole != nullptr) state = std::max(state, HealthOf(shown.whole->entry->health.state));
  if (state != kWarn)
    page.AddWritten(shown.view->texts[row.new_naming ? 1 : 0], state == kPass ? "1" : "0");
}

void ExporterFamilies::AddDeviceCount(Exposition& page) {
  if (driver_ == nullptr) return;
  device::ExporterLabels labels = setup_.exporter->NodeLabels(setup_.style);
  if (setup_.exporter->has_settings())
    for (const auto& label : config_.exporter.labels)
      if (std::ranges::find(labels, label.first, &device::ExporterLabels::value_type::first) ==
          labels.end())
        labels.push_back(label);
  LabelText text;
  for (const auto& [name, value] : labels) text.Add(name, value);
  page.AddWritten(text.text(), std::to_string(count_));
}

void ExporterFamilies::AddPeers(const ExporterRow& row, const Shown& shown,
                                const std::vector<Shown>& all, Exposition& page) {
  for (const device::Link& link : shown.view->device->links) {
    const auto peer = std::ranges::find_if(
        all, [&link](const Shown& one) { return one.view->device->id == link.peer; });
    if (peer != all.end())
      AddPart(row, shown, std::to_string(peer->view->device->index), {},
              setup_.exporter->PeerValue(link), page);
  }
}

void ExporterFamilies::AddPart(const ExporterRow& row, const Shown& shown, std::string_view part,
                               base::Duration window, std::int64_t value, Exposition& page) {
  const device::ExporterLabels labels =
      setup_.exporter->PartLabels(*row.field, part, window, value);
  page.AddWritten(TextOf(setup_, *shown.view, row.new_naming, -1, labels, {}),
                  std::to_string(value));
}

std::string_view ExporterFamilies::IndexText(const ExporterField& field, int index) {
  constexpr std::size_t kMostIndices = 1024;
  const auto at = static_cast<std::size_t>(index);
  if (at >= kMostIndices) return {};
  std::vector<std::string>& texts = index_texts_[&field];
  if (texts.size() <= at) texts.resize(at + 1);
  if (texts[at].empty()) {
    LabelText labels;
    for (const auto& [name, value] :
         setup_.exporter->PartLabels(field, std::to_string(index), {}, 0))
      labels.Add(name, value);
    texts[at] = labels.Take();
  }
  return texts[at];
}

const std::string& ExporterFamilies::LinkText(const ExporterRow& row, const Shown& shown,
                                              int link) {
  std::string& text = shown.links[row.new_naming ? 1 : 0][link];
  if (text.empty()) text = TextOf(setup_, *shown.view, row.new_naming, link, {}, {});
  return text;
}

}  // namespace penstock::node::metrics
