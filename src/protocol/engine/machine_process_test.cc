#include "protocol/engine/machine_process.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/testing/must.h"
#include "os/core/file.h"
#include "protocol/engine/testing/fake_machine.h"

namespace penstock::protocol::engine {
namespace {

using std::filesystem::perms;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class IdentifyTest : public testing::Test {
 protected:
  IdentifyTest() { machine_.Process(7, "/usr/bin/kubelet", "kubelet --a=b"); }
  std::string Refusal(int pid = 7) {
    const auto process = Identify(machine_.proc(), pid);
    if (process.ok()) return "";
    EXPECT_EQ(process.error().code(), Code::kPermissionDenied);
    return process.error().message();
  }

  FakeMachine machine_;
};

TEST_F(IdentifyTest, AProcessOfTheMachineIsDescribed) {
  machine_.Cgroup(7, "/system.slice/kubelet.service");
  const auto process = Must(Identify(machine_.proc(), 7));
  EXPECT_EQ(process.pid, 7);
  EXPECT_EQ(process.name, "kubelet");
  EXPECT_EQ(process.program, machine_.ProgramHere("/usr/bin/kubelet"));
  EXPECT_THAT(process.arguments, ElementsAre("kubelet", "--a=b", ""));
  EXPECT_THAT(process.cgroups, ElementsAre("/system.slice/kubelet.service"));
}

TEST_F(IdentifyTest, EachOfTheThreeNamespacesHasToBeThatOfProcess1) {
  for (const std::string kind : {"user", "pid", "mnt"}) {
    machine_.Namespace(7, kind, kind + ":[2]");
    EXPECT_THAT(Refusal(), HasSubstr("it is in separate namespaces")) << kind;
    machine_.Namespace(7, kind, kind + ":[1]");
  }
  EXPECT_EQ(Refusal(), "");
  EXPECT_FALSE(Identify(machine_.proc(), 7)->sees_our_files);
  machine_.SeeItsFiles();
  EXPECT_TRUE(Identify(machine_.proc(), 7)->sees_our_files);
  std::filesystem::remove_all(machine_ / "proc/7/ns");
  EXPECT_THAT(Refusal(), HasSubstr("cannot be read"));
}

/// A set-user-id program of root's has its caller as its real user, regardless of the name under
/// which it was started.
TEST_F(IdentifyTest, EachOfItsUsersHasToBeRoot) {
  machine_.Users(7, "12345");
  EXPECT_THAT(Refusal(), HasSubstr("it runs as user 12345"));
  machine_.Users(7, "0", "12345");
  EXPECT_THAT(Refusal(), HasSubstr("it runs as user 12345"));
  std::filesystem::remove(machine_ / "proc/7/status");
  EXPECT_THAT(Refusal(), HasSubstr("No such file"));
}

TEST_F(IdentifyTest, ItsProgramAndTheFoldersAboveHaveToBeClosedToOthers) {
  const std::string program = machine_.ProgramHere("/usr/bin/kubelet");
  std::filesystem::permissions(program, static_cast<perms>(0775));
  EXPECT_THAT(Refusal(), HasSubstr("kubelet is writable by its group"));
  std::filesystem::permissions(program, static_cast<perms>(0755));
  const std::string folder =
      machine_.files() + std::filesystem::path(program).parent_path().string();
  std::filesystem::permissions(folder, static_cast<perms>(0777));
  EXPECT_THAT(Refusal(), HasSubstr("usr/bin is writable by everyone"));
  std::filesystem::permissions(folder, static_cast<perms>(0755));
  EXPECT_EQ(Refusal(), "");
  std::filesystem::remove(machine_ / "proc/7/exe");
  EXPECT_THAT(Refusal(), HasSubstr("its program cannot be determined"));
}

TEST_F(IdentifyTest, AProgramOfSomeoneElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "changing the owner of a file requires root";
  ASSERT_EQ(::chown(machine_.ProgramHere("/usr/bin/kubelet").c_str(), 12345, 12345), 0);
  EXPECT_THAT(Refusal(), HasSubstr("kubelet belongs to user 12345"));
}

TEST_F(IdentifyTest, WhatIsAtTheProgramsPathNowHasToBeRootsToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "changing the owner of a file requires root";
  const std::string now = machine_.files() + machine_.ProgramHere("/usr/bin/kubelet");
  ASSERT_EQ(::chown(now.c_str(), 12345, 12345),
            0);  // removed by root, and created again by another user
  EXPECT_THAT(Refusal(), HasSubstr("kubelet belongs to user 12345"));
}

TEST_F(IdentifyTest, AProgramThatIsNotThereAnyMoreIsJudgedByItsFolders) {
  const std::string now = machine_.files() + machine_.ProgramHere("/usr/bin/kubelet");
  std::filesystem::remove(now);
  EXPECT_EQ(Refusal(), "");
  std::filesystem::permissions(std::filesystem::path(now).parent_path(), static_cast<perms>(0777));
  EXPECT_THAT(Refusal(), HasSubstr("usr/bin is writable by everyone"));
}

TEST_F(IdentifyTest, WhatIsInAPodIsRefused) {
  for (const std::string pod : {"/kubepods/burstable/pod2c48913c-b29f-11e7-9350-020968147796/c",
                                "/kubepods.slice/kubepods-x.slice/c.scope",
                                "/../../pod2c48913c-b29f-11e7-9350-020968147796/c"}) {
    machine_.Cgroup(7, pod);
    EXPECT_THAT(Refusal(), HasSubstr("it is in a pod")) << pod;
  }
  machine_.Cgroup(7, "/podman.slice/x");
  EXPECT_EQ(Refusal(), "");
  // A node that is itself a pod's container.
  machine_.Cgroup(1, "/kubepods/pod2c48913c-b29f-11e7-9350-020968147796/node/init.scope");
  machine_.Cgroup(
      7, "/kubepods/pod2c48913c-b29f-11e7-9350-020968147796/node/system.slice/kubelet.service");
  EXPECT_EQ(Refusal(), "");
  machine_.Cgroup(
      7, "/kubepods/pod2c48913c-b29f-11e7-9350-020968147796/node/kubepods/besteffort/pod1/c");
  EXPECT_THAT(Refusal(), HasSubstr("it is in a pod"));
}

TEST_F(IdentifyTest, AProgramThatIsManyIsWhatItWasCalled) {
  machine_.Process(7, "/var/lib/rancher/k3s/data/abc/bin/k3s", "containerd -c /c.toml");
  EXPECT_EQ(Identify(machine_.proc(), 7)->name, "containerd");
  machine_.Process(7, "/usr/local/bin/k3s", "/usr/local/bin/k3s server");
  EXPECT_EQ(Identify(machine_.proc(), 7)->name, "k3s");
}

TEST_F(IdentifyTest, AProgramThatWasReplacedByAnUpgradeKeepsItsName) {
  const std::string link = machine_ / "proc/7/exe",
                    program = machine_.ProgramHere("/usr/bin/kubelet");
  std::filesystem::rename(
      program,
      program + " (deleted)");  // the link's target then; here the link must also lead to the file
  std::filesystem::remove(link);
  std::filesystem::create_symlink(program + " (deleted)", link);
  const auto process = Must(Identify(machine_.proc(), 7));
  EXPECT_EQ(process.name, "kubelet");
  EXPECT_EQ(process.program, program);
}

TEST_F(IdentifyTest, ProcessesAreFoundByTheirProgramsNameAndByNothingElse) {
  machine_.Process(1021, "/usr/bin/python3", "kubelet");  // its arguments claim that name
  machine_.Process(985, "/usr/bin/kubelet", "x");
  const Named named = ProcessesNamed(machine_.proc(), {"kubelet"});
  ASSERT_EQ(named.processes.size(), 2u);
  EXPECT_EQ(named.processes[0].pid, 7);
  EXPECT_EQ(named.processes[1].pid, 985);
  EXPECT_EQ(named.refused, "");
}

TEST_F(IdentifyTest, OneOfTheMachineThatIsRefusedIsNamedAndOneOfAContainerIsNot) {
  machine_.Users(7, "12345");
  machine_.Process(9, "/usr/bin/kubelet", "x");
  machine_.Namespace(9, "mnt", "mnt:[2]");
  const Named named = ProcessesNamed(machine_.proc(), {"kubelet"});
  EXPECT_THAT(named.processes, IsEmpty());
  EXPECT_THAT(named.refused, HasSubstr("process 7 ("));
  EXPECT_THAT(named.refused, HasSubstr("it runs as user 12345"));
}

TEST_F(IdentifyTest, AListenerIsBelievedWhereOnlyRootCanListen) {
  const std::string socket = machine_.Listen(machine_ / "run/e.sock");
  EXPECT_EQ(*ListenerOf(machine_.proc(), socket), ::getpid());
  std::filesystem::permissions(socket, static_cast<perms>(0666));
  EXPECT_TRUE(ListenerOf(machine_.proc(), socket).ok())
      << "the mode of the socket restricts who may connect";
  std::filesystem::permissions(machine_ / "run", static_cast<perms>(0777));
  const auto refused = ListenerOf(machine_.proc(), socket);
  EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
  EXPECT_EQ(refused.error().message(), "the socket " + socket + " is not trusted: " +
                                           (machine_ / "run") + " is writable by everyone");
}

TEST_F(IdentifyTest, AListenerIsReachedThroughTheMachinesFirstProcess) {
  machine_.Listen(machine_.files() + "/run/e.sock");
  const std::string through = machine_.proc() + "/1/root/run/e.sock";
  EXPECT_EQ(*ListenerOf(machine_.proc(), through), ::getpid());
  EXPECT_EQ(WithoutMachineFiles(machine_.proc(), through), "/run/e.sock");
  EXPECT_EQ(WithoutMachineFiles(machine_.proc(), "/run/e.sock"), "/run/e.sock");
  std::filesystem::permissions(machine_.files() + "/run", static_cast<perms>(0777));
  EXPECT_EQ(ListenerOf(machine_.proc(), through).error().code(), Code::kPermissionDenied);
}

TEST_F(IdentifyTest, WhereNoOneListensIsNotFound) {
  const std::string socket = machine_.Listen(machine_ / "run/e.sock");
  machine_.StopListening();
  EXPECT_EQ(ListenerOf(machine_.proc(), socket).error().code(), Code::kNotFound);
  EXPECT_EQ(ListenerOf(machine_.proc(), "/nowhere/x.sock").error().code(), Code::kNotFound);
  ASSERT_TRUE(os::WriteFileAtomically(machine_ / "run/file", "").ok());
  EXPECT_EQ(ListenerOf(machine_.proc(), machine_ / "run/file").error().code(),
            Code::kInvalidArgument);
}

TEST_F(IdentifyTest, SomeoneElsesSocketIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "changing the owner of a file requires root";
  const std::string socket = machine_.Listen(machine_ / "run/e.sock");
  ASSERT_EQ(::chown(socket.c_str(), 12345, 12345), 0);
  EXPECT_THAT(ListenerOf(machine_.proc(), socket).error().message(),
              HasSubstr("e.sock belongs to user 12345"));
}

TEST_F(IdentifyTest, TheMachinesFilesAreOursOrThoseOfItsFirstProcess) {
  EXPECT_EQ(MachineFiles(machine_.proc()), machine_.proc() + "/1/root");
  machine_.SeeItsFiles();
  EXPECT_EQ(MachineFiles(machine_.proc()), "");
}

}  // namespace
}  // namespace penstock::protocol::engine
