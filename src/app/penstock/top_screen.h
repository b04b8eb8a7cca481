// A terminal that a program draws on for a while: its modes, its size, signals and keys. Knows nothing of what is drawn.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/penstock/top_frame.h"
#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::app {

/// One at a time. While it lives the terminal shows another screen without a cursor and gives single keys; whatever ends the program but
/// SIGKILL, the terminal is then as it was.
class TopScreen {
 public:
  /// kFailedPrecondition where the descriptors are no terminal that can do this.
  static base::Result<std::unique_ptr<TopScreen>> Open(int in, int out);
  ~TopScreen();
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;

  /// Whether these can be opened: terminals, and not the dumb one.
  static bool Possible(int in, int out);

  TopSize size() const;

  /// Shows the lines from the top. Nothing where the terminal has gone: Wait will tell.
  void Draw(const std::vector<std::string>& lines);

  struct News {
    std::string keys;         ///< as the terminal sent them
    bool ready = false;       ///< the other descriptor is
    bool resized = false;     ///< or shown again after it was stopped: draw anew
    std::optional<int> ends;  ///< a signal that ends the program; or 0: the terminal has gone
  };
  /// Waits for any of these, at most so long. `other` -1: none. Ctrl-Z stops the program inside this call, until it is continued.
  News Wait(int other, base::Duration most);

 private:
  struct State;
  explicit TopScreen(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Ends the program as this signal would have.
[[noreturn]] void EndBySignal(int signal);

}  // namespace penstock::app
