// Compresses pages with gzip, each page once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::protocol::http {

/// Returns the text in gzip's format (RFC 1952). kResourceExhausted if there is not enough memory.
base::Result<std::string> Gzip(std::string_view text);

/// Keeps the compressed form of a page for as long as another owner keeps the page. On one thread.
class GzipCache {
 public:
  using Text = std::shared_ptr<const std::string>;

  /// Returns the compressed page; null if compression failed. Pages are identified by their
  /// address, not by their content.
  Text Get(const Text& page);

 private:
  struct Entry {
    std::weak_ptr<const std::string> page;
    Text compressed;
  };
  std::vector<Entry> entries_;
};

}  // namespace penstock::protocol::http
