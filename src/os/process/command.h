// Runs a program to its end on a loop: text in, text out, with a deadline.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "os/loop.h"
#include "os/process/process.h"

namespace penstock::os {

/// One run of a program. Use on the loop's thread. The destructor kills the program; `done` is not
/// called after it.
class Command {
 public:
  struct Options {
    SpawnOptions spawn;  ///< descriptors 0, 1 and 2 are set by Command
    std::string input;   ///< passed to its standard input
    base::Duration deadline = std::chrono::seconds(10);
    std::size_t most_output = 64u << 10;  ///< further output is dropped
    bool errors_apart = false;            ///< keep standard error apart from the output
  };
  struct Outcome {
    int status = 0;      ///< exit status, or 128 + the signal that ended it
    std::string output;  ///< standard output, with standard error mixed in unless it is kept apart
    std::string errors;  ///< standard error, if it is kept apart
  };
  using Done = std::function<void(base::Result<Outcome>)>;

  /// Starts the program. `done` is called once, later: with the outcome, whatever the status; with
  /// kDeadlineExceeded if the program was killed at the deadline; with Spawn's error if it could
  /// not be started. Processes that the program leaves running are not killed.
  Command(Loop& loop, Options options, Done done);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// What a program said at last: up to three lines that are not empty, joined into one of at most
/// about 400 bytes.
std::string LastLines(const std::string& output);

}  // namespace penstock::os
