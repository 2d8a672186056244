// The codecs over device memory, on a caller's stream: the same records as those of the CPU, bit for bit.
//
// begin() enqueues all that an encoding takes, its copy to pinned memory included, and returns; what the
// codec decides on the way (topk's threshold) it decides on the device. A decoder looks at a record on the
// host, as it would without a device, before any of it is copied.
//
// Tensors have fewer than 2^31 elements.
//
// Threads: an encoder or decoder belongs to one, whose current device is the one it was made on.
// Memory:  all of it is allocated when made. An encoder: a record on the device and, pinned, on the host;
//          with topk 8 bytes for each element that it may keep, 4 for each thousand, and 0.3 MiB. A decoder:
//          two records on each side.
// Errors:  as device.h; otherwise those of the same codec on the CPU.

#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "compression/codec.h"
#include "compression/cuda/device.h"

namespace isthmus::compression {

class DeviceEncoder {
 public:
  virtual ~DeviceEncoder() = default;

  // The same codec on the CPU.
  virtual const Codec& codec() const noexcept = 0;

  // Enqueues an encoding of `change`, whose spans are of device memory; later work of the stream may change
  // what they hold. What does not fit or is not known about `state` is found on the device. REQUIRES: at most
  // the elements that it was made for; finish() was called for the one before.
  virtual Status begin(const Change& change, const CodecState& state, DeviceStream stream) = 0;

  // Whether finish() would not wait. Does not block.
  virtual bool ready() const = 0;

  // Waits for the record; it is valid until the next begin(). `state` becomes what Codec::encode_delta would
  // have made of it. kInvalidArgument when a difference was not finite: `state`, and a view that was to be
  // moved in place, are as they were.
  virtual Result<std::span<const std::byte>> finish(CodecState& state) = 0;
};

Result<std::unique_ptr<DeviceEncoder>> make_device_encoder(const core::CodecConfig& config,
                                                           std::size_t max_elements);

class DeviceDecoder {
 public:
  virtual ~DeviceDecoder() = default;

  // Enqueues sum[i] += weight * decoded[i], or sum[i] = decoded[i], over device memory. When it returns, `in`
  // has been copied. Waits only while two records before are still on their way to the device. A refused
  // record enqueues nothing.
  virtual Status accumulate(const Codec& codec, std::span<const std::byte> in, float weight,
                            std::span<float> sum, DeviceStream stream) = 0;
  virtual Status decode(const Codec& codec, std::span<const std::byte> in, std::span<float> out,
                        DeviceStream stream) = 0;
};

// For records of any codec of at most `max_record_bytes`. REQUIRES: not two threads' or streams' at a time.
Result<std::unique_ptr<DeviceDecoder>> make_device_decoder(std::size_t max_record_bytes);

}  // namespace isthmus::compression
