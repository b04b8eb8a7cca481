// Caches the last rendered page while it is up to date, so that a scrape normally only copies a
// pointer.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "base/executor.h"
#include "node/metrics/page.h"

namespace penstock::node::metrics {

/// On the control executor. While pages of a format and detail are being read, such a page is
/// rendered shortly after a change, once for many changes; otherwise when it is requested.
class PageCache {
 public:
  /// `make` renders a page of the current state. It must not call back.
  PageCache(base::Executor& control, std::function<std::string(PageFormat, Detail)> make);
  ~PageCache();

  /// The data of the pages has changed.
  void Changed();

  /// Returns a page that is not older than the last change, and never older than a few seconds,
  /// because some counters change without a call of Changed.
  RenderedPage Get(PageFormat format, Detail detail);

  /// How long rendering the newest page took; zero: none was rendered.
  base::Duration took() const { return took_; }

 private:
  /// One for each format and detail.
  struct Kept {
    PageFormat format;
    Detail detail;
    RenderedPage page{};
    base::TimePoint made{}, requested{};
    bool read = false;  // it was requested at least once
    bool stale = true;
  };
  void Make(Kept& kept);
  void MakeWanted();

  base::Executor& control_;
  const std::function<std::string(PageFormat, Detail)> make_;
  std::array<Kept, 4> kept_{{{PageFormat::kText, Detail::kHolders},
                             {PageFormat::kOpenMetrics, Detail::kHolders},
                             {PageFormat::kText, Detail::kProcesses},
                             {PageFormat::kOpenMetrics, Detail::kProcesses}}};
  std::uint64_t generation_ = 0;
  base::Duration took_{};
  base::TimerId timer_ = 0;
};

}  // namespace penstock::node::metrics
