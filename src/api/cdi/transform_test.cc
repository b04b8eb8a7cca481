// Tests that the paths of a specification move to another root.
#include "api/cdi/transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/cdi/testing/random_spec.h"

namespace penstock::api::cdi {
namespace {

using testing::ElementsAre;

Spec Driver() {
  Spec spec{"0.3.0",
            "nvidia.com/gpu",
            {},
            {{"gpu0", {}, {.nodes = {{.path = "/driver/dev/nvidia0"}, {.path = "/dev/other"}}}}},
            {}};
  spec.edits.mounts = {{"/driver/lib/a", "/driver/lib/a", {}, ""},
                       {"/driver2/a", "/driver", {}, ""}};
  spec.edits.hooks = {{"createContainer",
                       "/driver/hook",
                       {"hook", "--link", "/driver/a::/driver/b", "--folder=/driver/c", "../x::y"},
                       {},
                       {}},
                      {"startContainer", "/driver/hook", {"/driver"}, {}, {}},
                      {"poststop", "/driver/hook", {"/driver/x"}, {}, {}}};
  return spec;
}

TEST(TransformRoot, MovesWhatTheHostSees) {
  const Spec spec = TransformRoot(Driver(), "/driver", "/", Relative::kHost);
  EXPECT_EQ(spec.devices[0].edits.nodes[0].path, "/driver/dev/nvidia0");
  EXPECT_EQ(spec.devices[0].edits.nodes[0].host_path, "/dev/nvidia0");
  EXPECT_EQ(spec.devices[0].edits.nodes[1].host_path, "") << "what does not move stays as it was";
  EXPECT_EQ(spec.version, "0.5.0") << "hostPath takes it";
  EXPECT_THAT(spec.edits.mounts, ElementsAre(Mount{"/lib/a", "/driver/lib/a", {}, ""},
                                             Mount{"/driver2/a", "/driver", {}, ""}));
  EXPECT_THAT(spec.edits.hooks,
              ElementsAre(Hook{"createContainer", "/hook", Driver().edits.hooks[0].args, {}, {}},
                          Hook{"startContainer", "/driver/hook", {"/driver"}, {}, {}},
                          Hook{"poststop", "/hook", {"/x"}, {}, {}}));
}

TEST(TransformRoot, MovesWhatTheContainerSees) {
  const Spec spec = TransformRoot(Driver(), "/driver/", "/", Relative::kContainer);
  EXPECT_EQ(spec.devices[0].edits.nodes[0].path, "/dev/nvidia0");
  EXPECT_EQ(spec.devices[0].edits.nodes[0].host_path, "/driver/dev/nvidia0");
  EXPECT_THAT(spec.edits.mounts, ElementsAre(Mount{"/driver/lib/a", "/lib/a", {}, ""},
                                             Mount{"/driver2/a", "/", {}, ""}));
  EXPECT_THAT(spec.edits.hooks,
              ElementsAre(Hook{"createContainer",
                               "/driver/hook",
                               {"hook", "--link", "/a::/b", "--folder=/c", "../x::y"},
                               {},
                               {}},
                          Hook{"startContainer", "/hook", {"/"}, {}, {}},
                          Hook{"poststop", "/driver/hook", {"/driver/x"}, {}, {}}));
}

TEST(TransformRoot, IsUndoneByItsInverse) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    Spec spec = RandomSpec(seed).Make();
    spec.version = "1.1.0";
    for (const Relative relative : {Relative::kHost, Relative::kContainer}) {
      const Spec there = TransformRoot(spec, "/", "/run/driver", relative);
      EXPECT_EQ(TransformRoot(there, "/run/driver", "", relative), spec) << seed;
    }
  }
}

TEST(TransformRoot, ChangesNothingWhereNothingLiesThere) {
  const Spec spec = Driver();
  EXPECT_EQ(TransformRoot(spec, "/nowhere", "/other", Relative::kHost), spec);
  EXPECT_EQ(TransformRoot(spec, "/driver", "/driver", Relative::kContainer), spec);
}

TEST(TransformTest, GroupsAreTakenFromAllEdits) {
  Spec spec{"", "acme.com/gpu", {}, {{"0", {}, {.additional_gids = {44, 7}}}}, {}};
  spec.edits.additional_gids = {44};
  EXPECT_EQ(MinimumVersion(spec), "0.7.0");
  EXPECT_EQ(TakeGroups(spec), (std::set<std::uint32_t>{7, 44}));
  EXPECT_TRUE(TakeGroups(spec).empty());
  EXPECT_LT(MinimumVersion(spec), "0.7.0");
}

}  // namespace
}  // namespace penstock::api::cdi
