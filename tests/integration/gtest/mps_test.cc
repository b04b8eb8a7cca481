// Tests MPS with the agent's namespaces, mounts and control groups: each set has its own /dev/shm,
// and a daemon outlives the agent.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/nvidia/mps/folders.h"
#include "backend/nvidia/mps/processes.h"
#include "backend/nvidia/mps/testing/testing.h"
#include "base/core/strings.h"
#include "base/testing/build_tree.h"
#include "os/core/file.h"
#include "os/process/launch.h"

namespace penstock::backend::nvidia {
namespace {

using device::SharedDevice;
using mps::Client;
using mps::RunningService;
using ::testing::HasSubstr;

const std::string kWorker = base::BuildPath("bin/penstock-worker");

class OwnSharedMemory : public testing::Test {
 protected:
  // Makes the folder a shared mount, so that mounts below it propagate wherever this test runs.
  OwnSharedMemory() {
    if (::mount(folder_.path().c_str(), folder_.path().c_str(), nullptr, MS_BIND, nullptr) == 0)
      (void)::mount(nullptr, folder_.path().c_str(), nullptr, MS_SHARED, nullptr);
  }
  ~OwnSharedMemory() override { ::umount2(folder_.path().c_str(), MNT_DETACH); }

  void TearDown() override {
    if (!service_) return;
    service_->EndIdle();
    EXPECT_TRUE(service_->WaitUntilEmpty());
    EXPECT_FALSE(os::Exists(set_)) << "nothing is left, mounted or not";
  }

  void Begin(const std::string& launcher, const std::string& driver_root = "") {
    MpsOptions options;
    options.driver_root = driver_root.empty() ? machine_.root() : driver_root;
    options.root = options.host_root = folder_ / "mps";
    options.launcher = launcher;
    options.poll_every = options.poll_often = std::chrono::milliseconds(50);
    options.first_retry = std::chrono::milliseconds(50);
    options.settle = {};
    service_.reset();
    service_ = std::make_unique<RunningService>(options);
    service_->Want({{"nvidia.com/gpu", {{gpu_, 2}}}});
    ASSERT_TRUE(service_->WaitUntilReady(gpu_->id)) << service_->Of(gpu_->id).reason;
  }
  std::string DaemonPid() const { return mps::DaemonPid(folder_ / "mps"); }

  const SimulatedMachine machine_{"a100-40gb-x1"};
  const os::TemporaryFolder folder_;
  const std::string set_ = folder_ / "mps/nvidia.com-gpu";
  const std::shared_ptr<const device::Facts> gpu_ = mps::GpusOf(machine_).at(0);
  std::unique_ptr<RunningService> service_;
};

TEST_F(OwnSharedMemory, WithoutRightsGoesOnWithTheMachinesSharedMemoryAndSaysSo) {
  // Where the test runs as root, drop the capability that an ordinary user would not have.
  const std::string weak = folder_ / "launcher";
  folder_.Write(
      "launcher",
      std::string("#!/bin/sh\nexec ") +
          (::getuid() == 0 ? "setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin " : "") +
          kWorker + " \"$@\"\n");
  std::filesystem::permissions(weak, std::filesystem::perms(0755));
  Begin(weak);
  const SharedDevice device = service_->Of(gpu_->id);
  EXPECT_THAT(
      device.reason,
      HasSubstr(
          "containers share the host's /dev/shm with its MPS server: create a mount namespace"));
  EXPECT_EQ(device.container.mounts.at(1), (device::Edits::Mount{"/dev/shm", "/dev/shm", false}));
  Client client(machine_, set_ + "/pipe", {});
  EXPECT_THAT(client.Line(), HasSubstr("mps server "));
  EXPECT_EQ(client.Status(), 0);
}

TEST_F(OwnSharedMemory, EachSetHasASharedMemoryOfItsOwnThatItsClientsGet) {
  Begin(kWorker);
  const SharedDevice device = service_->Of(gpu_->id);
  EXPECT_EQ(device.reason, "");
  EXPECT_EQ(device.container.mounts.at(1),
            (device::Edits::Mount{"/dev/shm", set_ + "/shm", false}));
  EXPECT_EQ(device.process.mounts.size(), 1u);
  struct statfs info {};
  ASSERT_EQ(::statfs((set_ + "/shm").c_str(), &info), 0);
  EXPECT_EQ(info.f_type, TMPFS_MAGIC);

  Client outside(machine_, set_ + "/pipe", {});
  EXPECT_THAT(outside.Line(), HasSubstr("error 805")) << "its /dev/shm is another one";
  EXPECT_EQ(outside.Status(), 4);
  Client inside(
      machine_, set_ + "/pipe", {"--allocate", "1000"},
      {"unshare", "-m", "sh", "-c", "mount --bind " + set_ + "/shm /dev/shm && exec \"$@\"", "sh"});
  int server = 0;
  const std::string line = inside.Line();
  ASSERT_EQ(std::sscanf(line.c_str(), "mps server %d", &server), 1) << line;
  EXPECT_EQ(inside.Status(), 0);
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "/cuda.shm.%x.%x.1", static_cast<unsigned>(::getuid()),
                static_cast<unsigned>(server));
  EXPECT_TRUE(os::Exists(set_ + "/shm" + name.data()));
  EXPECT_FALSE(os::Exists(std::string("/dev/shm") + name.data()))
      << "the machine's own is left alone";
}

TEST_F(OwnSharedMemory, ADaemonIsInNoGroupThatEndsWithTheAgent) {
  Begin(kWorker);
  const auto process = os::ReadProcess("/proc", std::stoi(DaemonPid()));
  ASSERT_TRUE(process.ok());
  EXPECT_THAT(process->cgroups, testing::Contains(testing::EndsWith("/penstock-mps")));
  EXPECT_THAT(process->cgroups,
              testing::Each(testing::AnyOf("/", testing::EndsWith("/penstock-mps"))));
  EXPECT_NE(::getsid(process->pid), ::getsid(0));
}

/// The folder that daemon and clients use as /dev/shm, tested without either of them.
class SharedMemoryFolder : public testing::Test {
 protected:
  SharedMemoryFolder() { EXPECT_TRUE(mps::MakeFolders(folders_).ok()); }
  ~SharedMemoryFolder() override {
    ::umount2(folders_.shm.c_str(), MNT_DETACH);
    ::umount2(folder_.path().c_str(), MNT_DETACH);
  }

  /// Makes the folder a mount of its own, whose mounts propagate or do not.
  void MountFolder(unsigned long propagation) {
    ASSERT_EQ(::mount(folder_.path().c_str(), folder_.path().c_str(), nullptr, MS_BIND, nullptr),
              0);
    ASSERT_EQ(::mount(nullptr, folder_.path().c_str(), nullptr, propagation, nullptr), 0);
  }
  /// The /proc of an agent in a container: the machine's first process is in another mount
  /// namespace.
  std::string ProcOfAnotherNamespace() {
    folder_.Link("proc/1/ns/mnt", "mnt:[1]");
    return folder_ / "proc";
  }
  long TypeOfShm() const {
    struct statfs info {};
    EXPECT_EQ(::statfs(folders_.shm.c_str(), &info), 0);
    return info.f_type;
  }
  /// The number of mounts at the folder.
  long Mounts() const {
    const auto lines = base::Split(os::ReadFile("/proc/self/mountinfo").value_or(""), '\n');
    return std::count_if(lines.begin(), lines.end(), [this](const std::string& line) {
      return line.find(" " + folders_.shm + " ") != std::string::npos;
    });
  }

  const os::TemporaryFolder folder_;
  const mps::Folders folders_ = mps::FoldersOf(folder_ / "mps", "nvidia.com/gpu");
};

TEST_F(SharedMemoryFolder, IsAFileSystemInMemoryForEveryUserMountedOnceAndLeavesWithTheSet) {
  EXPECT_EQ(mps::MountShm(folders_, "/proc"), "");
  EXPECT_EQ(TypeOfShm(), TMPFS_MAGIC);
  struct stat info {};
  ASSERT_EQ(::stat(folders_.shm.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 01777u);
  EXPECT_EQ(mps::MountShm(folders_, "/proc"), "") << "the next agent finds it";
  EXPECT_EQ(Mounts(), 1);
  folder_.Write("mps/nvidia.com-gpu/shm/of a client", "");
  mps::RemoveFolders(folders_);
  EXPECT_EQ(Mounts(), 0);
  EXPECT_FALSE(os::Exists(folders_.all));
}

TEST_F(SharedMemoryFolder, IsMountedInAContainerWhereTheMachineSeesIt) {
  MountFolder(MS_SHARED);
  EXPECT_EQ(mps::MountShm(folders_, ProcOfAnotherNamespace()), "");
  EXPECT_EQ(TypeOfShm(), TMPFS_MAGIC);
}

TEST_F(SharedMemoryFolder, IsNotMountedWhereTheMachineWouldNotSeeItAndSaysWhatToDo) {
  MountFolder(MS_PRIVATE);
  const std::string said = mps::MountShm(folders_, ProcOfAnotherNamespace());
  EXPECT_THAT(said, testing::StartsWith("its /dev/shm has no size limit of its own"));
  EXPECT_THAT(said, testing::EndsWith(
                        ": a mount of the agent at " + folders_.all +
                        " is not visible outside its container (mountPropagation: Bidirectional)"));
  EXPECT_EQ(Mounts(), 0);
}

TEST_F(SharedMemoryFolder, IsThePlainFolderWhereItMayNotBeMounted) {
  // A child without the capability: it exits with 0 where the remark is complete.
  const pid_t child = ::fork();
  if (child == 0) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct rights[2]{};
    if (::syscall(SYS_capget, &header, rights) != 0) ::_exit(2);
    rights[0].effective &= ~(1u << CAP_SYS_ADMIN);
    if (::syscall(SYS_capset, &header, rights) != 0) ::_exit(3);
    ::_exit(mps::MountShm(folders_, "/proc").find("mount a tmpfs at " + folders_.shm) ==
                    std::string::npos
                ? 1
                : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Mounts(), 0);
}

/// As in a driver container: the driver's files are in a system with its own C library, reached
/// through a link.
class WholeRoot : public OwnSharedMemory {
 protected:
  WholeRoot() {
    const std::string root = machine_.root();
    for (const char* folder : {"/mnt", "/dev/shm", "/var/log"})
      std::filesystem::create_directories(root + folder);
    ::dl_iterate_phdr(&CopyLoaded, const_cast<std::string*>(&root));
    folder_.Link("driver", root);
    proc_ = ::mount("/proc", (root + "/proc").c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
  }
  ~WholeRoot() override { ::umount2((machine_.root() + "/proc").c_str(), MNT_DETACH); }

  /// Copies the C library's own objects, wherever this system has them: the loader, libc and libm.
  static int CopyLoaded(dl_phdr_info* object, std::size_t, void* root) {
    const std::filesystem::path from = object->dlpi_name;
    const std::string name = from.filename();
    if (!name.starts_with("ld-linux") && !name.starts_with("libc.so.") &&
        !name.starts_with("libm.so."))
      return 0;
    const std::filesystem::path to = *static_cast<std::string*>(root) + from.string();
    std::filesystem::create_directories(to.parent_path());
    std::filesystem::copy_file(std::filesystem::canonical(from), to,
                               std::filesystem::copy_options::skip_existing);
    return 0;
  }
  bool proc_ = false;
};

TEST_F(WholeRoot, IsEnteredByTheDaemonAndItsServers) {
  ASSERT_TRUE(proc_);
  Begin(kWorker, folder_ / "driver");
  const SharedDevice device = service_->Of(gpu_->id);
  EXPECT_EQ(device.reason, "");
  EXPECT_EQ(device.isolation, device::Isolation::kMemoryPerProcess);
  EXPECT_EQ(os::ReadLink("/proc/" + DaemonPid() + "/root").value_or(""), machine_.root());
  Client client(
      machine_, set_ + "/pipe", {"--allocate", "1000"},
      {"unshare", "-m", "sh", "-c", "mount --bind " + set_ + "/shm /dev/shm && exec \"$@\"", "sh"});
  EXPECT_THAT(client.Line(), HasSubstr("mps server "));
  EXPECT_EQ(client.Status(), 0);
}

TEST_F(OwnSharedMemory, TheNextAgentTakesOverWithTheSameSharedMemory) {
  Begin(kWorker);
  const std::string pid = DaemonPid();
  Begin(kWorker);
  EXPECT_EQ(DaemonPid(), pid);
  EXPECT_EQ(service_->Of(gpu_->id).container.mounts.at(1).host_path, set_ + "/shm");
}

/// The control daemons: the simulated ones, and NVIDIA's own of two branches (from the cache, as
/// packaged by Debian) with simulated GPUs, which these daemons never access. Each test runs with
/// each of them.
class Daemons : public testing::TestWithParam<std::string> {
 protected:
  Daemons() {
    if (IsNvidias()) InstallNvidias();
    Begin();
  }
  ~Daemons() override {
    service_->EndIdle();
    EXPECT_TRUE(service_->WaitUntilEmpty());
    EXPECT_FALSE(os::Exists(Folder("gpu"))) << "nothing is left";
  }

  bool IsNvidias() const { return GetParam().starts_with("nvidia"); }
  std::string Branch() const { return GetParam().substr(GetParam().size() - 3); }

  void Begin() {
    MpsOptions options;
    options.driver_root = machine_.root();
    options.root = options.host_root = root_;
    options.launcher = kWorker;
    options.poll_every = options.poll_often = std::chrono::milliseconds(50);
    options.first_retry = options.last_retry = std::chrono::milliseconds(50);
    options.answer_deadline = options.start_deadline = std::chrono::minutes(1);
    options.settle = {};
    service_.reset();
    service_ = std::make_unique<RunningService>(options);
    service_->Want({{"nvidia.com/gpu", {{gpus_[0], 3}, {gpus_[1], 3}}},
                    {"nvidia.com/other", {{gpus_[2], 2}}}});
    for (int i = 0; i < 3; ++i)
      ASSERT_TRUE(service_->WaitUntilReady(gpus_[i]->id)) << service_->Of(gpus_[i]->id).reason;
  }
  std::string Folder(const std::string& set) const { return root_ + "/nvidia.com-" + set; }
  std::string DaemonOf(const std::string& set) const {
    return mps::DaemonPid(root_, "nvidia.com/" + set);
  }
  /// Waits until the set has a daemon other than this one and is ready.
  bool WaitForAnother(const std::string& than) {
    return service_->WaitFor(gpus_[0]->id, [&](const SharedDevice& device) {
      return device.ready && DaemonOf("gpu") != than && DaemonOf("gpu") != "none";
    });
  }
  static std::vector<std::string> Names(const std::string& folder) {
    return os::ListDirectory(folder).value_or({});
  }

  const SimulatedMachine machine_{"dgx-a100", IsNvidias() ? "" : Branch() + ".54.15"};
  const os::TemporaryFolder folder_;
  const std::string root_ = folder_ / "mps";
  const std::vector<std::shared_ptr<const device::Facts>> gpus_ = mps::GpusOf(machine_);
  std::unique_ptr<RunningService> service_;
  std::string driver_;  ///< the root of NVIDIA's driver

 private:
  void InstallNvidias() {
    FILE* reported = ::popen(
        (base::SourcePath("tests/support/downloads.py") + " --driver " + Branch()).c_str(), "re");
    std::array<char, 4096> line{};
    (void)std::fgets(line.data(), line.size(), reported);
    ASSERT_EQ(::pclose(reported), 0) << "tests/support/downloads.py fetches what is missing";
    driver_ = base::Trim(line.data());
    namespace fs = std::filesystem;
    for (const char* name : {"control", "server"})
      fs::remove(machine_.root() + "/usr/bin/nvidia-cuda-mps-" + name);
    fs::create_directories(machine_.root() + "/usr/sbin");
    for (const char* program :
         {"/usr/bin/nvidia-cuda-mps-control", "/usr/sbin/nvidia-cuda-mps-server"})
      fs::copy_file(driver_ + program, machine_.root() + program);
    // The server uses it, as clients do.
    const std::string library = machine_.root() + "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
    fs::remove(library);
    fs::copy_file(driver_ + "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1", library);
  }
};

INSTANTIATE_TEST_SUITE_P(Mps, Daemons,
                         testing::Values("simulated_535", "simulated_550", "nvidia_535",
                                         "nvidia_550"),
                         [](const auto& daemon) { return daemon.param; });

TEST_P(Daemons, HoldTheLimitsThatTheSharesStandFor) {
  const SharedDevice device = service_->Of(gpus_[1]->id);
  EXPECT_EQ(device.isolation, device::Isolation::kMemoryPerProcess) << device.reason;
  EXPECT_EQ(device.memory, base::Mebibytes(gpus_[1]->memory.mebibytes() / 3));
  EXPECT_NE(device.memory.mebibytes() % 1024, 0u)
      << "no whole number of gigabytes, which is all that they answer";
  EXPECT_EQ(device.compute_percent, 33);
  EXPECT_EQ(device.reason, "");
}

TEST_P(Daemons, GiveClientsTheirSocketAndNothingElseToWriteTo) {
  EXPECT_THAT(Names(Folder("gpu") + "/pipe"), testing::ElementsAre("control"));
  EXPECT_THAT(Names(Folder("gpu") + "/daemon"),
              testing::IsSupersetOf({"control", "control_lock", "control_privileged", "log"}));
  EXPECT_EQ(os::Exists(Folder("gpu") + "/daemon/nvidia-cuda-mps-control.pid"), Branch() == "550");
  struct stat control {};
  ASSERT_EQ(::lstat((Folder("gpu") + "/pipe/control").c_str(), &control), 0);
  EXPECT_TRUE(S_ISSOCK(control.st_mode));
  EXPECT_THAT(service_->Of(gpus_[0]->id).container.mounts,
              testing::Contains(
                  device::Edits::Mount{"/mps/nvidia.com/gpu/pipe", Folder("gpu") + "/pipe", true}));
}

TEST_P(Daemons, AreTakenOverByTheNextAgent) {
  const std::string pid = DaemonOf("gpu");
  ASSERT_NE(pid, "none");
  Begin();
  EXPECT_EQ(DaemonOf("gpu"), pid);
  EXPECT_EQ(service_->Of(gpus_[0]->id).isolation, device::Isolation::kMemoryPerProcess);
}

TEST_P(Daemons, AreStartedAgainWhenTheyDieAndNoneStaysBehind) {
  const std::string pid = DaemonOf("gpu");
  for (const int signal : {SIGTERM, SIGKILL}) {
    const std::string before = DaemonOf("gpu");
    ASSERT_EQ(::kill(std::stoi(before), signal), 0);
    ASSERT_TRUE(WaitForAnother(before));
  }
  EXPECT_EQ(mps::FindDaemons("/proc", mps::FoldersOf(root_, "nvidia.com/gpu")).size(), 1u);
  EXPECT_THAT(Names(Folder("gpu") + "/pipe"), testing::ElementsAre("control"));
}

// Pods that were started under 0.1.0 have write access to the folder.
TEST_P(Daemons, AreNeverFoundByWhatLiesInTheFolderOfClients) {
  const std::string pipe = Folder("gpu") + "/pipe", other = DaemonOf("other"),
                    elsewhere = folder_ / "elsewhere";
  folder_.Write("elsewhere", "theirs");
  const auto plant = [&](int turn) {
    const std::string file = pipe + "/nvidia-cuda-mps-control.pid";
    std::filesystem::remove(file);
    if (turn == 0) return ::mkfifo(file.c_str(), 0666) == 0;
    if (turn == 1) return os::WriteFileAtomically(file, other + "\n", 0666).ok();
    for (const char* name : {"/control_privileged", "/log", "/control_lock"})
      folder_.Link("mps/nvidia.com-gpu/pipe" + std::string(name), elsewhere);
    std::filesystem::remove(pipe + "/control");
    folder_.Link("mps/nvidia.com-gpu/pipe/control", elsewhere);
    return true;
  };
  for (int turn = 0; turn < 3; ++turn) {
    const std::string before = DaemonOf("gpu");
    ASSERT_TRUE(plant(turn));
    // The agent is killed as well: the next agent finds the planted files and a dead daemon.
    service_.reset();
    ASSERT_EQ(::kill(std::stoi(before), SIGKILL), 0);
    Begin();
    EXPECT_NE(DaemonOf("gpu"), before);
    EXPECT_EQ(DaemonOf("other"), other) << "another set's daemon lives on";
    EXPECT_THAT(Names(pipe), testing::ElementsAre("control"));
  }
  EXPECT_EQ(*os::ReadFile(elsewhere), "theirs");
}

TEST_P(Daemons, AreReachedByAClientOfAnyUserThroughAFolderThatItCannotWriteTo) {
  const std::string inside = folder_ / "container";
  std::filesystem::create_directories(inside);
  for (const std::filesystem::path& folder : {std::filesystem::path(folder_.path()),
                                              std::filesystem::path(machine_.root()).parent_path()})
    std::filesystem::permissions(
        folder, std::filesystem::perms(0755));  // the server runs as the client's user
  // As root, the client would create /dev/nvidiactl.
  const std::string enter =
      "mount --bind " + Folder("gpu") + "/pipe " + inside + " && mount -o remount,bind,ro " +
      inside + " && mount --bind " + Folder("gpu") + "/shm /dev/shm && ! touch " + inside +
      "/x 2>/dev/null && exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"";
  const std::vector<std::string> wrapper = {"unshare", "-m", "sh", "-c", enter, "sh"};
  if (!IsNvidias()) {
    // The files of the simulation's state that the client opens belong to root.
    Client client(
        machine_, inside, {},
        {"unshare", "-m", "sh", "-c", enter.substr(0, enter.find("setpriv")) + "\"$@\"", "sh"});
    EXPECT_THAT(client.Line(), HasSubstr("mps server "));
    return;
  }
  std::filesystem::copy_file(base::BuildPath("tests/cuda-client"), folder_ / "cuda-client");
  os::SpawnOptions spawn;
  spawn.arguments = wrapper;
  spawn.arguments.insert(
      spawn.arguments.end(),
      {folder_ / "cuda-client", machine_.root() + "/usr/lib/x86_64-linux-gnu/libcuda.so.1"});
  spawn.environment = {"CUDA_MPS_PIPE_DIRECTORY=" + inside, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  const auto client = os::Spawn(spawn);
  ASSERT_TRUE(client.ok());
  // Without a GPU, the server exits whenever the daemon starts it; then the daemon reports an error
  // to the client.
  int status = 0;
  ::waitpid(client->pid, &status, 0);
  const std::string log = os::ReadFile(Folder("gpu") + "/log/control.log").value_or(""),
                    server = os::ReadFile(Folder("gpu") + "/log/server.log").value_or("");
  EXPECT_THAT(log, HasSubstr("NEW CLIENT " + std::to_string(client->pid) + " from user 65534"));
  EXPECT_THAT(server, HasSubstr("Failed to start : no CUDA-capable device is detected"))
      << "it was found and started";
}

/// Processes that pretend to be daemons and servers of a set.
class Pretenders : public testing::Test {
 protected:
  /// Starts a program of this name that belongs to `owner`, with the rights of `user`, in this
  /// group ("": the test's own).
  pid_t Start(const std::string& name, uid_t owner, uid_t user, const std::string& group) {
    const std::string program = folder_ / (std::to_string(owner) + "/" + name);
    if (!os::Exists(program)) {
      std::filesystem::create_directories(std::filesystem::path(program).parent_path());
      std::filesystem::copy_file("/bin/sleep", program);
    }
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    EXPECT_EQ(::chown(program.c_str(), owner, owner), 0);
    os::LaunchOptions launch;
    launch.cgroup = group;
    launch.command = {"setpriv",
                      "--reuid",
                      std::to_string(user),
                      "--regid",
                      std::to_string(user),
                      "--clear-groups",
                      program,
                      "1000"};
    os::SpawnOptions spawn;
    spawn.arguments = group.empty() ? launch.command : os::LaunchArguments(kWorker, launch);
    spawn.environment = {
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "PENSTOCK_MPS_FOLDER=" + folders_.all,
        "PENSTOCK_MPS_SPEC=" +
            mps::WriteSpec({"nvidia.com/gpu", 25, {{"GPU-a", 4, base::Mebibytes(1000)}}})};
    auto child = os::Spawn(spawn);
    EXPECT_TRUE(child.ok());
    children_.push_back(child->pid);
    // While the kernel starts a program, its executable can be read a moment before its
    // environment.
    const std::string proc = "/proc/" + std::to_string(child->pid);
    const auto runs = [&] {
      return os::ReadLink(proc + "/exe").value_or("") == program &&
             !os::ReadFile(proc + "/environ").value_or("").empty();
    };
    for (int i = 0; i < 6000 && !runs(); ++i) ::usleep(10000);
    EXPECT_TRUE(runs()) << program << " has not started";
    return child->pid;
  }
  ~Pretenders() override {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

  std::vector<pid_t> Daemons() const {
    std::vector<pid_t> pids;
    for (const auto& daemon : mps::FindDaemons("/proc", folders_)) pids.push_back(daemon.pid);
    return pids;
  }
  std::vector<pid_t> Servers() const {
    std::vector<pid_t> pids;
    for (const auto& server : mps::FindServers("/proc", folders_)) pids.push_back(server.pid);
    return pids;
  }

  const os::TemporaryFolder folder_;
  const mps::Folders folders_ = mps::FoldersOf(folder_ / "mps", "nvidia.com/gpu");
  std::vector<pid_t> children_;
};

TEST_F(Pretenders, AreNoDaemons) {
  constexpr const char* kName = "nvidia-cuda-mps-control";
  (void)Start(kName, 65534, 65534, "penstock-mps");
  (void)Start(kName, 0, 65534, "penstock-mps");
  (void)Start(kName, 65534, 0, "penstock-mps");
  (void)Start(kName, 0, 0, "container");
  (void)Start("nvidia-cuda-mps-server", 0, 0, "penstock-mps");
  EXPECT_THAT(Daemons(), testing::IsEmpty());
  const pid_t real = Start(kName, 0, 0, "penstock-mps");
  EXPECT_THAT(Daemons(), testing::ElementsAre(real));
}

TEST_F(Pretenders, AreNoServers) {
  constexpr const char* kName = "nvidia-cuda-mps-server";
  (void)Start(kName, 65534, 65534, "penstock-mps");
  (void)Start(kName, 0, 65534, "container");
  (void)Start(kName, 0, 0, "container");
  (void)Start("nvidia-cuda-mps-control", 0, 0, "penstock-mps");
  EXPECT_THAT(Servers(), testing::IsEmpty());
  const pid_t real = Start(kName, 0, 65534, "penstock-mps");
  EXPECT_THAT(Servers(), testing::ElementsAre(real));
  const auto process = os::ReadProcess("/proc", real);
  ASSERT_TRUE(process.ok());
  EXPECT_TRUE(mps::IsServer("/proc", *process));
}

}  // namespace
}  // namespace penstock::backend::nvidia
