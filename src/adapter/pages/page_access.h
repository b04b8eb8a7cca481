// Decides which clients may see the page at / and its data. Pure.
#pragma once

#include <optional>
#include <string>

#include "protocol/http/request.h"
#include "protocol/http/response.h"

namespace penstock::adapter::pages {

/// Why this client gets nothing, as the response; nothing: it may see the page. The page is for
/// clients that proved who they are, and without credentials for users of this machine: at a
/// listener that the network does not reach, and by a name that only this machine has. A website
/// whose name suddenly resolves to 127.0.0.1 (DNS rebinding) has another one.
std::optional<protocol::http::Response> RefusePage(const protocol::http::Request& request);

/// A short response in plain text, with PageFields.
protocol::http::Response PageText(int status, std::string text);

/// Fields of every response of the page: what a browser may load and run for it, and that no other
/// site may embed it or read it.
const protocol::http::Fields& PageFields();

}  // namespace penstock::adapter::pages
