// A full-screen terminal for a program: its modes, its size, signals and keys.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/penstock/top/top_frame.h"
#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::app {

/// Only one may exist at a time. While it exists, the terminal shows the alternate screen without a
/// cursor and delivers single keys. The terminal is restored however the program ends, except by
/// SIGKILL.
class TopScreen {
 public:
  /// kFailedPrecondition where the descriptors are not a capable terminal.
  static base::Result<std::unique_ptr<TopScreen>> Open(int in, int out);
  ~TopScreen();
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;

  /// Whether Open can succeed: both are terminals, and TERM is not "dumb".
  static bool Possible(int in, int out);

  TopSize size() const;

  /// Shows the lines from the top. Does nothing where the terminal is gone; Wait then reports it.
  void Draw(const std::vector<std::string>& lines);

  struct Events {
    std::string keys;         ///< as the terminal sent them
    bool ready = false;       ///< `other` is readable
    bool resized = false;     ///< or shown again after the program was stopped: redraw
    std::optional<int> ends;  ///< a signal that ends the program; 0: the terminal is gone
  };
  /// Waits for any of these, at most for `most`. `other` -1: none. Ctrl-Z stops the program inside
  /// this call until it is continued.
  Events Wait(int other, base::Duration most);

 private:
  struct State;
  explicit TopScreen(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Ends the program as this signal would have.
[[noreturn]] void EndBySignal(int signal);

}  // namespace penstock::app
