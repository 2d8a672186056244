// A job's keys: one certificate authority, and a certificate for each region that it signs.
//
//   ca.pem  ca.key                   the job's CA: EC P-256, O = the job, ten years
//   <region>.pem  <region>.key       a region's: CN = the region, O = the job, two years, both sides of TLS
//
// A region needs ca.pem and its own two files; ca.key is needed only to add or renew regions.
//
// Threads: any; processes that call it at once on one directory wait for each other.
// Memory:  none kept. Private keys are written with mode 0600 from their first byte.
// Errors:  kInvalidArgument for names that cannot be in a certificate and for keys of another job;
//          kNotFound when ca.key is needed and not there; kUnavailable names the file it cannot write.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "isthmus/status.h"

namespace isthmus::wan {

struct KeyFiles {
  std::string ca;
  std::string certificate;
  std::string key;
};
// Where a region's process finds what it needs.
KeyFiles key_files(const std::string& directory, const std::string& region);

enum class ExistingCa {
  kKeep,
  kReplace,  // Makes a new CA, and with it every certificate: all regions need the new files.
};

// Makes what is missing, and what has expired or is about to (30 days), and leaves the rest alone. Gives
// the paths of the files that were written; none when all was there.
Result<std::vector<std::string>> ensure_keys(const std::string& directory, const std::string& job,
                                             std::span<const std::string> regions,
                                             ExistingCa existing = ExistingCa::kKeep);

}  // namespace isthmus::wan
