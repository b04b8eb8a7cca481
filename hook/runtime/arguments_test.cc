#include "hook/runtime/arguments.h"

#include <vector>

#include <gtest/gtest.h>

namespace penstock::hook::runtime {
namespace {

RuntimeCall Read(std::vector<std::string_view> words) { return ReadArguments(words); }

TEST(Arguments, KnowWhatContainerdAndConmonWrite) {
  const RuntimeCall containerd = Read(
      {"--root", "/run/containerd/runc/k8s.io", "--log", "/run/x/log.json", "--log-format", "json",
       "--systemd-cgroup", "create", "--bundle", "/run/x", "--pid-file", "/run/x/init.pid", "abc"});
  EXPECT_TRUE(containerd.Creates());
  EXPECT_EQ(containerd.bundle, "/run/x");
  EXPECT_EQ(containerd.log.path, "/run/x/log.json");
  EXPECT_TRUE(containerd.log.json);
  const RuntimeCall conmon = Read({"--log-format=json", "--log=/run/y/oci-log", "--debug", "create",
                                   "--bundle=/run/y", "--console-socket", "/run/s", "def"});
  EXPECT_TRUE(conmon.Creates());
  EXPECT_EQ(conmon.bundle, "/run/y");
  EXPECT_EQ(conmon.log.path, "/run/y/oci-log");
  EXPECT_TRUE(conmon.log.debug);
}

TEST(Arguments, TakeTheBundleInEachSpelling) {
  for (const std::string_view option : {"-b", "--b", "-bundle", "--bundle"}) {
    EXPECT_EQ(Read({"create", option, "/x", "id"}).bundle, "/x") << option;
    const std::string joined = std::string(option) + "=/x";
    EXPECT_EQ(Read({"run", joined, "id"}).bundle, "/x") << option;
  }
  EXPECT_EQ(Read({"create", "id"}).bundle, "");
  EXPECT_EQ(Read({"create", "-b"}).bundle, "");
}

TEST(Arguments, ReportACommandFromAName) {
  EXPECT_FALSE(Read({"state", "create"}).Creates());
  EXPECT_FALSE(Read({"kill", "run", "9"}).Creates());
  EXPECT_FALSE(Read({"--root", "create", "delete", "x"}).Creates());
  EXPECT_EQ(Read({"--root", "create", "delete", "x"}).command, "delete");
  EXPECT_TRUE(Read({"create", "--bundle", "create", "create"}).Creates());
  EXPECT_EQ(Read({"create", "--bundle", "create", "create"}).bundle, "create");
  EXPECT_TRUE(Read({"--an-option-of-tomorrow", "value", "create", "x"}).Creates());
  EXPECT_EQ(Read({}).command, "");
  EXPECT_EQ(Read({"--", "create"}).command, "");
}

TEST(Arguments, KnowTheVersionBeforeACommandOnly) {
  EXPECT_TRUE(Read({"--version"}).version);
  EXPECT_TRUE(Read({"-v"}).version);
  EXPECT_FALSE(Read({"exec", "x", "ls", "--version"}).version);
}

TEST(Arguments, KnowWhereCrunLogs) {
  EXPECT_EQ(Read({"--log=file:/run/log", "create", "x"}).log.path, "/run/log");
  EXPECT_EQ(Read({"--log=journald:x", "create", "x"}).log.path, "");
}

}  // namespace
}  // namespace penstock::hook::runtime
