// Loads libcurl when the first client needs it, so that a program without a cluster does not pay
// for it. Makes no request.
#pragma once

#include <curl/curl.h>

#include "base/core/result.h"

namespace penstock::protocol::net {

/// The functions in use of libcurl 7.85 or newer. The types are those of its header; setopt and
/// getinfo bypass its checking macros.
struct CurlLibrary {
#define FUNCTION(member, name) decltype(&::name) member;
#include "protocol/net/curl.def"
#undef FUNCTION

  /// Loads our own small build (libpenstock-net.so, beside the programs), else the system's
  /// libcurl.so.4. Once loaded, it stays for the life of the process; after a failure, the next
  /// call retries. Blocks: reads the library's file. Any thread.
  static base::Result<const CurlLibrary*> Load();
};

}  // namespace penstock::protocol::net
