// Tests in which folders the files for programs that wait are kept, and from which they go.
#include "app/agent/validation.h"

#include <filesystem>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/compat/nvidia/node_status.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"

namespace penstock::app {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ValidationTest : public testing::Test {
 protected:
  ValidationTest() { loop_.Start(); }
  ~ValidationTest() override {
    loop_.Run([this] { validation_.reset(); });
    loop_.Stop();
  }

  static api::NodeConfig ConfigOf(const std::string& directory) {
    api::NodeConfig config;
    config.validation.directory = directory;
    return config;
  }

  /// What an agent has kept of a node that is ready.
  void Fill(const std::string& name) const {
    for (const std::string_view file : api::compat::ValidationFileNames())
      folder_.Write(name + "/" + std::string(file), "");
  }
  std::vector<std::string> Files(const std::string& name) const {
    return os::ListDirectory(folder_ / name).value_or({});
  }

  /// Starts it like the agent, after one that had `before`.
  void Serve(const std::string& directory, const std::string& before = "") {
    loop_.Run([&] {
      validation_.emplace(loop_.loop(), loop_.loop(), inventory_, ConfigOf(directory),
                          folder_.path(), [] {});
      validation_->Serve({ConfigOf(before)});
    });
  }
  /// Judges a node without devices. Until they were looked for, its steps are not decided.
  void Judge(bool looked_for) {
    loop_.Run([&] {
      if (looked_for) validation_->Begin();
      validation_->Judge({}, {}, std::nullopt);
    });
    loop_.Settle();
  }
  void Configure(const std::string& directory) {
    loop_.Run([&] { validation_->Configure(ConfigOf(directory)); });
    loop_.Settle();
  }

  /// Puts a driver's root in the place of "driver", without a word to who watches that, as a mount
  /// does: "driver" leads to another link, and that one is replaced. Empty: away.
  void Put(const std::string& root, const std::vector<std::string>& devices) const {
    std::filesystem::create_directories(folder_ / root);
    for (const std::string& device : devices) folder_.Write(root + "/dev/" + device, "");
    folder_.Link("next", folder_ / root);
    std::filesystem::rename(folder_ / "next", folder_ / "current");
  }
  /// A driver with one device, in a root that a container put there.
  void Open(const std::string& instance) {
    const node::inventory::DriverLocation place{.container = true,
                                                .driver_root = folder_ / "driver",
                                                .dev_root = folder_ / "driver",
                                                .instance = instance};
    device::Facts facts;
    facts.id = "GPU-1";
    facts.vendor = "nvidia";
    facts.files = {{"/dev/nvidia0", 195, 0}};
    loop_.Run([&] {
      inventory_.SetVendor({"nvidia", std::make_shared<const device::Driver>(), "",
                            std::make_shared<const node::inventory::DriverLocation>(place)});
      inventory_.SetFacts("nvidia", {facts}, "", base::WallTime{});
      validation_->DevicesChanged();
    });
  }
  /// Begins with a driver all of whose device files are there.
  void BeginInRoot() {
    folder_.Link("driver", folder_ / "current");
    Put("root-1", {"nvidiactl", "nvidia-uvm", "nvidia0"});
    Serve("");
    Open("1");
    loop_.Run([&] { validation_->Begin(); });
  }
  bool DeviceFilesAre(const std::string& state) {
    api::Report report;
    report.vendors.push_back({.vendor = "nvidia", .driver = "550.54.15"});
    report.devices.push_back({.id = "GPU-1", .vendor = "nvidia", .health_state = "healthy"});
    return loop_.AdvanceUntil(100ms, [&] {
      std::string now;
      loop_.Run([&] {
        for (const api::ValidationStep& step : validation_->Judge(report, {}, std::nullopt))
          if (step.name == node::validate::kDeviceNodes) now = step.state;
      });
      return now == state;
    });
  }

  const os::TemporaryFolder folder_;
  os::TurnedLoop loop_{"test"};
  node::inventory::Inventory inventory_;
  std::optional<Validation> validation_;
};

TEST_F(ValidationTest, FilesOfTheAgentBeforeGoFromAFolderThatIsNoLongerConfigured) {
  Fill("a");
  folder_.Write("a/.driver-ctr-ready", "");
  Serve("", folder_ / "a");
  Judge(true);
  EXPECT_THAT(Files("a"), ElementsAre(".driver-ctr-ready"));
}

TEST_F(ValidationTest, FilesOfTheAgentBeforeStayInItsFolderWhileTheStepsAreNotDecided) {
  Fill("a");
  Serve(folder_ / "a", folder_ / "a");
  Judge(false);
  EXPECT_THAT(Files("a"), SizeIs(4));
}

// As by a label of the Node that was set while no agent ran.
TEST_F(ValidationTest, FilesGoFromAFolderThatIsSwitchedOffBeforeTheFirstReport) {
  Fill("a");
  Serve(folder_ / "a");
  Configure("");
  Judge(false);
  EXPECT_THAT(Files("a"), IsEmpty());
}

TEST_F(ValidationTest, FilesStayInAFolderThatIsConfiguredAgain) {
  Fill("a");
  Serve(folder_ / "a");
  Configure("");
  Configure(folder_ / "a");
  Judge(false);
  EXPECT_THAT(Files("a"), SizeIs(4));
}

TEST_F(ValidationTest, AFolderThatCannotBeClearedIsClearedLaterAndOnce) {
  Serve(folder_ / "a");
  Judge(true);
  Fill("aside");
  folder_.Link("a", folder_ / "aside");
  Configure(folder_ / "b");
  EXPECT_THAT(Files("aside"), SizeIs(4)) << "not through a link";
  std::filesystem::remove(folder_ / "a");
  Fill("a");
  loop_.Advance(1min);
  EXPECT_THAT(Files("a"), IsEmpty());
  Fill("a");
  Configure(folder_ / "c");
  loop_.Advance(1h);
  EXPECT_THAT(Files("a"), SizeIs(4)) << "it is another program's now";
}

TEST_F(ValidationTest, DeviceFilesOfADriversRootThatReplacedAnotherAreFollowed) {
  BeginInRoot();
  EXPECT_TRUE(DeviceFilesAre("passed"));
  Put("root-2", {"nvidiactl", "nvidia0"});
  Open("2");
  EXPECT_TRUE(DeviceFilesAre("failed"));
  loop_.Advance(1s);
  folder_.Write("root-2/dev/nvidia-uvm", "");
  EXPECT_TRUE(DeviceFilesAre("passed"));
}

TEST_F(ValidationTest, DeviceFilesStandAsTheyDidWhileTheirRootIsAway) {
  BeginInRoot();
  EXPECT_TRUE(DeviceFilesAre("passed"));
  Put("mount-point", {});
  loop_.Run([&] { validation_->Begin(); });  // looks again
  loop_.Advance(1s);
  EXPECT_TRUE(DeviceFilesAre("passed"));
}

}  // namespace
}  // namespace penstock::app
