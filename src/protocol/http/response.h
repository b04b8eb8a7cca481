// Defines the response to a request and writes its head. Does no I/O.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"

namespace penstock::protocol::http {

/// Header fields of a response, by name and value.
using Fields = std::vector<std::pair<std::string, std::string>>;

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  ///< immutable once set; null: empty
  bool varies = false;                      ///< the response depends on Accept
  Fields fields;                            ///< further fields of this response
  /// Identifies the content (RFC 9110, 8.8.3), without quotes: a client that has it gets 304.
  /// Empty: none.
  std::string tag;
  bool kept = false;  ///< clients may keep it, and ask by its tag whether it is current
};

/// Returns a short response in plain text.
Response Text(int status, std::string text);

/// The contents of a head that are not part of the response.
struct HeadOptions {
  bool gzip = false;  ///< `length` is that of the compressed body
  std::size_t length = 0;
  bool keep_alive = false;
  const Fields* fields = nullptr;  ///< further fields; may be null
  base::WallTime now{};
};

/// Returns the status line and the fields, with the empty line that ends them.
std::string WriteHead(const Response& response, const HeadOptions& options);

}  // namespace penstock::protocol::http
