// A simulated driver in the process of a worker, for unit tests in which agents are killed.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "node/change/testing/divisible_device.h"

namespace penstock::node::change::testing {

/// A call has its effect a callback later, and its answer comes another one later. Those that have
/// not had it yet are in `asked`, which outlives the agent, as the devices do.
class SlowDriver : public DivisibleDevices {
 public:
  using Asked = std::deque<std::function<void()>>;

  SlowDriver(std::vector<DivisibleDevice*> list, Asked& asked, base::Executor& executor)
      : DivisibleDevices(std::move(list)), asked_(asked), executor_(executor) {}

  void SetMode(const std::string& address, const std::string& mode, const std::string& value,
               Done<std::string> done) override {
    AskDevice(
        address,
        [=](DivisibleDevice& device, auto did) { device.SetMode(address, mode, value, did); },
        std::move(done));
  }
  void CreatePart(const std::string& address, const device::NewPart& part,
                  Done<std::string> done) override {
    AskDevice(
        address, [=](DivisibleDevice& device, auto did) { device.CreatePart(address, part, did); },
        std::move(done));
  }
  void DestroyPart(const std::string& address, Done<std::string> done) override {
    AskDevice(
        address, [=](DivisibleDevice& device, auto did) { device.DestroyPart(address, did); },
        std::move(done));
  }

  /// `call` has its effect when it calls back, or else it has none.
  void Ask(std::function<void(Done<std::string>)> call, Done<std::string> done) {
    auto result = std::make_shared<std::optional<base::Result<std::string>>>();
    asked_.emplace_back([call = std::move(call), result] {
      call([result](base::Result<std::string> answer) { *result = std::move(answer); });
    });
    executor_.Post([this, result, done = std::move(done)] {
      asked_.front()();
      asked_.pop_front();
      executor_.Post([result, done] { done(**result); });
    });
  }

 private:
  void AskDevice(const std::string& address,
                 std::function<void(DivisibleDevice&, Done<std::string>)> call,
                 Done<std::string> done) {
    DivisibleDevice* const device = Find(address);
    if (device == nullptr)
      return done(base::Error(base::Code::kNotFound, "no device or part " + address));
    Ask([device, call = std::move(call)](Done<std::string> did) { call(*device, std::move(did)); },
        std::move(done));
  }

  Asked& asked_;
  base::Executor& executor_;
};

}  // namespace penstock::node::change::testing
