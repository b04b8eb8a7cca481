// Helpers of the fuzz targets: the input as text or as several parts, and the assertion that ends a
// run.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/strings.h"

namespace penstock::fuzz {

/// Prints the location of a failed expectation and ends the process.
inline void Require(bool holds, int line = __builtin_LINE(), const char* file = __builtin_FILE()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: an expectation of the fuzz target does not hold\n", file, line);
  std::abort();
}

inline std::string_view Text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// The parts of an input, separated by NUL; missing parts are empty.
inline std::vector<std::string> Parts(const std::uint8_t* data, std::size_t size,
                                      std::size_t least = 1) {
  std::vector<std::string> parts = base::Split(Text(data, size), '\0');
  if (parts.size() < least) parts.resize(least);
  return parts;
}

}  // namespace penstock::fuzz
