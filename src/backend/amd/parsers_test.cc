// The texts and the table that amdgpu writes, whole and broken.
#include <gtest/gtest.h>

#include "backend/amd/gpu_metrics.h"
#include "backend/amd/kfd.h"
#include "backend/amd/missing_parts.h"
#include "backend/amd/ras.h"

namespace penstock::backend::amd {
namespace {

/// A table of all ones, in which some fields have a value.
class Table {
 public:
  Table(std::size_t size, unsigned format, unsigned content) : bytes_(size, '\xff') {
    Put(0, 2, size);
    Put(2, 1, format);
    Put(3, 1, content);
  }
  Table& Put(std::size_t offset, std::size_t width, std::uint64_t value) {
    for (std::size_t i = 0; i < width; ++i)
      bytes_[offset + i] = static_cast<char>(value >> 8 * i & 0xff);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

TEST(AmdGpuMetrics, OfMi200) {
  const auto metrics =
      ParseGpuMetrics(Table(120, 1, 3).Put(6, 2, 50).Put(22, 2, 300).Put(24, 8, 65536).bytes());
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->hotspot, 50u);
  EXPECT_EQ(metrics->power, 300u);
  EXPECT_EQ(metrics->energy, 65536u);
  EXPECT_EQ(metrics->memory_temperature, std::nullopt) << "all ones: not known";
}

TEST(AmdGpuMetrics, OfMi300) {
  struct Version {
    unsigned content;
    std::size_t size, energy, clock;
  };
  for (const auto& [content, size, energy, clock] :
       {Version{4, 288, 24, 240}, {5, 360, 88, 312}, {7, 1200, 24, 296}, {8, 3000, 24, 296}}) {
    const auto metrics = ParseGpuMetrics(Table(size, 1, content)
                                             .Put(4, 2, 61)
                                             .Put(10, 2, 750)
                                             .Put(energy, 8, 1u << 20)
                                             .Put(clock, 2, 2100)
                                             .bytes());
    ASSERT_TRUE(metrics.ok()) << content;
    EXPECT_EQ(metrics->hotspot, 61u) << content;
    EXPECT_EQ(metrics->power, 750u) << content;
    EXPECT_EQ(metrics->energy, 1u << 20) << content;
    EXPECT_EQ(metrics->compute_clock, 2100u) << content;
  }
}

TEST(AmdGpuMetrics, OfMi200HasEdgeStacksAndClocks) {
  const auto metrics = ParseGpuMetrics(Table(120, 1, 3)
                                           .Put(4, 2, 38)
                                           .Put(54, 2, 1700)
                                           .Put(60, 2, 400)
                                           .Put(66, 2, 300)
                                           .Put(90, 2, 41)
                                           .Put(106, 2, 900)
                                           .bytes());
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->edge, 38u);
  EXPECT_TRUE(metrics->average_power);
  EXPECT_EQ(metrics->compute_clocks, (GpuMetrics::Values{1700}));
  EXPECT_EQ(metrics->video_clocks, (GpuMetrics::Values{400, std::nullopt}));
  EXPECT_EQ(metrics->data_clocks, (GpuMetrics::Values{std::nullopt, 300}));
  EXPECT_EQ(metrics->hbm[1], 41u);
  EXPECT_EQ(metrics->gfx_voltage, 900u);
}

TEST(AmdGpuMetrics, OfPartitions) {
  struct Version {
    unsigned content;
    std::size_t size, first, part, video, replays;
  };
  for (const auto& [content, size, first, part, video, replays] :
       {Version{6, 1664, 312, 168, 96, 104},
        {7, 2208, 344, 232, 96, 112},
        {8, 3872, 344, 440, 112, 112}}) {
    const auto metrics = ParseGpuMetrics(Table(size, 1, content)
                                             .Put(replays, 8, 17)
                                             .Put(first, 4, 90)
                                             .Put(first + 7 * part + 28, 4, 91)
                                             .Put(first + part + video, 2, 12)
                                             .bytes());
    ASSERT_TRUE(metrics.ok()) << content;
    EXPECT_EQ(metrics->pcie_replays, 17u) << content;
    ASSERT_EQ(metrics->parts.size(), 8u) << content;
    EXPECT_EQ(metrics->parts[0].compute_busy[0], 90u) << content;
    EXPECT_EQ(metrics->parts[7].compute_busy[7], 91u) << content;
    EXPECT_EQ(metrics->parts[1].video_busy[0], 12u) << content;
    EXPECT_EQ(metrics->parts[1].compute_busy[0], std::nullopt) << content;
    EXPECT_EQ(metrics->parts[0].slow_power.empty(), content < 8) << content;
  }
}

// Linux had two of them.
TEST(AmdGpuMetrics, Of16WithAnotherLengthHasOnlyItsBeginning) {
  const auto metrics = ParseGpuMetrics(Table(384, 1, 6).Put(4, 2, 61).Put(24, 8, 5).bytes());
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->hotspot, 61u);
  EXPECT_EQ(metrics->energy, std::nullopt);
  EXPECT_TRUE(metrics->parts.empty());
}

TEST(AmdGpuMetrics, OfDescribedFields) {
  const auto code = [](std::uint64_t type, std::uint64_t id, std::uint64_t count) {
    return type << 20 | id << 10 | count;
  };
  Table table(49, 1, 9);
  table.Put(4, 4, 3)
      .Put(8, 8, code(2, 0, 1))  // one unsigned 16-bit value: the hotspot's temperature
      .Put(16, 2, 55)
      .Put(18, 8, code(2, 999, 2))  // two of something unknown
      .Put(30, 8, code(4, 3, 1))
      .Put(38, 4, 400);
  const auto metrics = ParseGpuMetrics(table.bytes());
  ASSERT_TRUE(metrics.ok()) << metrics.error().message();
  EXPECT_EQ(metrics->hotspot, 55u);
  EXPECT_EQ(metrics->power, 400u);
  EXPECT_TRUE(metrics->parts.empty());
  table.Put(4, 4, 1000000);
  EXPECT_FALSE(ParseGpuMetrics(table.bytes()).ok()) << "fewer than it says";
}

TEST(AmdGpuMetrics, OfDescribedLists) {
  const auto code = [](std::uint64_t type, std::uint64_t id, std::uint64_t count) {
    return type << 20 | id << 10 | count;
  };
  Table table(48, 1, 9);
  table.Put(4, 4, 2)
      .Put(8, 8, code(4, 40, 2))  // how busy two chiplets are
      .Put(16, 4, 70)
      .Put(24, 8, code(6, 29, 2))  // what two links have received
      .Put(32, 8, 1000)
      .Put(40, 8, 2000);
  const auto metrics = ParseGpuMetrics(table.bytes());
  ASSERT_TRUE(metrics.ok()) << metrics.error().message();
  ASSERT_EQ(metrics->parts.size(), 1u);
  EXPECT_EQ(metrics->parts[0].compute_busy, (GpuMetrics::Values{70, std::nullopt}));
  EXPECT_EQ(metrics->xgmi_received, (GpuMetrics::Values{1000, 2000}));
}

TEST(AmdGpuMetrics, SaysWhichVersionItDoesNotKnow) {
  for (const auto& [format, content] : {std::pair{1u, 10u}, {2u, 1u}, {3u, 0u}}) {
    const auto metrics = ParseGpuMetrics(Table(264, format, content).bytes());
    ASSERT_FALSE(metrics.ok());
    EXPECT_EQ(metrics.error().code(), base::Code::kUnimplemented);
    EXPECT_NE(metrics.error().message().find(std::to_string(format) + "."), std::string::npos);
  }
}

TEST(AmdGpuMetrics, NeverReadsBeyondTheFile) {
  for (unsigned content = 0; content < 12; ++content)
    for (std::size_t size = 0; size < 4000; size += size < 400 ? 1 : 7) {
      std::string bytes = Table(4000, 1, content).bytes().substr(0, size);
      (void)ParseGpuMetrics(bytes);
      if (size >= 2) bytes[0] = static_cast<char>(size), bytes[1] = static_cast<char>(size >> 8);
      (void)ParseGpuMetrics(bytes);
    }
}

TEST(AmdRas, CountsErrors) {
  EXPECT_EQ(ParseRasCounts("ue: 1\nce: 20\nde: 3\n"), (RasCounts{1, 20, 3}));
  EXPECT_EQ(ParseRasCounts("ue: 0\nce: 0\n"), (RasCounts{}));
  EXPECT_EQ(ParseRasCounts("Query currently inaccessible\n"), std::nullopt);
  EXPECT_EQ(ParseRasCounts(""), std::nullopt);
  EXPECT_EQ(ParseRasCounts("ue: -1\nce: 18446744073709551615\n"), std::nullopt);
}

TEST(AmdRas, CountsBadPages) {
  EXPECT_EQ(ParseBadPages("0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : P\n"
                          "0x00000003 : 0x00001000 : F\nnonsense\n0x4 : R\n"),
            (BadPages{1, 1, 1}));
}

TEST(AmdKfd, ReadsNumbersAbove263AndLeavesOutWhatIsNone) {
  const auto properties =
      ParseProperties("unique_id 16404946649897475633\nempty\n blank 1\nsimd_count -1\nx 1 2\n");
  EXPECT_EQ(properties, (Properties{{"unique_id", 16404946649897475633ull}}));
}

TEST(AmdMissingParts, KnowsTheNumberOfPartitionsOfEachMode) {
  EXPECT_EQ(PartitionsIn("SPX", ""), 1u);
  EXPECT_EQ(PartitionsIn("DPX", ""), 2u);
  EXPECT_EQ(PartitionsIn("TPX", ""), 3u);
  EXPECT_EQ(PartitionsIn("QPX", ""), 4u);
  EXPECT_EQ(PartitionsIn("CPX", "SPX, DPX, QPX, CPX"), 8u);
  EXPECT_EQ(PartitionsIn("CPX", "QPX, CPX"), 8u) << "in the memory mode NPS4";
  EXPECT_EQ(PartitionsIn("CPX", "SPX, TPX, CPX"), 6u) << "MI300A";
  EXPECT_EQ(PartitionsIn("CPX", "SPX, DPX, CPX"), 4u) << "MI308X";
  EXPECT_EQ(PartitionsIn("CPX", "SPX, CPX"), 2u);
  for (const char* unknown : {"", "Not supported", "nonsense"})
    EXPECT_EQ(PartitionsIn("CPX", unknown), std::nullopt);
  EXPECT_EQ(PartitionsIn("", "SPX, DPX, QPX, CPX"), std::nullopt);
  EXPECT_EQ(PartitionsIn("UPX", "SPX, DPX, QPX, CPX"), std::nullopt);
}

TEST(AmdKfd, NamesArchitecturesAsCompilersDo) {
  EXPECT_EQ(GfxName(90402), "gfx942");
  EXPECT_EQ(GfxName(90010), "gfx90a");
  EXPECT_EQ(InstinctArchitecture(90402), "cdna3");
  EXPECT_EQ(InstinctArchitecture(90012), "") << "a processor's own graphics";
}

}  // namespace
}  // namespace penstock::backend::amd
