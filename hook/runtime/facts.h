// The facts of a bundle that decide which devices a container gets. An image's author may have
// written all of them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::hook::runtime {

/// An untrusted text in a form for messages: quoted, without control characters, truncated to a
/// readable length.
std::string Shown(std::string_view text);

struct BundleMount {
  std::string source, destination;
};

struct RuntimeFacts {
  using Annotations = std::map<std::string, std::string, std::less<>>;

  std::map<std::string, std::string, std::less<>>
      environment;  ///< the last one if a name occurs several times
  Annotations annotations;
  /// Annotations that the container's creator set and a pod's author cannot. See OwnAnnotations in
  /// bundle.cc.
  Annotations own_annotations;
  std::vector<BundleMount> mounts;
  bool privileged = false;  ///< CAP_SYS_ADMIN in the bounding set
  /// NVIDIA's prestart hook is among the hooks. dockerd adds it for `--gpus`; an image cannot. See
  /// OfDockerGpus.
  bool gpus_hook = false;

  /// The value of a variable; empty if it is not set.
  std::string_view Get(std::string_view name) const {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string_view() : std::string_view(found->second);
  }
  bool Has(std::string_view name) const { return environment.find(name) != environment.end(); }

  /// Whether a kubelet started the container. The CRI plugins of containerd and CRI-O write these
  /// annotations (podman writes some of CRI-O's, but none of these); cri-dockerd writes none, but
  /// there every container has the variable. An image can set the variable, which only restricts it
  /// further, and cannot remove it.
  bool OfKubernetes() const {
    if (Has("KUBERNETES_SERVICE_HOST")) return true;
    const auto next = annotations.lower_bound(std::string_view("io.kubernetes.cri."));
    return (next != annotations.end() && next->first.starts_with("io.kubernetes.cri.")) || OfCrio();
  }

  /// Whether the user requested devices with docker's `--gpus`: NVIDIA_VISIBLE_DEVICES is then set
  /// by dockerd, as the last of several. For podman and Kubernetes' engines the hook comes from
  /// hooks.d, whatever the source of the variable.
  bool OfDockerGpus() const {
    return gpus_hook && !OfKubernetes() && !annotations.contains("io.container.manager");
  }

  bool OfCrio() const {
    for (const std::string_view key : {"ContainerID", "Metadata", "SandboxName"})
      if (annotations.contains("io.kubernetes.cri-o." + std::string(key))) return true;
    return false;
  }
};

}  // namespace penstock::hook::runtime
