// The parts of a migration plan: the changes to resources, labels and files, the users of what
// disappears, and the commands. Pure.
#pragma once

#include <string>
#include <vector>

#include "analysis/migrate/nvidia/migrate.h"

namespace penstock::analysis {

/// Adds the changes from NVIDIA's stack to Penstock. Applies, for each node, NVIDIA's rules for the
/// present and Penstock's for the future; without nodes, to eight example GPUs for each
/// configuration. `only`: this node; empty: all.
void AddChanges(const Found& found, const std::string& only, Migration& plan);

/// Merges the same change on several nodes into one row.
void CountOnNodes(std::vector<PlannedChange>& changes, PlannedChange change);

/// Adds what is reduced or removed by the rows of resources and labels, with its users.
void AddLost(const Found& found, Migration& plan);

/// The queries that name a series.
std::vector<std::string> QueriesThatName(const Found& found, const std::string& series);

/// Adds the names of the jobs that scrape an exporter, and its Services. `now`: their port.
void AddScraping(const Found& found, const Workload& exporter, const std::string& now,
                 Migration& plan);

/// Adds the changes to metrics, scraping and RuntimeClasses. Part of AddChanges.
void AddMonitoring(const Found& found, const std::string& only, Migration& plan);

/// What NVIDIA's MIG manager does on this cluster, apart from NVIDIA's defaults.
struct MigLayouts {
  std::string config_map, namespace_name;  ///< with layouts of the users; empty: there is none
  std::string default_layout;              ///< of nodes without the label
  std::string strategy;                    ///< mig.strategy of a GPU Operator
};
MigLayouts MigLayoutsOf(const Found& found);

/// Adds what becomes of layouts and of the labels that name them.
void AddLayouts(const Found& found, const std::string& only, Migration& plan);

/// Formats names as "Pod a/b, Pod a/c and 7 more".
std::string Named(const std::vector<std::string>& names);

/// Adds the changes from Penstock to NVIDIA's stack.
void AddChangesBack(const Found& found, const std::string& only, Migration& plan);

/// Whether Penstock's operator is to take the place of NVIDIA's, with its values: a ClusterPolicy
/// was found, or a DaemonSet of one, and the plan is for all nodes.
bool ReplacesOperator(const Found& found, const std::string& node);

/// Adds the commands of that, parts of AddSteps: first those that end NVIDIA's operator. Where
/// Penstock's has the ClusterPolicy already, the commands that remove what NVIDIA's has left.
void AddOperatorRemoval(const Found& found, Migration& plan);
void AddOperatorInstall(const Found& found, Migration& plan);

/// Adds the commands that remove labels by which NVIDIA's programs have paused pods, and names the
/// nodes on which labels switch services off.
void AddPausedLabels(const Found& found, Migration& plan);

/// Adds the commands in order. Call it after the changes: it reads `plan.as_nvidia`, `host_label`
/// and `job`.
void AddSteps(const Found& found, const std::string& node, Migration& plan);
void AddStepsBack(const Found& found, Migration& plan);

/// Quotes a word for the shell: manifests may contain any name.
std::string ForShell(const std::string& word);

/// "-n NAME ", or nothing without a name.
std::string InNamespace(const std::string& name);

}  // namespace penstock::analysis
