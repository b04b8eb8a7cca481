// The head of an HTTP request and what the client would rather have, from anybody who can reach the pages.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "edge/http/accept.h"
#include "edge/http/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t length = penstock::edge::http::HeadLength(text);
  if (length > size) std::abort();
  const auto request = penstock::edge::http::ParseHead(length > 0 ? text.substr(0, length) : text);
  if (!request.ok()) return 0;
  if (request->method.empty() || request->path.empty() || request->path.front() != '/') std::abort();
  if (request->authorization.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) std::abort();
  if (request->patience < penstock::base::Duration::zero() || request->patience > std::chrono::hours(1)) std::abort();
  constexpr std::array<penstock::edge::http::MediaType, 2> kOffers = {{{"text/plain", "0.0.4"}, {"application/openmetrics-text", "1.0.0"}}};
  if (ChooseType(request->accept, kOffers) >= kOffers.size()) std::abort();
  (void)penstock::edge::http::WantsGzip(request->accept_encoding);
  return 0;
}
