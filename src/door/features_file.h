// Labels out of the door as a file of Node Feature Discovery's features.d folder. Decides no label.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "node/label/labels.h"

namespace penstock::door {

/// The file at `path`, kept as the labels are: written atomically on the I/O executor, in under a second of a change, and only where it
/// says something else. Nothing is touched before there are labels, and the file stays when this object ends: who starts again must not
/// take the node's labels away in between (DP#796). Its folder is made where it is missing. What fails is logged and tried again, at the
/// latest after a minute. On the control executor.
class FeaturesFile {
 public:
  FeaturesFile(base::Executor& control, base::Executor& io, node::label::Labels& labels, std::string path);
  ~FeaturesFile();

  /// Why the file is not what it should be; empty where it is, or nothing is known yet.
  const std::string& problem() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::door
