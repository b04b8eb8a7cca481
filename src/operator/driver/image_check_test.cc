// Tests the pods that find out whether there is an image of a driver, and what they say.
#include "operator/driver/image_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/driver/driver_daemon_set.h"
#include "operator/json_values.h"

namespace penstock::cluster {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Json SetOf(const std::string& version) {
  api::DriverSpec driver;
  driver.name = "blue";
  driver.precompiled = true;
  driver.image = {"nvcr.io/nvidia", "driver", version, "Always", {"users-secret"}};
  driver.tolerations = {R"([{"key":"mine","operator":"Exists"}])"};
  DriverPool pool{"ubuntu", "22.04", "ubuntu22.04", "5.15.0-112-generic"};
  return *DriverDaemonSet(driver, pool,
                          {.namespace_name = "gpu-operator",
                           .image = "penstock:1",
                           .pull_secrets = {"ours"},
                           .service_account = "penstock"});
}

Json PodThat(const Json& status) {
  return {{"metadata", {{"name", "p"}, {"labels", {{std::string(kImageCheckLabel), "c"}}}}},
          {"spec", {{"nodeName", "n1"}}},
          {"status", status}};
}

Json Waiting(const std::string& reason, const std::string& message = "") {
  return PodThat({{"phase", "Pending"},
                  {"containerStatuses",
                   {{{"name", "image"},
                     {"imageID", ""},
                     {"state", {{"waiting", {{"reason", reason}, {"message", message}}}}}}}}});
}

ImageAnswer AnswerOf(const Json& pod, const ImageAnswer& before = {}) {
  return ImageAnswerOf(ReducedCheckPod(pod), before);
}

TEST(ImageCheck, PullsAsTheDriversPodWillAndHasNothingElseOfIt) {
  const Json set = SetOf("550");
  const ImageCheck check = ImageCheckOf(set, {"n1"});
  EXPECT_EQ(check.image, "nvcr.io/nvidia/driver:550-5.15.0-112-generic-ubuntu22.04");
  const Json pod = ImageCheckPod(check, "n1");
  EXPECT_EQ(TextAt(pod, "/metadata/namespace"), "gpu-operator");
  EXPECT_THAT(TextAt(pod, "/metadata/name"), StartsWith(check.name));
  const Json& spec = pod["spec"];
  EXPECT_EQ(spec["nodeName"], "n1");
  const Json& driver = set["spec"]["template"]["spec"];
  for (const char* same : {"serviceAccountName", "imagePullSecrets", "tolerations"})
    EXPECT_EQ(spec[same], driver[same]) << same;
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  for (const char* privilege : {"hostPID", "hostNetwork", "volumes", "initContainers", "affinity"})
    EXPECT_FALSE(spec.contains(privilege)) << privilege;
  ASSERT_EQ(spec["containers"].size(), 1u);
  const Json& container = spec["containers"][0];
  EXPECT_EQ(container["image"], check.image);
  EXPECT_EQ(container["imagePullPolicy"], "Always");
  for (const char* privilege : {"volumeMounts", "env", "envFrom", "lifecycle"})
    EXPECT_FALSE(container.contains(privilege)) << privilege;
  EXPECT_FALSE(container["securityContext"].contains("privileged"));
  EXPECT_EQ(container["securityContext"]["allowPrivilegeEscalation"], false);
  EXPECT_EQ(container["securityContext"]["runAsNonRoot"], true);
}

TEST(ImageCheck, AnotherImageIsAnotherCheckAndAnotherNodeAnotherPod) {
  const ImageCheck check = ImageCheckOf(SetOf("550"), {"n1"});
  EXPECT_EQ(check.name, ImageCheckOf(SetOf("550"), {"n1", "n2"}).name);
  EXPECT_NE(check.name, ImageCheckOf(SetOf("580"), {"n1"}).name);
  EXPECT_NE(ImageCheckPod(check, "n1")["metadata"]["name"],
            ImageCheckPod(check, "n2")["metadata"]["name"]);
  EXPECT_LE(check.name.size(), 63u) << "it is the value of a label";
}

TEST(ImageCheck, AContainerThatGotAsFarAsItsImageSaysThatItIsThere) {
  EXPECT_EQ(
      AnswerOf(
          PodThat({{"phase", "Succeeded"},
                   {"containerStatuses",
                    {{{"imageID", "sha256:1"}, {"state", {{"terminated", {{"exitCode", 0}}}}}}}}}))
          .state,
      ImageState::kThere);
  EXPECT_EQ(AnswerOf(PodThat({{"phase", "Failed"},
                              {"containerStatuses",
                               {{{"imageID", "sha256:1"},
                                 {"state", {{"terminated", {{"exitCode", 128}}}}}}}}}))
                .state,
            ImageState::kThere)
      << "an image without the command";
  EXPECT_EQ(AnswerOf(Waiting("CreateContainerConfigError")).state, ImageState::kThere);
  EXPECT_EQ(AnswerOf(Waiting("ContainerCreating")).state, ImageState::kUnknown) << "it is pulled";
  EXPECT_EQ(AnswerOf(PodThat({{"phase", "Pending"}})).state, ImageState::kUnknown);
}

TEST(ImageCheck, TheFirstCauseStaysWhileTheKubeletTriesAgain) {
  const ImageAnswer missing = AnswerOf(Waiting("ErrImagePull", "manifest unknown"));
  EXPECT_EQ(missing.state, ImageState::kMissing);
  EXPECT_EQ(missing.why, "ErrImagePull: manifest unknown");
  EXPECT_EQ(AnswerOf(Waiting("ImagePullBackOff", "Back-off pulling image"), missing), missing);
  EXPECT_EQ(AnswerOf(Waiting("ErrImagePull", "manifest unknown, request 77"), missing), missing);
  const ImageAnswer late = AnswerOf(Waiting("ImagePullBackOff", "Back-off pulling image"));
  EXPECT_THAT(late.why, HasSubstr("Back-off"));
  EXPECT_EQ(AnswerOf(Waiting("ErrImagePull", "manifest unknown"), late), missing);
  EXPECT_EQ(AnswerOf(PodThat({{"phase", "Succeeded"}, {"containerStatuses", {{{"imageID", "x"}}}}}),
                     missing)
                .state,
            ImageState::kThere)
      << "it was built meanwhile";
}

TEST(ImageCheck, WhatANodeWritesIsCutAndPrintable) {
  const ImageAnswer answer =
      AnswerOf(Waiting("ErrImagePull", "\x1b[2J" + std::string(1u << 20, 'x')));
  EXPECT_LT(answer.why.size(), 400u);
  EXPECT_THAT(answer.why, testing::Not(HasSubstr("\x1b")));
  for (const Json& odd :
       {Json(), Json(7), Json::array({1}), Json{{"status", "x"}},
        PodThat({{"containerStatuses", 7}}), PodThat({{"containerStatuses", {7}}}),
        PodThat({{"containerStatuses", {{{"imageID", 7}, {"state", "x"}}}}})})
    EXPECT_EQ(AnswerOf(odd).state, ImageState::kUnknown) << odd.dump();
  EXPECT_TRUE(
      ReducedCheckPod(PodThat({{"phase", "Failed"}, {"reason", "NodeAffinity"}}))["refused"]);
}

}  // namespace
}  // namespace penstock::cluster
