#include "app/penstock/mig/mig_machine.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include <unistd.h>

#include "api/compat/nvidia/mig_parted.h"
#include "app/devices/driver_root.h"
#include "app/devices/paths.h"
#include "app/penstock/common/probe_devices.h"
#include "app/penstock/local/query_agent.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "node/partition/select.h"
#include "node/share/allocator.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

using device::Facts;

/// The first open of the driver after boot may load firmware, one GPU after the other.
constexpr base::Duration kMigPatience = std::chrono::seconds(60);
constexpr std::size_t kLongestLayouts = 4u << 20;

std::string HolderInWords(const api::HolderReport& holder) {
  if (holder.kind == "pod") return "pod " + holder.namespace_name + "/" + holder.pod;
  if (holder.kind == "run")
    return "the run of " + (holder.user.empty() ? holder.lease : holder.user);
  std::string text = "a process outside all allocations";
  if (!holder.pids.empty()) text += " (" + std::to_string(holder.pids.front()) + ")";
  return text;
}

}  // namespace

std::set<std::string> OnDemandGpus(const api::NodeConfig& config, const MigMachine& machine) {
  const auto on_demand =
      node::share::OnDemandDevices(config, node::share::EnabledBy(config, false));
  std::set<std::string> ids;
  for (const Facts* gpu : machine.gpus())
    if (node::share::IsForPartsOnDemand(
            on_demand, {.facts = std::make_shared<const Facts>(*gpu), .number = gpu->index}))
      ids.insert(gpu->id);
  return ids;
}

namespace {

void AskAgent(const api::NodeConfig& config, bool holders, MigMachine& machine) {
  const auto report = QueryReport(config.paths.run_dir);
  machine.holders_known = report.ok();
  if (!report.ok()) {
    machine.on_demand = OnDemandGpus(config, machine);
    if (holders)
      machine.remarks.push_back("holders of GPUs and parts are unknown, because no agent responds");
    return;
  }
  for (const api::DeviceReport& device : report->devices) {
    if (!device.holders.empty()) machine.holders[device.id] = HolderInWords(device.holders.front());
    if (device.on_demand) machine.on_demand.insert(device.id);
  }
}

}  // namespace

const device::Dialect& MigDialect() { return *backend::FindDialect("nvidia"); }

std::vector<const Facts*> MigMachine::gpus() const {
  std::vector<const Facts*> gpus;
  for (const Facts& device : devices)
    if (device.parent.empty()) gpus.push_back(&device);
  std::ranges::stable_sort(gpus, {}, &Facts::index);
  return gpus;
}

node::partition::Division MigMachine::DivisionOf(const Facts& gpu) const {
  std::vector<const Facts*> pointers;
  for (const Facts& device : devices) pointers.push_back(&device);
  return node::partition::DivisionOf(gpu, pointers, [this](const std::string& id) {
    const auto found = holders.find(id);
    return found == holders.end() ? std::string() : found->second;
  });
}

std::string MigMachine::WhyNotKnown(const Facts& gpu) const {
  const auto missing = std::ranges::find_if(gpu.parts, [this](const std::string& address) {
    return std::ranges::find(devices, address, &Facts::address) == devices.end();
  });
  return missing == gpu.parts.end() ? "" : "its part " + *missing + " does not respond";
}

std::string Named(const Facts& gpu) {
  return "GPU " + std::to_string(gpu.index) + " (" + Printable(gpu.id) + ")";
}

std::string NameCalled(const Common& common) {
  return common.as_mig_parted ? kMigPartedName : "penstock mig";
}

void Remark(const std::string& program, const std::string& remark) {
  std::cerr << program << ": " << Printable(remark) << "\n";
}

Result<std::vector<std::string>> WhyNotApplied(const MigMachine& machine, const api::Layout& layout,
                                               bool mode_only, std::vector<std::string>& remarks) {
  ASSIGN(const auto selection, node::partition::SelectDevices(layout, machine.gpus()));
  remarks.insert(remarks.end(), selection.remarks.begin(), selection.remarks.end());
  std::vector<std::string> differences;
  for (const auto& [gpu, rule] : selection.devices) {
    if (rule == nullptr) continue;
    const auto desired = node::partition::DesiredOn(*gpu, *rule, MigDialect());
    const bool only_mode = mode_only || machine.on_demand.contains(gpu->id);
    std::string why = desired.ok()
                          ? WhyNotAsDesired(machine.DivisionOf(*gpu), desired->division, only_mode)
                          : desired.error().message();
    if (why.empty() && !only_mode) why = machine.WhyNotKnown(*gpu);
    if (!why.empty()) differences.push_back(Named(*gpu) + ": " + why);
  }
  return differences;
}

Result<MigMachine> LookAtMachine(const Common& common, bool holders) {
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  ASSIGN(Seen seen,
         QueryDriver(MigDialect(),
                     PathsOf(WithDriverRoot(config, MigDialect()), MigDialect().vendor()),
                     kMigPatience));
  MigMachine machine{.devices = std::move(seen.devices),
                     .remarks = std::move(seen.problems),
                     .program = NameCalled(common)};
  AskAgent(config, holders, machine);
  return machine;
}

Result<api::Layout> LayoutIn(const std::string& text, const std::string& file,
                             const std::string& name) {
  ASSIGN(const api::Layouts layouts,
         api::compat::TranslateMigParted(text, file, MigDialect().part_terms()->read_profile));
  if (layouts.layouts.empty()) return Error(Code::kNotFound, file + " has no layouts");
  const auto names = layouts.names();
  if (name.empty() && names.size() == 1) return layouts.layouts.front();
  if (name.empty())
    return Error(Code::kInvalidArgument, file +
                                             " has several layouts: choose one with "
                                             "--selected-config: " +
                                             base::Join(names, ", "));
  if (const api::Layout* layout = layouts.Find(name)) return *layout;
  const auto near = base::Nearest(name, names);
  return Error(Code::kNotFound, file + " has no layout \"" + Printable(name) + "\"; " +
                                    (near ? "did you mean \"" + *near + "\"?"
                                          : "it has " + base::Join(names, ", ")));
}

Result<std::string> ReadMigFile(const std::string& file) {
  if (file == "-") return os::ReadAll(STDIN_FILENO, "standard input", kLongestLayouts);
  return os::ReadInput(file, kLongestLayouts);
}

Result<api::Layout> ReadLayout(const std::string& file, const std::string& name) {
  ASSIGN(const std::string text, ReadMigFile(file));
  return LayoutIn(text, file == "-" ? "standard input" : file, name);
}

}  // namespace penstock::app
