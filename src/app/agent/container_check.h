// Tries once whether containers can open what the specifications for the kubelet promise: starts
// one with all devices by the kubelet's engine after each change of what decides on that.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "api/config/node_config.h"
#include "base/backoff.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "node/validate/container_files.h"
#include "node/validate/validate.h"
#include "os/loop.h"
#include "protocol/engine/cri/probe_container.h"

namespace penstock::app {

/// How containers of the kubelet are started here.
struct ContainerStart {
  std::string socket;       ///< of the engine
  std::string folder;       ///< of the specifications, as this process sees it
  std::string own_program;  ///< penstock-probe, as this process sees it
  std::string program;      ///< as the engine does
  std::string runtime;      ///< penstock-runtime, as the engine does
  bool installed = false;   ///< by this agent, for containers alone
  std::string instance;     ///< differs after each change of the engine or of the specifications
};

/// On the control loop; specifications are read on `io`, and the engine's answers are not waited
/// for. At rest it does nothing.
class ContainerCheck {
 public:
  /// What a container gets, and where.
  struct Target {
    ContainerStart start;
    std::string way;                   ///< how the kubelet's containers get devices; what another
                                       ///< way has shown does not count
    std::vector<std::string> devices;  ///< qualified; ids where `handler` or `files` give them
    bool by_annotation = false;
    std::vector<protocol::engine::cri::ProbeContainer::Device> files;
    std::map<std::string, std::string> environment;
    std::string handler;                ///< of the engine, that reads `environment`
    std::vector<std::string> promised;  ///< device files; empty: what the specifications promise
    std::string instance;               ///< of the drivers, as of ContainerStart
  };

  struct Times {
    base::Duration patience =
        std::chrono::seconds(10);  ///< the node waits so long for the first answer
    base::Duration apart = std::chrono::seconds(30);    ///< between two containers: changes come in
                                                        ///< groups
    base::Duration failure = std::chrono::seconds(30);  ///< after that it is tried again, at first
    base::Duration nothing = std::chrono::seconds(1);   ///< likewise, where nothing is known
    base::Duration most = std::chrono::minutes(10);     ///< of both
    base::Duration ended = std::chrono::seconds(30);    ///< at most, while a kubelet may have ended
                                                        ///< it by chance
    base::Duration late = std::chrono::seconds(30);     ///< at least, after one that did not end:
                                                        ///< not within one busy time
    base::Duration kubelet = std::chrono::seconds(2);   ///< how often a kubelet looks for what is
                                                        ///< no pod's (housekeepingPeriod)
  };

  /// `changed`: facts() have changed, or Follow would start a container now.
  ContainerCheck(os::Loop& control, base::Executor& io, std::function<void()> changed)
      : ContainerCheck(control, io, std::move(changed), Times()) {}
  ContainerCheck(os::Loop& control, base::Executor& io, std::function<void()> changed,
                 const Times& times);
  ~ContainerCheck();
  ContainerCheck(const ContainerCheck&) = delete;
  ContainerCheck& operator=(const ContainerCheck&) = delete;

  /// With validation.container off none is started, and what was found is forgotten. A report
  /// follows each configuration.
  void Configure(const api::NodeConfig& config);

  /// Call with each report while all that a container needs is there. `changing`: a change of
  /// devices or drivers is under way, and none is started meanwhile; one that runs is given up, and
  /// a failure is tried again as soon as the change has ended.
  void Follow(Target target, bool changing);

  /// Call with each other report: a container that runs shows nothing any more, and is given up.
  void GiveUp();

  const node::validate::ContainerFacts& facts() const { return facts_; }

 private:
  using State = node::validate::ContainerFacts::State;
  void Abandon(const std::string& why);
  void Wait();
  void Begin();
  void Try(const base::Result<node::validate::PromisedFiles>& promised);
  void Run(bool with_devices);
  void Answered(bool with_devices, const protocol::engine::cri::ProbeAnswer& answer);
  void Late();
  void Decide(State state, std::vector<std::string> why);
  void Undecided(std::string why);
  void Ended(const std::string& text);
  void Unknown(std::string why, base::Duration again);
  void Forget();
  void AgainAt(base::TimePoint time);
  void Show(State state, std::vector<std::string> why);

  os::Loop& control_;
  base::Executor& io_;
  const std::function<void()> changed_;
  const Times times_;
  bool enabled_ = true;
  std::string log_folder_;
  std::string way_;
  Target target_;
  std::string wanted_, tried_, passed_;  // instances: of the target, of the last container, and of
                                         // the last one that opened all
  Target used_;                          // by the last container
  bool changing_ = false;
  bool waited_ = false;  // the node, for the first answer
  bool busy_ = false;
  std::uint64_t round_ = 0;  // of what is busy; a former one has been given up
  std::unique_ptr<protocol::engine::cri::ProbeRun> run_;
  node::validate::PromisedFiles promised_;
  std::size_t unserved_ = 0;  // of them
  bool compared_ = false;     // one without devices has started
  bool late_ = false;         // the one with devices has not ended in time
  int late_runs_ = 0;         // in a row, while one without devices has
  int ended_runs_ = 0;        // in a row, that another program has ended
  std::optional<base::TimePoint> began_;
  base::TimePoint next_{};  // no container before that
  base::Backoff after_failure_, after_nothing_;
  std::minstd_rand random_{std::random_device{}()};
  std::string remark_;  // why nothing is known yet
  base::TimerId timer_ = 0, patience_ = 0;
  node::validate::ContainerFacts facts_;
  base::Lifetime lifetime_;
};

}  // namespace penstock::app
