#include "core/safetensors.h"

#include <algorithm>
#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/files.h"

namespace isthmus::core {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

constexpr char kMetadataKey[] = "__metadata__";
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kAlignment = 8;                   // Of the data, so that readers can map it.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // The format's own limit.

Result<std::string> make_header(std::span<const TensorSpec> table, const Metadata& metadata) {
  json header = json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  std::uint64_t offset = 0;
  for (const TensorSpec& spec : table) {
    if (spec.name == kMetadataKey || header.contains(spec.name))
      return Status(ErrorCode::kInvalidArgument,
                    "tensor name '" + spec.name + "' is reserved or given twice");
    const std::uint64_t end = offset + spec.elements() * sizeof(float);
    header[spec.name] = {{"dtype", "F32"}, {"shape", spec.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception& error) {  // A name or a metadatum is no UTF-8.
    return Status(ErrorCode::kInvalidArgument, error.what());
  }
  text.append((kAlignment - (kLengthBytes + text.size()) % kAlignment) % kAlignment, ' ');
  return text;
}

Status corrupt(const std::string& what) { return Status(ErrorCode::kCorruption, what); }

struct Entry {
  std::uint64_t begin = 0, end = 0;
  TensorSpec spec;
};

// One tensor's description; false when it is not of the form this reader knows.
bool parse_entry(const json& value, Entry& entry) {
  if (!value.is_object() || value.value("dtype", json()) != "F32") return false;
  const json shape = value.value("shape", json()), offsets = value.value("data_offsets", json());
  const auto is_count = [](const json& number) { return number.is_number_unsigned(); };
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), is_count)) return false;
  if (!offsets.is_array() || offsets.size() != 2 || !std::all_of(offsets.begin(), offsets.end(), is_count))
    return false;
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  std::uint64_t bytes = sizeof(float);
  for (const json& dimension : shape) {
    entry.spec.shape.push_back(dimension.get<std::uint64_t>());
    if (__builtin_mul_overflow(bytes, entry.spec.shape.back(), &bytes)) return false;
  }
  return entry.begin <= entry.end && entry.end - entry.begin == bytes;
}

// The tensors in the order of their data, which they must cover without a hole.
Result<std::vector<Entry>> parse_header(const std::string& text, std::uint64_t data_bytes,
                                        Metadata& metadata) {
  const json header = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return corrupt("the header is not a JSON object");
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadataKey) {
      if (!value.is_object()) return corrupt("__metadata__ is not an object");
      for (const auto& [key, text_value] : value.items()) {
        if (!text_value.is_string()) return corrupt("__metadata__ holds more than text");
        metadata[key] = text_value.get<std::string>();
      }
      continue;
    }
    Entry entry;
    entry.spec.name = name;
    if (!parse_entry(value, entry))
      return corrupt("tensor '" + name + "' is not described as fp32 of its shape");
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t expected = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != expected) return corrupt("tensor '" + entry.spec.name + "' leaves a hole or overlaps");
    expected = entry.end;
  }
  if (expected != data_bytes) return corrupt("the tensors take other than the bytes that the file holds");
  return entries;
}

Result<SafetensorsFile> read_file(std::ifstream& in, std::uint64_t file_bytes) {
  std::uint64_t header_bytes = 0;
  if (file_bytes < kLengthBytes || !in.read(reinterpret_cast<char*>(&header_bytes), kLengthBytes))
    return corrupt("too short for a header");
  if (header_bytes > kMaxHeaderBytes || header_bytes > file_bytes - kLengthBytes)
    return corrupt("the header's length is absurd");
  std::string text(header_bytes, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(header_bytes)))
    return corrupt("the header cannot be read");

  SafetensorsFile file;
  Result<std::vector<Entry>> entries =
      parse_header(text, file_bytes - kLengthBytes - header_bytes, file.metadata);
  if (!entries.ok()) return entries.status();
  for (Entry& entry : *entries) {
    std::vector<float> values((entry.end - entry.begin) / sizeof(float));
    if (!in.read(reinterpret_cast<char*>(values.data()),
                 static_cast<std::streamsize>(entry.end - entry.begin)))
      return corrupt("ends too early");
    file.table.push_back(std::move(entry.spec));
    file.values.push_back(std::move(values));
  }
  return file;
}

}  // namespace

Status write_safetensors(const fs::path& path, std::span<const TensorSpec> table,
                         std::span<const ConstTensorView> values, const Metadata& metadata) {
  ISTHMUS_CHECK(table.size() == values.size());
  for (std::size_t i = 0; i < table.size(); ++i) ISTHMUS_CHECK(table[i].elements() == values[i].size());
  const Result<std::string> header = make_header(table, metadata);
  if (!header.ok()) return header.status().with_context(path.string());

  const std::uint64_t length = header->size();
  std::vector<FilePiece> pieces = {std::as_bytes(std::span(&length, 1)), std::as_bytes(std::span(*header))};
  for (const ConstTensorView view : values) pieces.push_back(std::as_bytes(view));
  return write_file(path, pieces);
}

Result<SafetensorsFile> read_safetensors(const fs::path& path) {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  if (error || !in)
    return Status(ErrorCode::kNotFound,
                  path.string() + ": " + (error ? error.message() : "cannot be opened"));
  Result<SafetensorsFile> file = read_file(in, bytes);
  if (!file.ok()) return std::move(file).status().with_context(path.string());
  return file;
}

}  // namespace isthmus::core
