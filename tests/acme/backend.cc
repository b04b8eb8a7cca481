// Acme's backend: reads the machine's files at each call, and divides devices by writing them.
#include <map>
#include <memory>
#include <optional>

#include "acme/division.h"
#include "acme/machine.h"
#include "base/core/strings.h"
#include "device/testing/acme.h"

namespace penstock::backend::acme {
namespace {

using base::Code;
using base::Error;
using device::testing::kAcmeQuantities;

/// That of the device of which this is the address, or that of a part that the driver has made.
std::string DeviceOf(const std::string& address) { return address.substr(0, address.find('.')); }

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
    ASSIGN(const auto found, Look(address));
    return described_[address] = FactsOf(found);
  }

  base::Result<device::Reading> Read(const std::string& address) override {
    ASSIGN(const auto found, Look(address));
    device::Reading reading;
    reading.facts_changed = described_[address] != FactsOf(found);
    const std::string id = found.part ? found.part->id : Text(found.lines, "id");
    // A fault is the device's, and a part's by being one of it.
    if (!found.part)
      for (const auto& words : All(found.lines, "fault"))
        reading.evidence.push_back(
            {.device = id, .kind = words.front(), .code = NumberAt(words, 1), .standing = true});
    for (const auto& words : ProcessesOn(found))
      reading.processes.push_back(
          {static_cast<std::int32_t>(NumberAt(words, 0)), base::Mebibytes(NumberAt(words, 1))});
    return reading;
  }

  base::Result<device::Sample> TakeSample(const std::string& address,
                                          const device::SampleRequest& request) override {
    ASSIGN(const auto found, Look(address));
    device::Sample sample;
    for (const device::QuantityId quantity : request.quantities) {
      const std::string key(kAcmeQuantities[quantity].key);
      if (found.lines.contains(key)) {
        sample.values.push_back(
            {.quantity = quantity, .number = static_cast<std::uint64_t>(Number(found.lines, key))});
      } else {
        sample.unsupported.push_back(quantity);
      }
    }
    for (const auto& words : ProcessesOn(found))
      sample.processes.push_back({.pid = static_cast<std::int32_t>(NumberAt(words, 0)),
                                  .memory = base::Mebibytes(NumberAt(words, 1))});
    return sample;
  }

  base::Status SetMode(const std::string& address, const std::string& mode,
                       const std::string& value) override {
    ASSIGN(auto found, Look(address));
    TRY(found.division.SetMode(mode, value));
    return machine_.SetDivision(DeviceOf(address), found.division.Encode());
  }

  base::Result<std::string> CreatePart(const std::string& device,
                                       const device::NewPart& part) override {
    ASSIGN(auto found, Look(device));
    ASSIGN(std::string created, found.division.Create(part));
    TRY(machine_.SetDivision(device, found.division.Encode()));
    return created;
  }

  base::Status DestroyPart(const std::string& address) override {
    ASSIGN(auto found, Look(address));
    TRY(found.division.Destroy(address));
    return machine_.SetDivision(DeviceOf(address), found.division.Encode());
  }

  base::Result<std::vector<device::Evidence>> Wait(std::chrono::milliseconds) override {
    return Error(Code::kUnimplemented, "Acme's driver has no events");
  }

  void Close() override {}

 private:
  /// A device, or a part of it that the driver has made.
  struct Found {
    Lines lines;  // of the device
    Division division;
    std::optional<Part> part;
  };

  base::Result<Found> Look(const std::string& address) const {
    const std::string device = DeviceOf(address);
    const auto lines = machine_.Device(device);
    if (!lines.ok()) return Error(Code::kDataLoss, lines.error().message());
    ASSIGN(const Lines division, machine_.Division(device));
    Found found{*lines, Division(device, *lines, division), std::nullopt};
    if (address == device) return found;
    const Part* part = found.division.Find(address);
    if (part == nullptr) return Error(Code::kNotFound, "there is no part " + address);
    found.part = *part;
    return found;
  }

  device::Facts FactsOf(const Found& found) const {
    device::Facts facts = FactsOfLines(found.lines, found.division.address());
    facts.modes = found.division.Modes();
    facts.profiles = found.division.profiles();
    for (const Part& part : found.division.parts()) facts.parts.push_back(part.id);
    if (!facts.modes.empty() && facts.modes.front().current == kOn)
      facts.withheld = "it is cut, and only its parts can be used";
    return found.part ? FactsOfPart(found, std::move(facts)) : facts;
  }

  device::Facts FactsOfLines(const Lines& lines, const std::string& address) const {
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
      facts.files.push_back({words.front(), static_cast<std::uint32_t>(NumberAt(words, 1)),
                             static_cast<std::uint32_t>(NumberAt(words, 2))});
    for (const auto& words : All(lines, "link"))
      facts.links.push_back(
          {words.front(), device::Nearness::kPciSwitch, static_cast<int>(NumberAt(words, 1))});
    return facts;
  }

  /// `of_device`: the facts of its device, of which a part has the files.
  static device::Facts FactsOfPart(const Found& found, device::Facts of_device) {
    const Part& part = *found.part;
    device::Facts facts{
        .id = part.id,
        .vendor = of_device.vendor,
        .kind = of_device.kind,
        .model = of_device.model + " " + part.profile,
        .number = std::to_string(of_device.index) + ":" + part.id.substr(part.id.find('.') + 1),
        .address = part.id,
        .pci = of_device.pci,
        .numa_node = of_device.numa_node,
        .files = of_device.files,
        .parent = part.parent == of_device.address ? of_device.id : part.parent,
        .profile = part.profile,
        .placement = part.placement};
    if (const device::PartProfile* profile = found.division.FindProfile(part.profile)) {
      facts.memory = profile->capacity.memory;
      facts.compute_units = profile->capacity.compute_units;
    }
    if (part.outer) facts.withheld = "it is there for the parts within it";
    for (const auto& words : All(found.lines, "says")) {
      if (words.front() != part.id || words.size() != 3) continue;
      if (words[1] == "memory") facts.memory = base::Mebibytes(NumberAt(words, 2));
      if (words[1] == "parent") facts.parent = words[2];
    }
    return facts;
  }

  /// A process on a part is none on the device.
  static std::vector<std::vector<std::string>> ProcessesOn(const Found& found) {
    auto all = All(found.lines, "process");
    std::erase_if(all, [&](const auto& words) {
      return (words.size() > 2 ? words[2] : "") != (found.part ? found.part->id : "");
    });
    return all;
  }

  const Machine machine_;
  std::map<std::string, device::Facts> described_;  // by address, as last
};

}  // namespace

std::unique_ptr<device::Backend> MakeBackend(const device::Paths& paths) {
  return std::make_unique<AcmeBackend>(paths);
}

}  // namespace penstock::backend::acme
