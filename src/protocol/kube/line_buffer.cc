#include "protocol/kube/line_buffer.h"

#include <utility>

namespace penstock::protocol::kube {
namespace {

constexpr std::size_t kKeptBuffer = 32u << 10;

}  // namespace

std::optional<std::string_view> LineBuffer::Next(bool ended) {
  const std::size_t end = text_.find('\n', searched_);
  if (end == std::string::npos) {
    text_.erase(0, std::exchange(line_start_, 0));
    // A watch that was shown a thousand objects at once is silent for minutes afterwards.
    if (text_.empty() && text_.capacity() > kKeptBuffer) text_.shrink_to_fit();
    searched_ = text_.size();
    if (!ended || text_.empty()) return std::nullopt;
    line_start_ = searched_;
    return std::string_view(text_);
  }
  std::string_view line(text_.data() + line_start_, end - line_start_);
  line_start_ = searched_ = end + 1;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace penstock::protocol::kube
