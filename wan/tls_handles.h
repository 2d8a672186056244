// OpenSSL's objects, owned, and its errors as Status.
//
// Threads: a handle belongs to whoever holds it; OpenSSL's error queue is one a thread.
// Memory:  each handle frees what it holds.
// Errors:  tls_error() takes what OpenSSL queued, so that nothing stale is left for the next one.

#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "isthmus/status.h"

namespace isthmus::wan {

template <auto free>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const noexcept {
    free(object);
  }
};

using BioHandle = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using CertificateHandle = std::unique_ptr<X509, FreeWith<X509_free>>;
using TlsContextHandle = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;

// "context: what OpenSSL says".
inline Status tls_error(ErrorCode code, std::string context) {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (const char* reason = ERR_reason_error_string(error)) context += std::string(": ") + reason;
  return {code, std::move(context)};
}

}  // namespace isthmus::wan
