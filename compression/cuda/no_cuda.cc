// What there is of a device where the toolkit is not: nothing, and it says so.

#include "compression/cuda/device.h"
#include "compression/cuda/device_codec.h"
#include "compression/cuda/device_kernels.h"

namespace isthmus::compression {
namespace {

Status no_device() { return {ErrorCode::kUnavailable, "this build is without CUDA (ISTHMUS_CUDA)"}; }

}  // namespace

Result<std::string> device_name() { return no_device(); }

Status OwnedStream::create() { return no_device(); }
Status OwnedEvent::create() { return no_device(); }

template <MemoryPlace kPlace>
Status OwnedMemory<kPlace>::allocate(std::size_t) {
  return no_device();
}
// Nothing was made that these could be called on.
template <MemoryPlace kPlace>
void OwnedMemory<kPlace>::Free::operator()(std::byte*) const noexcept {}
template class OwnedMemory<MemoryPlace::kDevice>;
template class OwnedMemory<MemoryPlace::kPinned>;
void OwnedStream::Destroy::operator()(DeviceStream) const noexcept {}
void OwnedEvent::Destroy::operator()(DeviceEvent) const noexcept {}
Status OwnedStream::synchronize() const { return no_device(); }
Status OwnedEvent::record(DeviceStream) { return no_device(); }
bool OwnedEvent::passed() const { return true; }
Status OwnedEvent::synchronize() const { return no_device(); }
Result<double> OwnedEvent::seconds_since(const OwnedEvent&) const { return no_device(); }

Status copy_to_device(void*, const void*, std::size_t, DeviceStream) { return no_device(); }
Status copy_to_host(void*, const void*, std::size_t, DeviceStream) { return no_device(); }
Status zero_on_device(void*, std::size_t, DeviceStream) { return no_device(); }
Status read_on_device(std::span<const float>, float*, DeviceStream) { return no_device(); }

std::unique_ptr<const DeviceKernels> make_device_kernels(const core::CodecConfig&) { return nullptr; }
Result<std::unique_ptr<DeviceEncoder>> make_device_encoder(const core::CodecConfig&, std::size_t) {
  return no_device();
}
Result<std::unique_ptr<DeviceDecoder>> make_device_decoder(std::size_t) { return no_device(); }

}  // namespace isthmus::compression
