#include "base/base64.h"

#include <cstdint>

namespace penstock::base {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool IsBlank(char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; }

}  // namespace

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string bytes;
  std::uint32_t group = 0;
  int letters = 0, padding = 0;
  for (const char c : text) {
    if (IsBlank(c)) continue;
    const std::size_t value = kAlphabet.find(c);
    if (c == '=') {
      ++padding;
    } else if (padding > 0 || value == std::string_view::npos) {
      return std::nullopt;
    } else {
      group |= static_cast<std::uint32_t>(value) << (18 - 6 * letters);
    }
    if (++letters < 4) continue;
    if (padding > 2) return std::nullopt;
    for (int i = 0; i < 3 - padding; ++i)
      bytes += static_cast<char>((group >> (16 - 8 * i)) & 0xff);
    group = 0;
    letters = 0;
  }
  if (letters != 0) return std::nullopt;
  return bytes;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    const std::size_t count = bytes.size() - at < 3 ? bytes.size() - at : 3;
    for (std::size_t i = 0; i < count; ++i)
      group |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (16 - 8 * i);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= count ? kAlphabet[(group >> (18 - 6 * i)) & 63] : '=';
  }
  return text;
}

}  // namespace penstock::base
