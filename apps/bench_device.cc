#include "apps/bench_device.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "apps/bench_measure.h"
#include "compression/codec.h"
#include "compression/cuda/device_codec.h"
#include "compression/cuda/device_kernels.h"
#include "compression/cuda/staging.h"

namespace isthmus::apps {
namespace {

using compression::AddJob;
using compression::EncodeOutcome;

std::span<const float> floats_of(const compression::DeviceMemory& memory) { return memory.as<const float>(); }

}  // namespace

// One codec's encodings of one change, one after another, each with what the last one left.
class DeviceBench::Encoding {
 public:
  Encoding(DeviceBench& bench, const CodecChoice& choice, compression::Change change)
      : bench_(bench), kernels_(compression::make_device_kernels(choice.config)), change_(change) {}

  Status enqueue() {
    auto* const outcome = bench_.outcome_.as<EncodeOutcome>().data();
    return kernels_->encode(
        {change_, state_, bench_.record_.data(), outcome, bench_.scratch_.data(), bench_.stream_.get()});
  }

  // Reads what is known when it has ended.
  Status finish() {
    ISTHMUS_RETURN_IF_ERROR(compression::copy_to_host(bench_.pinned_.data(), bench_.outcome_.data(),
                                                      sizeof(EncodeOutcome), bench_.stream_.get()));
    ISTHMUS_RETURN_IF_ERROR(bench_.stream_.synchronize());
    EncodeOutcome outcome;
    std::memcpy(&outcome, bench_.pinned_.data(), sizeof(outcome));
    if (outcome.refused != 0) return compression::not_finite();
    state_.threshold = outcome.threshold;
    ++state_.records;
    bytes_ = outcome.bytes;
    return {};
  }

  std::size_t bytes() const { return bytes_; }
  const compression::DeviceKernels& kernels() const { return *kernels_; }

 private:
  DeviceBench& bench_;
  std::unique_ptr<const compression::DeviceKernels> kernels_;
  compression::Change change_;
  compression::CodecState state_;
  std::size_t bytes_ = 0;
};

Status DeviceBench::open(std::size_t elements, std::span<const CodecChoice> codecs, std::uint64_t repeats) {
  Result<std::string> device = compression::device_name();
  if (!device.ok()) return std::move(device).status();
  device_ = *std::move(device);
  repeats_ = std::max<std::uint64_t>(repeats, 1);
  std::size_t record_bytes = sizeof(EncodeOutcome), scratch_bytes = 0;
  for (const CodecChoice& choice : codecs) {
    record_bytes =
        std::max(record_bytes, compression::make_codec(choice.config)->max_encoded_bytes(elements));
    scratch_bytes =
        std::max(scratch_bytes, compression::make_device_kernels(choice.config)->scratch_bytes(elements));
  }
  const std::size_t staged_bytes = compression::staged_bytes(record_bytes);
  for (compression::DeviceMemory* const memory : {&input_, &view_})
    ISTHMUS_RETURN_IF_ERROR(memory->allocate(elements * sizeof(float)));
  ISTHMUS_RETURN_IF_ERROR(record_.allocate(record_bytes));
  ISTHMUS_RETURN_IF_ERROR(staged_.allocate(staged_bytes));
  ISTHMUS_RETURN_IF_ERROR(scratch_.allocate(scratch_bytes));
  ISTHMUS_RETURN_IF_ERROR(outcome_.allocate(sizeof(EncodeOutcome)));
  ISTHMUS_RETURN_IF_ERROR(sink_.allocate(sizeof(float)));
  ISTHMUS_RETURN_IF_ERROR(pinned_.allocate(staged_bytes));
  ISTHMUS_RETURN_IF_ERROR(stream_.create());
  ISTHMUS_RETURN_IF_ERROR(start_.create());
  return end_.create();
}

Status DeviceBench::set_input(std::span<const float> input) {
  host_input_ = input;
  ISTHMUS_RETURN_IF_ERROR(
      compression::copy_to_device(input_.data(), input.data(), input.size_bytes(), stream_.get()));
  return stream_.synchronize();
}

Result<double> DeviceBench::seconds_of(const std::function<Status()>& work) {
  ISTHMUS_RETURN_IF_ERROR(start_.record(stream_.get()));
  ISTHMUS_RETURN_IF_ERROR(work());
  ISTHMUS_RETURN_IF_ERROR(end_.record(stream_.get()));
  ISTHMUS_RETURN_IF_ERROR(end_.synchronize());
  Result<double> seconds = end_.seconds_since(start_);
  if (!seconds.ok()) return seconds;
  return std::max(*seconds, 1e-9);  // Nothing is faster than the clock can tell.
}

// Once for practice, then `repeats_` times. `prepare` and `after` are not timed.
Result<Pace> DeviceBench::time(const std::function<Status()>& pass, const std::function<Status()>& prepare,
                               const std::function<Status()>& after) {
  std::vector<double> reads, passes;
  for (std::uint64_t run = 0; run <= repeats_; ++run) {
    ISTHMUS_RETURN_IF_ERROR(compression::zero_on_device(outcome_.data(), outcome_.size(), stream_.get()));
    ISTHMUS_RETURN_IF_ERROR(prepare());
    const Result<double> read = seconds_of([this] {
      return compression::read_on_device(floats_of(input_), sink_.as<float>().data(), stream_.get());
    });
    if (!read.ok()) return read.status();
    const Result<double> taken = seconds_of(pass);
    if (!taken.ok()) return taken.status();
    ISTHMUS_RETURN_IF_ERROR(after());
    if (run == 0) continue;
    reads.push_back(*read);
    passes.push_back(*taken);
  }
  reads_.insert(reads_.end(), reads.begin(), reads.end());
  return pace_of(host_input_.size_bytes(), reads, passes);
}

Result<CodecRow> DeviceBench::measure(const CodecChoice& choice) {
  const auto nothing = [] { return Status(); };
  const auto codec = compression::make_codec(choice.config);
  CodecRow row{choice.name, "cuda", {}, {}, {}, 0, 0};
  Encoding encoding(*this, choice, {.values = floats_of(input_)});
  const Result<Pace> encode =
      time([&] { return encoding.enqueue(); }, nothing, [&] { return encoding.finish(); });
  if (!encode.ok()) return encode.status();
  row.encode = *encode;
  row.bytes_per_element = static_cast<double>(encoding.bytes()) / static_cast<double>(host_input_.size());

  std::vector<std::byte> record(encoding.bytes());
  ISTHMUS_RETURN_IF_ERROR(
      compression::copy_to_host(record.data(), record_.data(), record.size(), stream_.get()));
  ISTHMUS_RETURN_IF_ERROR(stream_.synchronize());
  if (Status status = codec->check(record, host_input_.size()); !status.ok())
    return Status(ErrorCode::kInternal, choice.name + ": " + status.message());
  AddJob job{.sum = view_.as<float>(), .stream = stream_.get()};
  const std::size_t staged =
      compression::stage_record(codec->id(), record, pinned_.span(), staged_.data(), job);
  ISTHMUS_RETURN_IF_ERROR(compression::copy_to_device(staged_.data(), pinned_.data(), staged, stream_.get()));
  const Result<Pace> decode = time([&] { return encoding.kernels().add(job); }, nothing, nothing);
  if (!decode.ok()) return decode.status();
  row.decode = *decode;

  job.set = true;
  ISTHMUS_RETURN_IF_ERROR(encoding.kernels().add(job));
  std::vector<float> decoded(host_input_.size());
  ISTHMUS_RETURN_IF_ERROR(
      compression::copy_to_host(decoded.data(), view_.data(), view_.size(), stream_.get()));
  ISTHMUS_RETURN_IF_ERROR(stream_.synchronize());
  row.nmse = nmse_of(host_input_, decoded);
  return row;
}

Result<PathRow> DeviceBench::measure_delta(const CodecChoice& choice) {
  Encoding encoding(*this, choice, {floats_of(input_), floats_of(view_), view_.as<float>()});
  const auto clear = [this] {
    return compression::zero_on_device(view_.data(), view_.size(), stream_.get());
  };
  const Result<Pace> pace =
      time([&] { return encoding.enqueue(); }, clear, [&] { return encoding.finish(); });
  if (!pace.ok()) return pace.status();
  return PathRow{"delta + encode + view", choice.name, "cuda", {}, *pace};
}

Result<PathRow> DeviceBench::measure_to_host(const CodecChoice& choice) {
  const auto encoder = compression::make_device_encoder(choice.config, host_input_.size());
  if (!encoder.ok()) return encoder.status();
  compression::CodecState state;
  const Result<Pace> pace =
      time([&] { return (*encoder)->begin({.values = floats_of(input_)}, state, stream_.get()); },
           [] { return Status(); }, [&] { return (*encoder)->finish(state).status(); });
  if (!pace.ok()) return pace.status();
  return PathRow{"encode, to the host", choice.name, "cuda", {}, *pace};
}

double DeviceBench::read_gb_per_s() const {
  return static_cast<double>(host_input_.size_bytes()) / median(reads_) / 1e9;
}

}  // namespace isthmus::apps
