#include "app/stopped_services.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/testing/must.h"
#include "os/testing/temporary_folder.h"

namespace penstock::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(StoppedServices, AreKeptInTheirOrderForTheSameBoot) {
  const os::TemporaryFolder folder;
  EXPECT_THAT(base::Must(LoadStoppedServices(folder.path(), "b1")).units, IsEmpty());
  folder.Write("services.json", EncodeStoppedServices({"b1", {"b.service", "a.service"}}));
  EXPECT_THAT(base::Must(LoadStoppedServices(folder.path(), "b1")).units,
              ElementsAre("b.service", "a.service"));
}

TEST(StoppedServices, AnotherBootHasStartedThem) {
  const os::TemporaryFolder folder;
  folder.Write("services.json", EncodeStoppedServices({"b1", {"a.service"}}));
  const StoppedServices stopped = base::Must(LoadStoppedServices(folder.path(), "b2"));
  EXPECT_EQ(stopped.boot, "b2");
  EXPECT_THAT(stopped.units, IsEmpty());
}

TEST(StoppedServices, AFileOfANewerVersionIsSetAside) {
  EXPECT_EQ(DecodeStoppedServices(R"({"version": 9, "later": 1})", "f").error().code(),
            base::Code::kFailedPrecondition);
  EXPECT_EQ(DecodeStoppedServices("{", "f").error().code(), base::Code::kDataLoss);
  const os::TemporaryFolder folder;
  folder.Write("services.json", R"({"version": 9})");
  EXPECT_THAT(base::Must(LoadStoppedServices(folder.path(), "b1")).units, IsEmpty());
}

}  // namespace
}  // namespace penstock::app
