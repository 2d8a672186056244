#include "apps/bench.h"

#include <cstdio>
#include <string>

#include "apps/report.h"
#include "core/suggest.h"

namespace isthmus::apps {
namespace {

constexpr const char* kHelp =
    "Measures parts of Isthmus on this machine.\n"
    "usage: isthmus bench SUBJECT [OPTIONS]\n\n"
    "  codec      speed, size and error of the codecs\n"
    "  push-pull  a worker and a server beside plain ZeroMQ\n\n"
    "'isthmus bench SUBJECT --help' says more.\n";

constexpr std::string_view kSubjects[] = {"codec", "push-pull"};

}  // namespace

int run_bench(Arguments arguments) {
  if (arguments.empty()) {
    std::fputs(kHelp, stderr);
    return kExitUsage;
  }
  const std::string& subject = arguments.front();
  if (subject == "codec") return run_bench_codec(arguments.subspan(1));
  if (subject == "push-pull") return run_bench_push_pull(arguments.subspan(1));
  if (subject == "--help" || subject == "-h") {
    std::fputs(kHelp, stdout);
    return kExitOk;
  }
  return report({ErrorCode::kInvalidArgument, "bench: cannot measure '" + subject + "'" +
                                                  core::suggestion(subject, kSubjects) +
                                                  "; see isthmus bench --help"});
}

}  // namespace isthmus::apps
