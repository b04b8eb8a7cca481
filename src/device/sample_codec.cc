// Encodes samples as lines of words, since they come every second and hold hundreds of numbers.
// Decoding validates everything.
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/core/strings.h"
#include "device/codec.h"

namespace penstock::device::codec {
namespace {

constexpr int kMaxLinks = 1024;
constexpr std::size_t kMaxItems = 1u << 16;
constexpr std::size_t kSampleLines = 3;

template <typename T>
void Append(std::string& text, T number) {
  std::array<char, 32> buffer;
  const auto done = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  text.append(buffer.data(), done.ptr);
}

void AppendShare(std::string& text, const std::optional<double>& share) {
  text += ':';
  if (share && std::isfinite(*share)) Append(text, *share);
}

Error Malformed(std::string_view what, std::string_view word) {
  return {Code::kDataLoss, "a sample contains an invalid " + std::string(what) + ": \"" +
                               std::string(word.substr(0, 40)) + "\""};
}

std::optional<double> ParseReal(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::optional<QuantityId> ParseQuantity(std::string_view text) {
  const auto number = base::ParseUint(text);
  if (!number || *number > std::numeric_limits<QuantityId>::max()) return std::nullopt;
  return static_cast<QuantityId>(*number);
}

/// "3=1410", "7.2=r55.5": quantity, link, an integer or a real number.
std::optional<SampleValue> ParseValue(std::string_view word) {
  const auto equals = word.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view name = word.substr(0, equals);
  std::string_view number = word.substr(equals + 1);
  SampleValue value;
  const auto dot = name.find('.');
  const auto quantity = ParseQuantity(name.substr(0, dot));
  if (!quantity) return std::nullopt;
  value.quantity = *quantity;
  if (dot != std::string_view::npos) {
    const auto link = base::ParseUint(name.substr(dot + 1));
    if (!link || *link >= kMaxLinks) return std::nullopt;
    value.link = static_cast<int>(*link);
  }
  if (!number.empty() && number.front() == 'r') {
    const auto real = ParseReal(number.substr(1));
    if (!real) return std::nullopt;
    value.number = *real;
    return value;
  }
  const auto whole = base::ParseUint(number);
  if (!whole) return std::nullopt;
  value.number = *whole;
  return value;
}

bool ParseShare(std::string_view text, std::optional<double>& share) {
  if (text.empty()) return true;
  share = ParseReal(text);
  return share.has_value();
}

/// "4711:1048576:35::0:0": pid, bytes, percentages; unknown ones are empty.
std::optional<ProcessSample> ParseProcess(std::string_view word) {
  const auto parts = base::Split(word, ':');
  if (parts.size() != 6) return std::nullopt;
  const auto pid = base::ParseUint(parts[0]);
  if (!pid || *pid == 0 ||
      *pid > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    return std::nullopt;
  ProcessSample process{.pid = static_cast<std::int32_t>(*pid)};
  if (!parts[1].empty()) {
    const auto memory = base::ParseUint(parts[1]);
    if (!memory) return std::nullopt;
    process.memory = base::Bytes{*memory};
  }
  if (!ParseShare(parts[2], process.compute) || !ParseShare(parts[3], process.memory_copy) ||
      !ParseShare(parts[4], process.encoder) || !ParseShare(parts[5], process.decoder))
    return std::nullopt;
  return process;
}

/// Calls `take` for each word of a line.
template <typename Take>
Status EachWord(std::string_view line, std::string_view what, Take take) {
  std::size_t count = 0;
  while (!line.empty()) {
    const auto blank = line.find(' ');
    const std::string_view word = line.substr(0, blank);
    line = blank == std::string_view::npos ? std::string_view() : line.substr(blank + 1);
    if (++count > kMaxItems || !take(word)) return Malformed(what, word);
  }
  return {};
}

void AppendMeasured(const Sample& sample, std::string& text) {
  const auto separate = [&text] {
    if (!text.empty() && text.back() != '\n') text += ' ';
  };
  for (const SampleValue& value : sample.values) {
    const auto* whole = std::get_if<std::uint64_t>(&value.number);
    if (whole == nullptr && !std::isfinite(std::get<double>(value.number))) continue;
    separate();
    Append(text, value.quantity);
    if (value.link >= 0) {
      text += '.';
      Append(text, value.link);
    }
    text += '=';
    if (whole != nullptr) {
      Append(text, *whole);
    } else {
      text += 'r';
      Append(text, std::get<double>(value.number));
    }
  }
  text += '\n';
  for (const ProcessSample& process : sample.processes) {
    separate();
    Append(text, process.pid);
    text += ':';
    if (process.memory) Append(text, process.memory->count);
    for (const auto& share :
         {process.compute, process.memory_copy, process.encoder, process.decoder})
      AppendShare(text, share);
  }
  text += '\n';
  for (const QuantityId quantity : sample.unsupported) {
    separate();
    Append(text, quantity);
  }
}

/// From three lines.
Status ReadMeasured(const std::string* lines, Sample& sample) {
  TRY(EachWord(lines[0], "value", [&sample](std::string_view word) {
    const auto value = ParseValue(word);
    if (value) sample.values.push_back(*value);
    return value.has_value();
  }));
  TRY(EachWord(lines[1], "process", [&sample](std::string_view word) {
    const auto process = ParseProcess(word);
    if (process) sample.processes.push_back(*process);
    return process.has_value();
  }));
  TRY(EachWord(lines[2], "quantity", [&sample](std::string_view word) {
    const auto quantity = ParseQuantity(word);
    if (quantity) sample.unsupported.push_back(*quantity);
    return quantity.has_value();
  }));
  return {};
}

void AppendRequested(const SampleRequest& request, std::string& text) {
  text += request.processes ? 'p' : '-';
  for (const QuantityId quantity : request.quantities) {
    text += ' ';
    Append(text, quantity);
  }
}

Result<SampleRequest> ReadRequested(std::string_view line) {
  if (line.empty() || (line.front() != 'p' && line.front() != '-') ||
      (line.size() > 1 && line[1] != ' '))
    return Error(Code::kInvalidArgument,
                 "a sample request must specify whether to include processes");
  SampleRequest request{.processes = line.front() == 'p'};
  line.remove_prefix(std::min<std::size_t>(2, line.size()));
  const auto read = EachWord(line, "quantity", [&request](std::string_view word) {
    const auto quantity = ParseQuantity(word);
    if (quantity) request.quantities.push_back(*quantity);
    return quantity.has_value();
  });
  if (!read.ok()) return Error(Code::kInvalidArgument, read.error().message());
  return request;
}

}  // namespace

std::string Encode(const Sample& sample) {
  std::string text;
  text.reserve(sample.values.size() * 16 + 64);
  AppendMeasured(sample, text);
  for (const Sample& part : sample.parts) {
    text += '\n' + part.address + '\n';
    AppendMeasured(part, text);
  }
  return text;
}

Result<Sample> DecodeSample(std::string_view body) {
  const auto lines = base::Split(body, '\n');
  if (lines.size() % (kSampleLines + 1) != kSampleLines)
    return Error(Code::kDataLoss,
                 "a sample must have three lines, and four for each part of its device, not " +
                     std::to_string(lines.size()));
  Sample sample;
  TRY(ReadMeasured(&lines[0], sample));
  for (std::size_t at = kSampleLines; at < lines.size(); at += kSampleLines + 1) {
    Sample& part = sample.parts.emplace_back();
    part.address = lines[at];
    TRY(ReadMeasured(&lines[at + 1], part));
  }
  return sample;
}

std::string Encode(const std::string& address, const SampleRequest& request) {
  std::string text = address + '\n';
  AppendRequested(request, text);
  for (const SampleRequest& part : request.parts) {
    text += '\n' + part.address + '\n';
    AppendRequested(part, text);
  }
  return text;
}

Result<std::pair<std::string, SampleRequest>> DecodeSampleRequest(std::string_view argument) {
  const auto lines = base::Split(argument, '\n');
  if (lines.size() < 2 || lines.size() % 2 != 0)
    return Error(Code::kInvalidArgument,
                 "a sample request must have an address and a line of quantities, also for each "
                 "part of its device");
  ASSIGN(SampleRequest request, ReadRequested(lines[1]));
  for (std::size_t at = 2; at < lines.size(); at += 2) {
    ASSIGN(SampleRequest part, ReadRequested(lines[at + 1]));
    part.address = lines[at];
    request.parts.push_back(std::move(part));
  }
  return std::pair(lines[0], std::move(request));
}

}  // namespace penstock::device::codec
