// The layout of ld.so.cache (glibc, sysdeps/generic/dl-cache.h and elf/cache.c). Does no I/O.
#include "os/core/ld_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <unordered_map>

#include <elf.h>

namespace penstock::os {
namespace {

constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr std::string_view kNewMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kMaxEntries = 1u << 16;
constexpr std::size_t kMaxText = 16u << 20;

struct OldHeader {
  char magic[12];  // and a byte of padding
  std::uint32_t count;
};
constexpr std::size_t kOldEntryBytes = 12;

struct Header {
  char magic[20];
  std::uint32_t count;
  std::uint32_t text_bytes;
  std::uint8_t flags;  // 0: not stated, 2: little-endian, 3: big-endian
  std::uint8_t padding[3];
  std::uint32_t extension;  // its offset from this header's start; 0: none
  std::uint32_t unused[3];
};
static_assert(sizeof(Header) == 48);
constexpr std::uint8_t kCacheByteOrder = std::endian::native == std::endian::little ? 2 : 3;

struct Entry {
  std::int32_t flags;
  std::uint32_t soname;  // both names are offsets from the header's start
  std::uint32_t path;
  std::uint32_t os_version;
  std::uint64_t hwcap;
};
static_assert(sizeof(Entry) == 24);

struct Extension {
  std::uint32_t magic;
  std::uint32_t count;
};
constexpr std::uint32_t kExtensionMagic = 0xeaa42174;

struct Section {
  std::uint32_t tag;
  std::uint32_t flags;
  std::uint32_t offset;
  std::uint32_t bytes;
};
constexpr std::uint32_t kGenerator = 0;
constexpr std::uint32_t kHwcapsNames = 1;
constexpr std::size_t kMaxCacheSections = 64;
constexpr std::size_t kMaxHwcaps =
    64;  // in all sections together; glibc defines five for all of its processors
constexpr std::size_t kMaxHwcapsName = 255;

// An entry of a glibc-hwcaps folder: the upper half has bit 62 and the instruction set's level, and
// the lower half is an index into the names of such folders.
constexpr std::uint64_t kHwcapsBit = std::uint64_t{1} << 62;
constexpr std::uint64_t kLevelMask = std::uint64_t{0x3ff} << 32;
constexpr std::uint64_t kIndexMask = 0xffffffff;

bool IsHwcapsEntry(std::uint64_t hwcap) {
  return (hwcap & ~(kLevelMask | kIndexMask)) == kHwcapsBit;
}

Error Broken(const std::string& what) {
  return {Code::kInvalidArgument, "broken ld.so.cache: " + what};
}

/// Reads a list of libraries in the new format; offsets count from the start of `bytes`.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  Result<std::vector<LdCacheEntry>> Read() {
    TRY(ReadHeader());
    TRY(ReadHwcapsNames());
    std::vector<LdCacheEntry> entries;
    entries.reserve(header_.count);
    for (std::size_t i = 0; i < header_.count; ++i) {
      ASSIGN(LdCacheEntry entry, ReadEntry(sizeof(Header) + i * sizeof(Entry)));
      entries.push_back(std::move(entry));
    }
    return entries;
  }

 private:
  template <typename T>
  Result<T> At(std::size_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T))
      return Broken("it is shorter than its header says");
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  base::Status ReadHeader() {
    ASSIGN(header_, At<Header>(0));
    if (const auto order = header_.flags & 3; order != 0 && order != kCacheByteOrder)
      return Error(Code::kInvalidArgument,
                   "this ld.so.cache is for machines of the opposite byte order");
    if (header_.count > kMaxEntries ||
        header_.count > (bytes_.size() - sizeof(Header)) / sizeof(Entry))
      return Broken("it cannot hold " + std::to_string(header_.count) + " entries");
    return {};
  }

  base::Status ReadHwcapsNames() {
    if (header_.extension == 0) return {};
    ASSIGN(const Extension extension, At<Extension>(header_.extension));
    if (extension.magic != kExtensionMagic) return {};  // ld.so ignores it, too
    if (extension.count > kMaxCacheSections)
      return Broken("its extension has " + std::to_string(extension.count) + " sections");
    for (std::size_t i = 0; i < extension.count; ++i) {
      ASSIGN(const Section section,
             At<Section>(header_.extension + sizeof(Extension) + i * sizeof(Section)));
      if (section.tag == kHwcapsNames) TRY(ReadNames(section));
    }
    return {};
  }

  base::Status ReadNames(const Section& section) {
    for (std::size_t i = 0; i < section.bytes / sizeof(std::uint32_t); ++i) {
      ASSIGN(const std::uint32_t offset,
             At<std::uint32_t>(std::size_t{section.offset} + i * sizeof(std::uint32_t)));
      if (hwcaps_.size() == kMaxHwcaps)
        return Broken("it names more than " + std::to_string(kMaxHwcaps) + " glibc-hwcaps folders");
      ASSIGN(std::string name, Text(offset));
      if (name.size() > kMaxHwcapsName)
        return Broken("the name of a glibc-hwcaps folder has " + std::to_string(name.size()) +
                      " bytes");
      hwcaps_.push_back(std::move(name));
    }
    return {};
  }

  Result<LdCacheEntry> ReadEntry(std::size_t offset) {
    ASSIGN(const Entry raw, At<Entry>(offset));
    LdCacheEntry entry{.flags = raw.flags, .hwcap = raw.hwcap};
    ASSIGN(entry.soname, Text(raw.soname));
    ASSIGN(entry.path, Text(raw.path));
    if (IsHwcapsEntry(raw.hwcap)) {
      const std::uint64_t index = raw.hwcap & kIndexMask;
      if (index >= hwcaps_.size())
        return Broken("an entry refers to an unknown glibc-hwcaps folder");
      TRY(CountText(hwcaps_[index].size()));
      entry.hwcaps = hwcaps_[index];
      entry.hwcap &= ~kIndexMask;
    }
    return entry;
  }

  Result<std::string> Text(std::size_t offset) {
    if (offset >= bytes_.size()) return Broken("a name is outside the file");
    const auto end = bytes_.find('\0', offset);
    if (end == std::string_view::npos) return Broken("a name in it is not terminated");
    TRY(CountText(end - offset));
    return std::string(bytes_.substr(offset, end - offset));
  }

  base::Status CountText(std::size_t bytes) {
    text_ += bytes;
    if (text_ > kMaxText)
      return Broken("its names have more than " + std::to_string(kMaxText) + " bytes");
    return {};
  }

  std::string_view bytes_;
  Header header_{};
  std::vector<std::string> hwcaps_;
  std::size_t text_ = 0;
};

// Finds the start of the new format; after an old list it is aligned to 8 bytes.
Result<std::string_view> FindNewFormat(std::string_view bytes) {
  if (bytes.starts_with(kNewMagic)) return bytes;
  OldHeader old;
  if (bytes.starts_with(kOldMagic) && bytes.size() >= sizeof old) {
    std::memcpy(&old, bytes.data(), sizeof old);
    const std::size_t end =
        (sizeof old + std::size_t{old.count} * kOldEntryBytes + 7) & ~std::size_t{7};
    if (end < bytes.size() && bytes.substr(end).starts_with(kNewMagic)) return bytes.substr(end);
  }
  return Error(Code::kInvalidArgument, "not an ld.so.cache in glibc's format 1.1");
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// ld.so accumulates numbers in an int, and longer ones wrap around; the order must match ld.so's,
// or libraries with a timestamp in their name are not found.
std::int32_t TakeNumber(std::string_view& text) {
  std::uint32_t number = 0;
  for (; !text.empty() && IsDigit(text.front()); text.remove_prefix(1))
    number = number * 10 + static_cast<std::uint32_t>(text.front() - '0');
  return static_cast<std::int32_t>(number);
}

// The order of ldconfig (glibc, elf/cache.c, compare): all fields descending, except the names of
// glibc-hwcaps folders.
bool StandsBefore(const LdCacheEntry& left, const LdCacheEntry& right) {
  if (const int names = CompareLibraryNames(left.soname, right.soname); names != 0)
    return names > 0;
  if (left.flags != right.flags) return left.flags > right.flags;
  if (left.hwcaps.empty() != right.hwcaps.empty()) return right.hwcaps.empty();
  if (left.hwcaps != right.hwcaps) return left.hwcaps < right.hwcaps;
  return left.hwcap > right.hwcap;
}

/// Collects names at fixed offsets; each name is stored once.
class Texts {
 public:
  Texts(std::size_t begin, std::size_t names) : begin_(begin) { places_.reserve(names); }

  std::uint32_t Place(const std::string& text) {
    const auto [found, added] =
        places_.try_emplace(text, static_cast<std::uint32_t>(begin_ + bytes_.size()));
    if (added) bytes_.append(text.c_str(), text.size() + 1);
    return found->second;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::size_t begin_;
  std::string bytes_;
  std::unordered_map<std::string_view, std::uint32_t> places_;
};

template <typename T>
void Append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string WriteExtension(std::size_t begin, const std::vector<std::uint32_t>& hwcaps) {
  constexpr std::string_view generator = "ldconfig (Penstock) " PENSTOCK_VERSION;
  const std::uint32_t sections = hwcaps.empty() ? 1 : 2;
  const auto names =
      static_cast<std::uint32_t>(begin + sizeof(Extension) + sections * sizeof(Section));
  const auto names_bytes = static_cast<std::uint32_t>(hwcaps.size() * sizeof(std::uint32_t));
  std::string bytes;
  Append(bytes, Extension{.magic = kExtensionMagic, .count = sections});
  Append(bytes, Section{.tag = kGenerator,
                        .offset = names + names_bytes,
                        .bytes = static_cast<std::uint32_t>(generator.size())});
  if (!hwcaps.empty())
    Append(bytes, Section{.tag = kHwcapsNames, .offset = names, .bytes = names_bytes});
  for (const std::uint32_t name : hwcaps) Append(bytes, name);
  return bytes.append(generator);
}

std::string WriteFile(std::size_t count, const std::string& list, const std::string& texts,
                      const std::vector<std::uint32_t>& hwcaps) {
  Header header{.count = static_cast<std::uint32_t>(count),
                .text_bytes = static_cast<std::uint32_t>(texts.size()),
                .flags = kCacheByteOrder};
  std::memcpy(header.magic, kNewMagic.data(), kNewMagic.size());
  const std::size_t used = sizeof header + list.size() + texts.size();
  const std::size_t extension = (used + 3) & ~std::size_t{3};
  header.extension = static_cast<std::uint32_t>(extension);
  std::string bytes;
  Append(bytes, header);
  return bytes.append(list)
      .append(texts)
      .append(extension - used, '\0')
      .append(WriteExtension(extension, hwcaps));
}

}  // namespace

Result<std::vector<LdCacheEntry>> ReadLdCache(std::string_view bytes) {
  ASSIGN(const std::string_view list, FindNewFormat(bytes));
  return Reader(list).Read();
}

std::string WriteLdCache(const std::vector<LdCacheEntry>& entries) {
  std::vector<const LdCacheEntry*> order;
  order.reserve(entries.size());
  for (const LdCacheEntry& entry : entries) order.push_back(&entry);
  std::ranges::stable_sort(order, [](const LdCacheEntry* left, const LdCacheEntry* right) {
    return StandsBefore(*left, *right);
  });
  Texts texts(sizeof(Header) + entries.size() * sizeof(Entry), 2 * entries.size());
  std::map<std::string, std::uint32_t>
      hwcaps;  // ld.so requires these names sorted; entries refer to them by index
  for (const LdCacheEntry& entry : entries) {
    if (!entry.hwcaps.empty()) hwcaps[entry.hwcaps] = 0;
  }
  std::vector<std::uint32_t> hwcaps_places;
  for (auto& [name, index] : hwcaps) {
    index = static_cast<std::uint32_t>(hwcaps_places.size());
    hwcaps_places.push_back(texts.Place(name));
  }
  std::string list;
  list.reserve(entries.size() * sizeof(Entry));
  for (const LdCacheEntry* entry : order) {
    const std::uint64_t hwcap =
        entry->hwcaps.empty() ? entry->hwcap
                              : (entry->hwcap & kLevelMask) | kHwcapsBit | hwcaps[entry->hwcaps];
    Append(list, Entry{.flags = entry->flags,
                       .soname = texts.Place(entry->soname),
                       .path = texts.Place(entry->path),
                       .hwcap = hwcap});
  }
  return WriteFile(entries.size(), list, texts.bytes(), hwcaps_places);
}

int CompareLibraryNames(std::string_view left, std::string_view right) {
  while (!left.empty()) {
    const char a = left.front();
    const char b = right.empty() ? '\0' : right.front();
    if (IsDigit(a) && IsDigit(b)) {
      const std::int32_t number = TakeNumber(left);
      if (const std::int32_t other = TakeNumber(right); number != other)
        return number < other ? -1 : 1;
      continue;
    }
    if (IsDigit(a) || IsDigit(b)) return IsDigit(a) ? 1 : -1;
    if (a != b) return a < b ? -1 : 1;
    left.remove_prefix(1);
    right.remove_prefix(1);
  }
  if (right.empty()) return 0;
  return '\0' < right.front() ? -1 : 1;
}

std::optional<std::int32_t> LdCacheFlags(const ElfFacts& library) {
  constexpr std::int32_t kGlibc = 0x0003;
  switch (library.machine) {
    case EM_X86_64: return library.wide ? kGlibc | 0x0300 : kGlibc | 0x0800;  // the latter is x32
    case EM_386: return kGlibc;
    case EM_AARCH64:
      return library.wide ? std::optional<std::int32_t>(kGlibc | 0x0a00) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace penstock::os
