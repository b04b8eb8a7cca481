// Loads libpenstock-net.so, or the libraries of the system that it replaces, and resolves the
// functions in use.
#include "os/library.h"

#include <mutex>
#include <optional>

#include "os/trim.h"
#include "protocol/net/curl_library.h"
#include "protocol/net/tls_library.h"
#include "protocol/net/trim.h"

namespace penstock::protocol::net {
namespace {

using Libraries = std::span<const os::Library>;

constexpr char kOwn[] = "libpenstock-net.so";

// Before anything else initializes OpenSSL: it is never cleaned up, because cleaning up as the
// program ends would race with threads that still use it.
bool InitializeOpenSsl(Libraries libraries) {
  decltype(&::OPENSSL_init_ssl) initialize = nullptr;
  os::Symbols(libraries).Take(initialize, "OPENSSL_init_ssl");
  return initialize == nullptr || initialize(OPENSSL_INIT_NO_ATEXIT, nullptr) == 1;
}

base::Status Resolve(Libraries libraries, TlsLibrary& tls) {
  os::Symbols symbols(libraries);
#define FUNCTION(member, name) symbols.Take(tls.member, #name);
#include "protocol/net/openssl.def"
#undef FUNCTION
  if (!symbols.missing().empty())
    return Error(Code::kUnimplemented, "OpenSSL lacks " + symbols.missing());
  if (!InitializeOpenSsl(libraries))
    return Error(Code::kUnavailable, "OpenSSL cannot be initialized: " + tls.LastError());
  return {};
}

base::Status Resolve(Libraries libraries, CurlLibrary& curl) {
  os::Symbols symbols(libraries);
#define FUNCTION(member, name) symbols.Take(curl.member, #name);
#include "protocol/net/curl.def"
#undef FUNCTION
  if (!symbols.missing().empty())
    return Error(Code::kUnimplemented, "libcurl lacks " + symbols.missing());
  if (const auto* info = curl.version_info(CURLVERSION_NOW); info->version_num < 0x075500) {
    return Error(Code::kUnimplemented,
                 std::string("libcurl ") + info->version + " is too old: 7.85 or newer is needed");
  }
  InitializeOpenSsl(libraries);
  // The signal handler that libcurl would otherwise set belongs to the program.
  if (const CURLcode code = curl.global_init(CURL_GLOBAL_SSL); code != CURLE_OK) {
    return Error(Code::kUnavailable,
                 std::string("libcurl cannot be initialized: ") + curl.strerror(code));
  }
  return {};
}

/// The state of both libraries belongs to the process.
struct Loaded {
  std::mutex mutex;
  std::vector<os::Library> libraries;
  std::optional<TlsLibrary> tls;
  std::optional<CurlLibrary> curl;
};

Loaded& TheOne() {
  // Never freed: other threads may still use it when the program ends.
  static auto* const one = new Loaded;
  return *one;
}

template <typename Functions>
base::Result<const Functions*> LoadInto(std::optional<Functions> Loaded::*member, const char* what,
                                        const std::vector<std::string>& replaces,
                                        const char* without) {
  Loaded& one = TheOne();
  std::lock_guard lock(one.mutex);
  if (!(one.*member)) {
    auto libraries = os::LoadBundled(kOwn, what, replaces);
    if (!libraries.ok()) return Error(Code::kUnimplemented, without + libraries.error().message());
    Functions functions{};
    TRY(Resolve(*libraries, functions));
    for (os::Library& library : *libraries) one.libraries.push_back(std::move(library));
    one.*member = functions;
  }
  return &*(one.*member);
}

}  // namespace

base::Result<const TlsLibrary*> TlsLibrary::Load() {
  return LoadInto(&Loaded::tls, "OpenSSL", {"libssl.so.3", "libcrypto.so.3"},
                  "no OpenSSL 3 can be loaded; install libssl3 or all packages of Penstock: ");
}

base::Result<const CurlLibrary*> CurlLibrary::Load() {
  return LoadInto(&Loaded::curl, "libcurl", {"libcurl.so.4"}, "cannot connect to any API server: ");
}

std::string TlsLibrary::LastError() const {
  const unsigned long code = peek_last_error();
  const char* reason = code != 0 ? reason_error_string(code) : nullptr;
  std::string text = reason != nullptr ? reason : "no reason given";
  clear_error();
  return text;
}

void TrimLibrary() {
  os::TrimLoaded([](std::string_view path) { return path.find(kOwn) != std::string_view::npos; });
}

}  // namespace penstock::protocol::net
