#include "edge/engine/configuring.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "edge/engine/config_files.h"
#include "edge/engine/journal.h"
#include "edge/engine/site_files.h"
#include "os/core/file.h"
#include "os/temporary_folder.h"

namespace penstock::edge::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kMain[] = "version = 3\n[debug]\nlevel = \"info\"\n";
const Wish kWish = {.handlers = {{"nvidia", "/opt/penstock/penstock-runtime"}}};

/// A containerd 2.1 that says its version and what its drop-in says; two files change: the main one and that.
class Machine {
 public:
  Machine() {
    folder_.Write("etc/config.toml", kMain);
    const std::string drop_in = folder_ / "etc/conf.d/99-penstock.toml";
    folder_.Write("containerd", "#!/bin/sh\n[ \"$1\" = --version ] && echo containerd v2.1.0 && exit\ncat " + drop_in +
                                    " 2>/dev/null || echo 'version = 3'\n");
    std::filesystem::permissions(folder_ / "containerd", std::filesystem::perms::owner_all);
    site.config = folder_ / "etc/config.toml";
    site.drop_in = folder_ / "etc/conf.d/99-penstock.toml";
    site.socket = folder_ / "none.sock";
    site.program = folder_ / "containerd";
    site.manner = Manner::kPlain;
    options.wish = kWish;
    options.state_dir = folder_ / "state";
  }

  base::Result<Configured> Run() { return Configure(site, options, nullptr); }
  std::string Main() const { return *os::ReadFile(site.config); }
  bool HasDropIn() const { return os::Exists(site.drop_in); }
  std::string journal() const { return JournalPath(site, options.state_dir); }
  Standing StandingNow() const { return AskStanding(site, options.state_dir)->standing; }

  Site site = *RecipeOf("containerd");
  ConfigureOptions options;
  os::TemporaryFolder folder_;
};

TEST(Configuring, WritesRemembersAndUndoes) {
  Machine machine;
  EXPECT_EQ(machine.StandingNow(), Standing::kNone);
  const auto done = machine.Run();
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(done->change.files.size(), 2u);
  EXPECT_THAT(done->remarks, ElementsAre("containerd does not run now; it reads it when it starts"));
  EXPECT_TRUE(machine.HasDropIn());
  EXPECT_EQ(machine.StandingNow(), Standing::kAsOurs);
  struct stat status {};
  ASSERT_EQ(::stat(machine.journal().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_THAT(machine.Run()->change.files, IsEmpty());
  ASSERT_EQ(ConfiguredSites(machine.options.state_dir)->size(), 1u);
  EXPECT_EQ(ConfiguredSites(machine.options.state_dir)->front().config, machine.site.config);
  machine.options.wish = {};
  ASSERT_TRUE(machine.Run().ok());
  EXPECT_EQ(machine.Main(), kMain);
  EXPECT_FALSE(machine.HasDropIn());
  EXPECT_FALSE(os::Exists(machine.journal()));
}

TEST(Configuring, AnEarlierWishStaysBesideANewOne) {
  Machine machine;
  ASSERT_TRUE(machine.Run().ok());
  machine.options.wish = {.handlers = {{"amd", "/opt/amd"}}};
  machine.options.beside = true;
  ASSERT_TRUE(machine.Run().ok());
  const std::string text = *os::ReadFile(machine.site.drop_in);
  EXPECT_THAT(text, HasSubstr("/opt/penstock/penstock-runtime"));
  EXPECT_THAT(text, HasSubstr("/opt/amd"));
  machine.options.beside = false;
  ASSERT_TRUE(machine.Run().ok());
  EXPECT_THAT(*os::ReadFile(machine.site.drop_in), testing::Not(HasSubstr("nvidia")));
}

TEST(Configuring, WhatOthersChangedIsLeftToThemWhereThatIsAskedFor) {
  Machine machine;
  ASSERT_TRUE(machine.Run().ok());
  ASSERT_TRUE(os::WriteFileAtomically(machine.site.drop_in, "version = 3\n").ok());
  EXPECT_EQ(machine.StandingNow(), Standing::kChanged);
  machine.options.respect = true;
  EXPECT_THAT(machine.Run().error().message(), HasSubstr("somebody changed what Penstock wrote"));
  machine.options.respect = false;
  const auto done = machine.Run();
  ASSERT_TRUE(done.ok());
  EXPECT_THAT(done->remarks, testing::Contains(HasSubstr("changed since Penstock wrote it: ")));
  EXPECT_EQ(machine.StandingNow(), Standing::kAsOurs);
}

// Whichever files a killed run had written, the next one begins from the old ones; after the engine was told, it goes on with the new.
TEST(Configuring, ARunThatWasKilledIsRepairedWhateverItHadWritten) {
  for (const Phase phase : {Phase::kWriting, Phase::kRestarting, Phase::kReturning})
    for (std::size_t written = 0; written <= 2; ++written) {
      Machine machine;
      machine.options.dry_run = true;
      const auto planned = machine.Run();
      ASSERT_TRUE(planned.ok()) << planned.error().message();
      machine.options.dry_run = false;
      if (phase == Phase::kRestarting && written < 2) continue;
      const std::vector<FileChange> files = planned->change.files;
      const auto disk = ConfigFiles::Open("/");
      ASSERT_TRUE(WriteAll(*disk, {files.begin(), files.begin() + static_cast<std::ptrdiff_t>(written)}).ok());
      ASSERT_TRUE(SaveJournal(machine.journal(), {.phase = phase, .next = planned->change.record, .files = files}).ok());
      Machine& other = machine;
      other.options.wish = {};
      const auto done = other.Run();
      ASSERT_TRUE(done.ok()) << done.error().message();
      EXPECT_EQ(other.Main(), kMain);
      EXPECT_FALSE(other.HasDropIn());
      EXPECT_FALSE(os::Exists(other.journal()));
    }
}

TEST(Configuring, WhatSomebodyWroteMeanwhileStays) {
  Machine machine;
  const std::vector<FileChange> files = {{machine.site.config, kMain, "version = 3\n"}};
  ASSERT_TRUE(SaveJournal(machine.journal(), {.phase = Phase::kWriting, .files = files}).ok());
  ASSERT_TRUE(os::WriteFileAtomically(machine.site.config, "version = 3\n# mine\n").ok());
  const auto done = machine.Run();
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_THAT(done->remarks, testing::Contains(HasSubstr("was changed by somebody else meanwhile and stays as it is")));
  EXPECT_THAT(machine.Main(), HasSubstr("# mine\n"));
}

TEST(Configuring, AFileThatCannotBeWrittenLeavesNothingBehind) {
  Machine machine;
  machine.site.drop_in = machine.folder_ / "etc/config.toml/x.toml";  // below a file
  const auto done = machine.Run();
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().message(), HasSubstr("etc/config.toml"));
  EXPECT_EQ(machine.Main(), kMain);
  EXPECT_FALSE(os::Exists(machine.journal()));
}

TEST(Configuring, ADamagedMemoryIsNoLicenceToGuess) {
  Machine machine;
  ASSERT_TRUE(os::MakeDirectories(machine.options.state_dir + "/engines").ok());
  ASSERT_TRUE(os::WriteFileAtomically(machine.journal(), "{\"version\": 1, \"phase\": \"dancing\"}").ok());
  EXPECT_THAT(machine.Run().error().message(), HasSubstr("what Penstock remembers of this engine is damaged"));
  ASSERT_TRUE(os::WriteFileAtomically(machine.journal(), "{\"version\": 2}").ok());
  EXPECT_THAT(machine.Run().error().message(), HasSubstr("newer Penstock"));
  EXPECT_EQ(machine.Main(), kMain);
}

TEST(Configuring, AnEngineThatCannotBeAskedIsDecidedByItsFilesUnlessItMustBe) {
  Machine machine;
  machine.site.program = machine.folder_ / "nowhere";
  machine.options.source = Source::kCommand;
  EXPECT_THAT(machine.Run().error().message(), HasSubstr("say --executable-path, or --config-source file"));
  machine.options.source = Source::kAuto;
  const auto done = machine.Run();
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_THAT(done->remarks, testing::Contains(HasSubstr("its files decided alone")));
  EXPECT_FALSE(machine.HasDropIn()) << "nobody knows whether that containerd merges";
  EXPECT_THAT(machine.Main(), HasSubstr("runtimes.nvidia"));
}

TEST(Journal, IsReadAsItWasWritten) {
  const Target file{.path = "/a",
                    .format = Format::kJson,
                    .before = "x\n\"",
                    .after = "y",
                    .settings = {{{"k", "l"}, Texts({"p", "q"})}, {{"m"}, Flag(false)}, {{"n"}, Text("1")}}};
  const Journal journal{.site = {.name = "docker", .config = "/c", .socket = "/s"},
                        .phase = Phase::kReturning,
                        .record = {{.cdi = true, .handlers = {{"n", "/p"}}, .default_handler = "n"}, {file}},
                        .files = {{"/a", std::nullopt, "t"}},
                        .engine = {12, 34}};
  const auto read = DecodeJournal(Encode(journal), "f");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(Encode(*read), Encode(journal));
  EXPECT_EQ(read->site, journal.site);
  EXPECT_EQ(read->record.wish, journal.record.wish);
  EXPECT_EQ(read->files, journal.files);
  EXPECT_EQ(read->engine, journal.engine);
  EXPECT_EQ(Spell(read->record.files[0].settings[0].value), "[\"p\", \"q\"]");
  EXPECT_EQ(read->record.files[0].settings[2].value.kind, base::Value::Kind::kString);
}

TEST(ConfigFiles, KeepLinksAndModes) {
  const os::TemporaryFolder folder;
  folder.Write("real/daemon.json", "{}");
  std::filesystem::permissions(folder / "real/daemon.json", std::filesystem::perms::owner_read);
  folder.Link("etc/daemon.json", "/real/daemon.json");  // absolute: inside the root
  folder.Link("etc/dangling", "nowhere");
  const auto files = ConfigFiles::Open(folder.path());
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(**files->Read("/etc/daemon.json"), "{}");
  ASSERT_TRUE(files->Write("/etc/daemon.json", "{\"a\": 1}").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "etc/daemon.json"));
  EXPECT_EQ(*os::ReadFile(folder / "real/daemon.json"), "{\"a\": 1}");
  EXPECT_EQ(std::filesystem::status(folder / "real/daemon.json").permissions(), std::filesystem::perms::owner_read);
  EXPECT_THAT(files->Write("/etc/dangling", "x").error().message(), HasSubstr("is a link to a file that is not there"));
  ASSERT_TRUE(files->Write("/new/folder/x.toml", "y").ok());
  EXPECT_THAT(files->Match("/new/folder/*.toml"), ElementsAre("/new/folder/x.toml"));
  ASSERT_TRUE(files->Remove("/new/folder/x.toml").ok());
  EXPECT_EQ(*files->Read("/new/folder/x.toml"), std::nullopt);
  EXPECT_TRUE(files->Remove("/new/folder/x.toml").ok());
}

}  // namespace
}  // namespace penstock::edge::engine
