// A container engine for tests: gives configurable answers to CRI's Version and Status, and
// pretends to run containers.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace penstock::protocol::engine::cri {

class FakeEngine {
 public:
  struct Says {
    std::string name = "containerd";
    std::string version = "1.7.24";
    std::string config = R"({"enableCDI":true,"cdiSpecDirs":["/etc/cdi","/var/run/cdi"]})";
    bool no_such_service = false;  ///< as containerd without its CRI plugin
    bool silent = false;           ///< it accepts calls and never answers
    bool pinned = true;            ///< it says that the image of its sandboxes is kept
    std::string refuses;           ///< the error of a container with CDI devices
    std::string refuses_once;      ///< likewise, of the next one alone
    std::string refuses_all;       ///< the error of every container
    std::string refuses_handler;   ///< the error of a sandbox that a handler would start
    bool keeps_sandboxes = false;  ///< none can be removed
    bool slow = false;             ///< what the program says is kept until a change
    bool ends_sandboxes = false;   ///< as a kubelet that finds them: before the container is made
    bool collects = false;         ///< as a kubelet that takes containers that have not started for
                                   ///< garbage
    bool hangs = false;            ///< containers with CDI devices do not start in time
    bool hangs_all = false;        ///< nor does any other
    std::string no_exec;           ///< the error of a program in a container that has been stopped
    int exit_code = 0;             ///< of the program in it
    std::map<std::string, int> errors;  ///< of files that do not open in a container: errno
  };
  struct Container {
    std::string image, program;  ///< of the host, in the place of the container's program
    std::vector<std::string> command;
    std::vector<std::string> devices;  ///< CDI
    std::string annotations;           ///< "KEY=VALUE"
    std::vector<std::string> files;    ///< that the program in it was asked to open
    std::string cgroup_parent, owner;  ///< of its sandbox
    std::string files_given;           ///< "HOST:CONTAINER:PERMISSIONS " of each
    std::string environment;           ///< "NAME=VALUE " of each
    std::string handler;               ///< of its sandbox
    std::string uid;                   ///< of its sandbox, as of a pod
    std::map<std::string, std::string> labels;
    std::string log;        ///< its path on the host
    bool confined = false;  ///< one capability, nothing to write, no other network
    std::chrono::steady_clock::time_point at;  ///< when it was asked
  };
  explicit FakeEngine(std::string socket);
  ~FakeEngine();

  /// Listens, with a new socket file.
  void Start(Says says);
  /// Stops and removes its socket.
  void Stop();
  /// From now on it says this.
  void Change(const std::function<void(Says&)>& change);
  /// Returns how many times Status was called since construction.
  int asked() const;
  /// The containers that it was asked to create since construction.
  std::vector<Container> containers() const;
  /// How many programs have been started whose output is kept.
  int waiting() const;
  /// How many sandboxes exist.
  std::size_t sandboxes() const;
  /// Adds one with this label and uid, as a former run would have left it.
  void Leave(const std::string& owner, const std::string& uid = "penstock-proof1");

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::protocol::engine::cri
