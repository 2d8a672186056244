// How links are secured: TLS 1.3, each side's certificate signed by the job's CA and naming its region.
//
// Threads: pure functions, apart from reading files; a context may be shared by all streams of a thread.
// Memory:  the context is the caller's.
// Errors:  kNotFound and kInvalidArgument name the file; why a peer failed is put in words for a person.

#pragma once

#include <optional>
#include <string>

#include "core/job_config.h"
#include "isthmus/status.h"
#include "wan/tls_handles.h"

namespace isthmus::wan {

// Who a certificate says its holder is; empty where it says nothing.
struct Identity {
  std::string region;  // CN
  std::string job;     // O
  bool operator==(const Identity&) const = default;
};

Identity identity_of(const X509* certificate);
// The verified peer's; nothing before the handshake.
std::optional<Identity> peer_identity(const SSL* connection);

// For both sides of links: reads ca.pem and the region's two files in `security.directory`.
Result<TlsContextHandle> make_tls_context(const core::SecurityConfig& security, const std::string& region);

// "certificate of virginia is not signed by this job's CA (keys/ca.pem)", from an X509_V_ERR_ number and
// the name that the certificate claims.
std::string describe_untrusted(int verify_error, const std::string& claimed_region, const std::string& ca);

// What a TLS alert about our own certificate means: "it does not trust our CA". Nothing for an error that
// is no such alert; `reason` is ERR_GET_REASON of an OpenSSL error.
std::optional<std::string> describe_alert(int reason);

}  // namespace isthmus::wan
