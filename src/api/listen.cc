#include "api/listen.h"

#include <algorithm>
#include <limits>

#include "base/core/strings.h"

namespace penstock::api {

namespace {

Error Wrong(std::string_view text, std::string_view why) {
  return {Code::kInvalidArgument, "\"" + std::string(text) +
                                      "\" is not an address to listen on: " + std::string(why) +
                                      "; write for example 127.0.0.1:9400, [::1]:9400, "
                                      "unix:/run/penstock/http.sock, systemd: or "
                                      "off"};
}

base::Result<ListenAddress> ParseSocketPath(std::string_view text, std::string path) {
  if (path.empty() || path.front() != '/')
    return Wrong(text, "the path of a unix socket must be absolute");
  if (path.size() > kLongestSocketPath)
    return Wrong(text, "the path of a unix socket has at most 107 bytes, this one " +
                           std::to_string(path.size()));
  return ListenAddress{.path = std::move(path)};
}

/// FileDescriptorName= as systemd.socket(5) allows it: printable ASCII without ':', at most 255
/// bytes.
base::Result<ListenAddress> ParseSystemd(std::string_view text, std::string_view name) {
  const auto allowed = [](char c) { return c > ' ' && c < 0x7f && c != ':'; };
  if (name.size() > 255 || !std::ranges::all_of(name, allowed))
    return Wrong(
        text, "a socket of systemd is named as in FileDescriptorName=, without spaces and colons");
  return ListenAddress{.systemd = std::string(name)};
}

bool IsHostCharacter(char c, bool bracketed) {
  const bool alphanumeric =
      (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return alphanumeric || c == '.' || c == '-' || c == '_' || (bracketed && (c == ':' || c == '%'));
}

}  // namespace

base::Result<ListenAddress> ParseListen(std::string_view text) {
  if (text == "off") return ListenAddress{.off = true};
  if (text.starts_with("unix:")) return ParseSocketPath(text, std::string(text.substr(5)));
  if (text.starts_with("systemd:")) return ParseSystemd(text, text.substr(8));

  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Wrong(text, "it has no port");
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!bracketed && host.find(':') != std::string_view::npos)
    return Wrong(text, "an IPv6 address must be in brackets");
  if (!std::ranges::all_of(host, [bracketed](char c) { return IsHostCharacter(c, bracketed); }))
    return Wrong(text, "the host contains a character that is not allowed");

  const auto port = base::ParseUint(text.substr(colon + 1));
  if (!port || *port > std::numeric_limits<std::uint16_t>::max())
    return Wrong(text, "the port must be a number from 0 to 65535");
  return ListenAddress{.host = std::string(host), .port = static_cast<std::uint16_t>(*port)};
}

}  // namespace penstock::api
