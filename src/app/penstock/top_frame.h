// The live view as lines of text: a pure function of the samples, of what the user wants to see, and of the terminal's size.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "api/samples.h"
#include "app/penstock/top_draw.h"

namespace penstock::app {

enum class TopSort { kCompute, kMemory, kPid, kDevice, kUser };

/// What the user wants to see.
struct TopView {
  TopSort sort = TopSort::kCompute;
  bool reverse = false;
  std::string filter;   ///< of processes: a part of any of their columns, without case; empty: all
  bool typing = false;  ///< the filter
  bool help = false;
  std::size_t first_process = 0, first_device = 0;  ///< how far the lists are scrolled
  std::string problem;                              ///< why what is shown is not of now; empty: it is
  bool operator==(const TopView&) const = default;
};

struct TopSize {
  std::size_t columns = 80;
  std::size_t rows = 24;  ///< 0: as many as it takes
};

/// At most `rows` lines of at most `columns` columns, without line feeds. Processes of others may be called anything: control characters
/// are shown as '?'.
std::vector<std::string> TopFrame(const api::Samples& samples, const TopView& view, const TopSize& size, const Pen& pen);

/// The processes that the view shows, in its order.
std::vector<api::SampledProcess> ShownProcesses(const api::Samples& samples, const TopView& view);

}  // namespace penstock::app
