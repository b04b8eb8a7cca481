// Makes OpenSSL's context from texts and settings. Opens no connection.
#include "protocol/http/tls.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <arpa/inet.h>

#include "base/core/strings.h"
#include "protocol/http/tls_state.h"

namespace penstock::protocol::http {

namespace {

constexpr char kStrong[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
/// The ciphers of TLS 1.0 and 1.1, which sign with SHA-1; OpenSSL's security level 2 refuses SHA-1.
constexpr char kOld[] = "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:@SECLEVEL=0";

using Certificate = std::unique_ptr<X509, decltype(net::TlsLibrary::x509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(net::TlsLibrary::pkey_free)>;
using Bio = std::unique_ptr<BIO, decltype(net::TlsLibrary::bio_free)>;

Error Wrong(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

Bio Open(const net::TlsLibrary& library, const Pem& pem) {
  return {library.bio_new_mem_buf(
              pem.text.data(), static_cast<int>(std::min<std::size_t>(pem.text.size(), 16u << 20))),
          library.bio_free};
}

base::Result<std::vector<Certificate>> ReadCertificates(const net::TlsLibrary& library,
                                                        const Pem& pem) {
  const Bio bio = Open(library, pem);
  std::vector<Certificate> certificates;
  library.clear_error();
  while (X509* one = library.read_x509(bio.get(), nullptr, nullptr, nullptr))
    certificates.emplace_back(one, library.x509_free);
  const unsigned long code = library.peek_last_error();
  const bool at_end =
      ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
  const std::string why = library.LastError();
  if (!at_end) return Wrong(pem.name + " holds a damaged certificate (" + why + ")");
  if (certificates.empty())
    return Wrong(pem.name +
                 " holds no certificate; it must have a block \"-----BEGIN CERTIFICATE-----\"");
  return certificates;
}

/// OpenSSL asks for a passphrase. There is none; that OpenSSL asked is why the key is unreadable.
int NoPassphrase(char*, int, int, void* requested) {
  *static_cast<bool*>(requested) = true;
  return -1;
}

base::Result<Key> ReadKey(const net::TlsLibrary& library, const Pem& pem) {
  const Bio bio = Open(library, pem);
  bool encrypted = false;
  library.clear_error();
  Key key(library.read_private_key(bio.get(), nullptr, NoPassphrase, &encrypted),
          library.pkey_free);
  const std::string why = library.LastError();
  if (key) return key;
  if (encrypted)
    return Wrong(pem.name +
                 " is encrypted with a passphrase, which the agent cannot ask for; decrypt it: "
                 "openssl pkey -in KEY -out PLAIN_KEY");
  if (pem.text.find("PRIVATE KEY-----") == std::string::npos)
    return Wrong(pem.name +
                 " holds no private key; it must have a block \"-----BEGIN PRIVATE KEY-----\"");
  return Wrong(pem.name + " holds a damaged private key (" + why + ")");
}

base::WallTime ToTime(const net::TlsLibrary& library, const ASN1_TIME* time) {
  std::tm utc{};
  return library.time_to_tm(time, &utc) == 1
             ? std::chrono::system_clock::from_time_t(::timegm(&utc))
             : base::WallTime{};
}

Status UseCertificate(Tls::State& state, const TlsSettings& settings) {
  const net::TlsLibrary& library = state.library;
  ASSIGN(auto chain, ReadCertificates(library, settings.certificate));
  ASSIGN(const Key key, ReadKey(library, settings.key));
  X509* own = chain.front().get();
  if (library.x509_check_private_key(own, key.get()) != 1) {
    library.clear_error();
    return Wrong(settings.key.name + " is not the key of the first certificate in " +
                 settings.certificate.name +
                 "; the server's own certificate must come before those of its authorities");
  }
  if (library.ctx_use_certificate(state.context.get(), own) != 1 ||
      library.ctx_use_private_key(state.context.get(), key.get()) != 1)
    return Wrong(settings.certificate.name + " cannot be used (" + library.LastError() + ")");
  for (std::size_t i = 1; i < chain.size(); ++i)
    if (library.ctx_ctrl(state.context.get(), SSL_CTRL_CHAIN_CERT, 0, chain[i].get()) == 1)
      (void)chain[i].release();
  state.begins = ToTime(library, library.x509_not_before(own));
  state.ends = ToTime(library, library.x509_not_after(own));
  return {};
}

std::string Text(const net::TlsLibrary& library, const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(library.string_data(string)),
          static_cast<std::size_t>(library.string_length(string))};
}

std::string AddressText(const std::string& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (bytes.size() != 4 && bytes.size() != 16) return {};
  const char* written =
      ::inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size());
  return written != nullptr ? written : "";
}

/// Returns DNS names, mail addresses, URIs and IP addresses as exporter-toolkit compares them.
std::string SanText(const net::TlsLibrary& library, const GENERAL_NAME& name) {
  switch (name.type) {
    case GEN_DNS:
    case GEN_EMAIL:
    case GEN_URI: return Text(library, name.d.ia5);
    case GEN_IPADD: return AddressText(Text(library, name.d.iPAddress));
    default: return {};
  }
}

bool HasAllowedSan(const Tls::State& state, const X509* certificate) {
  const net::TlsLibrary& library = state.library;
  auto* names = static_cast<GENERAL_NAMES*>(
      library.x509_get_ext(certificate, NID_subject_alt_name, nullptr, nullptr));
  if (names == nullptr) return false;
  const auto* stack = reinterpret_cast<const OPENSSL_STACK*>(names);
  bool found = false;
  for (int i = 0; i < library.sk_num(stack); ++i) {
    const std::string san =
        SanText(library, *static_cast<const GENERAL_NAME*>(library.sk_value(stack, i)));
    found = found || (!san.empty() &&
                      std::ranges::find(state.allowed_sans, san) != state.allowed_sans.end());
  }
  library.names_free(names);
  return found;
}

bool CheckSans(const Tls::State& state, X509_STORE_CTX* store) {
  if (state.allowed_sans.empty() || HasAllowedSan(state, state.library.store_ctx_get_cert(store)))
    return true;
  state.library.store_ctx_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
  return false;
}

int CheckSansAlone(X509_STORE_CTX* store, void* state) {
  return CheckSans(*static_cast<Tls::State*>(state), store) ? 1 : 0;
}

int VerifyAndCheckSans(X509_STORE_CTX* store, void* state) {
  const auto& known = *static_cast<Tls::State*>(state);
  return known.library.x509_verify(store) == 1 && CheckSans(known, store) ? 1 : 0;
}

Status UseAuthorities(Tls::State& state, const TlsSettings& settings) {
  const net::TlsLibrary& library = state.library;
  if (settings.client_ca.text.empty()) {
    library.ctx_set_default_verify_paths(state.context.get());
    return {};
  }
  ASSIGN(const auto authorities, ReadCertificates(library, settings.client_ca));
  X509_STORE* store = library.ctx_get_cert_store(state.context.get());
  for (const Certificate& authority : authorities) {
    if (library.store_add_cert(store, authority.get()) != 1 ||
        library.ctx_add_client_ca(state.context.get(), authority.get()) != 1)
      return Wrong(settings.client_ca.name + " cannot be used (" + library.LastError() + ")");
  }
  return {};
}

Status UseClientAuth(Tls::State& state, const TlsSettings& settings) {
  if (settings.client_auth == ClientAuth::kNone) return {};
  const bool required = settings.client_auth == ClientAuth::kRequireAny ||
                        settings.client_auth == ClientAuth::kRequireAndVerify;
  const bool verified = settings.client_auth == ClientAuth::kVerifyIfGiven ||
                        settings.client_auth == ClientAuth::kRequireAndVerify;
  state.identifies_clients = settings.client_auth == ClientAuth::kRequireAndVerify;
  state.allowed_sans = settings.client_allowed_sans;
  const net::TlsLibrary& library = state.library;
  library.ctx_set_verify(state.context.get(),
                         SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                         nullptr);
  library.ctx_set_cert_verify_callback(state.context.get(),
                                       verified ? VerifyAndCheckSans : CheckSansAlone, &state);
  if (!verified) return {};
  return UseAuthorities(state, settings);
}

int Number(TlsVersion version) {
  switch (version) {
    case TlsVersion::k10: return TLS1_VERSION;
    case TlsVersion::k11: return TLS1_1_VERSION;
    case TlsVersion::k12: return TLS1_2_VERSION;
    case TlsVersion::k13: break;
  }
  return TLS1_3_VERSION;
}

Status UseCiphers(Tls::State& state, const TlsSettings& settings) {
  const net::TlsLibrary& library = state.library;
  SSL_CTX* context = state.context.get();
  const bool old = settings.least < TlsVersion::k12;
  std::string ciphers = old ? kOld : kStrong;
  if (!settings.ciphers.empty())
    ciphers = base::Join(settings.ciphers, ":") + (old ? ":@SECLEVEL=0" : "");
  if (library.ctx_set_cipher_list(context, ciphers.c_str()) != 1)
    return Wrong("cipher_suites: this OpenSSL supports none of them (" + library.LastError() + ")");
  if (!settings.groups.empty()) {
    std::string groups = base::Join(settings.groups, ":");
    if (library.ctx_ctrl(context, SSL_CTRL_SET_GROUPS_LIST, 0, groups.data()) != 1)
      return Wrong("curve_preferences: this OpenSSL does not support one of them (" +
                   library.LastError() + ")");
  }
  library.ctx_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Number(settings.least), nullptr);
  library.ctx_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Number(settings.most), nullptr);
  return {};
}

/// Connections are kept, but not sessions: a new connection is verified by the certificates and
/// authorities that are then in force.
void UseOptions(Tls::State& state, const TlsSettings& settings) {
  const net::TlsLibrary& library = state.library;
  SSL_CTX* context = state.context.get();
  library.ctx_set_options(
      context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                   (settings.prefer_server_ciphers ? SSL_OP_CIPHER_SERVER_PREFERENCE : 0));
  library.ctx_set_num_tickets(context, 0);
  library.ctx_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  // Buffers are released between requests: 34 KiB less for each idle connection.
  library.ctx_ctrl(context, SSL_CTRL_MODE,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                       SSL_MODE_RELEASE_BUFFERS,
                   nullptr);
}

}  // namespace

Tls::Tls(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tls::~Tls() = default;

base::Result<std::shared_ptr<const Tls>> Tls::Make(const TlsSettings& settings) {
  ASSIGN(const net::TlsLibrary* library, net::TlsLibrary::Load());
  auto state = std::make_unique<State>(*library);
  state->context.reset(library->ctx_new(library->server_method()));
  if (!state->context)
    return Error(Code::kResourceExhausted,
                 "OpenSSL cannot create a context: " + library->LastError());
  TRY(UseCiphers(*state, settings));
  TRY(UseCertificate(*state, settings));
  TRY(UseClientAuth(*state, settings));
  UseOptions(*state, settings);
  return std::shared_ptr<const Tls>(new Tls(std::move(state)));
}

bool Tls::identifies_clients() const { return state_->identifies_clients; }
base::WallTime Tls::certificate_begins() const { return state_->begins; }
base::WallTime Tls::certificate_ends() const { return state_->ends; }

}  // namespace penstock::protocol::http
