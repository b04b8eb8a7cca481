// Tests the file of labels as the configuration changes, while the agent runs and across its
// restarts.
#include "app/agent/labeller.h"

#include <filesystem>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/all.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::app {
namespace {

using testing::HasSubstr;
using testing::Not;

class LabellerTest : public testing::Test {
 protected:
  LabellerTest() {
    config_.paths.sysfs_root = folder_ / "sys";
    config_.paths.proc_root = folder_ / "proc";
    config_.labels.host_features = api::Switch::kOff;
    device::Facts gpu;
    gpu.id = "GPU-1";
    gpu.vendor = "nvidia";
    inventory_.SetVendor({"nvidia", std::make_shared<const device::Driver>(), ""});
    inventory_.SetFacts("nvidia", {gpu}, "", base::WallTime{});
    loop_.Start();
    Start();
  }
  ~LabellerTest() override { End(); }

  void Do(const std::function<void()>& what) {
    std::promise<void> done;
    loop_.Post([&] {
      what();
      done.set_value();
    });
    done.get_future().wait();
  }
  /// The machine is read, the labels are computed, and their file is written or removed: each is
  /// posted by the one before.
  void Settle() {
    constexpr int kSteps = 8;
    for (int i = 0; i < kSteps; ++i) Do([] {});
  }
  void Start() {
    Do([this] {
      labeller_.emplace(loop_, loop_, inventory_, offers_, config_.paths.sysfs_root,
                        Labeller::Callbacks{[] {}, [] {}, [] {}});
    });
  }
  void End() {
    Do([this] { labeller_.reset(); });
    Settle();
  }
  void Configure(const std::string& file) {
    config_.labels.features_file = file;
    Do([this] { labeller_->Configure(config_); });
    Settle();
  }
  /// An agent that serves, after another one that had the file `former`.
  void Serve(const std::string& former, const std::string& file) {
    Do([&] { labeller_->Serve(former); });
    Settle();
    Configure(file);
    Do([this] { labeller_->Begin(); });
    Settle();
  }

  const os::TemporaryFolder folder_;
  const std::string one_ = folder_ / "features.d/one", two_ = folder_ / "features.d/two";
  api::NodeConfig config_;
  os::Loop loop_{"test"};
  node::inventory::Inventory inventory_;
  node::ledger::Ledger ledger_;
  node::share::Offers offers_{inventory_, ledger_, backend::FindDialect, {}};
  std::optional<Labeller> labeller_;
};

// NFD would publish its last content without end.
TEST_F(LabellerTest, AFileThatIsNotConfiguredAnyMoreIsRemoved) {
  Serve("", one_);
  EXPECT_THAT(os::ReadFile(one_).value_or("none"), HasSubstr("nvidia.com/gpu.count=1\n"));
  Configure(two_);
  EXPECT_FALSE(os::Exists(one_));
  EXPECT_TRUE(os::Exists(two_));
  folder_.Write("features.d/another", "a=b\n");
  Configure("");
  EXPECT_THAT(*os::ListDirectory(folder_ / "features.d"), testing::ElementsAre("another"));
}

TEST_F(LabellerTest, AlsoWhereThatChangedWhileNoAgentRan) {
  Serve("", one_);
  End();
  EXPECT_TRUE(os::Exists(one_));
  Start();
  Serve(one_, one_);
  EXPECT_TRUE(os::Exists(one_)) << "it is the same";
  End();
  Start();
  Serve(one_, two_);
  EXPECT_FALSE(os::Exists(one_));
  EXPECT_TRUE(os::Exists(two_));
  End();
  Start();
  Serve(two_, "");
  EXPECT_FALSE(os::Exists(two_));
}

// DP#796: a missing file takes the node's labels away.
TEST_F(LabellerTest, AFileThatStaysIsThereBeforeTheAgentKnowsItsConfiguration) {
  folder_.Write("features.d/one", "of the agent before\n");
  Do([this] { labeller_->Serve(one_); });
  Settle();
  EXPECT_TRUE(os::Exists(one_));
  Configure(one_);
  EXPECT_TRUE(os::Exists(one_)) << "and before it knows its devices";
}

TEST_F(LabellerTest, AnAgentThatDoesNotServeRemovesNothing) {
  Configure(one_);
  folder_.Write("features.d/one", "of the agent that serves\n");
  Configure(two_);
  EXPECT_TRUE(os::Exists(one_));
}

TEST_F(LabellerTest, FollowsNoLinkInPlaceOfTheFolder) {
  folder_.Write("elsewhere/one", "not ours\n");
  folder_.Link("features.d", folder_ / "elsewhere");
  Serve(one_, "");
  EXPECT_TRUE(os::Exists(folder_ / "elsewhere/one"));
}

// They are NFD's labels as well as the Node's.
TEST_F(LabellerTest, TheFileHasNoLabelsOfAServiceThatIsOff) {
  Serve("", one_);
  Do([this] { labeller_->SetFeatureDiscovery(false); });
  Settle();
  EXPECT_THAT(os::ReadFile(one_).value_or("none"), Not(HasSubstr("nvidia.com/gpu")));
  Do([this] { labeller_->SetFeatureDiscovery(true); });
  Settle();
  EXPECT_THAT(os::ReadFile(one_).value_or("none"), HasSubstr("nvidia.com/gpu.count=1\n"));
}

}  // namespace
}  // namespace penstock::app
