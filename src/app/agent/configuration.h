// The configuration in force: what the agent was started with, its file as it changes, and above both the cluster's wish. Applies nothing
// itself: whoever depends on a value follows what is published.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/config_change.h"
#include "api/node_config.h"
#include "api/report.h"
#include "app/agent/counters_follower.h"
#include "app/kept_configuration.h"
#include "app/options.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "base/published.h"
#include "door/cluster.h"
#include "node/metrics/metrics.h"
#include "os/kept_file.h"
#include "os/loop.h"
#include "os/watch.h"

namespace penstock::app {

/// Of api::NodeConfig, only what a running agent can change differs from one to the next (api::KeepUntilRestart). Its telemetry.counters
/// are those that count, wherever they are said.
struct CurrentConfig {
  api::NodeConfig config;
  api::ConfigurationReport report;
};

/// What a text would do: everything is computed, nothing changed.
struct Proposal {
  api::NodeConfig config;            ///< as it would be in force at once
  api::NodeConfig after_restart;     ///< as it would be after the agent's next start
  std::vector<api::Change> changes;  ///< from what is in force to `after_restart`
  std::vector<std::string> not_yet, remarks;
  std::string origin;
};

/// On the control loop, all of it; files are read and written on `io`.
class Configuration {
 public:
  /// `start` is what ResolveAll(settings) gave when the agent started: it is in force until something else is.
  Configuration(os::Loop& control, base::Executor& io, Settings settings, Resolved start);
  ~Configuration();

  /// Begins to follow the file, if there is one.
  void Follow();

  /// From now on what is applied is kept in the state folder for the next agent; `kept` is what the one before us left there. Where
  /// `config_map` is to say what counts, what it said last is in force until the API server has answered. Once, by who holds the lock.
  void Serve(KeptConfiguration kept, const api::ConfigMapConfig& config_map);

  /// The ConfigMap that is to say what counts and of which nothing is known, neither from the API server nor from disk, "ConfigMap
  /// gpu/config"; empty where what is in force is what is to be. What is in force is then the agent's own.
  const std::string& unknown() const { return unknown_; }

  /// The cluster's wish has changed (door::ClusterDoor::Callbacks::wished). Its text stands in the place of the file; no text: the file
  /// counts. A problem, in the wish or in its text, leaves in force what is.
  void Wish(const door::WishedConfig& wish);

  /// What the cluster says of which counters are shown (door::ClusterDoor::Callbacks::counters).
  void WishCounters(const door::WishedConfig& wish) { counters_.Take(wish); }

  /// Reads the files now (SIGHUP).
  void Reload();

  base::Published<CurrentConfig>& published() { return published_; }
  const base::Published<CurrentConfig>& published() const { return published_; }
  /// For the metrics page. A new text counts as applied also where it changes nothing.
  const node::metrics::ConfigReloads& reloads() const { return reloads_; }

  /// What this text would do in the place of the file or the wish; for `penstock plan FILE`. kInvalidArgument tells all that is wrong.
  base::Result<Proposal> Propose(std::string_view text, const std::string& name) const { return Proposing(std::string(text), name)(); }

  /// The same of what counts now, file or wish, also where it was refused. Does not read the file.
  base::Result<Proposal> ProposeCurrent() const { return Proposing({}, "")(); }

  /// Propose, or ProposeCurrent where there is no text, of this moment; the function may be called on any thread, at any time.
  std::function<base::Result<Proposal>()> Proposing(std::optional<std::string> text, const std::string& name) const;

 private:
  /// A text and where it came from, or why there is none.
  struct Source {
    std::string origin;
    std::string name;  ///< for errors: a path, "ConfigMap ns/name, key any"
    base::Result<std::string> text = std::string();
    bool wished = false;
  };

  /// What a proposal follows from beside its text.
  struct Basis {
    Settings settings;
    api::NodeConfig started_with, below, own, said;
  };

  void Read(bool force);
  void FileRead(base::Result<std::string> text, bool force);
  base::Result<Resolved> ReadOwn() const;
  bool WishFails() const { return wish_ && !wish_->problem.empty(); }
  Source Now() const;
  /// Takes what counts now, if it can be taken.
  void Consider();
  void Apply(const Proposal& proposal, bool wished);
  void Refuse(const Source& source, const std::string& problem);
  /// What the agent before us kept of the ConfigMap counts until the API server has answered.
  void Recall(const KeptText& kept);
  /// The wish can be used: it is known now what the ConfigMap says, and kept.
  void WishIsKnown();
  void Keep(std::optional<KeptText> KeptConfiguration::*which, KeptText text);
  void Publish(api::NodeConfig config);
  void CountersChanged();
  bool Well() const { return !WishFails() && refused_.empty() && counters_.state().problem.empty(); }
  Basis MakeBasis() const;
  static base::Result<Proposal> Propose(const Basis& basis, const Source& source);
  static base::Result<Proposal> ProposeWish(const Basis& basis, const Source& source, Resolved next);

  os::Loop& control_;
  base::Executor& io_;
  const Settings settings_;
  const api::NodeConfig started_with_;
  Source file_;
  api::NodeConfig below_;  // of the file where it is a NodeConfig: what a device plugin's text in the cluster is put on top of
  api::NodeConfig own_;    // what the file makes, the last time that it was well
  std::optional<door::WishedConfig> wish_;
  bool file_read_ = false;
  bool wish_in_force_ = false;
  bool recalled_ = false;  // wish_ is what the agent before us kept: the API server has not answered yet
  std::string unknown_;
  KeptConfiguration kept_;
  std::optional<os::KeptFile> keeper_;
  api::ConfigurationReport in_force_;     // without a problem
  std::string refused_, refused_origin_;  // why what counts now is not in force
  api::NodeConfig said_;                  // what is in force, as it was said: without what the file of counters says
  CountersFollower counters_;
  CountersFollower::State counters_state_;  // as it was published last
  base::Published<CurrentConfig> published_;
  node::metrics::ConfigReloads reloads_;
  std::unique_ptr<os::PathWatch> watch_;
  const std::shared_ptr<Configuration*> self_;  // null inside once destroyed: for functions on their way
};

}  // namespace penstock::app
