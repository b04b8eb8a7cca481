#include "node/validate/container_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::validate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

PromisedFiles Acme() {
  api::cdi::CdiEdits edits;
  edits.nodes = {{.path = "/dev/acme0"}, {.path = "/dev/acmectl"}};
  edits.mounts = {{.host_path = "/opt/libacme.so", .container_path = "/lib/libacme.so"},
                  {.host_path = "tmpfs", .container_path = "/run/acme"}};
  return PromiseOf(edits);
}

TEST(ContainerFiles, APromiseIsTheDeviceFilesAndTheMountedFiles) {
  EXPECT_THAT(Acme().paths(), ElementsAre("/dev/acme0", "/dev/acmectl", "/lib/libacme.so"));
  EXPECT_EQ(Acme().devices(), 2u);
}

TEST(ContainerFiles, ADeviceInUseIsOpen) {
  const auto opened = *WhatOpened(Acme(), "0 /dev/acme0\n16 /dev/acmectl\n0 /lib/libacme.so\n");
  EXPECT_THAT(opened.why_not, IsEmpty());
  EXPECT_THAT(opened.unserved, IsEmpty());
}

TEST(ContainerFiles, ADeviceFileThatNoDriverServesIsNotOpenAndASocketIs) {
  const auto opened = *WhatOpened(Acme(), "6 /dev/acme0\n0 /dev/acmectl\n6 /lib/libacme.so\n");
  EXPECT_THAT(opened.why_not, IsEmpty());
  EXPECT_THAT(opened.unserved, ElementsAre("/dev/acme0"));
}

TEST(ContainerFiles, ADeviceThatItsDriverDoesNotHaveIsNotServedAndAFileThatSaysSoIsNotOpen) {
  const auto opened = *WhatOpened(Acme(), "0 /dev/acme0\n19 /dev/acmectl\n19 /lib/libacme.so\n");
  EXPECT_THAT(opened.why_not, ElementsAre(testing::HasSubstr("/lib/libacme.so cannot be opened")));
  EXPECT_THAT(opened.unserved, ElementsAre("/dev/acmectl"));
}

TEST(ContainerFiles, WhatCannotBeOpenedSaysWhichStepFailed) {
  EXPECT_THAT(
      WhatOpened(Acme(), "2 /lib/libacme.so\n1 /dev/acmectl\n2 /dev/acme0\n")->why_not,
      ElementsAre("/dev/acme0 is not in the container: it was not injected",
                  "/dev/acmectl exists but cannot be opened: the container's control group does "
                  "not allow it",
                  "/lib/libacme.so is not in the container: it was not injected"));
}

TEST(ContainerFiles, AnAnswerThatIsCutSaysNothingAndNothingIsBelievedThatWasNotAskedFor) {
  for (const char* output : {"", "2 /dev/acme0\n0 /dev/acmectl\n",
                             "0 /dev/acme0\n0 /dev/other\nx /dev/acmectl\n0 /lib/libacme.so\n",
                             "0 /dev/acme0\n0 /dev/acmectl\n/lib/libacme.so\n"}) {
    const auto why = WhatOpened(Acme(), output);
    ASSERT_FALSE(why.ok()) << output;
    EXPECT_EQ(why.error().message(), "the answer is not complete");
  }
}

}  // namespace
}  // namespace penstock::node::validate
