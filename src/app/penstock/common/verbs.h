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

/// What all verbs share. Filled while the command line is parsed: verbs read it only when they run.
struct Common {
  Settings settings;       ///< paths: Resolve(settings)->paths.run_dir
  command::Output output;  ///< -o, --no-headers, -w
  bool terminal = false;   ///< standard error is a terminal: progress and colours may be shown

  bool json() const { return output.json(); }
  bool wide() const { return output.wide(); }
  /// For standard output.
  Style style() const;
};

// `common` outlives the verbs.
command::Verb UpVerb(const Common& common);
command::Verb DownVerb(const Common& common);
command::Verb RunVerb(const Common& common);
command::Verb QueueVerb(const Common& common);
command::Verb AssignVerb(const Common& common);
command::Verb DoorVerb(const Common& common);  ///< deprecated
command::Verb StatusVerb(const Common& common);
command::Verb PsVerb(const Common& common);
command::Verb WaitVerb(const Common& common);
command::Verb TopVerb(const Common& common);
command::Verb UsageVerb(const Common& common);
command::Verb PlanVerb(const Common& common);
command::Verb ConfigVerb(const Common& common);
command::Verb CdiVerb(const Common& common);
command::Verb RuntimeVerb(const Common& common);
command::Verb MetricsVerb(const Common& common);

// Of the kubectl plugin, too. `program`: the name that users call, "penstock" or "kubectl
// penstock".
command::Verb NodesVerb(const Common& common, const std::string& program);
command::Verb ExplainVerb(const Common& common, const std::string& program);
command::Verb MigrateVerb(const Common& common);
command::Verb CleanupVerb(const Common& common, const std::string& program);

}  // namespace penstock::app
