// Writes usage records and the usage state to disk, and queues records while they cannot be
// written.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"
#include "node/usage/record_files.h"
#include "node/usage/state.h"

namespace penstock::node::usage {

/// On the control executor; files are written on the I/O executor. Each write first saves the state
/// together with the pending lines, and then appends the lines to the files. After a crash between
/// the two, the next agent knows the pending lines and finds by the end of the files which were
/// written. A failure (a full disk) is logged once and retried with growing delays of up to a
/// minute. The pending lines are limited to kMaxPendingBytes, or to kMaxBurstBytes while no write
/// has failed; beyond that the oldest checkpoints are dropped, then the oldest other lines, and the
/// dropped lines are counted.
class Recorder {
 public:
  struct Options {
    std::string folder, state_path;
    RecordFiles::Limits limits;
  };
  /// `state` returns the state to write, without its pending lines.
  Recorder(base::Executor& control, base::Executor& io, Options options,
           std::function<State()> state, std::function<void()> changed);
  /// Calls End, if that was not called.
  ~Recorder();

  /// Writes the state with the lines that were not written yet, and nothing after that; returns the
  /// text of the state. Blocks.
  base::Result<std::string> End();

  void SetLimits(RecordFiles::Limits limits);

  /// Adds the pending lines of the previous agent that are missing in the files. Blocks.
  void Recover(const std::vector<std::string>& lines);

  void Add(std::string line, bool is_checkpoint);

  /// The state has changed: writes it within two seconds.
  void Touch();

  const RecordCounts& counts() const;

  /// For a query over all records: runs `function` on the I/O executor with the existing files and
  /// the lines that are not in them yet.
  void Read(std::function<void(LineReader files, std::vector<std::string> pending)> function) const;

  static constexpr std::size_t kMaxPendingBytes = 2u << 20, kMaxBurstBytes = 4u << 20;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace penstock::node::usage
