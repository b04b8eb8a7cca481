// Each batch opens the newest file again: a log collector may have moved it away.
#include "node/usage/record_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/fd.h"
#include "os/core/file.h"

namespace penstock::node::usage {
namespace {

constexpr std::string_view kPrefix = "usage-", kSuffix = ".jsonl";
constexpr std::size_t kMaxLine = 1u << 20;

/// Nothing for another name.
std::optional<std::uint64_t> NumberOf(std::string_view name) {
  if (name.size() <= kPrefix.size() + kSuffix.size() || !name.starts_with(kPrefix) ||
      !name.ends_with(kSuffix))
    return std::nullopt;
  return base::ParseUint(
      name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
}

std::string NameOf(std::uint64_t number) {
  std::array<char, 40> name{};
  std::snprintf(name.data(), name.size(), "usage-%06llu.jsonl",
                static_cast<unsigned long long>(number));
  return name.data();
}

std::vector<std::uint64_t> Numbers(const std::string& folder) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : os::ListDirectory(folder).value_or({}))
    if (const auto number = NumberOf(name); number && NameOf(*number) == name)
      numbers.push_back(*number);
  std::ranges::sort(numbers);
  return numbers;
}

std::uint64_t SizeOf(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

base::Status SyncFolder(const std::string& folder) {
  const os::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return ErrnoError(errno, "sync " + folder);
  return {};
}

/// Whether a crash left a line without its line feed.
bool IsTorn(int fd, std::uint64_t size) {
  char last = '\n';
  return size > 0 && ::pread(fd, &last, 1, static_cast<off_t>(size - 1)) == 1 && last != '\n';
}

base::Status AppendTo(const std::string& path, std::string text) {
  const os::UniqueFd fd(
      ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (!fd) return ErrnoError(errno, "open " + path);
  struct stat before {};
  if (::fstat(fd.get(), &before) != 0) return ErrnoError(errno, "look at " + path);
  if (IsTorn(fd.get(), static_cast<std::uint64_t>(before.st_size))) text.insert(0, "\n");
  base::Status written = os::WriteAll(fd.get(), text, path);
  if (written.ok() && ::fdatasync(fd.get()) != 0) written = ErrnoError(errno, "sync " + path);
  if (!written.ok() && ::ftruncate(fd.get(), before.st_size) != 0)
    return written.error().Within("an incomplete line could not be removed");
  return written;
}

/// The last `most` bytes and more of each of the newest two files.
std::string Tail(const std::vector<std::string>& files, std::size_t most) {
  std::string tail;
  for (std::size_t i = files.size() < 2 ? 0 : files.size() - 2; i < files.size(); ++i) {
    const os::UniqueFd fd(::open(files[i].c_str(), O_RDONLY | O_CLOEXEC));
    const auto size = SizeOf(files[i]);
    if (!fd || ::lseek(fd.get(), static_cast<off_t>(size > most ? size - most : 0), SEEK_SET) < 0)
      continue;
    tail += "\n" + os::ReadAll(fd.get(), files[i], most + kMaxLine).value_or("");
  }
  return tail;
}

}  // namespace

base::Status RecordFiles::Append(const std::vector<std::string>& lines,
                                 const Limits& limits) const {
  if (lines.empty()) return {};
  std::string text;
  const auto add = [](std::size_t sum, const std::string& line) { return sum + line.size(); };
  text.reserve(std::accumulate(lines.begin(), lines.end(), std::size_t{1}, add));
  for (const std::string& line : lines) text += line;
  TRY(os::MakeDirectories(folder_, 0750));
  auto numbers = Numbers(folder_);
  std::uint64_t number = numbers.empty() ? 1 : numbers.back();
  const std::uint64_t size = SizeOf(folder_ + "/" + NameOf(number));
  if (size > 0 && size + text.size() > limits.file_size.count) ++number;
  TRY(AppendTo(folder_ + "/" + NameOf(number), std::move(text)));
  if (!numbers.empty() && numbers.back() == number) return {};
  numbers.push_back(number);
  const auto most = static_cast<std::size_t>(std::max(limits.files, 1));
  for (std::size_t i = 0; i + most < numbers.size(); ++i)
    ::unlink((folder_ + "/" + NameOf(numbers[i])).c_str());
  return SyncFolder(folder_);
}

std::vector<std::string> RecordFiles::Missing(const std::vector<std::string>& lines) const {
  if (lines.empty()) return {};
  std::size_t bytes = kMaxLine;
  for (const std::string& line : lines) bytes += line.size();
  const std::string tail = Tail(List(), bytes);
  std::vector<std::string> missing;
  for (const std::string& line : lines)
    if (tail.find("\n" + line) == std::string::npos) missing.push_back(line);
  return missing;
}

std::vector<std::string> RecordFiles::List() const {
  std::vector<std::string> files;
  for (const std::uint64_t number : Numbers(folder_))
    files.push_back(folder_ + "/" + NameOf(number));
  return files;
}

LineReader::LineReader(std::vector<std::string> files) {
  for (std::string& path : files) {
    const std::uint64_t size = SizeOf(path);
    files_.push_back({std::move(path), size});
  }
}

bool LineReader::Fill(std::size_t bytes) {
  for (; next_ < files_.size(); ++next_, offset_ = 0, buffer_.clear()) {
    const File& file = files_[next_];
    if (offset_ >= file.size) continue;
    const os::UniqueFd fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
    const std::size_t kept = buffer_.size();
    if (!fd || kept > kMaxLine) continue;
    buffer_.resize(kept +
                   static_cast<std::size_t>(std::min<std::uint64_t>(bytes, file.size - offset_)));
    const ssize_t got = ::pread(fd.get(), buffer_.data() + kept, buffer_.size() - kept,
                                static_cast<off_t>(offset_));
    if (got <= 0) continue;
    buffer_.resize(kept + static_cast<std::size_t>(got));
    offset_ += static_cast<std::uint64_t>(got);
    return true;
  }
  return false;
}

}  // namespace penstock::node::usage
