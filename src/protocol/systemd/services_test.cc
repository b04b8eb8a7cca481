// What systemctl prints, and how it is called: the program is a script.
#include "protocol/systemd/services.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/core/file.h"
#include "os/testing/eventually.h"
#include "os/testing/run_on.h"
#include "os/testing/temporary_folder.h"

namespace penstock::protocol::systemd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// As systemd 252 (Debian 12) prints it, for an alias and a service that does not exist, with other
/// names: a service that another one requires, and of which a third one is a part.
constexpr char kShown[] = R"(ControlGroup=/system.slice/nvidia-dcgm.service
Id=nvidia-dcgm.service
Names=nvidia-dcgm.service dcgm.service
RequiredBy=dcgm-exporter.service
RequisiteOf=
BoundBy=
ConsistsOf=watcher.service
PropagatesStopTo=
LoadState=loaded
ActiveState=active

ControlGroup=
Id=nothing.service
Names=nothing.service
RequiredBy=
RequisiteOf=
BoundBy=
ConsistsOf=
PropagatesStopTo=
LoadState=not-found
ActiveState=inactive
)";

TEST(SystemdUnits, AreReadFromWhatSystemctlShows) {
  const std::vector<ServiceUnit> units = ParseUnits(kShown);
  ASSERT_EQ(units.size(), 2u);
  EXPECT_EQ(units[0].id, "nvidia-dcgm.service");
  EXPECT_THAT(units[0].names, ElementsAre("nvidia-dcgm.service", "dcgm.service"));
  EXPECT_TRUE(units[0].exists);
  EXPECT_TRUE(units[0].active);
  EXPECT_EQ(units[0].control_group, "/system.slice/nvidia-dcgm.service");
  EXPECT_THAT(units[0].stopped_with, ElementsAre("dcgm-exporter.service", "watcher.service"));
  EXPECT_EQ(units[1].id, "nothing.service");
  EXPECT_FALSE(units[1].exists);
  EXPECT_FALSE(units[1].active);
}

TEST(SystemdUnits, WhatIsNoUnitIsLeftOut) {
  EXPECT_THAT(ParseUnits(""), IsEmpty());
  EXPECT_THAT(ParseUnits("\n\nLoadState=loaded\n\n=x\nnonsense\n"), IsEmpty());
}

TEST(SystemdUnits, OneThatStartsOrReloadsIsActiveAndOneThatFailedIsNot) {
  const auto active = [](const std::string& state) {
    return ParseUnits("Id=a.service\nActiveState=" + state + "\n").front().active;
  };
  for (const char* state : {"active", "activating", "reloading"}) EXPECT_TRUE(active(state));
  for (const char* state : {"inactive", "failed", "deactivating", ""}) EXPECT_FALSE(active(state));
}

class SystemdServices : public testing::Test {
 protected:
  SystemdServices() { loop_.Start(); }
  ~SystemdServices() override {
    os::RunOn(loop_, [&] { services_.reset(); });
    loop_.Stop();
  }

  /// A script in place of what enters the machine: it writes its arguments to a file.
  void Answers(const std::string& script) {
    folder_.Write("enter", "#!/bin/sh\necho \"$@\" >> " + (folder_ / "called") + "\n" + script);
    std::filesystem::permissions(folder_ / "enter", std::filesystem::perms::owner_all);
    os::RunOn(loop_, [&] {
      services_.emplace(loop_, std::vector<std::string>{folder_ / "enter", "1"});
    });
  }
  std::string Called() const { return os::ReadFile(folder_ / "called").value_or(""); }

  /// What a request is answered with; an error's text.
  std::string Stop(const std::string& unit) {
    std::optional<base::Status> answer;
    os::RunOn(loop_,
              [&] { services_->Stop(unit, [&](base::Status done) { answer = std::move(done); }); });
    EXPECT_TRUE(os::Eventually([&] {
      bool answered = false;
      os::RunOn(loop_, [&] { answered = answer.has_value(); });
      return answered;
    }));
    return answer->ok() ? "stopped" : answer->error().message();
  }

  const os::TemporaryFolder folder_;
  os::Loop loop_{"test"};
  std::optional<Services> services_;
};

TEST_F(SystemdServices, NamesOfUnitsAreNoOptions) {
  Answers("exit 0\n");
  EXPECT_EQ(Stop("a.service"), "stopped");
  EXPECT_EQ(Called(), "1 systemctl --no-ask-password stop -- a.service\n");
}

TEST_F(SystemdServices, AnErrorSaysWhatSystemctlSaid) {
  Answers("echo 'Failed to stop a.service: Access denied' >&2\nexit 4\n");
  EXPECT_THAT(Stop("a.service"),
              AllOf(HasSubstr("systemctl stop a.service"), HasSubstr("Access denied")));
  Answers("exit 5\n");
  EXPECT_THAT(Stop("a.service"), HasSubstr("exit status 5"));
}

TEST_F(SystemdServices, ShowsSeveralUnitsByOneCall) {
  Answers("cat <<END\n" + std::string(kShown) + "END\n");
  std::optional<std::vector<ServiceUnit>> units;
  os::RunOn(loop_, [&] {
    services_->Show({"dcgm.service", "nothing.service"},
                    [&](base::Result<std::vector<ServiceUnit>> shown) {
                      if (shown.ok()) units = *std::move(shown);
                    });
  });
  ASSERT_TRUE(os::Eventually([&] {
    bool answered = false;
    os::RunOn(loop_, [&] { answered = units.has_value(); });
    return answered;
  }));
  EXPECT_EQ(units->size(), 2u);
  EXPECT_THAT(Called(), AllOf(HasSubstr("show --property=Id,Names,"),
                              HasSubstr(" -- dcgm.service nothing.service\n")));
}

}  // namespace
}  // namespace penstock::protocol::systemd
