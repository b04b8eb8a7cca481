// Reads, prints and checks single values of a configuration.
#include "api/config/value_forms.h"

#include <array>
#include <charconv>

namespace penstock::api::internal {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;

template <typename Target>
void Set(Target& target, std::optional<Target> value) {
  if (value) target = *std::move(value);
}

std::string Outside(const std::string& is, const std::string& least, const std::string& most) {
  return "is " + is + ", outside of " + least + " to " + most;
}

constexpr std::pair<std::string_view, Switch> kSwitches[] = {
    {"auto", Switch::kAuto}, {"on", Switch::kOn}, {"off", Switch::kOff}};

}  // namespace

std::string Quoted(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += {'\\', 'x', kHex[static_cast<unsigned char>(c) >> 4], kHex[c & 15]};
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string QuotedList(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  for (const std::string& item : items) quoted.push_back(Quoted(item));
  return "[" + base::Join(quoted, ", ") + "]";
}

std::vector<std::string> ReadSelectors(MapReader& reader, Problems& problems) {
  std::vector<std::string> selectors;
  const Value* list = reader.List("devices");
  if (list == nullptr) return selectors;
  for (const Value& item : *list->list) {
    const bool index = item.kind == Value::Kind::kInt && item.integer >= 0;
    if (index || (item.kind == Value::Kind::kString && !item.text.empty())) {
      selectors.push_back(index ? std::to_string(item.integer) : item.text);
    } else {
      problems.Add(item.mark, reader.Path("devices") +
                                  ": an item must be a device's id, its index, or a glob over the "
                                  "model such as \"*A100*\"");
    }
  }
  if (list->list->empty())
    reader.Problem("devices", "is empty; leave the key out to mean all devices");
  return selectors;
}

void Plain::Read(MapReader& reader, std::string_view key, Problems&, std::string& target) const {
  Set(target, reader.String(key));
}

void Plain::Read(MapReader& reader, std::string_view key, Problems&,
                 std::vector<std::string>& target) const {
  Set(target, reader.Strings(key));
}

void Plain::Read(MapReader& reader, std::string_view key, Problems&, bool& target) const {
  Set(target, reader.Bool(key));
}

void Plain::Read(MapReader& reader, std::string_view key, Problems&, Switch& target) const {
  const Value* value = reader.Any(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return;
  if (value->kind == Value::Kind::kBool) {
    target = value->boolean ? Switch::kOn : Switch::kOff;
  } else if (value->kind != Value::Kind::kString ||
             !Translate<Switch>(kSwitches, value->text, target)) {
    reader.Problem(key, (value->text.empty() ? std::string(Describe(value->kind))
                                             : "\"" + value->text + "\"") +
                            " is none of auto, on, off");
  }
}

std::string Plain::Text(Switch value) const {
  return " " + std::string(WordFor<Switch>(kSwitches, value)) + "\n";
}

std::string AbsolutePath::Problem(const std::string& path) const {
  if (path.empty()) return may_be_empty ? "" : "must not be empty";
  if (path.front() != '/') return "\"" + path + "\" must be an absolute path";
  return path.find('\0') != std::string::npos ? "has a zero byte in it" : "";
}

void Time::Read(MapReader& reader, std::string_view key, Problems&, base::Duration& target) const {
  Set(target, reader.Time(key, least, most));
}

// Exact, unlike base::FormatDuration, which rounds for readers.
std::string Time::Text(base::Duration duration) const {
  const auto nanoseconds = duration.count();
  if (nanoseconds % 1'000'000'000 == 0)
    return " " + std::to_string(nanoseconds / 1'000'000'000) + "s\n";
  if (nanoseconds % 1'000'000 == 0) return " " + std::to_string(nanoseconds / 1'000'000) + "ms\n";
  return " " + std::to_string(nanoseconds) + "ns\n";
}

std::string Time::Problem(base::Duration duration) const {
  return duration >= least && duration <= most
             ? ""
             : Outside(base::FormatDuration(duration), base::FormatDuration(least),
                       base::FormatDuration(most));
}

void Size::Read(MapReader& reader, std::string_view key, Problems&, base::Bytes& target) const {
  Set(target, reader.Size(key));
}

std::string Size::Text(base::Bytes bytes) const {
  const std::uint64_t count = bytes.count;
  if (count % (1u << 20) == 0) return " " + std::to_string(count >> 20) + "Mi\n";
  if (count % (1u << 10) == 0) return " " + std::to_string(count >> 10) + "Ki\n";
  return " " + std::to_string(count) + "\n";
}

std::string Size::Problem(base::Bytes bytes) const {
  return bytes >= least && bytes <= most
             ? ""
             : Outside(base::FormatBytes(bytes), base::FormatBytes(least), base::FormatBytes(most));
}

void Numeric::Read(MapReader& reader, std::string_view key, Problems&, int& target) const {
  target = static_cast<int>(reader.Int(key, least, most).value_or(target));
}

void Numeric::Read(MapReader& reader, std::string_view key, Problems&, double& target) const {
  Set(target, reader.Number(key, static_cast<double>(least), static_cast<double>(most)));
}

std::string Numeric::Text(double number) const {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return " " + std::string(digits.data(), end) + "\n";
}

}  // namespace penstock::api::internal
