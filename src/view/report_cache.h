// Keeps the last report of this node for those who follow it, so that they make none of their own.
#pragma once

#include <functional>
#include <memory>

#include "api/report.h"
#include "base/executor.h"

namespace penstock::view {

/// On the control executor. Two equal reports are one object: whether a report is another one shows
/// by its address, as with the snapshots that it is made from.
class ReportCache {
 public:
  struct Callbacks {
    std::function<api::Report()> make;  ///< of the current state; must not call Get or Make
    /// A report differs from the one before, without a call of Changed for that.
    std::function<void()> differs;
  };

  ReportCache(base::Executor& control, Callbacks callbacks);
  ~ReportCache();
  ReportCache(const ReportCache&) = delete;
  ReportCache& operator=(const ReportCache&) = delete;

  /// Something that reports say has changed, or may have. A report is made within a second, so that
  /// the time of a condition is when it changed, not when a client first requested a report.
  void Changed();

  /// Devices were read, and say the same as before. A few things that a report says change without
  /// a call of Changed: one that is older than 15 s is made again within a second.
  void ReadTimesChanged();

  /// The report, made now if something has changed since the last one.
  std::shared_ptr<const api::Report> Get();

  /// The report, made now.
  std::shared_ptr<const api::Report> Make();

 private:
  bool Replace();
  void MakeSoon();

  base::Executor& control_;
  const Callbacks callbacks_;
  std::shared_ptr<const api::Report> kept_;
  bool stale_ = true;
  base::TimePoint made_{};
  base::TimerId timer_ = 0;
};

}  // namespace penstock::view
