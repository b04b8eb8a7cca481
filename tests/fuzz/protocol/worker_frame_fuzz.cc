// Fuzzes the messages of a worker: a driver's library runs in that process, so its messages are not
// trusted.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "device/codec.h"

namespace codec = penstock::device::codec;

/// A message that could be decoded is the same after encoding and decoding it again.
template <typename T>
void RoundTrip(std::string_view body, penstock::base::Result<T> (*decode)(std::string_view)) {
  const auto value = decode(body);
  if (!value.ok()) return;
  const auto again = decode(codec::Encode(*value));
  if (!again.ok() || !(*again == *value)) std::abort();
}

void DecodeAll(std::string_view body) {
  RoundTrip(body, codec::DecodeDriver);
  RoundTrip(body, codec::DecodeAddresses);
  RoundTrip(body, codec::DecodeFacts);
  RoundTrip(body, codec::DecodeReading);
  RoundTrip(body, codec::DecodeEvidence);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string stream(reinterpret_cast<const char*>(data), size);
  DecodeAll(stream);
  for (;;) {
    const std::size_t before = stream.size();
    const auto frame = codec::TakeFrame(stream);
    if (!frame.ok() || !*frame) return 0;
    if (stream.size() >= before) std::abort();
    (void)codec::DecodeRequest(**frame);
    const auto answer = codec::DecodeAnswer(**frame);
    if (answer.ok()) DecodeAll(answer->body);
  }
}
