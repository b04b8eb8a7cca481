// Writes the node's labels to a file in Node Feature Discovery's features.d folder. Decides no
// label.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "node/label/labels.h"

namespace penstock::adapter::cluster {

/// Keeps the file at `path` equal to the labels. Writes atomically on the I/O executor, less than a
/// second after a change, and only where the content differs; creates the folder if it is missing.
/// Writes nothing before there are labels. The file stays when this object ends, so that a restart
/// does not remove the node's labels in between (DP#796). A failed write is logged and retried
/// after at most one minute. Use on the control executor.
class FeaturesFile {
 public:
  FeaturesFile(base::Executor& control, base::Executor& io, node::label::Labels& labels,
               std::string path);
  ~FeaturesFile();

  /// Why the file is not up to date; empty if it is, or if nothing is known yet.
  const std::string& problem() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Removes the file of a former configuration, which NFD would go on publishing, on `io`, after
/// what was posted there before. Not through a link in place of its folder, nor where another user
/// can change that. Logs what it does, and why it cannot.
/// `now`: that of the configuration now, which may be the same one by another path; empty: none.
void RemoveFeaturesFile(base::Executor& io, std::string path, std::string now);

}  // namespace penstock::adapter::cluster
