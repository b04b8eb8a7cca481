#include "app/agent/changes.h"

#include <utility>

#include "app/state_files.h"
#include "backend/all.h"
#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::app {
namespace {

/// The name is that of 0.1.0, which reads the file as well.
std::string MovesPath(const std::string& state_dir) { return state_dir + "/doors.json"; }
std::string LayoutPath(const std::string& state_dir, const device::PartTerms& terms) {
  return state_dir + "/layout" + terms.kept_as + ".json";
}
std::string PartsPath(const std::string& state_dir) { return state_dir + "/parts.json"; }

node::change::KubeletList::Ask AskOf(adapter::kubelet::KubeletAdapter* kubelet) {
  if (kubelet == nullptr) return nullptr;
  return [kubelet](auto done) { kubelet->QueryCounted(std::move(done)); };
}

std::function<void(bool)> AwaitReleasesOf(adapter::kubelet::KubeletAdapter* kubelet) {
  if (kubelet == nullptr) return nullptr;
  return [kubelet](bool has_waiters) { kubelet->AwaitReleases(has_waiters); };
}

/// Divisions of each vendor whose devices can be divided.
std::vector<Changes::OfVendor> DivideEach(
    os::Loop& control, base::Executor& io, DevicePipeline& pipeline,
    node::change::DeviceChanges& changes, const std::string& state_dir,
    std::map<std::string, node::change::AppliedLayout>& remembered, const std::string& boot_id) {
  std::vector<Changes::OfVendor> all;
  for (const device::Dialect* dialect : backend::Dialects()) {
    const device::PartTerms* terms = dialect->part_terms();
    if (terms == nullptr) continue;
    const auto vendor_of = [&pipeline, dialect](std::string_view vendor) {
      return vendor == dialect->vendor() ? pipeline.DivisionsOf(vendor)
                                         : node::change::Divisions::Vendor{};
    };
    all.push_back(
        {dialect,
         std::make_unique<node::change::Divisions>(
             control, io,
             node::change::Divisions::Node{pipeline.inventory, pipeline.ledger, changes}, vendor_of,
             LayoutPath(state_dir, *terms), std::move(remembered[std::string(dialect->vendor())]),
             boot_id, std::string(node::change::kDivideKind) + terms->kept_as)});
  }
  return all;
}

}  // namespace

base::Result<Changes::Remembered> Changes::Remember(const std::string& state_dir,
                                                    const std::string& boot_id) {
  Remembered remembered;
  ASSIGN(remembered.moved, node::change::LoadManualAssignments(MovesPath(state_dir)));
  ASSIGN(remembered.under_way, node::change::LoadChanges(JournalPath(state_dir)));
  for (const device::Dialect* dialect : backend::Dialects())
    if (const device::PartTerms* terms = dialect->part_terms()) {
      ASSIGN(remembered.layouts[std::string(dialect->vendor())],
             node::change::LoadAppliedLayout(LayoutPath(state_dir, *terms)));
    }
  ASSIGN(remembered.on_demand, node::change::LoadOnDemandParts(PartsPath(state_dir), boot_id));
  return remembered;
}

Changes::Changes(os::Loop& control, base::Executor& io, DevicePipeline& pipeline,
                 adapter::kubelet::KubeletAdapter* kubelet,
                 const node::share::EnabledAllocators& enabled, const std::string& state_dir,
                 Remembered remembered, const std::string& boot_id)
    : enabled_(enabled),
      changes_(control, io, {pipeline.inventory, pipeline.ledger, pipeline.offers}, AskOf(kubelet),
               JournalPath(state_dir), std::move(remembered.under_way)),
      moves_(control, io, {pipeline.inventory, pipeline.ledger, pipeline.offers, changes_}, enabled,
             AwaitReleasesOf(kubelet), MovesPath(state_dir), std::move(remembered.moved)),
      divided_(DivideEach(control, io, pipeline, changes_, state_dir, remembered.layouts, boot_id)),
      on_demand_(
          control, io, {pipeline.inventory, pipeline.ledger, changes_},
          [&pipeline](std::string_view vendor) { return pipeline.DivisionsOf(vendor); },
          PartsPath(state_dir), std::move(remembered.on_demand), boot_id),
      resets_(control, pipeline.inventory, pipeline.ledger, pipeline.monitor, changes_,
              [&pipeline](std::string_view vendor) { return pipeline.ResetsOf(vendor); }),
      reloads_(
          control, pipeline.inventory, pipeline.ledger, changes_,
          [&pipeline](std::string_view vendor) { return pipeline.ResetsOf(vendor); },
          [this](std::string_view vendor) { return ReloadNeedOf(vendor); }) {
  for (const OfVendor& one : divided_)
    one.divisions->SetReloads([this, dialect = one.dialect](const node::change::ReloadNeed& need) {
      return reloads_.OutlookOf(dialect->vendor(), need);
    });
}

node::change::ReloadNeed Changes::ReloadNeedOf(std::string_view vendor) const {
  for (const OfVendor& one : divided_)
    if (one.dialect->vendor() == vendor) return one.divisions->reload_need();
  return {};
}

void Changes::Divide(const std::string& vendor, const node::change::LayoutRequest& request,
                     node::change::Divisions::Progress progress,
                     node::change::Divisions::Done done) const {
  const auto has_modes = [](const api::LayoutRule& rule) { return !rule.modes.empty(); };
  if (vendor.empty() && std::ranges::any_of(request.layout.rules, has_modes))
    return done(base::Error(base::Code::kInvalidArgument,
                            "the layout has modes: say in \"vendor\" whose devices it is for"));
  std::vector<std::string> known;
  for (const OfVendor& one : divided_) {
    const std::string name(one.dialect->vendor());
    if (vendor.empty() ? one.dialect->part_terms()->kept_as.empty() : name == vendor)
      return one.divisions->Apply(request, std::move(progress), std::move(done));
    known.push_back(name);
  }
  done(base::Error(base::Code::kNotFound,
                   "no devices of vendor " + (vendor.empty() ? "\"\"" : base::Printable(vendor)) +
                       " can be divided; those of " + base::Join(known, ", ") + " can"));
}

std::set<std::string> Changes::stops_clients_of() const {
  std::set<std::string> devices;
  for (const OfVendor& one : divided_) devices.merge(one.divisions->stops_clients_of());
  return devices;
}

void Changes::WhenRestored(base::Duration most, const std::function<void()>& restored) {
  for (const OfVendor& one : divided_) one.divisions->WhenRestored(most, restored);
}

std::map<std::string, std::string> Changes::restoring() const {
  std::map<std::string, std::string> vendors;
  for (const OfVendor& one : divided_)
    if (const auto by = one.divisions->restored_by()) {
      const std::string vendor(one.dialect->vendor());
      vendors.emplace(vendor,
                      "the devices of " + vendor +
                          " are being divided again after a reboot; the kubelet gets them after "
                          "that, or at " +
                          base::FormatTime(*by) + " at the latest");
    }
  return vendors;
}

node::share::Moves Changes::Configure(const api::NodeConfig& config) {
  node::share::Moves moves = moves_.Configure(config);
  const std::vector<std::string> on_demand = node::share::OnDemandDevices(config, enabled_);
  for (const OfVendor& one : divided_) one.divisions->SetOnDemand(on_demand);
  on_demand_.SetDevices(on_demand);
  resets_.SetPolicy(config.health.reset);
  reloads_.SetPolicy(config.reload_driver);
  return moves;
}

}  // namespace penstock::app
