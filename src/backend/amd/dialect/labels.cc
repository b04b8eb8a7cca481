#include "backend/amd/dialect/labels.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "backend/amd/dialect/kinds.h"
#include "base/core/strings.h"

namespace penstock::backend::amd {
namespace {

using device::Facts;

constexpr std::size_t kMaxName = 63;  // Kubernetes, "Labels and Selectors"

std::string AsLabel(std::string_view text) {
  std::string label;
  for (const char c : text) {
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
    if (fits || (!label.empty() && label.back() != '_')) label += fits ? c : '_';
  }
  while (!label.empty() && std::isalnum(static_cast<unsigned char>(label.back())) == 0)
    label.pop_back();
  return label;
}

std::string Detail(const Facts& device, const char* name) {
  const auto found = device.details.find(name);
  return found == device.details.end() ? "" : found->second;
}

const device::Mode* ModeOf(const Facts& device, const char* name) {
  const auto found = std::ranges::find(device.modes, name, &device::Mode::name);
  return found == device.modes.end() ? nullptr : &*found;
}

std::string Vram(const Facts& device) {
  constexpr std::uint64_t kGibibyte = 1u << 30;
  if (device.memory.count == 0) return "";
  return std::to_string((device.memory.count + kGibibyte / 2) / kGibibyte) + "G";
}

/// How many devices have which value, by kind of label.
class Counts {
 public:
  void Add(const char* kind, const std::string& value) {
    if (const std::string label = AsLabel(value); !label.empty()) ++counts_[kind][label];
  }

  std::map<std::string, std::string> Labels() const {
    std::map<std::string, std::string> labels;
    for (const auto& [kind, values] : counts_) {
      const std::string name = "gpu." + kind;
      for (const auto& [value, count] : values) {
        std::string counted = (name + "." + value).substr(0, kMaxName);
        while (std::isalnum(static_cast<unsigned char>(counted.back())) == 0) counted.pop_back();
        labels["beta.amd.com/" + counted] = std::to_string(count);
        if (values.size() > 1) labels["amd.com/" + counted] = std::to_string(count);
      }
      if (values.size() == 1)
        for (const char* prefix : {"beta.amd.com/", "amd.com/"})
          labels[prefix + name] = values.begin()->first;
    }
    return labels;
  }

 private:
  std::map<std::string, std::map<std::string, int>> counts_;
};

void AddDevice(Counts& counts, const Facts& device) {
  counts.Add("device-id", Detail(device, kDeviceId));
  counts.Add("product-name", device.model);
  counts.Add("vram", Vram(device));
  counts.Add("simd-count", Detail(device, kSimds));
  if (device.compute_units > 0) counts.Add("cu-count", std::to_string(device.compute_units));
  counts.Add("family", "AI");  // AMDGPU_FAMILY_AI, that of every Instinct since Vega
  counts.Add("compute-memory-partition", PartitionModes(device));
  counts.Add("driver-src-version", Detail(device, kSourceVersion));
}

}  // namespace

std::string PartitionModes(const Facts& device) {
  if (!device.profile.empty()) return device.profile;
  const device::Mode* compute = ModeOf(device, kComputePartition);
  if (compute == nullptr) return "";
  const device::Mode* memory = ModeOf(device, kMemoryPartition);
  return base::ToLower(compute->current) +
         (memory == nullptr ? "" : "_" + base::ToLower(memory->current));
}

std::map<std::string, std::string> NodeLabels(const device::LabelFacts& facts) {
  if (facts.devices.empty()) return {};
  std::set<std::string> divided;
  Counts counts;
  for (const Facts* part : facts.parts) {
    divided.insert(part->parent);
    AddDevice(counts, *part);
  }
  bool compute = false, memory = false;
  for (const Facts* device : facts.devices) {
    const device::Mode* of_memory = ModeOf(*device, kMemoryPartition);
    const device::Mode* of_compute = ModeOf(*device, kComputePartition);
    compute = compute || (of_compute != nullptr && !of_compute->available.empty());
    memory = memory || (of_memory != nullptr && !of_memory->available.empty());
    if (!divided.contains(device->id)) AddDevice(counts, *device);
  }
  if (facts.driver != nullptr) counts.Add("driver-version", facts.driver->version);
  auto labels = counts.Labels();
  labels["amd.com/gpu.compute-partitioning-supported"] = compute ? "true" : "false";
  labels["amd.com/gpu.memory-partitioning-supported"] = memory ? "true" : "false";
  return labels;
}

}  // namespace penstock::backend::amd
