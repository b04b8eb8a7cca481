#include "backend/nvidia/dialect/mig_profile.h"

#include <gtest/gtest.h>

namespace penstock::backend::nvidia {
namespace {

std::string Canonical(std::string_view name) {
  const auto profile = ParseMigProfile(name);
  return profile.ok() ? ToString(*profile) : "";
}

std::vector<device::PartProfile> Named(const std::vector<std::string>& names) {
  std::vector<device::PartProfile> profiles;
  for (const std::string& name : names) profiles.push_back({.name = name});
  return profiles;
}

std::string Found(std::string_view name, const std::vector<std::string>& names) {
  const auto profiles = Named(names);
  const auto found = FindMigProfile(name, profiles);
  return found.ok() ? (*found)->name : found.error().message();
}

const std::vector<std::string> kA100 = {"1g.5gb",     "1g.5gb+me", "1g.10gb", "2g.10gb",
                                        "3g.20gb",    "4g.20gb",   "7g.40gb", "1c.2g.10gb",
                                        "1c.3g.20gb", "2c.3g.20gb"};

TEST(MigProfile, ReadsAllFormsOfNames) {
  const MigProfile profile = *ParseMigProfile("1c.3g.20gb+me,gfx");
  EXPECT_EQ(profile.compute, 1);
  EXPECT_EQ(profile.slices, 3);
  EXPECT_EQ(profile.gigabytes, 20);
  EXPECT_EQ(profile.attributes, (std::vector<std::string>{"gfx", "me"}));
  for (const char* name : {"1g.5gb", "7g.141gb", "1g.24gb+me.all", "1g.24gb-me", "2c.7g.80gb",
                           "1g.24gb+gfx", "0g.0gb"})
    EXPECT_EQ(Canonical(name), name);
  EXPECT_EQ(Canonical("3c.3g.20gb"), "3g.20gb");
  EXPECT_EQ(Canonical("01g.005gb"), "1g.5gb");
  EXPECT_EQ(Canonical("1g.24gb+me,gfx"), "1g.24gb+gfx,me");
}

TEST(MigProfile, RefusesWhatIsNoName) {
  for (const char* name : {"",
                           "bogus",
                           "1g",
                           "5gb",
                           "1g5gb",
                           "g.5gb",
                           "1g.gb",
                           " 1g.5gb",
                           "1g.5gb ",
                           "1g. 5gb",
                           "-1g.5gb",
                           "+1g.5gb",
                           "1g.5gb+",
                           "1g.5gb-",
                           "1g.5gb+me,",
                           "1g.5gb+me,me",
                           "1g.5gb+1me",
                           "1g.5gb+.me",
                           "1g.5gb+me.",
                           "1g.5gb+m e",
                           "1g.5gb+me-gfx",
                           "1g.5gb-me+gfx",
                           "1g.5gb++me",
                           "1c.1g.5gb.2gb",
                           "1c.5gb",
                           "1c.1g",
                           "1G.5GB",
                           "1.5g.5gb",
                           "99999999999g.5gb",
                           "1g.5gb\n",
                           "1g.5gb+m\xc3\xa9"})
    EXPECT_EQ(Canonical(name), "") << name;
  EXPECT_EQ(ParseMigProfile("1g.5tb").error().message(),
            "\"1g.5tb\" is no MIG profile: it needs a number before each of g and gb; profiles are "
            "named as in 1g.5gb, 1g.5gb+me, 1c.3g.20gb");
}

TEST(MigProfile, NamesResourcesAsTheDevicePlugin) {
  EXPECT_EQ(MigResource("1g.5gb"), "mig-1g.5gb");
  EXPECT_EQ(MigResource("1g.5gb+me"), "mig-1g.5gb.me");
  EXPECT_EQ(MigResource("1c.2g.10gb"), "mig-1c.2g.10gb");
  EXPECT_EQ(MigResource("1g.24gb+me.all"), "mig-1g.24gb.me.all");
  EXPECT_EQ(MigResource("1g.24gb-me"), "mig-1g.24gb-me");
}

TEST(MigProfile, FindsAProfileWhoseMemoryOtherDriversRoundDifferently) {
  EXPECT_EQ(Found("1g.5gb", kA100), "1g.5gb");
  EXPECT_EQ(Found("3c.3g.20gb", kA100), "3g.20gb");
  EXPECT_EQ(Found("7g.79gb", {"4g.40gb", "7g.80gb"}), "7g.80gb");
  EXPECT_EQ(Found("3g.40gb", {"3g.39gb", "4g.39gb"}), "3g.39gb");
  EXPECT_EQ(Found("1c.3g.40gb", {"3g.39gb", "1c.3g.39gb"}), "1c.3g.39gb");
  EXPECT_EQ(Found("3g.95gb", {"2g.47gb", "3g.93gb"}), "3g.93gb");
  EXPECT_EQ(Found("1g.23gb+me", {"1g.24gb", "1g.24gb+me"}), "1g.24gb+me");
  EXPECT_EQ(Found("7g.80gb", {"7g.79gb", "7g.80gb"}), "7g.80gb");  // its own name first
}

TEST(MigProfile, DoesNotTakeAProfileOfAnotherSizeOrWithOtherAttributes) {
  EXPECT_EQ(Found("1g.6gb", kA100),
            "the GPU has no profile \"1g.6gb\"; did you mean \"1g.5gb\"? It has 1g.5gb, 1g.5gb+me, "
            "1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb, 1c.2g.10gb, 1c.3g.20gb, 2c.3g.20gb");
  for (const auto& [wanted, other] :
       std::vector<std::pair<std::string, std::string>>{{"1g.10gb", "1g.12gb"},
                                                        {"1g.5gb", "1g.10gb"},
                                                        {"1g.18gb", "1g.20gb"},
                                                        {"1g.5gb", "1g.5gb+me"},
                                                        {"1g.5gb+me", "1g.5gb"},
                                                        {"1g.24gb-me", "1g.24gb+me"},
                                                        {"1c.3g.20gb", "3g.20gb"},
                                                        {"3g.40gb", "4g.40gb"},
                                                        {"7g.80gb", "7g.94gb"}}) {
    const auto profiles = Named({other});
    EXPECT_EQ(FindMigProfile(wanted, profiles).error().code(), Code::kNotFound) << wanted;
  }
  EXPECT_EQ(Found("7g.80gb", {"7g.79gb", "7g.81gb"}),
            "\"7g.80gb\" is as near to one profile of the GPU as to another; it has 7g.79gb, "
            "7g.81gb");
  EXPECT_EQ(Found("9q", kA100), ParseMigProfile("9q").error().message());
}

}  // namespace
}  // namespace penstock::backend::nvidia
