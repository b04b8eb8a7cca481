// A line's time ends at `until` and is as long as its seconds, because the wall clock may have been
// set meanwhile.
#include "node/usage/sums.h"

#include <algorithm>
#include <functional>

namespace penstock::node::usage {
namespace {

using std::chrono::days;
using std::chrono::floor;

constexpr std::string_view kLabel = "label:";

std::string KeyOf(const Record& record) {
  return record.node + '\n' + record.lease + '\n' + record.device + '\n' +
         base::FormatTime(record.since);
}

base::WallTime::duration ToWall(double seconds) {
  return std::chrono::duration_cast<base::WallTime::duration>(
      std::chrono::duration<double>(seconds));
}

std::string ValueOf(const Record& record, const std::string& key, base::WallTime day) {
  if (key == "day") return base::FormatTime(day).substr(0, 10);
  if (key == "namespace") return record.namespace_name;
  if (key == "pod") return record.pod;
  if (key == "container") return record.container;
  if (key == "user") return record.user;
  if (key == "device") return record.device;
  if (key == "model") return record.model;
  if (key == "node") return record.node;
  if (key == "allocator" || key == "door") return record.allocator;  // "door" is 0.1.0's
  if (key == "lease") return record.lease;
  const auto label =
      key.starts_with(kLabel) ? record.labels.find(key.substr(kLabel.size())) : record.labels.end();
  return label == record.labels.end() ? "" : label->second;
}

}  // namespace

void Sums::Add(const Record& record) {
  const Step step = StepTo(record);
  if (step.seconds > 0 || step.energy > 0 || step.cpu > 0) Spread(record, step);
}

Sums::Step Sums::StepTo(const Record& record) {
  const std::string key = KeyOf(record);
  const auto before = last_.find(key);
  static const Record none;
  const Record& last = before == last_.end() ? none : before->second;
  const auto more = [](double now, double then) { return std::max(now - then, 0.0); };
  const Step step{.seconds = more(record.seconds, last.seconds),
                  .measured = more(record.measured_seconds, last.measured_seconds),
                  .busy = more(record.busy_seconds, last.busy_seconds),
                  .energy = more(record.energy_joules, last.energy_joules),
                  .cpu = more(record.cpu_seconds.value_or(0), last.cpu_seconds.value_or(0))};
  if (record.ended) {
    if (before != last_.end()) last_.erase(before);
  } else {
    last_.insert_or_assign(key, record);
  }
  return step;
}

void Sums::Spread(const Record& record, const Step& step) {
  const base::WallTime end = record.until, begin = end - ToWall(step.seconds);
  if (begin == end) {  // a step without duration
    if (end >= query_.since && end < query_.until) AddTo(record, step, 1, floor<days>(end));
    return;
  }
  const base::WallTime from = std::max(begin, query_.since), to = std::min(end, query_.until);
  const bool by_day = std::ranges::find(query_.by, "day") != query_.by.end();
  for (base::WallTime at = from; at < to;) {
    const base::WallTime day = floor<days>(at);
    const base::WallTime next = by_day ? std::min<base::WallTime>(to, day + days(1)) : to;
    AddTo(record, step, base::Seconds(next - at) / base::Seconds(end - begin), day);
    at = next;
  }
}

void Sums::AddTo(const Record& record, const Step& step, double part, base::WallTime day) {
  std::vector<std::string> values;
  for (const std::string& key : query_.by) values.push_back(ValueOf(record, key, day));
  if (rows_.size() >= kMaxRows && !rows_.contains(values)) {
    too_many_ = true;
    return;
  }
  const std::size_t lease = std::hash<std::string>()(record.node + '\n' + record.lease);
  for (Row* row : {&rows_[std::move(values)], &total_}) {
    row->leases.insert(lease);
    row->sum.device_seconds += part * step.seconds * record.slots / std::max(record.shares, 1);
    row->sum.measured_seconds += part * step.measured;
    row->sum.busy_seconds += part * step.busy;
    row->sum.energy_joules += part * step.energy;
    row->sum.cpu_seconds += part * step.cpu;
  }
}

base::Result<api::UsageReport> Sums::Finish() {
  if (too_many_)
    return base::Error(base::Code::kResourceExhausted,
                       "there are more than " + std::to_string(kMaxRows) +
                           " rows: request a shorter time, or group by fewer keys");
  api::UsageReport report{.query = query_};
  for (auto& [values, row] : rows_) {
    row.sum.holders = row.leases.size();
    report.rows.push_back({values, row.sum});
  }
  total_.sum.holders = total_.leases.size();
  report.total = total_.sum;
  return report;
}

}  // namespace penstock::node::usage
