#include "apps/bench_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/table.h"

namespace isthmus::apps {
namespace {

using json = nlohmann::ordered_json;

std::string number(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// As many digits as a measurement has.
double rounded(double value) { return std::stod(number("%.4g", value)); }

}  // namespace

std::string bench_text(const BenchReport& report) {
  std::string text = "streaming read: " + number("%.2f", report.read_gb_per_s) +
                     " GB/s (10^9 bytes of input a second, one thread); 'x read' is the ratio to it\n";
  if (!report.device.empty()) {
    text += report.device + ": streaming read of its memory " + number("%.2f", report.device_read_gb_per_s) +
            " GB/s; the ratios of cuda's rows are to that\n";
  }
  if (!report.rows.empty()) {
    Table table({"codec", "backend", "input", ">encode", ">x read", ">decode", ">x read", ">bytes", ">NMSE"});
    for (const CodecRow& row : report.rows) {
      table.add({row.codec, row.backend, row.input, number("%.2f", row.encode.gb_per_s),
                 number("%.2f", row.encode.ratio), number("%.2f", row.decode.gb_per_s),
                 number("%.2f", row.decode.ratio), number("%.4f", row.bytes_per_element),
                 number("%.2e", row.nmse)});
    }
    text += "\n" + table.to_string();
  }
  if (!report.paths.empty()) {
    Table table({"path", "codec", "backend", "input", ">GB/s", ">x read"});
    for (const PathRow& row : report.paths) {
      table.add({row.path, row.codec, row.backend, row.input, number("%.2f", row.pace.gb_per_s),
                 number("%.2f", row.pace.ratio)});
    }
    text += "\n" + table.to_string();
  }
  return text;
}

std::string bench_json(const BenchReport& report) {
  json rows = json::array();
  for (const CodecRow& row : report.rows) {
    rows.push_back({{"codec", row.codec},
                    {"backend", row.backend},
                    {"input", row.input},
                    {"encode_gb_per_s", rounded(row.encode.gb_per_s)},
                    {"encode_ratio", rounded(row.encode.ratio)},
                    {"decode_gb_per_s", rounded(row.decode.gb_per_s)},
                    {"decode_ratio", rounded(row.decode.ratio)},
                    {"bytes_per_element", rounded(row.bytes_per_element)},
                    {"nmse", rounded(row.nmse)}});
  }
  json paths = json::array();
  for (const PathRow& row : report.paths) {
    paths.push_back({{"path", row.path},
                     {"codec", row.codec},
                     {"backend", row.backend},
                     {"input", row.input},
                     {"gb_per_s", rounded(row.pace.gb_per_s)},
                     {"ratio", rounded(row.pace.ratio)}});
  }
  json whole = {{"schema", 1}, {"read_gb_per_s", rounded(report.read_gb_per_s)}};
  if (!report.device.empty()) {
    whole["device"] = {{"name", report.device}, {"read_gb_per_s", rounded(report.device_read_gb_per_s)}};
  }
  whole["rows"] = std::move(rows);
  whole["paths"] = std::move(paths);
  return whole.dump();
}

}  // namespace isthmus::apps
