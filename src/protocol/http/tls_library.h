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

namespace penstock::protocol::http {

/// The functions of OpenSSL 3 in use, with the types of OpenSSL's headers. What those headers offer
/// as a macro is called through *_ctrl.
struct TlsLibrary {
  decltype(&::OPENSSL_init_ssl) init_ssl;
  decltype(&::TLS_server_method) server_method;
  decltype(&::SSL_CTX_new) ctx_new;
  decltype(&::SSL_CTX_free) ctx_free;
  decltype(&::SSL_CTX_ctrl) ctx_ctrl;
  decltype(&::SSL_CTX_set_options) ctx_set_options;
  decltype(&::SSL_CTX_set_cipher_list) ctx_set_cipher_list;
  decltype(&::SSL_CTX_set_num_tickets) ctx_set_num_tickets;
  decltype(&::SSL_CTX_use_certificate) ctx_use_certificate;
  decltype(&::SSL_CTX_use_PrivateKey) ctx_use_private_key;
  decltype(&::SSL_CTX_set_verify) ctx_set_verify;
  decltype(&::SSL_CTX_set_cert_verify_callback) ctx_set_cert_verify_callback;
  decltype(&::SSL_CTX_get_cert_store) ctx_get_cert_store;
  decltype(&::SSL_CTX_add_client_CA) ctx_add_client_ca;
  decltype(&::SSL_CTX_set_default_verify_paths) ctx_set_default_verify_paths;
  decltype(&::SSL_new) ssl_new;
  decltype(&::SSL_free) ssl_free;
  decltype(&::SSL_set_fd) set_fd;
  decltype(&::SSL_accept) accept;
  decltype(&::SSL_read) read;
  decltype(&::SSL_write) write;
  decltype(&::SSL_shutdown) shutdown;
  decltype(&::SSL_get_error) get_error;
  decltype(&::ERR_clear_error) clear_error;
  decltype(&::ERR_peek_last_error) peek_last_error;
  decltype(&::ERR_reason_error_string) reason_error_string;
  decltype(&::BIO_new_mem_buf) bio_new_mem_buf;
  decltype(&::BIO_free) bio_free;
  decltype(&::PEM_read_bio_X509) read_x509;
  decltype(&::PEM_read_bio_PrivateKey) read_private_key;
  decltype(&::X509_free) x509_free;
  decltype(&::X509_check_private_key) x509_check_private_key;
  decltype(&::X509_get0_notAfter) x509_not_after;
  decltype(&::X509_get0_notBefore) x509_not_before;
  decltype(&::X509_get_ext_d2i) x509_get_ext;
  decltype(&::X509_verify_cert) x509_verify;
  decltype(&::X509_STORE_add_cert) store_add_cert;
  decltype(&::X509_STORE_CTX_get0_cert) store_ctx_get_cert;
  decltype(&::X509_STORE_CTX_set_error) store_ctx_set_error;
  decltype(&::EVP_PKEY_free) pkey_free;
  decltype(&::ASN1_TIME_to_tm) time_to_tm;
  decltype(&::ASN1_STRING_get0_data) string_data;
  decltype(&::ASN1_STRING_length) string_length;
  decltype(&::GENERAL_NAMES_free) names_free;
  decltype(&::OPENSSL_sk_num) sk_num;
  decltype(&::OPENSSL_sk_value) sk_value;
  decltype(&::EVP_sha256) sha256;
  decltype(&::EVP_Digest) digest;
  decltype(&::HMAC) hmac;

  /// Loads our own small build of OpenSSL (libpenstock-tls.so, beside the programs), else the
  /// system's libssl.so.3. Once loaded, it stays for the life of the process; after a failure, the
  /// next call retries. Blocks: reads the library's file. Any thread.
  static base::Result<const TlsLibrary*> Load();

  /// Returns why the last call failed, in OpenSSL's words, and empties the calling thread's error
  /// queue.
  std::string LastError() const;
};

/// Releases the memory pages of the library's code and constants, because a handshake touches more
/// of them than all that follows. The page cache supplies them again on the next use. Any thread.
void TrimTlsLibrary();

}  // namespace penstock::protocol::http
