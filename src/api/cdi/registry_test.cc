// Tests that specifications of several folders merge as in the engines' cache.
#include "api/cdi/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::cdi {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Returns a specification with these devices; each has its name and `mark` in its environment.
std::string SpecWith(const std::vector<std::string>& names, const std::string& mark,
                     const std::string& kind = "nvidia.com/gpu") {
  Spec spec{"", kind, {}, {}, {.env = {"SPEC=" + mark}}};
  for (const std::string& name : names)
    spec.devices.push_back({name, {}, {.env = {"DEVICE=" + name + mark}}});
  return ToJson(spec);
}

std::vector<std::string> NamesOf(const Registry& registry) {
  std::vector<std::string> names;
  for (const auto& device : registry.devices()) names.push_back(device.name + "@" + device.file);
  return names;
}

TEST(Registry, ListsWhatAllFilesGive) {
  const Registry registry({{"/etc/cdi/b.json", 0, SpecWith({"1", "0"}, "b")},
                           {"/run/a.yaml", 1, SpecWith({"all"}, "a", "amd.com/gpu")}});
  EXPECT_THAT(NamesOf(registry),
              ElementsAre("amd.com/gpu=all@/run/a.yaml", "nvidia.com/gpu=0@/etc/cdi/b.json",
                          "nvidia.com/gpu=1@/etc/cdi/b.json"));
  EXPECT_THAT(registry.problems(), IsEmpty());
}

TEST(Registry, JoinsTheEditsOfEachSpecificationOnceBeforeThoseOfItsDevices) {
  const Registry registry({{"/a.json", 0, SpecWith({"0", "1"}, "a")},
                           {"/b.json", 0, SpecWith({"0"}, "b", "amd.com/gpu")}});
  const std::vector<std::string> names = {"nvidia.com/gpu=1", "amd.com/gpu=0", "nvidia.com/gpu=0"};
  EXPECT_THAT(registry.Inject(names)->env,
              ElementsAre("SPEC=a", "DEVICE=1a", "SPEC=b", "DEVICE=0b", "DEVICE=0a"));
  EXPECT_EQ(*registry.Inject({}), CdiEdits());
}

TEST(Registry, GivesTheDeviceOfTheHigherPriorityAndSaysWhatItHides) {
  const Registry registry({{"/var/run/cdi/n.json", 1, SpecWith({"0"}, "new")},
                           {"/etc/cdi/o.json", 0, SpecWith({"0", "1"}, "old")}});
  const std::vector<std::string> names = {"nvidia.com/gpu=0"};
  EXPECT_THAT(registry.Inject(names)->env, ElementsAre("SPEC=new", "DEVICE=0new"));
  EXPECT_THAT(registry.problems(), ElementsAre("/var/run/cdi/n.json hides nvidia.com/gpu=0 of "
                                               "/etc/cdi/o.json; remove the unwanted one"));
}

TEST(Registry, GivesADeviceOfTwoFilesToNoOneAndSaysSo) {
  const Registry registry(
      {{"/a.json", 0, SpecWith({"0", "1"}, "a")}, {"/b.json", 0, SpecWith({"0"}, "b")}});
  EXPECT_THAT(NamesOf(registry), ElementsAre("nvidia.com/gpu=1@/a.json"));
  EXPECT_THAT(registry.problems(),
              ElementsAre("/a.json and /b.json both define nvidia.com/gpu=0, so that no container "
                          "can use it; remove one of the files"));
  const std::vector<std::string> names = {"nvidia.com/gpu=0"};
  EXPECT_THAT(registry.Inject(names).error().message(),
              HasSubstr("is defined by both /a.json and /b.json"));
}

// The cache removes conflicting names at the end, whichever file defined them last.
TEST(Registry, KeepsADisputedDeviceAwayEvenWhereAHigherPriorityGivesIt) {
  const Registry registry({{"/a.json", 0, SpecWith({"0"}, "a")},
                           {"/b.json", 0, SpecWith({"0"}, "b")},
                           {"/c.json", 1, SpecWith({"0"}, "c")}});
  EXPECT_THAT(registry.devices(), IsEmpty());
}

TEST(Registry, SaysOneSentenceOnEachFileThatIsNone) {
  const Registry registry(
      {{"/broken.yaml", 0, std::string("cdiVersion: 9.9.9\nkind: x\n")},
       {"/locked.json", 0,
        base::Error(base::Code::kPermissionDenied, "open /locked.json: Permission denied")},
       {"/good.json", 0, SpecWith({"0"}, "a")}});
  EXPECT_THAT(NamesOf(registry), ElementsAre("nvidia.com/gpu=0@/good.json"));
  ASSERT_EQ(registry.problems().size(), 2u);
  EXPECT_THAT(registry.problems()[0],
              AllOf(HasSubstr("/broken.yaml:1:"), HasSubstr("ignore the whole file"),
                    HasSubstr("(2 more: penstock cdi validate /broken.yaml)")));
  EXPECT_EQ(
      registry.problems()[1],
      "open /locked.json: Permission denied; its devices are unavailable until it can be read");
}

TEST(Registry, NamesAllThatIsMissingWithWhy) {
  const Registry registry({{"/a.json", 0, SpecWith({"0", "1"}, "a")}});
  const std::vector<std::string> names = {"nvidia.com/gpu=7", "nvidia.com/gpu=0", "amd.com/gpu=0",
                                          "gpu0"};
  const auto edits = registry.Inject(names);
  ASSERT_FALSE(edits.ok());
  EXPECT_EQ(edits.error().code(), base::Code::kNotFound);
  EXPECT_EQ(edits.error().message(),
            "there is no CDI device \"nvidia.com/gpu=7\" (nvidia.com/gpu has 0, 1), nor "
            "\"amd.com/gpu=0\" (no specification of this kind was found), nor \"gpu0\" (is not a "
            "qualified name (vendor/class=device))");
}

}  // namespace
}  // namespace penstock::api::cdi
