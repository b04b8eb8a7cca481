// Tests penstock-hook as a program: killed before any of its system calls, many instances at once,
// and on mounts. Requires root.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/build_tree.h"
#include "hook/hooks.h"
#include "os/core/file.h"
#include "os/core/ld_cache.h"
#include "os/core/testing/elf_maker.h"
#include "os/core/testing/temporary_folder.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

const std::string kProgram = base::BuildPath("bin/penstock-hook");
#if defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
constexpr std::int32_t kFlags = 0x0a03;
#else
constexpr std::uint16_t kMachine = EM_X86_64;
constexpr std::int32_t kFlags = 0x0303;
#endif

class HookProgram : public testing::Test {
 protected:
  HookProgram() {
    folder_.Write("state",
                  R"({"ociVersion":"1.0.2","id":"c","root":")" + folder_.path() + R"(/root"})");
    MakeImage();
  }

  // Creates an image with a cache of one library, and a driver's library mounted into it.
  void MakeImage() {
    fs::remove_all(folder_ / "root");
    folder_.Write(
        "root/etc/ld.so.cache",
        os::WriteLdCache({{.soname = "libc.so.6", .path = "/usr/lib/libc.so.6", .flags = kFlags}}));
    folder_.Write("root/drv/libcuda.so.550.1",
                  os::MakeElf({.machine = kMachine, .soname = "libcuda.so.1"}));
    folder_.Link("root/drv/libcuda.so", "older");
  }

  // Executes the hook; for child processes.
  [[noreturn]] void Execute(const std::vector<std::string>& words) {
    std::vector<char*> arguments = {const_cast<char*>(kProgram.c_str())};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int state = ::open((folder_ / "state").c_str(), O_RDONLY);
    ::dup2(state, STDIN_FILENO);
    ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
    ::execv(kProgram.c_str(), arguments.data());
    ::_exit(127);
  }

  // Kills the hook as it enters its system call number `count`; returns false where it ended
  // before.
  bool KillAtCall(int count, const std::vector<std::string>& words) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("ASAN_OPTIONS", "detect_leaks=0",
               1);  // in sanitizer builds: the leak check uses ptrace itself
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      Execute(words);
    }
    int status = 0;
    ::waitpid(child, &status, 0);  // stopped at its exec
    ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL);
    // Each call stops twice: on entry and on exit.
    for (int stop = 0; stop < 2 * count - 1 && WIFSTOPPED(status); ++stop) {
      ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
      ::waitpid(child, &status, 0);
    }
    if (!WIFSTOPPED(status)) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
      return false;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return true;
  }

  int Run(const std::vector<std::string>& words) {
    const pid_t child = ::fork();
    if (child == 0) Execute(words);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::vector<std::string> Cache() {
    std::vector<std::string> paths;
    const auto entries =
        os::ReadLdCache(os::ReadFile(folder_ / "root/etc/ld.so.cache").value_or(""));
    if (!entries.ok()) return {entries.error().message()};
    for (const auto& entry : *entries) paths.push_back(entry.path);
    return paths;
  }

  // Files have their whole old or new content, and there are no other files except hidden ones.
  void ExpectUsable() {
    EXPECT_THAT(Cache(), testing::AnyOf(ElementsAre("/usr/lib/libc.so.6"),
                                        ElementsAre("/drv/libcuda.so.550.1", "/usr/lib/libc.so.6"),
                                        ElementsAre("/drv/libcuda.so.1", "/usr/lib/libc.so.6"),
                                        ElementsAre("/drv/libcuda.so.1", "/drv/libcuda.so",
                                                    "/usr/lib/libc.so.6")));
    EXPECT_THAT(*os::ReadLink(folder_ / "root/drv/libcuda.so"),
                testing::AnyOf("older", "libcuda.so.1"));
    EXPECT_EQ(os::ReadLink(folder_ / "root/drv/libcuda.so.1").value_or("libcuda.so.550.1"),
              "libcuda.so.550.1");
    EXPECT_THAT(os::ReadFile(folder_ / "root/etc/ld.so.conf").value_or("include "),
                HasSubstr("include "));
    EXPECT_THAT(
        os::ReadFile(folder_ / "root/etc/ld.so.conf.d/00-penstock-driver.conf").value_or("/drv\n"),
        HasSubstr("/drv\n"));
    for (const std::string place : {"root", "root/etc", "root/drv", "root/etc/ld.so.conf.d"}) {
      for (const std::string& name : os::ListDirectory(folder_ / place).value_or({}))
        EXPECT_THAT(kNames, testing::Truly([&](const auto& names) {
                      return name.starts_with(".penstock-") ||
                             std::find(names.begin(), names.end(), name) != names.end();
                    }))
            << name;
    }
  }

  static inline const std::vector<std::string> kNames = {
      "etc",        "drv",          "ld.so.cache",
      "ld.so.conf", "ld.so.conf.d", "00-penstock-driver.conf",
      "libcuda.so", "libcuda.so.1", "libcuda.so.550.1"};
  os::TemporaryFolder folder_;
};

const std::vector<std::string> kUpdate = {"update-ldcache", "--folder", "/drv"};
const std::vector<std::string> kLinks = {"create-symlinks", "--link",
                                         "libcuda.so.1::/drv/libcuda.so"};

TEST_F(HookProgram, KilledBeforeAnyOfItsCallsItLeavesAnImageThatWorks) {
  int calls = 1;
  while (KillAtCall(calls, kUpdate)) {
    ExpectUsable();
    ++calls;
    MakeImage();
  }
  EXPECT_GT(calls, 50) << "this must have killed it";
  EXPECT_THAT(Cache(), ElementsAre("/drv/libcuda.so.1", "/usr/lib/libc.so.6"));
  for (calls = 1; KillAtCall(calls, kLinks); ++calls) ExpectUsable();
  EXPECT_GT(calls, 20);
}

TEST_F(HookProgram, KilledAgainAndAgainOnOneImageItStillEndsWell) {
  for (int calls = 1; KillAtCall(calls, kUpdate) && calls < 400; ++calls) ExpectUsable();
  EXPECT_EQ(Run(kUpdate), 0);
  EXPECT_THAT(Cache(), ElementsAre("/drv/libcuda.so.1", "/usr/lib/libc.so.6"));
}

TEST_F(HookProgram, TwentyAtOnceDoWhatOneDoes) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(Run(kUpdate), 0);
      EXPECT_EQ(Run(kLinks), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Run(kUpdate), 0);
  EXPECT_THAT(Cache(), ElementsAre("/drv/libcuda.so.1", "/drv/libcuda.so", "/usr/lib/libc.so.6"));
  EXPECT_THAT(*os::ListDirectory(folder_ / "root/etc"),
              ElementsAre("ld.so.cache", "ld.so.conf", "ld.so.conf.d"));
  EXPECT_THAT(*os::ListDirectory(folder_ / "root/drv"),
              ElementsAre("libcuda.so", "libcuda.so.1", "libcuda.so.550.1"));
}

// Simulates a container engine's filter that is older than the call.
void ForbidOpenat2() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{std::size(program), program};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

TEST_F(HookProgram, WithoutConfinementItDoesNothing) {
  const pid_t child = ::fork();
  if (child == 0) {
    ForbidOpenat2();
    Execute(kUpdate);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_THAT(Cache(), ElementsAre("/usr/lib/libc.so.6"));
  EXPECT_THAT(*os::ListDirectory(folder_ / "root/etc"), ElementsAre("ld.so.cache"));
}

/// Gives each test mounts of its own, which disappear with its child process.
class HookOnMounts : public HookProgram {
 protected:
  // Runs a check in a mount namespace; a text that it returns is a failure.
  void InMountNamespace(const std::function<std::string()>& check) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      std::string found = "no mount namespace";
      if (::unshare(CLONE_NEWNS) == 0 &&
          ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0)
        found = check();
      ::_exit(::write(pipe[1], found.data(), found.size()) < 0);
    }
    ::close(pipe[1]);
    const auto found = os::ReadAll(pipe[0], "the check");
    ::close(pipe[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(found.value_or("nothing"), "");
  }

  os::ConfinedTree Root() { return *os::ConfinedTree::Open(folder_ / "root"); }
  hook::Warnings warnings_;
};

TEST_F(HookOnMounts, TheContainerSeesADriverThatMakesNoDeviceFiles) {
  folder_.Write("params", "Mobile: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\n");
  fs::create_directories(folder_ / "root/proc");
  InMountNamespace([&]() -> std::string {
    if (::mount("proc", (folder_ / "root/proc").c_str(), "proc", 0, nullptr) != 0) return "no proc";
    const auto done = hook::DisableDeviceNodeModification(
        Root(), {.machine = folder_ / "params", .container = "/proc/version"}, warnings_);
    if (!done.ok()) return done.error().message();
    const std::string seen = Root().Read("/proc/version").value_or("cannot be read");
    if (seen != "Mobile: 4294967295\nModifyDeviceFiles: 0\nDeviceFileUID: 0\n") return seen;
    if (::open((folder_ / "root/proc/version").c_str(), O_WRONLY) >= 0 || errno != EROFS)
      return "it can be written";
    if (::mount("", (folder_ / "root/proc/version").c_str(), nullptr, MS_REMOUNT | MS_BIND,
                nullptr) == 0 &&
        ::open((folder_ / "root/proc/version").c_str(), O_WRONLY) >= 0)
      return "it can be made writable";
    return warnings_.messages().empty() ? "" : warnings_.messages().front();
  });
}

TEST_F(HookOnMounts, WithoutTheRightToMountTheContainerStartsWithTheKernelsFile) {
  folder_.Write("params", "ModifyDeviceFiles: 1");
  fs::create_directories(folder_ / "root/proc");
  InMountNamespace([&]() -> std::string {
    if (::mount("proc", (folder_ / "root/proc").c_str(), "proc", 0, nullptr) != 0) return "no proc";
    const std::string before = Root().Read("/proc/version").value_or("cannot be read");
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct rights[2]{};
    if (::syscall(SYS_capget, &header, rights) != 0) return "no rights to take away";
    rights[0].effective &= ~(1u << CAP_SYS_ADMIN);
    if (::syscall(SYS_capset, &header, rights) != 0) return "the right cannot be taken away";
    const auto done = hook::DisableDeviceNodeModification(
        Root(), {.machine = folder_ / "params", .container = "/proc/version"}, warnings_);
    if (!done.ok()) return done.error().message();
    if (Root().Read("/proc/version").value_or("") != before) return "it was changed";
    if (warnings_.messages().size() != 1) return "nothing was said";
    return warnings_.messages().front().find("create an in-memory file system") == std::string::npos
               ? warnings_.messages().front()
               : "";
  });
}

TEST_F(HookOnMounts, AFileWithoutItsLastLineBreakIsTurnedToo) {
  folder_.Write("params", "Mobile: 0\nModifyDeviceFiles: 1");
  fs::create_directories(folder_ / "root/proc");
  InMountNamespace([&]() -> std::string {
    if (::mount("proc", (folder_ / "root/proc").c_str(), "proc", 0, nullptr) != 0) return "no proc";
    const auto done = hook::DisableDeviceNodeModification(
        Root(), {.machine = folder_ / "params", .container = "/proc/version"}, warnings_);
    if (!done.ok()) return done.error().message();
    const std::string seen = Root().Read("/proc/version").value_or("cannot be read");
    return seen == "Mobile: 0\nModifyDeviceFiles: 0\n" ? "" : seen;
  });
}

TEST_F(HookOnMounts, WhatAUserMountedIsLeftAlone) {
  folder_.Write("volume/ld.so.cache", "the host's");
  InMountNamespace([&]() -> std::string {
    if (::mount((folder_ / "volume").c_str(), (folder_ / "root/etc").c_str(), nullptr, MS_BIND,
                nullptr) != 0)
      return "no mount";
    const auto updated = hook::UpdateLdCache(Root(), {"/drv"}, warnings_);
    if (!updated.ok()) return updated.error().message();
    const auto linked = hook::CreateSymlinks(Root(), {"target::/etc/link"}, warnings_);
    if (!linked.ok()) return linked.error().message();
    for (const std::string& message : warnings_.messages()) {
      if (message.find("on a separate mount") != std::string::npos) return "";
    }
    return "nothing was said";
  });
  EXPECT_THAT(*os::ListDirectory(folder_ / "volume"), ElementsAre("ld.so.cache"));
  EXPECT_EQ(*os::ReadFile(folder_ / "volume/ld.so.cache"), "the host's");
}

TEST_F(HookOnMounts, TheMachinesDeviceFilesAreLeftAlone) {
  fs::create_directories(folder_ / "root/dev");
  InMountNamespace([&]() -> std::string {
    if (::mount("/dev", (folder_ / "root/dev").c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
      return "no mount";
    const auto linked =
        hook::CreateSymlinks(Root(), {"target::/dev/penstock-test/link"}, warnings_);
    const auto changed = hook::ChangeModes(Root(), "700", {"/dev/null"}, warnings_);
    if (!linked.ok() || !changed.ok()) return "this keeps a container from starting";
    return warnings_.messages().size() == 2 ? "" : "nothing was said";
  });
  EXPECT_FALSE(os::Exists("/dev/penstock-test"));
}

TEST_F(HookOnMounts, TheContainersOwnDeviceFoldersGetTheirLinks) {
  fs::create_directories(folder_ / "root/dev");
  InMountNamespace([&]() -> std::string {
    if (::mount("tmpfs", (folder_ / "root/dev").c_str(), "tmpfs", 0, "mode=755") != 0)
      return "no mount";
    const auto linked = hook::CreateSymlinks(
        Root(), {"../card1::/dev/dri/by-path/pci-0000:38:00.0-card"}, warnings_);
    if (!linked.ok()) return linked.error().message();
    if (!warnings_.messages().empty()) return warnings_.messages().front();
    const std::string target =
        Root().ReadLink("/dev/dri/by-path/pci-0000:38:00.0-card").value_or("none");
    return target == "../card1" ? "" : target;
  });
}

TEST_F(HookOnMounts, AReadOnlyImageStartsAndIsReportedOf) {
  InMountNamespace([&]() -> std::string {
    const std::string root = folder_ / "root";
    if (::mount(root.c_str(), root.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
        ::mount("", root.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0)
      return "no mount";
    const auto updated = hook::UpdateLdCache(Root(), {"/drv"}, warnings_);
    if (!updated.ok()) return updated.error().message();
    if (const auto linked = hook::CreateSymlinks(Root(), {"a::/drv/b"}, warnings_); !linked.ok())
      return linked.error().message();
    return warnings_.messages().size() >= 2 ? "" : "nothing was said";
  });
  EXPECT_THAT(Cache(), ElementsAre("/usr/lib/libc.so.6"));
}

TEST_F(HookOnMounts, AProfileNamesTheContainersGpusAlone) {
  fs::create_directories(folder_ / "root/dev");
  for (const unsigned number : {1u, 5u}) {
    ASSERT_EQ(::mknod((folder_ / ("root/dev/nvidia" + std::to_string(number))).c_str(),
                      S_IFCHR | 0600, makedev(195, number)),
              0);
  }
  ASSERT_EQ(::mknod((folder_ / "root/dev/nvidiactl").c_str(), S_IFCHR | 0600, makedev(195, 255)),
            0);
  ASSERT_TRUE(hook::UpdateApplicationProfile(Root(), warnings_).ok());
  EXPECT_EQ(
      Root()
          .Read("/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf")
          .value_or("none"),
      R"({"profiles":[{"name":"_container_","settings":["EGLVisibleDGPUDevices",0x22]}],"rules":[{"pattern":[],"profile":"_container_"}]})");
  EXPECT_THAT(warnings_.messages(), IsEmpty());
}

}  // namespace
}  // namespace penstock
