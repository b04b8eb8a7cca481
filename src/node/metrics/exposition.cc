// Prometheus' text exposition format. Knows no metric.
#include "node/metrics/exposition.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/core/strings.h"

namespace penstock::node::metrics {

namespace {

/// Escapes as the format wants it: backslash and line feed, in labels the quote too.
void AppendEscaped(std::string& text, std::string_view value, bool quote, bool utf8) {
  for (const char c : value) {
    if (c == '\\') {
      text += "\\\\";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '"' && quote) {
      text += "\\\"";
    } else {
      text += utf8 || static_cast<unsigned char>(c) < 0x80 ? c : '?';
    }
  }
}

template <typename Number>
void AppendNumber(std::string& text, Number value) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  text.append(buffer.data(), end);
}

}  // namespace

std::string_view ContentTypeOf(Format format) {
  return format == Format::kText ? "text/plain; version=0.0.4; charset=utf-8"
                                 : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

Labels& Labels::Add(std::string_view name, std::string_view value) {
  if (!text_.empty()) text_ += ',';
  text_.append(name).append("=\"");
  AppendEscaped(text_, value, true, base::IsUtf8(value));
  text_ += '"';
  return *this;
}

void Exposition::Family(std::string_view name, Type type, std::string_view help) {
  name_ = name;
  type_ = type;
  help_ = help;
  announced_ = false;
}

void Exposition::Begin(const Labels& labels) {
  if (!announced_) {
    text_.append("# HELP ").append(name_).append(" ");
    AppendEscaped(text_, help_, false, true);
    text_.append("\n# TYPE ").append(name_).append(type_ == Type::kCounter ? " counter\n" : " gauge\n");
    announced_ = true;
  }
  text_.append(name_);
  if (!labels.text().empty()) text_.append("{").append(labels.text()).append("}");
  text_ += ' ';
}

void Exposition::Add(const Labels& labels, double value) {
  if (!std::isfinite(value)) return;
  Begin(labels);
  AppendNumber(text_, value);
  text_ += '\n';
}

void Exposition::Add(const Labels& labels, std::uint64_t value) {
  Begin(labels);
  AppendNumber(text_, value);
  text_ += '\n';
}

}  // namespace penstock::node::metrics
