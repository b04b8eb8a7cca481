// The server's side of TLS: certificate, key and what is asked of clients. Reads no file: the texts come from the caller.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::edge::http {

/// What is asked of a client. Names and meaning are those of Go's crypto/tls.ClientAuthType.
enum class ClientAuth { kNone, kRequest, kRequireAny, kVerifyIfGiven, kRequireAndVerify };

/// A text in PEM and how errors call it: its file, or the key that it was given under.
struct Pem {
  std::string text;
  std::string name;
};

enum class TlsVersion { k10, k11, k12, k13 };

struct TlsSettings {
  Pem certificate;  ///< the server's own first, then those that lead to an authority
  Pem key;
  Pem client_ca;  ///< empty: the system's authorities, where clients are verified
  ClientAuth client_auth = ClientAuth::kNone;
  std::vector<std::string> client_allowed_sans;  ///< DNS names, addresses, mail addresses, URIs: one must be in the certificate; empty: any
  TlsVersion least = TlsVersion::k12, most = TlsVersion::k13;
  std::vector<std::string> ciphers;  ///< up to TLS 1.2, by OpenSSL's names; empty: those with forward secrecy and AEAD
  std::vector<std::string> groups;   ///< for the key exchange, by OpenSSL's names; empty: its own order
  bool prefer_server_ciphers = true;
};

/// Everything that is the same for all connections of a listener. Any thread; never changed once made.
class Tls {
 public:
  /// Blocks: loads OpenSSL the first time. kInvalidArgument says which text is wrong and what to do; kUnimplemented where there is no
  /// OpenSSL.
  static base::Result<std::shared_ptr<const Tls>> Make(const TlsSettings& settings);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// Whether every client has to prove who it is by a certificate.
  bool identifies_clients() const;

  base::WallTime certificate_begins() const;
  base::WallTime certificate_ends() const;

  struct State;
  const State& state() const { return *state_; }

 private:
  explicit Tls(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace penstock::edge::http
