// Loads OpenSSL 3 when the first listener needs TLS or credentials: an agent without them does not
// load it.
#pragma once

#include <string>

#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/core/result.h"

namespace penstock::protocol::net {

/// The functions of OpenSSL 3 in use, with the types of OpenSSL's headers. What those headers offer
/// as a macro is called through *_ctrl.
struct TlsLibrary {
#define FUNCTION(member, name) decltype(&::name) member;
#include "protocol/net/openssl.def"
#undef FUNCTION

  /// Loads our own small build (libpenstock-net.so, beside the programs), else the system's
  /// libssl.so.3. Once loaded, it stays for the life of the process; after a failure, the next call
  /// retries. Blocks: reads the library's file. Any thread.
  static base::Result<const TlsLibrary*> Load();

  /// Returns why the last call failed, in OpenSSL's words, and empties the calling thread's error
  /// queue.
  std::string LastError() const;
};

}  // namespace penstock::protocol::net
