#include "app/penstock/cluster/tar.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <numeric>

namespace penstock::app {

namespace {

constexpr std::size_t kBlockSize = 512;

// Offsets and lengths of a header's fields.
struct Place {
  std::size_t at, length;
};
constexpr Place kName{0, 100}, kMode{100, 8}, kOwner{108, 8}, kGroup{116, 8}, kSize{124, 12},
    kTime{136, 12}, kChecksum{148, 8}, kType{156, 1}, kMagic{257, 8}, kPrefix{345, 155};

using Header = std::array<char, kBlockSize>;

void PutText(Header& header, Place place, std::string_view text) {
  text.copy(header.data() + place.at, place.length);
}

/// Octal digits with leading zeros and a final NUL.
void PutNumber(Header& header, Place place, std::uint64_t number) {
  std::array<char, 24> digits{};
  std::snprintf(digits.data(), digits.size(), "%0*llo", static_cast<int>(place.length - 1),
                static_cast<unsigned long long>(number));
  PutText(header, place, digits.data());
}

/// Splits a long path at a slash into prefix and name; false if it does not fit.
bool PutPath(Header& header, const std::string& path) {
  if (path.size() <= kName.length) {
    PutText(header, kName, path);
    return !path.empty();
  }
  const std::size_t slash = path.find('/', path.size() - kName.length - 1);
  if (slash == std::string::npos || slash == 0 || slash > kPrefix.length) return false;
  PutText(header, kPrefix, std::string_view(path).substr(0, slash));
  PutText(header, kName, std::string_view(path).substr(slash + 1));
  return true;
}

}  // namespace

base::Result<std::string> Tar(const std::vector<ArchivedFile>& files, base::WallTime time) {
  std::string archive;
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  for (const ArchivedFile& file : files) {
    Header header{};
    if (!PutPath(header, file.path))
      return base::Error(base::Code::kInvalidArgument,
                         "the path \"" + file.path + "\" does not fit into an archive");
    PutNumber(header, kMode, 0644);
    PutNumber(header, kOwner, 0);
    PutNumber(header, kGroup, 0);
    PutNumber(header, kSize, file.content.size());
    PutNumber(header, kTime, static_cast<std::uint64_t>(seconds));
    PutText(header, kType, "0");
    PutText(header, kMagic,
            std::string_view("ustar\0"
                             "00",
                             8));
    PutText(header, kChecksum, "        ");  // counts as blanks
    const auto sum = std::accumulate(header.begin(), header.end(), 0U, [](unsigned total, char c) {
      return total + static_cast<unsigned char>(c);
    });
    PutNumber(header, {kChecksum.at, kChecksum.length - 1}, sum);
    archive.append(header.data(), header.size());
    archive += file.content;
    archive.append((kBlockSize - file.content.size() % kBlockSize) % kBlockSize, '\0');
  }
  archive.append(2 * kBlockSize, '\0');
  return archive;
}

}  // namespace penstock::app
