// Simulates a machine in a folder: processes as /proc shows them, and listening sockets. For tests
// only.
#pragma once

#include <cstring>
#include <filesystem>
#include <list>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/core/fd.h"
#include "os/testing/temporary_folder.h"

namespace penstock::protocol::engine {

/// Has its first process from the start. The machine's files are below files(), and the folder
/// itself is in both, so that a path in it means the same from inside and from outside.
class FakeMachine {
 public:
  FakeMachine() {
    ::umask(0022);  // files made from here on are closed to others, whatever the user's umask is
    std::filesystem::create_directories(files());
    std::filesystem::permissions(files(), static_cast<std::filesystem::perms>(0755));
    Process(1, "/sbin/init", "/sbin/init");
  }

  std::string proc() const { return folder_ / "proc"; }
  std::string files() const { return folder_ / "files"; }
  std::string operator/(const std::string& below) const { return folder_ / below; }

  /// Makes this process see the files that the machine's first process sees.
  void SeeItsFiles() { folder_.Link("proc/self/ns/mnt", "mnt:[1]"); }

  /// Adds a process of the machine. `program` is a path in it, `arguments` are separated by blanks.
  void Process(int pid, const std::string& program, std::string arguments) {
    const std::string process = "proc/" + std::to_string(pid);
    if (pid != 1) std::filesystem::remove_all(folder_ / process);
    for (char& c : arguments)
      if (c == ' ') c = '\0';
    folder_.Write(process + "/cmdline", arguments + '\0');
    Users(pid, std::to_string(::geteuid()));
    Cgroup(pid, "/system.slice/x.service");
    for (const std::string kind : {"user", "pid", "mnt"}) Namespace(pid, kind, kind + ":[1]");
    // The same path has to name the file for this process, where the link is followed, and for the
    // machine, where it is checked.
    const std::string path = ProgramHere(program);
    for (const std::string& file : {"programs" + program, "files" + path}) {
      folder_.Write(file, "");
      std::filesystem::permissions(folder_ / file, static_cast<std::filesystem::perms>(0755));
    }
    folder_.Link(process + "/exe", path);
    folder_.Link(process + "/root", files());
  }
  void Namespace(int pid, const std::string& kind, const std::string& is) {
    const std::string link = "proc/" + std::to_string(pid) + "/ns/" + kind;
    std::filesystem::remove(folder_ / link);
    folder_.Link(link, is);
  }
  /// Sets the real, effective, saved and file system user ids.
  void Users(int pid, const std::string& real,
             const std::string& others = std::to_string(::geteuid())) {
    folder_.Write("proc/" + std::to_string(pid) + "/status", "Name:\tx\nUid:\t" + real + "\t" +
                                                                 others + "\t" + others + "\t" +
                                                                 others + "\nGid:\t0\t0\t0\t0\n");
  }
  void Cgroup(int pid, const std::string& cgroup) {
    folder_.Write("proc/" + std::to_string(pid) + "/cgroup", "0::" + cgroup + "\n");
  }
  /// The path of a process's executable, as this process sees it.
  std::string ProgramHere(const std::string& program) const {
    return folder_ / "programs" + program;
  }
  /// Writes a file as the machine's first process sees it.
  void File(const std::string& path, const std::string& text) {
    folder_.Write("files" + path, text);
  }

  /// Listens at this path of ours and creates the folders in it; returns it.
  std::string Listen(const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    EXPECT_LT(path.size(), sizeof(address.sun_path));
    std::memcpy(address.sun_path, path.c_str(), path.size());
    os::UniqueFd& socket =
        listeners_.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0)
        << path;
    EXPECT_EQ(::listen(socket.get(), 8), 0);
    return path;
  }
  void StopListening() { listeners_.clear(); }

 private:
  os::TemporaryFolder folder_;
  std::list<os::UniqueFd> listeners_;
};

}  // namespace penstock::protocol::engine
