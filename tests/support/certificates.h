// Certificates made on the spot, by OpenSSL.
#ifndef WEIR_TESTS_SUPPORT_CERTIFICATES_H_
#define WEIR_TESTS_SUPPORT_CERTIFICATES_H_

#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>

namespace weir::testing {

/// What a certificate says.
struct CertificateSpec {
  std::string name;                             // common name
  std::string names = "DNS:localhost,IP:127.0.0.1";  // subject alternative names; empty = none
  long from_s = -3600, to_s = 3600;             // validity, from now
};

/// A certificate with its key.
class Certificate {
 public:
  /// Of an authority: signs itself.
  static Certificate Authority(const std::string& name) { return Certificate({name, "", -7200, 7200}, nullptr); }
  Certificate Signs(const CertificateSpec& spec) const { return Certificate(spec, this); }

  /// Writes `stem`.pem and `stem`.key.
  void Write(const std::string& stem) const {
    const File certificate(std::fopen((stem + ".pem").c_str(), "w")), key(std::fopen((stem + ".key").c_str(), "w"));
    ASSERT_TRUE(certificate && key) << stem;
    EXPECT_EQ(PEM_write_X509(certificate.get(), certificate_.get()), 1);
    EXPECT_EQ(PEM_write_PrivateKey(key.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr), 1);
  }

 private:
  template <class T, void (*kFree)(T*)>
  struct Freed {
    void operator()(T* it) const { kFree(it); }
  };
  struct Closed {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Closed>;

  Certificate(const CertificateSpec& spec, const Certificate* signer) {
    // Without handlers at exit, as in the plugin: threads that used OpenSSL may outlive them.
    EXPECT_EQ(OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr), 1);
    key_.reset(EVP_EC_gen("P-256"), EVP_PKEY_free);
    certificate_.reset(X509_new(), X509_free);
    static long serial = 1;
    X509* const made = certificate_.get();
    X509_set_version(made, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made), spec.from_s);
    X509_gmtime_adj(X509_getm_notAfter(made), spec.to_s);
    X509_set_pubkey(made, key_.get());
    X509_NAME* const name = X509_get_subject_name(made);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(spec.name.c_str()), -1,
                               -1, 0);
    X509* const issuer = signer != nullptr ? signer->certificate_.get() : made;
    X509_set_issuer_name(made, X509_get_subject_name(issuer));
    Extend(made, issuer, NID_basic_constraints, signer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
    if (!spec.names.empty()) Extend(made, issuer, NID_subject_alt_name, spec.names);
    EXPECT_GT(X509_sign(made, signer != nullptr ? signer->key_.get() : key_.get(), EVP_sha256()), 0);
  }
  static void Extend(X509* to, X509* issuer, int what, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION, X509_EXTENSION_free>> made(
        X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()));
    ASSERT_TRUE(made) << value;
    EXPECT_EQ(X509_add_ext(to, made.get(), -1), 1);
  }

  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> certificate_;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_CERTIFICATES_H_
