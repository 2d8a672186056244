// What `isthmus bench codec` found, for people and for programs.
//
// Threads: pure functions.  Memory: values.  Errors: none.

#pragma once

#include <string>
#include <vector>

#include "apps/bench_timer.h"

namespace isthmus::apps {

// One codec on one backend and one input.
struct CodecRow {
  std::string codec;
  std::string backend;
  std::string input;
  Pace encode;
  Pace decode;  // Decoded and added to a sum, as a receiver does.
  double bytes_per_element = 0;
  double nmse = 0;  // ||x - decoded||^2 / ||x||^2
};

// One step of what a sender does, or what it is to be compared with.
struct PathRow {
  std::string path;
  std::string codec;  // Empty: of none.
  std::string backend;
  std::string input;
  Pace pace;
};

struct BenchReport {
  double read_gb_per_s = 0;
  std::vector<CodecRow> rows;
  std::vector<PathRow> paths;
  std::string device{};             // Empty: none was measured.
  double device_read_gb_per_s = 0;  // What the ratios of the device's rows are to.
};

std::string bench_text(const BenchReport& report);
std::string bench_json(const BenchReport& report);  // One object, no newline at its end.

}  // namespace isthmus::apps
