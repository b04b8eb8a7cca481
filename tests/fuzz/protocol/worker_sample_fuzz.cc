// Fuzzes samples and requests for them between agent and worker: a driver's library runs in the
// worker's process, so its messages are not trusted.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "device/codec.h"

namespace codec = penstock::device::codec;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // A message that could be decoded is the same after encoding and decoding it again.
  if (const auto sample = codec::DecodeSample(text); sample.ok()) {
    const auto again = codec::DecodeSample(codec::Encode(*sample));
    if (!again.ok() || !(*again == *sample)) std::abort();
  }
  if (const auto asked = codec::DecodeSampleRequest(text); asked.ok()) {
    const auto again = codec::DecodeSampleRequest(codec::Encode(asked->first, asked->second));
    if (!again.ok() || !(*again == *asked)) std::abort();
  }
  return 0;
}
