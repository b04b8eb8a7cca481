#include "sim/machine.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/yaml.h"
#include "sim/state.h"

namespace penstock::sim {
namespace {

using base::MapReader;
using base::Problems;
using base::Value;

constexpr std::int64_t kMost = 1 << 24;

std::uint32_t Number(MapReader& map, std::string_view key, std::uint32_t otherwise = 0,
                     std::int64_t most = kMost) {
  return static_cast<std::uint32_t>(map.Int(key, 0, most).value_or(otherwise));
}

int Signed(MapReader& map, std::string_view key) {
  return static_cast<int>(map.Int(key, -200, 200).value_or(0));
}

std::optional<std::uint32_t> MaybeNumber(MapReader& map, std::string_view key) {
  if (auto value = map.Int(key, 0, kMost)) return static_cast<std::uint32_t>(*value);
  return std::nullopt;
}

std::string Text(MapReader& map, std::string_view key, std::size_t most) {
  std::string text = map.String(key).value_or("");
  if (text.size() > most) map.Problem(key, "is longer than " + std::to_string(most) + " bytes");
  return text;
}

// Calls `read` with a reader of the map under `key`, if there is one.
template <typename Read>
void Nested(MapReader& parent, std::string_view key, Problems& problems, Read read) {
  const Value* value = parent.Map(key);
  if (!value) return;
  MapReader map(*value, parent.Path(key), problems);
  read(map);
  map.Finish();
}

void ReadIdentity(MapReader& map, Model& model) {
  for (const auto* key :
       {"name", "brand", "architecture", "computeCapability", "pciId", "memory", "power", "clocks"})
    map.Require(key);
  model.name = Text(map, "name", 95);
  model.old_name = map.Has("oldName") ? Text(map, "oldName", 95) : model.name;
  model.brand = map.OneOf("brand", {"tesla", "geforce", "nvidia"}).value_or("nvidia");
  model.old_brand = map.OneOf("oldBrand", {"tesla", "geforce", "nvidia"}).value_or(model.brand);
  model.architecture =
      map.OneOf("architecture", {"volta", "turing", "ampere", "ada", "hopper", "blackwell"})
          .value_or("ampere");
  const std::string capability = map.String("computeCapability").value_or("0.0");
  if (std::sscanf(capability.c_str(), "%d.%d", &model.cc_major, &model.cc_minor) != 2)
    map.Problem("computeCapability", "is not a compute capability; use the form \"8.0\"");
  model.pci_id = Number(map, "pciId", 0, 0xffff);
  model.subsystem_id = Number(map, "subsystemId", 0, 0xffff);
  model.subsystem_vendor = Number(map, "subsystemVendor", 0x10de, 0xffff);
  model.pci_class = Number(map, "pciClass", 0x030200, 0xffffff);
  model.multiprocessors = Number(map, "multiprocessors");
  model.cores_per_multiprocessor = Number(map, "coresPerMultiprocessor");
  model.vbios = Text(map, "vbios", 31);
  model.part_number = Text(map, "partNumber", 31);
  model.inforom = Text(map, "inforom", 31);
}

void ReadMemoryAndLinks(MapReader& map, Model& model, Problems& problems) {
  Nested(map, "memory", problems, [&](MapReader& memory) {
    for (const auto* key : {"total", "reserved"}) memory.Require(key);
    model.memory_total = Number(memory, "total");
    model.memory_old = Number(memory, "old", static_cast<std::uint32_t>(model.memory_total));
    model.memory_reserved = Number(memory, "reserved");
    model.bus_bits = Number(memory, "busBits");
    if (model.memory_reserved > model.memory_total)
      memory.Problem("reserved", "is more than the total");
  });
  model.bar1 = Number(map, "bar1", 256);
  Nested(map, "pcie", problems, [&](MapReader& pcie) {
    model.pcie_generation = Number(pcie, "generation", 3, 6);
    model.pcie_width = Number(pcie, "width", 16, 32);
    model.pcie_idle_generation = Number(pcie, "idleGeneration", model.pcie_generation, 6);
  });
  Nested(map, "nvlink", problems, [&](MapReader& nvlink) {
    model.nvlink_count = Number(nvlink, "count", 0, kSimMaxLinks);
    model.nvlink_version = Number(nvlink, "version");
    model.nvlink_mbps = Number(nvlink, "mbps");
  });
}

void ReadPhysics(MapReader& map, Model& model, Problems& problems) {
  Nested(map, "power", problems, [&](MapReader& power) {
    model.power_default = Number(power, "default");
    model.power_min = Number(power, "min");
    model.power_max = Number(power, "max", model.power_default);
    model.power_idle = Number(power, "idle");
  });
  Nested(map, "clocks", problems, [&](MapReader& clocks) {
    model.clock_sm = Number(clocks, "sm");
    model.clock_memory = Number(clocks, "memory");
    model.clock_video = Number(clocks, "video");
    model.clock_application = MaybeNumber(clocks, "application");
    model.clock_idle_sm = Number(clocks, "idleSm");
    model.clock_idle_memory = Number(clocks, "idleMemory");
  });
  model.idle_state = Number(map, "idleState", 0, 15);
  const auto limits = [&](MapReader& reader) {
    model.limit_shutdown = Signed(reader, "shutdown");
    model.limit_slowdown = Signed(reader, "slowdown");
    model.limit_max = Signed(reader, "max");
    model.limit_memory = Signed(reader, "memory");
  };
  Nested(map, "limits", problems, limits);
  model.limits_are_margins = map.Has("margins");
  Nested(map, "margins", problems, limits);
  Nested(map, "temperature", problems, [&](MapReader& temperature) {
    model.temperature_idle = Number(temperature, "idle", 30, 150);
    model.temperature_memory = MaybeNumber(temperature, "memory");
  });
  Nested(map, "fans", problems, [&](MapReader& fans) {
    model.fans = Number(fans, "count", 0, 8);
    model.fan_percent = Number(fans, "percent", 0, 100);
  });
}

void ReadFeatures(MapReader& map, Model& model, Problems& problems) {
  model.ecc = map.Bool("ecc").value_or(false);
  model.page_retirement = map.Bool("pageRetirement").value_or(false);
  model.fabric = map.Bool("fabric").value_or(false);
  model.remapper_banks = Number(map, "remapperBanks");
  model.mig = ReadMig(map, problems);
  model.gsp_since = MaybeNumber(map, "gspSince");
  Nested(map, "engines", problems, [&](MapReader& engines) {
    model.encoders = Number(engines, "encoders");
    model.decoders = Number(engines, "decoders");
    model.jpegs = Number(engines, "jpegs");
    model.ofas = Number(engines, "ofas");
  });
}

Model ReadModel(const Value& value, const std::string& where, Problems& problems) {
  MapReader map(value, where, problems);
  Model model;
  ReadIdentity(map, model);
  ReadMemoryAndLinks(map, model, problems);
  ReadPhysics(map, model, problems);
  ReadFeatures(map, model, problems);
  map.Finish();
  return model;
}

// A model that says `like: OTHER` has the keys of that model which it does not have itself. Only
// models above it are known, so there are no circles. Nothing, and a problem, if there is none.
std::optional<Value> WithInherited(const Value& model, const std::map<std::string, Value>& above,
                                   Problems& problems) {
  const Value* like = model.Find("like");
  if (!like) return model;
  const auto other = above.find(like->text);
  if (other == above.end() || !other->second.map) {
    problems.Add(like->mark, "\"like\" names no model above: " + like->text);
    return std::nullopt;
  }
  Value::Map keys;
  for (const Value::Entry& entry : *model.map)
    if (entry.key != "like") keys.push_back(entry);
  for (const Value::Entry& entry : *other->second.map)
    if (!model.Find(entry.key)) keys.push_back(entry);
  Value whole = model;
  whole.map = std::make_shared<const Value::Map>(std::move(keys));
  return whole;
}

// Whether this is a list of CPUs as sysfs writes it: "0-15,128-143".
bool IsCpuList(std::string_view text) {
  if (text.empty() || text.size() > 127) return false;
  for (const std::string& range : base::Split(text, ',')) {
    const auto ends = base::Split(range, '-');
    if (ends.size() > 2) return false;
    const auto first = base::ParseUint(ends.front()), last = base::ParseUint(ends.back());
    if (!first || !last || *first > *last || *last > 8191) return false;
  }
  return true;
}

bool IsUuid(std::string_view text) {
  constexpr std::string_view kShape = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < kShape.size(); i++) {
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (kShape[i] == 'x' ? !hex : text[i] != kShape[i]) return false;
  }
  return true;
}

PciAddress ReadPci(MapReader& map, std::string_view key) {
  const auto text = map.String(key);
  if (!text) return {};
  const auto address = ParsePciAddress(*text);
  if (!address) map.Problem(key, "is not a PCI address; use the form \"0000:07:00.0\"");
  return address.value_or(PciAddress{});
}

MachineGpu ReadGpu(const Value& value, const std::string& where, const Machine& machine,
                   const Catalogue& catalogue, Problems& problems) {
  MapReader map(value, where, problems);
  for (const auto* key : {"model", "pci"}) map.Require(key);
  MachineGpu gpu;
  std::vector<std::string> models;
  for (const auto& [name, model] : catalogue) models.push_back(name);
  gpu.model = map.OneOf("model", models).value_or("");
  gpu.pci = ReadPci(map, "pci");
  if (auto numa = map.Int("numa", 0, 1023)) {
    gpu.numa = static_cast<int>(*numa);
    if (!machine.numa.contains(gpu.numa))
      map.Problem("numa", "names a node that the machine's \"numa\" does not list");
  }
  if (auto group = map.Int("pcieSwitch", 0, 255)) gpu.pcie_switch = static_cast<int>(*group);
  if (auto minor = map.Int("minor", 0, 254)) gpu.minor = static_cast<int>(*minor);
  gpu.uuid = map.String("uuid").value_or("");
  if (!gpu.uuid.empty() && !IsUuid(gpu.uuid))
    map.Problem("uuid",
                "is not a GPU UUID: GPU- and 32 lower-case hexadecimal digits as 8-4-4-4-12");
  gpu.serial = Text(map, "serial", 29);
  gpu.nvlinks_down = map.Bool("nvlinksDown").value_or(false);
  Nested(map, "vgpu", problems, [&](MapReader& vgpu) {
    for (const auto* key : {"profile", "hostDriver", "hostBranch"}) vgpu.Require(key);
    gpu.vgpu_profile = Text(vgpu, "profile", 63);
    // The capability has ten bytes for each.
    gpu.vgpu_host_driver = Text(vgpu, "hostDriver", 10);
    gpu.vgpu_host_branch = Text(vgpu, "hostBranch", 10);
  });
  map.Finish();
  return gpu;
}

void ReadNuma(MapReader& map, Machine& machine, Problems& problems) {
  const Value* numa = map.Map("numa");
  if (!numa) return;
  for (const Value::Entry& entry : *numa->map) {
    const auto node = base::ParseInt(entry.key);
    if (!node || *node < 0 || *node > 1023) {
      problems.Add(entry.mark, "numa: \"" + entry.key + "\" is not a NUMA node number");
      continue;
    }
    if (!IsCpuList(entry.value.text)) {
      problems.Add(entry.value.mark,
                   "numa." + entry.key + ": is not a CPU list; use the form \"0-15,128-143\"");
      continue;
    }
    machine.numa[static_cast<int>(*node)] = entry.value.text;
  }
  if (machine.numa.size() > kSimMaxNodes)
    map.Problem("numa", "lists more than " + std::to_string(kSimMaxNodes) + " nodes");
}

void ReadSwitches(MapReader& map, Machine& machine, Problems& problems) {
  Nested(map, "nvswitches", problems, [&](MapReader& switches) {
    machine.hidden_nvswitches = switches.Bool("hidden").value_or(false);
    if (!machine.hidden_nvswitches)
      for (const auto* key : {"pciId", "pci"}) switches.Require(key);
    machine.nvswitch_pci_id = Number(switches, "pciId", 0, 0xffff);
    for (const std::string& text : switches.Strings("pci").value_or(std::vector<std::string>{})) {
      if (const auto address = ParsePciAddress(text))
        machine.nvswitches.push_back(*address);
      else
        switches.Problem("pci",
                         "\"" + text + "\" is not a PCI address; use the form \"0000:c4:00.0\"");
    }
  });
}

void CheckUnique(const Value& list, const Machine& machine, Problems& problems) {
  std::set<PciAddress> addresses(machine.nvswitches.begin(), machine.nvswitches.end());
  std::set<std::string> uuids;
  std::set<int> minors;
  for (std::size_t i = 0; i < machine.gpus.size(); i++) {
    const MachineGpu& gpu = machine.gpus[i];
    const base::Mark mark = (*list.list)[i].mark;
    if (!addresses.insert(gpu.pci).second)
      problems.Add(mark, "gpus: two devices at PCI address " + ToString(gpu.pci));
    if (!gpu.uuid.empty() && !uuids.insert(gpu.uuid).second)
      problems.Add(mark, "gpus: two GPUs with UUID " + gpu.uuid);
    if (gpu.minor && !minors.insert(*gpu.minor).second)
      problems.Add(mark, "gpus: two GPUs with minor " + std::to_string(*gpu.minor));
    if (i > 0 && gpu.pci < machine.gpus[i - 1].pci)
      problems.Add(mark,
                   "gpus: list them by PCI address, the order in which the driver numbers them");
  }
}

}  // namespace

std::string ToString(const PciAddress& address) {
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", address.domain, address.bus, address.device);
  return text;
}

std::optional<PciAddress> ParsePciAddress(std::string_view text) {
  const auto parts = base::Split(text, ':');
  if (parts.size() != 3 || parts[0].size() != 4 || parts[1].size() != 2 || parts[2].size() != 4 ||
      parts[2].substr(2) != ".0")
    return std::nullopt;
  const auto domain = base::ParseUint(parts[0], 16), bus = base::ParseUint(parts[1], 16),
             device = base::ParseUint(parts[2].substr(0, 2), 16);
  if (!domain || !bus || !device || *device > 31) return std::nullopt;
  return PciAddress{static_cast<std::uint32_t>(*domain), static_cast<std::uint32_t>(*bus),
                    static_cast<std::uint32_t>(*device)};
}

bool IsDriverVersion(std::string_view text) {
  const auto parts = base::Split(text, '.');
  if (parts.size() < 2 || parts.size() > 3 || text.size() > 31) return false;
  return std::all_of(parts.begin(), parts.end(),
                     [](const std::string& part) {
                       return part.size() <= 4 && base::ParseUint(part).has_value();
                     }) &&
         *base::ParseUint(parts[0]) >= 300;
}

base::Result<Catalogue> ReadCatalogue(std::string_view text, std::string_view file) {
  ASSIGN(const Value document, base::ParseYaml(text, file));
  Problems problems{std::string(file)};
  MapReader map(document, "", problems);
  map.Require("models");
  Catalogue catalogue;
  std::map<std::string, Value> above;
  if (const Value* models = map.Map("models"))
    for (const Value::Entry& entry : *models->map) {
      const auto model = WithInherited(entry.value, above, problems);
      if (!model) continue;
      above[entry.key] = *model;
      catalogue[entry.key] = ReadModel(*model, "models." + entry.key, problems);
    }
  map.Finish();
  if (!problems.empty()) return problems.ToError();
  return catalogue;
}

base::Result<Machine> ReadMachine(std::string_view text, std::string_view file,
                                  const Catalogue& catalogue) {
  ASSIGN(const Value document, base::ParseYaml(text, file));
  Problems problems{std::string(file)};
  MapReader map(document, "", problems);
  for (const auto* key : {"name", "gpus"}) map.Require(key);
  Machine machine;
  machine.name = Text(map, "name", 63);
  machine.description = map.String("description").value_or("");
  machine.driver = map.String("driver").value_or("");
  if (!machine.driver.empty() && !IsDriverVersion(machine.driver))
    map.Problem("driver", "is not a driver version; use the form 550.54.15");
  machine.persistence = map.Bool("persistence").value_or(false);
  Nested(map, "product", problems, [&](MapReader& product) {
    machine.product_vendor = Text(product, "vendor", 63);
    machine.product_name = Text(product, "name", 95);
  });
  ReadNuma(map, machine, problems);
  ReadSwitches(map, machine, problems);
  machine.imex_channels = Number(map, "imexChannels", 0, 16);
  if (const Value* gpus = map.List("gpus")) {
    const std::size_t before = problems.size();
    if (gpus->list->size() > kSimMaxGpus)
      map.Problem("gpus", "lists more than " + std::to_string(kSimMaxGpus) + " GPUs");
    for (std::size_t i = 0; i < gpus->list->size() && i < kSimMaxGpus; i++)
      machine.gpus.push_back(ReadGpu((*gpus->list)[i], "gpus[" + std::to_string(i) + "]", machine,
                                     catalogue, problems));
    // After reading errors, missing values would be reported as clashes.
    if (problems.size() == before) CheckUnique(*gpus, machine, problems);
  }
  map.Finish();
  if (!problems.empty()) return problems.ToError();
  return machine;
}

}  // namespace penstock::sim
