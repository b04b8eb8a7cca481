// Files of another mount namespace, as an agent in a pod reaches those of its host: below
// /proc/PID/root of a process that sees them. Needs root, to make the namespace.
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/testing/must.h"
#include "os/core/file.h"
#include "os/core/root.h"
#include "os/testing/temporary_folder.h"
#include "protocol/engine/config_files.h"

namespace penstock {
namespace {

/// A process that sees other files in a folder than this one: "etc/config.toml", and a link to it.
class MountNamespace : public testing::Test {
 protected:
  MountNamespace() {
    std::filesystem::create_directory(folder_ / "etc");
    int ready[2];
    if (::pipe(ready) != 0) std::abort();
    child_ = ::fork();
    if (child_ == 0) Become(ready[1]);
    ::close(ready[1]);
    char word = 0;
    if (::read(ready[0], &word, 1) != 1) throw std::runtime_error("no mount namespace was made");
    ::close(ready[0]);
  }
  ~MountNamespace() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  std::string root() const { return "/proc/" + std::to_string(child_) + "/root"; }
  std::string Path(const std::string& below) const { return folder_ / ("etc/" + below); }

 private:
  [[noreturn]] void Become(int ready) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_PRIVATE | MS_REC, nullptr) != 0 ||
        ::mount("tmpfs", Path("").c_str(), "tmpfs", 0, nullptr) != 0)
      ::_exit(1);
    folder_.Write("etc/config.toml", "version = 2\n");
    folder_.Link("etc/link.toml", "config.toml");
    if (::write(ready, "x", 1) != 1) ::_exit(1);
    while (true) ::pause();
  }

  const os::TemporaryFolder folder_;
  pid_t child_ = 0;
};

TEST_F(MountNamespace, AFileThatThisProcessDoesNotSeeHasItsPathBelowTheRoot) {
  ASSERT_FALSE(os::Exists(Path("config.toml"))) << "here is no such file";
  const os::Root root = base::Must(os::Root::Open(this->root()));
  for (const char* name : {"config.toml", "link.toml"}) {
    const os::UniqueFd file = base::Must(root.OpenFile(Path(name), O_PATH));
    EXPECT_EQ(base::Must(root.PathOf(file)), Path("config.toml")) << name;
  }
  const os::UniqueFd file = base::Must(root.OpenFile(Path("config.toml"), O_PATH));
  ASSERT_TRUE(std::filesystem::remove(this->root() + Path("config.toml")));
  EXPECT_EQ(root.PathOf(file).error().code(), base::Code::kNotFound) << "it was removed";
}

TEST_F(MountNamespace, AnEnginesFilesAreWrittenThere) {
  const auto files = base::Must(protocol::engine::ConfigFiles::Open(root()));
  ASSERT_TRUE(files.Write(Path("link.toml"), "version = 3\n").ok());
  ASSERT_TRUE(files.Write(Path("conf.d/99.toml"), "x = 1\n").ok());
  EXPECT_EQ(base::Must(os::ReadFile(root() + Path("config.toml"))), "version = 3\n");
  EXPECT_EQ(base::Must(os::ReadFile(root() + Path("conf.d/99.toml"))), "x = 1\n");
  EXPECT_FALSE(os::Exists(Path("conf.d"))) << "not here";
}

}  // namespace
}  // namespace penstock
