// Decides what has to happen on a node before a driver container installs its driver: what is kept,
// and which modules are unloaded in which order. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "device/kernel_driver.h"
#include "os/kernel_modules.h"

namespace penstock::node::driver {

/// The modules of a driver that are loaded, those that use them, and its rivals; by name.
using Modules = std::map<std::string, os::KernelModule>;

/// What is on the node.
struct DriverState {
  Modules modules;
  std::string digest;            ///< of what a driver container installed; empty: not known
  bool root_mounted = false;     ///< the files of a driver container
  bool container_ended = false;  ///< the one whose files these are
  std::string host_library;      ///< of a driver that belongs to the node itself; empty: none
};

struct DriverWanted {
  std::string digest;      ///< of what the driver container installs
  bool reinstall = false;  ///< even if that is what is there
};

enum class PreparationKind {
  kKeep,     ///< the wanted driver is loaded
  kClean,    ///< no driver is loaded: only what an earlier container left is removed
  kReplace,  ///< another driver is loaded
  kRefuse,   ///< the node has a driver of its own
};
std::string_view ToString(PreparationKind kind);  ///< "keep", "clean", "replace", "refuse"

struct Preparation {
  PreparationKind kind = PreparationKind::kClean;
  std::string reason;  ///< one sentence
  /// The files of a driver container that has ended are mounted: they are unmounted.
  bool unmount = false;
  std::vector<std::string> rivals;  ///< modules that are unloaded if nothing uses them
};
Preparation Prepare(const device::KernelDriver& driver, const DriverState& state,
                    const DriverWanted& wanted);

/// How the modules of a driver can be unloaded.
struct UnloadPlan {
  std::vector<std::string> order;    ///< each before those that it uses
  std::vector<std::string> in_use;   ///< those of them that more than modules use
  std::vector<std::string> foreign;  ///< modules of others that use them: they are not unloaded
  bool Blocked() const { return !in_use.empty() || !foreign.empty(); }
};
UnloadPlan PlanUnload(const device::KernelDriver& driver, const Modules& modules);

}  // namespace penstock::node::driver
