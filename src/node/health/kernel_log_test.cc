#include "node/health/kernel_log.h"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/kinds.h"
#include "device/testing/acme.h"
#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"

namespace penstock::node::health {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

/// "acme: NUMBER" is an error, "acme: loading" the first line of the module.
class TalkingDialect final : public device::testing::AcmeDialect {
 public:
  std::optional<device::Evidence> FromKernelLog(std::string_view line) const override {
    if (!line.starts_with("acme: ")) return std::nullopt;
    device::Evidence evidence;
    evidence.source = device::EvidenceSource::kKernelLog;
    evidence.kind =
        line == "acme: loading" ? std::string(device::kDriverLoaded) : std::string(line.substr(6));
    return evidence;
  }
};

class KernelLogFeedTest : public ::testing::Test {
 protected:
  KernelLogFeedTest() { loop_.Start(); }
  ~KernelLogFeedTest() override {
    loop_.Run([this] { feed_.reset(); });
    loop_.Stop();
  }
  void Open(const std::string& log, KernelLogFeed::Options options) {
    folder_.Write("kmsg", log);
    loop_.Run([this, options] {
      heard_.clear();
      const auto heard = [this](std::string_view, const device::Evidence& evidence,
                                base::Duration ago) {
        heard_.push_back(evidence.kind);
        if (ago <= base::Duration(0)) now_.push_back(evidence.kind);
      };
      feed_ = *KernelLogFeed::Open(loop_.loop(), folder_ / "kmsg", {&dialect_}, heard, options);
    });
  }

  const TalkingDialect dialect_;
  os::TemporaryFolder folder_;
  os::TurnedLoop loop_{"control"};
  std::unique_ptr<KernelLogFeed> feed_;
  std::vector<std::string> heard_, now_;
};

constexpr char kLog[] =
    "4,10,5000,-;acme: early\n4,11,6000,-;acme: loading\n4,12,7000,-;acme: late\n4,13,8000,-;usb: "
    "something else\n";

TEST_F(KernelLogFeedTest, ReportsThePastSinceTheDriverWasLoaded) {
  Open(kLog, {.history = true});
  EXPECT_THAT(heard_, ElementsAre("late"));
  EXPECT_THAT(now_, IsEmpty()) << "the event is in the past";
  EXPECT_EQ(feed_->last(), 13u);
}

TEST_F(KernelLogFeedTest, ReportsThePastSinceAnEarlierFeedAlone) {
  Open(kLog, {.history = true, .after = 11});
  EXPECT_THAT(heard_, ElementsAre("late"));
  Open(kLog, {.history = true, .after = 12});
  EXPECT_THAT(heard_, IsEmpty());
}

TEST_F(KernelLogFeedTest, ReportsNothingOfThePastWhereThatIsNotWanted) {
  Open(kLog, {});
  EXPECT_THAT(heard_, IsEmpty());
  EXPECT_EQ(feed_->last(), 13u);
}

TEST_F(KernelLogFeedTest, BelievesOnlyTheKernelThatTheDriverWasLoaded) {
  Open("4,10,5000,-;acme: early\n12,11,6000,-;acme: loading\n", {.history = true});
  EXPECT_THAT(heard_, ElementsAre("early"));
}

TEST_F(KernelLogFeedTest, ReportsALineOfAFileWithoutWaitingForTheNext) {
  Open(kLog, {});
  std::ofstream(folder_ / "kmsg", std::ios::app) << "4,14,9000,-;acme: new\n" << std::flush;
  loop_.Advance({});  // the clock stands still
  EXPECT_THAT(now_, ElementsAre("new"));
}

}  // namespace
}  // namespace penstock::node::health
