// The verbs of `penstock`, each a definition for the command line (app/command/verb.h). Only
// penstock.cc and kubectl.cc call these functions.
#pragma once

#include <string>
#include <vector>

#include "app/command/output.h"
#include "app/command/verb.h"
#include "app/options.h"
#include "app/penstock/common/table.h"

namespace penstock::app {

using command::Argument;
using command::Flag;
using command::Shown;
using command::Value;
using command::Verb;

/// The name of NVIDIA's program that this one replaces.
inline constexpr char kMigPartedName[] = "nvidia-mig-parted";

/// What all verbs share. Filled while the command line is parsed: verbs read it only when they run.
struct Common {
  Settings settings;           ///< paths: Resolve(settings)->paths.run_dir
  command::Output output;      ///< -o, --no-headers, -w
  bool terminal = false;       ///< standard error is a terminal: progress and colours may be shown
  bool as_mig_parted = false;  ///< called as nvidia-mig-parted: prints what that prints
  bool debug = false;          ///< an option of nvidia-mig-parted: prints more

  bool json() const { return output.json(); }
  bool wide() const { return output.wide(); }
  /// For standard output.
  Style style() const;
};

// `common` outlives the verbs.
Verb UpVerb(const Common& common);
Verb DownVerb(const Common& common);
Verb RunVerb(const Common& common);
Verb QueueVerb(const Common& common);
Verb AssignVerb(const Common& common);
Verb DoorVerb(const Common& common);  ///< deprecated
Verb StatusVerb(const Common& common);
Verb ValidateVerb(const Common& common);
Verb PsVerb(const Common& common);
Verb WaitVerb(const Common& common);
Verb TopVerb(const Common& common);
Verb UsageVerb(const Common& common);
Verb PlanVerb(const Common& common);
Verb ConfigVerb(const Common& common);
Verb CdiVerb(const Common& common);
Verb RuntimeVerb(const Common& common);
Verb MigVerb(const Common& common);
Verb MetricsVerb(const Common& common);
Verb DriverVerb(const Common& common);

// Of the kubectl plugin, too. `program`: the name that users call, "penstock" or "kubectl
// penstock".
Verb NodesVerb(const Common& common, const std::string& program);
Verb PoliciesVerb(const Common& common, const std::string& program);
Verb ExplainVerb(const Common& common, const std::string& program);
Verb MigrateVerb(const Common& common);
Verb SupportBundleVerb(const Common& common, const std::string& program);
Verb CleanupVerb(const Common& common, const std::string& program);

}  // namespace penstock::app
