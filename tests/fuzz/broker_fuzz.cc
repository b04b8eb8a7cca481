// Lines at the broker's socket: requests, from anybody who may connect, and answers, from whoever listens there.
#include <cstdint>
#include <string>
#include <string_view>

#include "edge/broker/protocol.h"
#include "oracle.h"

namespace broker = penstock::edge::broker;

namespace {

using penstock::base::Code;
using penstock::base::Result;
using penstock::fuzz::Require;

// What was understood can be said again, and means the same.
void CheckRequest(std::string_view line) {
  const auto request = broker::DecodeRequest(line);
  if (!request.ok()) return Require(!request.error().message().empty());
  const std::string said = broker::EncodeRequest(*request);
  const auto again = broker::DecodeRequest(said);
  Require(said.find('\n') == std::string::npos && again.ok() && broker::EncodeRequest(*again) == said);
}

std::string Encode(const broker::RunAnswer& answer) {
  return answer.granted ? broker::EncodeGranted(*answer.granted) : broker::EncodeWaiting(*answer.waiting);
}

std::string Encode(const broker::DoorAnswer& answer) {
  return answer.moved ? broker::EncodeMoved(*answer.moved) : broker::EncodeMoving(*answer.moving);
}

std::string Encode(const std::vector<broker::WaitingRun>& queue) { return broker::EncodeQueue(queue); }

std::string Encode(const broker::VersionAnswer& version) { return broker::EncodeVersion(version); }

/// An answer is an error with its reason, or it is the same when it is written and read again.
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
  // The other readers find the same error.
  const auto queue = broker::DecodeQueue(line);
  Require(!queue.ok() && queue.error().code() == any.error().code() && queue.error().message() == any.error().message());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line = penstock::fuzz::Text(data, size);
  CheckRequest(line);
  CheckAnswer<broker::RunAnswer>(line, broker::DecodeRunAnswer);
  CheckAnswer<broker::DoorAnswer>(line, broker::DecodeDoorAnswer);
  CheckAnswer<std::vector<broker::WaitingRun>>(line, broker::DecodeQueue);
  CheckAnswer<broker::VersionAnswer>(line, broker::DecodeVersion);
  CheckAny(line);
  return 0;
}
