// Writes a page in Prometheus' text exposition format, version 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/), or in OpenMetrics 1.0
// (https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md).
//
// Penstock has its own implementation because Debian's prometheus-cpp takes some thirty times as
// long for the same series (bench/metrics_page.cc), does not support OpenMetrics, and escapes HELP
// wrongly.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/core/clock.h"
#include "node/metrics/page.h"

namespace penstock::node::metrics {

/// The text of labels between the braces. Escapes any value: bytes that are not UTF-8, for which a
/// scraper would refuse the whole page, and control characters become '?'; quotes, backslashes and
/// line feeds are escaped.
class LabelText {
 public:
  LabelText() = default;
  /// `text`: labels that are already formatted.
  explicit LabelText(std::string_view text) : text_(text) {}

  /// `name` must be a valid name (label_names.h makes them).
  LabelText& Add(std::string_view name, std::string_view value);

  const std::string& text() const { return text_; }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Writes a page, family by family. A family without samples is omitted, and no family occurs
/// twice.
class Exposition {
 public:
  enum class Type {
    kGauge,
    kCounter,
    kInfo,     ///< of OpenMetrics; in the text format a gauge
    kUnknown,  ///< of OpenMetrics; in the text format untyped
  };
  /// Whether a family belongs on the page.
  using Shown = std::function<bool(std::string_view name)>;

  explicit Exposition(PageFormat format, Shown shown = {})
      : format_(format), shown_(std::move(shown)) {}

  /// Reserves memory for a page of this size.
  void Reserve(std::size_t bytes) { text_.reserve(bytes); }

  /// Starts the family of the samples that follow; it must be one of api::MetricFamilies. Returns
  /// false if it is not shown: Add then does nothing until the next family.
  bool Family(std::string_view name);

  /// Starts any other family. Also returns false if the page already has a family of this name,
  /// which stays as it is. Name, help and unit must outlive the page. In OpenMetrics the name of a
  /// counter must end in "_total": otherwise the type becomes unknown, so that the name stays.
  bool Family(std::string_view name, Type type, std::string_view help, std::string_view unit = {});

  /// Omits values that are not finite. `labels` is the text of a LabelText, `more` the text of
  /// further labels.
  void Add(std::string_view labels, double value) { Add(labels, {}, value); }
  void Add(std::string_view labels, std::uint64_t value) { Add(labels, {}, value); }
  void Add(std::string_view labels, std::string_view more, double value);
  void Add(std::string_view labels, std::string_view more, std::uint64_t value);
  void Add(std::string_view labels, std::string_view more, bool value) {
    Add(labels, more, std::uint64_t{value});
  }

  /// Adds a value that is already formatted in another way than Add's: "%f", "%d" of dcgm-exporter.
  void AddWritten(std::string_view labels, std::string_view value) { Write(labels, {}, value); }
  void AddWritten(std::string_view labels, std::string_view more, std::string_view value) {
    Write(labels, more, value);
  }

  /// Returns the page and leaves the Exposition empty.
  std::string Take();

 private:
  void Announce();
  void Write(std::string_view labels, std::string_view more, std::string_view value);

  const PageFormat format_;
  const Shown shown_;
  std::string text_;
  std::string_view name_, help_, unit_;
  Type type_ = Type::kGauge;
  bool wanted_ = false, announced_ = false;
  std::unordered_set<std::string_view> names_;  // of families on the page
};

/// Seconds since 1970, the unit of times in metrics.
double UnixTime(base::WallTime time);

}  // namespace penstock::node::metrics
