// Creates certificates with OpenSSL: P-256, SHA-256.
#include "protocol/kube/testing/certificates.h"

#include <cstdlib>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace penstock::protocol::kube::testing {
namespace {

using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using CertificatePtr = std::unique_ptr<X509, decltype(&X509_free)>;

template <typename Write>
std::string Pem(Write write) {
  BIO* bio = BIO_new(BIO_s_mem());
  write(bio);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

void Extend(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  if (extension == nullptr) std::abort();
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

CertificatePtr Blank(const std::string& name, std::chrono::seconds lasts, EVP_PKEY* key) {
  static long serial = 1;
  CertificatePtr certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -24 * 3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), lasts.count());
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

std::string ToPem(EVP_PKEY* key) {
  return Pem(
      [&](BIO* bio) { PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

std::string ToPem(X509* certificate) {
  return Pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); });
}

}  // namespace

struct Authority::State {
  KeyPtr key{EVP_EC_gen("P-256"), &EVP_PKEY_free};
  CertificatePtr certificate{nullptr, &X509_free};
  std::string pem;

  Certificate Sign(const std::string& name, std::chrono::seconds lasts, const std::string& usage,
                   const std::string& names) const {
    const KeyPtr own(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const CertificatePtr made = Blank(name, lasts, own.get());
    X509_set_issuer_name(made.get(), X509_get_subject_name(certificate.get()));
    Extend(made.get(), certificate.get(), NID_ext_key_usage, usage);
    if (!names.empty()) Extend(made.get(), certificate.get(), NID_subject_alt_name, names);
    X509_sign(made.get(), key.get(), EVP_sha256());
    return {ToPem(made.get()), ToPem(own.get())};
  }
};

Authority::Authority(const std::string& name) : state_(std::make_unique<State>()) {
  state_->certificate = Blank(name, std::chrono::hours(24), state_->key.get());
  X509* own = state_->certificate.get();
  X509_set_issuer_name(own, X509_get_subject_name(own));
  Extend(own, own, NID_basic_constraints, "critical,CA:TRUE");
  Extend(own, own, NID_key_usage, "critical,keyCertSign,cRLSign");
  X509_sign(own, state_->key.get(), EVP_sha256());
  state_->pem = ToPem(own);
}

Authority::~Authority() = default;

const std::string& Authority::certificate() const { return state_->pem; }

Certificate Authority::Server(const std::string& name, std::chrono::seconds lasts) const {
  return state_->Sign(name, lasts, "serverAuth",
                      "DNS:" + name + (name == "localhost" ? ",IP:127.0.0.1" : ""));
}

Certificate Authority::Client(const std::string& name, std::chrono::seconds lasts) const {
  return state_->Sign(name, lasts, "clientAuth", "");
}

}  // namespace penstock::protocol::kube::testing
