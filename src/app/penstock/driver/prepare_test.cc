// Tests with folders that look like those of a node.
#include "app/penstock/driver/prepare.h"

#include <atomic>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "backend/all.h"
#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"
#include "protocol/broker/server.h"

namespace penstock::app {
namespace {

using base::Code;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using namespace std::chrono_literals;

class PrepareDriverTest : public testing::Test {
 protected:
  PrepareDriverTest() {
    order_.machine = {.host_root = node_ / "host",
                      .run_root = node_ / "run",
                      .sysfs_root = node_ / "sys",
                      .proc_root = node_ / "proc",
                      .agent_dir = node_ / "no-agent"};
    order_.wanted.digest = "new";
    std::filesystem::create_directories(node_ / "host");
    std::filesystem::create_directories(node_ / "proc");
    for (const char* file : {"nvidia-driver.pid", "validations/.driver-ctr-ready"})
      Write("run/nvidia/" + std::string(file), "");
    Write("run/nvidia/nvidia-driver.state", "old\n");
  }

  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(node_ / file).parent_path());
    std::ofstream(node_ / file) << text;
  }
  bool Exists(const std::string& file) const { return std::filesystem::exists(node_ / file); }

  void Run(pid_t pid, const std::string& program, pid_t parent, const std::string& cgroup) {
    const std::string folder = "proc/" + std::to_string(pid);
    Write(folder + "/stat", std::to_string(pid) + " (" + program + ") S " + std::to_string(parent) +
                                " 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0");
    Write(folder + "/cmdline", program);
    Write(folder + "/cgroup", "0::" + cgroup + "\n");
  }
  void Open(pid_t pid, const std::string& file) {
    const std::string folder = node_ / ("proc/" + std::to_string(pid) + "/fd");
    std::filesystem::create_directories(folder);
    std::filesystem::create_symlink("/dev/" + file, folder + "/3");
  }

  void Load(const std::string& name, const std::vector<std::string>& users = {}, int used = 0) {
    for (const std::string& user : users)
      std::filesystem::create_directories(node_ / ("sys/module/" + name + "/holders/" + user));
    Write("sys/module/" + name + "/refcnt",
          std::to_string(used + static_cast<int>(users.size())) + "\n");
  }
  void LoadAll(int used = 0) {
    Load("nvidia", {"nvidia_uvm", "nvidia_modeset"}, used);
    Load("nvidia_uvm", {}, used);
    Load("nvidia_modeset", {"nvidia_drm"});
    Load("nvidia_drm");
  }
  /// As the kernel does.
  base::Status Unload(const std::string& name) {
    tried_.push_back(name);
    if (refused_ == name) return base::Error(Code::kUnavailable, "in use");
    std::filesystem::remove_all(node_ / ("sys/module/" + name));
    for (const auto& module : std::filesystem::directory_iterator(node_ / "sys/module")) {
      if (!std::filesystem::remove_all(module.path() / "holders" / name)) continue;
      int count = 0;
      std::ifstream(module.path() / "refcnt") >> count;
      std::ofstream(module.path() / "refcnt") << count - 1 << "\n";
    }
    return {};
  }

  base::Result<DriverPrepared> Prepare() {
    const device::Dialect* dialect = backend::FindDialect("nvidia");
    return PrepareDriver(*dialect, order_,
                         {.unload = [this](const std::string& name) { return Unload(name); },
                          .now = [this] { return now_; },
                          .sleep =
                              [this](base::Duration time) {
                                now_ += time;
                                ++slept_;
                                if (on_sleep_) on_sleep_();
                              },
                          .say = [this](const std::string& text) { said_.push_back(text); },
                          .await_safe_load = safe_load_});
  }

  os::TemporaryFolder node_;
  DriverPreparation order_;
  base::TimePoint now_{};
  std::atomic<int> slept_ = 0;
  std::string refused_;
  std::function<void()> on_sleep_;
  std::function<base::Status()> safe_load_;
  std::vector<std::string> tried_, said_;
};

TEST_F(PrepareDriverTest, UnloadsADriverAndRemovesTheFilesOfItsContainer) {
  LoadAll();
  const auto done = Prepare();
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_THAT(done->unloaded, ElementsAre("nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia"));
  for (const char* file :
       {"nvidia-driver.pid", "nvidia-driver.state", "validations/.driver-ctr-ready"})
    EXPECT_FALSE(Exists("run/nvidia/" + std::string(file))) << file;
  EXPECT_THAT(said_, Contains("no agent runs on this node"));
  const auto again = Prepare();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->preparation.kind, node::driver::PreparationKind::kClean);
  EXPECT_THAT(again->unloaded, IsEmpty());
}

TEST_F(PrepareDriverTest, KeepsTheWantedDriverAndWhatSaysThatItIsThere) {
  LoadAll(3);
  order_.wanted.digest = "old";
  const auto done = Prepare();
  ASSERT_TRUE(done.ok());
  EXPECT_THAT(tried_, IsEmpty());
  EXPECT_TRUE(Exists("run/nvidia/nvidia-driver.state"));
  EXPECT_TRUE(Exists("run/nvidia/validations/.driver-ctr-ready"));
}

TEST_F(PrepareDriverTest, UnloadsNothingAsLongAsTheDriverIsInUse) {
  LoadAll(1);
  std::filesystem::create_directories(node_ / "proc/4711/fd");
  std::filesystem::create_symlink("/dev/nvidia0", node_ / "proc/4711/fd/3");
  Write("proc/4711/stat", "4711 (python) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0");
  Write("proc/4711/status", "Uid:\t4321\t4321\t4321\t4321\n");
  Write("proc/4711/cmdline", std::string("/usr/bin/py\"th\x1bon\0--token=secret", 31));
  Write("proc/4711/cgroup",
        "0::/../../kubepods-pod0a1b2c3d_0000_1111_2222_333344445555.slice/cri-x.scope\n");
  std::filesystem::create_directories(
      node_ / "host/var/log/pods/ml_train-0_0a1b2c3d-0000-1111-2222-333344445555");
  const auto done = Prepare();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(done.error().message(), HasSubstr("process 4711 \"py?th?on\""));
  EXPECT_THAT(done.error().message(), HasSubstr("in pod ml/train-0 (/dev/nvidia0)"));
  EXPECT_THAT(done.error().message(), Not(HasSubstr("secret")));
  EXPECT_THAT(tried_, IsEmpty());
  EXPECT_GE(now_, base::TimePoint{} + 5min);
  EXPECT_LT(slept_, 100);
  EXPECT_TRUE(Exists("run/nvidia/nvidia-driver.state"));
}

/// This process is the agent.
class PrepareDriverBesideAnAgentTest : public PrepareDriverTest {
 protected:
  PrepareDriverBesideAnAgentTest() {
    order_.machine.agent_dir = node_ / "agent";
    loop_.Start();
    loop_.Run([this] {
      server_ = std::make_unique<protocol::broker::Server>(
          loop_.loop(), order_.machine.agent_dir, "no-such-group",
          [this](const std::shared_ptr<protocol::broker::Session>& session,
                 const protocol::broker::Request& request) {
            EXPECT_EQ(request.operation, protocol::broker::Operation::kRelease);
            released_at_ = slept_.load();
            session->Progress(protocol::broker::EncodeReleased({"nvidia", {}}));
          });
      EXPECT_TRUE(server_->Start().ok());
    });
    Run(::getpid(), "penstock-agent", 1, kAgentsGroup);
  }
  ~PrepareDriverBesideAnAgentTest() override {
    loop_.Run([this] { server_.reset(); });
    loop_.Stop();
  }

  static constexpr char kAgentsGroup[] = "/kubepods/pod1", kPodsGroup[] = "/kubepods/pod2";
  os::TurnedLoop loop_{"agent"};
  std::unique_ptr<protocol::broker::Server> server_;
  std::atomic<int> released_at_ = -1;  // so many pauses were made before
};

TEST_F(PrepareDriverBesideAnAgentTest, LeavesItsDevicesUsableAsLongAsOthersUseThem) {
  LoadAll(2);
  Run(4711, "python", 1, kPodsGroup);
  Open(4711, "nvidia0");
  Run(11, "penstock-worker", ::getpid(), kAgentsGroup);
  Open(11, "nvidiactl");
  on_sleep_ = [this] {
    if (slept_ == 5) std::filesystem::remove_all(node_ / "proc/4711");
    if (slept_ == 7) LoadAll();
  };
  const auto done = Prepare();
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(released_at_, 5);
  EXPECT_THAT(done->unloaded, SizeIs(4));
}

TEST_F(PrepareDriverBesideAnAgentTest, IsNotAskedInVain) {
  LoadAll(1);
  std::filesystem::create_directories(node_ / "host/var/log/pods/team_train_2");
  Run(4711, "python", 1, kPodsGroup);
  Open(4711, "nvidia0");
  const auto done = Prepare();
  EXPECT_THAT(done.error().message(), HasSubstr("process 4711"));
  EXPECT_THAT(done.error().message(),
              HasSubstr("annotate the node nvidia.com/gpu-driver-upgrade-requested=true"));
  EXPECT_EQ(released_at_, -1);
  std::filesystem::remove_all(node_ / "proc/4711");
  Load("nvidia", {"nvidia_uvm", "nvidia_modeset", "other"});
  Load("other");
  const auto foreign = Prepare();
  EXPECT_THAT(foreign.error().message(), HasSubstr("modules of other programs use it"));
  EXPECT_THAT(foreign.error().message(), Not(HasSubstr("annotate")));
  EXPECT_EQ(released_at_, -1);
}

TEST_F(PrepareDriverBesideAnAgentTest, KnowsTheAgentsOwnProcesses) {
  using namespace std::string_literals;
  struct {
    const char* name;
    std::function<void()> run;
    bool own;
  } const cases[] = {
      {"a process of its worker",
       [this] {
         Run(10, "penstock-worker", ::getpid(), kAgentsGroup);
         Run(11, "nvidia-smi", 10, "/elsewhere");
       },
       true},
      {"a worker that an agent before it has left", [this] { Run(11, "x", 1, kAgentsGroup); },
       true},
      {"the daemon of a sharing server",
       [this] {
         Run(11, "nvidia-cuda-mps-control", 1, "/penstock-mps");
         Write("proc/11/environ", "PENSTOCK_MPS_FOLDER=/run/nvidia/mps/gpu\0"s);
         Write("bin/nvidia-cuda-mps-control", "");
         std::filesystem::create_symlink(node_ / "bin/nvidia-cuda-mps-control",
                                         node_ / "proc/11/exe");
       },
       true},
      {"a process of the machine", [this] { Run(11, "penstock-worker", 1, "/"); }, false},
      {"one of another pod", [this] { Run(11, "penstock-worker", 1, kPodsGroup); }, false},
  };
  std::filesystem::create_directories(node_ / "host/var/log/pods/gpu-operator_agent_1");
  std::filesystem::create_directories(node_ / "host/var/log/pods/team_train_2");
  for (const auto& one : cases) {
    LoadAll(1);
    one.run();
    Open(11, "nvidiactl");
    released_at_ = -1;
    EXPECT_FALSE(Prepare().ok()) << one.name;
    EXPECT_EQ(released_at_ != -1, one.own) << one.name;
    std::filesystem::remove_all(node_ / "proc/11");
  }
}

TEST_F(PrepareDriverTest, GoesOnWhenTheDriverIsNoLongerInUse) {
  LoadAll(1);
  on_sleep_ = [this] {
    if (slept_ == 5) LoadAll();
  };
  const auto done = Prepare();
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_THAT(done->unloaded.size(), 4u);
  EXPECT_THAT(said_, Contains(HasSubstr("no process has a device file open")));
}

TEST_F(PrepareDriverTest, ContinuesAfterAModuleThatIsUsedAgain) {
  LoadAll();
  refused_ = "nvidia_uvm";
  on_sleep_ = [this] { refused_.clear(); };
  const auto done = Prepare();
  ASSERT_TRUE(done.ok());
  EXPECT_THAT(done->unloaded, ElementsAre("nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia"));
  EXPECT_EQ(slept_, 1);
}

TEST_F(PrepareDriverTest, RefusesANodeWithADriverOfItsOwn) {
  LoadAll();
  Write("host/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.1", "");
  // As distributions link it: the target is in the node's root.
  std::filesystem::create_symlink("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.1",
                                  node_ / "host/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
  const auto done = Prepare();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(done.error().message(), HasSubstr("pre-installed"));
  EXPECT_THAT(tried_, IsEmpty());
}

TEST_F(PrepareDriverTest, UnloadsARivalThatNothingUses) {
  Load("nouveau");
  EXPECT_THAT(Prepare()->unloaded, ElementsAre("nouveau"));
  Load("nouveau", {}, 1);
  refused_ = "nouveau";
  EXPECT_THAT(Prepare()->unloaded, IsEmpty());
  EXPECT_THAT(said_, Contains(HasSubstr("nouveau is in use and stays")));
}

TEST_F(PrepareDriverTest, WaitsForTheOperatorBeforeItChangesAnything) {
  LoadAll();
  safe_load_ = [this]() -> base::Status {
    EXPECT_THAT(tried_, IsEmpty());
    return base::Error(Code::kPermissionDenied, "no");
  };
  EXPECT_EQ(Prepare().error().code(), Code::kPermissionDenied);
  EXPECT_THAT(tried_, IsEmpty());
  // The wanted driver is there: nothing to wait for.
  order_.wanted.digest = "old";
  EXPECT_TRUE(Prepare().ok());
}

TEST_F(PrepareDriverTest, WaitsForTheNetworkDriverIfThereAreSuchCards) {
  order_.await_network_driver = true;
  EXPECT_TRUE(Prepare().ok());
  const std::string card = "sys/bus/pci/devices/0000:01:00.0/";
  Write(card + "vendor", "0x15b3\n");
  Write(card + "device", "0x1021\n");
  Write(card + "class", "0x020000\n");
  EXPECT_EQ(Prepare().error().code(), Code::kDeadlineExceeded);
  on_sleep_ = [this] { Write("run/mellanox/drivers/.driver-ready", ""); };
  EXPECT_TRUE(Prepare().ok());
  order_.host_network_driver = true;
  on_sleep_ = nullptr;
  EXPECT_EQ(Prepare().error().code(), Code::kDeadlineExceeded);
  Write("sys/module/mlx5_core/refcnt", "0\n");
  EXPECT_TRUE(Prepare().ok());
}

}  // namespace
}  // namespace penstock::app
