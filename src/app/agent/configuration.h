// Determines the configuration in force from the settings at the start, the configuration file as
// it changes, and the remote configuration from the cluster, and publishes it. Other parts apply
// it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/compat/nvidia/deploy_labels.h"
#include "api/config/config_change.h"
#include "api/config/node_config.h"
#include "api/config/remote_config.h"
#include "api/report.h"
#include "app/agent/counters_follower.h"
#include "app/agent/exporter_follower.h"
#include "app/kept_configuration.h"
#include "app/options.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "base/published.h"
#include "node/metrics/metrics.h"
#include "os/kept_file.h"
#include "os/loop.h"
#include "os/watch/watch.h"

namespace penstock::app {

/// A configuration in force. From one to the next, only settings that a running agent can change
/// differ (api::KeepUntilRestart). telemetry.counters holds the counters in force, from whatever
/// source.
struct CurrentConfig {
  api::NodeConfig config;
  api::ConfigurationReport report;
};

/// What a text would change. Nothing is applied.
struct Proposal {
  api::NodeConfig config;                  ///< as it would be in force at once
  api::NodeConfig after_restart;           ///< as it would be after the agent's next start
  std::vector<api::ConfigChange> changes;  ///< from the configuration in force to `after_restart`
  std::vector<std::string> not_yet, remarks;
  std::string origin;
};

/// On the control loop; files are read and written on `io`.
class Configuration {
 public:
  /// `start` is the result of ResolveAll(settings) at the start of the agent; it is in force until
  /// another configuration is. `labels_take`: in a cluster, what waits for the Node's labels for
  /// longer than that after Serve is a remark.
  Configuration(os::Loop& control, base::Executor& io, Settings settings, Resolved start,
                base::Duration labels_take = std::chrono::seconds(10));

  /// Starts to follow the file, if there is one.
  void Follow();

  /// From now on saves the applied configuration in the state folder for the next agent; `kept` is
  /// what the previous agent saved there. If `config_map` names a ConfigMap, its last saved content
  /// is in force until the API server has answered. Call once, when holding the lock.
  void Serve(KeptConfiguration kept, const api::ConfigMapConfig& config_map);

  /// Names the configured ConfigMap while its content is unknown, from the API server as well as
  /// from disk, as "ConfigMap gpu/config"; empty otherwise. While it is unknown, the agent's own
  /// configuration is in force.
  const std::string& unknown() const { return unknown_; }

  /// Sets the remote configuration (ClusterAdapter::Callbacks::remote). Its text replaces that of
  /// the file; without a text the file applies. If the remote configuration or its text has a
  /// problem, the configuration in force stays.
  void SetRemote(const api::RemoteConfig& remote);

  /// Sets the cluster's selection of counters (ClusterAdapter::Callbacks::counters).
  void SetRemoteCounters(const api::RemoteConfig& remote) { counters_.Take(remote); }

  /// Sets which services the Node's labels switch off: what is published is without them, whatever
  /// the source of the configuration. In a cluster, containers.configureEngine is off until the
  /// first call.
  void SetServices(const api::compat::NodeServices& services);
  /// Whether SetServices was called, or there is no Node whose labels could say.
  bool services_known() const { return services_known_; }

  /// Reads the files now (SIGHUP).
  void Reload();

  base::Published<CurrentConfig>& published() { return published_; }
  const base::Published<CurrentConfig>& published() const { return published_; }
  /// For the metrics page. A new text counts as applied even if it changes nothing.
  const node::metrics::ConfigReloads& reloads() const { return reloads_; }

  /// What this text would change if it replaced the file or the remote configuration; for `penstock
  /// plan FILE`. Returns kInvalidArgument with all errors of the text.
  base::Result<Proposal> Propose(std::string_view text, const std::string& name) const {
    return Proposing(std::string(text), name)();
  }

  /// Propose; without a text for the current file or remote configuration, even if it was refused.
  /// Based on the present state; the returned function may be called on any thread, at any time,
  /// and does not read the file.
  std::function<base::Result<Proposal>()> Proposing(std::optional<std::string> text,
                                                    const std::string& name) const;

 private:
  /// A text and its origin, or why there is no text.
  struct Source {
    std::string origin;
    std::string name;  ///< in errors: a path, "ConfigMap ns/name, key any"
    base::Result<std::string> text = std::string();
    bool remote = false;
  };

  /// The inputs of a proposal other than its text.
  struct Basis {
    Settings settings;
    api::NodeConfig started_with, below, own, current;
  };

  void Read(bool force);
  void FileRead(base::Result<std::string> text, bool force);
  base::Result<Resolved> ReadOwn() const;
  bool RemoteFails() const { return remote_ && !remote_->problem.empty(); }
  Source Now() const;
  /// Applies the current source, if it is valid.
  void Consider();
  void Apply(const Proposal& proposal, bool remote);
  void Refuse(const Source& source, const std::string& problem);
  /// Applies what the previous agent saved of the ConfigMap, until the API server has answered.
  void Recall(const KeptText& kept);
  /// The remote configuration is usable: its content is now known, and saved.
  void RemoteIsKnown();
  void Keep(std::optional<KeptText> KeptConfiguration::*which, KeptText text);
  void Publish(api::NodeConfig config);
  void CountersChanged();
  void ExporterChanged();
  /// What is written into an engine's files stays there: off until the Node's labels are known.
  void HoldEngine(CurrentConfig& current);
  /// Adds what the exporter's file of settings says.
  void AddExporterSettings(CurrentConfig& current) const;
  bool Healthy() const {
    return !RemoteFails() && refused_.empty() && counters_.state().problem.empty() &&
           exporter_.state().problem.empty();
  }
  Basis MakeBasis() const;
  static base::Result<Proposal> Propose(const Basis& basis, const Source& source);
  static base::Result<Proposal> ProposeRemote(const Basis& basis, const Source& source,
                                              Resolved next);

  os::Loop& control_;
  base::Executor& io_;
  const Settings settings_;
  const api::NodeConfig started_with_;
  Source file_;
  api::NodeConfig below_;  // the file's configuration if it is a NodeConfig: the base for a device
                           // plugin's text in the cluster
  api::NodeConfig own_;    // the file's configuration when it was last valid
  std::optional<api::RemoteConfig> remote_;
  bool file_read_ = false;
  bool remote_in_force_ = false;
  // remote_ is what the previous agent saved: the API server has not answered yet.
  bool recalled_ = false;
  std::string unknown_;
  KeptConfiguration kept_;
  std::optional<os::KeptFile> writer_;
  api::ConfigurationReport in_force_;     // without a problem
  std::string refused_, refused_origin_;  // why the current source is not in force
  // The configuration in force, without the rows of the counters file.
  api::NodeConfig current_;
  api::compat::NodeServices services_;
  bool services_known_;
  const base::Duration labels_take_;
  bool labels_late_ = false;   // they have taken longer than that
  bool engine_waits_ = false;  // for them, as was logged
  CountersFollower counters_;
  CountersFollower::State counters_state_;  // as last published
  ExporterFollower exporter_;
  ExporterFollower::State exporter_state_;  // as last published
  base::Published<CurrentConfig> published_;
  node::metrics::ConfigReloads reloads_;
  std::unique_ptr<os::PathWatch> watch_;
  base::Lifetime lifetime_;
};

}  // namespace penstock::app
