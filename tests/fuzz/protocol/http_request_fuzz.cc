// Fuzzes the head of an HTTP request, its content negotiation and its query; any client that can
// reach the pages may send one.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/http/accept.h"
#include "protocol/http/query.h"
#include "protocol/http/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t length = penstock::protocol::http::HeadLength(text);
  if (length > size) std::abort();
  const auto request =
      penstock::protocol::http::ParseHead(length > 0 ? text.substr(0, length) : text);
  if (!request.ok()) return 0;
  if (request->method.empty() || request->path.empty() || request->path.front() != '/')
    std::abort();
  if (request->authorization.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos)
    std::abort();
  if (request->patience < penstock::base::Duration::zero() ||
      request->patience > std::chrono::hours(1))
    std::abort();
  constexpr std::array<penstock::protocol::http::MediaType, 2> kOffers = {
      {{"text/plain", "0.0.4"}, {"application/openmetrics-text", "1.0.0"}}};
  if (ChooseType(request->accept, kOffers) >= kOffers.size()) std::abort();
  (void)penstock::protocol::http::WantsGzip(request->accept_encoding);
  if (request->host.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) std::abort();
  for (const char* name : {"node", "device", "from", ""}) {
    const auto value = penstock::protocol::http::QueryValue(request->query, name);
    if (value && penstock::protocol::http::QueryValue(
                     "x=" + penstock::protocol::http::QueryEncoded(*value), "x") != value)
      std::abort();
  }
  return 0;
}
