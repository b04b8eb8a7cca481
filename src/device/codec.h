// Frames between agent and worker: a length (4 bytes, big endian) and a JSON object. What comes in is foreign, whoever sent it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "device/model.h"
#include "device/telemetry.h"

namespace penstock::device::codec {

inline constexpr std::size_t kMostFrameBytes = 4u << 20;

/// A request to a backend: an operation ("open", "list", "describe", "read", "sample", "wait") and its argument.
struct Request {
  std::uint64_t id = 0;
  std::string operation;
  std::string argument;
};

/// The answer to a request: an error, or a body that one of the Decode functions reads.
struct Answer {
  std::uint64_t id = 0;
  base::Status status;
  std::string body;
};

std::string EncodeRequest(const Request& request);
base::Result<Request> DecodeRequest(std::string_view frame);
std::string EncodeAnswer(const Answer& answer);
base::Result<Answer> DecodeAnswer(std::string_view frame);

std::string Encode(const Driver& driver);
std::string Encode(const std::vector<std::string>& addresses);
std::string Encode(const Facts& facts);
std::string Encode(const Reading& reading);
std::string Encode(const std::vector<Evidence>& evidence);
/// Samples come often and are many numbers: "q.link=number" separated by blanks, not JSON.
std::string Encode(const Sample& sample);
/// The argument of "sample".
std::string Encode(const std::string& address, const SampleRequest& request);

base::Result<Driver> DecodeDriver(std::string_view body);
base::Result<std::vector<std::string>> DecodeAddresses(std::string_view body);
base::Result<Facts> DecodeFacts(std::string_view body);
base::Result<Reading> DecodeReading(std::string_view body);
base::Result<std::vector<Evidence>> DecodeEvidence(std::string_view body);
base::Result<Sample> DecodeSample(std::string_view body);
base::Result<std::pair<std::string, SampleRequest>> DecodeSampleRequest(std::string_view argument);

/// Puts the length in front.
std::string Frame(std::string_view content);

/// Takes one whole frame out of the front of a buffer: its content; nothing where it is not complete yet. kDataLoss for an impossible
/// length.
base::Result<std::optional<std::string>> TakeFrame(std::string& buffer);

}  // namespace penstock::device::codec
