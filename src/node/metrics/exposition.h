// Writes a page in Prometheus' text exposition format, version 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/), or in
// OpenMetrics 1.0 (https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md).
//
// Written here on purpose: Debian's prometheus-cpp takes some thirty times as long for the same series (bench/metrics_page.cc), knows no
// OpenMetrics, and escapes HELP wrongly.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/core/clock.h"
#include "node/metrics/page.h"

namespace penstock::node::metrics {

/// Labels as they stand between the braces. Whatever a value has in it, it stays one value: what is not UTF-8, for which a scraper would
/// refuse the whole page, and control characters become '?', quotes, backslashes and line feeds are escaped.
class Labels {
 public:
  Labels() = default;
  explicit Labels(std::string_view text) : text_(text) {}  ///< of labels that are there already

  /// `name` is a valid name (label_names.h makes them).
  Labels& Add(std::string_view name, std::string_view value);

  const std::string& text() const { return text_; }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Writes a page, family by family. A family without samples leaves no trace, and none is there twice.
class Exposition {
 public:
  enum class Type {
    kGauge,
    kCounter,
    kInfo,     ///< OpenMetrics': elsewhere a gauge
    kUnknown,  ///< likewise: untyped
  };
  /// Whether a family is wanted on the page.
  using Shown = std::function<bool(std::string_view name)>;

  explicit Exposition(Format format, Shown shown = {}) : format_(format), shown_(std::move(shown)) {}

  /// So many bytes will be needed.
  void Reserve(std::size_t bytes) { text_.reserve(bytes); }

  /// What the samples that follow belong to; one of api::MetricFamilies. False: it is not wanted, and Add does nothing until the next.
  bool Family(std::string_view name);

  /// The same of any other family. False also where the page has one of this name, which then stays as it is. Name, help and unit must
  /// outlive the page. In OpenMetrics a counter's name has to end in "_total": where it does not, the type is unknown, so that the name
  /// stays.
  bool Family(std::string_view name, Type type, std::string_view help, std::string_view unit = {});

  /// Not a number and infinite are left out. `labels` is the text of Labels, `more` that of those that follow.
  void Add(std::string_view labels, double value) { Add(labels, {}, value); }
  void Add(std::string_view labels, std::uint64_t value) { Add(labels, {}, value); }
  void Add(std::string_view labels, std::string_view more, double value);
  void Add(std::string_view labels, std::string_view more, std::uint64_t value);
  void Add(std::string_view labels, std::string_view more, bool value) { Add(labels, more, std::uint64_t{value}); }

  /// The value as it is written, where others than we say how: "%f", "%d" of dcgm-exporter.
  void AddWritten(std::string_view labels, std::string_view value) { Write(labels, {}, value); }

  /// The page; the Exposition is empty then.
  std::string Take();

 private:
  void Announce();
  void Write(std::string_view labels, std::string_view more, std::string_view value);

  const Format format_;
  const Shown shown_;
  std::string text_;
  std::string_view name_, help_, unit_;
  Type type_ = Type::kGauge;
  bool wanted_ = false, announced_ = false;
  std::unordered_set<std::string_view> names_;  // of families that are there
};

/// Seconds since 1970, as metrics have times.
double UnixTime(base::WallTime time);

}  // namespace penstock::node::metrics
