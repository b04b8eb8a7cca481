// Acme's backend: reads the machine's files at each call.
#include <memory>

#include "acme/machine.h"
#include "base/core/strings.h"
#include "device/testing/acme.h"

namespace penstock::backend::acme {
namespace {

using base::Code;
using base::Error;
using device::testing::kAcmeQuantities;

std::string Text(const Lines& lines, const std::string& key) {
  const auto found = lines.find(key);
  return found == lines.end() ? "" : found->second;
}

std::int64_t Number(const Lines& lines, const std::string& key, std::int64_t otherwise = 0) {
  return base::ParseInt(Text(lines, key)).value_or(otherwise);
}

/// The words of each line of this key.
std::vector<std::vector<std::string>> All(const Lines& lines, const std::string& key) {
  std::vector<std::vector<std::string>> all;
  const auto [first, last] = lines.equal_range(key);
  for (auto line = first; line != last; ++line) all.push_back(base::Split(line->second, ' '));
  return all;
}

std::int64_t Word(const std::vector<std::string>& words, std::size_t position) {
  return position < words.size() ? base::ParseInt(words[position]).value_or(0) : 0;
}

class AcmeBackend final : public device::Backend {
 public:
  explicit AcmeBackend(const device::Paths& paths) : machine_(paths.driver_root) {}

  std::string vendor() const override { return "acme"; }

  base::Result<device::Driver> Open() override {
    ASSIGN(const std::string version, machine_.Version());
    return device::Driver{.vendor = vendor(), .version = version};
  }

  base::Result<std::vector<std::string>> List() override { return machine_.Addresses(); }

  base::Result<device::Facts> Describe(const std::string& address) override {
    ASSIGN(const Lines lines, Lost(machine_.Device(address)));
    device::Facts facts{.id = Text(lines, "id"),
                        .vendor = vendor(),
                        .kind = Text(lines, "kind") == "accelerator"
                                    ? device::DeviceKind::kAccelerator
                                    : device::DeviceKind::kGpu,
                        .model = Text(lines, "model"),
                        .index = static_cast<int>(Number(lines, "index", -1)),
                        .address = address,
                        .pci = device::ParsePciAddress(Text(lines, "pci")),
                        .memory = base::Mebibytes(Number(lines, "memory")),
                        .compute_units = static_cast<int>(Number(lines, "units")),
                        .serial = Text(lines, "serial"),
                        .parent = Text(lines, "parent")};
    if (lines.contains("numa")) facts.numa_node = static_cast<int>(Number(lines, "numa"));
    for (const auto& words : All(lines, "file"))
      facts.files.push_back({words.front(), static_cast<std::uint32_t>(Word(words, 1)),
                             static_cast<std::uint32_t>(Word(words, 2))});
    for (const auto& words : All(lines, "link"))
      facts.links.push_back(
          {words.front(), device::Nearness::kPciSwitch, static_cast<int>(Word(words, 1))});
    return facts;
  }

  base::Result<device::Reading> Read(const std::string& address) override {
    ASSIGN(const Lines lines, Lost(machine_.Device(address)));
    device::Reading reading;
    const std::string id = Text(lines, "id");
    for (const auto& words : All(lines, "fault"))
      reading.evidence.push_back(
          {.device = id, .kind = words.front(), .code = Word(words, 1), .standing = true});
    for (const auto& words : All(lines, "process"))
      reading.processes.push_back(
          {static_cast<std::int32_t>(Word(words, 0)), base::Mebibytes(Word(words, 1))});
    return reading;
  }

  base::Result<device::Sample> TakeSample(const std::string& address,
                                          const device::SampleRequest& request) override {
    ASSIGN(const Lines lines, Lost(machine_.Device(address)));
    device::Sample sample;
    for (const device::QuantityId quantity : request.quantities) {
      const std::string key(kAcmeQuantities[quantity].key);
      if (lines.contains(key)) {
        sample.values.push_back(
            {.quantity = quantity, .number = static_cast<std::uint64_t>(Number(lines, key))});
      } else {
        sample.unsupported.push_back(quantity);
      }
    }
    for (const auto& words : All(lines, "process"))
      sample.processes.push_back({.pid = static_cast<std::int32_t>(Word(words, 0)),
                                  .memory = base::Mebibytes(Word(words, 1))});
    return sample;
  }

  base::Result<std::vector<device::Evidence>> Wait(std::chrono::milliseconds) override {
    return Error(Code::kUnimplemented, "Acme's driver has no events");
  }

  void Close() override {}

 private:
  static base::Result<Lines> Lost(base::Result<Lines> lines) {
    if (lines.ok()) return lines;
    return Error(Code::kDataLoss, lines.error().message());
  }

  const Machine machine_;
};

}  // namespace

std::unique_ptr<device::Backend> MakeBackend(const device::Paths& paths) {
  return std::make_unique<AcmeBackend>(paths);
}

}  // namespace penstock::backend::acme
