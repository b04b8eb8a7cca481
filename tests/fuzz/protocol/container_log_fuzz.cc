// Fuzzes the log that the kubelet's engines write of a container (CRI's format), from which a
// container's output is read.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "../oracle.h"
#include "protocol/engine/cri/probe_container.h"

namespace {

using penstock::fuzz::Require;
using penstock::protocol::engine::cri::OutputOfLog;

constexpr std::string_view kTime = "2026-11-21T03:42:00.000000001Z";

/// An engine's log of this output: lines longer than the engine's buffer (`width`) are split, and
/// lines of standard error are in between.
std::string LogOf(std::string_view output, std::size_t width) {
  std::string log;
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    const std::size_t length = std::min(end, width);
    const bool partial = length < end;
    log.append(kTime)
        .append(" stdout ")
        .append(partial ? "P " : "F ")
        .append(output.substr(0, length))
        .append("\n");
    log.append(kTime).append(" stderr F stdout F a message\n");
    output.remove_prefix(partial ? length : std::min(end + 1, output.size()));
  }
  return log;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = penstock::fuzz::Text(data, size);
  Require(OutputOfLog(text).size() <= text.size());
  if (size == 0) return 0;
  const std::string output(text.substr(1));
  const std::size_t width = 1 + static_cast<unsigned char>(text.front());
  const bool whole = output.empty() || output.ends_with('\n');
  Require(OutputOfLog(LogOf(output, width)) == output + (whole ? "" : "\n"));
  return 0;
}
