#include "protocol/http/response.h"

#include <array>
#include <ctime>
#include <string_view>

namespace penstock::protocol::http {

namespace {

std::string_view Phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Status";
  }
}

/// "Sat, 21 Nov 2026 03:42:00 GMT" (RFC 9110, 5.6.7).
std::string HttpDate(base::WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> buffer{};
  return {buffer.data(),
          std::strftime(buffer.data(), buffer.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc)};
}

}  // namespace

Response Text(int status, std::string text) {
  return {.status = status, .body = std::make_shared<const std::string>(std::move(text))};
}

std::string WriteHead(const Response& response, const HeadOptions& options) {
  std::string text;
  text.reserve(384);
  text.append("HTTP/1.1 ")
      .append(std::to_string(response.status))
      .append(" ")
      .append(Phrase(response.status));
  const auto field = [&text](std::string_view name, std::string_view value) {
    text.append("\r\n").append(name).append(": ").append(value);
  };
  field("Date", HttpDate(options.now));
  if (response.status != 304) {
    field("Content-Type", response.content_type);
    field("Content-Length", std::to_string(options.length));
  }
  if (options.gzip) field("Content-Encoding", "gzip");
  field("Vary", response.varies ? "Accept, Accept-Encoding" : "Accept-Encoding");
  if (response.status == 405) field("Allow", "GET, HEAD");
  field("Cache-Control", response.kept ? "no-cache" : "no-store");
  // Weak: the compressed form has the same tag.
  if (!response.tag.empty()) field("ETag", "W/\"" + response.tag + "\"");
  for (const auto& [name, value] : response.fields) field(name, value);
  bool sniffing_set = false;
  if (options.fields != nullptr) {
    for (const auto& [name, value] : *options.fields) {
      field(name, value);
      sniffing_set = sniffing_set || name == "X-Content-Type-Options";
    }
  }
  if (!sniffing_set) field("X-Content-Type-Options", "nosniff");
  if (!options.keep_alive) field("Connection", "close");
  return text.append("\r\n\r\n");
}

}  // namespace penstock::protocol::http
