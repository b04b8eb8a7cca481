// Works byte by byte: at most three bytes identify a character to replace.
#include "base/core/printable.h"

#include <algorithm>

#include "base/core/strings.h"

namespace penstock::base {
namespace {

/// Length of the UTF-8 sequence that a byte starts; 0 if it starts none.
std::size_t SequenceLength(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

/// `sequence` must be complete and valid.
bool IsShown(std::string_view sequence) {
  const auto byte = [sequence](std::size_t at) { return static_cast<unsigned char>(sequence[at]); };
  switch (sequence.size()) {
    case 1: return byte(0) >= 0x20 && byte(0) != 0x7f;
    case 2: return byte(0) != 0xc2 || byte(1) >= 0xa0;
    case 3: {
      if (byte(0) != 0xe2) return true;
      if (byte(1) == 0x80) return byte(2) < 0xaa || byte(2) > 0xae;
      return byte(1) != 0x81 || byte(2) < 0xa6 || byte(2) > 0xa9;
    }
    default: return true;
  }
}

struct Piece {
  std::size_t length = 1;
  bool shown = false;
};

Piece First(std::string_view text) {
  const std::size_t length = SequenceLength(static_cast<unsigned char>(text.front()));
  if (length == 0 || length > text.size()) return {};
  const std::string_view sequence = text.substr(0, length);
  if (length > 1 && !IsUtf8(sequence)) return {};
  return {length, IsShown(sequence)};
}

}  // namespace

bool IsPrintable(std::string_view text) {
  while (!text.empty()) {
    const Piece piece = First(text);
    if (!piece.shown) return false;
    text.remove_prefix(piece.length);
  }
  return true;
}

std::string Shortened(std::string_view text, std::size_t most, std::string_view mark) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most - std::min(most, mark.size());
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + std::string(mark);
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Piece piece = First(text);
    if (piece.shown) {
      out.append(text.substr(0, piece.length));
    } else {
      out += '?';
    }
    text.remove_prefix(piece.length);
  }
  return out;
}

}  // namespace penstock::base
