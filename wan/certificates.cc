#include "wan/certificates.h"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "wan/tls.h"
#include "wan/tls_handles.h"

namespace isthmus::wan {
namespace {

constexpr long kDay = 24 * 60 * 60;
constexpr long kCaLife = 3650 * kDay;
constexpr long kRegionLife = 730 * kDay;
constexpr long kRenewBefore = 30 * kDay;
constexpr long kClockSkew = kDay;          // Regions' clocks differ; a new certificate is valid in all.
constexpr std::size_t kMaxNameBytes = 64;  // Of CN and O, by X.520.
constexpr mode_t kPrivate = S_IRUSR | S_IWUSR;
constexpr mode_t kPublic = kPrivate | S_IRGRP | S_IROTH;

struct SignedKey {
  CertificateHandle certificate;
  KeyHandle key;
};

Status system_error(const std::string& what) {
  return {ErrorCode::kUnavailable, what + ": " + std::strerror(errno)};
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status check_name(const std::string& what, const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes)
    return {ErrorCode::kInvalidArgument,
            what + " '" + name + "': a certificate holds names of 1 to 64 bytes"};
  return {};
}

// Region names are file names here.
Status check_region(const std::string& region) {
  ISTHMUS_RETURN_IF_ERROR(check_name("region", region));
  if (region == "ca" || region.front() == '.' || region.find('/') != std::string::npos)
    return {ErrorCode::kInvalidArgument, "region '" + region + "': cannot be the name of a key file"};
  return {};
}

Status write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return system_error("write");
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(fd) == 0 ? Status() : system_error("fsync");
}

// Beside and renamed: whoever reads sees the old file or the new one, whole.
Status write_file(const std::string& path, std::string_view text, mode_t mode) {
  const std::string beside = path + ".new";
  ::unlink(beside.c_str());
  Status status;
  {
    Descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.get() < 0) return system_error(beside);
    status = write_all(file.get(), text);
  }
  if (status.ok() && ::rename(beside.c_str(), path.c_str()) != 0) status = system_error("rename");
  if (!status.ok()) ::unlink(beside.c_str());
  return std::move(status).with_context(path);
}

template <typename Write>
Result<std::string> to_pem(Write write) {
  BioHandle memory(BIO_new(BIO_s_mem()));
  if (!memory || write(memory.get()) != 1) return tls_error(ErrorCode::kInternal, "PEM");
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(memory.get(), &data);
  return std::string(data, static_cast<std::size_t>(bytes));
}

// The key first: a certificate without its key is of no use, and its absence makes us start again.
Status write_signed_key(const SignedKey& made, const std::string& certificate, const std::string& key) {
  Result<std::string> key_text = to_pem([&](BIO* to) {
    return PEM_write_bio_PrivateKey(to, made.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  if (!key_text.ok()) return key_text.status();
  Result<std::string> text = to_pem([&](BIO* to) { return PEM_write_bio_X509(to, made.certificate.get()); });
  if (!text.ok()) return text.status();
  ISTHMUS_RETURN_IF_ERROR(write_file(key, *key_text, kPrivate));
  return write_file(certificate, *text, kPublic);
}

CertificateHandle read_certificate(const std::string& path) {
  BioHandle file(BIO_new_file(path.c_str(), "r"));
  CertificateHandle certificate(file ? PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr) : nullptr);
  ERR_clear_error();
  return certificate;
}

KeyHandle read_key(const std::string& path) {
  BioHandle file(BIO_new_file(path.c_str(), "r"));
  KeyHandle key(file ? PEM_read_bio_PrivateKey(file.get(), nullptr, nullptr, nullptr) : nullptr);
  ERR_clear_error();
  return key;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool add_name(X509_NAME* name, int nid, const std::string& value) {
  return X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

bool set_serial(X509* certificate) {
  std::array<unsigned char, 16> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) return false;
  random[0] = static_cast<unsigned char>((random[0] & 0x7f) | 0x40);  // Positive, and of full length.
  std::unique_ptr<BIGNUM, FreeWith<BN_free>> number(BN_bin2bn(random.data(), random.size(), nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

// Signed by `ca`, or by itself when there is none.
Result<SignedKey> make_certificate(const std::string& common_name, const std::string& job, long life,
                                   const SignedKey* ca) {
  SignedKey made{CertificateHandle(X509_new()), KeyHandle(EVP_EC_gen("P-256"))};
  const auto failed = [&] { return tls_error(ErrorCode::kInternal, "certificate of " + common_name); };
  if (!made.certificate || !made.key) return failed();
  X509* certificate = made.certificate.get();
  X509* issuer = ca ? ca->certificate.get() : certificate;
  X509_NAME* name = X509_get_subject_name(certificate);
  const bool described = X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
                         X509_gmtime_adj(X509_getm_notBefore(certificate), -kClockSkew) != nullptr &&
                         X509_gmtime_adj(X509_getm_notAfter(certificate), life) != nullptr &&
                         X509_set_pubkey(certificate, made.key.get()) == 1 &&
                         add_name(name, NID_organizationName, job) &&
                         add_name(name, NID_commonName, common_name) &&
                         X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1;
  if (!described) return failed();
  const bool extended =
      add_extension(certificate, issuer, NID_basic_constraints,
                    ca ? "critical,CA:FALSE" : "critical,CA:TRUE,pathlen:0") &&
      add_extension(certificate, issuer, NID_key_usage,
                    ca ? "critical,digitalSignature" : "critical,keyCertSign,cRLSign") &&
      (!ca || add_extension(certificate, issuer, NID_ext_key_usage, "serverAuth,clientAuth")) &&
      add_extension(certificate, issuer, NID_subject_key_identifier, "hash") &&
      add_extension(certificate, issuer, NID_authority_key_identifier, "keyid");
  if (!extended || X509_sign(certificate, (ca ? ca->key : made.key).get(), EVP_sha256()) == 0)
    return failed();
  return made;
}

bool expires_soon(const X509* certificate) {
  time_t soon = ::time(nullptr) + kRenewBefore;
  return X509_cmp_time(X509_get0_notAfter(certificate), &soon) < 0;
}

// True when the region's files fit this CA, this job, each other, and the calendar.
bool is_good(const KeyFiles& files, const std::string& region, const std::string& job, X509* ca) {
  const CertificateHandle certificate = read_certificate(files.certificate);
  const KeyHandle key = read_key(files.key);
  const bool good = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1 &&
                    X509_verify(certificate.get(), X509_get0_pubkey(ca)) == 1 &&
                    identity_of(certificate.get()) == Identity{region, job} &&
                    !expires_soon(certificate.get());
  ERR_clear_error();
  return good;
}

// The CA that is there (its key may be missing), or a new one.
Result<SignedKey> ensure_ca(const std::string& directory, const std::string& job, ExistingCa existing,
                            std::vector<std::string>& written) {
  const std::string path = directory + "/ca.pem";
  const std::string key_path = directory + "/ca.key";
  if (existing == ExistingCa::kKeep && std::filesystem::exists(path)) {
    SignedKey ca{read_certificate(path), read_key(key_path)};
    if (!ca.certificate) return Status(ErrorCode::kInvalidArgument, path + ": is not a certificate");
    const std::string other = identity_of(ca.certificate.get()).job;
    if (other != job)
      return Status(ErrorCode::kInvalidArgument, path + ": belongs to job '" + other + "', not '" + job +
                                                     "'; give this job another directory");
    return ca;
  }
  Result<SignedKey> ca = make_certificate("Isthmus CA", job, kCaLife, nullptr);
  if (!ca.ok()) return ca;
  ISTHMUS_RETURN_IF_ERROR(write_signed_key(*ca, path, key_path));
  written.insert(written.end(), {path, key_path});
  return ca;
}

Status ensure_region(const SignedKey& ca, const std::string& directory, const std::string& job,
                     const std::string& region, std::vector<std::string>& written) {
  const KeyFiles files = key_files(directory, region);
  if (is_good(files, region, job, ca.certificate.get())) return {};
  if (!ca.key)
    return {ErrorCode::kNotFound,
            directory + "/ca.key: is needed to make the certificate of region " + region};
  Result<SignedKey> made = make_certificate(region, job, kRegionLife, &ca);
  if (!made.ok()) return made.status();
  ISTHMUS_RETURN_IF_ERROR(write_signed_key(*made, files.certificate, files.key));
  written.insert(written.end(), {files.certificate, files.key});
  return {};
}

Status make_directory(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::is_directory(directory, error)) return {};
  const std::filesystem::path parent = std::filesystem::path(directory).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) return system_error(directory);
  return {};
}

}  // namespace

KeyFiles key_files(const std::string& directory, const std::string& region) {
  return {directory + "/ca.pem", directory + "/" + region + ".pem", directory + "/" + region + ".key"};
}

Result<std::vector<std::string>> ensure_keys(const std::string& directory, const std::string& job,
                                             std::span<const std::string> regions, ExistingCa existing) {
  ISTHMUS_RETURN_IF_ERROR(check_name("job", job));
  for (const std::string& region : regions) ISTHMUS_RETURN_IF_ERROR(check_region(region));
  ISTHMUS_RETURN_IF_ERROR(make_directory(directory));
  const Descriptor lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0 || ::flock(lock.get(), LOCK_EX) != 0) return system_error(directory);

  std::vector<std::string> written;
  Result<SignedKey> ca = ensure_ca(directory, job, existing, written);
  if (!ca.ok()) return ca.status();
  for (const std::string& region : regions)
    ISTHMUS_RETURN_IF_ERROR(ensure_region(*ca, directory, job, region, written));
  return written;
}

}  // namespace isthmus::wan
