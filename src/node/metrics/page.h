// Defines a rendered metrics page, which is immutable and shared by all its readers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace penstock::node::metrics {

/// The format that a scraper asks for.
enum class PageFormat {
  kText,         ///< Prometheus' text exposition format 0.0.4
  kOpenMetrics,  ///< OpenMetrics 1.0
};

/// How much a reader may see of processes: their command lines may hold secrets.
enum class Detail {
  kHolders,    ///< sums over the processes of a holder, without process ids and command lines
  kProcesses,  ///< each process, with its id and command line
};

/// The Content-Type of an HTTP response.
std::string_view ContentTypeOf(PageFormat format);

/// A rendered page. While nothing changes, the same text object is returned, so that its address
/// shows whether data derived from it (a compressed copy) is still valid.
struct RenderedPage {
  std::shared_ptr<const std::string> text;
  /// Ascending with each rendered page, over all formats and details.
  std::uint64_t generation = 0;
};

}  // namespace penstock::node::metrics
