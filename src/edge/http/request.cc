// The head of an HTTP/1.x request. Reads no socket.
#include "edge/http/request.h"

#include <algorithm>

namespace penstock::edge::http {

namespace {

using base::Code;
using base::Error;

bool IsTokenCharacter(char c) {
  static constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";  // RFC 9110, 5.6.2
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || kOthers.find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenCharacter); }

bool IsTargetCharacter(char c) { return c > 0x20 && c < 0x7f; }

/// "http://host/path" to "/path"; the empty path of such a target is "/".
std::string_view OriginForm(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const std::size_t path = target.find('/', scheme.size());
    return path == std::string_view::npos ? std::string_view("/") : target.substr(path);
  }
  return target;
}

base::Status CheckFields(std::string_view fields) {
  while (!fields.empty()) {
    const std::size_t end = fields.find("\r\n");
    const std::string_view line = fields.substr(0, end);
    if (line.empty()) return {};
    if (!IsToken(line.substr(0, line.find(':'))) || line.find(':') == std::string_view::npos)
      return Error(Code::kInvalidArgument, "a header is malformed");
    fields = end == std::string_view::npos ? std::string_view() : fields.substr(end + 2);
  }
  return {};
}

}  // namespace

std::size_t HeadLength(std::string_view text) {
  const std::size_t end = text.find("\r\n\r\n");
  return end == std::string_view::npos ? 0 : end + 4;
}

base::Result<Request> ParseHead(std::string_view head) {
  const std::size_t end = head.find("\r\n");
  const std::string_view line = head.substr(0, end);
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (end == std::string_view::npos || first == std::string_view::npos || first == last)
    return Error(Code::kInvalidArgument, "the request line is malformed");

  const std::string_view method = line.substr(0, first);
  const std::string_view version = line.substr(last + 1);
  if (!IsToken(method)) return Error(Code::kInvalidArgument, "the method is malformed");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return Error(Code::kInvalidArgument, "only HTTP/1.1 is spoken here");

  const std::string_view written = line.substr(first + 1, last - first - 1);
  const std::string_view target = OriginForm(written);
  if (target.empty() || target.front() != '/' || !std::all_of(written.begin(), written.end(), IsTargetCharacter))
    return Error(Code::kInvalidArgument, "the target is malformed");
  TRY(CheckFields(head.substr(end + 2)));

  const std::size_t query = target.find('?');
  return Request{.method = std::string(method),
                 .path = std::string(target.substr(0, query)),
                 .query = query == std::string_view::npos ? "" : std::string(target.substr(query + 1))};
}

}  // namespace penstock::edge::http
