// `penstock runtime configure` and `unconfigure`: their command lines, and the choice of the
// engine.
#pragma once

#include <string>
#include <vector>

#include "app/penstock/common/verbs.h"
#include "base/core/result.h"
#include "protocol/engine/apply/engine_configurator.h"

namespace penstock::app {

command::Verb RuntimeConfigureVerb(const Common& common);
command::Verb RuntimeUnconfigureVerb(const Common& common);

/// The engine options of the command line.
struct EngineOptions {
  std::string runtime = "auto";
  std::string config, drop_in, program, socket;
  bool drop_in_given = false;  ///< an empty value means none
  std::string source, restart = "none", timeout = "2m";
  bool dry_run = false;
};

/// What runs and listens on a machine, to choose an engine.
struct Running {
  bool kubelet = false;
  std::vector<std::string> sockets;  ///< of engines, the kubelet's likeliest first
  std::string docker;                ///< its socket; empty: not listening
  std::string problem;  ///< why an expected engine is not among them; empty: nothing to report
};

/// Returns the socket of the engine that "auto" means: the kubelet's engine; without a kubelet
/// Docker, or else the only engine that runs. kFailedPrecondition where there is none or more than
/// one. Pure.
base::Result<std::string> ChooseSocket(const Running& running);

/// Finds the engine that the options select. Blocks briefly.
base::Result<protocol::engine::EngineInstall> FindInstall(const EngineOptions& options,
                                                          const std::string& proc_root,
                                                          const std::string& kubelet_dir);

/// Formats the result; prints remarks on standard error.
std::string ShowConfigured(const protocol::engine::EngineInstall& install,
                           const protocol::engine::ConfigureResult& done, const Common& common,
                           bool dry_run);

}  // namespace penstock::app
