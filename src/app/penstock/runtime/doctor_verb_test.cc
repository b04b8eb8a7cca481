// Tests how the doctor prints its findings.
#include "app/penstock/runtime/doctor_verb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::app {
namespace {

using testing::HasSubstr;

const std::vector<analysis::DoctorFinding> kFindings = {
    {"specifications", analysis::FindingState::kOk, "2 devices", "", {}, {}},
    {"containerd 1.7.24",
     analysis::FindingState::kBad,
     "has CDI disabled",
     "/etc/containerd/config.toml",
     {"[plugins.x]", "  enable_cdi = true"},
     {"systemctl restart containerd"}},
    {"podman 5.0\x1b[2J",
     analysis::FindingState::kUnknown,
     std::string(200, 'y'),
     "",
     {},
     {"podman info"}},
};

TEST(Doctor, ShowsATableWhoseSentencesAreNeverCutAndThenWhatToDo) {
  const std::string why(200, 'y');
  EXPECT_EQ(ShowFindings(kFindings, {.width = 80}),
            "STATE    WHAT               WHY\n"
            "ok       specifications     2 devices\n"
            "bad      containerd 1.7.24  has CDI disabled\n"
            "unknown  podman 5.0?[2J     " +
                why +
                "\n"
                "\n"
                "containerd 1.7.24: has CDI disabled\n"
                "  write to /etc/containerd/config.toml:\n"
                "    [plugins.x]\n"
                "      enable_cdi = true\n"
                "  then run:\n"
                "    systemctl restart containerd\n"
                "\n"
                "podman 5.0?[2J: " +
                why +
                "\n"
                "  run:\n"
                "    podman info\n");
}

TEST(Doctor, PaintsEachStateInItsColour) {
  const std::string table = ShowFindings(kFindings, {.color = true});
  EXPECT_THAT(table, HasSubstr("\x1b[32mok\x1b[0m"));
  EXPECT_THAT(table, HasSubstr("\x1b[31mbad\x1b[0m"));
  EXPECT_THAT(table, HasSubstr("\x1b[33munknown\x1b[0m"));
}

TEST(Doctor, ReportsProgramsTheSame) {
  const auto said = nlohmann::json::parse(FindingsJson(kFindings));
  EXPECT_EQ(said["well"], false);
  ASSERT_EQ(said["findings"].size(), 3u);
  EXPECT_EQ(said["findings"][1], (nlohmann::json{{"state", "bad"},
                                                 {"what", "containerd 1.7.24"},
                                                 {"why", "has CDI disabled"},
                                                 {"file", "/etc/containerd/config.toml"},
                                                 {"write", {"[plugins.x]", "  enable_cdi = true"}},
                                                 {"run", {"systemctl restart containerd"}}}));
  EXPECT_EQ(said["findings"][2]["state"], "unknown");
  EXPECT_EQ(nlohmann::json::parse(FindingsJson({kFindings[0], kFindings[2]}))["well"], true)
      << "what is not known is not bad";
}

}  // namespace
}  // namespace penstock::app
