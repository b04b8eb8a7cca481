// Tests every form of line that NVIDIA's kernel modules are known to write, and lines that only
// resemble them.
#include "backend/nvidia/dialect/kernel_log.h"

#include <string>

#include <gtest/gtest.h>

namespace penstock::backend::nvidia {
namespace {

struct Line {
  const char* line;
  const char* kind;
  const char* pci;
  std::int64_t code;
  const char* text;
};

// Prints the test's parameter in lists of tests; the default prints the object's bytes.
void PrintTo(const Line& line, std::ostream* out) { *out << line.kind << ' ' << line.code; }

class KnownLine : public testing::TestWithParam<Line> {};

TEST_P(KnownLine, IsUnderstood) {
  const Line& expected = GetParam();
  const auto evidence = ParseKernelLine(expected.line);
  ASSERT_TRUE(evidence.has_value());
  EXPECT_EQ(evidence->source, device::EvidenceSource::kKernelLog);
  EXPECT_EQ(evidence->kind, expected.kind);
  ASSERT_TRUE(evidence->pci.has_value());
  EXPECT_EQ(ToString(*evidence->pci), expected.pci);
  EXPECT_EQ(evidence->code, expected.code);
  EXPECT_EQ(evidence->text, expected.text);
  EXPECT_TRUE(evidence->device.empty());
  EXPECT_FALSE(evidence->standing);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, KnownLine,
    testing::Values(
        Line{"NVRM: Xid (0000:03:00): 14, Channel 00000001", "xid", "0000:03:00.0", 14,
             "Channel 00000001"},
        Line{"NVRM: Xid (PCI:0000:01:00): 95, pid=7062, Uncontained: LTC TAG (0x2,0x1). RST: Yes, "
             "D-RST: No",
             "xid", "0000:01:00.0", 95,
             "pid=7062, Uncontained: LTC TAG (0x2,0x1). RST: Yes, D-RST: No"},
        Line{"NVRM: Xid (PCI:0000:01:00): 13, pid=4711, name=nvc:[driver], Graphics SM Warp "
             "Exception",
             "xid", "0000:01:00.0", 13, "pid=4711, name=nvc:[driver], Graphics SM Warp Exception"},
        Line{"NVRM: Xid (PCI:0000:01:00): 31, pid='<unknown>', name=<unknown>, Ch 0000000e", "xid",
             "0000:01:00.0", 31, "pid='<unknown>', name=<unknown>, Ch 0000000e"},
        Line{"NVRM: Xid (PCI:0000:5a:00): 79, GPU has fallen off the bus.", "xid", "0000:5a:00.0",
             79, "GPU has fallen off the bus."},
        Line{"NVRM: Xid (PCI:0000:01:00 GPU-I:05): 13, pid=1, name=a, oops", "xid", "0000:01:00.0",
             13, "pid=1, name=a, oops (GPU instance 5)"},
        Line{"NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:02): 13, oops", "xid", "0000:01:00.0", 13,
             "oops (GPU instance 5, compute instance 2)"},
        Line{
            "NVRM: Xid (PCI:0000:01:00): 45, pid=2, name=b, Ch 0000000e caused by previous Xid 149",
            "xid", "0000:01:00.0", 45, "pid=2, name=b, Ch 0000000e caused by previous Xid 149"},
        Line{"NVRM: Xid (PCI:0000:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 "
             "0x00000000 0x0 0x0 0x0 0x0 0x0)",
             "xid", "0000:01:00.0", 149,
             "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x0 0x0 0x0 0x0 0x0)"},
        Line{"NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 "
             "(Node Reboot Required)",
             "xid", "0000:01:00.0", 154,
             "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"},
        Line{"nvidia-nvswitch2: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 61 egress "
             "non-posted PRIV error",
             "sxid", "0000:85:00.0", 12028, "Non-fatal, Link 61 egress non-posted PRIV error"},
        Line{"NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.", "lost", "0000:18:00.0", 0,
             "GPU has fallen off the bus"},
        Line{"NVRM: The NVIDIA GPU 0000:b3:00.0\\x0aNVRM: (PCI ID: 10de:2330) installed in this "
             "system has\\x0aNVRM: fallen "
             "off the bus and is not "
             "responding to commands.",
             "lost", "0000:b3:00.0", 0, "GPU has fallen off the bus"},
        Line{"4,1234,56789012,-;NVRM: Xid (PCI:0000:07:00): 48, DBE", "xid", "0000:07:00.0", 48,
             "DBE"},
        Line{"[  123.456789] NVRM: Xid (PCI:0000:07:00): 48, DBE", "xid", "0000:07:00.0", 48,
             "DBE"},
        Line{"NVRM: Xid (PCI:00010000:C1:00): 64", "xid", "10000:c1:00.0", 64, ""}));

TEST(KernelLine, SaysNothingWhereNothingIsSaid) {
  for (const char* line :
       {"", "NVRM: ", "NVRM: Xid", "NVRM: Xid (", "NVRM: Xid ()", "NVRM: Xid (PCI:0000:01:00)",
        "NVRM: Xid (PCI:0000:01:00): ", "NVRM: Xid (PCI:0000:01:00): x, y",
        "NVRM: Xid (PCI:zz): 79, y", "NVRM: Xid (PCI:0000:01:00): 99999999999999999999, y",
        "NVRM: Xid (PCI:0000:01:00 GPU-I:): 13, y",
        "NVRM: GPU at PCI:0000:03:00: GPU-11111111-2222-3333-4444-555555555555",
        "NVRM: GPU 0000:18:00.0: RmInitAdapter failed!", "NVRM: The NVIDIA GPU 0000:b3:00.0",
        "NVRM: loading nvidia", "nvidia-nvswitch2: SXid (PCI:0000:85:00.0): Data {0x1, 0x2}",
        "nvidia-nvswitch: open", "amdgpu 0000:03:00.0: GPU reset begin!",
        "NVRM: Xid (PCI:0000:01:00): 79GPU"}) {
    EXPECT_FALSE(ParseKernelLine(line).has_value()) << line;
  }
}

TEST(KernelLine, ReportsThatTheModuleWasLoaded) {
  for (const char* line :
       {"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build"}) {
    const auto evidence = ParseKernelLine(line);
    ASSERT_TRUE(evidence.has_value()) << line;
    EXPECT_EQ(evidence->kind, "driver-loaded");
    EXPECT_FALSE(evidence->pci.has_value());
  }
}

TEST(KernelLine, IsNotFooledByAProgramThatQuotesOne) {
  EXPECT_FALSE(
      ParseKernelLine("audit: comm=\"NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\"")
          .has_value());
  EXPECT_FALSE(
      ParseKernelLine("6,1,2,-;systemd[1]: NVRM: Xid (PCI:0000:01:00): 79, x").has_value());
}

TEST(KernelLine, NamesTheMigInstanceAsFactsDo) {
  const auto part = [](const std::string& line) {
    const auto evidence = ParseKernelLine(line);
    return evidence ? evidence->part : "none";
  };
  EXPECT_EQ(part("NVRM: Xid (PCI:0000:01:00): 13, oops"), "");
  EXPECT_EQ(part("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 13, oops"), "5");
  EXPECT_EQ(part("NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:02): 13, oops"), "5/2");
  EXPECT_EQ(part("NVRM: Xid (PCI:0000:01:00 GPU-CI:02): 13, oops"), "") << "of which GPU instance?";
  // A program chooses its name, which the driver writes into the line.
  EXPECT_EQ(part("NVRM: Xid (PCI:0000:01:00 GPU-I:01 GPU-CI:00): 13, pid=1, name=(PCI:0000:01:00 "
                 "GPU-I:02 GPU-CI:00): 79, GPU has fallen off the bus"),
            "1/0");
  EXPECT_EQ(part("NVRM: Xid (PCI:0000:01:00): 13, pid=1, name= GPU-I:02): 79, x"), "");
  EXPECT_EQ(part("NVRM: Xid (PCI:0000:01:00 GPU-I:99999999999999999999): 13, x"), "none");
}

TEST(KernelLine, KeepsATextWithinBounds) {
  const auto evidence =
      ParseKernelLine("NVRM: Xid (PCI:0000:01:00): 13, " + std::string(100000, 'x'));
  ASSERT_TRUE(evidence.has_value());
  EXPECT_LE(evidence->text.size(), 600u);
}

}  // namespace
}  // namespace penstock::backend::nvidia
