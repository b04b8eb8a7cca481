// Which of dcgm-exporter's fields are shown, where a file or a ConfigMap says it: read, checked, followed. Applies nothing itself.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "door/cluster.h"
#include "os/loop.h"
#include "os/watch.h"

namespace penstock::app {

/// On the control loop; files are read on `io`. Of a source that is wrong, what it said before stays; of one that was never well, nothing
/// counts. What the ConfigMap says counts more than the file.
class CountersFollower {
 public:
  /// What counts now. `problem` is why a newer text does not; empty: there is none.
  struct State {
    std::vector<api::MetricRow> rows;  ///< empty: what the exporter shows by default
    std::string problem, problem_origin;
    bool operator==(const State&) const = default;
  };

  /// `changed` is called when state() has changed, later than Configure and Take.
  CountersFollower(os::Loop& control, base::Executor& io, std::function<void()> changed);
  ~CountersFollower();

  /// Reads the file that the configuration names at once: at the start, before somebody asks for the page. Blocks.
  void Begin(const api::TelemetryConfig& telemetry);

  /// Follows the file that this names from now on, and no other.
  void Configure(const api::TelemetryConfig& telemetry);

  /// What the ConfigMap says (door::ClusterDoor::Callbacks::counters).
  void Take(const door::WishedConfig& map);

  /// Reads the file again.
  void Reload();

  State state() const;

 private:
  /// What a text made.
  struct Source {
    std::vector<api::MetricRow> rows;  // of the last text that was well
    std::string of;                    // its path or name; empty: there was none
    std::string problem, origin;
    bool operator==(const Source&) const = default;
  };

  static void TakeText(const base::Result<std::string>& text, const std::string& name, Source& source);
  void FileRead(const std::string& path, const base::Result<std::string>& text);
  void Tell(const State& before);

  os::Loop& control_;
  base::Executor& io_;
  const std::function<void()> changed_;
  std::string path_, map_name_;
  Source file_, map_;
  std::unique_ptr<os::PathWatch> watch_;
  const std::shared_ptr<CountersFollower*> self_;  // null inside once destroyed: for functions on their way
};

}  // namespace penstock::app
