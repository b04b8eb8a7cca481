// Our files in a folder of specifications that others write to as well.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/cdi/spec.h"
#include "base/core/result.h"

namespace penstock::node::cdi {

/// "penstock-nvidia.com-gpu.json": our own name for it, so that no file of others is taken for ours; but the kubelet's has the name that
/// NVIDIA's device plugin gives it, since ours takes its place.
std::string OwnFileName(std::string_view kind);

/// Those of a folder's files that are ours: by our names, whatever their kind, and those of `kinds` for the kubelet; also what a write that
/// was killed has left of them.
std::vector<std::string> OwnFiles(const std::vector<std::string>& files, const std::set<std::string>& kinds);

/// The kind under which the kubelet's door names devices to engines, apart from the one that people use, so that neither's file can make
/// the other's devices ambiguous: "k8s.device-plugin.nvidia.com/gpu", as NVIDIA's device plugin has it (internal/cdi), whose file ours
/// takes the place of. Its devices are named by id.
std::string KubeletKind(std::string_view kind);
bool IsKubeletKind(std::string_view kind);

/// How the folder is after Write.
struct FolderState {
  std::vector<std::string> kinds;     ///< that are there by our hand, sorted
  std::vector<std::string> problems;  ///< each one sentence
  bool retry = false;                 ///< something could not be written or removed
};

/// Makes our files those of `specs`, each as a whole, and removes the others of OwnFiles. A
/// specification is not written where a file of others gives one of its devices: then nobody could have it. Blocks.
FolderState Write(const std::string& folder, const std::vector<api::cdi::Spec>& specs, const std::set<std::string>& kinds);

}  // namespace penstock::node::cdi
