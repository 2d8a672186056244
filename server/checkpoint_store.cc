#include "server/checkpoint_store.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "core/files.h"
#include "server/checkpoint.h"

namespace isthmus::server {
namespace {

namespace fs = std::filesystem;

constexpr char kLifeFile[] = "life";
constexpr char kPartial[] = ".partial";  // Being written.
constexpr char kRemoved[] = ".removed";  // Being removed.
constexpr std::string_view kStep = "-step-";

struct Entry {
  std::uint64_t number = 0;
  Step step = 0;
  fs::path folder;
};

template <typename T>
bool read_number(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == end;
}

std::optional<Entry> parse(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const std::size_t dash = name.find(kStep);
  if (dash == std::string::npos) return std::nullopt;
  Entry entry{.folder = folder};
  const std::string_view view = name;
  if (!read_number(view.substr(0, dash), entry.number) ||
      !read_number(view.substr(dash + kStep.size()), entry.step))
    return std::nullopt;
  return entry;
}

// Renamed first, so that half of one is never taken for one.
void remove(const Entry& entry) {
  std::error_code error;
  const fs::path removed = entry.folder.string() + kRemoved;
  fs::rename(entry.folder, removed, error);
  if (!error) fs::remove_all(removed, error);
}

// The newest first.
std::vector<Entry> entries_of(const fs::path& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (const auto& each : fs::directory_iterator(folder, error))
    if (auto entry = parse(each.path())) entries.push_back(*std::move(entry));
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.number > b.number; });
  return entries;
}

std::string name_of(std::uint64_t number, Step step) {
  char text[64];
  std::snprintf(text, sizeof text, "%08llu%s%llu", static_cast<unsigned long long>(number), kStep.data(),
                static_cast<unsigned long long>(step));
  return text;
}

}  // namespace

fs::path checkpoint_folder(const fs::path& directory, const std::string& region, std::uint32_t server) {
  return directory / (region + "-" + std::to_string(server));
}

Result<CheckpointStore> CheckpointStore::open(fs::path folder, std::uint32_t keep) {
  ISTHMUS_RETURN_IF_ERROR(core::make_folder(folder));
  std::vector<fs::path> half_done;
  std::error_code error;
  for (const auto& each : fs::directory_iterator(folder, error)) {
    const std::string end = each.path().extension().string();
    if (end == kPartial || end == kRemoved) half_done.push_back(each.path());
  }
  for (const fs::path& path : half_done) fs::remove_all(path, error);
  return CheckpointStore(std::move(folder), keep);
}

Result<std::uint64_t> CheckpointStore::begin_life(std::uint64_t clock) const {
  const fs::path file = folder_ / kLifeFile;
  std::uint64_t before = 0;
  constexpr std::uint64_t kMaxBytes = 32;
  const auto text = core::read_file(file, kMaxBytes);
  if (text.ok()) {
    const std::string_view line(text->data(), text->find_last_not_of('\n') + 1);
    if (!read_number(line, before))
      return Status(ErrorCode::kCorruption, file.string() +
                                                ": is no number; if no other process of this job "
                                                "runs, remove it");
  } else if (text.status().code() != ErrorCode::kNotFound) {
    return text.status();
  }
  const std::uint64_t life = std::max(clock, before + 1);
  ISTHMUS_RETURN_IF_ERROR(core::write_file(file, std::to_string(life) + "\n"));
  ISTHMUS_RETURN_IF_ERROR(core::sync_folder(folder_));
  return life;
}

Result<fs::path> CheckpointStore::write(const SavedServer& saved) const {
  std::vector<Entry> entries = entries_of(folder_);
  const std::uint64_t number = entries.empty() ? 1 : entries.front().number + 1;
  const fs::path folder = folder_ / name_of(number, saved.step());
  const fs::path partial = folder.string() + kPartial;
  std::error_code error;
  fs::remove_all(partial, error);
  ISTHMUS_RETURN_IF_ERROR(core::make_folder(partial));
  Status status = write_checkpoint(partial, saved);
  if (status.ok()) status = core::sync_folder(partial);
  if (status.ok()) status = core::rename_durably(partial, folder);
  if (!status.ok()) {
    fs::remove_all(partial, error);
    return status;
  }
  entries.insert(entries.begin(), {number, saved.step(), folder});
  for (std::size_t i = keep_; i < entries.size(); ++i) remove(entries[i]);
  return folder;
}

Result<std::optional<CheckpointStore::Found>> CheckpointStore::newest(Step at_most, const Log& log) const {
  std::vector<Entry> entries = entries_of(folder_);
  if (entries.empty()) return std::optional<Found>();
  const auto later = std::stable_partition(entries.begin(), entries.end(),
                                           [&](const Entry& entry) { return entry.step <= at_most; });
  for (const Entry& entry : entries) {
    auto saved = read_checkpoint(entry.folder);
    if (saved.ok()) {
      if (entry.step <= at_most) std::for_each(later, entries.end(), remove);
      return std::optional<Found>({entry.folder, *std::move(saved)});
    }
    log("checkpoint " + entry.folder.string() + " is damaged: " + saved.status().message() +
        "; looking for the one before it");
  }
  return Status(ErrorCode::kCorruption, folder_.string() +
                                            ": holds checkpoints, but none is sound; remove the folder to "
                                            "begin anew");
}

std::optional<Step> CheckpointStore::newest_step(const fs::path& folder) {
  for (const Entry& entry : entries_of(folder)) {
    const auto step = checkpoint_step(entry.folder);
    if (step.ok()) return *step;
  }
  return std::nullopt;
}

}  // namespace isthmus::server
