// The head of an HTTP request, from anybody who can reach the pages.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "edge/http/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t length = penstock::edge::http::HeadLength(text);
  if (length > size) std::abort();
  const auto request = penstock::edge::http::ParseHead(length > 0 ? text.substr(0, length) : text);
  if (request.ok() && (request->method.empty() || request->path.empty() || request->path.front() != '/')) std::abort();
  return 0;
}
