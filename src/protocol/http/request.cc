#include "protocol/http/request.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/core/strings.h"

namespace penstock::protocol::http {

namespace {

constexpr double kMaxTimeout = 3600;  // seconds; longer than any usual scrape interval

bool IsTokenCharacter(char c) {
  static constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";  // RFC 9110, 5.6.2
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kOthers.find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsTokenCharacter);
}

bool IsTargetCharacter(char c) { return c > 0x20 && c < 0x7f; }

/// A field's value may contain anything but control characters (RFC 9110, 5.5).
bool IsValueCharacter(char c) {
  return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

/// Converts "http://host/path" to "/path"; the empty path of such a target is "/". Its host
/// replaces that of the header (RFC 9112, 3.2.2).
std::string_view OriginForm(std::string_view target, std::string& host) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const std::size_t path = target.find('/', scheme.size());
    host =
        target.substr(scheme.size(), path == std::string_view::npos ? path : path - scheme.size());
    return path == std::string_view::npos ? std::string_view("/") : target.substr(path);
  }
  return target;
}

void Join(std::string& list, std::string_view value) {
  if (!list.empty() && !value.empty()) list += ", ";
  list += value;
}

/// Returns whether a comma-separated list has a word; ignores case.
bool HasToken(std::string_view list, std::string_view word) {
  for (const std::string& item : base::Split(list, ','))
    if (base::ToLower(base::Trim(item)) == word) return true;
  return false;
}

base::Duration ToPatience(std::string_view text) {
  double seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() ||
      !(seconds > 0 && seconds <= kMaxTimeout))
    return {};
  return std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds));
}

/// What the fields say about the connection and the body.
struct Framing {
  std::string connection;
  bool body = false;
  bool host = false;  // the header was given
};

Status TakeField(std::string_view name, std::string_view value, Request& request,
                 Framing& framing) {
  const std::string lower = base::ToLower(name);
  if (lower == "accept") Join(request.accept, value);
  if (lower == "accept-encoding") Join(request.accept_encoding, value);
  if (lower == "connection") Join(framing.connection, value);
  if (lower == "transfer-encoding" || (lower == "content-length" && value != "0"))
    framing.body = true;
  if (lower == "x-prometheus-scrape-timeout-seconds") request.patience = ToPatience(value);
  if (lower == "if-none-match") Join(request.if_none_match, value);
  if (lower == "host") {
    if (std::exchange(framing.host, true))
      return Error(Code::kInvalidArgument, "the header Host is given twice");
    request.host = value;
  }
  if (lower != "authorization") return {};
  if (!request.authorization.empty())
    return Error(Code::kInvalidArgument, "the header Authorization is given twice");
  request.authorization = value;
  return {};
}

Status TakeFields(std::string_view fields, Request& request, Framing& framing) {
  while (!fields.empty()) {
    const std::size_t end = fields.find("\r\n");
    const std::string_view line = fields.substr(0, end);
    if (line.empty()) return {};
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon)) ||
        !std::ranges::all_of(line, IsValueCharacter))
      return Error(Code::kInvalidArgument, "a header is malformed");
    TRY(TakeField(line.substr(0, colon), base::Trim(line.substr(colon + 1)), request, framing));
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
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return Error(Code::kInvalidArgument, "only HTTP/1.1 is supported");

  const std::string_view written = line.substr(first + 1, last - first - 1);
  std::string host;
  const std::string_view target = OriginForm(written, host);
  if (target.empty() || target.front() != '/' || !std::ranges::all_of(written, IsTargetCharacter))
    return Error(Code::kInvalidArgument, "the target is malformed");

  const std::size_t query = target.find('?');
  Request request{
      .method = std::string(method),
      .path = std::string(target.substr(0, query)),
      .query = query == std::string_view::npos ? "" : std::string(target.substr(query + 1))};
  Framing framing;
  TRY(TakeFields(head.substr(end + 2), request, framing));
  if (!host.empty()) request.host = std::move(host);
  request.keep_alive =
      version == "HTTP/1.1" && !framing.body && !HasToken(framing.connection, "close");
  return request;
}

}  // namespace penstock::protocol::http
