// A container engine that answers CRI's Version and Status as a test says. For tests only.
#pragma once

#include <memory>
#include <string>

namespace penstock::edge::engine::cri {

class FakeEngine {
 public:
  struct Says {
    std::string name = "containerd";
    std::string version = "1.7.24";
    std::string config = R"({"enableCDI":true,"cdiSpecDirs":["/etc/cdi","/var/run/cdi"]})";
    bool no_such_service = false;  ///< as containerd without its CRI plugin
    bool silent = false;           ///< it takes calls and never answers
  };
  explicit FakeEngine(std::string socket);
  ~FakeEngine();

  /// Listens, with a new socket file.
  void Start(Says says);
  /// Ends and takes its socket away.
  void Stop();
  /// How many times Status was asked since it was made.
  int asked() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::edge::engine::cri
