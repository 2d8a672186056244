#include "proto/meta.h"

#include <algorithm>
#include <utility>

namespace isthmus::proto {

Result<std::vector<core::SharedBytes>> split_records(const Message& message,
                                                     std::span<const std::uint64_t> record_bytes) {
  const auto mismatch = [&] {
    return Status(ErrorCode::kProtocol,
                  std::string(to_string(message.kind)) + ": the records do not fill the payload");
  };
  std::vector<core::SharedBytes> records;
  records.reserve(record_bytes.size());
  std::size_t piece = 0;
  std::size_t offset = 0;
  for (std::uint64_t bytes : record_bytes) {
    while (piece < message.payload.size() && offset == message.payload[piece].size()) {
      ++piece;
      offset = 0;
    }
    if (bytes == 0) {
      records.emplace_back();
      continue;
    }
    if (piece == message.payload.size() || bytes > message.payload[piece].size() - offset) return mismatch();
    records.push_back(message.payload[piece].part(offset, bytes));
    offset += bytes;
  }
  while (piece < message.payload.size() && offset == message.payload[piece].size()) {
    ++piece;
    offset = 0;
  }
  if (piece != message.payload.size()) return mismatch();
  return records;
}

std::vector<core::SharedBytes> join_small(std::vector<core::SharedBytes> pieces) {
  std::vector<core::SharedBytes> joined;
  const auto is_small = [](const core::SharedBytes& piece) { return piece.size() < kBigPieceBytes; };
  for (std::size_t first = 0; first < pieces.size();) {
    std::size_t bytes = pieces[first].size();
    std::size_t last = first + 1;
    while (is_small(pieces[first]) && last < pieces.size() && is_small(pieces[last]) &&
           bytes + pieces[last].size() <= kJoinedBytes)
      bytes += pieces[last++].size();
    if (last == first + 1) {
      joined.push_back(std::move(pieces[first++]));
      continue;
    }
    core::Buffer buffer(bytes);
    std::byte* to = buffer.writable().data();
    for (; first < last; ++first) to = std::ranges::copy(pieces[first].view, to).out;
    joined.push_back(std::move(buffer).share(bytes));
  }
  return joined;
}

Message make_refusal(std::uint64_t request_id, RefuseReason reason, std::string text) {
  Refuse refuse;
  refuse.set_reason(reason);
  refuse.set_text(std::move(text));
  return make_message(Kind::kRefuse, request_id, refuse);
}

Status refusal_status(const Message& message) {
  Result<Refuse> refuse = parse_meta<Refuse>(message);
  if (!refuse.ok()) return std::move(refuse).status();
  return {ErrorCode::kRefused, refuse->text()};
}

LayoutTable to_table(const core::Layout& layout) {
  LayoutTable table;
  table.set_slice_elements(layout.slice_elements());
  for (const isthmus::TensorSpec& tensor : layout.tensors()) {
    TensorSpec* entry = table.add_tensors();
    entry->set_name(tensor.name);
    for (std::uint64_t dimension : tensor.shape) entry->add_shape(dimension);
  }
  return table;
}

Result<core::Layout> from_table(const LayoutTable& table) {
  std::vector<isthmus::TensorSpec> tensors;
  tensors.reserve(static_cast<std::size_t>(table.tensors_size()));
  for (const TensorSpec& entry : table.tensors())
    tensors.push_back({entry.name(), {entry.shape().begin(), entry.shape().end()}});
  Result<core::Layout> layout = core::Layout::create(std::move(tensors), table.slice_elements());
  if (!layout.ok()) return Status(ErrorCode::kProtocol, layout.status().message());
  return layout;
}

}  // namespace isthmus::proto
