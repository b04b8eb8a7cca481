// Cuts what arrives of a stream into lines.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::protocol::kube {

/// Not thread-safe.
class LineBuffer {
 public:
  void Append(std::string_view part) { text_.append(part); }

  /// The next complete line, without its end; if `ended`, also the rest. Valid until the next call.
  /// Once all lines are taken, the memory is free that a large one took.
  std::optional<std::string_view> Next(bool ended);

  std::size_t size() const { return text_.size(); }
  std::size_t capacity() const { return text_.capacity(); }

 private:
  std::string text_;
  std::size_t line_start_ = 0;  // of the first line not taken yet
  std::size_t searched_ = 0;    // no line ends before it
};

}  // namespace penstock::protocol::kube
