// The resources of a cluster that say what is wanted of its accelerators, vendors' and our own, and
// the names that vendors' programs select on. Pure tables.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/cluster/penstock.h"
#include "api/compat/nvidia/nvidia_driver.h"
#include "api/compat/policy_translation.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// A kind of objects that say what is wanted of the cluster.
struct PolicyKind {
  std::string group, version, plural, kind;
  /// Into Penstock's own form, for a kind of which one object is in force. `over`: what the kinds
  /// before it ask for together, which the result contains; null: none of them is in force.
  std::function<base::Result<PolicyTranslation>(std::string_view object, const PenstockSpec* over)>
      translate;
  /// Instead, for a kind of which each object adds a driver.
  std::function<base::Result<DriverTranslation>(std::string_view object)> translate_driver;
  /// Why objects of the kind are only answered: nothing follows from them. Empty: they take effect.
  std::string not_served = {};
  /// Its objects live in namespaces, of which only the operator's is read.
  bool namespaced = false;
  /// Whose nodes the status of its objects counts: "amd"; empty: all with devices.
  std::string vendor = {};
  /// An object with this finalizer belongs to the controller of another operator, and is left to
  /// it. Empty: no such controller is known.
  std::string foreign_finalizer = {};
};

/// In the order in which they are read: each is read over those before it, so that Penstock's own,
/// the last, can add to the others.
const std::vector<PolicyKind>& PolicyKinds();

/// On definitions: the release of the operator that has applied it.
inline constexpr std::string_view kDefinitionVersion = "penstock.io/version";

/// On definitions that an operator in Go has applied, also over the one of this operator: the
/// release of the generator.
inline constexpr std::string_view kForeignDefinition = "controller-gen.kubebuilder.io/version";

/// Whether a definition ("deviceconfigs.amd.com") that a cluster has with these annotations is that
/// of another operator, which may serve its own objects of the kind beside this one: it relies on
/// the defaults of its schema, and its objects go with the definition.
bool IsForeignDefinition(std::string_view name,
                         const std::map<std::string, std::string>& annotations);

/// Penstock's own kind: its translate is empty, since it is read over the others (ParsePenstock).
const PolicyKind& PenstockKind();

/// Whether a node's labels say that it has devices of a supported vendor: those that our agents
/// write, and those of NFD. `present` is the label by which agents say so; it may be empty.
bool HasDevices(const std::map<std::string, std::string>& labels, std::string_view present);

/// The keys that decide HasDevices, besides `present`.
const std::vector<std::string>& DeviceLabels();

/// A label that is written only on nodes that have another one.
struct ConditionalMark {
  std::string needed;  ///< with the value "true"
  std::string key;
  std::string value;  ///< empty: the default layout of the configuration
};
const std::vector<ConditionalMark>& ConditionalMarks();

/// Everything with which policies can mark nodes, whichever of them is in force.
const NodeMarks& AllMarks();

/// The label by which a node's host says that it has a driver of its own, and the value with which
/// it does so; with another value an operator may install one.
const std::pair<std::string, std::string>& HostDriverMark();

/// Whether the pods of a DaemonSet of this name, which a vendor's operator makes, only read from
/// devices: they may run beside agents, which do the same. Of others it is not known.
bool OnlyReadsDevices(std::string_view daemon_set);
/// Whether they install drivers.
bool InstallsDrivers(std::string_view daemon_set);

/// The name of a Service's port: monitors that others wrote select it.
std::string PortName(std::string_view service);

}  // namespace penstock::api::compat
