// Sums of records: who used how much in some time. Pure.
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

/// Takes records in the order in which they were written: checkpoints of a holder tell all that it had used till then, and so does its end,
/// so that each line counts for what came after the one before it. What a line tells is spread evenly over that time where only a part of
/// it is asked for, and over days, which are those of UTC.
class Sums {
 public:
  explicit Sums(api::UsageQuery query) : query_(std::move(query)) {}

  void Add(const Record& record);

  /// kResourceExhausted where there are more rows than anybody reads; then others by which to sum are needed.
  base::Result<api::UsageReport> Finish();

  static constexpr std::size_t kMostRows = 20'000;

 private:
  /// What a line tells beyond the one before it.
  struct Step {
    double seconds = 0, measured = 0, busy = 0, energy = 0, cpu = 0;
  };
  struct Row {
    api::UsageSum sum;
    std::set<std::size_t> leases;  // hashes
  };
  Step StepTo(const Record& record);
  void Spread(const Record& record, const Step& step);
  void AddTo(const Record& record, const Step& step, double part, base::WallTime day);

  const api::UsageQuery query_;
  std::map<std::string, Record> last_;  // of holders that go on
  std::map<std::vector<std::string>, Row> rows_;
  Row total_;
  bool too_many_ = false;
};

}  // namespace penstock::node::usage
