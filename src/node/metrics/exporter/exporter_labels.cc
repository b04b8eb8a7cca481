// Chooses the holder in the labels: the one holder of a whole device; for a shared device none, or
// each holder in series of its own, as telemetry.virtualGpus says.
#include "node/metrics/exporter/exporter_labels.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/core/strings.h"
#include "node/ledger/capacity.h"
#include "node/metrics/exposition.h"
#include "node/metrics/label_names.h"

namespace penstock::node::metrics {
namespace {

using device::ExporterLabels;

void Append(ExporterLabels& labels, const ExporterLabels& more) {
  labels.insert(labels.end(), more.begin(), more.end());
}

/// A lease's slots on a device.
struct Hold {
  const ledger::Lease* lease = nullptr;
  const ledger::Slot* slot = nullptr;  // its first slot on the device
};

std::vector<Hold> HoldsOf(const std::string& device, const ledger::Snapshot& ledger) {
  std::vector<Hold> holds;
  for (const ledger::Lease& lease : ledger.leases) {
    const auto slot = std::ranges::find(lease.slots, device, &ledger::Slot::device);
    if (slot != lease.slots.end()) holds.push_back({&lease, &*slot});
  }
  return holds;
}

/// The one lease that holds parts of this part, which exporters do not show; none if several do.
std::vector<Hold> HoldsWithin(const std::string& part, const ledger::Snapshot& ledger) {
  std::vector<Hold> holds;
  for (const ledger::Lease& lease : ledger.leases) {
    const auto slot = std::ranges::find_if(
        lease.slots, [&part](const ledger::Slot& one) { return ledger::IsPartOf(one, part); });
    if (slot != lease.slots.end()) holds.push_back({&lease, &*slot});
  }
  return holds.size() == 1 ? holds : std::vector<Hold>();
}

bool IsShare(const Hold& hold) { return hold.slot->id != hold.slot->device; }

/// "3" of "GPU-...::3".
std::string_view NumberOf(const ledger::Slot& slot) {
  const auto end = slot.id.rfind("::");
  return end == std::string::npos ? std::string_view() : std::string_view(slot.id).substr(end + 2);
}

/// The labels that a glob selects for series.
std::map<std::string, std::string> Wanted(const std::map<std::string, std::string>& labels,
                                          const std::vector<std::string>& globs) {
  std::map<std::string, std::string> wanted;
  for (const auto& label : labels)
    if (std::ranges::any_of(globs, [&label](const std::string& glob) {
          return base::GlobMatch(glob, label.first);
        }))
      wanted.insert(label);
  return wanted;
}

/// The settings that apply to the exporter; null: none do.
const api::ExporterSettings* SettingsOf(const ExporterSetup& setup) {
  return setup.exporter->has_settings() ? &setup.config->exporter : nullptr;
}

bool Has(const ExporterLabels& labels, std::string_view name) {
  return std::ranges::find(labels, name, &ExporterLabels::value_type::first) != labels.end();
}

/// The holder's labels under the names that the settings give them, without those that are taken.
ExporterLabels RenamedLabels(const std::map<std::string, std::string>& labels,
                             const std::map<std::string, std::string, std::less<>>& names,
                             const ExporterLabels& taken) {
  ExporterLabels renamed;
  for (const auto& [name, key] : names)
    if (const auto found = labels.find(key); found != labels.end() && !Has(taken, name))
      renamed.emplace_back(name, found->second);
  return renamed;
}

void ReportHolder(const ExporterSetup& setup, const Hold& hold, ExporterView& view) {
  const ledger::Lease& lease = *hold.lease;
  device::ExporterHolder holder{
      .pod = lease.pod, .namespace_name = lease.namespace_name, .container = lease.container};
  const api::ExporterSettings* settings = SettingsOf(setup);
  if (setup.config->pod_uid || (settings != nullptr && settings->pod_uid))
    holder.pod_uid = lease.pod_uid;
  if (IsShare(hold)) holder.share = NumberOf(*hold.slot);
  view.holder = setup.exporter->HolderLabels(holder, setup.style);
  ExporterLabels taken = setup.reserved;
  for (const ExporterLabels* labels : {&view.first, &view.facts, &view.holder})
    Append(taken, *labels);
  if (settings != nullptr) {
    const ExporterLabels renamed = RenamedLabels(lease.labels, settings->holder_labels, taken);
    Append(view.facts, renamed);
    Append(taken, renamed);
  }
  Append(view.facts, PlainLabels(Wanted(lease.labels, setup.config->holder_labels), taken));
}

ExporterView ViewOf(const ExporterSetup& setup, const inventory::Entry& entry,
                    const inventory::Snapshot& inventory) {
  ExporterView view{.device = entry.facts};
  const inventory::Entry* parent =
      entry.ancestors.empty() ? nullptr : inventory.Find(entry.ancestors.back().device);
  if (parent != nullptr) view.parent = parent->facts;
  view.first = setup.exporter->LabelsOf(*entry.facts, view.parent.get(), -1, setup.style);
  const inventory::VendorEntry* vendor = inventory.FindVendor(entry.facts->vendor);
  for (const device::ExporterField* row : setup.rows) {
    std::string value = FactOf(*setup.exporter, *row, *entry.facts, view.parent.get(),
                               vendor == nullptr ? nullptr : vendor->driver.get());
    if (!value.empty()) view.facts.emplace_back(row->name, std::move(value));
  }
  if (const api::ExporterSettings* settings = SettingsOf(setup))
    for (const auto& label : settings->labels)
      if (!Has(view.first, label.first) && !Has(view.facts, label.first))
        view.first.push_back(label);
  return view;
}

/// The devices of which exporters show the parts.
std::set<std::string, std::less<>> DividedIn(const inventory::Snapshot& inventory) {
  std::set<std::string, std::less<>> divided;
  for (const inventory::Entry& entry : inventory.devices)
    if (entry.ancestors.size() == 1 && entry.health.state != device::HealthState::kGone)
      divided.insert(entry.ancestors.front().device);
  return divided;
}

/// Whether the settings leave the device out.
bool IsLeftOut(const ExporterSetup& setup, const device::Facts& device) {
  const api::ExporterSettings* settings = SettingsOf(setup);
  if (settings == nullptr || settings->devices.empty()) return false;
  const std::optional<int> number = setup.exporter->NumberOf(device);
  return number && std::ranges::find(settings->devices, *number) == settings->devices.end();
}

/// Of a whole device the jobs of its own file, of a part those of the part's.
const std::vector<std::string>* JobsOf(const ExporterSetup& setup, const ExporterView& view,
                                       const attribute::DeviceJobs* jobs) {
  if (jobs == nullptr || jobs->empty()) return nullptr;
  const auto found = jobs->find(setup.exporter->JobFile(*view.device, view.parent.get()));
  return found == jobs->end() ? nullptr : &found->second;
}

/// With more views, those of further devices have no jobs: holders times jobs could be any number.
constexpr std::size_t kMostViewsWithJobs = 4096;

/// The view, or a copy of it for each job of its device.
void AddView(const ExporterSetup& setup, ExporterView view, const attribute::DeviceJobs* jobs,
             std::vector<ExporterView>& views) {
  const std::vector<std::string>* its = JobsOf(setup, view, jobs);
  if (its == nullptr || views.size() + its->size() > kMostViewsWithJobs)
    return views.push_back(std::move(view));
  for (const std::string& job : *its) {
    views.push_back(view);
    Append(views.back().holder, setup.exporter->HolderLabels({.job = job}, setup.style));
  }
}

/// The views of a device by its holders.
std::vector<ExporterView> ViewsByHolder(const ExporterSetup& setup, const ExporterView& view,
                                        const ledger::Snapshot& ledger) {
  const std::string& device = view.device->id;
  std::vector<Hold> holds = setup.config->holders ? HoldsOf(device, ledger) : std::vector<Hold>();
  if (holds.empty() && setup.config->holders && view.parent != nullptr)
    holds = HoldsWithin(device, ledger);
  const bool shared = std::ranges::any_of(holds, IsShare);
  const api::Switch each = setup.config->virtual_gpus;
  // Without a pod its series would not name the holder.
  if (shared && each == api::Switch::kAuto)
    std::erase_if(holds, [](const Hold& hold) { return hold.lease->pod.empty(); });
  std::vector<ExporterView> views;
  if (holds.empty() || (shared && each != api::Switch::kOn)) {
    views.push_back(view);
    if (holds.empty() || each == api::Switch::kOff) return views;
    views.back().shows = Shows::kOthers;
  }
  for (const Hold& hold : holds) {
    views.push_back(view);
    if (shared) views.back().lease = hold.lease->id;
    if (shared && each == api::Switch::kAuto) views.back().shows = Shows::kOwn;
    ReportHolder(setup, hold, views.back());
    if (!shared) break;
  }
  return views;
}

}  // namespace

std::string FactOf(const device::Exporter& exporter, const device::ExporterField& field,
                   const device::Facts& device, const device::Facts* parent,
                   const device::Driver* driver) {
  std::string value = exporter.Fact(field, device, driver);
  return value.empty() && parent != nullptr ? exporter.Fact(field, *parent, driver) : value;
}

std::size_t CountDevices(std::string_view vendor, const inventory::Snapshot& inventory) {
  const auto divided = DividedIn(inventory);
  return static_cast<std::size_t>(
      std::ranges::count_if(inventory.devices, [&](const inventory::Entry& entry) {
        return entry.facts->vendor == vendor && entry.ancestors.size() <= 1 &&
               entry.health.state != device::HealthState::kGone &&
               !divided.contains(entry.facts->id);
      }));
}

std::string TextOf(const ExporterSetup& setup, const ExporterView& view, bool new_naming, int link,
                   const ExporterLabels& more_facts, const ExporterLabels& more_holder) {
  ExporterLabels all =
      link < 0 ? view.first
               : setup.exporter->LabelsOf(*view.device, view.parent.get(), link, setup.style);
  const auto add = [&all](ExporterLabels group, const ExporterLabels& more) {
    Append(group, more);
    std::ranges::sort(group);
    Append(all, group);
  };
  ExporterLabels facts = view.facts;
  if (new_naming)
    for (auto& [name, value] : facts) name = setup.exporter->NewLabel(name);
  add(std::move(facts), more_facts);
  add(view.holder, more_holder);
  LabelText labels;
  for (const auto& [name, value] : all) labels.Add(name, value);
  return labels.Take();
}

std::vector<ExporterView> ViewsOf(const ExporterSetup& setup, std::string_view vendor,
                                  const inventory::Snapshot& inventory,
                                  const ledger::Snapshot& ledger,
                                  const attribute::DeviceJobs* jobs) {
  std::vector<ExporterView> views;
  const auto divided = DividedIn(inventory);
  for (const inventory::Entry& entry : inventory.devices) {
    if (entry.facts->vendor != vendor || entry.health.state == device::HealthState::kGone) continue;
    // Exporters name parts of devices, not parts of parts: those would have the same labels.
    if (entry.ancestors.size() > 1 || IsLeftOut(setup, *entry.facts)) continue;
    ExporterView view = ViewOf(setup, entry, inventory);
    if (divided.contains(entry.facts->id)) {
      view.shows = Shows::kLinks;
      AddView(setup, std::move(view), jobs, views);
      continue;
    }
    for (ExporterView& one : ViewsByHolder(setup, view, ledger))
      AddView(setup, std::move(one), jobs, views);
  }
  for (ExporterView& view : views)
    for (const bool new_naming : {false, true})
      view.texts[new_naming ? 1 : 0] = TextOf(setup, view, new_naming, -1, {}, {});
  return views;
}

}  // namespace penstock::node::metrics
