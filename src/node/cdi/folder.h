// Manages the agent's files in a folder of CDI specifications to which other programs write as
// well.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/cdi/spec.h"
#include "base/core/result.h"
#include "device/dialect.h"

namespace penstock::node::cdi {

/// "penstock-nvidia.com-gpu.json": the agent's own prefix, so that no file of another program is
/// taken for the agent's. The file for the kubelet has the name that NVIDIA's device plugin gives
/// it, since it replaces that file.
std::string OwnFileName(std::string_view kind);

/// The kinds for users of a vendor's devices: "nvidia.com/gpu", "nvidia.com/gds".
std::set<std::string> KindsOf(const device::Dialect& dialect);

/// Returns those of a folder's files that are the agent's: by the agent's prefix, whatever their
/// kind, and by the kubelet's names of `kinds`. Includes leftovers of a write that was killed. An
/// agent that serves no pods has no `kinds`: a file of these names is then that of another device
/// plugin, or of the agent before; the containers of its pods may be created by it again, and
/// another plugin replaces it.
std::vector<std::string> OwnFiles(const std::vector<std::string>& files,
                                  const std::set<std::string>& kinds);

/// Whether a file of the kubelet's name is another device plugin's: it has hooks, but neither
/// penstock-hook nor `hook` (its path; empty: no other one). Blocks.
bool IsOfAnotherPlugin(const std::string& folder, const std::string& file, const std::string& hook);

/// The kind under which the kubelet adapter names devices to engines:
/// "k8s.device-plugin.nvidia.com/gpu", as NVIDIA's device plugin has it (internal/cdi), whose file
/// the agent's file replaces. It differs from the kind for users, so that neither file can make the
/// other's devices ambiguous. Its devices are named by id (DeviceNameOf).
std::string KubeletKind(std::string_view kind);
bool IsKubeletKind(std::string_view kind);

/// The state of the folder after Write.
struct FolderState {
  std::vector<std::string> kinds;     ///< written by the agent, sorted
  std::vector<std::string> problems;  ///< each one sentence
  bool retry = false;                 ///< something could not be written or removed
};

/// Writes `specs`, each as a whole file, and removes the other files of OwnFiles. A specification
/// is not written where another program's file defines one of its devices, because engines refuse
/// a device that two files define. Blocks.
FolderState Write(const std::string& folder, const std::vector<api::cdi::Spec>& specs,
                  const std::set<std::string>& kinds);

}  // namespace penstock::node::cdi
