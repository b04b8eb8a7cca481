// An answer to a request, and how its head is written. Sends nothing.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/clock.h"

namespace penstock::edge::http {

/// Fields of an answer's head, by name and value.
using Fields = std::vector<std::pair<std::string, std::string>>;

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  ///< never changed once it is given; null: empty
  bool varies = false;                      ///< by Accept
};

/// A few words of text.
Response Say(int status, std::string text);

/// What a head says beside the response itself.
struct HeadOptions {
  bool gzip = false;  ///< `length` is of the compressed body
  std::size_t length = 0;
  bool keep_alive = false;
  const Fields* fields = nullptr;  ///< more of them; may be null
  base::WallTime now{};
};

/// Status line and fields, with the empty line that ends them.
std::string WriteHead(const Response& response, const HeadOptions& options);

}  // namespace penstock::edge::http
