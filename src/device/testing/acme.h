// A fictional vendor, for tests of code that must work with any vendor.
#pragma once

#include <string>
#include <vector>

#include "base/core/strings.h"
#include "device/dialect.h"

namespace penstock::device::testing {

inline constexpr Quantity kAcmeQuantities[] = {
    {.key = "utilization",
     .unit = Unit::kPercent,
     .most = 100,
     .family = "accelerator_utilization_ratio"},
    {.key = "memory.used", .unit = Unit::kMebibytes, .family = "accelerator_memory_used_bytes"},
    {.key = "power", .unit = Unit::kMilliwatts, .most = 2e6, .family = "accelerator_power_watts"},
    {.key = "energy",
     .unit = Unit::kMillijoules,
     .counter = true,
     .family = "accelerator_energy_joules_total"},
    {.key = "errors",
     .counter = true,
     .pace = Pace::kSlow,
     .family = "accelerator_errors_total",
     .labels = R"(kind="bit")"},
    {.key = "clock.most",
     .unit = Unit::kMegahertz,
     .pace = Pace::kOnce,
     .family = "accelerator_clock_max_hertz"},
    {.key = "link.bytes",
     .unit = Unit::kKibibytes,
     .counter = true,
     .per_link = true,
     .family = "accelerator_link_bytes_total"},
};

inline constexpr EvidenceKind kAcmeEvidence[] = {{.name = "ecc", .most = 4}, {.name = "lane"}};

/// Dialect of Acme: the environment variable "ACME" holds the ids joined by commas; each device has
/// its own files, all share /dev/acmectl. The code of a piece of evidence is its severity.
class AcmeDialect : public Dialect {
 public:
  std::string_view vendor() const override { return "acme"; }
  std::string_view resource() const override { return "acme.com/gpu"; }
  std::string ModelResource(const Facts& device) const override {
    return device.index == 0 ? "acme.com/small" : "acme.com/big";
  }
  std::string PartResource(const Facts& part) const override { return "acme.com/" + part.profile; }
  /// Acme has no program that divides devices.
  const PartTerms* part_terms() const override {
    static const PartTerms kTerms = {.mode = "cut",
                                     .on = "on",
                                     .off = "off",
                                     .request_label = "acme.com/want",
                                     .state_label = "acme.com/state",
                                     .kept_as = "-acme"};
    return &kTerms;
  }
  /// Names begin with a digit, in any case of letters.
  Result<const PartProfile*> FindProfile(std::string_view name,
                                         std::span<const PartProfile> profiles) const override {
    if (name.empty() || name[0] < '0' || name[0] > '9')
      return Error(Code::kInvalidArgument, "\"" + std::string(name) + "\" is no profile");
    for (const PartProfile& profile : profiles)
      if (base::ToLower(profile.name) == base::ToLower(name)) return &profile;
    return Error(Code::kNotFound, "no such profile");
  }
  std::string WhyNotShared(const Facts& device, const Shape& shape) const override {
    return shape.sharing == Sharing::kServer && device.model == "Acme Small"
               ? "an Acme Small has no server; use time-slicing"
               : "";
  }
  Edits ForContainer(std::span<const Facts* const> devices, const Driver&,
                     DeviceNames) const override {
    return Edit(devices);
  }
  ListForms ContainerListForms() const override {
    return {"ACME",
            "nothing",
            "/run/acme",
            {{"extra", {"ACME_EXTRA", "enabled", ""}}, {"lane", {"ACME_LANES", "", "lanes"}}}};
  }
  Edits ForProcess(std::span<const Facts* const> devices, const Driver&) const override {
    return Edit(devices);
  }
  std::string_view runtime_handler() const override { return ""; }
  std::string_view cdi_kind() const override { return "acme.com/gpu"; }
  std::vector<std::string> CdiNamesOf(const Facts& device,
                                      std::span<const CdiNames> strategies) const override {
    std::vector<std::string> names;
    for (const CdiNames strategy : strategies)
      names.push_back(strategy == CdiNames::kUuid ? device.id : std::to_string(device.index));
    return names;
  }
  ContainerDriver DriverForContainers(const Driver&) const override { return {}; }
  std::vector<CdiClass> CdiClasses() const override {
    return {{.mode = "extra", .kind = "acme.com/extra", .nodes = {"/dev/acme-extra"}},
            {.mode = "lane",
             .kind = "acme.com/lane",
             .nodes = {"/dev/acme-lane*"},
             .device_per_node = true}};
  }
  std::vector<CdiPlatform> CdiPlatforms() const override { return {}; }
  std::span<const EvidenceKind> EvidenceKinds() const override { return kAcmeEvidence; }
  Verdict Judge(const Evidence& evidence) const override {
    return {static_cast<Severity>(evidence.code), "code " + std::to_string(evidence.code),
            evidence.kind == "silencing"};
  }
  std::span<const Quantity> Quantities() const override { return kAcmeQuantities; }
  const Exporter* exporter() const override { return nullptr; }
  std::vector<std::string> DriverPaths(const Paths&) const override { return {}; }
  std::optional<Evidence> FromKernelLog(std::string_view) const override { return std::nullopt; }
  std::uint16_t pci_vendor() const override { return 0xacce; }
  std::map<std::string, std::string> Labels(const LabelFacts& facts) const override {
    if (facts.devices.empty()) return {};
    std::map<std::string, std::string> labels{
        {"acme.com/gpu.count", std::to_string(facts.devices.size())},
        {"acme.com/gpu.first", facts.devices.front()->id}};
    std::string shares;
    bool shared = false;
    for (const LabelShare& one : facts.shares) {
      shared = shared || one.shape.shares > 1;
      shares += (shares.empty() ? "" : "_") + std::to_string(one.shape.shares) + "." +
                std::string(ToString(one.shape.sharing)) + "." + one.isolation;
    }
    if (shared) labels["acme.com/gpu.shares"] = shares;
    return labels;
  }

 private:
  static Edits Edit(std::span<const Facts* const> devices) {
    Edits edits;
    for (const Facts* one : devices) {
      std::string& ids = edits.environment["ACME"];
      ids += (ids.empty() ? "" : ",") + one->id;
      for (const DeviceFile& file : one->files) edits.files.push_back({file.path, file.path, "rw"});
    }
    edits.files.push_back({"/dev/acmectl", "/dev/acmectl", "rw"});
    return edits;
  }
};

/// Returns the Acme dialect for every vendor name.
inline const Dialect* FindAcme(std::string_view) {
  static const AcmeDialect acme;
  return &acme;
}

/// Device "G<index>", in one half of the machine or the other, with /dev/acme<index> (195:<index>)
/// and four lanes to the other device of its pair.
inline Facts AcmeDevice(int index, int count) {
  Facts facts;
  facts.id = "G" + std::to_string(index);
  facts.vendor = "acme";
  facts.model = index == 0 ? "Acme Small" : "Acme Big";
  facts.index = index;
  facts.pci = PciAddress{0, static_cast<std::uint32_t>(index + 7), 0, 0};
  facts.numa_node = index < count / 2 ? 0 : 1;
  facts.files = {{"/dev/acme" + std::to_string(index), 195, static_cast<std::uint32_t>(index)}};
  facts.links = {{"G" + std::to_string(index ^ 1), Nearness::kPciSwitch, 4}};
  return facts;
}

inline Driver AcmeDriver() {
  return {.vendor = "acme", .version = "1.0", .guarded = {{195, 0, 253}}};
}

}  // namespace penstock::device::testing
