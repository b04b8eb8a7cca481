// The metrics page as it is served: made once, never changed afterwards, shared by all who read it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace penstock::node::metrics {

/// In which form a scraper wants the page.
enum class Format {
  kText,         ///< Prometheus' text exposition format 0.0.4
  kOpenMetrics,  ///< OpenMetrics 1.0
};

/// How closely a reader may look at processes: their command lines may hold secrets.
enum class Detail {
  kHolders,    ///< sums over the processes of a holder, without process ids and command lines
  kProcesses,  ///< each process, with both
};

/// What an HTTP answer calls it.
std::string_view ContentTypeOf(Format format);

/// A page that was made. As long as nothing changes the same text is given out again, so that its address says whether what was made of it
/// (a compressed copy) still holds.
struct Page {
  std::shared_ptr<const std::string> text;
  std::uint64_t generation = 0;  ///< ascending with each page that is made, over all kinds of them
};

}  // namespace penstock::node::metrics
