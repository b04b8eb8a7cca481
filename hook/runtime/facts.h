// What a bundle says that matters to us. All of it may have been written by an image's author.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::hook::runtime {

struct BundleMount {
  std::string source, destination;
};

struct Facts {
  using Annotations = std::map<std::string, std::string, std::less<>>;

  std::map<std::string, std::string, std::less<>> environment;  ///< the last of several of the same name
  Annotations annotations;
  /// Those that the container's creator gave it; a pod's author writes none of them. See OwnAnnotations in bundle.cc.
  Annotations own_annotations;
  std::vector<BundleMount> mounts;
  bool privileged = false;  ///< CAP_SYS_ADMIN in the bounding set
  /// NVIDIA's prestart hook is among its hooks, as dockerd puts it for `--gpus`, which no image can. See OfDockerGpus.
  bool gpus_hook = false;

  /// Of a variable; empty where it is not set.
  std::string_view Get(std::string_view name) const {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string_view() : std::string_view(found->second);
  }
  bool Has(std::string_view name) const { return environment.find(name) != environment.end(); }

  /// Whether a kubelet started it: the CRI plugins of containerd and CRI-O write such annotations (podman some of CRI-O's, but none of
  /// these); behind cri-dockerd, which writes none, every container has the variable. An image can add it, which only closes doors, and
  /// cannot take it away.
  bool OfKubernetes() const {
    if (Has("KUBERNETES_SERVICE_HOST")) return true;
    const auto next = annotations.lower_bound(std::string_view("io.kubernetes.cri."));
    return (next != annotations.end() && next->first.starts_with("io.kubernetes.cri.")) || OfCrio();
  }

  /// Whether somebody asked with docker's `--gpus`: then NVIDIA_VISIBLE_DEVICES is dockerd's word, the last of several. podman and engines
  /// of Kubernetes have the hook put by hooks.d, whoever brought the variable.
  bool OfDockerGpus() const { return gpus_hook && !OfKubernetes() && !annotations.contains("io.container.manager"); }

  bool OfCrio() const {
    for (const std::string_view key : {"ContainerID", "Metadata", "SandboxName"})
      if (annotations.contains("io.kubernetes.cri-o." + std::string(key))) return true;
    return false;
  }
};

}  // namespace penstock::hook::runtime
