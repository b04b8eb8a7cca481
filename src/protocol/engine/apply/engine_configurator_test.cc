#include "protocol/engine/apply/engine_configurator.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <mutex>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/testing/must.h"
#include "os/core/file.h"
#include "os/testing/eventually.h"
#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"
#include "protocol/engine/apply/journal.h"
#include "protocol/engine/config_files.h"
#include "protocol/engine/install_files.h"

namespace penstock::protocol::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr char kMainConfig[] = "version = 3\n[debug]\nlevel = \"info\"\n";
const DesiredConfig kHandlers = {.handlers = {{"nvidia", "/opt/penstock/penstock-runtime"}}};

/// A containerd 2.1 that reports its version and the contents of its drop-in; two files change: the
/// main one and the drop-in.
class Machine {
 public:
  Machine() {
    folder_.Write("etc/config.toml", kMainConfig);
    const std::string drop_in = folder_ / "etc/conf.d/99-penstock.toml";
    folder_.Write("containerd",
                  "#!/bin/sh\n[ \"$1\" = --version ] && echo containerd v2.1.0 && exit\ncat " +
                      drop_in + " 2>/dev/null || echo 'version = 3'\n");
    std::filesystem::permissions(folder_ / "containerd", std::filesystem::perms::owner_all);
    install.config = folder_ / "etc/config.toml";
    install.drop_in = folder_ / "etc/conf.d/99-penstock.toml";
    install.socket = folder_ / "none.sock";
    install.program = folder_ / "containerd";
    install.style = ConfigStyle::kPlain;
    options.desired = kHandlers;
    options.state_dir = folder_ / "state";
  }

  base::Result<ConfigureResult> Run() { return Configure(install, options, nullptr); }
  std::string Main() const { return *os::ReadFile(install.config); }
  bool HasDropIn() const { return os::Exists(install.drop_in); }
  std::string journal() const { return JournalPath(install, options.state_dir); }
  /// Compares the engine's files with its journal.
  Standing StandingNow() const {
    const Journal read = *LoadJournal(journal());
    Disk disk;
    for (const Target& file : read.record.files)
      if (auto text = os::ReadFile(file.path); text.ok()) disk[file.path] = *std::move(text);
    return FindStanding(disk, read.record).standing;
  }

  EngineInstall install = *RecipeOf("containerd");
  ConfigureOptions options;
  os::TemporaryFolder folder_;
};

TEST(EngineConfigurator, WritesRemembersAndUndoes) {
  Machine machine;
  EXPECT_EQ(machine.StandingNow(), Standing::kNone);
  const auto done = Must(machine.Run());
  EXPECT_EQ(done.change.files.size(), 2u);
  EXPECT_THAT(done.remarks, ElementsAre("containerd is not running; it reads it when it starts"));
  EXPECT_TRUE(machine.HasDropIn());
  EXPECT_EQ(machine.StandingNow(), Standing::kAsWritten);
  struct stat status {};
  ASSERT_EQ(::stat(machine.journal().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_THAT(machine.Run()->change.files, IsEmpty());
  ASSERT_EQ(ConfiguredInstalls(machine.options.state_dir)->size(), 1u);
  EXPECT_EQ(ConfiguredInstalls(machine.options.state_dir)->front().config, machine.install.config);
  machine.options.desired = {};
  ASSERT_TRUE(machine.Run().ok());
  EXPECT_EQ(machine.Main(), kMainConfig);
  EXPECT_FALSE(machine.HasDropIn());
  EXPECT_FALSE(os::Exists(machine.journal()));
}

TEST(EngineConfigurator, AnEarlierRequestStaysBesideANewOne) {
  Machine machine;
  ASSERT_TRUE(machine.Run().ok());
  machine.options.desired = {.handlers = {{"amd", "/opt/amd"}}};
  machine.options.beside = true;
  ASSERT_TRUE(machine.Run().ok());
  const std::string text = *os::ReadFile(machine.install.drop_in);
  EXPECT_THAT(text, HasSubstr("/opt/penstock/penstock-runtime"));
  EXPECT_THAT(text, HasSubstr("/opt/amd"));
  machine.options.beside = false;
  ASSERT_TRUE(machine.Run().ok());
  EXPECT_THAT(*os::ReadFile(machine.install.drop_in), testing::Not(HasSubstr("nvidia")));
}

TEST(EngineConfigurator, WhatOthersChangedIsLeftToThemWhereThatIsAskedFor) {
  Machine machine;
  ASSERT_TRUE(machine.Run().ok());
  ASSERT_TRUE(os::WriteFileAtomically(machine.install.drop_in, "version = 3\n").ok());
  EXPECT_EQ(machine.StandingNow(), Standing::kChanged);
  machine.options.respect = true;
  EXPECT_THAT(machine.Run().error().message(),
              HasSubstr("the settings that Penstock wrote were changed"));
  machine.options.respect = false;
  const auto done = Must(machine.Run());
  EXPECT_THAT(done.remarks, testing::Contains(HasSubstr("changed since Penstock wrote it: ")));
  EXPECT_EQ(machine.StandingNow(), Standing::kAsWritten);
}

// Whichever files a killed run has written, the next run starts from the old ones; after the
// restart was requested, it continues with the new ones.
TEST(EngineConfigurator, ARunThatWasKilledIsRepairedWhateverItHadWritten) {
  for (const Phase phase : {Phase::kWriting, Phase::kRestarting, Phase::kReturning})
    for (std::size_t written = 0; written <= 2; ++written) {
      Machine machine;
      machine.options.dry_run = true;
      const auto planned = Must(machine.Run());
      machine.options.dry_run = false;
      if (phase == Phase::kRestarting && written < 2) continue;
      const std::vector<FileChange> files = planned.change.files;
      const auto disk = ConfigFiles::Open("/");
      ASSERT_TRUE(
          WriteAll(*disk, {files.begin(), files.begin() + static_cast<std::ptrdiff_t>(written)})
              .ok());
      ASSERT_TRUE(SaveJournal(machine.journal(),
                              {.phase = phase, .next = planned.change.record, .files = files})
                      .ok());
      Machine& other = machine;
      other.options.desired = {};
      const auto done = Must(other.Run());
      EXPECT_EQ(other.Main(), kMainConfig);
      EXPECT_FALSE(other.HasDropIn());
      EXPECT_FALSE(os::Exists(other.journal()));
    }
}

TEST(EngineConfigurator, WhatSomeoneWroteMeanwhileStays) {
  Machine machine;
  const std::vector<FileChange> files = {{machine.install.config, kMainConfig, "version = 3\n"}};
  ASSERT_TRUE(SaveJournal(machine.journal(), {.phase = Phase::kWriting, .files = files}).ok());
  ASSERT_TRUE(os::WriteFileAtomically(machine.install.config, "version = 3\n# mine\n").ok());
  const auto done = Must(machine.Run());
  EXPECT_THAT(done.remarks, testing::Contains(HasSubstr(
                                "was changed by another process meanwhile and is left as it is")));
  EXPECT_THAT(machine.Main(), HasSubstr("# mine\n"));
}

TEST(EngineConfigurator, AFileThatCannotBeWrittenLeavesNothingBehind) {
  Machine machine;
  machine.install.drop_in = machine.folder_ / "etc/config.toml/x.toml";  // below a file
  EXPECT_THAT(machine.Run().error().message(), HasSubstr("etc/config.toml"));
  EXPECT_EQ(machine.Main(), kMainConfig);
  EXPECT_FALSE(os::Exists(machine.journal()));
}

TEST(EngineConfigurator, ADamagedMemoryIsNoLicenceToGuess) {
  Machine machine;
  ASSERT_TRUE(os::MakeDirectories(machine.options.state_dir + "/engines").ok());
  ASSERT_TRUE(
      os::WriteFileAtomically(machine.journal(), "{\"version\": 1, \"phase\": \"dancing\"}").ok());
  EXPECT_THAT(machine.Run().error().message(),
              HasSubstr("Penstock's record of this engine is damaged"));
  ASSERT_TRUE(os::WriteFileAtomically(machine.journal(), "{\"version\": 2}").ok());
  EXPECT_THAT(machine.Run().error().message(), HasSubstr("newer Penstock"));
  EXPECT_EQ(machine.Main(), kMainConfig);
}

TEST(EngineConfigurator, AnEngineThatCannotBeAskedIsDecidedByItsFilesUnlessItMustBe) {
  Machine machine;
  machine.install.program = machine.folder_ / "nowhere";
  machine.options.source = Source::kCommand;
  EXPECT_THAT(machine.Run().error().message(),
              HasSubstr("pass --executable-path, or --config-source file"));
  machine.options.source = Source::kAuto;
  const auto done = Must(machine.Run());
  EXPECT_THAT(done.remarks, testing::Contains(HasSubstr("only its files were read")));
  EXPECT_FALSE(machine.HasDropIn()) << "it is unknown whether that containerd merges tables";
  EXPECT_THAT(machine.Main(), HasSubstr("runtimes.nvidia"));
}

/// A process that listens at a socket, and a supervisor that starts it again whenever it ends.
class SupervisedEngine {
 public:
  enum class AtSignal { kEnds, kStays };

  /// It does not start while `refused` exists. An engine that stays at SIGHUP creates the file
  /// `signalled`.
  SupervisedEngine(const std::string& socket, AtSignal at_signal, const std::string& refused,
                   std::string signalled)
      : socket_(socket), signalled_(std::move(signalled)) {
    supervisor_ = ::fork();
    if (supervisor_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) {
        const pid_t engine = ::fork();
        if (engine == 0) Serve(at_signal, refused);
        ::waitpid(engine, nullptr, 0);
        ::usleep(10'000);
      }
    }
    WaitUntilItListens();
  }
  ~SupervisedEngine() {
    ::kill(supervisor_, SIGKILL);
    ::waitpid(supervisor_, nullptr, 0);
  }
  SupervisedEngine(const SupervisedEngine&) = delete;
  SupervisedEngine& operator=(const SupervisedEngine&) = delete;

  /// 0: it does not listen.
  pid_t Pid() const { return ListenerOf("/proc", socket_).value_or(0); }
  bool IsSignalled() const { return os::Exists(signalled_); }
  void WaitUntilItListens() const {
    EXPECT_TRUE(os::Eventually([this] { return Pid() > 0; }));
  }

 private:
  [[noreturn]] void Serve(AtSignal at_signal, const std::string& refused) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (os::Exists(refused)) ::_exit(1);
    sigset_t hang_up;
    ::sigemptyset(&hang_up);
    ::sigaddset(&hang_up, SIGHUP);
    ::sigprocmask(at_signal == AtSignal::kStays ? SIG_BLOCK : SIG_UNBLOCK, &hang_up, nullptr);
    ::unlink(socket_.c_str());
    const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(listener, 100) != 0)
      ::_exit(2);
    if (at_signal == AtSignal::kStays)
      for (int signal = 0; ::sigwait(&hang_up, &signal) == 0;)
        ::close(::creat(signalled_.c_str(), 0600));
    for (;;) ::close(::accept(listener, nullptr, nullptr));
  }

  const std::string socket_, signalled_;
  pid_t supervisor_ = 0;
};

class ConfiguringBySignal : public testing::Test {
 protected:
  ConfiguringBySignal() {
    machine_.install.socket = machine_.folder_ / "engine.sock";
    machine_.options.restart = Restart::kSignal;
  }
  SupervisedEngine Start(SupervisedEngine::AtSignal at_signal,
                         const std::string& refused = "/nowhere/refused") {
    return SupervisedEngine(machine_.install.socket, at_signal, refused,
                            machine_.folder_ / "signalled");
  }

  Machine machine_;
};

TEST_F(ConfiguringBySignal, ContainerdEndsAndIsWaitedForUntilAnotherProcessListens) {
  const auto engine = Start(SupervisedEngine::AtSignal::kEnds);
  const pid_t before = engine.Pid();
  const auto done = Must(machine_.Run());
  EXPECT_TRUE(done.restarted);
  EXPECT_TRUE(machine_.HasDropIn());
  EXPECT_EQ(machine_.StandingNow(), Standing::kAsWritten);
  engine.WaitUntilItListens();
  EXPECT_NE(engine.Pid(), before);
}

TEST_F(ConfiguringBySignal, DockerReadsItsFileAgainAndStays) {
  const std::string socket = machine_.install.socket;
  machine_.install = *RecipeOf("docker");
  machine_.install.socket = socket;
  machine_.install.config = machine_.folder_ / "daemon.json";
  machine_.install.program = machine_.folder_ / "dockerd";
  machine_.folder_.Write("dockerd",
                         "#!/bin/sh\n[ \"$1\" != --version ] || echo Docker version 27.5.1\n");
  std::filesystem::permissions(machine_.install.program, std::filesystem::perms::owner_all);
  const auto engine = Start(SupervisedEngine::AtSignal::kStays);
  const pid_t before = engine.Pid();
  const auto done = Must(machine_.Run());
  EXPECT_TRUE(done.restarted);
  EXPECT_THAT(*os::ReadFile(machine_.install.config), HasSubstr("penstock-runtime"));
  EXPECT_TRUE(os::Eventually([&engine] { return engine.IsSignalled(); }));
  EXPECT_EQ(engine.Pid(), before);
}

TEST_F(ConfiguringBySignal, AnEngineThatDoesNotComeBackIsStartedWithItsOldFilesByWhoeverWatchesIt) {
  const auto engine = Start(SupervisedEngine::AtSignal::kEnds, machine_.install.drop_in);
  os::TurnedLoop time("engine");
  time.Start();
  std::mutex mutex;  // guards `said` and `result`
  std::vector<std::string> said;
  std::optional<base::Result<ConfigureResult>> result;
  const auto is_said = [&](const std::string& what) {
    const std::scoped_lock lock(mutex);
    return !said.empty() && said.back() == what;
  };
  std::unique_ptr<EngineConfigurator> run;
  time.Run([&] {
    const auto progress = [&](const std::string& what) {
      const std::scoped_lock lock(mutex);
      said.push_back(what);
    };
    run =
        std::make_unique<EngineConfigurator>(time.loop(), machine_.install, machine_.options,
                                             progress, [&](base::Result<ConfigureResult> outcome) {
                                               const std::scoped_lock lock(mutex);
                                               result = std::move(outcome);
                                             });
  });
  // The clock stands still while programs run, because they have deadlines.
  ASSERT_TRUE(os::Eventually([&] { return is_said("containerd is restarting"); }));
  ASSERT_TRUE(os::Eventually([&] { return engine.Pid() == 0; }));
  time.Advance(machine_.options.patience - 1s);
  EXPECT_TRUE(is_said("containerd is restarting")) << "the deadline has not passed";
  EXPECT_TRUE(machine_.HasDropIn());
  time.Advance(2s);
  EXPECT_EQ(machine_.Main(), kMainConfig);
  EXPECT_FALSE(machine_.HasDropIn());
  engine.WaitUntilItListens();
  EXPECT_TRUE(time.AdvanceUntil(20ms, [&] {
    const std::scoped_lock lock(mutex);
    return result.has_value();
  }));
  time.Run([&] { run.reset(); });
  ASSERT_FALSE(result->ok());
  EXPECT_EQ(result->error().code(), base::Code::kAborted);
  EXPECT_THAT(result->error().message(),
              HasSubstr("containerd did not return within 2m: no process listens at " +
                        machine_.install.socket + "; the old configuration is in force again"));
  EXPECT_FALSE(os::Exists(machine_.journal()));
}

TEST_F(ConfiguringBySignal, NothingIsChangedWhereItCannotBeSeenWhoIsToGetTheSignal) {
  const auto engine = Start(SupervisedEngine::AtSignal::kStays);
  machine_.options.proc_root = machine_.folder_ / "proc";  // as from another pid namespace
  EXPECT_EQ(machine_.Run().error().message(),
            "the process to signal for containerd cannot be determined: pass --restart-mode none; "
            "nothing was changed");
  EXPECT_EQ(machine_.Main(), kMainConfig);
  EXPECT_FALSE(machine_.HasDropIn());
  EXPECT_FALSE(os::Exists(machine_.journal()));
  EXPECT_FALSE(engine.IsSignalled());
}

TEST_F(ConfiguringBySignal, NothingIsChangedWhereNoUnitIsKnownThatCouldStartAgain) {
  const auto engine = Start(SupervisedEngine::AtSignal::kStays);
  machine_.options.restart = Restart::kSystemd;
  machine_.install.unit = "";
  EXPECT_EQ(
      machine_.Run().error().message(),
      "no systemd unit of containerd is known: pass --restart-mode none; nothing was changed");
  EXPECT_EQ(machine_.Main(), kMainConfig);
  EXPECT_FALSE(os::Exists(machine_.journal()));
}

TEST(Journal, IsReadAsItWasWritten) {
  const Target file{
      .path = "/a",
      .format = FileFormat::kJson,
      .before = "x\n\"",
      .after = "y",
      .settings = {{{"k", "l"}, Texts({"p", "q"})}, {{"m"}, Flag(false)}, {{"n"}, Text("1")}}};
  const Journal journal{
      .install = {.name = "docker", .config = "/c", .socket = "/s"},
      .phase = Phase::kReturning,
      .record = {{.cdi = true, .handlers = {{"n", "/p"}}, .default_handler = "n"}, {file}},
      .files = {{"/a", std::nullopt, "t"}},
      .engine = {12, 34}};
  const auto read = Must(DecodeJournal(Encode(journal), "f"));
  EXPECT_EQ(Encode(read), Encode(journal));
  EXPECT_EQ(read.install, journal.install);
  EXPECT_EQ(read.record.desired, journal.record.desired);
  EXPECT_EQ(read.files, journal.files);
  EXPECT_EQ(read.engine, journal.engine);
  EXPECT_EQ(Spell(read.record.files[0].settings[0].value), "[\"p\", \"q\"]");
  EXPECT_EQ(read.record.files[0].settings[2].value.kind, base::Value::Kind::kString);
}

/// A docker of a given version without a check command, and the initially empty folders of its
/// PATH.
class Docker {
 public:
  explicit Docker(const std::string& version) {
    folder_.Write("dockerd", "#!/bin/sh\n[ \"$1\" = --version ] && echo Docker version " + version +
                                 ", build x\ntrue\n");
    std::filesystem::permissions(folder_ / "dockerd", std::filesystem::perms::owner_all);
    folder_.Write("own/penstock-hook", "");
    for (const char* folder : {"root/usr/local/bin", "root/usr/bin", "root/own", "root/etc/docker"})
      std::filesystem::create_directories(folder_ / folder);
    folder_.Write("root/own/penstock-hook", "");
    install.root = folder_ / "root";
    install.socket = folder_ / "none.sock";
    install.program = folder_ / "dockerd";
    options.desired = {.handlers = {{"nvidia", "/own/penstock-runtime"}}};
    options.links = DesiredLinks{.program = "/own/penstock-hook"};
    options.state_dir = folder_ / "state";
    options.beside = true;
  }

  base::Result<ConfigureResult> Run() { return Configure(install, options, nullptr); }
  base::Result<ConfigureResult> Undo() {
    options.desired = {};
    options.links.reset();
    options.beside = false;
    return Run();
  }
  std::string At(const std::string& name) const { return folder_ / ("root/usr/local/bin/" + name); }
  std::string LinkAt(const std::string& name) const { return os::ReadLink(At(name)).value_or(""); }

  EngineInstall install = *RecipeOf("docker");
  ConfigureOptions options;
  os::TemporaryFolder folder_;
};

TEST(Links, OlderDockersGetBothNamesAndUndoingTakesThemBack) {
  Docker docker("20.10.24+dfsg1");
  docker.options.dry_run = true;
  const auto planned = Must(docker.Run());
  EXPECT_THAT(planned.diff, HasSubstr("+link to /own/penstock-hook"));
  EXPECT_EQ(docker.LinkAt("nvidia-container-runtime-hook"), "");
  docker.options.dry_run = false;
  ASSERT_TRUE(docker.Run().ok());
  EXPECT_EQ(docker.LinkAt("nvidia-container-runtime-hook"), "/own/penstock-hook");
  EXPECT_EQ(docker.LinkAt("nvidia-cdi-hook"), "/own/penstock-hook");
  EXPECT_THAT(docker.Run()->linked, IsEmpty());
  const auto undone = Must(docker.Undo());
  EXPECT_EQ(undone.unlinked.size(), 2u);
  EXPECT_EQ(docker.LinkAt("nvidia-container-runtime-hook"), "");
  EXPECT_THAT(*os::ListDirectory(docker.options.state_dir + "/engines"), ElementsAre("lock"));
}

TEST(Links, ANewerDockerNeedsOneOfThemAndLosesTheOther) {
  Docker docker("20.10.24");
  ASSERT_TRUE(docker.Run().ok());
  docker.folder_.Write(
      "dockerd",
      "#!/bin/sh\n[ \"$1\" = --version ] && echo Docker version 29.2.1, build x\ntrue\n");
  const auto done = Must(docker.Run());
  ASSERT_EQ(done.unlinked.size(), 1u);
  EXPECT_EQ(docker.LinkAt("nvidia-container-runtime-hook"), "");
  EXPECT_EQ(docker.LinkAt("nvidia-cdi-hook"), "/own/penstock-hook");
}

TEST(Links, LinksAloneAreRememberedToo) {
  Docker docker("29.2.1");
  docker.options.desired = {.cdi = true};
  const auto done = Must(docker.Run());
  EXPECT_THAT(done.change.files, IsEmpty());
  EXPECT_EQ(ConfiguredInstalls(docker.options.state_dir)->size(), 1u);
  ASSERT_TRUE(docker.Undo().ok());
  EXPECT_EQ(docker.LinkAt("nvidia-cdi-hook"), "");
  EXPECT_EQ(ConfiguredInstalls(docker.options.state_dir)->size(), 0u);
}

TEST(Links, WhatOthersHaveThereStays) {
  Docker docker("20.10.24");
  docker.folder_.Write("root/usr/bin/nvidia-container-runtime-hook", "NVIDIA's");
  docker.folder_.Link("root/usr/local/bin/nvidia-cdi-hook", "/gone");
  const auto done = Must(docker.Run());
  EXPECT_THAT(done.linked, IsEmpty());
  EXPECT_THAT(done.remarks,
              testing::Contains(
                  HasSubstr("/usr/bin/nvidia-container-runtime-hook already exists and is kept")));
  EXPECT_THAT(
      done.remarks,
      testing::Contains(HasSubstr("/usr/local/bin/nvidia-cdi-hook already exists and is kept")));
  ASSERT_TRUE(docker.Undo().ok());
  EXPECT_EQ(docker.LinkAt("nvidia-cdi-hook"), "/gone");
  EXPECT_EQ(*os::ReadFile(docker.folder_ / "root/usr/bin/nvidia-container-runtime-hook"),
            "NVIDIA's");
}

TEST(Links, OneThatSomeoneLedElsewhereMeanwhileStays) {
  Docker docker("20.10.24");
  ASSERT_TRUE(docker.Run().ok());
  std::filesystem::remove(docker.At("nvidia-cdi-hook"));
  docker.folder_.Link("root/usr/local/bin/nvidia-cdi-hook", "/usr/bin/theirs");
  ASSERT_TRUE(docker.Undo().ok());
  EXPECT_EQ(docker.LinkAt("nvidia-cdi-hook"), "/usr/bin/theirs");
  EXPECT_EQ(docker.LinkAt("nvidia-container-runtime-hook"), "");
}

TEST(Links, ARefusedConfigurationTakesThemBack) {
  Docker docker("24.0.7");
  docker.folder_.Write("dockerd",
                       "#!/bin/sh\n[ \"$1\" = --version ] && echo Docker version 24.0.7 && "
                       "exit\necho no >&2; exit 1\n");
  EXPECT_THAT(docker.Run().error().message(), HasSubstr("nothing was changed"));
  EXPECT_EQ(docker.LinkAt("nvidia-container-runtime-hook"), "");
  EXPECT_FALSE(os::Exists(docker.folder_ / "root/etc/docker/daemon.json"));
  EXPECT_THAT(*os::ListDirectory(docker.options.state_dir + "/engines"), ElementsAre("lock"));
}

TEST(Links, WhatARunThatWasKilledHadMadeIsFound) {
  Docker docker("20.10.24");
  std::filesystem::create_directories(docker.options.state_dir + "/engines");
  ASSERT_TRUE(SaveLinks(LinksPath(JournalPath(docker.install, docker.options.state_dir)),
                        {{"/usr/local/bin/nvidia-cdi-hook", "/own/penstock-hook"},
                         {"/usr/local/bin/never-made", "/own/penstock-hook"}})
                  .ok());
  docker.folder_.Link("root/usr/local/bin/nvidia-cdi-hook", "/own/penstock-hook");
  ASSERT_TRUE(docker.Undo().ok());
  EXPECT_EQ(docker.LinkAt("nvidia-cdi-hook"), "");
  EXPECT_THAT(*os::ListDirectory(docker.options.state_dir + "/engines"), ElementsAre("lock"));
}

TEST(Links, AnAgentThatConfiguresAfterwardsLeavesThem) {
  Docker docker("25.0.1");
  ASSERT_TRUE(docker.Run().ok());
  docker.options.links.reset();
  docker.options.respect = true;
  docker.options.desired = {.cdi = true};
  ASSERT_TRUE(docker.Run().ok());
  EXPECT_EQ(docker.LinkAt("nvidia-container-runtime-hook"), "/own/penstock-hook");
}

TEST(Links, NoneAreMadeWhereTheyWouldHelpNoOne) {
  Docker docker("20.10.24");
  docker.options.links->program = "/gone/penstock-hook";
  EXPECT_THAT(docker.Run()->remarks,
              testing::Contains(HasSubstr("/gone/penstock-hook does not exist")));
  docker.options.links->program = "/own/penstock-hook";
  docker.folder_.Write("root/usr/bin/amd-container-runtime", "");
  EXPECT_THAT(docker.Run()->remarks,
              testing::Contains(HasSubstr("uses AMD's devices for `--gpus`")));
  EXPECT_EQ(docker.LinkAt("nvidia-cdi-hook"), "");
}

TEST(Links, LieOnThePathOfTheDaemonWhereThatCanBeSeen) {
  const DesiredLinks desired{.program = "/own/penstock-hook", .folder = "/opt/bin"};
  const auto look = [](const std::string& path) {
    return LinkOccupant{path == "/own/penstock-hook", std::nullopt};
  };
  EXPECT_THAT(PlanLinks(desired, {kCdiHook}, {"/usr/bin"}, {}, look).remarks,
              ElementsAre(HasSubstr("/opt/bin is not on dockerd's PATH")));
  EXPECT_THAT(PlanLinks(desired, {kCdiHook}, {"/usr/bin", "/opt/bin"}, {}, look).wanted,
              ElementsAre(GpusLink{"/opt/bin/nvidia-cdi-hook", "/own/penstock-hook"}));
  EXPECT_THAT(PlanLinks(desired, {kCdiHook}, {}, {}, look).wanted,
              ElementsAre(GpusLink{"/opt/bin/nvidia-cdi-hook", "/own/penstock-hook"}));
  const os::TemporaryFolder proc;
  proc.Write("77/environ", std::string("A=b\0PATH=/usr/bin::bin:/opt/bin\0C=d", 35));
  EXPECT_THAT(SearchPath(proc.path(), 77), ElementsAre("/usr/bin", "/opt/bin"));
  EXPECT_THAT(SearchPath(proc.path(), 78), IsEmpty());
  EXPECT_THAT(SearchPath(proc.path(), 1), IsEmpty());
}

TEST(Links, ADamagedMemoryIsNoLicenceToGuess) {
  const os::TemporaryFolder folder;
  folder.Write("docker.links", "{\"version\": 1, \"links\": [{\"path\": 3}]}");
  EXPECT_THAT(LoadLinks(folder / "docker.links").error().message(),
              HasSubstr("remove the links to penstock-hook manually"));
  folder.Write("docker.links", "{\"version\": 2}");
  EXPECT_THAT(LoadLinks(folder / "docker.links").error().message(), HasSubstr("newer Penstock"));
}

TEST(ConfigFiles, KeepLinksAndModes) {
  const os::TemporaryFolder folder;
  folder.Write("real/daemon.json", "{}");
  std::filesystem::permissions(folder / "real/daemon.json", std::filesystem::perms::owner_read);
  folder.Link("etc/daemon.json", "/real/daemon.json");  // absolute: resolved inside the root
  folder.Link("etc/dangling", "nowhere");
  const auto files = Must(ConfigFiles::Open(folder.path()));
  EXPECT_EQ(**files.Read("/etc/daemon.json"), "{}");
  ASSERT_TRUE(files.Write("/etc/daemon.json", "{\"a\": 1}").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "etc/daemon.json"));
  EXPECT_EQ(*os::ReadFile(folder / "real/daemon.json"), "{\"a\": 1}");
  EXPECT_EQ(std::filesystem::status(folder / "real/daemon.json").permissions(),
            std::filesystem::perms::owner_read);
  EXPECT_THAT(files.Write("/etc/dangling", "x").error().message(),
              HasSubstr("is a link to a file that does not exist"));
  ASSERT_TRUE(files.Write("/new/folder/x.toml", "y").ok());
  EXPECT_THAT(files.Match("/new/folder/*.toml"), ElementsAre("/new/folder/x.toml"));
  ASSERT_TRUE(files.Remove("/new/folder/x.toml").ok());
  EXPECT_EQ(*files.Read("/new/folder/x.toml"), std::nullopt);
  EXPECT_TRUE(files.Remove("/new/folder/x.toml").ok());
}

}  // namespace
}  // namespace penstock::protocol::engine
