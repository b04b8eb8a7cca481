// A container engine that gives configurable answers to CRI's Version and Status. For tests only.
#pragma once

#include <memory>
#include <string>

namespace penstock::protocol::engine::cri {

class FakeEngine {
 public:
  struct Says {
    std::string name = "containerd";
    std::string version = "1.7.24";
    std::string config = R"({"enableCDI":true,"cdiSpecDirs":["/etc/cdi","/var/run/cdi"]})";
    bool no_such_service = false;  ///< as containerd without its CRI plugin
    bool silent = false;           ///< it accepts calls and never answers
  };
  explicit FakeEngine(std::string socket);
  ~FakeEngine();

  /// Listens, with a new socket file.
  void Start(Says says);
  /// Stops and removes its socket.
  void Stop();
  /// Returns how many times Status was called since construction.
  int asked() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::protocol::engine::cri
