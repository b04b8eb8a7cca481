// Indices are those of CDI names, which AMD's tools and Penstock number alike: over all devices
// that programs see, partitions included.
#include "hook/runtime/amd/request.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/core/strings.h"

namespace penstock::hook::runtime {
namespace {

constexpr std::string_view kKind = "amd.com/gpu=";
constexpr std::string_view kHex = "0x";
/// More than the minors that DRM has for render nodes.
constexpr std::uint64_t kMaxIndex = 1023;
constexpr std::size_t kMaxWords = 1024, kIdDigits = 16;

/// "0xE3AA1C5BD7B5F051" → "GPU-e3aa1c5bd7b5f051".
std::optional<std::string> ReadId(std::string_view word) {
  if (!word.starts_with(kHex) && !word.starts_with("0X")) return std::nullopt;
  word.remove_prefix(kHex.size());
  std::uint64_t id = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), id, 16);
  if (word.empty() || read.ec != std::errc() || read.ptr != word.data() + word.size())
    return std::nullopt;
  char digits[kIdDigits] = {};
  const auto written = std::to_chars(std::begin(digits), std::end(digits), id, 16);
  const std::string text(std::begin(digits), written.ptr);
  return "GPU-" + std::string(kIdDigits - text.size(), '0') + text;
}

/// "3" → 3 to 3; "0-3" → 0 to 3.
std::optional<std::pair<std::uint64_t, std::uint64_t>> ReadRange(std::string_view word) {
  const auto dash = word.find('-');
  const auto first = base::ParseUint(word.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : base::ParseUint(word.substr(dash + 1));
  if (!first || !last || *first > *last || *last > kMaxIndex) return std::nullopt;
  return std::pair(*first, *last);
}

Error NoDevice(std::string_view word) {
  return {Code::kInvalidArgument,
          std::string(kAmdVisibleDevices) + " requests " + Shown(word) +
              ", which is not a device: name indices (0), ranges of them (0-3), unique ids of GPUs "
              "(0xe3aa1c5bd7b5f051), or all"};
}

/// Adds a name once; of few.
void Add(std::string name, std::vector<std::string>& names) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
}

}  // namespace

bool RequestsNothing(const RuntimeFacts& facts) {
  const std::string_view value = base::Trim(facts.Get(kAmdVisibleDevices));
  return value.empty() || value == "void" || value == "none";
}

base::Result<AmdRequest> ReadAmdRequest(const RuntimeFacts& facts) {
  AmdRequest request;
  if (RequestsNothing(facts)) return request;
  const std::string_view value = base::Trim(facts.Get(kAmdVisibleDevices));
  if (value == "all" || value == "All" || value == "ALL") {
    request.devices = {std::string(kKind) + "all"};
    return request;
  }
  const auto words = base::Split(value, ',');
  if (words.size() > kMaxWords)
    return Error(Code::kResourceExhausted, std::string(kAmdVisibleDevices) + " has more than " +
                                               std::to_string(kMaxWords) +
                                               " words; use all, or ranges");
  std::vector<bool> has(kMaxIndex + 1);
  for (const std::string& part : words) {
    const std::string_view word = base::Trim(part);
    if (auto id = ReadId(word)) {
      Add(*std::move(id), request.ids);
    } else if (const auto range = ReadRange(word)) {
      for (std::uint64_t index = range->first; index <= range->second; ++index)
        if (!has[index]) {
          has[index] = true;
          request.devices.push_back(std::string(kKind) + std::to_string(index));
        }
    } else {
      return NoDevice(word);
    }
  }
  return request;
}

base::Result<std::vector<std::string>> ResolveAmd(
    const AmdRequest& request, std::span<const api::cdi::Registry::Listed> known) {
  std::vector<std::string> names = request.devices;
  for (const std::string& id : request.ids) {
    const std::string whole = std::string(kKind) + id;
    const std::size_t before = names.size();
    for (const auto& one : known)
      if (one.name.starts_with(whole + "-")) Add(one.name, names);
    // Whoever wrote the specification may name a GPU that is divided, its partitions, or both.
    if (names.size() == before)
      for (const auto& one : known)
        if (one.name == whole) Add(one.name, names);
    if (names.size() == before)
      return Error(Code::kNotFound, std::string(kAmdVisibleDevices) + " requests the GPU " + id +
                                        ", which no CDI specification names");
  }
  return names;
}

}  // namespace penstock::hook::runtime
