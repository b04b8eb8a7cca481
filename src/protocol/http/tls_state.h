// Holds the OpenSSL objects of Tls. Private to protocol/http.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "protocol/http/tls.h"
#include "protocol/net/tls_library.h"

namespace penstock::protocol::http {

struct Tls::State {
  explicit State(const net::TlsLibrary& l) : library(l), context(nullptr, l.ctx_free) {}

  const net::TlsLibrary& library;
  std::unique_ptr<SSL_CTX, decltype(net::TlsLibrary::ctx_free)> context;
  std::vector<std::string> allowed_sans;
  bool identifies_clients = false;
  base::WallTime begins, ends;
};

}  // namespace penstock::protocol::http
