// Reads, validates and follows the list of dcgm-exporter's fields to show, from a file or a
// ConfigMap.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "api/config/remote_config.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "os/loop.h"
#include "os/watch/watch.h"

namespace penstock::app {

/// On the control loop; files are read on `io`. If the text of a source becomes invalid, its last
/// valid rows stay; a source that was never valid is ignored. The ConfigMap takes precedence over
/// the file.
class CountersFollower {
 public:
  /// The rows in force. `problem` is why a newer text is not; empty: there is none.
  struct State {
    std::vector<api::MetricRow> rows;  ///< empty: the exporter's default
    std::string problem, problem_origin;
    bool operator==(const State&) const = default;
  };

  /// `changed` is called after state() has changed, asynchronously to Configure and Take.
  CountersFollower(os::Loop& control, base::Executor& io, std::function<void()> changed);

  /// Reads the configured file at once, so that it is in force before the first page is requested.
  /// Blocks.
  void Begin(const api::TelemetryConfig& telemetry);

  /// Follows the file that `telemetry` names, and no other.
  void Configure(const api::TelemetryConfig& telemetry);

  /// Sets the ConfigMap's content (ClusterAdapter::Callbacks::counters).
  void Take(const api::RemoteConfig& map);

  /// Reads the file again.
  void Reload();

  State state() const;

 private:
  /// The result of a text.
  struct Source {
    std::vector<api::MetricRow> rows;  // of the last valid text
    std::string of;                    // path or name of that text; empty: none
    std::string problem, origin;
    bool operator==(const Source&) const = default;
  };

  static void TakeText(const base::Result<std::string>& text, const std::string& name,
                       Source& source);
  void FileRead(const std::string& path, const base::Result<std::string>& text);
  void Notify(const State& before);

  os::Loop& control_;
  base::Executor& io_;
  const std::function<void()> changed_;
  std::string path_, map_name_;
  Source file_, map_;
  std::unique_ptr<os::PathWatch> watch_;
  base::Lifetime lifetime_;
};

}  // namespace penstock::app
