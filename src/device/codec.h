// Encodes the messages between agent and worker as frames: a length (4 bytes, big endian) and a
// JSON object. All input is untrusted, whoever sent it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "device/backend.h"
#include "device/model.h"
#include "device/telemetry.h"

namespace penstock::device::codec {

inline constexpr std::size_t kMaxFrameBytes = 4u << 20;

/// A request to a backend: an operation ("open", "list", "describe", "read", "sample", "set-mode",
/// "create-part", "destroy-part") and its argument.
struct WorkerRequest {
  std::uint64_t id = 0;
  std::string operation;
  std::string argument;
};

/// The answer to a request: an error, or a body for one of the Decode functions.
struct WorkerAnswer {
  std::uint64_t id = 0;
  base::Status status;
  std::string body;
};

/// The argument of "set-mode".
struct ModeRequest {
  std::string address, mode, value;
  bool operator==(const ModeRequest&) const = default;
};

/// The argument of "create-part".
struct PartRequest {
  std::string device;
  NewPart part;
  bool operator==(const PartRequest&) const = default;
};

std::string EncodeRequest(const WorkerRequest& request);
base::Result<WorkerRequest> DecodeRequest(std::string_view frame);
std::string EncodeAnswer(const WorkerAnswer& answer);
base::Result<WorkerAnswer> DecodeAnswer(std::string_view frame);

std::string Encode(const Driver& driver);
std::string Encode(const std::vector<std::string>& addresses);
std::string Encode(const Facts& facts);
std::string Encode(const Reading& reading);
std::string Encode(const std::vector<Evidence>& evidence);
/// Samples come often and hold many numbers: "q.link=number" separated by blanks, not JSON. Those
/// of parts follow, each after a line with its address.
std::string Encode(const Sample& sample);
/// Encodes the argument of "sample".
std::string Encode(const std::string& address, const SampleRequest& request);
std::string Encode(const ModeRequest& request);
std::string Encode(const PartRequest& request);
/// The answer to requests that change a device.
std::string EncodeAddress(const std::string& address);

base::Result<Driver> DecodeDriver(std::string_view body);
base::Result<std::vector<std::string>> DecodeAddresses(std::string_view body);
base::Result<Facts> DecodeFacts(std::string_view body);
base::Result<Reading> DecodeReading(std::string_view body);
base::Result<std::vector<Evidence>> DecodeEvidence(std::string_view body);
base::Result<Sample> DecodeSample(std::string_view body);
base::Result<std::pair<std::string, SampleRequest>> DecodeSampleRequest(std::string_view argument);
base::Result<ModeRequest> DecodeModeRequest(std::string_view argument);
base::Result<PartRequest> DecodePartRequest(std::string_view argument);
base::Result<std::string> DecodeAddress(std::string_view body);

/// Prepends the length.
std::string Frame(std::string_view content);

/// Removes one whole frame from the front of a buffer and returns its content; nothing if it is
/// still incomplete. kDataLoss for an impossible length.
base::Result<std::optional<std::string>> TakeFrame(std::string& buffer);

}  // namespace penstock::device::codec
