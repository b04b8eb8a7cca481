// MPS with namespaces, mounts and control groups as the agent makes them: own /dev/shm for each set, a daemon that outlives the agent.
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

#include "base/core/strings.h"
#include "base/testing/build_tree.h"
#include "os/core/file.h"
#include "vendor/nvidia/mps/folders.h"
#include "vendor/nvidia/mps/testing.h"

namespace penstock::vendor::nvidia {
namespace {

using device::SharedDevice;
using mps::Client;
using mps::RunningService;
using ::testing::HasSubstr;

const std::string kWorker = base::BuildPath("bin/penstock-worker");

class OwnSharedMemory : public testing::Test {
 protected:
  // Mounts below a shared mount are seen by everybody, wherever this test runs.
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
    options.ask_every = options.ask_often = std::chrono::milliseconds(50);
    options.first_retry = std::chrono::milliseconds(50);
    options.settle = {};
    service_.reset();
    service_ = std::make_unique<RunningService>(options);
    service_->Want({{"nvidia.com/gpu", {{gpu_, 2}}}});
    ASSERT_TRUE(service_->WaitUntilReady(gpu_->id)) << service_->Of(gpu_->id).reason;
  }
  std::string DaemonPid() const { return os::ReadFile(set_ + "/pipe/nvidia-cuda-mps-control.pid").value_or("none"); }

  const SimulatedMachine machine_{"a100-40gb-x1"};
  const os::TemporaryFolder folder_;
  const std::string set_ = folder_ / "mps/nvidia.com-gpu";
  const std::shared_ptr<const device::Facts> gpu_ = mps::GpusOf(machine_).at(0);
  std::unique_ptr<RunningService> service_;
};

TEST_F(OwnSharedMemory, WithoutRightsGoesOnWithTheMachinesSharedMemoryAndSaysSo) {
  // As root we give away what a user would not have.
  const std::string weak = folder_ / "launcher";
  folder_.Write("launcher", std::string("#!/bin/sh\nexec ") +
                                (::getuid() == 0 ? "setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin " : "") + kWorker +
                                " \"$@\"\n");
  std::filesystem::permissions(weak, std::filesystem::perms(0755));
  Begin(weak);
  const SharedDevice device = service_->Of(gpu_->id);
  EXPECT_THAT(device.reason, HasSubstr("containers share the machine's /dev/shm with it: make a mount namespace"));
  EXPECT_EQ(device.container.mounts.at(1), (device::Edits::Mount{"/dev/shm", "/dev/shm", false}));
  Client client(machine_, set_ + "/pipe", {});
  EXPECT_THAT(client.Line(), HasSubstr("mps server "));
  EXPECT_EQ(client.Status(), 0);
}

TEST_F(OwnSharedMemory, EachSetHasASharedMemoryOfItsOwnThatItsClientsGet) {
  Begin(kWorker);
  const SharedDevice device = service_->Of(gpu_->id);
  EXPECT_EQ(device.reason, "");
  EXPECT_EQ(device.container.mounts.at(1), (device::Edits::Mount{"/dev/shm", set_ + "/shm", false}));
  EXPECT_EQ(device.process.mounts.size(), 1u);
  struct statfs info {};
  ASSERT_EQ(::statfs((set_ + "/shm").c_str(), &info), 0);
  EXPECT_EQ(info.f_type, TMPFS_MAGIC);

  Client outside(machine_, set_ + "/pipe", {});
  EXPECT_THAT(outside.Line(), HasSubstr("error 805")) << "its /dev/shm is another one";
  EXPECT_EQ(outside.Status(), 4);
  Client inside(machine_, set_ + "/pipe", {"--allocate", "1000"},
                {"unshare", "-m", "sh", "-c", "mount --bind " + set_ + "/shm /dev/shm && exec \"$@\"", "sh"});
  int server = 0;
  const std::string line = inside.Line();
  ASSERT_EQ(std::sscanf(line.c_str(), "mps server %d", &server), 1) << line;
  EXPECT_EQ(inside.Status(), 0);
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "/cuda.shm.%x.%x.1", static_cast<unsigned>(::getuid()), static_cast<unsigned>(server));
  EXPECT_TRUE(os::Exists(set_ + "/shm" + name.data()));
  EXPECT_FALSE(os::Exists(std::string("/dev/shm") + name.data())) << "the machine's own is left alone";
}

TEST_F(OwnSharedMemory, ADaemonIsInNoGroupThatEndsWithTheAgent) {
  Begin(kWorker);
  const auto process = os::ReadProcess("/proc", std::stoi(DaemonPid()));
  ASSERT_TRUE(process.ok());
  EXPECT_THAT(process->cgroups, testing::Contains(testing::EndsWith("/penstock-mps")));
  EXPECT_THAT(process->cgroups, testing::Each(testing::AnyOf("/", testing::EndsWith("/penstock-mps"))));
  EXPECT_NE(::getsid(process->pid), ::getsid(0));
}

/// The folder that daemon and clients have as /dev/shm, without either of them.
class SharedMemoryFolder : public testing::Test {
 protected:
  SharedMemoryFolder() { EXPECT_TRUE(mps::MakeFolders(folders_).ok()); }
  ~SharedMemoryFolder() override {
    ::umount2(folders_.shm.c_str(), MNT_DETACH);
    ::umount2(folder_.path().c_str(), MNT_DETACH);
  }

  /// The folder as a mount of its own that others see, or do not see.
  void MountFolder(unsigned long propagation) {
    ASSERT_EQ(::mount(folder_.path().c_str(), folder_.path().c_str(), nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(::mount(nullptr, folder_.path().c_str(), nullptr, propagation, nullptr), 0);
  }
  /// As an agent in a container sees the machine: its first process has other mounts.
  std::string ProcOfAnotherNamespace() {
    folder_.Link("proc/1/ns/mnt", "mnt:[1]");
    return folder_ / "proc";
  }
  long TypeOfShm() const {
    struct statfs info {};
    EXPECT_EQ(::statfs(folders_.shm.c_str(), &info), 0);
    return info.f_type;
  }
  /// How often something is mounted there.
  long Mounts() const {
    const auto lines = base::Split(os::ReadFile("/proc/self/mountinfo").value_or(""), '\n');
    return std::count_if(lines.begin(), lines.end(),
                         [this](const std::string& line) { return line.find(" " + folders_.shm + " ") != std::string::npos; });
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
  EXPECT_THAT(said, testing::StartsWith("its /dev/shm has no bound of its own"));
  EXPECT_THAT(said, testing::EndsWith(": what the agent mounts at " + folders_.all +
                                      " is not seen outside its container (mountPropagation: Bidirectional)"));
  EXPECT_EQ(Mounts(), 0);
}

TEST_F(SharedMemoryFolder, IsThePlainFolderWhereItMayNotBeMounted) {
  // A child without the right: it exits with 0 where all is said.
  const pid_t child = ::fork();
  if (child == 0) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct rights[2]{};
    if (::syscall(SYS_capget, &header, rights) != 0) ::_exit(2);
    rights[0].effective &= ~(1u << CAP_SYS_ADMIN);
    if (::syscall(SYS_capset, &header, rights) != 0) ::_exit(3);
    ::_exit(mps::MountShm(folders_, "/proc").find("mount a file system in memory at " + folders_.shm) == std::string::npos ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Mounts(), 0);
}

/// As a driver container has it: the driver's files in a system with a C library of its own, found through a link.
class WholeRoot : public OwnSharedMemory {
 protected:
  WholeRoot() {
    const std::string root = machine_.root();
    for (const char* folder : {"/mnt", "/dev/shm", "/var/log"}) std::filesystem::create_directories(root + folder);
    ::dl_iterate_phdr(&CopyLoaded, const_cast<std::string*>(&root));
    folder_.Link("driver", root);
    proc_ = ::mount("/proc", (root + "/proc").c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
  }
  ~WholeRoot() override { ::umount2((machine_.root() + "/proc").c_str(), MNT_DETACH); }

  /// The C library's own objects, wherever this system has them: the loader, libc and libm.
  static int CopyLoaded(dl_phdr_info* object, std::size_t, void* root) {
    const std::filesystem::path from = object->dlpi_name;
    const std::string name = from.filename();
    if (!name.starts_with("ld-linux") && !name.starts_with("libc.so.") && !name.starts_with("libm.so.")) return 0;
    const std::filesystem::path to = *static_cast<std::string*>(root) + from.string();
    std::filesystem::create_directories(to.parent_path());
    std::filesystem::copy_file(std::filesystem::canonical(from), to, std::filesystem::copy_options::skip_existing);
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
  Client client(machine_, set_ + "/pipe", {"--allocate", "1000"},
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

}  // namespace
}  // namespace penstock::vendor::nvidia
