// What the verbs of `penstock mig` know of this machine, and what they print of it. Pure, except
// for the functions that say that they block.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/config/layouts.h"
#include "app/penstock/common/verbs.h"
#include "node/partition/desired.h"
#include "node/partition/division.h"

namespace penstock::app {

const device::Dialect& MigDialect();

struct MigMachine {
  std::vector<device::Facts> devices;          ///< GPUs and their parts, as the driver reports them
  std::map<std::string, std::string> holders;  ///< of ids: "pod ml/train-0"
  std::set<std::string> on_demand;   ///< ids of GPUs of which a layout sets only the mode, by the
                                     ///< agent's configuration
  bool holders_known = false;        ///< an agent responded
  std::vector<std::string> remarks;  ///< GPUs that do not respond; no agent responds
  std::string program = "penstock mig";  ///< see NameCalled

  /// Those that are no parts, by index.
  std::vector<const device::Facts*> gpus() const;
  node::partition::Division DivisionOf(const device::Facts& gpu) const;
  /// Why DivisionOf is not all of it; empty: it is.
  std::string WhyNotKnown(const device::Facts& gpu) const;
};

/// "GPU 0 (GPU-5a…)".
std::string Named(const device::Facts& gpu);

/// The name under which remarks are printed: "penstock mig", or that of mig-parted.
std::string NameCalled(const Common& common);

/// Prints a remark of the program with this name on standard error.
void Remark(const std::string& program, const std::string& remark);

/// Why GPUs are not divided as the layout says, each with its number; none: they are. Adds remarks
/// on rules. `mode_only`: only their mode counts.
Result<std::vector<std::string>> WhyNotApplied(const MigMachine& machine, const api::Layout& layout,
                                               bool mode_only, std::vector<std::string>& remarks);

/// The GPUs that a configuration sets aside for parts on demand (MigMachine::on_demand).
std::set<std::string> OnDemandGpus(const api::NodeConfig& config, const MigMachine& machine);

/// Asks the driver once, in a worker process, and an agent, if one responds. `holders`: a remark
/// says if none does. Blocks. kNotFound: there is no driver.
Result<MigMachine> LookAtMachine(const Common& common, bool holders = false);

/// The text of a file, a layout or a checkpoint; "-": standard input. Blocks.
Result<std::string> ReadMigFile(const std::string& file);

/// The layout of this name in a file ("-": standard input), or its only one. Blocks.
Result<api::Layout> ReadLayout(const std::string& file, const std::string& name);
/// The same of a text. kNotFound: which names there are.
Result<api::Layout> LayoutIn(const std::string& text, const std::string& file,
                             const std::string& name);

Result<Shown> ShowMigList(const MigMachine& machine, bool json, const Style& style);

/// The status is command::kNo if a GPU cannot be divided as the layout says.
Result<Shown> ShowMigPlan(const MigMachine& machine, const api::Layout& layout, bool json);

/// Whether the GPUs are divided as the layout says; GPUs without a rule may be divided in any way.
/// The statuses are mig-parted's: 0 and 1. Says which ones are not on standard error.
Result<Shown> AssertMigLayout(const MigMachine& machine, const api::Layout& layout, bool mode_only);

/// In the format of mig-parted's files, as JSON.
Result<Shown> ExportMigLayout(const MigMachine& machine, const std::string& name);
Result<Shown> GenerateMigLayouts(const MigMachine& machine);

}  // namespace penstock::app
