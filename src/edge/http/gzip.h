// Compresses pages, each once. Knows nothing of who asks.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::edge::http {

/// The text in gzip's format (RFC 1952). kResourceExhausted where there is no memory for it.
base::Result<std::string> Gzip(std::string_view text);

/// Keeps what was made of a page for as long as somebody else keeps the page. On one thread.
class GzipCache {
 public:
  using Text = std::shared_ptr<const std::string>;

  /// The page compressed; null where that failed. Pages are told apart by their address, not by what they say.
  Text Get(const Text& page);

 private:
  struct Entry {
    std::weak_ptr<const std::string> page;
    Text compressed;
  };
  std::vector<Entry> entries_;
};

}  // namespace penstock::edge::http
