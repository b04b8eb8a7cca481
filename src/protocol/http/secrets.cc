// Computes SHA-256 with OpenSSL and checks bcrypt with libcrypt (crypt(3), crypt(5)).
#include "protocol/http/secrets.h"

#include <cstring>
#include <optional>

#include <crypt.h>

#include "os/library.h"
#include "protocol/net/tls_library.h"

namespace penstock::protocol::http {

namespace {

using CryptFunction = decltype(&::crypt_r);

class Loaded final : public Secrets {
 public:
  Loaded(const net::TlsLibrary& tls, std::optional<os::Library> library, CryptFunction crypt)
      : tls_(tls), library_(std::move(library)), crypt_(crypt) {}

  Digest Hash(std::string_view text) const override {
    Digest digest{};
    tls_.digest(text.data(), text.size(), digest.data(), nullptr, tls_.sha256(), nullptr);
    return digest;
  }

  Digest Hash(std::string_view text, const Digest& key) const override {
    Digest digest{};
    tls_.hmac(tls_.sha256(), key.data(), static_cast<int>(key.size()),
              reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
              nullptr);
    return digest;
  }

  bool IsPassword(std::string_view password, const std::string& bcrypt) const override {
    // crypt(3) takes a C string, so it would only compare the part before a NUL.
    const bool whole = password.find('\0') == std::string_view::npos;
    const auto data = std::make_unique<crypt_data>();
    const char* made = crypt_(std::string(password).c_str(), bcrypt.c_str(), data.get());
    bool same = made != nullptr && std::strlen(made) == bcrypt.size();
    unsigned char difference = 0;
    for (std::size_t i = 0; same && i < bcrypt.size(); ++i)
      difference |= static_cast<unsigned char>(made[i] ^ bcrypt[i]);
    same = same && difference == 0 && whole;
    ::explicit_bzero(data.get(), sizeof(crypt_data));
    return same;
  }

 private:
  const net::TlsLibrary& tls_;
  const std::optional<os::Library> library_;
  const CryptFunction crypt_;
};

}  // namespace

base::Result<std::shared_ptr<const Secrets>> Secrets::Load(bool passwords) {
  ASSIGN(const net::TlsLibrary* tls, net::TlsLibrary::Load());
  if (!passwords)
    return std::shared_ptr<const Secrets>(std::make_shared<Loaded>(*tls, std::nullopt, nullptr));
  auto library = os::Library::Load("libcrypt.so.1");
  if (!library.ok())
    return Error(Code::kUnimplemented,
                 "passwords cannot be checked without libcrypt; install libcrypt1: " +
                     library.error().message());
  auto* crypt = reinterpret_cast<CryptFunction>(library->Symbol("crypt_r"));
  if (crypt == nullptr)
    return Error(Code::kUnimplemented,
                 "libcrypt lacks crypt_r; install libcrypt1 of Debian 12 or newer");
  return std::shared_ptr<const Secrets>(std::make_shared<Loaded>(*tls, *std::move(library), crypt));
}

bool Equal(const Digest& a, const Digest& b) {
  std::uint8_t difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<std::uint8_t>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace penstock::protocol::http
