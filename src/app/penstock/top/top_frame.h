// Renders the live view (`penstock top`) as lines of text: a pure function of the samples, the
// user's settings and the terminal's size.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "api/samples.h"
#include "app/penstock/top/top_draw.h"

namespace penstock::app {

enum class TopSort { kCompute, kMemory, kPid, kDevice, kUser };

/// The user's settings of the view.
struct TopView {
  TopSort sort = TopSort::kCompute;
  bool reverse = false;
  std::string filter;   ///< of processes: a part of any of their columns, case-insensitive; empty:
                        ///< all
  bool typing = false;  ///< the user is typing the filter
  bool help = false;
  std::size_t first_process = 0, first_device = 0;  ///< scroll positions of the lists
  std::string problem;  ///< why the shown values are outdated; empty: they are current
  bool operator==(const TopView&) const = default;
};

struct TopSize {
  std::size_t columns = 80;
  std::size_t rows = 24;  ///< 0: unlimited
};

/// At most `rows` lines of at most `columns` columns, without line feeds. Shows control characters,
/// which names of other users' processes may contain, as '?'.
std::vector<std::string> TopFrame(const api::Samples& samples, const TopView& view,
                                  const TopSize& size, const Pen& pen);

/// The processes that the view shows, in its order.
std::vector<api::SampledProcess> ShownProcesses(const api::Samples& samples, const TopView& view);

}  // namespace penstock::app
