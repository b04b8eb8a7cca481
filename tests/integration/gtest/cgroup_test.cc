// Tests control groups against the kernel, as root: access is really denied, and empty groups are
// detected.
#include "os/cgroup/cgroup.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/cgroup/cgroup_closed.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

// The test program has one thread, so it may fork.
class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    auto tree = CgroupTree::Open("penstock-test-" + std::to_string(::getpid()));
    ASSERT_TRUE(tree.ok()) << tree.error().message();
    tree_ = std::make_unique<CgroupTree>(*std::move(tree));
  }

  void TearDown() override {
    for (const pid_t pid : children_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    if (tree_ == nullptr) return;
    for (const std::string& name : tree_->List()) EXPECT_TRUE(tree_->Remove(name).ok());
    EXPECT_TRUE(tree_->RemoveTree().ok());
  }

  /// Creates a group at the top of the tree.
  base::Status Create(const std::string& name, const DeviceRules& rules, const std::string& note) {
    return tree_->Create(name, tree_->Place(name), rules, note);
  }

  std::string Node(unsigned minor) const {
    const std::string path = folder_ / ("node" + std::to_string(minor));
    if (::mknod(path.c_str(), S_IFCHR | 0666, ::makedev(195, minor)) != 0 && errno != EEXIST)
      ADD_FAILURE() << "mknod: " << errno;
    return path;
  }

  /// Starts a child in the group. Its exit status is the function's result.
  pid_t Start(const std::string& group, const std::function<int()>& function) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(tree_->Enter(group, ::getpid()).ok() ? function() : 255);
    children_.push_back(pid);
    return pid;
  }

  int Finish(pid_t pid) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    std::erase(children_, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  /// The errno of opening a path inside the group; 0 for success.
  int OpenInside(const std::string& group, const std::string& path, int flags = O_RDWR) {
    return Finish(Start(group, [&] { return ::open(path.c_str(), flags) >= 0 ? 0 : errno; }));
  }

  pid_t StartSleeper(const std::string& group) {
    const pid_t pid = Start(group, [] { return ::pause(); });
    for (int left = 60'000; left > 0; --left) {
      const auto members = tree_->Members(group);
      if (std::find(members.begin(), members.end(), pid) != members.end()) return pid;
      ::usleep(1000);
    }
    ADD_FAILURE() << "process " << pid << " did not enter " << group << " within a minute";
    return pid;
  }

  TemporaryFolder folder_;
  std::unique_ptr<CgroupTree> tree_;
  std::vector<pid_t> children_;
};

constexpr int kNoDriver = ENXIO;  // the kernel allowed the access to a device without a driver
const DeviceRules kFirstOnly{.guarded = {{195, 0, 254}}, .admitted = {{195, 0, 0}}};

TEST_F(CgroupTest, RefusesOtherDevicesThanTheAdmitted) {
  ASSERT_TRUE(Create("g", kFirstOnly, "note").ok());
  for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR}) {
    EXPECT_EQ(OpenInside("g", Node(0), flags), kNoDriver);
    EXPECT_EQ(OpenInside("g", Node(1), flags), EPERM);
  }
  EXPECT_EQ(OpenInside("g", Node(255)), kNoDriver);
  EXPECT_EQ(OpenInside("g", "/dev/null"), 0);
  EXPECT_EQ(::open(Node(1).c_str(), O_RDWR), -1);
  EXPECT_EQ(errno, kNoDriver) << "outside of the group nothing is refused";
}

TEST_F(CgroupTest, HoldsForChildrenToo) {
  ASSERT_TRUE(Create("g", kFirstOnly, "").ok());
  const std::string node = Node(1);
  const pid_t pid = Start("g", [&] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::open(node.c_str(), O_RDONLY) >= 0 ? 0 : errno);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  });
  EXPECT_EQ(Finish(pid), EPERM);
}

TEST_F(CgroupTest, TakesThreeHundredRanges) {
  DeviceRules rules;
  for (std::uint32_t minor = 0; minor < 300; ++minor)
    rules.guarded.push_back({195, 2 * minor, 2 * minor});
  rules.admitted = {{195, 0, 0}};
  ASSERT_TRUE(Create("g", rules, "").ok());
  EXPECT_EQ(OpenInside("g", Node(0)), kNoDriver);
  EXPECT_EQ(OpenInside("g", Node(1)), kNoDriver);
  EXPECT_EQ(OpenInside("g", Node(598)), EPERM);
}

TEST_F(CgroupTest, TakesAsManyRangesAsItSays) {
  DeviceRules rules;
  for (std::uint32_t minor = 0; minor < kMaxDeviceRanges; ++minor)
    rules.guarded.push_back({195, 2 * minor, 2 * minor});
  ASSERT_TRUE(Create("g", rules, "").ok());
  EXPECT_EQ(OpenInside("g", Node(2 * kMaxDeviceRanges - 2)), EPERM);
  EXPECT_EQ(OpenInside("g", Node(2 * kMaxDeviceRanges - 3)), kNoDriver);
}

TEST_F(CgroupTest, ClosesAsManyRangesAsItSays) {
  std::vector<DeviceRange> devices;
  for (std::uint32_t minor = 0; minor < kMaxDeviceRanges; ++minor)
    devices.push_back({195, 2 * minor, 2 * minor});
  ASSERT_TRUE(Create("g", {}, "").ok());
  ASSERT_TRUE(Create("admitted", {}, "").ok());
  auto closed = ClosedDevices::Open();
  ASSERT_TRUE(closed.ok()) << closed.error().ToString();
  for (const auto& [folder, status] : closed->Close({tree_->path()}, devices))
    ASSERT_TRUE(status.ok()) << status.error().ToString();
  ASSERT_TRUE(closed->Admit(tree_->path() + "/admitted").ok());
  const auto open = [&](const char* group, unsigned minor, uid_t uid) {
    const std::string path = Node(minor);
    return Finish(Start(group, [&] {
      return ::setreuid(uid, uid) != 0 ? 254 : ::open(path.c_str(), O_RDWR) >= 0 ? 0 : errno;
    }));
  };
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  for (const unsigned minor : {0u, 2u, static_cast<unsigned>(2 * kMaxDeviceRanges - 2)}) {
    ASSERT_EQ(::chmod(Node(minor).c_str(), 0666), 0);
    EXPECT_EQ(open("g", minor, 65534), EPERM);
    EXPECT_EQ(open("g", minor, 0), kNoDriver);
    EXPECT_EQ(open("admitted", minor, 65534), kNoDriver);
  }
  ASSERT_EQ(::chmod(Node(1).c_str(), 0666), 0);
  EXPECT_EQ(open("g", 1, 65534), kNoDriver);
}

TEST_F(CgroupTest, SignalsThoseWhoAreMembersStillWithFewDescriptors) {
  ASSERT_TRUE(Create("g", {}, "").ok());
  ASSERT_TRUE(Create("g2", {}, "").ok());
  ASSERT_EQ(::mkdir((tree_->path() + "/g/below").c_str(), 0755), 0);
  std::vector<pid_t> members;
  for (int i = 0; i < 100; ++i) members.push_back(StartSleeper("g"));
  ASSERT_TRUE(
      WriteControlFile(tree_->path() + "/g/below/cgroup.procs", std::to_string(members[0])).ok());
  const pid_t stranger = StartSleeper("g2");
  std::vector<pid_t> pids = members;
  pids.push_back(stranger);
  const int next = ::dup(0);
  ::close(next);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{static_cast<rlim_t>(next) + 2, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  tree_->Signal("g", pids, SIGTERM);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  for (const pid_t pid : members) EXPECT_EQ(Finish(pid), -SIGTERM);
  EXPECT_EQ(::waitpid(stranger, nullptr, WNOHANG), 0) << "it is in another group";
}

TEST_F(CgroupTest, KeepsItsNote) {
  const std::string note(60u << 10, 'n');
  ASSERT_TRUE(Create("long", {}, note).ok());
  ASSERT_TRUE(Create("empty", {}, "").ok());
  EXPECT_EQ(*tree_->Note("long"), note);
  EXPECT_EQ(*tree_->Note("empty"), "");
  EXPECT_FALSE(tree_->Note("none").ok());
  auto again = CgroupTree::Open("penstock-test-" + std::to_string(::getpid()));
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(again->List(), ElementsAre("empty", "long"));
  EXPECT_EQ(*again->Note("long"), note);
}

TEST_F(CgroupTest, NoticesThatItIsEmptyAfterKill9) {
  ASSERT_TRUE(Create("g", {}, "").ok());
  const pid_t pid = StartSleeper("g");
  EXPECT_THAT(tree_->Members("g"), ElementsAre(pid));
  const auto events = tree_->OpenEvents("g");
  ASSERT_TRUE(events.ok());
  EXPECT_TRUE(CgroupTree::ReadEvents(events->get()));
  pollfd poll{events->get(), POLLPRI, 0};
  EXPECT_EQ(::poll(&poll, 1, 0), 0) << "nothing has changed yet";
  ::kill(pid, SIGKILL);
  EXPECT_EQ(::poll(&poll, 1, 20'000), 1);
  EXPECT_TRUE(poll.revents & POLLPRI);
  EXPECT_FALSE(CgroupTree::ReadEvents(events->get()));
  EXPECT_EQ(::poll(&poll, 1, 0), 0) << "the notice is acknowledged";
  EXPECT_FALSE(tree_->Populated("g"));
  EXPECT_EQ(Finish(pid), -SIGKILL);
}

TEST_F(CgroupTest, KillsAllItsMembersAndCanThenBeRemoved) {
  ASSERT_TRUE(Create("g", {}, "").ok());
  const pid_t first = StartSleeper("g");
  const pid_t second = StartSleeper("g");
  EXPECT_EQ(tree_->Remove("g").error().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(tree_->Kill("g").ok());
  EXPECT_EQ(Finish(first), -SIGKILL);
  EXPECT_EQ(Finish(second), -SIGKILL);
  EXPECT_THAT(tree_->Members("g"), IsEmpty());
  EXPECT_TRUE(tree_->Remove("g").ok());
  EXPECT_TRUE(tree_->Remove("g").ok()) << "what is gone is removed";
  EXPECT_THAT(tree_->List(), IsEmpty());
  EXPECT_FALSE(tree_->Populated("g"));
  EXPECT_FALSE(tree_->Kill("g").ok());
  EXPECT_FALSE(tree_->Enter("g", ::getpid()).ok());
}

TEST_F(CgroupTest, CountsAsPopulatedWhatCannotBeLookedAt) {
  ASSERT_TRUE(Create("g", {}, "").ok());
  EXPECT_FALSE(tree_->Populated("g"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(tree_->Populated("g"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(CgroupTest, CountsGroupsBelow) {
  ASSERT_TRUE(Create("g", kFirstOnly, "").ok());
  ASSERT_EQ(::mkdir((tree_->path() + "/g/below").c_str(), 0755), 0);
  const pid_t pid = StartSleeper("g");
  ASSERT_TRUE(tree_->Enter("g", pid).ok());
  std::ofstream(tree_->path() + "/g/below/cgroup.procs") << pid << std::flush;
  EXPECT_THAT(tree_->Members("g"), ElementsAre(pid));
  EXPECT_TRUE(tree_->Populated("g"));
  ASSERT_TRUE(tree_->Kill("g").ok());
  EXPECT_EQ(Finish(pid), -SIGKILL);
  EXPECT_TRUE(tree_->Remove("g").ok());
}

TEST_F(CgroupTest, IsMadeWholeOrNotAtAll) {
  ASSERT_TRUE(Create("g", {}, "first").ok());
  EXPECT_EQ(Create("g", {}, "second").error().code(), Code::kAlreadyExists);
  EXPECT_EQ(*tree_->Note("g"), "first");
  EXPECT_EQ(Create("h", {.guarded = {{195, 1, 0}}, .admitted = {}}, "").error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Create("h", {}, std::string(61u << 10, 'n')).error().code(), Code::kInvalidArgument);
  for (const char* name : {"", ".", "..", "a/b", "../g"})
    EXPECT_EQ(Create(name, {}, "").error().code(), Code::kInvalidArgument) << name;
  EXPECT_THAT(tree_->List(), ElementsAre("g"));
}

TEST_F(CgroupTest, MakesTheFolderOfAllGroupsAgainWhereItWasTidiedAway) {
  ASSERT_EQ(::rmdir(tree_->path().c_str()), 0);
  EXPECT_TRUE(Create("again", {}, "note").ok());
  EXPECT_EQ(*tree_->Note("again"), "note");
}

TEST_F(CgroupTest, SaysWhichRightIsMissing) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setuid(65534) != 0) ::_exit(1);
    const auto tree = CgroupTree::Open("penstock-test-unprivileged");
    const bool said = !tree.ok() && tree.error().code() == Code::kPermissionDenied &&
                      tree.error().message().starts_with("no permission to create");
    ::_exit(said ? 0 : 2);
  }
  EXPECT_EQ(Finish(pid), 0);
}

}  // namespace
}  // namespace penstock::os
