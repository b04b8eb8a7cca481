// Tests `nvidia-smi mig` of a simulated machine: its output against a recording, its exit codes.
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <sys/wait.h>

#include "sim/testing_mig.h"

namespace penstock::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Running;

struct Output {
  std::string text;
  int status;
};

// Runs the program of the machine's tree, with arguments as a shell reads them.
Output Smi(const Running& machine, const std::string& arguments) {
  FILE* pipe = popen(((machine / "usr/bin/nvidia-smi") + " " + arguments + " 2>&1").c_str(), "re");
  std::array<char, 4096> buffer{};
  Output output;
  while (const std::size_t size = fread(buffer.data(), 1, buffer.size(), pipe))
    output.text.append(buffer.data(), size);
  const int ended = pclose(pipe);
  output.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
  return output;
}

// A machine with the GPU of the recording, which is of an H200 with driver 580.159.04.
std::string OneH200() {
  const std::string path = ::testing::TempDir() + "one-h200.yaml";
  std::ofstream(path) << "name: one\ndriver: 580.159.04\ngpus:\n"
                         "  - {model: h200-sxm-141gb, pci: \"0000:00:06.0\"}\n";
  return path;
}

TEST(NvidiaSmiMig, PrintsWhatARealH200Prints) {
  const Running machine(OneH200());
  std::ifstream file(base::SourcePath("sim/testdata/h200-580.159.04-nvidia-smi-mig.txt"));
  std::string line, arguments, expected;
  int compared = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("== ")) {
      arguments = line.substr(3);
      expected.clear();
    } else if (line.starts_with("exit ")) {
      const Output output = Smi(machine, arguments);
      EXPECT_EQ(output.text, expected) << arguments;
      EXPECT_EQ(output.status, std::stoi(line.substr(5))) << arguments;
      compared++;
    } else {
      expected += line + "\n";
    }
  }
  EXPECT_EQ(compared, 7);
}

TEST(NvidiaSmiMig, CreatesListsAndDestroysInstances) {
  const Running machine(OneH200());
  EXPECT_EQ(Smi(machine, "-mig 1").text, "Enabled MIG Mode for GPU 00000000:00:06.0\nAll done.\n");
  EXPECT_EQ(Smi(machine, "mig -lgi").status, 6);
  EXPECT_EQ(Smi(machine, "mig -cgi 9,3g.71gb:0 -C").text,
            "Successfully created GPU instance ID  2 on GPU  0 using profile MIG 3g.71gb (ID  9)\n"
            "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  2 using "
            "profile MIG 3g.71gb (ID  2)\n"
            "Successfully created GPU instance ID  1 on GPU  0 using profile MIG 3g.71gb (ID  9)\n"
            "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  1 using "
            "profile MIG 3g.71gb (ID  2)\n");
  const Output full = Smi(machine, "mig -cgi 19");
  EXPECT_EQ(full.text,
            "Unable to create a GPU instance on GPU  0 using profile 19: Insufficient Resources\n"
            "Failed to create GPU instances: Insufficient Resources\n");
  EXPECT_EQ(full.status, 23);
  EXPECT_THAT(Smi(machine, "-L").text, HasSubstr("\n  MIG 3g.71gb     Device  1: (UUID: MIG-"));
  EXPECT_THAT(Smi(machine, "-q").text,
              AllOf(HasSubstr("MIG Device\n"), HasSubstr("Multiprocessor count")));
  EXPECT_EQ(Smi(machine, "mig -dgi").status, 19);
  EXPECT_THAT(Smi(machine, "-mig 0").text, HasSubstr("In use by another client"));
  EXPECT_EQ(Smi(machine, "mig -dci -gi 1").text,
            "Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  1\n");
  EXPECT_EQ(Smi(machine, "mig -dci").status, 0);
  EXPECT_EQ(Smi(machine, "mig -dgi").status, 0);
  EXPECT_EQ(Smi(machine, "mig -dgi").status, 6);
  EXPECT_EQ(Smi(machine, "-mig 0").text, "Disabled MIG Mode for GPU 00000000:00:06.0\nAll done.\n");
}

TEST(NvidiaSmiMig, AResetEndsInstancesAndWaitsForClients) {
  Running machine("dgx-a100");
  ASSERT_EQ(Smi(machine, "-mig 1 -i 0").status, 0);
  ASSERT_EQ(Smi(machine, "mig -cgi 9 -C -i 0").status, 0);
  ASSERT_TRUE(machine.control.Set({0}, {"process=7:100:a:gi2/ci0"}).ok());
  EXPECT_NE(Smi(machine, "-r -i 0").status, 0);
  EXPECT_THAT(Smi(machine, "-L").text, HasSubstr("MIG 3g.20gb"));
  EXPECT_THAT(Smi(machine, "-i 0").text, HasSubstr("|    0    2    0 "));
  EXPECT_THAT(Smi(machine, "-mig 0 -i 0").text,
              HasSubstr("Warning: MIG mode is in pending disable state for GPU 00000000:07:00.0:In "
                        "use by another client"));
  ASSERT_TRUE(machine.control.Set({0}, {"no-processes"}).ok());
  const auto before = machine.control.state().event_head;
  EXPECT_EQ(Smi(machine, "-r -i 0").status, 0);
  EXPECT_EQ(machine.control.state().event_head, before + 1);
  EXPECT_EQ(machine.control.state().events[(before + 1) % kSimEventSlots].type,
            NV_EVENT_MIG_CONFIG);
  EXPECT_THAT(Smi(machine, "-L").text, Not(HasSubstr("MIG ")));
  EXPECT_EQ(machine.control.state().gpus[0].mig_current, 0u) << "the pending mode took effect";
  EXPECT_EQ(access((machine / "proc/driver/nvidia/capabilities/gpu0/mig/gi2").c_str(), F_OK), -1);
}

}  // namespace
}  // namespace penstock::sim
