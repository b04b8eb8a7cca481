// Decides, step by step, whether containers on this node can use its devices. Allocates nothing and
// starts nothing: judges what the agent has published.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/report.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/validate/device_files.h"

namespace penstock::node::validate {

// The names of the steps, in the order in which they depend on each other.
inline constexpr std::string_view kDriver = "driver", kDeviceNodes = "device-nodes",
                                  kFabric = "fabric", kCompute = "compute", kToolkit = "toolkit",
                                  kPlugin = "plugin", kDevices = "devices";

/// How containers of this node get devices.
struct Toolkit {
  std::string off;  ///< why no specifications are written; empty: they are
  const std::set<std::string>* named = nullptr;  ///< ids of devices that specifications for the
                                                 ///< kubelet name; null: none is written
  std::vector<std::string> problems;             ///< what is not written, and why
  std::string engine_problem;                    ///< why the engine is not set up as configured
  std::string why_no_hook;  ///< why specifications have no hooks; empty: they have
};

/// What programs that compute on devices have found since the driver was loaded.
struct ComputeFacts {
  struct Outcome {
    bool computed = false;
    std::string why;  ///< it has not
    bool operator==(const Outcome&) const = default;
  };
  std::string off;                          ///< why none is started; empty: they are
  std::map<std::string, Outcome> outcomes;  ///< by device
  std::set<std::string> in_use;             ///< devices that were not free so far
  bool operator==(const ComputeFacts&) const = default;
};

/// What a container that got devices as the kubelet's do has shown.
struct ContainerFacts {
  enum class State {
    kNone,      ///< none is to be started
    kWaiting,   ///< the first one has not answered yet
    kOpened,    ///< it may open what the specifications promise
    kFailed,    ///< it did not, or the engine does not start it
    kNotTried,  ///< whether it would is not known
  };
  State state = State::kNone;
  std::vector<std::string> why;  ///< of the last two
  std::size_t opened = 0;        ///< device files
  std::size_t unserved = 0;      ///< further ones, that no driver serves
  std::string remark;            ///< how it got them, where there are several ways
  bool operator==(const ContainerFacts&) const = default;
};

/// What the agent knows besides its report. References are borrowed for the call.
struct Inputs {
  const inventory::Snapshot& inventory;
  const device::DialectOf& dialect_of;
  bool discovered = false;               ///< all drivers were looked for once
  std::map<std::string, int> on_bus;     ///< by vendor: accelerators among the PCI functions
  const StandingFiles* files = nullptr;  ///< null: not looked at yet
  Toolkit toolkit;
  ComputeFacts compute;
  ContainerFacts container;
};

/// Whether all that a container with devices needs is there, so that one can be tried: a kubelet
/// that has this node's list, and an engine that gives containers the devices by CDI, or as files
/// or by a variable that a runtime reads. Pure.
bool CanTryContainer(const api::Report& report, const Inputs& inputs);

/// Takes a report whose other parts are complete; `since` is left empty. A step that depends on one
/// that has not passed is "waiting" for it, so that one cause has one failure. Pure.
std::vector<api::ValidationStep> Validate(const api::Report& report, const Inputs& inputs);

}  // namespace penstock::node::validate
