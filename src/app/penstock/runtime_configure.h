// `penstock runtime configure` and `unconfigure`: command lines, and which engine is meant.
#pragma once

#include <string>
#include <vector>

#include "app/penstock/verbs.h"
#include "base/core/result.h"
#include "edge/engine/configuring.h"

namespace penstock::app {

void AddRuntimeConfigure(CLI::App& runtime, const Common& common, int& exit_code);
void AddRuntimeUnconfigure(CLI::App& runtime, const Common& common, int& exit_code);

/// What is said of an engine on the command line.
struct EngineOptions {
  std::string runtime = "auto";
  std::string config, drop_in, program, socket;
  bool drop_in_said = false;  ///< an empty one means none
  std::string source, restart = "none", timeout = "2m";
  bool dry_run = false;
};

/// What runs on a machine and listens: for choosing among engines.
struct Running {
  bool kubelet = false;
  std::vector<std::string> sockets;  ///< of engines, the likeliest of the kubelet first
  std::string docker;                ///< its socket; empty: does not listen
  std::string problem;               ///< why an engine that one would expect is not among them; empty: nothing to say
};

/// The socket of the engine that is meant by "auto": the kubelet's own; without a kubelet docker's, or that of the only one that runs.
/// kFailedPrecondition where that is none, or more than one. Pure.
base::Result<std::string> ChooseSocket(const Running& running);

/// The engine that the options mean. Blocks shortly.
base::Result<edge::engine::Site> FindSite(const EngineOptions& options, const std::string& proc_root, const std::string& kubelet_dir);

/// Prints what came of it; returns the exit status.
int ShowConfigured(const edge::engine::Site& site, const edge::engine::Configured& done, const Common& common, bool dry_run);

}  // namespace penstock::app
