// Decides how it is found out whether there is an image of a precompiled driver for a kernel that
// nodes will boot next: a pod on one of them pulls it, and ends. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace penstock::cluster {

/// On these pods: the name of their check.
inline constexpr std::string_view kImageCheckLabel = "penstock.io/image-check";

struct ImageCheck {
  std::string name;  ///< another one for another pod
  std::string image;
  std::vector<std::string> nodes;  ///< that will boot the kernel and are ready
  nlohmann::json pod;              ///< without a name and a node
  bool operator==(const ImageCheck&) const = default;
};

/// `daemon_set`: that of the driver, as it will be for the kernel (DriverDaemonSet). The pod has
/// its image, what pulls that, and its tolerations, and none of its privileges and mounts.
ImageCheck ImageCheckOf(const nlohmann::json& daemon_set, std::vector<std::string> nodes);

/// The pod of a check for a node, past the scheduler: also a node that is cordoned will boot.
nlohmann::json ImageCheckPod(const ImageCheck& check, const std::string& node);

enum class ImageState { kUnknown, kThere, kMissing };

struct ImageAnswer {
  ImageState state = ImageState::kUnknown;
  std::string why;  ///< it cannot be pulled, or it is not known; for people
  bool operator==(const ImageAnswer&) const = default;
};

/// What is kept of such a pod: `check`, `node`, `answer`, `why`, and `refused` if the kubelet did
/// not take it.
nlohmann::json ReducedCheckPod(const nlohmann::json& pod);

/// What a pod says; `before`: what was known. While the kubelet waits to try again it no longer
/// says what the error was.
ImageAnswer ImageAnswerOf(const nlohmann::json& reduced_pod, const ImageAnswer& before);

}  // namespace penstock::cluster
