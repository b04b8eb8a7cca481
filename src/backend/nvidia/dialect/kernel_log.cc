// A hand-written parser: one pass, and no allocation until a line is known to be relevant.
#include "backend/nvidia/dialect/kernel_log.h"

#include <algorithm>
#include <string>

#include "backend/nvidia/dialect/kinds.h"
#include "backend/nvidia/dialect/mig_profile.h"
#include "base/core/strings.h"
#include "device/kinds.h"

namespace penstock::backend::nvidia {
namespace {

using device::Evidence;
using device::EvidenceSource;
using device::PciAddress;

constexpr std::size_t kMaxText = 512;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// The unread rest of a text.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return rest_; }

  bool Skip(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }

  std::string_view Digits() { return While(IsDigit); }

  template <typename F>
  std::string_view While(F accept) {
    const auto end = std::ranges::find_if_not(rest_, accept);
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  /// Parses "0000:07:00" or "0000:07:00.0".
  std::optional<PciAddress> Address() {
    const auto hex = [](char c) {
      return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':';
    };
    std::string text(While(hex));
    // A dot before anything but a digit ends a sentence.
    if (rest_.size() > 1 && rest_[0] == '.' && IsDigit(rest_[1])) {
      text += rest_.substr(0, 2);
      rest_.remove_prefix(2);
    }
    while (text.ends_with(':')) text.pop_back();
    return device::ParsePciAddress(text);
  }

 private:
  std::string_view rest_;
};

/// Removes "6,1234,5678,-;" of /dev/kmsg or "[   12.345678] " of dmesg. The rest must begin with a
/// known prefix: the middle of a line may be a program's own text.
std::string_view WithoutPrefix(std::string_view line) {
  if (!line.empty() && IsDigit(line.front())) {
    const auto end = line.find(';');
    if (end != std::string_view::npos) line.remove_prefix(end + 1);
  } else if (line.starts_with('[')) {
    const auto end = line.find("] ");
    if (end != std::string_view::npos) line.remove_prefix(end + 2);
  }
  return line;
}

Evidence Found(std::string_view kind, const PciAddress& pci, std::int64_t code,
               std::string_view text) {
  Evidence evidence;
  evidence.source = EvidenceSource::kKernelLog;
  evidence.pci = pci;
  evidence.kind = kind;
  evidence.code = code;
  evidence.text = base::Trim(text.substr(0, kMaxText));
  return evidence;
}

/// "): 79, text" with the text to be kept.
std::optional<std::int64_t> Number(Cursor& cursor) {
  if (!cursor.Skip("): ")) return std::nullopt;
  const std::string_view digits = cursor.Digits();
  if (digits.empty() || digits.size() > 9) return std::nullopt;
  if (!cursor.rest().empty() && !cursor.Skip(",")) return std::nullopt;
  return base::ParseInt(digits);
}

/// " GPU-I:05" and " GPU-CI:02": the MIG instances.
struct Instances {
  std::string words;  ///< for the end of the text
  std::string part;   ///< see Evidence::part
};
std::optional<Instances> ReadInstances(Cursor& cursor) {
  std::optional<std::uint64_t> numbers[2];
  Instances instances;
  for (const int level : {0, 1}) {
    if (!cursor.Skip(level == 0 ? " GPU-I:" : " GPU-CI:")) continue;
    const auto id = numbers[level] = base::ParseUint(cursor.Digits());
    if (!id) return std::nullopt;
    instances.words += (instances.words.empty() ? "" : ", ") +
                       std::string(level == 0 ? "GPU instance " : "compute instance ") +
                       std::to_string(*id);
  }
  if (numbers[0]) instances.part = PartName(*numbers[0], numbers[1]);
  return instances;
}

/// After "NVRM: Xid (".
std::optional<Evidence> ParseXid(Cursor cursor) {
  cursor.Skip("PCI:");
  const auto pci = cursor.Address();
  if (!pci) return std::nullopt;
  const auto instances = ReadInstances(cursor);
  const auto number = Number(cursor);
  if (!instances || !number) return std::nullopt;
  Evidence evidence = Found(kXid, *pci, *number, cursor.rest());
  evidence.part = instances->part;
  if (!instances->words.empty()) evidence.text += " (" + instances->words + ")";
  return evidence;
}

/// After "nvidia-nvswitch": "2: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 61".
std::optional<Evidence> ParseSxid(Cursor cursor) {
  cursor.Digits();
  if (!cursor.Skip(": SXid (")) return std::nullopt;
  cursor.Skip("PCI:");
  const auto pci = cursor.Address();
  const auto number = pci ? Number(cursor) : std::nullopt;
  if (!number) return std::nullopt;
  return Found(kSxid, *pci, *number, cursor.rest());
}

/// After "GPU " or "The NVIDIA GPU ": an address, and somewhere behind it that the GPU is off the
/// bus. At probe the kernel writes the sentence over several lines of one record.
std::optional<Evidence> ParseLost(Cursor cursor) {
  const auto pci = cursor.Address();
  if (!pci || cursor.rest().find("fallen off the bus") == std::string_view::npos)
    return std::nullopt;
  return Found(kLost, *pci, 0, "GPU has fallen off the bus");
}

}  // namespace

std::optional<Evidence> ParseKernelLine(std::string_view line) {
  Cursor cursor(WithoutPrefix(line));
  if (cursor.Skip("nvidia-nvswitch")) return ParseSxid(cursor);
  if (!cursor.Skip("NVRM: ")) return std::nullopt;
  if (cursor.Skip("Xid (")) return ParseXid(cursor);
  if (cursor.rest().starts_with("loading NVIDIA UNIX "))
    return Evidence{.source = EvidenceSource::kKernelLog,
                    .kind = std::string(device::kDriverLoaded)};
  if (cursor.Skip("GPU ") || cursor.Skip("The NVIDIA GPU ")) return ParseLost(cursor);
  return std::nullopt;
}

}  // namespace penstock::backend::nvidia
