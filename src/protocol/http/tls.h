// Configures the server's side of TLS: certificate, key and requirements on clients. Reads no
// files: the caller passes the texts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::protocol::http {

/// Whether a client is asked for a certificate, and how it is verified. Names and meanings are
/// those of Go's crypto/tls.ClientAuthType.
enum class ClientAuth { kNone, kRequest, kRequireAny, kVerifyIfGiven, kRequireAndVerify };

/// A PEM text with its name in error messages: its file, or the key under which it was given.
struct Pem {
  std::string text;
  std::string name;
};

enum class TlsVersion { k10, k11, k12, k13 };

struct TlsSettings {
  Pem certificate;  ///< the server's own first, then the chain to an authority
  Pem key;
  Pem client_ca;  ///< empty: the system's authorities, if clients are verified
  ClientAuth client_auth = ClientAuth::kNone;
  std::vector<std::string>
      client_allowed_sans;  ///< DNS names, IP addresses, mail addresses, URIs: the certificate must
                            ///< have one of them; empty: any certificate
  TlsVersion least = TlsVersion::k12, most = TlsVersion::k13;
  std::vector<std::string>
      ciphers;  ///< up to TLS 1.2, by OpenSSL's names; empty: those with forward secrecy and AEAD
  std::vector<std::string>
      groups;  ///< for the key exchange, by OpenSSL's names; empty: OpenSSL's order
  bool prefer_server_ciphers = true;
};

/// The TLS settings that all connections of a listener share. Immutable. Any thread.
class Tls {
 public:
  /// Blocks: loads OpenSSL the first time. kInvalidArgument says which text is wrong and what to
  /// do; kUnimplemented if OpenSSL is unavailable.
  static base::Result<std::shared_ptr<const Tls>> Make(const TlsSettings& settings);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// Returns whether every client must identify itself by a certificate.
  bool identifies_clients() const;

  base::WallTime certificate_begins() const;
  base::WallTime certificate_ends() const;

  struct State;
  const State& state() const { return *state_; }

 private:
  explicit Tls(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace penstock::protocol::http
