// The parts of a plan. What is otherwise afterwards: resources, labels and files, and who uses what goes; then the commands. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/penstock/migrate.h"

namespace penstock::app {

/// From NVIDIA's stack to Penstock: for each node with NVIDIA's rules now and ours then; without nodes on eight GPUs, for each
/// configuration. `only`: this node; empty: all.
void AddChanges(const Found& found, const std::string& only, Migration& plan);

/// What is measured and how it is scraped; RuntimeClasses. Part of AddChanges.
void AddMonitoring(const Found& found, const std::string& only, Migration& plan);

/// "Pod a/b, Pod a/c and 7 more".
std::string Named(const std::vector<std::string>& names);

/// From Penstock to NVIDIA's stack.
void AddChangesBack(const Found& found, const std::string& only, Migration& plan);

/// The commands in order, after the changes: `plan.as_nvidia`, `host_label` and `job` count.
void AddSteps(const Found& found, const std::string& node, Migration& plan);
void AddStepsBack(const Found& found, Migration& plan);

}  // namespace penstock::app
