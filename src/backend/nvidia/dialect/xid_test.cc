#include "backend/nvidia/dialect/xid.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/build_tree.h"

namespace penstock::backend::nvidia {
namespace {

using device::Severity;
using enum device::Severity;

constexpr char kCatalog[] = "NVIDIA Xid Catalog",
               kArchive[] = "NVIDIA Xid Catalog and Xid Errors archive",
               kModules[] = "NVIDIA open GPU kernel modules", kInferred[] = "inferred";

std::vector<int> To(int first, int last) {
  std::vector<int> numbers;
  for (int number = first; number <= last; ++number) numbers.push_back(number);
  return numbers;
}

/// Transcribed from the sources a second time, by what they require.
struct Row {
  std::vector<int> numbers;
  Severity severity;
  const char* source;
};
const std::vector<Row> kRows = {
    {To(1, 7), kWarn, kCatalog},
    {{8, 11, 25, 69}, kWarn, kArchive},
    {{9, 10, 12}, kWarn, kCatalog},
    {To(15, 24), kWarn, kCatalog},
    {To(26, 30), kWarn, kCatalog},
    {To(33, 36), kWarn, kCatalog},
    {To(49, 53), kWarn, kCatalog},
    {{55, 59}, kWarn, kCatalog},
    {{13, 14, 31, 37, 43, 45, 106, 107, 108, 137, 141, 152, 153, 162}, kIgnore, kCatalog},
    {{32, 38, 44, 60, 63, 66, 67, 78, 80, 92, 93, 94, 121, 142, 157, 160, 161, 163, 164, 165},
     kWarn,
     kCatalog},
    {{39, 40, 41, 70, 71, 72, 75, 76, 77, 85}, kWarn, kCatalog},
    {To(126, 135), kWarn, kCatalog},
    {{68, 82, 83, 84, 86, 88, 89, 139}, kWarn, kCatalog},
    {To(96, 105), kWarn, kCatalog},
    {{42, 47, 65, 73, 87, 90, 91, 138}, kWarn, kCatalog},
    {To(111, 118), kWarn, kCatalog},
    {To(122, 125), kWarn, kCatalog},
    {{56, 57, 58, 61, 81}, kWarn, kArchive},
    {{46, 48, 64, 74, 95, 110, 119, 120, 136, 140, 143, 155, 156, 158, 159}, kReset, kCatalog},
    {{62, 109}, kReset, kArchive},
    {{54, 151}, kGone, kCatalog},
    {{79}, kGone, kArchive},
    {To(144, 150), kWarn, kCatalog},  // without a text
    {{154}, kWarn, kModules},         // without a text
    {{167, 169, 173, 175}, kReset, kModules},
    {{166, 168, 170, 171, 172, 176}, kWarn, kInferred},
    {{174}, kIgnore, kModules},
    {{185}, kWarn, "NVIDIA driver 620 release notes"},
};

TEST(Xid, Issue1974EachHasTheClassThatItsSourceAsksFor) {
  std::vector<int> seen;
  for (const Row& row : kRows) {
    for (const int number : row.numbers) {
      seen.push_back(number);
      EXPECT_EQ(JudgeXid(number, "").severity, row.severity) << number;
      EXPECT_EQ(FindXid(number).source, row.source) << number;
    }
  }
  std::sort(seen.begin(), seen.end());
  std::vector<int> all = To(1, 176);
  all.push_back(185);
  EXPECT_EQ(seen, all);
}

TEST(Xid, RowsAreInOrderAndDoNotOverlap) {
  int last = 0;
  for (const Xid& xid : Xids()) {
    EXPECT_GT(xid.first, last);
    EXPECT_GE(xid.last, xid.first);
    last = xid.last;
  }
}

TEST(Xid, NvLink5ErrorsGoByTheirText) {
  struct Case {
    int number;
    const char* text;
    Severity severity;
  };
  for (const Case& one : std::initializer_list<Case>{
           {144, "SAW_MVB Fatal XC0 i0 Link 00 (0x1 0x2)", kReset},
           {145, "RLW_REMAP Nonfatal XC0 i0 Link 00 (0x1 0x2)", kWarn},
           {146, "TLW_RX Fatal XC0 i1 Link -1 (0x1 0x2)", kReset},
           {147, "TREX Nonfatal XC1 i0 Link 03 (0x1 0x2)", kWarn},
           {148, "NVLPW_CTRL Fatal XC0 i0 Link 03 (0x1 0x2)", kReset},
           {149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)", kDrain},
           {149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x026005c6 0x00000000)", kWarn},
           {149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x028005c6 0x00000000)", kWarn},
           {149, "NETIR_BER_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)", kIgnore},
           {149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (", kDrain},
           {150, "MSE_WATCHDOG Fatal XC0 i0 Link -1 (0x1)", kReset},
           {150, "", kWarn},
       })
    EXPECT_EQ(JudgeXid(one.number, one.text).severity, one.severity)
        << one.number << " " << one.text;
}

TEST(Xid, Number154DoesWhatTheDriverWantsFromNowOn) {
  const char* const kActions[] = {
      "0x0 (None)",      "0x1 (GPU Reset Required)", "0x2 (Node Reboot Required)",
      "0x3 (Drain P2P)", "0x4 (Drain and Reset)",    "0x5 (Recover IMEX Domain)",
      "0x6 (Bus Reset)", "0x7 (System Reboot)"};
  for (std::int64_t action = 0; action < 8; ++action) {
    const std::string text =
        std::string("GPU recovery action changed from 0x1 (GPU Reset Required) to ") +
        kActions[action];
    EXPECT_EQ(JudgeXid(154, text).severity, JudgeRecoveryAction(action).severity) << text;
  }
}

/// The table in the user documentation.
TEST(Xid, TheDocumentationHasTheTable) {
  std::string table = "| XID | what | class | source |\n|---|---|---|---|\n";
  for (const Xid& xid : Xids()) {
    const bool by_text = (xid.first >= 144 && xid.last <= 150) || xid.first == 154;
    table += "| " + std::to_string(xid.first) +
             (xid.last > xid.first ? "-" + std::to_string(xid.last) : "") + " | " +
             std::string(xid.name) + " | " +
             (by_text ? "by text" : std::string(ToString(xid.severity))) + " | " +
             std::string(xid.source) + " |\n";
  }
  std::ostringstream page;
  page << std::ifstream(base::SourcePath("docs/health.md")).rdbuf();
  EXPECT_TRUE(page.str().find(table) != std::string::npos)
      << "docs/health.md must contain this table:\n"
      << table;
}

}  // namespace
}  // namespace penstock::backend::nvidia
