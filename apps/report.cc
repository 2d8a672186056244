#include "apps/report.h"

#include <cstdio>

namespace isthmus::apps {

int report(const Status& status) {
  if (!status.ok()) std::fprintf(stderr, "isthmus: %s\n", status.message().c_str());
  return exit_code(status);
}

}  // namespace isthmus::apps
