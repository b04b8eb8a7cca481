// Measures the calls of a function one by one, where not only the mean matters.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include <benchmark/benchmark.h>

namespace penstock::bench {

/// Times each call separately, so that slow calls show: counters "p50" and "p99", in microseconds.
class Calls {
 public:
  explicit Calls(benchmark::State& state) : state_(state) {}
  ~Calls() {
    std::sort(times_.begin(), times_.end());
    if (times_.empty()) return;
    state_.counters["p50"] = times_[times_.size() / 2];
    state_.counters["p99"] = times_[(times_.size() * 99 + 99) / 100 - 1];
  }
  template <typename Function>
  void Time(const Function& function) {
    const auto begin = std::chrono::steady_clock::now();
    function();
    times_.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
            .count());
  }

 private:
  benchmark::State& state_;
  std::vector<double> times_;
};

}  // namespace penstock::bench
