#include "node/change/layout_answer.h"

#include <algorithm>
#include <utility>

namespace penstock::node::change {

void LayoutAnswer::Begin(Caller caller) {
  caller_ = std::move(caller);
  reported_.clear();
}

void LayoutAnswer::End(base::Result<std::vector<DeviceDivision>> answer) {
  if (!caller_) return;
  const Done done = std::move(caller_->done);
  caller_.reset();
  if (done) done(std::move(answer));
}

void LayoutAnswer::Report(const LayoutState& state, const std::string& problem,
                          base::TimePoint now) {
  if (caller_) ReportDevices(state.devices);
  if (caller_ && state.state != "pending") AnswerNow(state, problem, now);
}

void LayoutAnswer::ReportDevices(const std::vector<DeviceDivision>& devices) {
  for (const DeviceDivision& one : devices) {
    DeviceDivision& reported = reported_[one.device];
    if (reported == one) continue;
    reported = one;
    if (one.state != "unselected" && caller_->progress) caller_->progress(one);
    if (!caller_) return;
  }
}

void LayoutAnswer::AnswerNow(const LayoutState& state, const std::string& problem,
                             base::TimePoint now) {
  if (state.state == "success") return End(state.devices);
  const bool held = problem.empty() && std::ranges::all_of(state.devices, [](const auto& one) {
                      return IsGood(one) || one.state == "waiting";
                    });
  if (!held) return End(base::Error(base::Code::kAborted, state.reason));
  if (!caller_->waits)  // the holder came after the request
    return End(base::Error(base::Code::kFailedPrecondition, state.reason));
  if (caller_->until && *caller_->until <= now)
    End(base::Error(base::Code::kDeadlineExceeded, state.reason));
}

}  // namespace penstock::node::change
