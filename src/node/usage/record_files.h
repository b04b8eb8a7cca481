// The folder of usage records: numbered files of JSON lines, of which the oldest go. Knows nothing of what is in a line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/core/quantity.h"
#include "base/core/result.h"

namespace penstock::node::usage {

/// "usage-000001.jsonl" and so on. The agent alone writes there, to the one with the highest number. Not thread-safe; all calls block.
class RecordFiles {
 public:
  struct Limits {
    base::Bytes file_size = base::Mebibytes(16);  ///< a file that would be larger is followed by the next
    int files = 16;                               ///< that are kept
  };

  explicit RecordFiles(std::string folder) : folder_(std::move(folder)) {}

  /// Adds lines, each with its line feed, and waits until they are on the disk. All or nothing: a line that was half written is taken back,
  /// and one that a crash left half written is ended. New files are 0640, the folder 0750 where it is made.
  base::Status Append(const std::vector<std::string>& lines, const Limits& limits) const;

  /// Those of the lines that are not at the end of the newest files.
  std::vector<std::string> Missing(const std::vector<std::string>& lines) const;

  /// Paths, the oldest first; none where the folder is not there.
  std::vector<std::string> List() const;

 private:
  const std::string folder_;
};

/// Reads records line by line, a piece at a time, so that a large folder needs little memory. Not thread-safe; blocks.
class LineReader {
 public:
  /// Of each file what is in it now. A file that goes meanwhile is passed over.
  explicit LineReader(std::vector<std::string> files);

  /// Calls back with each whole line of the next `bytes`, without its line feed. False: there is nothing more. What follows the last line
  /// feed of a file was torn by a crash, and is no line.
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
  std::size_t next_ = 0;      // the file that is read
  std::uint64_t offset_ = 0;  // in it
  std::string buffer_;        // what follows the last whole line
};

}  // namespace penstock::node::usage
