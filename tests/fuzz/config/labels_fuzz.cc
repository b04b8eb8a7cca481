// Fuzzes the sources of labels: firmware, drivers, hypervisors and distributions. Kubernetes must
// accept the labels whatever these report.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "api/labels.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "node/label/features_file.h"
#include "node/label/labels.h"
#include "os/cpu_features.h"

namespace {

using namespace penstock;

/// The lines of the input, one per fact; missing lines are empty.
class Lines {
 public:
  explicit Lines(std::string_view text) : lines_(base::Split(text, '\n')) {}
  std::string Next() { return at_ < lines_.size() ? lines_[at_++] : ""; }

 private:
  std::vector<std::string> lines_;
  std::size_t at_ = 0;
};

device::Facts Gpu(int index, Lines& lines) {
  device::Facts facts;
  facts.id = "GPU-" + std::to_string(index);
  facts.vendor = "nvidia";
  facts.index = index;
  facts.model = lines.Next();
  facts.architecture_version = lines.Next();
  facts.architecture = lines.Next();
  for (const char* detail : {"pci.class", "fabric.cluster", "fabric.clique", "virtualization"})
    facts.details[detail] = lines.Next();
  return facts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Lines lines(text);
  node::label::LabelContext context;
  context.machine.product = lines.Next();
  context.machine.kernel = lines.Next();
  context.machine.os_id = lines.Next();
  context.machine.os_version_id = lines.Next();
  const os::CpuFeatures cpu = os::DecodeCpuinfo(text);
  context.machine.cpu_vendor = cpu.vendor;
  context.machine.cpu_flags = cpu.flags;
  // The whole input is also a PCI configuration space.
  context.machine.pci = {{"0000:01:00.0", 0x10de, 1, 0x030200, text}};

  node::inventory::Snapshot snapshot;
  device::Driver driver{.vendor = "nvidia"};
  driver.version = lines.Next();
  driver.runtime_version = lines.Next();
  snapshot.vendors = {{"nvidia", std::make_shared<const device::Driver>(driver), ""}};
  for (int i = 0; i < 2; ++i)
    snapshot.devices.push_back(
        {std::make_shared<const device::Facts>(Gpu(i, lines)), {}, nullptr, {}});

  const auto labels = node::label::ComputeLabels(snapshot, backend::FindDialect, context);
  for (const auto& [key, value] : labels)
    if (!api::IsLabelKey(key) || !api::IsLabelValue(value)) std::abort();
  if (labels.find("nvidia.com/gpu.present") == labels.end()) std::abort();
  std::swap(snapshot.devices[0], snapshot.devices[1]);
  if (node::label::ComputeLabels(snapshot, backend::FindDialect, context) != labels) std::abort();
  if (node::label::FeaturesText(labels).size() > 65536) std::abort();
  return 0;
}
