// Tests DCGM's names, which pages, dashboards and alerts of its exporter's users depend on.
#include "backend/nvidia/dialect/dcgm/dcgm.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/dialect/dcgm/dcgm_fields.h"
#include "backend/nvidia/dialect/kinds.h"
#include "backend/nvidia/dialect/quantities.h"

namespace penstock::backend::nvidia {
namespace {

using device::ExporterField;
using device::Facts;
using device::FieldSource;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

Facts Gpu() {
  Facts facts;
  facts.id = "GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52";
  facts.model = "NVIDIA A100-SXM4 40GB";
  facts.index = 3;
  facts.pci = device::PciAddress{0, 0x8d, 0, 0};
  facts.serial = "1322621065678";
  facts.architecture_version = "8.0";
  facts.details = {{"vbios", "92.00.45.00.05"},
                   {"brand", "NVIDIA"},
                   {kInforomImage, "G506.0210.00.04"},
                   {kInforomEcc, "6.16"}};
  return facts;
}

std::string FactOf(std::string_view name, const Facts& facts,
                   const device::Driver* driver = nullptr) {
  return DcgmExporter().Fact(*FindDcgmField(name), facts, driver);
}

TEST(Dcgm, FieldsNameQuantitiesThatThereAre) {
  for (const ExporterField& field : DcgmFields()) {
    if (field.source == FieldSource::kQuantity) {
      const auto id = FindQuantity(field.from);
      ASSERT_TRUE(id.has_value()) << field.name << ": " << field.from;
      EXPECT_EQ(TheQuantities()[*id].per_link, field.link || field.one_link >= 0) << field.name;
    }
    EXPECT_TRUE((field.source != FieldSource::kReasonsInWindow &&
                 field.source != FieldSource::kReasonsTotal) ||
                FindQuantity(field.from))
        << field.name;
    EXPECT_TRUE(field.source != FieldSource::kUnavailable || !field.from.empty())
        << field.name << " is unavailable and needs a reason";
    EXPECT_NE(field.divisor, 0) << field.name;
  }
}

TEST(Dcgm, NoQuantityIsCollectedForNoOne) {
  std::set<std::string_view> shown;
  for (const ExporterField& field : DcgmFields()) shown.insert(field.from);
  for (const device::Quantity& quantity : TheQuantities())
    EXPECT_TRUE(!quantity.family.empty() || shown.contains(quantity.key)) << quantity.key;
}

TEST(Dcgm, NamesAreTheirFieldsOwn) {
  std::set<std::string_view> names;
  int last = 0;
  for (const ExporterField& field : DcgmFields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_NE(field.name, field.new_name) << "new_name must be empty where it is the same";
    EXPECT_GE(field.number, last) << field.name;
    last = field.number;
  }
  EXPECT_GT(names.size(), 600u);
  EXPECT_EQ(FindDcgmField("DCGM_FI_NO_SUCH_FIELD"), nullptr);
  EXPECT_EQ(FindDcgmField("DCGM_FI_DEV_SM_CLOCK_HERTZ")->name, "DCGM_FI_DEV_SM_CLOCK");
}

TEST(Dcgm, DefaultRowsAreTheExportersOwn) {
  const auto rows = DcgmExporter().DefaultRows();
  EXPECT_EQ(rows.size(), 26u);
  std::set<std::string> names;
  for (const device::CounterRow& row : rows) {
    const ExporterField* field = FindDcgmField(row.field);
    ASSERT_NE(field, nullptr) << row.field;
    EXPECT_NE(field->source, FieldSource::kUnavailable) << row.field;
    EXPECT_EQ(field->source == FieldSource::kFact, row.type == "label") << row.field;
    EXPECT_TRUE(names.insert(row.field).second) << row.field;
  }
  const auto rate = std::find_if(rows.begin(), rows.end(), [](const auto& row) {
    return row.field == "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL";
  });
  ASSERT_NE(rate, rows.end());
  EXPECT_EQ(rate->type, "gauge") << "a rate; as in the exporter's files since 4.8.3";
  EXPECT_EQ(rows.front(),
            (device::CounterRow{"DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz)."}));
}

TEST(Dcgm, UnitsAreThoseOfEitherNaming) {
  const ExporterField& clock = *FindDcgmField("DCGM_FI_DEV_SM_CLOCK");
  EXPECT_EQ(1410 / clock.divisor, 1410);
  EXPECT_DOUBLE_EQ(1410 / clock.new_divisor, 1.41e9);
  const ExporterField& used = *FindDcgmField("DCGM_FI_DEV_FB_USED");
  EXPECT_EQ(used.divisor, 1048576);
  EXPECT_EQ(used.new_divisor, 1);
  EXPECT_FALSE(used.real);
  const ExporterField& power = *FindDcgmField("DCGM_FI_DEV_POWER_USAGE");
  EXPECT_TRUE(power.real && power.new_real);
  EXPECT_EQ(power.divisor, 1000);
  const ExporterField& use = *FindDcgmField("DCGM_FI_DEV_GPU_UTIL");
  EXPECT_TRUE(!use.real && use.new_real);
  EXPECT_EQ(use.new_divisor, 100);
  EXPECT_TRUE(FindDcgmField("DCGM_FI_PROF_GR_ENGINE_ACTIVE")->real);
}

// As in dcgm-exporter's own tests of its page.
TEST(Dcgm, LabelsStandInTheExportersOrder) {
  EXPECT_THAT(
      DcgmExporter().LabelsOf(Gpu(), nullptr, -1,
                              {.hostname = "node-1", .hostname_labels = {"Hostname"}}),
      ElementsAre(Pair("gpu", "3"), Pair("UUID", "GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"),
                  Pair("pci_bus_id", "00000000:8D:00.0"), Pair("device", "nvidia3"),
                  Pair("modelName", "NVIDIA A100-SXM4 40GB"), Pair("Hostname", "node-1")));
  const auto old =
      DcgmExporter().LabelsOf(Gpu(), nullptr, -1, {.old_names = true, .blanks_replaced = true});
  EXPECT_EQ(old[1].first, "uuid");
  EXPECT_EQ(old[4].second, "NVIDIA-A100-SXM4-40GB");
  EXPECT_EQ(old.size(), 5u) << "no host";
}

TEST(Dcgm, TheHostCanHaveBothLabelsOnEachSeries) {
  for (const int link : {-1, 7}) {
    const auto labels = DcgmExporter().LabelsOf(
        Gpu(), nullptr, link, {.hostname = "node-1", .hostname_labels = {"Hostname", "hostname"}});
    ASSERT_GE(labels.size(), 2u);
    EXPECT_THAT(std::vector(labels.end() - 2, labels.end()),
                ElementsAre(Pair("Hostname", "node-1"), Pair("hostname", "node-1")));
  }
}

TEST(Dcgm, LabelsOfALinkHaveOtherNames) {
  const auto labels = DcgmExporter().LabelsOf(
      Gpu(), nullptr, 7, {.hostname = "node-1", .hostname_labels = {"Hostname"}});
  EXPECT_THAT(labels,
              ElementsAre(Pair("nvlink", "7"), Pair("gpu", "3"),
                          Pair("gpu_uuid", "GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"),
                          Pair("pci_bus_id", "00000000:8D:00.0"), Pair("device", "nvidia3"),
                          Pair("model_name", "NVIDIA A100-SXM4 40GB"), Pair("hostname", "node-1")));
}

TEST(Dcgm, LabelsOfAPartitionAreItsGpusAndItsOwn) {
  Facts partition = Gpu();
  partition.id = "MIG-1";
  partition.parent = Gpu().id;
  partition.index = 0;
  partition.profile = "1g.5gb";
  partition.details = {{kGpuInstance, "9"}};
  const Facts parent = Gpu();
  const auto labels = DcgmExporter().LabelsOf(partition, &parent, -1, {});
  EXPECT_EQ(labels[0].second, "3");
  EXPECT_EQ(labels[1].second, parent.id);
  EXPECT_EQ(labels[5], (std::pair<std::string, std::string>("GPU_I_PROFILE", "1g.5gb")));
  EXPECT_EQ(labels[6], (std::pair<std::string, std::string>("GPU_I_ID", "9")));
}

// DCGM 4.6: which fields it reads from an instance, from its GPU, or not at all for an instance.
TEST(Dcgm, FieldsOfTheBoardAreOfEachInstance) {
  for (const char* name :
       {"DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"}) {
    const ExporterField* field = FindDcgmField(name);
    ASSERT_NE(field, nullptr) << name;
    EXPECT_TRUE(DcgmExporter().IsOfWhole(*field, device::Facts())) << name;
  }
  for (const char* name :
       {"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_FB_USED_PERCENT",
        "DCGM_FI_DEV_BAR1_USED", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PCIE_TX_BYTES",
        "DCGM_FI_PROF_NVLINK_RX_BYTES", "DCGM_FI_PROF_NVDEC0_ACTIVE"}) {
    const ExporterField* field = FindDcgmField(name);
    ASSERT_NE(field, nullptr) << name;
    EXPECT_FALSE(DcgmExporter().IsOfWhole(*field, device::Facts())) << name;
  }
}

TEST(Dcgm, LabelsOfHoldersAreThoseOfEitherTime) {
  const device::ExporterHolder holder{"train", "ml", "main", "5a1", "2"};
  EXPECT_THAT(DcgmExporter().HolderLabels(holder, {}),
              ElementsAre(Pair("container", "main"), Pair("namespace", "ml"), Pair("pod", "train"),
                          Pair("pod_uid", "5a1"), Pair("vgpu", "2")));
  EXPECT_THAT(DcgmExporter().HolderLabels({"train", "ml", "main", "", ""}, {.old_names = true}),
              ElementsAre(Pair("container_name", "main"), Pair("pod_name", "train"),
                          Pair("pod_namespace", "ml")));
  EXPECT_THAT(DcgmExporter().HolderLabels({}, {}), IsEmpty());
  for (const bool old_names : {false, true})
    EXPECT_THAT(DcgmExporter().HolderLabels({.job = "17"}, {.old_names = old_names}),
                ElementsAre(Pair("hpc_job", "17")));
}

// hpc.go of 4.8.4: an instance has the jobs of the file GPU.INSTANCE alone.
TEST(Dcgm, FilesOfJobsAreNamedByIndexAndInstance) {
  const Facts gpu = Gpu();
  EXPECT_EQ(DcgmExporter().JobFile(gpu, nullptr), "3");
  Facts partition = gpu;
  partition.index = 0;
  partition.details = {{kGpuInstance, "9"}};
  EXPECT_EQ(DcgmExporter().JobFile(partition, &gpu), "3.9");
  Facts unknown = gpu;
  unknown.index = -1;
  EXPECT_EQ(DcgmExporter().JobFile(unknown, nullptr), "");
  EXPECT_EQ(DcgmExporter().JobFile(partition, &unknown), "");
  EXPECT_EQ(DcgmExporter().JobFile(unknown, &gpu), "") << "no instance is known";
}

TEST(Dcgm, ErrorsAreReportedWithItsTexts) {
  EXPECT_THAT(DcgmExporter().ErrorLabels(79),
              ElementsAre(Pair("err_code", "79"), Pair("err_msg", "GPU has fallen off the bus")));
  EXPECT_EQ(DcgmErrorText(0), "No Error");
  EXPECT_EQ(DcgmErrorText(172), "Uncorrectable SRAM Error");
  EXPECT_EQ(DcgmErrorText(173), "Unknown Error");
  EXPECT_EQ(DcgmErrorText(-1), "Unknown Error");
}

TEST(Dcgm, TotalsHaveTheExportersLabels) {
  const auto labels = [](const char* name, std::string_view part) {
    return DcgmExporter().PartLabels(*FindDcgmField(name), part, std::chrono::minutes(5), 1);
  };
  EXPECT_THAT(labels("DCGM_EXP_XID_ERRORS_TOTAL", "79"), ElementsAre(Pair("xid", "79")));
  EXPECT_THAT(labels("DCGM_EXP_CLOCK_EVENTS_TOTAL", "power_cap"),
              ElementsAre(Pair("clock_event", "power_cap")));
  EXPECT_THAT(labels("DCGM_EXP_XID_ERRORS_COUNT", "79"),
              ElementsAre(Pair("window_size_in_ms", "300000"), Pair("xid", "79")));
}

TEST(Dcgm, HealthIsReportedOfTheWatchesThatEvidenceSpeaksOf) {
  const device::Exporter& dcgm = DcgmExporter();
  EXPECT_THAT(dcgm.watches(), ElementsAre("PCIE", "NVLINK", "MEM"));
  const std::map<std::int64_t, std::pair<std::string_view, std::string_view>> xids = {
      {48, {"MEM", "DCGM_FR_VOLATILE_DBE_DETECTED"}},
      {74, {"NVLINK", "DCGM_FR_NVLINK_ERROR_CRITICAL"}},
      {79, {"PCIE", "DCGM_FR_XID_ERROR"}},
      {145, {"NVLINK", "DCGM_FR_XID_ERROR"}},
      {119, {"", "DCGM_FR_XID_ERROR"}}};
  for (const auto& [xid, reported] : xids) {
    EXPECT_EQ(dcgm.WatchOf(kXid, xid).watch, reported.first) << xid;
    EXPECT_EQ(dcgm.WatchOf(kXid, xid).error, reported.second) << xid;
  }
  EXPECT_EQ(dcgm.WatchOf(kRemapPending, 1).error, "DCGM_FR_PENDING_ROW_REMAP");
  EXPECT_EQ(dcgm.WatchOf(kLost, 0).watch, "PCIE");
  EXPECT_EQ(dcgm.WatchOf("hang", 0).watch, "");
  EXPECT_THAT(dcgm.WatchLabels({}),
              ElementsAre(Pair("health_error_code", "DCGM_FR_OK"), Pair("health_watch", "ALL")));
  EXPECT_THAT(
      dcgm.WatchLabels({"MEM", "DCGM_FR_XID_ERROR"}),
      ElementsAre(Pair("health_error_code", "DCGM_FR_XID_ERROR"), Pair("health_watch", "MEM")));
}

TEST(Dcgm, FactsAreTheLabelRowsValues) {
  device::Driver driver;
  driver.version = "550.54.15";
  driver.runtime_version = "12.4";
  EXPECT_EQ(FactOf("DCGM_FI_DRIVER_VERSION", Gpu(), &driver), "550.54.15");
  EXPECT_EQ(FactOf("DCGM_FI_NVML_VERSION", Gpu(), &driver), "12.550.54.15");
  EXPECT_EQ(FactOf("DCGM_FI_CUDA_DRIVER_VERSION", Gpu(), &driver), "12040");
  EXPECT_EQ(FactOf("DCGM_FI_DRIVER_VERSION", Gpu()), "");
  EXPECT_EQ(FactOf("DCGM_FI_DEV_VBIOS_VERSION", Gpu()), "92.00.45.00.05");
  EXPECT_EQ(FactOf("DCGM_FI_DEV_SERIAL", Gpu()), "1322621065678");
  EXPECT_EQ(FactOf("DCGM_FI_DEV_BRAND", Gpu()), "NVIDIA");
  EXPECT_EQ(FactOf("DCGM_FI_DEV_INFOROM_IMAGE_VER", Gpu()), "G506.0210.00.04");
  EXPECT_EQ(FactOf("DCGM_FI_DEV_ECC_INFOROM_VER", Gpu()), "6.16");
  EXPECT_EQ(FactOf("DCGM_FI_DEV_OEM_INFOROM_VER", Gpu()), "");
  EXPECT_EQ(FactOf("DCGM_FI_DEV_CUDA_COMPUTE_CAPABILITY", Gpu()), "524288");
  EXPECT_EQ(DcgmExporter().NewLabel("DCGM_FI_DRIVER_VERSION"), "DCGM_FI_SYSTEM_DRIVER_VERSION");
  EXPECT_EQ(DcgmExporter().NewLabel("pod"), "pod");
}

}  // namespace
}  // namespace penstock::backend::nvidia
