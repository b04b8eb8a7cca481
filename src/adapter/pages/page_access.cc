#include "adapter/pages/page_access.h"

#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>

#include "base/core/strings.h"

namespace penstock::adapter::pages {

namespace {

using protocol::http::Request;
using protocol::http::Response;

/// "localhost:9400" without its port, and without brackets; empty if it is malformed.
std::string NameIn(std::string_view host) {
  if (!host.starts_with('[')) return base::ToLower(host.substr(0, host.rfind(':')));
  const std::size_t end = host.find(']');
  const bool whole =
      end != std::string_view::npos && (end + 1 == host.size() || host[end + 1] == ':');
  return whole ? std::string(host.substr(1, end - 1)) : "";
}

/// Whether a browser connects to this machine, whatever a name server says. A client without a name
/// is no browser.
bool IsThisMachine(std::string_view host) {
  constexpr unsigned kNet = 127;
  const std::string name = NameIn(host);
  if (host.empty() || name == "localhost") return true;
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, name.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == kNet;
  return ::inet_pton(AF_INET6, name.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six) != 0;
}

}  // namespace

Response PageText(int status, std::string text) {
  Response response = protocol::http::Text(status, std::move(text));
  response.fields = PageFields();
  return response;
}

std::optional<Response> RefusePage(const Request& request) {
  if (request.identified) return std::nullopt;
  if (!request.local)
    return PageText(
        403,
        "This page is shown on the network only to clients with credentials, and none are "
        "configured.\nConfigure users (http.webConfigFile, basic_auth_users), or let the agent "
        "listen on 127.0.0.1 and use a tunnel: ssh -L 9400:127.0.0.1:9400 THIS-MACHINE\n"
        "See docs/page.md. The other pages: /metrics /debug/state /healthz /readyz\n");
  if (IsThisMachine(request.host)) return std::nullopt;
  return PageText(
      403,
      "Without credentials this page is shown only under the names localhost, 127.0.0.1 and "
      "[::1].\nOpen it under one of them, or configure users (http.webConfigFile). See "
      "docs/page.md.\n");
}

const protocol::http::Fields& PageFields() {
  static const protocol::http::Fields fields = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
       "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
       "require-trusted-types-for 'script'; trusted-types 'none'"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cross-Origin-Opener-Policy", "same-origin"}};
  return fields;
}

}  // namespace penstock::adapter::pages
