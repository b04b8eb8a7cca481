#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::base {

/// FNV-1a, 64 bits: the same in every build, so that file names may contain it. Not a cryptographic
/// hash.
constexpr std::uint64_t Hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace penstock::base
