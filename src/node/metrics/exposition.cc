// The two formats differ in types, in the escaping of HELP, in units and in the end of the page.
#include "node/metrics/exposition.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "api/metrics.h"
#include "base/core/strings.h"

namespace penstock::node::metrics {

namespace {

using Type = Exposition::Type;

/// Escapes backslash and line feed, and the quote if `quote`, as both formats require.
void AppendEscaped(std::string& text, std::string_view value, bool quote) {
  const bool utf8 = base::IsUtf8(value);
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      text += "\\\\";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '"' && quote) {
      text += "\\\"";
    } else {
      text += byte < 0x20 || byte == 0x7f || (!utf8 && byte >= 0x80) ? '?' : c;
    }
  }
}

/// Removes the ending, if the name has it.
std::string_view Without(std::string_view name, std::string_view ending) {
  return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
}

/// OpenMetrics' name of the family whose samples are named `name`.
std::string_view FamilyOf(std::string_view name, Type type) {
  return type == Type::kCounter ? Without(name, "_total")
         : type == Type::kInfo  ? Without(name, "_info")
                                : name;
}

std::string_view ToString(Type type, PageFormat format) {
  switch (type) {
    case Type::kCounter: return "counter";
    case Type::kInfo: return format == PageFormat::kText ? "gauge" : "info";
    case Type::kUnknown: return format == PageFormat::kText ? "untyped" : "unknown";
    case Type::kGauge: break;
  }
  return "gauge";
}

Type TypeOf(api::MetricType type) {
  return type == api::MetricType::kCounter ? Type::kCounter
         : type == api::MetricType::kInfo  ? Type::kInfo
                                           : Type::kGauge;
}

template <typename Number>
std::string_view Written(std::array<char, 32>& buffer, Number value) {
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), static_cast<std::size_t>(end - buffer.data())};
}

}  // namespace

std::string_view ContentTypeOf(PageFormat format) {
  return format == PageFormat::kText ? "text/plain; version=0.0.4; charset=utf-8"
                                     : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

double UnixTime(base::WallTime time) { return base::Seconds(time.time_since_epoch()); }

LabelText& LabelText::Add(std::string_view name, std::string_view value) {
  if (!text_.empty()) text_ += ',';
  text_.append(name).append("=\"");
  AppendEscaped(text_, value, true);
  text_ += '"';
  return *this;
}

bool Exposition::Family(std::string_view name) {
  const api::MetricFamily* family = api::FindMetricFamily(name);
  return Family(family->name, TypeOf(family->type), family->help, family->unit);
}

bool Exposition::Family(std::string_view name, Type type, std::string_view help,
                        std::string_view unit) {
  name_ = name;
  type_ = type == Type::kCounter && format_ == PageFormat::kOpenMetrics && !name.ends_with("_total")
              ? Type::kUnknown
              : type;
  help_ = help;
  unit_ = unit;
  announced_ = false;
  wanted_ = !names_.contains(name) && (!shown_ || shown_(name));
  return wanted_;
}

void Exposition::Announce() {
  announced_ = true;
  names_.insert(name_);
  const bool open_metrics = format_ == PageFormat::kOpenMetrics;
  const std::string_view family = open_metrics ? FamilyOf(name_, type_) : name_;
  text_.append("# HELP ").append(family).append(" ");
  AppendEscaped(text_, help_, open_metrics);
  text_.append("\n# TYPE ")
      .append(family)
      .append(" ")
      .append(ToString(type_, format_))
      .append("\n");
  if (open_metrics && !unit_.empty())
    text_.append("# UNIT ").append(family).append(" ").append(unit_).append("\n");
}

void Exposition::Write(std::string_view labels, std::string_view more, std::string_view value) {
  if (!wanted_) return;
  if (!announced_) Announce();
  text_.append(name_);
  if (!labels.empty() || !more.empty()) {
    text_.append(1, '{').append(labels);
    if (!labels.empty() && !more.empty()) text_ += ',';
    text_.append(more).append(1, '}');
  }
  text_.append(1, ' ').append(value).append(1, '\n');
}

void Exposition::Add(std::string_view labels, std::string_view more, double value) {
  if (!std::isfinite(value)) return;
  std::array<char, 32> buffer;
  Write(labels, more, Written(buffer, value));
}

void Exposition::Add(std::string_view labels, std::string_view more, std::uint64_t value) {
  std::array<char, 32> buffer;
  Write(labels, more, Written(buffer, value));
}

std::string Exposition::Take() {
  if (format_ == PageFormat::kOpenMetrics) text_ += "# EOF\n";
  names_.clear();
  wanted_ = false;
  return std::exchange(text_, {});
}

}  // namespace penstock::node::metrics
