// The names, labels and values of AMD's Device Metrics Exporter.
#include "backend/amd/dialect/exporter.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/amd/dialect/exporter_fields.h"
#include "backend/amd/dialect/kinds.h"
#include "backend/amd/dialect/quantities.h"

namespace penstock::backend::amd {
namespace {

using device::ExporterField;
using device::FieldSource;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const ExporterField* Find(std::string_view name) {
  const auto fields = TheExporter().fields();
  const auto found = std::ranges::find(fields, name, &ExporterField::name);
  return found == fields.end() ? nullptr : &*found;
}

device::Facts Mi300x() {
  device::Facts facts{.id = "GPU-2efe9cea14a6b148",
                      .vendor = "amd",
                      .model = "AMD Instinct MI300X OAM",
                      .index = 3};
  facts.serial = "692547000003";
  facts.details = {{kNumber, "24"},
                   {kDeviceId, "74a1"},
                   {kProductNumber, "102-G30211-00"},
                   {kManufacturer, "AMD"},
                   {"vbios", "113-M3000100-102"}};
  facts.modes = {{.name = kComputePartition, .current = "SPX"},
                 {.name = kMemoryPartition, .current = "NPS1"}};
  return facts;
}

// metricslist.md: every name, whether it can be had here or not; one of each kind of those that are
// the same but for a block or a counter.
TEST(AmdExporter, KnowsTheNamesOfTheReference) {
  for (const char* name : {"gpu_nodes_total",
                           "gpu_edge_temperature",
                           "gpu_junction_temperature",
                           "gpu_memory_temperature",
                           "gpu_hbm_temperature",
                           "gpu_package_power",
                           "gpu_average_package_power",
                           "gpu_power_usage",
                           "gpu_energy_consumed",
                           "gpu_gfx_activity",
                           "gpu_umc_activity",
                           "gpu_mma_activity",
                           "gpu_vcn_activity",
                           "gpu_jpeg_activity",
                           "gpu_gfx_busy_instantaneous",
                           "gpu_vcn_busy_instantaneous",
                           "gpu_jpeg_busy_instantaneous",
                           "gpu_voltage",
                           "gpu_gfx_voltage",
                           "gpu_memory_voltage",
                           "pcie_speed",
                           "pcie_max_speed",
                           "pcie_bandwidth",
                           "pcie_replay_count",
                           "pcie_recovery_count",
                           "pcie_replay_rollover_count",
                           "pcie_nack_sent_count",
                           "pcie_nack_received_count",
                           "pcie_rx",
                           "pcie_tx",
                           "pcie_bidirectional_bandwidth",
                           "gpu_clock",
                           "gpu_min_clock",
                           "gpu_max_clock",
                           "gpu_total_vram",
                           "gpu_used_vram",
                           "gpu_free_vram",
                           "gpu_total_visible_vram",
                           "gpu_used_visible_vram",
                           "gpu_free_visible_vram",
                           "gpu_total_gtt",
                           "gpu_used_gtt",
                           "gpu_free_gtt",
                           "gpu_ecc_correct_total",
                           "gpu_ecc_uncorrect_total",
                           "gpu_ecc_deferred_total",
                           "gpu_ecc_correct_bif",
                           "gpu_ecc_uncorrect_xgmi_wafl",
                           "gpu_ecc_deferred_mpio",
                           "gpu_xgmi_nbr_0_nop_tx",
                           "gpu_xgmi_nbr_5_tx_thrput",
                           "gpu_xgmi_link_rx",
                           "gpu_xgmi_link_tx",
                           "gpu_violation_current_accumulated_counter",
                           "gpu_violation_processor_hot_residency_accumulated",
                           "gpu_violation_ppt_residency_accumulated",
                           "gpu_violation_socket_thermal_residency_accumulated",
                           "gpu_violation_vr_thermal_residency_accumulated",
                           "gpu_violation_hbm_thermal_residency_accumulated",
                           "gpu_violation_processor_hot_residency_percentage",
                           "gpu_violation_gfx_clock_below_host_limit_power_accumulated",
                           "gpu_violation_gfx_clock_below_host_limit_thermal_accumulated",
                           "gpu_violation_low_utilization_accumulated",
                           "gpu_violation_gfx_clock_below_host_limit_total_accumulated",
                           "gpu_violation_low_utilization_percentage",
                           "gpu_health",
                           "gpu_afid_errors",
                           "gpu_vram_max_bandwidth",
                           "gpu_process_cu_occupancy",
                           "gpu_prof_sm_active",
                           "gpu_prof_cpf_cpf_tciu_stall",
                           "gpu_prof_simd_utilization"})
    EXPECT_NE(Find(name), nullptr) << name;
}

TEST(AmdExporter, HasEachNameOnceInOrder) {
  std::set<std::string_view> names;
  int last = -1;
  for (const ExporterField& field : TheExporter().fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_EQ(field.number, ++last);
  }
}

TEST(AmdExporter, EveryFieldHasAQuantityOrAReason) {
  for (const ExportedField& one : ExportedFields()) {
    const auto quantity =
        std::ranges::find(TheQuantities(), one.field.from, &device::Quantity::key);
    if (one.field.source == FieldSource::kQuantity) {
      ASSERT_NE(quantity, TheQuantities().end()) << one.field.name << ": " << one.field.from;
      EXPECT_EQ(quantity->per_link, one.field.index || one.field.one_link >= 0) << one.field.name;
      EXPECT_EQ(one.field.index, !one.index.empty()) << one.field.name;
      EXPECT_FALSE(one.help.empty()) << one.field.name;
    }
    if (one.field.source == FieldSource::kUnavailable) {
      EXPECT_FALSE(one.field.from.empty()) << one.field.name;
    }
  }
}

TEST(AmdExporter, EveryQuantityWithoutAFamilyIsAFields) {
  for (const device::Quantity& quantity : TheQuantities()) {
    if (!quantity.family.empty()) continue;
    EXPECT_TRUE(std::ranges::any_of(TheExporter().fields(), [&](const ExporterField& field) {
      return field.from == quantity.key;
    })) << quantity.key;
  }
}

TEST(AmdExporter, AllItsFamiliesAreGauges) {
  for (const device::CounterRow& row : TheExporter().DefaultRows()) {
    EXPECT_EQ(row.type, "gauge") << row.field;
    EXPECT_EQ(Find(row.field)->new_name, "") << row.field;
  }
}

TEST(AmdExporter, LabelsAreThoseOfTheExporter) {
  const device::Facts gpu = Mi300x();
  EXPECT_THAT(
      TheExporter().LabelsOf(gpu, nullptr, -1, {.hostname = "node-1"}),
      ElementsAre(Pair("gpu_id", "24"), Pair("gpu_partition_id", "0"),
                  Pair("gpu_compute_partition_type", "spx"),
                  Pair("gpu_memory_partition_type", "nps1"), Pair("card_model", "102-G30211-00"),
                  Pair("serial_number", "692547000003"), Pair("hostname", "node-1")));
  EXPECT_THAT(
      TheExporter().HolderLabels({.pod = "train", .namespace_name = "ml", .container = "c"}, {}),
      ElementsAre(Pair("pod", "train"), Pair("namespace", "ml"), Pair("container", "c")));
}

TEST(AmdExporter, APartitionHasTheLabelsOfItsGpuAndItsNumbers) {
  device::Facts gpu = Mi300x(), part = Mi300x();
  gpu.modes[0].current = "CPX";
  part.id += "-3";
  part.part = "3";
  part.details[kNumber] = "27";
  part.serial.clear();
  part.modes.clear();
  EXPECT_THAT(
      TheExporter().LabelsOf(part, &gpu, -1, {.hostname = "n"}),
      ElementsAre(Pair("gpu_id", "27"), Pair("gpu_partition_id", "3"),
                  Pair("gpu_compute_partition_type", "cpx"),
                  Pair("gpu_memory_partition_type", "nps1"), Pair("card_model", "102-G30211-00"),
                  Pair("serial_number", "692547000003"), Pair("hostname", "n")));
  EXPECT_FALSE(TheExporter().IsOfWhole(*Find("gpu_package_power"), part));
  part.part = "0";
  EXPECT_TRUE(TheExporter().IsOfWhole(*Find("gpu_package_power"), part));
}

// gpu-agent, smi_api.cc, has this one as its example.
TEST(AmdExporter, TheUuidIsThatOfAmdsLibrary) {
  device::Facts facts = Mi300x();
  const device::Driver driver{.vendor = "amd", .version = "6.14.14"};
  const auto fact = [&](const char* name) {
    return TheExporter().Fact(*Find(name), facts, &driver);
  };
  EXPECT_EQ(fact("gpu_uuid"), "2eff74a1-0000-1000-80fe-9cea14a6b148");
  EXPECT_EQ(fact("card_series"), "AMD Instinct MI300X OAM");
  EXPECT_EQ(fact("card_vendor"), "AMD");
  EXPECT_EQ(fact("driver_version"), "6.14.14");
  EXPECT_EQ(fact("vbios_version"), "113-M3000100-102");
  facts.part = "5";
  EXPECT_EQ(fact("gpu_uuid"), "2e0574a1-0000-1000-80fe-9cea14a6b148") << "of a partition";
  facts.id = "GPU-0000:05:00.0";
  EXPECT_EQ(fact("gpu_uuid"), "") << "a GPU without a unique_id";
}

TEST(AmdExporter, ClocksAreNumberedAsAmdsAgentNumbersThem) {
  const ExporterField& clock = *Find("gpu_clock");
  const auto labels = [&clock](const char* index) {
    return TheExporter().PartLabels(clock, index, {}, 0);
  };
  EXPECT_THAT(labels("7"), ElementsAre(Pair("clock_index", "7"), Pair("clock_type", "system")));
  EXPECT_THAT(labels("8"), ElementsAre(Pair("clock_index", "8"), Pair("clock_type", "memory")));
  EXPECT_THAT(labels("9"), ElementsAre(Pair("clock_index", "9"), Pair("clock_type", "video")));
  EXPECT_THAT(labels("14"), ElementsAre(Pair("clock_index", "14"), Pair("clock_type", "data")));
  EXPECT_THAT(labels("17"), ElementsAre(Pair("clock_index", "17"), Pair("clock_type", "soc")));
  EXPECT_THAT(TheExporter().PartLabels(*Find("gpu_hbm_temperature"), "2", {}, 0),
              ElementsAre(Pair("hbm_index", "2")));
  EXPECT_THAT(TheExporter().PartLabels(*Find("gpu_health"), "2", {}, 0), IsEmpty());
}

}  // namespace
}  // namespace penstock::backend::amd
