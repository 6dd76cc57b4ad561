#include "tests/bench/wire_tls.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <system_error>

namespace weir::bench {
namespace {

constexpr long kValidSeconds = 86400;
constexpr size_t kMostAtOnce = size_t{1} << 20;

std::string CertificateIn(const std::string& folder) { return folder + "/end.pem"; }
std::string KeyIn(const std::string& folder) { return folder + "/end.key"; }

bool AddName(X509* to) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, to, to, nullptr, nullptr, 0);
  X509_EXTENSION* const names = X509V3_EXT_conf_nid(nullptr, &context, NID_subject_alt_name, "DNS:localhost");
  const bool added = names != nullptr && X509_add_ext(to, names, -1) == 1;
  X509_EXTENSION_free(names);
  return added;
}

bool WritePem(const std::string& path, const std::function<int(std::FILE*)>& write) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = write(file) == 1;
  return std::fclose(file) == 0 && written;
}

bool WriteCertificate(const std::string& folder) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> made(X509_new(), X509_free);
  if (key == nullptr || made == nullptr) return false;
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -kValidSeconds);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), kValidSeconds);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME* const name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>("bench"), -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  if (!AddName(made.get()) || X509_sign(made.get(), key.get(), EVP_sha256()) <= 0) return false;
  const auto certificate = [&](std::FILE* to) { return PEM_write_X509(to, made.get()); };
  const auto secret = [&](std::FILE* to) {
    return PEM_write_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  };
  return WritePem(CertificateIn(folder), certificate) && WritePem(KeyIn(folder), secret);
}

class OpenTlsLoop final : public TlsLoop {
 public:
  OpenTlsLoop(int connection, SSL_CTX* context) : connection_(connection), context_(context), ssl_(SSL_new(context)) {}
  ~OpenTlsLoop() override {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    ::close(connection_);
  }
  OpenTlsLoop(const OpenTlsLoop&) = delete;
  OpenTlsLoop& operator=(const OpenTlsLoop&) = delete;

  bool Shake(bool server) const {
    return SSL_set_fd(ssl_, connection_) == 1 && (server ? SSL_accept(ssl_) : SSL_connect(ssl_)) == 1;
  }
  bool Send(const void* data, size_t bytes) override {
    for (size_t at = 0; at < bytes;) {
      size_t sent = 0;
      const size_t piece = std::min(bytes - at, kMostAtOnce);
      if (SSL_write_ex(ssl_, static_cast<const char*>(data) + at, piece, &sent) != 1) return false;
      at += sent;
    }
    return true;
  }
  bool Receive(void* data, size_t bytes) override {
    for (size_t at = 0; at < bytes;) {
      size_t got = 0;
      if (SSL_read_ex(ssl_, static_cast<char*>(data) + at, bytes - at, &got) != 1) return false;
      at += got;
    }
    return true;
  }

 private:
  const int connection_;
  SSL_CTX* const context_;
  SSL* const ssl_;
};

}  // namespace

OwnCertificate::OwnCertificate() {
  char name[] = "/tmp/weir_bench_tls_XXXXXX";
  if (mkdtemp(name) == nullptr) return;
  folder_ = name;
  if (WriteCertificate(folder_)) return;
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
  folder_.clear();
}

OwnCertificate::~OwnCertificate() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

cluster::Security OwnCertificate::security() const {
  cluster::Security security;
  security.tls_certificate = security.tls_authorities = CertificateIn(folder_);
  security.tls_key = KeyIn(folder_);
  return security;
}

std::unique_ptr<TlsLoop> TlsLoop::Begin(int connection, bool server, const OwnCertificate& certificate) {
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE);
  if (server) {
    SSL_CTX_use_certificate_file(context, CertificateIn(certificate.folder()).c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context, KeyIn(certificate.folder()).c_str(), SSL_FILETYPE_PEM);
  }
  auto made = std::make_unique<OpenTlsLoop>(connection, context);  // with what the context has now
  if (!made->Shake(server)) return nullptr;
  return made;
}

}  // namespace weir::bench
