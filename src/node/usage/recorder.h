// Gets records and the state behind them onto the disk, and keeps what cannot be written yet. Knows nothing of what is in a line.
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

/// On the control executor; files are written on the I/O executor. First the state with the lines that are to be written, then the lines:
/// after a crash between the two the next agent knows them, and finds out by the files' ends which are there. A failure (a full disk) is
/// said once and tried again, ever more seldom, up to every minute; lines that wait are bounded by kMostPendingBytes, or kMostBurstBytes
/// where nothing failed, then the oldest checkpoints go, then the oldest others, counted.
class Recorder {
 public:
  struct Options {
    std::string folder, state_path;
    RecordFiles::Limits limits;
  };
  /// `state` answers what is to be kept now, but for its pending lines.
  Recorder(base::Executor& control, base::Executor& io, Options options, std::function<State()> state, std::function<void()> changed);
  /// End, where that was not called.
  ~Recorder();

  /// Writes the state with what could not be written any more, and nothing after that; returns its text. Blocks.
  base::Result<std::string> End();

  void SetLimits(RecordFiles::Limits limits);

  /// Lines of an agent before us that it may have written or not. Blocks.
  void Recover(const std::vector<std::string>& lines);

  void Add(std::string line, bool is_checkpoint);

  /// The state has changed: it is written within two seconds.
  void Touch();

  const RecordCounts& counts() const;

  /// For a look at all records: `function` runs on the I/O executor with the files there are and the lines that are in none of them yet.
  void Read(std::function<void(LineReader files, std::vector<std::string> pending)> function) const;

  static constexpr std::size_t kMostPendingBytes = 2u << 20, kMostBurstBytes = 4u << 20;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace penstock::node::usage
