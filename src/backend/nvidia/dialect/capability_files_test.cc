#include "backend/nvidia/dialect/capability_files.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/dialect/auxiliary_classes.h"

namespace penstock::backend::nvidia {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kMinors =
    "config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi0/ci0/access 4\ngpu0/gi1/access "
    "12\ngpu7/gi13/ci6/access 1071\ngpu7/gi13/access 1065\n";

TEST(CapabilityFiles, OfManagementAreThoseThatThereAre) {
  EXPECT_THAT(*ManagementCapabilityFiles(kMinors),
              ElementsAre(Pair("config", "/dev/nvidia-caps/nvidia-cap1"),
                          Pair("monitor", "/dev/nvidia-caps/nvidia-cap2")));
  EXPECT_THAT(*ManagementCapabilityFiles("monitor 9\n"),
              ElementsAre(Pair("monitor", "/dev/nvidia-caps/nvidia-cap9")));
  EXPECT_THAT(*ManagementCapabilityFiles(""), IsEmpty());
}

TEST(CapabilityFiles, EveryLineThatIsNoneIsReported) {
  const struct {
    const char* line;
    const char* problem;
  } cases[] = {{"config", "expected a line"},
               {"config 1 2", "minor number of config"},
               {"config one", "minor number of config"},
               {"config -1", "minor number of config"},
               {"config 4294967296", "minor number of config"},
               {"notconfig 99", "expected a line"},
               {"gpu0/gi0 1", "expected a line"},
               {"gpu0/gi0/ci0/ci0/access 1", "expected a line"},
               {"gpu/gi0/access 1", "expected a line"},
               {"gpu0/../access 1", "expected a line"},
               {"gpu99999999999999999999/gi0/access 1", "expected a line"},
               {" config 1", "expected a line"},
               {"monitor 3", "twice"}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.line);
    const auto minors =
        ParseCapabilityMinors(std::string("monitor 2\n") + one.line + "\n", "mig-minors");
    ASSERT_FALSE(minors.ok());
    EXPECT_EQ(minors.error().code(), base::Code::kInvalidArgument);
    EXPECT_THAT(minors.error().message(), ::testing::StartsWith("mig-minors:2: "));
    EXPECT_THAT(minors.error().message(), ::testing::HasSubstr(one.problem));
  }
  const auto both = ParseCapabilityMinors("a\nconfig 1\nb\n", "mig-minors");
  ASSERT_FALSE(both.ok());
  EXPECT_THAT(both.error().message(), ::testing::AllOf(::testing::HasSubstr("mig-minors:1:"),
                                                       ::testing::HasSubstr("mig-minors:3:")));
}

TEST(AuxiliaryClasses, HaveModesOfTheirOwn) {
  std::set<std::string> modes;
  for (const auto& one : AuxiliaryCdiClasses())
    EXPECT_TRUE(modes.insert(one.mode).second) << one.mode;
  for (const auto& one : OtherPlatforms()) EXPECT_TRUE(modes.insert(one.mode).second) << one.mode;
  EXPECT_EQ(modes, (std::set<std::string>{"csv", "gdrcopy", "gds", "imex", "management", "mig-caps",
                                          "mofed", "nvswitch", "wsl"}));
}

}  // namespace
}  // namespace penstock::backend::nvidia
