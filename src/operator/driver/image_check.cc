#include "operator/driver/image_check.h"

#include <algorithm>
#include <utility>

#include "base/core/hash.h"
#include "base/core/json_text.h"
#include "base/core/printable.h"
#include "operator/json_values.h"

namespace penstock::cluster {
namespace {

constexpr char kWithoutCause[] = "ImagePullBackOff";
constexpr std::size_t kLongestWhy = 300;
constexpr std::int64_t kNobody = 65534;

/// Reasons of containers that wait for their image (pkg/kubelet/images/types.go).
bool IsOfImage(std::string_view reason) {
  constexpr std::string_view kReasons[] = {
      "ErrImagePull",        kWithoutCause,       "InvalidImageName",         "ErrImageNeverPull",
      "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed"};
  return std::ranges::find(kReasons, reason) != std::end(kReasons);
}

/// Of containers whose image is there, whatever becomes of them (pkg/kubelet/kuberuntime).
bool IsAfterImage(std::string_view reason) {
  constexpr std::string_view kReasons[] = {"CreateContainerConfigError", "CreateContainerError",
                                           "PreStartHookError", "RunContainerError",
                                           "CrashLoopBackOff"};
  return std::ranges::find(kReasons, reason) != std::end(kReasons);
}

std::string Digits(const std::string& text) { return std::to_string(base::Hash(text)); }

Json WithoutPrivileges() {
  return {{"allowPrivilegeEscalation", false},
          {"readOnlyRootFilesystem", true},
          {"runAsNonRoot", true},
          {"runAsUser", kNobody},
          {"capabilities", {{"drop", {"ALL"}}}},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

}  // namespace

ImageCheck ImageCheckOf(const Json& daemon_set, std::vector<std::string> nodes) {
  const std::string driver = "/spec/template/spec/containers/0/";
  ImageCheck check{.name = {},
                   .image = TextAt(daemon_set, driver + "image"),
                   .nodes = std::move(nodes),
                   .pod = {}};
  Json spec = {{"restartPolicy", "Never"},
               {"automountServiceAccountToken", false},
               {"enableServiceLinks", false},
               {"terminationGracePeriodSeconds", 0},
               {"containers",
                Json::array({{{"name", "image"},
                              {"image", check.image},
                              {"imagePullPolicy", TextAt(daemon_set, driver + "imagePullPolicy")},
                              {"command", Json::array({"true"})},
                              {"securityContext", WithoutPrivileges()}}})}};
  for (const char* same : {"serviceAccountName", "imagePullSecrets", "tolerations"})
    if (const Json* found = Find(daemon_set, std::string("/spec/template/spec/") + same))
      spec[same] = *found;
  check.name = "nvidia-driver-image-" + Digits(base::JsonText(spec));
  check.pod = {{"apiVersion", "v1"},
               {"kind", "Pod"},
               {"metadata",
                {{"namespace", TextAt(daemon_set, "/metadata/namespace")},
                 {"labels", {{std::string(kImageCheckLabel), check.name}}}}},
               {"spec", std::move(spec)}};
  return check;
}

Json ImageCheckPod(const ImageCheck& check, const std::string& node) {
  Json pod = check.pod;
  pod["metadata"]["name"] = check.name + "-" + Digits(node);
  pod["spec"]["nodeName"] = node;
  return pod;
}

Json ReducedCheckPod(const Json& pod) {
  const auto labels = TextsAt(pod, "/metadata/labels");
  const auto check = labels.find(std::string(kImageCheckLabel));
  const Json& statuses = ListAt(pod, "/status/containerStatuses");
  const Json status = statuses.empty() ? Json() : statuses[0];
  const std::string reason = TextAt(status, "/state/waiting/reason");
  std::string answer;
  if (!TextAt(status, "/imageID").empty() || IsAfterImage(reason) ||
      Find(status, "/state/running") != nullptr) {
    answer = "there";
  } else if (IsOfImage(reason)) {
    answer = reason;
  }
  return {{"metadata",
           {{"name", TextAt(pod, "/metadata/name")},
            {"namespace", TextAt(pod, "/metadata/namespace")}}},
          {"check", check == labels.end() ? "" : check->second},
          {"node", TextAt(pod, "/spec/nodeName")},
          {"answer", answer},
          {"why",
           base::Printable(base::Shortened(TextAt(status, "/state/waiting/message"), kLongestWhy))},
          {"refused", answer.empty() && TextAt(pod, "/status/phase") == "Failed"}};
}

ImageAnswer ImageAnswerOf(const Json& reduced_pod, const ImageAnswer& before) {
  const std::string answer = TextAt(reduced_pod, "/answer"), why = TextAt(reduced_pod, "/why");
  if (answer.empty()) return before;
  if (answer == "there") return {ImageState::kThere, ""};
  const bool has_cause = before.state == ImageState::kMissing && !before.why.empty();
  // An error is worded otherwise each time: the first one stays, so that no status changes.
  if (has_cause && !before.why.starts_with(kWithoutCause)) return before;
  return {ImageState::kMissing, answer + (why.empty() ? "" : ": " + why)};
}

}  // namespace penstock::cluster
