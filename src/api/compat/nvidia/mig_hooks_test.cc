#include "api/compat/nvidia/mig_hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

using ::testing::HasSubstr;

std::string HooksProblems(const std::string& text) {
  const auto read = ReadMigHooks(text, "f");
  return read.ok() ? "" : read.error().message();
}

// mig-parted, deployments/systemd/hooks-default.yaml, shortened, with variables.
TEST(MigHooks, ReadsAFile) {
  const auto hooks = ReadMigHooks(R"(version: v1
hooks:
    apply-start:
    - workdir: "/etc/nvidia-mig-manager"
      command: "/bin/bash"
      args: ["-x", "-c", "source hooks.sh; apply-start ${MIG_PARTED_SELECTED_CONFIG}"]
      envs: {A: b, C: "1"}
    apply-exit:
    - command: first
    - command: second
)",
                                  "f");
  ASSERT_TRUE(hooks.ok()) << hooks.error().message();
  const MigHooks expected{
      {kApplyStart,
       {{"/bin/bash",
         {"-x", "-c", "source hooks.sh; apply-start ${MIG_PARTED_SELECTED_CONFIG}"},
         {{"A", "b"}, {"C", "1"}},
         "/etc/nvidia-mig-manager"}}},
      {kApplyExit, {{.command = "first"}, {.command = "second"}}}};
  EXPECT_EQ(*hooks, expected);
  EXPECT_TRUE(ReadMigHooks("version: v1", "f")->empty());
  EXPECT_TRUE(ReadMigHooks("version: v1\nhooks: {apply-exit: []}", "f")->empty());
}

TEST(MigHooks, ReportsAllProblems) {
  const std::string problems = HooksProblems(R"(version: v2
hooks:
  pre-aply-mode: []
  apply-start:
  - args: [1]
  - {command: "", envs: {A: 1, "B=C": x}, user: root}
  - 7
)");
  for (const char* problem :
       {"f:1:10: version: is \"v2\"", "hooks.pre-aply-mode", "did you mean",
        "apply-start[0].command", "hooks.apply-start[0].args",
        "hooks.apply-start[1].command: is empty",
        "hooks.apply-start[1].envs.A: is an integer where a string is expected; write it in quotes",
        "hooks.apply-start[1].envs.B=C: is no variable", "hooks.apply-start[1].user",
        "hooks.apply-start[2]: is an integer"})
    EXPECT_THAT(problems, HasSubstr(problem));
  EXPECT_THAT(
      HooksProblems(R"({"version": "v1", "hooks": {"apply-exit": [{"command": "a\u0000b"}]}})"),
      HasSubstr("contains a NUL"));
}

TEST(MigHooks, RefusesWhatIsNone) {
  EXPECT_THAT(HooksProblems(""), HasSubstr("f: is no hooks file"));
  EXPECT_THAT(HooksProblems("- a"), HasSubstr("f: is no hooks file"));
  EXPECT_THAT(HooksProblems("hooks: {}"), HasSubstr("version"));
}

}  // namespace
}  // namespace penstock::api::compat
