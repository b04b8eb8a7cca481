// Manages the folder of usage records: numbered files of lines, of which the oldest are deleted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/core/quantity.h"
#include "base/core/result.h"

namespace penstock::node::usage {

/// The files are named "usage-000001.jsonl" and so on. Only the agent writes to the folder, and
/// only to the file with the highest number. Not thread-safe; all calls block.
class RecordFiles {
 public:
  struct Limits {
    /// A file that would exceed this is followed by the next one.
    base::Bytes file_size = base::Mebibytes(16);
    int files = 16;  ///< number of files to keep
  };

  explicit RecordFiles(std::string folder) : folder_(std::move(folder)) {}

  /// Appends lines, each with its line feed, and syncs them to disk. All or nothing: a partial
  /// write is truncated again, and a partial line that a crash left is terminated. New files have
  /// mode 0640; a missing folder is created with 0750.
  base::Status Append(const std::vector<std::string>& lines, const Limits& limits) const;

  /// The lines that are not at the end of the newest two files.
  std::vector<std::string> Missing(const std::vector<std::string>& lines) const;

  /// Paths, oldest first; empty if the folder does not exist.
  std::vector<std::string> List() const;

 private:
  const std::string folder_;
};

/// Reads records line by line, in pieces, so that a large folder needs little memory. Not
/// thread-safe; blocks.
class LineReader {
 public:
  /// Reads each file up to its present size. A file that is deleted meanwhile is skipped.
  explicit LineReader(std::vector<std::string> files);

  /// Calls back with each complete line of the next `bytes`, without its line feed. Returns false
  /// at the end. The text after the last line feed of a file is a partial line of a crash, and is
  /// skipped.
  template <typename Function>
  bool Read(std::size_t bytes, Function function) {
    if (!Fill(bytes)) return false;
    std::size_t begin = 0;
    for (std::size_t end; (end = buffer_.find('\n', begin)) != std::string::npos; begin = end + 1)
      if (end > begin) function(std::string_view(buffer_).substr(begin, end - begin));
    buffer_.erase(0, begin);
    return true;
  }

 private:
  bool Fill(std::size_t bytes);

  struct File {
    std::string path;
    std::uint64_t size = 0;
  };
  std::vector<File> files_;
  std::size_t next_ = 0;      // index of the current file
  std::uint64_t offset_ = 0;  // in the current file
  std::string buffer_;        // text after the last complete line
};

}  // namespace penstock::node::usage
