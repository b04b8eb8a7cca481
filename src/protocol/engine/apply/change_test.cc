#include "protocol/engine/apply/change.h"

#include <random>

#include <gmock/gmock.h>

#include "protocol/engine/text/line_diff.h"

namespace penstock::protocol::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const DesiredConfig kWithCdi = {.cdi = true,
                                .handlers = {{"nvidia", "/opt/penstock/penstock-runtime"}},
                                .default_handler = "nvidia"};
constexpr char kPath[] = "/etc/containerd/config.toml";

constexpr char kFirst[] = R"(# head
version = 2

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "pause:3.8" # ours

  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

[debug]
  level = "info"
)";

/// A containerd 1.7 with one file, and the record of what Penstock wrote for it.
struct ChangedMachine {
  EngineFacts facts{.name = "containerd",
                    .major = 1,
                    .minor = 7,
                    .main = {kPath, kFirst},
                    .drop_in = {"/etc/containerd/conf.d/99-penstock.toml", {}}};
  Disk disk{{kPath, kFirst}};
  SettingRecord record;

  base::Result<EngineConfigChange> Plan(const DesiredConfig& desired) {
    facts.main.text = disk[kPath];
    facts.drop_in.text = disk[facts.drop_in.path];
    return MakeChange(facts, disk, record, desired);
  }

  /// Applies a desired configuration; returns how many files were written.
  std::size_t Do(const DesiredConfig& desired) {
    const auto change = Plan(desired);
    EXPECT_TRUE(change.ok()) << change.error().message();
    for (const FileChange& file : change->files) disk[file.path] = file.to;
    record = change->record;
    return change->files.size();
  }

  std::string& text() { return *disk[kPath]; }
  void Edit(const std::string& from, const std::string& to) {
    const auto at = text().find(from);
    ASSERT_NE(at, std::string::npos);
    text().replace(at, from.size(), to);
  }
};

TEST(EngineConfigChange, UndoneItIsTheFirstTextToTheByte) {
  ChangedMachine machine;
  EXPECT_EQ(machine.Do(kWithCdi), 1u);
  EXPECT_NE(machine.text(), kFirst);
  EXPECT_EQ(machine.Do({}), 1u);
  EXPECT_EQ(machine.text(), kFirst);
  EXPECT_THAT(machine.record.files, IsEmpty());
}

TEST(EngineConfigChange, TheSecondTimeNothingChanges) {
  ChangedMachine machine;
  machine.Do(kWithCdi);
  machine.facts.effective = R"([plugins."io.containerd.grpc.v1.cri"]
enable_cdi = true
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "nvidia"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
)";
  EXPECT_EQ(machine.Do(kWithCdi), 0u);
  EXPECT_EQ(FindStanding(machine.disk, machine.record).standing, Standing::kAsWritten);
}

TEST(EngineConfigChange, AnAdministratorsLaterEditsOutliveBothAnotherRequestAndTheUndoing) {
  ChangedMachine machine;
  machine.Do(kWithCdi);
  machine.Edit("level = \"info\"", "level = \"debug\" # for a while");
  machine.Edit("pause:3.8", "pause:3.9");
  machine.Edit("# head\n", "# head\n# and more\n");
  EXPECT_EQ(FindStanding(machine.disk, machine.record).standing, Standing::kAsWritten);
  EXPECT_EQ(machine.Do({.cdi = true}), 1u);
  EXPECT_THAT(machine.text(), HasSubstr("enable_cdi = true"));
  EXPECT_THAT(machine.text(), testing::Not(HasSubstr("nvidia")));
  machine.Do({});
  std::string wanted = kFirst;
  wanted.replace(wanted.find("level = \"info\""), 14, "level = \"debug\" # for a while");
  wanted.replace(wanted.find("pause:3.8"), 9, "pause:3.9");
  wanted.insert(wanted.find("version"), "# and more\n");
  EXPECT_EQ(machine.text(), wanted);
}

TEST(EngineConfigChange, WhereLinesTouchKeysAreTakenBackOneByOne) {
  ChangedMachine machine;
  machine.Do(kWithCdi);
  machine.Edit(
      "enable_cdi = true",
      "enable_cdi = true # who wrote that?\n  device_ownership_from_security_context = true");
  EXPECT_EQ(machine.Do({}), 1u);
  EXPECT_THAT(machine.text(), HasSubstr("device_ownership_from_security_context = true"));
  EXPECT_THAT(machine.text(), testing::Not(HasSubstr("enable_cdi")));
  EXPECT_THAT(machine.text(), testing::Not(HasSubstr("nvidia")));
  EXPECT_THAT(machine.text(), HasSubstr("default_runtime_name = \"runc\""));
}

TEST(EngineConfigChange, WhatOthersSetOtherwiseIsTheirs) {
  ChangedMachine machine;
  machine.Do(kWithCdi);
  machine.Edit("default_runtime_name = \"nvidia\"", "default_runtime_name = \"kata\"");
  const auto stands = FindStanding(machine.disk, machine.record);
  EXPECT_EQ(stands.standing, Standing::kChanged);
  EXPECT_THAT(
      stands.which,
      ElementsAre(
          std::string(kPath) +
          ": plugins.\"io.containerd.grpc.v1.cri\".containerd.default_runtime_name is \"kata\""));
  machine.Do({});
  EXPECT_THAT(machine.text(), HasSubstr("default_runtime_name = \"kata\""));
  EXPECT_THAT(machine.text(), testing::Not(HasSubstr("nvidia")));
}

TEST(EngineConfigChange, AFileThatWasWrittenAgainIsConfiguredAgain) {
  ChangedMachine machine;
  machine.Do(kWithCdi);
  const std::string ours = machine.text();
  machine.text() = kFirst;  // as kubespray does
  EXPECT_EQ(FindStanding(machine.disk, machine.record).standing,
            Standing::kChanged);  // default_runtime_name is theirs
  EXPECT_EQ(machine.Do(kWithCdi), 1u);
  EXPECT_EQ(machine.text(), ours);
  machine.text() = "version = 2\n";
  EXPECT_EQ(FindStanding(machine.disk, machine.record).standing, Standing::kMissing);
  machine.Do({});
  EXPECT_EQ(machine.text(), "version = 2\n");
}

TEST(EngineConfigChange, FilesOfOursGoUnlessSomeoneWroteIntoThem) {
  ChangedMachine machine;
  machine.facts.major = 2;
  machine.facts.minor = 1;
  machine.text() = "version = 3\nimports = [\"conf.d/*.toml\"]\n";
  EXPECT_EQ(machine.Do(kWithCdi), 1u);
  ASSERT_TRUE(machine.disk[machine.facts.drop_in.path]);
  ChangedMachine other = machine;
  EXPECT_EQ(machine.Do({}), 1u);
  EXPECT_FALSE(machine.disk[machine.facts.drop_in.path]);
  *other.disk[other.facts.drop_in.path] += "\n[debug]\nlevel = \"x\"\n";
  other.Do({});
  const auto left = other.disk[other.facts.drop_in.path];
  ASSERT_TRUE(left);
  EXPECT_EQ(Spell(*FindAt(*Read(FileFormat::kToml, *left, ""), {})),
            "{\"debug\": {\"level\": \"x\"}}");
  other = machine;
  other.disk.erase(other.facts.drop_in.path);
  EXPECT_EQ(other.Do({}), 0u);
}

TEST(EngineConfigChange, IllFormedFilesChangeNothing) {
  ChangedMachine machine;
  machine.Do(kWithCdi);
  machine.text() += "[\n";
  EXPECT_EQ(machine.Plan({}).error().code(), base::Code::kInvalidArgument);
  EXPECT_THAT(machine.Plan(kWithCdi).error().message(), HasSubstr(kPath));
}

TEST(EngineConfigChange, ATemplateOfOursThatSomeoneRewroteIsLeftToThem) {
  const Target ours{.path = "/t", .format = FileFormat::kText, .after = "a\nb\n"};
  EXPECT_EQ(*Revert(ours, "a\nb\n"), std::nullopt);
  EXPECT_THAT(
      Revert(ours, "a\nb\nc\n").error().message(),
      HasSubstr("/t was changed in the lines that Penstock wrote: remove its additions manually"));
}

TEST(EngineConfigChange, WhatTheEngineSaysMustBeWhatWasDesiredAndNothingElse) {
  const EngineConfigChange change{.effective = {{{"a", "on"}, Flag(true)}},
                                  .may_change = {{"a", "on"}}};
  EXPECT_TRUE(CheckEffect(change, "b = 1\n[a]\non = false\n", "b = 1\n[a]\non = true\n").ok());
  EXPECT_THAT(CheckEffect(change, "", "[a]\non = false\n").error().message(),
              HasSubstr("a.on would be false, not true"));
  EXPECT_THAT(CheckEffect(change, "b = 1\n", "b = 2\n[a]\non = true\n").error().message(),
              HasSubstr("would change b as well"));
  EXPECT_THAT(CheckEffect(change, "b = true\n", "b = false\n[a]\non = true\n").error().message(),
              HasSubstr("would change b as well"));
  EXPECT_TRUE(SameEffect("imports = ['x']\na = 1\nb = ''", "a = 1\n[c]"));
  EXPECT_FALSE(SameEffect("a = 2", "a = 1"));
}

// Whatever an administrator adds, removing our changes leaves exactly that.
TEST(EngineConfigChange, AnyEditsOfOthersAreKept) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    ChangedMachine machine;
    machine.Do(kWithCdi);
    const auto lines = Lines(machine.text());
    std::string edited, added;
    for (const std::string_view line : lines) {
      edited += line;
      if (random() % 8 != 0 || line.find('=') == std::string_view::npos) continue;
      edited += "  k" + std::to_string(edited.size()) + " = 1\n";
    }
    machine.text() = edited;
    const auto reverted = MakeChange(machine.facts, machine.disk, machine.record, {});
    ASSERT_TRUE(reverted.ok()) << edited << reverted.error().message();
    ASSERT_EQ(reverted->files.size(), 1u);
    Tree wanted = ToTree(*Read(FileFormat::kToml, edited, "")),
         first = ToTree(*Read(FileFormat::kToml, kFirst, ""));
    for (const Difference& difference :
         Compare(wanted, ToTree(*Read(FileFormat::kToml, *reverted->files[0].to, "")))) {
      const auto was = first.find(difference.path);
      ASSERT_EQ(difference.after, was == first.end() ? "" : was->second)
          << Dotted(difference.path) << "\n"
          << edited;
      ASSERT_EQ(Dotted(difference.path).find(".k"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace penstock::protocol::engine
