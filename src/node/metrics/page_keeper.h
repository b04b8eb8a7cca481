// Keeps the page that was made last, as long as it is true: so that a scrape, or a storm of them, costs a pointer.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "node/metrics/page.h"

namespace penstock::node::metrics {

/// On the control executor. A page is made anew a moment after something changed, many changes at once, while somebody reads pages of its
/// kind; else when somebody asks for it.
class PageKeeper {
 public:
  /// `make`: a page of what is known now. It may not call back.
  PageKeeper(base::Executor& control, std::function<std::string(Format, Detail)> make);
  ~PageKeeper();

  /// What pages are made of has changed.
  void Changed();

  /// Never older than the last change, and never older than a few seconds: for counts of which nobody is told that they changed.
  Page Get(Format format, Detail detail);

  /// How long it took to make the newest page; zero: none was made.
  base::Duration took() const { return took_; }

 private:
  /// One for each format and detail.
  struct Kept {
    Format format;
    Detail detail;
    Page page{};
    base::TimePoint made{}, asked{};
    bool read = false;  // somebody asked for it ever
    bool stale = true;
  };
  void Make(Kept& kept);
  void MakeWanted();

  base::Executor& control_;
  const std::function<std::string(Format, Detail)> make_;
  std::array<Kept, 4> kept_{{{Format::kText, Detail::kHolders},
                             {Format::kOpenMetrics, Detail::kHolders},
                             {Format::kText, Detail::kProcesses},
                             {Format::kOpenMetrics, Detail::kProcesses}}};
  std::uint64_t generation_ = 0;
  base::Duration took_{};
  base::TimerId timer_ = 0;
};

}  // namespace penstock::node::metrics
