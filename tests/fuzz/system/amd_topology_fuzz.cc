// Fuzzes the backend of AMD's accelerators on the files of KFD, DRM and PCI: topology, links,
// processes, partition modes, error counters, gpu_metrics. The input is pairs of a file's name and
// its text, all separated by NUL; the name's first character says the folder.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../oracle.h"
#include "backend/amd/dialect/quantities.h"
#include "backend/amd/kfd.h"
#include "device/backend.h"
#include "device/codec.h"
#include "os/testing/temporary_folder.h"

namespace penstock::backend::amd {
std::unique_ptr<device::Backend> MakeBackend(const device::Paths& paths);
}

namespace {

using namespace penstock;
using fuzz::Require;

constexpr std::string_view kMore = "/._-:";  // in names, besides letters and digits

/// The path below /sys; empty for a name that leads elsewhere.
std::string PathOf(std::string_view name) {
  constexpr std::size_t kMostName = 100;
  if (name.size() < 2 || name.size() > kMostName) return "";
  std::string path;
  switch (name[0]) {
    case 'k': path = "class/kfd/kfd/"; break;
    case 'n': path = "class/kfd/kfd/topology/nodes/"; break;
    case 'u': path = "class/kfd/kfd/proc/"; break;
    case 'p': path = "bus/pci/devices/0000:05:00.0/"; break;
    case 'q': path = "bus/pci/devices/0000:26:00.0/"; break;
    case 'd': path = "class/drm/"; break;
    case 'x': path = "devices/platform/"; break;
    case 'm': path = "module/amdgpu/"; break;
    default: return "";
  }
  name.remove_prefix(1);
  const bool plain = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMore.find(c) != std::string_view::npos;
  });
  if (!plain || name.find("..") != std::string_view::npos) return "";
  return path + std::string(name);
}

/// Creates a new tree; what cannot be written is missing in it.
void Fill(const os::TemporaryFolder& folder, const std::vector<std::string>& parts) {
  std::error_code ignored;
  std::filesystem::remove_all(folder / "sys", ignored);
  std::filesystem::create_directories(folder / "sys/module/amdgpu", ignored);
  constexpr std::size_t kMostFiles = 200;
  for (std::size_t i = 0; i + 1 < std::min(parts.size(), kMostFiles); i += 2) {
    const std::string below = PathOf(parts[i]);
    if (below.empty()) continue;
    const std::filesystem::path path = folder / ("sys/" + below);
    std::filesystem::create_directories(path.parent_path(), ignored);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << parts[i + 1];
  }
}

/// Facts cross from the worker to the agent as they are.
void CheckFacts(const device::Facts& facts) {
  const auto again = device::codec::DecodeFacts(device::codec::Encode(facts));
  Require(again.ok() && *again == facts);
  Require(!facts.id.empty() && facts.vendor == "amd" && !facts.model.empty());
  Require(facts.compute_units >= 0);
  for (const device::Link& link : facts.links) Require(link.peer != facts.id && link.score > 0);
}

void CheckProperties(std::string_view text) {
  const auto properties = backend::amd::ParseProperties(text);
  std::string again;
  for (const auto& [name, value] : properties) again += name + " " + std::to_string(value) + "\n";
  Require(backend::amd::ParseProperties(again) == properties);
}

void CheckDevice(device::Backend& backend, const std::string& address) {
  const auto reading = backend.Read(address);
  Require(reading.ok());
  const auto read = device::codec::DecodeReading(device::codec::Encode(*reading));
  Require(read.ok() && *read == *reading);
  device::SampleRequest request;
  const auto quantities = backend::amd::TheQuantities();
  for (std::size_t i = 0; i < quantities.size(); ++i)
    request.quantities.push_back(static_cast<device::QuantityId>(i));
  const auto sample = backend.TakeSample(address, request);
  Require(sample.ok());
  // A quantity has a value, or one for each of several parts of the chip, or is unsupported; or
  // neither, where there is none now.
  std::set<device::QuantityId> answered;
  for (const auto& value : sample->values) answered.insert(value.quantity);
  for (const auto quantity : sample->unsupported) Require(answered.insert(quantity).second);
  Require(answered.empty() || *answered.rbegin() < quantities.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const os::TemporaryFolder folder;
  const std::vector<std::string> parts = fuzz::Parts(data, size, 2);
  Fill(folder, parts);
  for (std::size_t i = 1; i < parts.size(); i += 2) CheckProperties(parts[i]);
  const auto backend =
      backend::amd::MakeBackend({.sysfs_root = folder / "sys", .proc_root = folder / "proc"});
  const auto driver = backend->Open();
  if (!driver.ok()) {
    Require(!driver.error().message().empty());
    return 0;
  }
  const auto sent = device::codec::DecodeDriver(device::codec::Encode(*driver));
  Require(sent.ok() && *sent == *driver);
  const auto gpus = backend->List();
  Require(gpus.ok() && !gpus->empty());
  std::vector<device::Facts> all;
  for (const std::string& gpu : *gpus) {
    const auto facts = backend->Describe(gpu);
    Require(facts.ok() && facts->parent.empty());
    CheckDevice(*backend, gpu);
    all.push_back(*facts);
    for (const std::string& address : facts->parts) {
      const auto part = backend->Describe(address);
      Require(part.ok() && part->parent == facts->id);
      CheckDevice(*backend, address);
      all.push_back(*part);
    }
  }
  std::set<std::string> ids;
  for (const device::Facts& facts : all) Require(ids.insert(facts.id).second);
  for (const device::Facts& facts : all) CheckFacts(facts);
  return 0;
}
