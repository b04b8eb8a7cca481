#include "hook/runtime/facts.h"

namespace penstock::hook::runtime {

std::string Shown(std::string_view text) {
  constexpr std::size_t kMax = 80;
  std::string shown = "\"";
  for (const char c : text.substr(0, kMax)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x20 || byte >= 0x7f || c == '"' ? '?' : c;
  }
  return shown + (text.size() > kMax ? "...\"" : "\"");
}

}  // namespace penstock::hook::runtime
