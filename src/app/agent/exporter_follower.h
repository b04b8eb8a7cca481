// Reads, validates and follows the file of settings of a vendor's exporter
// (telemetry.exporterFile).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "os/loop.h"
#include "os/watch/watch.h"

namespace penstock::app {

/// On the control loop; the file is read on `io`. If its text becomes invalid, what the last valid
/// one said stays in force.
class ExporterFollower {
 public:
  struct State {
    std::vector<api::MetricRow> rows;  ///< empty: the exporter's default
    api::ExporterSettings settings;
    std::optional<int> port;  ///< at which users of the exporter expect the page
    std::vector<std::string> remarks;
    std::string problem,
        problem_origin;  ///< why a newer text is not in force; empty: there is none
    bool operator==(const State&) const = default;
  };

  /// `changed` is called after state() has changed, asynchronously to Configure.
  ExporterFollower(os::Loop& control, base::Executor& io, std::function<void()> changed);

  /// Reads the configured file at once, so that it is in force before the first page is requested.
  /// Blocks.
  void Begin(const api::TelemetryConfig& telemetry);

  /// Follows the file that `telemetry` names, and no other.
  void Configure(const api::TelemetryConfig& telemetry);

  /// Reads the file again.
  void Reload();

  const State& state() const { return state_; }

 private:
  void FileRead(const base::Result<std::string>& text);
  void Notify(const State& before);
  void LogProblem(const std::string& before) const;

  os::Loop& control_;
  base::Executor& io_;
  const std::function<void()> changed_;
  std::string path_;
  State state_;
  std::unique_ptr<os::PathWatch> watch_;
  base::Lifetime lifetime_;
};

}  // namespace penstock::app
