#include "sim/files/loader_cache.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::sim {
namespace {

struct Head {
  char magic[20];
  std::uint32_t count, string_bytes;
  std::uint8_t flags;
  std::uint8_t padding[3];
  std::uint32_t extension_offset, unused[3];
};
static_assert(sizeof(Head) == 48);

struct Entry {
  std::int32_t flags;
  std::uint32_t name, path, os_version;
  std::uint64_t hardware;
};
static_assert(sizeof(Entry) == 24);

constexpr std::uint8_t kLittleEndian = 2;
constexpr std::int32_t kX86Libc6 = 0x0303;

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Reads the number at `at`, and moves `at` behind it.
std::uint64_t TakeNumber(std::string_view text, std::size_t& at) {
  std::uint64_t number = 0;
  while (at < text.size() && IsDigit(text[at]))
    number = number * 10 + static_cast<std::uint64_t>(text[at++] - '0');
  return number;
}

// elf/dl-cache.c, _dl_cache_libcmp: digits compare as numbers and sort after other characters.
int Compare(std::string_view left, std::string_view right) {
  std::size_t i = 0, j = 0;
  while (i < left.size() && j < right.size()) {
    if (IsDigit(left[i]) != IsDigit(right[j])) return IsDigit(left[i]) ? 1 : -1;
    if (IsDigit(left[i])) {
      const std::uint64_t a = TakeNumber(left, i), b = TakeNumber(right, j);
      if (a != b) return a < b ? -1 : 1;
    } else if (left[i] != right[j]) {
      return left[i] < right[j] ? -1 : 1;
    } else {
      i++, j++;
    }
  }
  return static_cast<int>(left.size() - i > 0) - static_cast<int>(right.size() - j > 0);
}

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

std::string LoaderCache(const std::map<std::string, std::string>& libraries) {
  std::vector<std::pair<std::string, std::string>> sorted(libraries.begin(), libraries.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return Compare(a.first, b.first) > 0; });
  std::string entries, strings;
  const std::size_t strings_at = sizeof(Head) + sorted.size() * sizeof(Entry);
  const auto keep = [&](const std::string& text) {
    const auto at = static_cast<std::uint32_t>(strings_at + strings.size());
    strings.append(text).push_back('\0');
    return at;
  };
  for (const auto& [name, path] : sorted) {
    const std::uint32_t name_at = keep(name);
    entries.append(BytesOf(Entry{kX86Libc6, name_at, keep(path), 0, 0}));
  }
  Head head{};
  std::memcpy(head.magic, "glibc-ld.so.cache1.1", sizeof head.magic);
  head.count = static_cast<std::uint32_t>(sorted.size());
  head.string_bytes = static_cast<std::uint32_t>(strings.size());
  head.flags = kLittleEndian;
  return std::string(BytesOf(head)) + entries + strings;
}

}  // namespace penstock::sim
