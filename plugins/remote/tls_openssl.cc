// TLS 1.3 by OpenSSL.
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "plugins/remote/tls.h"

namespace weir_remote {

class TlsContext {
 public:
  explicit TlsContext(SSL_CTX* context) : context_(context) {}
  ~TlsContext() { SSL_CTX_free(context_); }
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  SSL_CTX* get() const { return context_; }

 private:
  SSL_CTX* const context_;
};

namespace {

constexpr char kCiphers[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr std::string_view kTaskName = "weir:";
constexpr int kAlertOffset = 1000;  // a reason of OpenSSL above it is an alert of the peer

template <class T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* it) const { kFree(it); }
};
using Bio = std::unique_ptr<BIO, Freed<BIO, BIO_free_all>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES, GENERAL_NAMES_free>>;

std::string TextOfBio(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

std::string NameText(const X509_NAME* name) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
  return TextOfBio(bio.get());
}

std::string TimeText(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(bio.get(), time);
  return TextOfBio(bio.get());
}

/// OpenSSL's reason for the oldest error of this thread; the errors are gone.
std::string TakeReason() {
  const unsigned long code = ERR_peek_error();
  const char* const reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return reason != nullptr ? reason : "unknown";
}

/// Why a file was not taken.
WireError BadFile(const char* key, const std::string& path, const char* wanted) {
  const std::string reason = TakeReason();
  errno = 0;
  const bool opens = std::ifstream(path).good();
  const std::string why = opens ? std::string("it has no ") + wanted + " in PEM (" + reason + ")"
                                : "it cannot be read: " + std::generic_category().message(errno);
  return Malformed(std::string(key) + " '" + path + "': " + why);
}

/// A session's ends of bytes: OpenSSL reads and writes through them.
struct Ends {
  std::span<const std::byte> in;
  std::string out;
};

Ends& EndsOf(BIO* bio) { return *static_cast<Ends*>(BIO_get_data(bio)); }

int ReadEnds(BIO* bio, char* to, size_t wanted, size_t* got) {
  std::span<const std::byte>& in = EndsOf(bio).in;
  BIO_clear_retry_flags(bio);
  *got = std::min(wanted, in.size());
  if (*got == 0) {
    BIO_set_retry_read(bio);
    return 0;
  }
  std::memcpy(to, in.data(), *got);
  in = in.subspan(*got);
  return 1;
}

int WriteEnds(BIO* bio, const char* from, size_t count, size_t* written) {
  EndsOf(bio).out.append(from, count);
  *written = count;
  return 1;
}

long ControlEnds(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* EndsMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weir");
    BIO_meth_set_read_ex(made, ReadEnds);
    BIO_meth_set_write_ex(made, WriteEnds);
    BIO_meth_set_ctrl(made, ControlEnds);
    return made;
  }();
  return method;
}

/// Why the certificate of the peer is not accepted.
std::string Refusal(int error, const X509* certificate) {
  const std::string name = certificate != nullptr ? " '" + NameText(X509_get_subject_name(certificate)) + "'" : "";
  const std::string begin = "its certificate" + name;
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return begin + " expired at " + TimeText(X509_get0_notAfter(certificate)) + ": give it a new one";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return begin + " is not valid before " + TimeText(X509_get0_notBefore(certificate)) + ": compare the clocks";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return begin + " comes from '" + NameText(X509_get_issuer_name(certificate)) +
             "', which is not among tls_authorities of this process: add that authority, or give the peer a "
             "certificate of one of them";
    case X509_V_ERR_INVALID_PURPOSE:
      return begin +
             " is not made for this use: its extended key usage must have both client and server authentication";
    default:
      return begin + " is not accepted: " + X509_verify_cert_error_string(error);
  }
}

/// An alert of the peer about this side.
std::string AlertText(int alert) {
  switch (alert) {
    case SSL_AD_CERTIFICATE_EXPIRED:
      return "it says that the certificate of this process has expired: renew tls_certificate";
    case SSL_AD_UNKNOWN_CA:
      return "it does not know who signed the certificate of this process: its tls_authorities must have the signer of "
             "tls_certificate here";
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_DECRYPT_ERROR:
      return "it refuses the certificate of this process: check its dates, its use and the clocks of both";
    case SSL_AD_CERTIFICATE_REQUIRED:
      return "it wants a certificate of this process: set tls_certificate and tls_key";
    case SSL_AD_PROTOCOL_VERSION:
      return "it does not speak TLS 1.3";
    default:
      return std::string("it ended TLS: ") + SSL_alert_desc_string_long(alert);
  }
}

class Session final : public TlsSession {
 public:
  Session(std::shared_ptr<const TlsContext> context, bool server, std::string host)
      : context_(std::move(context)), server_(server), host_(std::move(host)), ssl_(SSL_new(context_->get())) {
    BIO* const bio = BIO_new(EndsMethod());
    BIO_set_data(bio, &ends_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_, bio, bio);
    SSL_set_app_data(ssl_, this);
    if (server) {
      SSL_set_accept_state(ssl_);
    } else {
      SSL_set_connect_state(ssl_);
    }
  }
  ~Session() override { SSL_free(ssl_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Came(std::span<const std::byte> bytes) override { ends_.in = bytes; }

  WireError Read(std::span<std::byte> to, size_t& count) override {
    count = 0;
    ERR_clear_error();
    if (!open_) {
      const int result = SSL_do_handshake(ssl_);
      if (result != 1) return AfterCall(result);
      if (WireError error = CheckHost(); !error.ok()) return error;
      open_ = true;
    }
    const int result = SSL_read_ex(ssl_, to.data(), to.size(), &count);
    return result == 1 ? WireError() : AfterCall(result);
  }

  WireError Write(std::span<const std::byte> plain) override {
    if (plain.empty()) return {};
    ERR_clear_error();
    size_t written = 0;
    const int result = SSL_write_ex(ssl_, plain.data(), plain.size(), &written);
    return result == 1 ? WireError() : AfterCall(result);
  }

  std::string& out() override { return ends_.out; }
  bool open() const override { return open_; }

  WireError CheckTask(std::string_view job, uint32_t task) const override {
    const std::vector<std::string> names = TaskNames();
    if (names.empty() || job.empty()) return {};
    const std::string in_job = std::string(kTaskName) + "/job:" + std::string(job);
    const std::string whole = in_job + "/task:" + std::to_string(task);
    std::string all;
    for (const std::string& name : names) {
      if (name == in_job || name == whole) return {};
      all += (all.empty() ? "" : ", ") + name;
    }
    return {WEIR_PERMISSION_DENIED, "it says to be " + whole.substr(kTaskName.size()) +
                                        ", and its certificate is for " + all};
  }

  /// For OpenSSL, about each certificate of the peer.
  static int Verified(int good, X509_STORE_CTX* store) {
    const auto* const ssl = static_cast<const SSL*>(
        X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    if (good == 1) return 1;
    static_cast<Session*>(SSL_get_app_data(ssl))->refusal_ =
        Refusal(X509_STORE_CTX_get_error(store), X509_STORE_CTX_get_current_cert(store));
    return 0;
  }

 private:
  /// What the result of a call on the session means; no error if it wants more bytes, or the peer has said goodbye.
  WireError AfterCall(int result) {
    const int kind = SSL_get_error(ssl_, result);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_ZERO_RETURN) return {};
    if (!refusal_.empty()) return {WEIR_UNAUTHENTICATED, refusal_};
    const unsigned long code = ERR_peek_error();
    const int reason = ERR_GET_REASON(code);
    if (ERR_GET_LIB(code) == ERR_LIB_SSL) {
      if (reason > kAlertOffset && reason <= kAlertOffset + UCHAR_MAX) {
        return {WEIR_UNAUTHENTICATED, AlertText(reason - kAlertOffset)};
      }
      switch (reason) {
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
          return {WEIR_UNAUTHENTICATED, "it shows no certificate: set tls_certificate and tls_key there"};
        case SSL_R_UNSUPPORTED_PROTOCOL:
        case SSL_R_WRONG_VERSION_NUMBER:
          return {WEIR_FAILED_PRECONDITION, "it does not speak TLS 1.3"};
        default:
          break;
      }
    }
    return {WEIR_DATA_LOSS, "its bytes are not the expected TLS: " + TakeReason()};
  }

  /// The names of tasks in the certificate of the peer.
  std::vector<std::string> TaskNames() const {
    std::vector<std::string> names;
    const X509* const certificate = SSL_get0_peer_certificate(ssl_);
    if (certificate == nullptr) return names;
    const Names all(
        static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
    for (int i = 0; i < sk_GENERAL_NAME_num(all.get()); ++i) {
      const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all.get(), i);
      if (name->type != GEN_URI) continue;
      const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
      const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                                  static_cast<size_t>(ASN1_STRING_length(uri)));
      if (text.starts_with(kTaskName)) names.emplace_back(text);
    }
    return names;
  }

  /// The server's certificate is for the host that was dialled, unless it names tasks.
  WireError CheckHost() const {
    if (server_ || host_.empty() || !TaskNames().empty()) return {};
    X509* const certificate = SSL_get0_peer_certificate(ssl_);
    if (X509_check_ip_asc(certificate, host_.c_str(), 0) == 1) return {};
    if (X509_check_host(certificate, host_.data(), host_.size(), 0, nullptr) == 1) return {};
    return {WEIR_UNAUTHENTICATED, "its certificate '" + NameText(X509_get_subject_name(certificate)) +
                                      "' is not for the host '" + host_ +
                                      "': use a name of the certificate in the address, or add this one to it as a "
                                      "subject alternative name"};
  }

  const std::shared_ptr<const TlsContext> context_;
  const bool server_;
  const std::string host_;
  Ends ends_;
  SSL* const ssl_;
  std::string refusal_;
  bool open_ = false;
};

}  // namespace

WireError LoadTls(const TlsFiles& files, std::shared_ptr<const TlsContext>& to) {
  const std::pair<const char*, const std::string*> all[] = {{"tls_certificate", &files.certificate},
                                                            {"tls_key", &files.key},
                                                            {"tls_authorities", &files.authorities}};
  for (const auto& [key, path] : all) {
    if (!path->empty()) continue;
    return Malformed(std::string("TLS needs tls_certificate, tls_key and tls_authorities; ") + key + " is missing");
  }
  // Without handlers at exit: the thread of the sockets may outlive them.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  ERR_clear_error();
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  if (context == nullptr) return {WEIR_RESOURCE_EXHAUSTED, "OpenSSL gives no context: " + TakeReason()};
  auto made = std::make_shared<const TlsContext>(context);
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, kCiphers);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, Session::Verified);
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return BadFile("tls_certificate", files.certificate, "certificate");
  }
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    if (ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH) {
      ERR_clear_error();
      return Malformed("tls_key '" + files.key + "' is not the key of tls_certificate '" + files.certificate + "'");
    }
    return BadFile("tls_key", files.key, "private key");
  }
  if (SSL_CTX_load_verify_locations(context, files.authorities.c_str(), nullptr) != 1) {
    return BadFile("tls_authorities", files.authorities, "certificates");
  }
  to = std::move(made);
  return {};
}

std::unique_ptr<TlsSession> TlsSession::Make(const std::shared_ptr<const TlsContext>& context, bool server,
                                             std::string host) {
  return std::make_unique<Session>(context, server, std::move(host));
}

}  // namespace weir_remote
