// Lines at the broker's socket: requests, from anybody who may connect, and answers, from whoever listens there.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "edge/broker/protocol.h"

namespace broker = penstock::edge::broker;

namespace {

// What was understood can be said again, and means the same.
void CheckRequest(std::string_view line) {
  const auto request = broker::DecodeRequest(line);
  if (!request.ok()) {
    if (request.error().message().empty()) std::abort();
    return;
  }
  const std::string said = broker::EncodeRequest(*request);
  const auto again = broker::DecodeRequest(said);
  if (said.find('\n') != std::string::npos || !again.ok() || broker::EncodeRequest(*again) != said) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  CheckRequest(line);
  if (const auto answer = broker::DecodeRunAnswer(line); answer.ok() && !answer->waiting && !answer->granted) std::abort();
  if (const auto queue = broker::DecodeQueue(line); queue.ok() && !broker::DecodeQueue(broker::EncodeQueue(*queue)).ok()) std::abort();
  (void)broker::DecodeVersion(line);
  return 0;
}
