// Tests the reading of container logs as CRI's engines write them.
#include "protocol/engine/cri/probe_container.h"

#include <gtest/gtest.h>

namespace penstock::protocol::engine::cri {
namespace {

TEST(OutputOfLog, IsWhatWentToStandardOutputWithLinesWhole) {
  EXPECT_EQ(OutputOfLog("2026-11-21T14:00:00.1Z stdout F 0 /dev/nvidia0\n"
                        "2026-11-21T14:00:00.2Z stderr F a warning\n"
                        "2026-11-21T14:00:00.3Z stdout P 6 /dev/nvid\n"
                        "2026-11-21T14:00:00.3Z stdout F ia1\n"
                        "2026-11-21T14:00:00.4Z stdout F \n"),
            "0 /dev/nvidia0\n6 /dev/nvidia1\n\n");
}

TEST(OutputOfLog, PassesOverWhatIsNone) {
  EXPECT_EQ(OutputOfLog(""), "");
  EXPECT_EQ(OutputOfLog("stdout\n  \nx y\nx stdout F"), "");
}

TEST(ProbeContainer, FailsWhereNoOneListens) {
  const auto output = RunContainer({.socket = "/none/c.sock",
                                    .image = "i",
                                    .command = {"/p"},
                                    .program = "/p",
                                    .cdi_devices = {}},
                                   std::chrono::seconds(5));
  ASSERT_FALSE(output.ok());
  EXPECT_NE(output.error().message().find("/none/c.sock"), std::string::npos);
}

}  // namespace
}  // namespace penstock::protocol::engine::cri
