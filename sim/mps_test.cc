// Tests the MPS programs of a simulated machine as a shell uses them.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>
#include <sys/wait.h>

#include "sim/testing.h"

namespace penstock::sim {
namespace {

using testing::Folder;
using ::testing::HasSubstr;
using testing::Started;

class MpsPrograms : public ::testing::Test {
 protected:
  MpsPrograms() : control_(Started(folder_ / "m", "dgx-a100")) {}
  ~MpsPrograms() override {
    (void)control_.FaultMps("");
    (void)Sh("echo quit -t 1 | $C");
  }

  // Returns the output of a command; $C, $SMI and $CLIENT are the machine's programs, and the
  // daemon has its GPUs 2 and 5.
  std::string Sh(const std::string& command) {
    const std::string bin = folder_ / "m/usr/bin/";
    const std::string line =
        "export C=" + bin + "nvidia-cuda-mps-control SMI=" + bin + "nvidia-smi CLIENT=" + bin +
        "mps-client" + " PATH=" + bin + ":$PATH CUDA_MPS_PIPE_DIRECTORY=" + folder_.path() +
        "/pipe CUDA_MPS_LOG_DIRECTORY=" + folder_.path() + "; { " + command + "; } 2>&1";
    FILE* output = ::popen(line.c_str(), "re");
    std::string text;
    std::array<char, 256> buffer{};
    while (std::fgets(buffer.data(), buffer.size(), output) != nullptr) text += buffer.data();
    status_ = WEXITSTATUS(::pclose(output));
    return text;
  }
  std::string StartDaemon() { return Sh("CUDA_VISIBLE_DEVICES=2,5 $C -d"); }
  /// A killed daemon does not exit at once; returns false after a minute.
  bool DaemonGoes() {
    const auto late = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (Sh("echo get_server_list | $C") != "Cannot find MPS control daemon process\n") {
      if (std::chrono::steady_clock::now() > late) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }

  Folder folder_;
  Control control_;
  int status_ = 0;
};

TEST_F(MpsPrograms, ADaemonIsOneAndIsFound) {
  EXPECT_EQ(Sh("echo get_server_list | $C"), "Cannot find MPS control daemon process\n");
  EXPECT_EQ(status_, 1);
  EXPECT_EQ(StartDaemon(), "");
  EXPECT_THAT(StartDaemon(), HasSubstr("already running"));
  EXPECT_EQ(Sh("echo get_server_list | $C"), "");
  EXPECT_EQ(status_, 0);
}

TEST_F(MpsPrograms, ADaemonEndsWithItsMachine) {
  (void)StartDaemon();
  ASSERT_EQ(Sh("echo get_server_list | $C"), "");
  EndMps(folder_ / "m");
  EXPECT_TRUE(DaemonGoes());
}

TEST_F(MpsPrograms, LimitsAreKeptAndReportedInTheirForms) {
  (void)StartDaemon();
  EXPECT_EQ(Sh("echo get_default_active_thread_percentage | $C"), "100.0\n");
  EXPECT_EQ(Sh("(echo set_default_active_thread_percentage 25; echo "
               "set_default_device_pinned_mem_limit 1 10137M; "
               "echo set_default_device_pinned_mem_limit 0 3072M) | $C"),
            "25.0\n");
  EXPECT_EQ(Sh("(echo get_default_device_pinned_mem_limit 0; echo "
               "get_default_device_pinned_mem_limit 1) | $C"),
            "3G\n9G\n")
      << "whole ones";
  EXPECT_EQ(Sh("(echo set_default_device_pinned_mem_limit 7 1000M; echo "
               "get_default_device_pinned_mem_limit 7) | $C"),
            "1000M\n")
      << "it knows no GPUs";
  EXPECT_EQ(Sh("echo get_default_device_pinned_mem_limit 2 | $C"), "");
  EXPECT_EQ(Sh("$CLIENT --device 1 --allocate 10000 --allocate 138 | tail -n 2"),
            "allocated 10000\nerror 2 CUDA_ERROR_OUT_OF_MEMORY\n");
}

// As 535.261 and 550.163 do, observed in traces and folders.
TEST_F(MpsPrograms, ADaemonLeavesItsSocketsAndEndsItsPidFileAndPipe) {
  const std::string names = "ls $CUDA_MPS_PIPE_DIRECTORY";
  (void)StartDaemon();
  EXPECT_EQ(Sh(names),
            "control\ncontrol_lock\ncontrol_privileged\nlog\nnvidia-cuda-mps-control.pid\n");
  EXPECT_EQ(Sh("(echo get_client_list 1; echo foo; echo ps) | $C"),
            "Server 1 not found\nUnknown command \"foo\"\nServer not found\n");
  EXPECT_EQ(Sh("echo quit | $C"), "");
  EXPECT_EQ(Sh(names), "control\ncontrol_lock\ncontrol_privileged\n");
}

TEST_F(MpsPrograms, ADaemonOf535HasNoPidFile) {
  const Control control = Started(folder_ / "old", "dgx-a100", {.driver = "535.261.03"});
  (void)Sh(folder_ / "old/usr/bin/nvidia-cuda-mps-control -d");
  EXPECT_EQ(Sh("ls $CUDA_MPS_PIPE_DIRECTORY"), "control\ncontrol_lock\ncontrol_privileged\nlog\n");
}

TEST_F(MpsPrograms, AClientCountsTheServersGpusThatItMayOpen) {
  (void)StartDaemon();
  ASSERT_THAT(Sh("$CLIENT --device 1 --allocate 100"), HasSubstr("allocated 100"));
  EXPECT_THAT(Sh("CUDA_VISIBLE_DEVICES=1 $CLIENT"), HasSubstr("limit "))
      << "its numbers are those of the server's";
  EXPECT_THAT(Sh("CUDA_VISIBLE_DEVICES=2 $CLIENT"), HasSubstr("CUDA_ERROR_NO_DEVICE"));
  // As in a container that received only the second GPU.
  const std::string hidden = folder_ / "m/dev/nvidia2";
  ASSERT_EQ(Sh("mv " + hidden + " " + hidden + ".away"), "");
  const std::string pid = Sh("cd " + folder_.path() +
                             "; $CLIENT --hold > said 2>&1 & until grep -q limit said 2>/dev/null; "
                             "do :; done; printf %s $!");
  EXPECT_EQ(control_.state().gpus[2].process_count, 1u) << "the server";
  EXPECT_EQ(control_.state().gpus[5].process_count, 2u) << "the server and its client";
  (void)Sh("kill " + pid);
}

TEST_F(MpsPrograms, AnExclusiveGpuIsUsedThroughTheServerOnly) {
  (void)Sh("$SMI -i 2 -c EXCLUSIVE_PROCESS");
  EXPECT_EQ(control_.state().gpus[2].compute_mode, 3u);
  (void)StartDaemon();
  EXPECT_THAT(Sh("$CLIENT"), HasSubstr("mps server "));
  EXPECT_THAT(Sh("CUDA_MPS_PIPE_DIRECTORY=/nowhere $CLIENT --device 2"),
              HasSubstr("CUDA_ERROR_DEVICE_UNAVAILABLE"));
  EXPECT_THAT(Sh("CUDA_MPS_PIPE_DIRECTORY=/nowhere $CLIENT --device 3"),
              ::testing::StartsWith("no mps"));
  EXPECT_EQ(status_, 0);
}

TEST_F(MpsPrograms, AServerOfAMigDeviceHasItAloneAndKeepsItFromBeingDestroyed) {
  (void)Sh("$SMI -i 2 -mig 1 && $SMI mig -i 2 -cgi 1g.5gb,1g.5gb -C");
  const std::string
      first = "$($SMI -L | sed -n 's/.*MIG 1g.*UUID: \\(MIG-[^)]*\\).*/\\1/p' | head -n 1)",
      second = "$($SMI -L | sed -n 's/.*MIG 1g.*UUID: \\(MIG-[^)]*\\).*/\\1/p' | tail -n 1)";
  EXPECT_THAT(Sh("$SMI -i 2 -c EXCLUSIVE_PROCESS"),
              HasSubstr("is not supported on a MIG-enabled device"));
  EXPECT_EQ(Sh("CUDA_VISIBLE_DEVICES=" + first + " $C -d"), "");
  ASSERT_EQ(Sh("echo set_default_device_pinned_mem_limit 0 1000M | $C"), "");
  EXPECT_THAT(Sh("CUDA_VISIBLE_DEVICES=" + first + " $CLIENT --allocate 1000"),
              ::testing::AllOf(HasSubstr("limit 1000 100.0"), HasSubstr("allocated 1000")));
  EXPECT_THAT(Sh("CUDA_VISIBLE_DEVICES=" + first + " $CLIENT --allocate 1001"),
              HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_THAT(Sh("CUDA_VISIBLE_DEVICES=" + second + " $CLIENT"), HasSubstr("CUDA_ERROR_NO_DEVICE"));
  EXPECT_THAT(Sh("CUDA_MPS_PIPE_DIRECTORY=/nowhere CUDA_VISIBLE_DEVICES=" + second +
                 " $CLIENT --allocate 4864 --allocate 1"),
              ::testing::AllOf(HasSubstr("allocated 4864"), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")))
      << "the memory of this device alone";
  (void)Sh("$SMI mig -i 2 -dci");
  EXPECT_EQ(control_.state().gpus[2].process_count, 1u) << "the server";
  EXPECT_THAT(Sh("$SMI -L"), HasSubstr("MIG 1g.5gb")) << "in use by the server";
  (void)Sh("echo quit | $C");
  ASSERT_TRUE(DaemonGoes());
  (void)Sh("$SMI mig -i 2 -dci");
  EXPECT_THAT(Sh("$SMI -L"), ::testing::Not(HasSubstr("MIG 1g.5gb")));
}

TEST_F(MpsPrograms, FaultsShowAndHeal) {
  (void)StartDaemon();
  ASSERT_TRUE(control_.FaultMps("nonsense").ok());
  EXPECT_THAT(Sh("echo get_server_list | $C"), HasSubstr("3 pears"));
  ASSERT_TRUE(control_.FaultMps("hang").ok());
  (void)Sh("echo get_server_list | timeout 0.2 $C");
  EXPECT_EQ(status_, 124);
  ASSERT_TRUE(control_.FaultMps("").ok());
  EXPECT_EQ(Sh("echo get_server_list | $C"), "");
  ASSERT_TRUE(control_.KillMps().ok());
  ASSERT_TRUE(DaemonGoes());
  ASSERT_TRUE(control_.FaultMps("exit").ok());
  EXPECT_EQ(StartDaemon(), "") << "it says that it started, and is gone";
  EXPECT_THAT(Sh("echo get_server_list | $C"), HasSubstr("Cannot find"));
}

}  // namespace
}  // namespace penstock::sim
