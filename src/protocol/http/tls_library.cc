#include "protocol/http/tls_library.h"

#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "os/library.h"
#include "os/trim.h"

namespace penstock::protocol::http {
namespace {

using base::Code;
using base::Error;

constexpr char kOwn[] = "libpenstock-tls.so";

base::Result<TlsLibrary> Resolve(std::span<const os::Library> libraries) {
  TlsLibrary library{};
  os::Symbols symbols(libraries);
  symbols.Take(library.init_ssl, "OPENSSL_init_ssl");
  symbols.Take(library.server_method, "TLS_server_method");
  symbols.Take(library.ctx_new, "SSL_CTX_new");
  symbols.Take(library.ctx_free, "SSL_CTX_free");
  symbols.Take(library.ctx_ctrl, "SSL_CTX_ctrl");
  symbols.Take(library.ctx_set_options, "SSL_CTX_set_options");
  symbols.Take(library.ctx_set_cipher_list, "SSL_CTX_set_cipher_list");
  symbols.Take(library.ctx_set_num_tickets, "SSL_CTX_set_num_tickets");
  symbols.Take(library.ctx_use_certificate, "SSL_CTX_use_certificate");
  symbols.Take(library.ctx_use_private_key, "SSL_CTX_use_PrivateKey");
  symbols.Take(library.ctx_set_verify, "SSL_CTX_set_verify");
  symbols.Take(library.ctx_set_cert_verify_callback, "SSL_CTX_set_cert_verify_callback");
  symbols.Take(library.ctx_get_cert_store, "SSL_CTX_get_cert_store");
  symbols.Take(library.ctx_add_client_ca, "SSL_CTX_add_client_CA");
  symbols.Take(library.ctx_set_default_verify_paths, "SSL_CTX_set_default_verify_paths");
  symbols.Take(library.ssl_new, "SSL_new");
  symbols.Take(library.ssl_free, "SSL_free");
  symbols.Take(library.set_fd, "SSL_set_fd");
  symbols.Take(library.accept, "SSL_accept");
  symbols.Take(library.read, "SSL_read");
  symbols.Take(library.write, "SSL_write");
  symbols.Take(library.shutdown, "SSL_shutdown");
  symbols.Take(library.get_error, "SSL_get_error");
  symbols.Take(library.clear_error, "ERR_clear_error");
  symbols.Take(library.peek_last_error, "ERR_peek_last_error");
  symbols.Take(library.reason_error_string, "ERR_reason_error_string");
  symbols.Take(library.bio_new_mem_buf, "BIO_new_mem_buf");
  symbols.Take(library.bio_free, "BIO_free");
  symbols.Take(library.read_x509, "PEM_read_bio_X509");
  symbols.Take(library.read_private_key, "PEM_read_bio_PrivateKey");
  symbols.Take(library.x509_free, "X509_free");
  symbols.Take(library.x509_check_private_key, "X509_check_private_key");
  symbols.Take(library.x509_not_after, "X509_get0_notAfter");
  symbols.Take(library.x509_not_before, "X509_get0_notBefore");
  symbols.Take(library.x509_get_ext, "X509_get_ext_d2i");
  symbols.Take(library.x509_verify, "X509_verify_cert");
  symbols.Take(library.store_add_cert, "X509_STORE_add_cert");
  symbols.Take(library.store_ctx_get_cert, "X509_STORE_CTX_get0_cert");
  symbols.Take(library.store_ctx_set_error, "X509_STORE_CTX_set_error");
  symbols.Take(library.pkey_free, "EVP_PKEY_free");
  symbols.Take(library.time_to_tm, "ASN1_TIME_to_tm");
  symbols.Take(library.string_data, "ASN1_STRING_get0_data");
  symbols.Take(library.string_length, "ASN1_STRING_length");
  symbols.Take(library.names_free, "GENERAL_NAMES_free");
  symbols.Take(library.sk_num, "OPENSSL_sk_num");
  symbols.Take(library.sk_value, "OPENSSL_sk_value");
  symbols.Take(library.sha256, "EVP_sha256");
  symbols.Take(library.digest, "EVP_Digest");
  symbols.Take(library.hmac, "HMAC");
  if (!symbols.missing().empty())
    return Error(Code::kUnimplemented, "OpenSSL lacks " + symbols.missing());
  // The library is never cleaned up: cleaning up as the program ends would race with threads that
  // still use it.
  if (library.init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr) != 1)
    return Error(Code::kUnavailable, "OpenSSL cannot be initialized: " + library.LastError());
  return library;
}

struct Loaded {
  std::vector<os::Library> libraries;
  TlsLibrary functions;
};

std::mutex& LibraryMutex() {
  static std::mutex mutex;
  return mutex;
}

std::optional<Loaded>& TheOne() {
  static std::optional<Loaded>* one =
      new std::optional<Loaded>;  // never destroyed: other threads may still use it when the
                                  // program ends
  return *one;
}

}  // namespace

base::Result<const TlsLibrary*> TlsLibrary::Load() {
  std::lock_guard lock(LibraryMutex());
  std::optional<Loaded>& one = TheOne();
  if (!one) {
    auto libraries = os::LoadBundled(kOwn, "OpenSSL", {"libssl.so.3", "libcrypto.so.3"});
    if (!libraries.ok())
      return Error(Code::kUnimplemented,
                   "no OpenSSL 3 can be loaded; install libssl3 or all packages of Penstock: " +
                       libraries.error().message());
    ASSIGN(const TlsLibrary functions, Resolve(*libraries));
    one.emplace(Loaded{*std::move(libraries), functions});
  }
  return &one->functions;
}

void TrimTlsLibrary() {
  os::TrimLoaded([](std::string_view path) { return path.find(kOwn) != std::string_view::npos; });
}

std::string TlsLibrary::LastError() const {
  const unsigned long code = peek_last_error();
  const char* reason = code != 0 ? reason_error_string(code) : nullptr;
  std::string text = reason != nullptr ? reason : "no reason given";
  clear_error();
  return text;
}

}  // namespace penstock::protocol::http
