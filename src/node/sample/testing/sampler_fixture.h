// Test fixture of this folder: a sampler over a scripted backend, with a manual clock.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "node/sample/sampler.h"

namespace penstock::node::sample::testing {

using device::QuantityId;
using namespace std::chrono_literals;

enum : QuantityId { kUtilization, kMemoryUsed, kPower, kEnergy, kErrors, kClockMost, kLinkBytes };

/// Returns the values that the test sets, through the executor, as a worker does.
class ScriptedBackend final : public device::AsyncBackend {
 public:
  struct Asked {
    std::string address;
    device::SampleRequest request;
    base::TimePoint at;
  };

  explicit ScriptedBackend(base::Executor& executor) : executor_(executor) {}

  void TakeSample(const std::string& address, const device::SampleRequest& request,
                  Done<device::Sample> done) override {
    asked.push_back({address, request, executor_.clock().Now()});
    most_at_once = std::max(most_at_once, ++at_once);
    const auto answer = [this, done = std::move(done), address, request] {
      --at_once;
      done(Answer(address, request));
    };
    const auto late = takes.find(address);
    late == takes.end() ? executor_.Post(answer) : void(executor_.PostAfter(late->second, answer));
  }
  base::Result<device::Sample> Answer(const std::string& address,
                                      const device::SampleRequest& request) const {
    if (const auto failure = failures.find(address); failure != failures.end())
      return failure->second;
    device::Sample sample;
    for (const QuantityId id : request.quantities)
      if (const auto value = values.find(id); value != values.end())
        sample.values.push_back({id, -1, value->second});
    sample.values.insert(sample.values.end(), unasked.begin(), unasked.end());
    for (const QuantityId id : request.quantities)
      if (std::find(unsupported.begin(), unsupported.end(), id) != unsupported.end())
        sample.unsupported.push_back(id);
    if (request.processes) sample.processes = processes;
    for (const device::SampleRequest& part : request.parts)
      if (together.contains(part.address)) {
        sample.parts.push_back(*Answer(part.address, part));
        sample.parts.back().address = part.address;
      }
    return sample;
  }
  /// Returns and clears the requests sent to one device so far.
  std::vector<Asked> Take(const std::string& address) {
    std::vector<Asked> taken;
    for (const Asked& one : asked)
      if (one.address == address) taken.push_back(one);
    std::erase_if(asked, [&](const Asked& one) { return one.address == address; });
    return taken;
  }

  void Open(Done<device::Driver>) override {}
  void List(Done<std::vector<std::string>>) override {}
  void Describe(const std::string&, Done<device::Facts>) override {}
  void Read(const std::string&, Done<device::Reading>) override {}
  void Stop() override {}
  int abandoned() const override { return abandoned_; }
  void Listen(Events) override {}

  std::map<QuantityId, device::Number> values{{kUtilization, std::uint64_t{40}},
                                              {kMemoryUsed, std::uint64_t{512}},
                                              {kEnergy, std::uint64_t{1000}},
                                              {kErrors, std::uint64_t{0}},
                                              {kClockMost, std::uint64_t{1980}}};
  std::vector<device::SampleValue> unasked;  // in every answer
  std::vector<QuantityId> unsupported;
  std::vector<device::ProcessSample> processes;
  std::map<std::string, base::Error> failures;
  std::map<std::string, base::Duration> takes;
  std::set<std::string> together;  // addresses of parts that are measured with their device
  std::vector<Asked> asked;
  int at_once = 0, most_at_once = 0, abandoned_ = 0;

 private:
  base::Executor& executor_;
};

class SamplerTest : public ::testing::Test {
 protected:
  SamplerTest() { SetDevices({"A", "B"}); }

  void SetDevices(const std::vector<std::string>& ids) {
    std::vector<device::Facts> facts;
    for (const std::string& id : ids) {
      device::Facts one;
      one.id = id;
      one.vendor = "acme";
      one.address = "at-" + id;
      one.index = static_cast<int>(facts.size());
      one.memory = base::Mebibytes(1024);
      one.architecture = architecture_;
      facts.push_back(one);
    }
    inventory_.SetFacts("acme", facts, "unplugged", executor_.clock().Wall());
  }

  /// A, with two parts, and B.
  void SetParts() {
    const auto made = [this](const std::string& id, const std::string& parent) {
      device::Facts facts;
      facts.id = id;
      facts.vendor = "acme";
      facts.address = "at-" + id;
      facts.memory = base::Mebibytes(parent.empty() ? 1024 : 512);
      facts.parent = parent;
      facts.number = parent.empty() ? "" : id.substr(id.size() - 1);
      facts.architecture = architecture_;
      return facts;
    };
    inventory_.SetFacts("acme", {made("A", ""), made("A0", "A"), made("A1", "A"), made("B", "")},
                        "unplugged", executor_.clock().Wall());
  }

  void Start(Sampler::Options options = {.interval = 10s}) {
    sampler_.Configure(std::move(options));
    executor_.RunUntilIdle();
  }
  void StartAndAdvance(base::Duration time) {
    Start();
    executor_.Advance(time);
  }
  std::shared_ptr<const Snapshot> Get() const { return sampler_.published().Get(); }
  std::shared_ptr<const DeviceSample> Of(const std::string& id) const {
    const auto found = Get()->devices.find(id);
    return found == Get()->devices.end() ? nullptr : found->second;
  }
  std::optional<double> Value(const std::string& id, QuantityId quantity) const {
    const auto device = Of(id);
    const Latest* latest = device ? device->Find(quantity) : nullptr;
    return latest ? std::optional(device::ToDouble(latest->value.number)) : std::nullopt;
  }
  std::uint64_t Rejections(const std::string& key, const std::string& why) const {
    std::uint64_t count = 0;
    for (const Rejected& one : Get()->rejected)
      if (one.key == key && one.why == why) count += one.count;
    return count;
  }
  /// Advances the clock by `time` and returns when the device was asked, in seconds from the start.
  std::vector<double> TimesOver(const std::string& address, base::Duration time) {
    backend_.asked.clear();
    const auto from = executor_.clock().Now();
    executor_.Advance(time);
    std::vector<double> times;
    for (const auto& one : backend_.Take(address))
      times.push_back(std::chrono::duration<double>(one.at - from).count());
    return times;
  }

  std::string architecture_ = "one";
  base::ManualExecutor executor_;
  device::testing::AcmeDialect dialect_;
  ScriptedBackend backend_{executor_};
  inventory::Inventory inventory_;
  std::optional<std::uint64_t> session_ = 1;
  std::vector<std::string> differ_;
  Sampler sampler_{executor_,
                   inventory_,
                   {{&dialect_, &backend_, [this] { return session_; }}},
                   {.processes_differ = [this](const std::string&, const std::string& device) {
                     differ_.push_back(device);
                   }}};
  base::Subscription on_inventory_ = inventory_.published().Subscribe(
      [this](const auto&) { executor_.Post([this] { sampler_.DevicesChanged(); }); });
};

}  // namespace penstock::node::sample::testing
