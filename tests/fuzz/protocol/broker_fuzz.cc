// Fuzzes the lines on the broker's socket: requests from any user who may connect, and responses
// from whichever process listens there.
#include <cstdint>
#include <string>
#include <string_view>

#include "../oracle.h"
#include "protocol/broker/protocol.h"

namespace broker = penstock::protocol::broker;

namespace {

using penstock::base::Code;
using penstock::base::Result;
using penstock::fuzz::Require;

// A decoded request can be encoded and decoded again with the same meaning.
void CheckRequest(std::string_view line) {
  const auto request = broker::DecodeRequest(line);
  if (!request.ok()) return Require(!request.error().message().empty());
  const std::string said = broker::EncodeRequest(*request);
  const auto again = broker::DecodeRequest(said);
  Require(said.find('\n') == std::string::npos && again.ok() &&
          broker::EncodeRequest(*again) == said);
}

std::string Encode(const broker::RunAnswer& answer) {
  return answer.granted ? broker::EncodeGranted(*answer.granted)
                        : broker::EncodeWaiting(*answer.waiting);
}

std::string Encode(const broker::AssignAnswer& answer) {
  return answer.moved ? broker::EncodeMoved(*answer.moved) : broker::EncodeMoving(*answer.moving);
}

std::string Encode(const std::vector<broker::WaitingRun>& queue) {
  return broker::EncodeQueue(queue);
}

/// A response is an error with a reason, or encoding and decoding it again gives the same.
template <typename T>
void CheckAnswer(std::string_view line, Result<T> (*decode)(std::string_view)) {
  const Result<T> answer = decode(line);
  if (!answer.ok()) return Require(!answer.error().message().empty());
  const std::string said = Encode(*answer);
  const Result<T> again = decode(said);
  Require(said.find('\n') == std::string::npos && again.ok() && Encode(*again) == said);
}

void CheckAny(std::string_view line) {
  const auto any = broker::DecodeAny(line);
  if (any.ok()) return Require(*any == line);
  // The other decoders report the same error.
  const auto queue = broker::DecodeQueue(line);
  Require(!queue.ok() && queue.error().code() == any.error().code() &&
          queue.error().message() == any.error().message());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line = penstock::fuzz::Text(data, size);
  CheckRequest(line);
  CheckAnswer<broker::RunAnswer>(line, broker::DecodeRunAnswer);
  CheckAnswer<broker::AssignAnswer>(line, broker::DecodeAssignAnswer);
  CheckAnswer<std::vector<broker::WaitingRun>>(line, broker::DecodeQueue);
  CheckAny(line);
  return 0;
}
