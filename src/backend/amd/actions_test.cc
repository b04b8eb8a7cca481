// Never loads a driver: in the machine of these tests a reload is always under way.
#include "device/actions.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"

namespace penstock::backend::amd {

std::unique_ptr<device::Actions> MakeActions(os::Loop& control, const device::Paths& paths);

namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(AmdActions, AReloadThatAnEarlierAgentBeganIsWaitedForForAnHour) {
  os::TemporaryFolder proc;
  const std::string user = std::to_string(::geteuid());
  proc.Write("42/stat", "42 (sh) S 1 42 42 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0\n");
  proc.Write("42/status", "Name:\tsh\nUid:\t" + user + "\t" + user + "\n");
  using namespace std::string_literals;
  proc.Write("42/cmdline", "sh\0-c\0trap '' PIPE; { modprobe -r amdgpu || exit 3; }\0"s);
  os::TurnedLoop loop("test");
  loop.Start();
  std::optional<base::Status> ended;
  device::Paths paths;
  paths.proc_root = proc.path();
  const auto actions = MakeActions(loop.loop(), paths);
  loop.Run([&] { actions->ReloadDriver([&](const base::Status& status) { ended = status; }); });
  for (int i = 0; i < 59; ++i) loop.Advance(1min);
  EXPECT_FALSE(ended);
  loop.Advance(2min);
  loop.Stop();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->error().code(), base::Code::kDeadlineExceeded);
  EXPECT_THAT(
      ended->error().message(),
      HasSubstr("has not ended within 1h (end its modprobe; where it does not end, reboot)"));
}

}  // namespace
}  // namespace penstock::backend::amd
