// Sums usage records by holder attributes and time. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/usage.h"
#include "base/core/result.h"
#include "node/usage/record.h"

namespace penstock::node::usage {

/// Adds records in the order in which they were written. A checkpoint of a holder contains
/// everything it had used until then, and so does its end record, so each line counts only with its
/// difference to the one before. The difference is spread evenly over its time if the query covers
/// only a part of it, and over days, which are those of UTC.
class Sums {
 public:
  explicit Sums(api::UsageQuery query) : query_(std::move(query)) {}

  void Add(const Record& record);

  /// Returns kResourceExhausted for more than kMaxRows rows; the query then needs other keys to
  /// sum by.
  base::Result<api::UsageReport> Finish();

  static constexpr std::size_t kMaxRows = 20'000;

 private:
  /// The difference of a line to the one before it.
  struct Step {
    double seconds = 0, measured = 0, busy = 0, energy = 0, cpu = 0;
  };
  struct Row {
    api::UsageSum sum;
    std::set<std::size_t> leases;  // hashes of lease ids
  };
  Step StepTo(const Record& record);
  void Spread(const Record& record, const Step& step);
  void AddTo(const Record& record, const Step& step, double part, base::WallTime day);

  const api::UsageQuery query_;
  std::map<std::string, Record> last_;  // of holders that continue
  std::map<std::vector<std::string>, Row> rows_;
  Row total_;
  bool too_many_ = false;
};

}  // namespace penstock::node::usage
