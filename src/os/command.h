// A program run to its end on a loop: text in, text out, a deadline. Knows nothing of what it does.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "os/loop.h"
#include "os/process.h"

namespace penstock::os {

/// One run. On the loop's thread. The destructor kills the program; `done` is not called after it.
class Command {
 public:
  struct Options {
    SpawnOptions spawn;  ///< its descriptors 0, 1 and 2 are ours to choose
    std::string input;   ///< what it reads from its standard input
    base::Duration deadline = std::chrono::seconds(10);
    std::size_t most_output = 64u << 10;  ///< what it writes beyond is dropped
    bool errors_apart = false;            ///< standard error is not what the output is mixed with
  };
  struct Outcome {
    int status = 0;      ///< exit status, or 128 + the signal that ended it
    std::string output;  ///< standard output and, unless it is kept apart, error as they came
    std::string errors;  ///< standard error, where it is kept apart
  };
  using Done = std::function<void(base::Result<Outcome>)>;

  /// Starts it. `done` is called once, later: with the outcome whatever the status is; kDeadlineExceeded where it was killed for being
  /// late; what Spawn says where it could not be started. What a program leaves running behind it is left alone.
  Command(Loop& loop, Options options, Done done);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::os
