#include <gmock/gmock.h>

#include "app/penstock/runtime/runtime_configure.h"

namespace penstock::app {
namespace {

using testing::HasSubstr;

constexpr char kContainerd[] = "/run/containerd/containerd.sock",
               kK3s[] = "/run/k3s/containerd/containerd.sock", kDocker[] = "/run/docker.sock";

TEST(ChoosingAnEngine, TheKubeletsCountsMost) {
  EXPECT_EQ(*ChooseSocket({.kubelet = true, .sockets = {kK3s, kContainerd}, .docker = kDocker}),
            kK3s);
}

TEST(ChoosingAnEngine, WithoutAKubeletTheContainerdBesideADockerIsDockers) {
  EXPECT_EQ(*ChooseSocket({.sockets = {kContainerd}, .docker = kDocker}), kDocker);
  EXPECT_EQ(*ChooseSocket({.sockets = {kContainerd}}), kContainerd);
}

TEST(ChoosingAnEngine, NothingIsGuessed) {
  EXPECT_THAT(ChooseSocket({.sockets = {kContainerd, kK3s}}).error().message(),
              HasSubstr("several container engines are running"));
  EXPECT_THAT(ChooseSocket({}).error().message(), HasSubstr("pass --runtime"));
}

}  // namespace
}  // namespace penstock::app
