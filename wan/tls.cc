#include "wan/tls.h"

#include <openssl/tls1.h>
#include <openssl/x509_vfy.h>

#include <filesystem>

#include "wan/certificates.h"

namespace isthmus::wan {
namespace {

std::string name_entry(const X509_NAME* name, int nid) {
  const int index = X509_NAME_get_index_by_NID(name, nid, -1);
  if (index < 0) return {};
  unsigned char* text = nullptr;
  const int bytes = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index)));
  if (bytes < 0) return {};
  std::string value(reinterpret_cast<const char*>(text), static_cast<std::size_t>(bytes));
  OPENSSL_free(text);
  return value;
}

Status check_exists(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return {};
  return {ErrorCode::kNotFound, path + ": no such file; `isthmus keys` makes it"};
}

}  // namespace

Identity identity_of(const X509* certificate) {
  const X509_NAME* name = X509_get_subject_name(certificate);
  return {name_entry(name, NID_commonName), name_entry(name, NID_organizationName)};
}

std::optional<Identity> peer_identity(const SSL* connection) {
  const X509* certificate = SSL_get0_peer_certificate(connection);
  if (certificate == nullptr) return std::nullopt;
  return identity_of(certificate);
}

Result<TlsContextHandle> make_tls_context(const core::SecurityConfig& security, const std::string& region) {
  const KeyFiles files = key_files(security.directory, region);
  for (const std::string* path : {&files.ca, &files.certificate, &files.key})
    ISTHMUS_RETURN_IF_ERROR(check_exists(*path));

  TlsContextHandle context(SSL_CTX_new(TLS_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1)
    return tls_error(ErrorCode::kInternal, "TLS");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);  // Sessions are never resumed; tickets would be WAN bytes.

  const auto bad = [](const std::string& path) { return tls_error(ErrorCode::kInvalidArgument, path); };
  if (SSL_CTX_load_verify_file(context.get(), files.ca.c_str()) != 1) return bad(files.ca);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1)
    return bad(files.certificate);
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1)
    return bad(files.key);
  return context;
}

std::string describe_untrusted(int verify_error, const std::string& claimed_region, const std::string& ca) {
  const std::string certificate =
      claimed_region.empty() ? "a peer's certificate" : "certificate of " + claimed_region;
  switch (verify_error) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return certificate + " is not signed by this job's CA (" + ca + ")";
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return certificate + " has expired; `isthmus keys` renews it (or the clocks differ)";
    case X509_V_ERR_CERT_NOT_YET_VALID: return certificate + " is not valid yet: the clocks differ";
    default: return certificate + " is refused: " + X509_verify_cert_error_string(verify_error);
  }
}

std::optional<std::string> describe_alert(int reason) {
  switch (reason - SSL_AD_REASON_OFFSET) {
    case TLS1_AD_UNKNOWN_CA: return "it is not signed by the CA that the peer trusts";
    case SSL3_AD_CERTIFICATE_EXPIRED: return "it has expired, by the peer's clock";
    case TLS13_AD_CERTIFICATE_REQUIRED: return "none was given";
    case SSL3_AD_BAD_CERTIFICATE:
    case SSL3_AD_UNSUPPORTED_CERTIFICATE:
    case SSL3_AD_CERTIFICATE_REVOKED:
    case SSL3_AD_CERTIFICATE_UNKNOWN:
    case TLS1_AD_DECRYPT_ERROR:
    case TLS1_AD_ACCESS_DENIED: return "it does not pass the peer's check";
    default: return std::nullopt;
  }
}

}  // namespace isthmus::wan
