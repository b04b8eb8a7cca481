// Tests asking a driver once for its devices.
#include "app/penstock/common/probe_devices.h"

#include <deque>
#include <map>
#include <optional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/testing/must.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A backend that returns scripted results, one per call. After a lost connection it must be opened
/// again.
class Scripted final : public device::AsyncBackend {
 public:
  std::vector<base::Result<device::Driver>> opens{
      device::Driver{.version = "550.54.15"}};  ///< the last one repeats
  base::Result<std::vector<std::string>> list{std::vector<std::string>{"0", "1", "2"}};
  std::map<std::string, Error> errors;
  std::map<std::string, std::vector<std::string>> parts;  ///< of each device, once described
  int opened = 0;

  void Open(Done<device::Driver> done) override {
    const auto& answer =
        opens[std::min<std::size_t>(static_cast<std::size_t>(opened++), opens.size() - 1)];
    connected_ = answer.ok();
    known_.clear();
    later_.push_back([done = std::move(done), answer] { done(answer); });
  }
  void List(Done<std::vector<std::string>> done) override {
    later_.push_back([done = std::move(done), this] { done(list); });
  }
  void Describe(const std::string& address, Done<device::Facts> done) override {
    base::Result<device::Facts> answer =
        device::Facts{.id = "GPU-" + address, .address = address, .parts = parts[address]};
    if (address.find('/') != std::string::npos && !known_.contains(address))
      answer = Error(Code::kNotFound, "no GPU has the part " + address);
    if (const auto error = errors.find(address); error != errors.end()) answer = error->second;
    if (!connected_) answer = Error(Code::kUnavailable, "no worker holds the driver");
    if (!answer.ok() && answer.error().code() == Code::kDeadlineExceeded) connected_ = false;
    if (answer.ok()) known_.insert(parts[address].begin(), parts[address].end());
    later_.push_back([done = std::move(done), answer] { done(answer); });
  }
  void Read(const std::string&, Done<device::Reading>) override {}
  void TakeSample(const std::string&, const device::SampleRequest&, Done<device::Sample>) override {
  }
  void Stop() override {}
  int abandoned() const override { return 0; }
  void Listen(Events) override {}

  base::Result<Seen> Look() {
    std::optional<base::Result<Seen>> seen;
    ProbeOnce(*this, [&](base::Result<Seen> answer) { seen = std::move(answer); });
    while (!later_.empty()) {
      const auto next = std::move(later_.front());
      later_.pop_front();
      next();
    }
    return seen.value_or(Error(Code::kInternal, "no answer"));
  }

 private:
  bool connected_ = false;
  std::set<std::string> known_;  // parts of what was described since it was opened
  std::deque<std::function<void()>> later_;
};

std::vector<std::string> Ids(const Seen& seen) {
  std::vector<std::string> ids;
  for (const device::Facts& facts : seen.devices) ids.push_back(facts.id);
  return ids;
}

TEST(LookOnce, FindsTheDriverAndAllOfItsDevices) {
  Scripted backend;
  const auto seen = Must(backend.Look());
  EXPECT_EQ(seen.driver.version, "550.54.15");
  EXPECT_THAT(Ids(seen), ElementsAre("GPU-0", "GPU-1", "GPU-2"));
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_EQ(backend.opened, 1);
}

TEST(LookOnce, ADeviceThatDoesNotAnswerIsLeftOutAndReported) {
  Scripted backend;
  backend.errors.insert({"1", Error(Code::kDataLoss, "GPU 1 has fallen off the bus")});
  const auto seen = Must(backend.Look());
  EXPECT_THAT(Ids(seen), ElementsAre("GPU-0", "GPU-2"));
  EXPECT_THAT(seen.problems, ElementsAre("device 1 was skipped: GPU 1 has fallen off the bus"));
  EXPECT_EQ(backend.opened, 1) << "the connection is well";
}

TEST(LookOnce, ADeviceThatHangsCostsTheConnectionAndNotTheOtherDevices) {
  Scripted backend;
  backend.errors.insert({"0", Error(Code::kDeadlineExceeded, "describe 0 took longer than 5s")});
  const auto seen = Must(backend.Look());
  EXPECT_THAT(Ids(seen), ElementsAre("GPU-1", "GPU-2"));
  EXPECT_THAT(seen.problems, ElementsAre(HasSubstr("device 0 was skipped")));
  EXPECT_EQ(backend.opened, 2);
}

TEST(LookOnce, ADeviceThatHangsCostsNoPartOfTheOthers) {
  Scripted backend;
  backend.parts = {{"0", {"0/1", "0/2"}}, {"2", {"2/1"}}};
  backend.errors.insert({"1", Error(Code::kDeadlineExceeded, "describe 1 took longer than 5s")});
  const auto seen = Must(backend.Look());
  EXPECT_THAT(Ids(seen), ElementsAre("GPU-0", "GPU-0/1", "GPU-0/2", "GPU-2", "GPU-2/1"));
  EXPECT_THAT(seen.problems, ElementsAre(HasSubstr("device 1 was skipped")));
  EXPECT_EQ(backend.opened, 2);
}

TEST(LookOnce, APartThatHangsCostsOnlyPartsOfItsDevice) {
  Scripted backend;
  backend.parts = {{"0", {"0/1", "0/2"}}, {"1", {"1/1"}}};
  backend.errors.insert({"0/1", Error(Code::kDeadlineExceeded, "took long")});
  const auto seen = Must(backend.Look());
  EXPECT_THAT(Ids(seen), ElementsAre("GPU-0", "GPU-1", "GPU-1/1", "GPU-2"));
  EXPECT_THAT(seen.problems, ElementsAre(HasSubstr("0/1"), HasSubstr("no GPU has the part 0/2")));
  EXPECT_EQ(backend.opened, 2) << "the connection that does not know a part is well";
}

TEST(LookOnce, WithoutADriverItSaysWhatTheBackendSays) {
  Scripted backend;
  backend.opens = {Error(Code::kNotFound, "there is no libnvidia-ml.so.1")};
  EXPECT_EQ(backend.Look().error().message(), "there is no libnvidia-ml.so.1");
  backend = Scripted();
  backend.list = Error(Code::kUnavailable, "the driver went away");
  EXPECT_EQ(backend.Look().error().message(), "the driver went away");
}

TEST(LookOnce, ADriverThatIsGoneAfterAHangIsAnErrorAndNotAShorterList) {
  Scripted backend;
  backend.opens = {device::Driver{}, Error(Code::kUnavailable, "the driver went away")};
  backend.errors.insert({"1", Error(Code::kDeadlineExceeded, "took long")});
  EXPECT_EQ(backend.Look().error().message(), "the driver went away");
}

}  // namespace
}  // namespace penstock::app
