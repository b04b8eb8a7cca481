// AMD's names, on devices as the backend describes them.
#include "device/dialect.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/amd/dialect/kinds.h"
#include "backend/amd/dialect/quantities.h"

namespace penstock::backend::amd {

const device::Dialect& TheDialect();

namespace {

using device::Facts;
using testing::Contains;
using testing::IsEmpty;
using testing::Pair;

Facts Mi300x(int index, int partitions = 1) {
  Facts facts{.id = "GPU-000000000000000" + std::to_string(index),
              .vendor = "amd",
              .model = "AMD Instinct MI300X OAM",
              .index = index,
              .memory = base::Mebibytes(192 * 1024 / static_cast<std::uint64_t>(partitions)),
              .compute_units = 304 / partitions};
  facts.details = {{kDeviceId, "74a1"},
                   {kSimds, std::to_string(1216 / partitions)},
                   {kNumber, std::to_string(index)}};
  facts.modes = {{.name = kComputePartition, .current = "SPX", .available = {"SPX", "CPX"}},
                 {.name = kMemoryPartition, .current = "NPS1", .available = {"NPS1", "NPS4"}}};
  const auto minor = static_cast<std::uint32_t>(index);
  facts.files = {{"/dev/dri/card" + std::to_string(index), 226, minor},
                 {"/dev/dri/renderD" + std::to_string(128 + index), 226, 128 + minor}};
  return facts;
}

Facts PartOf(const Facts& whole, int number) {
  Facts facts = Mi300x(number, 8);
  facts.id = whole.id + "-" + std::to_string(number);
  facts.index = -1;
  facts.parent = whole.id;
  facts.profile = "cpx_nps4";
  facts.modes.clear();
  return facts;
}

const device::Driver kDriver{
    .vendor = "amd", .version = "6.12.107", .files = {{"/dev/kfd", 511, 0}}};

TEST(AmdDialect, GivesKfdOnceAndOfEachDeviceItsCardAndRenderNode) {
  const Facts first = Mi300x(0), second = Mi300x(1);
  const std::vector<const Facts*> both{&first, &second};
  const auto edits = TheDialect().ForContainer(both, kDriver, device::DeviceNames::kIds);
  std::vector<std::string> files;
  for (const auto& file : edits.files) {
    files.push_back(file.host_path);
    EXPECT_EQ(file.permissions, "rw");
  }
  EXPECT_EQ(files, (std::vector<std::string>{"/dev/kfd", "/dev/dri/card0", "/dev/dri/renderD128",
                                             "/dev/dri/card1", "/dev/dri/renderD129"}));
  EXPECT_THAT(edits.environment, IsEmpty());
  EXPECT_THAT(TheDialect().ForContainer({}, kDriver, device::DeviceNames::kIds).files, IsEmpty());
}

TEST(AmdDialect, NamesResourcesAsAmdsPluginDoes) {
  const Facts whole = Mi300x(0), part = PartOf(whole, 3);
  EXPECT_EQ(TheDialect().resource(), "amd.com/gpu");
  EXPECT_EQ(TheDialect().PartResource(part), "amd.com/cpx_nps4");
  EXPECT_EQ(TheDialect().WholeResource(whole), "amd.com/spx_nps1");
  Facts undivided = whole;
  undivided.modes.clear();
  EXPECT_EQ(TheDialect().WholeResource(undivided), "amd.com/gpu") << "an MI210 has no modes";
  EXPECT_EQ(TheDialect().usual_part_names(), device::PartNames::kOfDevices);
  EXPECT_EQ(TheDialect().ModelResource(whole), "amd.com/instinct-mi300x-oam");
  EXPECT_EQ(TheDialect().cdi_kind(), "amd.com/gpu");
  const std::vector both{device::CdiNames::kIndex, device::CdiNames::kUuid};
  EXPECT_EQ(TheDialect().CdiNamesOf(part, both), (std::vector<std::string>{"3", part.id}));
}

TEST(AmdDialect, LabelsOneModelWithItsValueAndTheOldPrefixWithCountsToo) {
  const Facts first = Mi300x(0), second = Mi300x(1);
  const auto labels = TheDialect().Labels({.devices = {&first, &second}, .driver = &kDriver});
  EXPECT_THAT(labels, Contains(Pair("amd.com/gpu.product-name", "AMD_Instinct_MI300X_OAM")));
  EXPECT_THAT(labels, Contains(Pair("amd.com/gpu.vram", "192G")));
  EXPECT_THAT(labels, Contains(Pair("amd.com/gpu.cu-count", "304")));
  EXPECT_THAT(labels, Contains(Pair("amd.com/gpu.compute-memory-partition", "spx_nps1")));
  EXPECT_THAT(labels, Contains(Pair("amd.com/gpu.compute-partitioning-supported", "true")));
  EXPECT_THAT(labels, Contains(Pair("amd.com/gpu.driver-version", "6.12.107")));
  EXPECT_THAT(labels, Contains(Pair("beta.amd.com/gpu.device-id", "74a1")));
  EXPECT_THAT(labels, Contains(Pair("beta.amd.com/gpu.device-id.74a1", "2")));
  EXPECT_FALSE(labels.contains("amd.com/gpu.device-id.74a1"));
  EXPECT_THAT(TheDialect().Labels({}), IsEmpty());
}

TEST(AmdDialect, LabelsSeveralValuesWithTheirCounts) {
  const Facts whole = Mi300x(0), divided = Mi300x(1);
  const Facts part = PartOf(divided, 1), other = PartOf(divided, 2);
  const auto labels =
      TheDialect().Labels({.devices = {&whole, &divided}, .parts = {&part, &other}});
  EXPECT_FALSE(labels.contains("amd.com/gpu.cu-count"));
  EXPECT_THAT(labels, Contains(Pair("amd.com/gpu.cu-count.304", "1")));
  EXPECT_THAT(labels, Contains(Pair("amd.com/gpu.cu-count.38", "2")));
  EXPECT_THAT(labels, Contains(Pair("amd.com/gpu.compute-memory-partition.cpx_nps4", "2")));
}

TEST(AmdDialect, KeepsLabelsWithinTheirCharactersAndLength) {
  Facts strange = Mi300x(0);
  strange.model = "AMD (R) \"Instinct\" " + std::string(100, 'x') + " ü";
  for (const auto& [key, value] : TheDialect().Labels({.devices = {&strange}})) {
    EXPECT_LE(key.size() - key.find('/') - 1, 63u) << key;
    EXPECT_THAT(value, testing::MatchesRegex("[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"));
  }
}

TEST(AmdDialect, JudgesErrorsByWhatEndsThem) {
  const auto severity = [](std::string_view kind) {
    return TheDialect().Judge({.kind = std::string(kind), .code = 3, .text = "umc"}).severity;
  };
  EXPECT_EQ(severity(kRasUncorrectable), device::Severity::kReset);
  EXPECT_EQ(severity(kPagesFailed), device::Severity::kReset);
  EXPECT_EQ(severity(kInReset), device::Severity::kDrain);
  EXPECT_EQ(severity(kRasDeferred), device::Severity::kWarn);
  EXPECT_EQ(severity(kPagesPending), device::Severity::kWarn);
  EXPECT_EQ(severity(kPartitionsMissing), device::Severity::kWarn);
  const auto reset = TheDialect().Judge({.kind = std::string(kInReset), .text = "GPU-1"});
  EXPECT_EQ(reset.reason, "the GPU is being reset together with GPU-1, in whose hive it is");
}

TEST(AmdDialect, TakesEvidenceFromTheKernelsLog) {
  const auto evidence = TheDialect().FromKernelLog(
      "amdgpu 0000:05:00.0: amdgpu: GPU reset(2) failed with error -110 ");
  ASSERT_TRUE(evidence.has_value());
  const device::Verdict verdict = TheDialect().Judge(*evidence);
  EXPECT_EQ(verdict.severity, device::Severity::kReset);
  EXPECT_EQ(verdict.reason, "the driver could not reset the GPU (error 110)");
}

TEST(AmdDialect, AnswersAsDcmDoes) {
  using device::LayoutFailure;
  using device::LayoutStage;
  const device::PartTerms& terms = *TheDialect().part_terms();
  EXPECT_EQ(terms.request_label, "dcm.amd.com/gpu-config-profile");
  EXPECT_EQ(terms.state_label, "dcm.amd.com/gpu-config-profile-state");
  EXPECT_EQ(terms.state_words.at(LayoutStage::kSuccess), "success");
  EXPECT_EQ(terms.state_words.at(LayoutStage::kFailed), "failure");
  const auto failed = [&](LayoutFailure why) {
    return terms.event(LayoutStage::kFailed, why, false);
  };
  EXPECT_EQ(failed(LayoutFailure::kNoFile), "ConfigMapNotPresent");
  EXPECT_EQ(failed(LayoutFailure::kNotReadable), "InvalidJSONInConfigMap");
  EXPECT_EQ(failed(LayoutFailure::kUnknown), "NonExistentProfile");
  EXPECT_EQ(failed(LayoutFailure::kImpossible), "InvalidProfileInfo");
  EXPECT_EQ(failed(LayoutFailure::kNoComputeMode), "InvalidComputeType");
  EXPECT_EQ(failed(LayoutFailure::kNoMemoryMode), "InvalidMemoryType");
  EXPECT_EQ(failed(LayoutFailure::kNotDone), "PartitionFailure");
  EXPECT_EQ(terms.event(LayoutStage::kSuccess, LayoutFailure::kNone, false),
            "RequestedPartitionConfigAlreadyExists");
  EXPECT_EQ(terms.event(LayoutStage::kSuccess, LayoutFailure::kNone, true),
            "SuccessfullyPartitioned");
}

TEST(AmdDialect, SharesByTimeSlicingOnly) {
  const Facts whole = Mi300x(0);
  EXPECT_EQ(TheDialect().WhyNotShared(whole, {device::Sharing::kTimeSlicing, 4}), "");
  EXPECT_THAT(TheDialect().WhyNotShared(whole, {device::Sharing::kServer, 4}),
              testing::HasSubstr("use timeSlicing"));
}

TEST(AmdDialect, MeasuresEachQuantityUnderItsOwnKey) {
  std::set<std::string_view> keys;
  for (const auto& quantity : TheDialect().Quantities()) {
    EXPECT_TRUE(keys.insert(quantity.key).second) << quantity.key;
    EXPECT_FALSE(quantity.source.empty()) << quantity.key;
  }
  EXPECT_FALSE(GpuQuantityOf(static_cast<device::QuantityId>(keys.size())));
}

}  // namespace
}  // namespace penstock::backend::amd
