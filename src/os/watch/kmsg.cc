// Parses /dev/kmsg strictly, since anyone may write to it.
#include "os/watch/kmsg.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/strings.h"

namespace penstock::os {
namespace {

constexpr std::size_t kMaxRecordBytes = 8192;  // CONSOLE_EXT_LOG_MAX in kernel/printk/printk.c
constexpr std::uint64_t kMaxPriority = 2047;   // eight bits of facility, three of level
constexpr std::size_t kMaxRecordsAtOnce = 4096;

// Takes the next of the comma-separated fields before the text.
std::optional<std::uint64_t> TakeNumber(std::string_view& header) {
  const auto comma = header.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto number = base::ParseUint(header.substr(0, comma));
  header.remove_prefix(comma + 1);
  return number;
}

}  // namespace

std::optional<KernelRecord> ParseKernelRecord(std::string_view line) {
  if (line.size() > kMaxRecordBytes) return std::nullopt;
  const auto semicolon = line.find(';');
  if (semicolon == std::string_view::npos) return std::nullopt;
  std::string_view header = line.substr(0, semicolon);
  const auto priority = TakeNumber(header);
  const auto sequence = TakeNumber(header);
  const auto microseconds = TakeNumber(header);
  if (!priority || *priority > kMaxPriority || !sequence || !microseconds || header.empty())
    return std::nullopt;
  std::string_view text = line.substr(semicolon + 1);
  text = text.substr(0, text.find('\n'));
  return KernelRecord{static_cast<int>(*priority), *sequence, *microseconds, std::string(text)};
}

base::Result<KernelLog> KernelLog::Open(const std::string& path, bool from_now) {
  KernelLog log;
  log.fd_.Reset(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!log.fd_) return base::ErrnoError(errno, "open " + path);
  struct stat status {};
  if (::fstat(log.fd_.get(), &status) != 0) return base::ErrnoError(errno, "stat " + path);
  if (S_ISDIR(status.st_mode)) return base::ErrnoError(EISDIR, "open " + path);
  log.pollable_ = !S_ISREG(status.st_mode);
  if (from_now) ::lseek(log.fd_.get(), 0, SEEK_END);
  return log;
}

std::vector<KernelRecord> KernelLog::Read() {
  std::vector<KernelRecord> records;
  if (!pollable_) RestartWhereTruncated();
  std::array<char, kMaxRecordBytes> buffer;
  while (records.size() < kMaxRecordsAtOnce) {
    const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      Take(std::string_view(buffer.data(), static_cast<std::size_t>(got)), records);
    } else if (got < 0 && errno == EPIPE) {
      overrun_ = true;
    } else if (got < 0 && errno == EINVAL && pollable_) {
      ++lost_;  // a record larger than the kernel's own limit; it has been skipped
    } else if (got == 0 || errno != EINTR) {
      break;
    }
  }
  return records;
}

// A plain file may be truncated and rewritten.
void KernelLog::RestartWhereTruncated() {
  struct stat status {};
  const off_t at = ::lseek(fd_.get(), 0, SEEK_CUR);
  if (::fstat(fd_.get(), &status) != 0 || status.st_size >= at) return;
  ::lseek(fd_.get(), 0, SEEK_SET);
  partial_.clear();
  overlong_ = false;
}

void KernelLog::Take(std::string_view bytes, std::vector<KernelRecord>& records) {
  while (!bytes.empty()) {
    const auto newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline);
    if (partial_.size() + piece.size() > kMaxRecordBytes) overlong_ = true;
    if (!overlong_) partial_ += piece;
    if (newline == std::string_view::npos) return;
    bytes.remove_prefix(newline + 1);
    auto record = overlong_ ? std::nullopt : ParseKernelRecord(partial_);
    partial_.clear();
    overlong_ = false;
    if (!record) continue;
    CountLost(*record);
    records.push_back(*std::move(record));
  }
}

void KernelLog::CountLost(const KernelRecord& next) {
  if (overrun_) lost_ += last_ && next.sequence > *last_ ? next.sequence - *last_ - 1 : 1;
  overrun_ = false;
  last_ = next.sequence;
}

}  // namespace penstock::os
