// The backend on trees of files, whole and broken. Issues without a repository's name are of
// ROCm/k8s-device-plugin.
#include "device/backend.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/amd/dialect/kinds.h"
#include "backend/amd/dialect/quantities.h"
#include "backend/amd/machine.h"
#include "os/testing/temporary_folder.h"

namespace penstock::backend::amd {

std::unique_ptr<device::Backend> MakeBackend(const device::Paths& paths);

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

const std::string kFirst = "0000:05:00.0", kSecond = "0000:26:00.0", kThird = "0000:46:00.0";

/// /sys of a machine with two MI300X, as far as a test needs it.
class AmdMachine : public testing::Test {
 protected:
  AmdMachine() {
    Write("module/amdgpu/initstate", "live\n");
    Write("class/kfd/kfd/dev", "511:0\n");
    Generation(1);
    Write(kNodes + "0/properties", "cpu_cores_count 64\nsimd_count 0\n");
    for (const std::string& pci : {kFirst, kSecond}) {
      Pci(pci, "numa_node", "1\n");
      Pci(pci, "mem_info_vram_total", "206158430208\n");
    }
  }

  void Write(const std::string& path, const std::string& text) { folder_.Write(path, text); }
  void Generation(int number) {
    Write("class/kfd/kfd/topology/generation_id", std::to_string(number) + "\n");
  }
  void Pci(const std::string& pci, const std::string& name, const std::string& text) {
    Write("bus/pci/devices/" + pci + "/" + name, text);
  }
  void Node(int number, std::uint32_t location, unsigned minor, std::uint64_t unique,
            const std::string& more = "") {
    Write(kNodes + std::to_string(number) + "/properties",
          "cpu_cores_count 0\nsimd_count 152\nsimd_per_cu 4\ngfx_target_version 90402\n"
          "vendor_id 4098\ndevice_id 29857\nlocation_id " +
              std::to_string(location) + "\ndomain 0\ndrm_render_minor " + std::to_string(minor) +
              "\nunique_id " + std::to_string(unique) + "\n" + more);
    Write(kNodes + std::to_string(number) + "/mem_banks/0/properties",
          "heap_type 1\nsize_in_bytes 25769803776\n");
  }
  void Link(int from, int index, int to, int type = 11) {
    Write(kNodes + std::to_string(from) + "/io_links/" + std::to_string(index) + "/properties",
          "type " + std::to_string(type) + "\nnode_from " + std::to_string(from) + "\nnode_to " +
              std::to_string(to) + "\nweight 41\n");
  }
  /// The DRM devices of a place below /sys.
  void Drm(const std::string& place, int card, unsigned render) {
    for (const auto& [name, minor] :
         {std::pair{"card" + std::to_string(card), static_cast<unsigned>(card)},
          {"renderD" + std::to_string(render), render}}) {
      Write(place + "/drm/" + name + "/dev", "226:" + std::to_string(minor) + "\n");
      folder_.Link(place + "/drm/" + name + "/device", "../..");
      folder_.Link("class/drm/" + name, "../../" + place + "/drm/" + name);
    }
  }

  std::unique_ptr<device::Backend> Make() {
    return MakeBackend({.sysfs_root = folder_.path(), .proc_root = "/nonexistent"});
  }
  std::unique_ptr<device::Backend> Opened() {
    auto backend = Make();
    const auto driver = backend->Open();
    EXPECT_TRUE(driver.ok()) << driver.error().message();
    return backend;
  }
  static std::map<std::string, device::Facts> All(device::Backend& backend) {
    std::map<std::string, device::Facts> all;
    for (const std::string& address : Addresses(backend)) all[address] = *backend.Describe(address);
    return all;
  }
  /// Of the GPUs, each with its partitions.
  static std::vector<std::string> Addresses(device::Backend& backend) {
    std::vector<std::string> addresses;
    for (const std::string& gpu : backend.List().value_or({})) {
      addresses.push_back(gpu);
      const auto facts = backend.Describe(gpu);
      if (facts.ok()) addresses.insert(addresses.end(), facts->parts.begin(), facts->parts.end());
    }
    return addresses;
  }

  /// Of a reading, code and text by kind.
  static std::map<std::string, std::string> Evidence(device::Backend& backend,
                                                     const std::string& address) {
    (void)backend.List();
    std::map<std::string, std::string> found;
    const auto reading = backend.Read(address);
    EXPECT_TRUE(reading.ok());
    for (const device::Evidence& one : reading->evidence) {
      EXPECT_TRUE(one.standing);
      found[one.kind] = std::to_string(one.code) + " " + one.text;
    }
    return found;
  }

  static device::SampleRequest Everything() {
    device::SampleRequest request;
    for (std::size_t id = 0; id < TheQuantities().size(); ++id)
      request.quantities.push_back(static_cast<device::QuantityId>(id));
    return request;
  }
  /// By key, and number where there is one.
  static std::map<std::string, std::uint64_t> Values(const device::Sample& sample) {
    std::map<std::string, std::uint64_t> values;
    for (const device::SampleValue& one : sample.values)
      values[std::string(TheQuantities()[one.quantity].key) +
             (one.link < 0 ? "" : "/" + std::to_string(one.link))] =
          std::get<std::uint64_t>(one.number);
    return values;
  }

  static constexpr std::uint64_t kUnique = 16404946649897475633ull;  // of a real machine
  const std::string kNodes = "class/kfd/kfd/topology/nodes/";
  os::TemporaryFolder folder_;
};

TEST_F(AmdMachine, DescribesAGpu) {
  Node(2, 0x500, 128, kUnique);
  Drm("bus/pci/devices/" + kFirst, 1, 128);
  Pci(kFirst, "product_name", "AMD Instinct MI300X OAM\n");
  Pci(kFirst, "current_compute_partition", "SPX\n");
  Pci(kFirst, "available_compute_partition", "SPX, DPX, QPX, CPX\n");
  const auto backend = Opened();
  const auto all = All(*backend);
  ASSERT_THAT(all, SizeIs(1));
  const device::Facts& facts = all.begin()->second;
  EXPECT_EQ(facts.id, "GPU-e3aa140f9a5f9e31");
  EXPECT_EQ(facts.model, "AMD Instinct MI300X OAM");
  EXPECT_EQ(ToString(*facts.pci), kFirst);
  EXPECT_EQ(facts.numa_node, 1);
  EXPECT_EQ(facts.memory.mebibytes(), 192u * 1024);
  EXPECT_EQ(facts.compute_units, 38);
  EXPECT_EQ(facts.architecture_version, "gfx942");
  EXPECT_THAT(facts.files, ElementsAre(device::DeviceFile{"/dev/dri/card1", 226, 1},
                                       device::DeviceFile{"/dev/dri/renderD128", 226, 128}));
  ASSERT_THAT(facts.modes, SizeIs(1));
  EXPECT_THAT(facts.modes[0].available, ElementsAre("SPX", "DPX", "QPX", "CPX"));
}

TEST_F(AmdMachine, KeepsItsControlFileAndGuardsSingleMinors) {
  Node(2, 0x500, 128, kUnique);
  Drm("bus/pci/devices/" + kFirst, 1, 128);
  Drm("devices/platform/amdgpu_xcp_0", 2, 129);
  Drm("devices/platform/other", 40, 168);
  const auto driver = Make()->Open();
  ASSERT_TRUE(driver.ok());
  EXPECT_THAT(driver->files, ElementsAre(device::DeviceFile{"/dev/kfd", 511, 0}));
  EXPECT_THAT(driver->guarded,
              ElementsAre(device::DeviceNumbers{226, 1, 2}, device::DeviceNumbers{226, 128, 129}))
      << "neither the BMC's card0 nor another driver's";
}

TEST_F(AmdMachine, FilesOfItsDriverAreKnownByTheirNumbers) {
  const auto char_device = [this](unsigned minor, const std::string& place) {
    const std::string node = place + "/drm/minor" + std::to_string(minor);
    Write(node + "/dev", "226:" + std::to_string(minor) + "\n");
    folder_.Link(node + "/device", "../../../" + place.substr(place.rfind('/') + 1));
    folder_.Link("dev/char/226:" + std::to_string(minor), "../../" + node);
  };
  char_device(128, "devices/pci0000:00/" + kFirst);
  folder_.Link("devices/pci0000:00/" + kFirst + "/driver", "../../../bus/pci/drivers/amdgpu");
  char_device(129, "devices/platform/amdgpu_xcp_0");
  char_device(130, "devices/platform/amdgpu_xcp.1");
  char_device(131, "devices/pci0000:00/0000:03:00.0");
  folder_.Link("devices/pci0000:00/0000:03:00.0/driver", "../../../bus/pci/drivers/i915");
  char_device(132, "devices/platform/vgem");
  char_device(133, "devices/pci0000:00/0000:04:00.0");
  folder_.Link("devices/pci0000:00/0000:04:00.0/driver", "../../../bus/pci/drivers/amdgpu_other");
  folder_.Link("dev/char/226:134", "../../devices/virtual/drm/card6");
  Write("devices/virtual/drm/card6/dev", "226:134\n");
  auto sysfs = os::Root::Open(folder_.path());
  ASSERT_TRUE(sysfs.ok());
  const Machine machine(*std::move(sysfs));
  std::set<unsigned> used;
  for (unsigned minor = 128; minor <= 135; ++minor)
    if (machine.UsesDriver(226, minor)) used.insert(minor);
  EXPECT_THAT(used, ElementsAre(128, 129, 130, 135)) << "the last one's device was removed";
  EXPECT_TRUE(machine.UsesDriver(511, 0)) << "/dev/kfd";
}

TEST_F(AmdMachine, PartitionsHaveIdsOfTheirOwnAlthoughTheyShareAUniqueId) {
  for (unsigned part = 0; part < 8; ++part)
    Node(static_cast<int>(2 + part), 0x500 + part, 128 + part, kUnique);
  Pci(kFirst, "current_compute_partition", "CPX\n");
  Pci(kFirst, "current_memory_partition", "NPS4\n");
  const auto backend = Opened();
  const auto all = All(*backend);
  ASSERT_THAT(all, SizeIs(9));
  std::set<std::string> ids;
  for (const auto& [address, facts] : all) ids.insert(facts.id);
  EXPECT_THAT(ids, SizeIs(9));
  EXPECT_THAT(all.at(kFirst).files, IsEmpty());
  const device::Facts& part = all.at(kFirst + "/3");
  EXPECT_EQ(part.parent, all.at(kFirst).id);
  EXPECT_EQ(part.number, "0:3");
  EXPECT_EQ(part.profile, "cpx_nps4");
  EXPECT_EQ(part.memory.mebibytes(), 24u * 1024);
  EXPECT_EQ(ToString(*part.pci), kFirst) << "the function is the partition's number, not PCI's";
}

TEST_F(AmdMachine, LinuxOwnDriverNumbersPartitionsInTheHighestBits) {
  for (std::uint32_t part = 0; part < 4; ++part)
    Node(static_cast<int>(2 + part), part << 28 | 0x500, 128 + part, kUnique);
  EXPECT_THAT(Addresses(*Opened()),
              ElementsAre(kFirst, kFirst + "/0", kFirst + "/1", kFirst + "/2", kFirst + "/3"));
}

TEST_F(AmdMachine, AVirtualFunctionIsNoPartition) {
  Node(2, 0x502, 128, kUnique);
  Pci("0000:05:00.2", "numa_node", "-1\n");
  const auto backend = Opened();
  EXPECT_THAT(*backend->List(), ElementsAre("0000:05:00.2"));
  EXPECT_EQ(backend->Describe("0000:05:00.2")->numa_node, std::nullopt);
}

TEST_F(AmdMachine, Issue157BothSpellingsOfPartitionDevices) {
  for (const char* spelling : {"amdgpu_xcp_0", "amdgpu_xcp.0"}) {
    Node(2, 0x500, 128, kUnique);
    Node(3, 0x501, 129, kUnique);
    std::filesystem::remove_all(folder_ / "class/drm");
    std::filesystem::remove_all(folder_ / "devices");
    Drm(std::string("devices/platform/") + spelling, 7, 129);
    const auto backend = Opened();
    EXPECT_THAT(Addresses(*backend), SizeIs(3)) << spelling;
    EXPECT_THAT(backend->Describe(kFirst + "/1")->files,
                ElementsAre(device::DeviceFile{"/dev/dri/card7", 226, 7},
                            device::DeviceFile{"/dev/dri/renderD129", 226, 129}))
        << spelling;
  }
}

TEST_F(AmdMachine, Issue184And167CountsThePartitionsThatTheTopologyHas) {
  for (unsigned part = 0; part < 7; ++part)  // the eighth got no minor
    Node(static_cast<int>(2 + part), 0x500 + part, 184 + part, kUnique);
  Pci(kFirst, "current_compute_partition", "CPX\n");
  EXPECT_THAT(Addresses(*Opened()), SizeIs(1 + 7));
}

TEST_F(AmdMachine, TwoGpusWithOneIdAreKnownByTheirPlaces) {
  Node(2, 0x500, 128, kUnique);
  Node(3, 0x2600, 129, kUnique);
  const auto backend = Opened();
  const auto all = All(*backend);
  EXPECT_EQ(all.at(kFirst).id, "GPU-" + kFirst);
  EXPECT_EQ(all.at(kSecond).id, "GPU-" + kSecond);
}

TEST_F(AmdMachine, AnIdOfAllOnesOrNoneIsNoId) {
  Node(2, 0x500, 128, ~std::uint64_t{0});
  Node(3, 0x2600, 129, 0);
  const auto all = All(*Opened());
  EXPECT_EQ(all.at(kFirst).id, "GPU-" + kFirst);
  EXPECT_EQ(all.at(kSecond).id, "GPU-" + kSecond);
}

TEST_F(AmdMachine, LinksLeadToGpusThatAreThere) {
  Node(2, 0x500, 128, kUnique);
  Node(3, 0x2600, 129, kUnique + 1);
  Link(2, 0, 0);
  Link(2, 1, 3);
  Link(2, 2, 77);
  Link(2, 3, 2);
  const auto all = All(*Opened());
  ASSERT_THAT(all.at(kFirst).links, SizeIs(1));
  EXPECT_EQ(all.at(kFirst).links[0].peer, all.at(kSecond).id);
  EXPECT_EQ(all.at(kFirst).links[0].fabric_lanes, 1);
}

TEST_F(AmdMachine, ADumpWithHolesStillHasItsGpus) {
  Node(2, 0x500, 128, kUnique);
  std::filesystem::remove_all(folder_ / kNodes + "2/mem_banks");
  std::filesystem::remove_all(folder_ / "bus");
  std::filesystem::remove_all(folder_ / "class/kfd/kfd/dev");
  Write(kNodes + "3/name", "");
  const auto all = All(*Opened());
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all.at(kFirst).model, "AMD Instinct MI300X") << "by its number, #171";
  EXPECT_EQ(all.at(kFirst).memory.count, 0u);
  EXPECT_THAT(all.at(kFirst).files,
              ElementsAre(device::DeviceFile{"/dev/dri/renderD128", 226, 128}));
}

// The weights of AMD's device plugin, as 100 less them.
TEST_F(AmdMachine, LinksHaveTheScoreOfAmdsPlugin) {
  Node(2, 0x500, 128, kUnique);
  Node(3, 0x501, 129, kUnique);
  Node(4, 0x2600, 130, 7);
  Node(5, 0x2601, 131, 7);
  Node(6, 0x4600, 132, 8);
  Pci(kThird, "numa_node", "1\n");
  Link(2, 0, 4, 16);
  Link(2, 1, 3);
  Link(2, 2, 4);
  Link(2, 3, 5);
  Link(2, 4, 6, 2);
  const auto scores = [this] {
    const auto backend = Opened();
    std::map<std::string, int> found;
    for (const auto& [address, facts] : All(*backend))
      for (const device::Link& link : facts.links)
        if (address == kFirst + "/0") found[link.peer] = link.score;
    return found;
  };
  const std::string own = "GPU-e3aa140f9a5f9e31", second = "GPU-0000000000000007",
                    third = "GPU-0000000000000008";
  EXPECT_THAT(scores(), UnorderedElementsAre(Pair(own, 70), Pair(second, 60), Pair(third, 30)))
      << "on one NUMA node; links of other types are none between GPUs";
  Pci(kSecond, "numa_node", "0\n");
  EXPECT_THAT(scores(), UnorderedElementsAre(Pair(own, 70), Pair(second, 50), Pair(third, 30)));
  for (const std::string& pci : {kFirst, kSecond, kThird}) Pci(pci, "numa_node", "-1\n");
  EXPECT_THAT(scores(), UnorderedElementsAre(Pair(own, 50), Pair(second, 40), Pair(third, 10)))
      << "where a pair without link has 0";
}

TEST_F(AmdMachine, TheLinksOfOnePartitionAreThoseOfAllOfItsGpu) {
  Node(2, 0x500, 128, kUnique);
  Node(3, 0x501, 129, kUnique);
  Node(4, 0x2600, 130, 7);
  Node(5, 0x2601, 131, 7);
  Link(2, 0, 0);
  Link(3, 0, 2);
  Link(3, 1, 4);
  Link(3, 2, 5);
  Link(4, 0, 3);
  Link(5, 0, 2, 2);
  const auto all = All(*Opened());
  const auto peers = [&](const std::string& address) {
    std::vector<std::pair<std::string, int>> found;
    for (const device::Link& link : all.at(address).links)
      found.emplace_back(link.peer, link.fabric_lanes);
    return found;
  };
  const std::string first = "GPU-e3aa140f9a5f9e31", second = "GPU-0000000000000007";
  EXPECT_THAT(peers(kFirst), ElementsAre(Pair(second, 1)))
      << "its first partition has only that to a processor";
  for (const char* part : {"/0", "/1"})
    EXPECT_THAT(peers(kFirst + part), UnorderedElementsAre(Pair(first, 1), Pair(second, 1)));
  EXPECT_THAT(peers(kSecond + "/1"), ElementsAre(Pair(first, 1)))
      << "what its own files say is not read";
}

TEST_F(AmdMachine, TextsThatAreNotUtf8AreLeftOut) {
  Node(2, 0x500, 128, kUnique);
  const std::string broken = "NPS\xff\xfe\n";
  for (const char* name : {"product_name", "serial_number", "vbios_version",
                           "current_compute_partition", "available_memory_partition"})
    Pci(kFirst, name, broken);
  Pci(kFirst, "current_memory_partition", "NPS1\n");
  Write("module/amdgpu/version", broken);
  Write("module/amdgpu/srcversion", broken);
  const auto backend = Make();
  const auto driver = backend->Open();
  ASSERT_TRUE(driver.ok());
  EXPECT_EQ(driver->version, "");
  const auto facts = *backend->Describe(kFirst);
  EXPECT_EQ(facts.model, "AMD Instinct MI300X");
  EXPECT_EQ(facts.serial, "");
  ASSERT_THAT(facts.modes, SizeIs(1));
  EXPECT_THAT(facts.modes[0].available, IsEmpty());
  for (const auto& [name, value] : facts.details) EXPECT_THAT(value, Not(HasSubstr("\xff")));
}

TEST_F(AmdMachine, LinksOutOfTheTreeLeadNowhere) {
  Node(2, 0x500, 128, kUnique);
  const os::TemporaryFolder outside;
  outside.Write("secret", "stolen\n");
  folder_.Link("bus/pci/devices/" + kFirst + "/product_name", outside / "secret");
  folder_.Link("bus/pci/devices/" + kFirst + "/serial_number",
               "../../../../../../../../../../../.." + (outside / "secret"));
  const auto facts = *Opened()->List();
  ASSERT_THAT(facts, SizeIs(1));
  const auto all = All(*Opened());
  EXPECT_EQ(all.at(kFirst).model, "AMD Instinct MI300X");
  EXPECT_EQ(all.at(kFirst).serial, "");
}

TEST_F(AmdMachine, HugeFilesAndImpossibleNumbersAreLeftOut) {
  Node(2, 0x500, 128, kUnique);
  Pci(kFirst, "product_name", std::string(1 << 20, 'x'));
  Pci(kFirst, "numa_node", "99999999999999999999\n");
  Pci(kFirst, "mem_info_vram_total", "18446744073709551615\n");
  Write(kNodes + "3/properties", std::string(1 << 20, '\n'));
  Write(kNodes + "4/properties",
        "simd_count 4294967295\ngfx_target_version 90402\ndrm_render_minor 4294967295\n");
  const auto all = All(*Opened());
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all.at(kFirst).model, "AMD Instinct MI300X");
  EXPECT_EQ(all.at(kFirst).numa_node, std::nullopt);
  EXPECT_EQ(all.at(kFirst).memory.mebibytes(), 24u * 1024) << "that of the memory bank";
}

TEST_F(AmdMachine, GraphicsOfAProcessorAreNotOffered) {
  Node(2, 0x500, 128, kUnique);
  Write(kNodes + "3/properties",
        "simd_count 24\ngfx_target_version 110003\nlocation_id 49408\ndrm_render_minor 129\n");
  EXPECT_THAT(*Opened()->List(), ElementsAre(kFirst));
}

/// KFD lists whoever has opened /dev/kfd, with an entry for each GPU.
TEST_F(AmdMachine, ProcessesAreOnAGpuWhereTheyHaveMemoryOrAQueue) {
  Node(2, 0x500, 128, kUnique);
  Node(3, 0x2600, 136, kUnique + 1);
  Write(kNodes + "2/gpu_id", "111\n");
  Write(kNodes + "3/gpu_id", "222\n");
  const std::string processes = "class/kfd/kfd/proc/";
  const auto with = [&](const std::string& pid, const std::string& first,
                        const std::string& second) {
    Write(processes + pid + "/pasid", "32770\n");
    Write(processes + pid + "/vram_111", first + "\n");
    Write(processes + pid + "/vram_222", second + "\n");
  };
  with("41", "4096", "0");
  with("42", "0", "0");
  with("43", "0", "0");
  Write(processes + "43/queues/0/gpuid", "222\n");
  with("44", "18446744073709551615", "a lot");
  with("0", "1", "1");
  with("99999999999", "1", "1");
  with("name", "1", "1");
  const auto backend = Opened();
  const auto on = [&](const std::string& address) {
    std::vector<std::pair<int, std::uint64_t>> pids;
    const auto reading = backend->Read(address);
    EXPECT_TRUE(reading.ok());
    for (const device::DeviceProcess& one : reading->processes)
      pids.emplace_back(one.pid, one.memory.count);
    return pids;
  };
  EXPECT_THAT(on(kFirst), ElementsAre(std::pair(41, 4096)));
  EXPECT_THAT(on(kSecond), ElementsAre(std::pair(43, 0)));
}

TEST_F(AmdMachine, AGpuIsReadWithItsPartitions) {
  for (unsigned part = 0; part < 3; ++part) {
    Node(static_cast<int>(2 + part), 0x500 + part, 128 + part, kUnique);
    Write(kNodes + std::to_string(2 + part) + "/gpu_id", std::to_string(100 + part) + "\n");
  }
  Write("class/kfd/kfd/proc/41/vram_101", "4096\n");
  const auto backend = Opened();
  const auto reading = backend->Read(kFirst);
  EXPECT_THAT(reading->processes, IsEmpty());
  ASSERT_THAT(reading->parts, SizeIs(3));
  for (const device::PartReading& part : reading->parts) {
    EXPECT_THAT(part.processes, SizeIs(part.address == kFirst + "/1" ? 1 : 0));
    EXPECT_EQ(part.processes, backend->Read(part.address)->processes) << part.address;
  }
}

/// KFD answers EPERM for a node whose render node the device cgroup does not allow.
TEST_F(AmdMachine, NodesThatRefuseToBeReadAreLeftOutAndNamedWhereAllDo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become a user who may not read";
  Node(2, 0x500, 128, kUnique);
  Node(3, 0x2600, 129, kUnique + 1);
  const auto forbid = [&](int number) {
    ::chmod((folder_ / (kNodes + std::to_string(number) + "/properties")).c_str(), 0);
  };
  ::chmod(folder_.path().c_str(), 0755);
  forbid(3);
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::seteuid(kNobody), 0);
  const auto backend = Make();
  const auto some = backend->Open();
  const auto list = backend->List();
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_TRUE(some.ok()) << some.error().message();
  EXPECT_THAT(*list, ElementsAre(kFirst));
  forbid(2);
  ASSERT_EQ(::seteuid(kNobody), 0);
  const auto none = Make()->Open();
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), base::Code::kFailedPrecondition);
  EXPECT_THAT(none.error().message(), HasSubstr("device cgroup"));
}

TEST_F(AmdMachine, AModeThatChangesIsSeen) {
  Node(2, 0x500, 128, kUnique);
  Pci(kFirst, "current_compute_partition", "SPX\n");
  const auto backend = Opened();
  ASSERT_THAT(All(*backend), SizeIs(1));
  EXPECT_FALSE(backend->Read(kFirst)->facts_changed);
  Pci(kFirst, "current_compute_partition", "CPX\n");
  for (unsigned part = 0; part < 8; ++part)
    Node(static_cast<int>(2 + part), 0x500 + part, 128 + part, kUnique);
  EXPECT_TRUE(backend->Read(kFirst)->facts_changed);
  Generation(2);
  EXPECT_THAT(Addresses(*backend), SizeIs(9));
}

TEST_F(AmdMachine, ErrorsStandWhileTheirCountersCannotBeRead) {
  Node(2, 0x500, 128, kUnique);
  Pci(kFirst, "ras/umc_err_count", "ue: 2\nce: 5\nde: 1\n");
  Pci(kFirst, "ras/gfx_err_count", "ue: 0\nce: 0\n");
  Pci(kFirst, "ras/gpu_vram_bad_pages", "0x1 : 0x1000 : P\n");
  const auto backend = Opened();
  EXPECT_THAT(Evidence(*backend, kFirst),
              UnorderedElementsAre(Pair("ras-uncorrectable", "2 umc"),
                                   Pair("ras-deferred", "1 umc"), Pair("pages-pending", "1 ")));
  Pci(kFirst, "ras/umc_err_count", "Query currently inaccessible\n");
  EXPECT_THAT(
      Evidence(*backend, kFirst),
      UnorderedElementsAre(Pair("ras-uncorrectable", "2 umc"), Pair("ras-deferred", "1 umc"),
                           Pair("pages-pending", "1 "), Pair("in-reset", "0 ")));
}

/// Whoever reads a counter clears the hardware's; what another program has read is no recovery.
TEST_F(AmdMachine, CountersThatFallAreNoRecovery) {
  Node(2, 0x500, 128, kUnique);
  const auto backend = Opened();
  const auto uncorrectable = [&](const std::string& text) {
    Pci(kFirst, "ras/umc_err_count", text);
    return Evidence(*backend, kFirst)["ras-uncorrectable"];
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(uncorrectable("ue: 2\nce: 5\n"), "2 umc");
  EXPECT_EQ(uncorrectable("ue: 0\nce: 0\n"), "2 umc");
  EXPECT_EQ(uncorrectable("ue: 3\nce: 0\n"), "3 umc");
  EXPECT_EQ(uncorrectable("ue: 1\nce: 0\n"), "3 umc");
  EXPECT_EQ(uncorrectable("nothing"), "3 umc");
  EXPECT_EQ(uncorrectable("ue: 18446744073709551615\nce: 0\n"), "3 umc") << "all ones: no count";
  const std::string log = testing::internal::GetCapturedStderr();
  const auto said = log.find("error counters of a GPU fell");
  EXPECT_NE(said, std::string::npos) << log;
  EXPECT_EQ(log.find("error counters of a GPU fell", said + 1), std::string::npos)
      << "once: " << log;
  std::filesystem::remove_all(folder_ / ("bus/pci/devices/" + kFirst + "/ras"));
  EXPECT_EQ(uncorrectable("ue: 0\nce: 0\n"), "") << "the GPU was bound again";
  EXPECT_EQ(uncorrectable("ue: 4\nce: 0\n"), "4 umc");
}

TEST_F(AmdMachine, ADriverThatIsLoadedAgainIsOpenedAgain) {
  Node(2, 0x500, 128, kUnique);
  const auto backend = Opened();
  EXPECT_TRUE(backend->List().ok());
  std::filesystem::remove_all(folder_ / "module");
  Write("module/amdgpu/initstate", "live\n");
  const auto list = backend->List();
  ASSERT_FALSE(list.ok()) << "although nobody saw that it was not there";
  EXPECT_EQ(list.error().code(), base::Code::kNotFound);
  EXPECT_TRUE(backend->Open().ok());
  EXPECT_TRUE(backend->List().ok());
}

TEST_F(AmdMachine, AResetIsOfAllGpusOfAHive) {
  Node(2, 0x500, 128, kUnique, "hive_id 15188982192727901047\n");
  Node(3, 0x2600, 129, kUnique + 1, "hive_id 15188982192727901047\n");
  Node(4, 0x4600, 130, kUnique + 2, "hive_id 18446744073709551615\n");
  Node(5, 0x6500, 131, kUnique + 3, "hive_id 18446744073709551615\n");
  const std::string third = "0000:46:00.0", fourth = "0000:65:00.0";
  const auto errors = [&](const std::string& pci, const std::string& text) {
    Pci(pci, "ras/umc_err_count", text);
    Pci(pci, "ras/gfx_err_count", text);
  };
  for (const std::string& pci : {kFirst, kSecond, third, fourth}) errors(pci, "ue: 0\nce: 0\n");
  const auto backend = Opened();
  const auto reset = [&](const std::string& pci) {
    const auto evidence = Evidence(*backend, pci);
    const auto found = evidence.find("in-reset");
    return found == evidence.end() ? "no" : found->second;
  };
  const std::string second = backend->Describe(kSecond)->id;
  EXPECT_EQ(reset(kFirst), "no");
  errors(kSecond, "Query currently inaccessible\n");
  errors(third, "Query currently inaccessible\n");
  EXPECT_EQ(reset(kSecond), "0 ");
  EXPECT_EQ(reset(kFirst), "0 " + second) << "although its own counters can be read";
  errors(kFirst, "Query currently inaccessible\n");
  EXPECT_EQ(reset(kFirst), "0 " + second);
  EXPECT_EQ(reset(third), "0 ");
  EXPECT_EQ(reset(fourth), "no") << "all ones are no hive";
  errors(kSecond, "ue: 0\nce: 0\n");
  EXPECT_EQ(reset(kSecond), "0 ") << "the other one is not ready";
  errors(kFirst, "ue: 0\nce: 0\n");
  EXPECT_EQ(reset(kFirst), "no");
  EXPECT_EQ(reset(kSecond), "no");
  errors(kSecond, "Query currently inaccessible\n");
  EXPECT_EQ(reset(kSecond), "0 ");
  std::filesystem::remove_all(folder_ / (kNodes + "3"));
  Generation(2);
  EXPECT_EQ(reset(kFirst), "no") << "the other one has gone";
}

/// 64 minors of DRM, of which the BMC's card has one: KFD has no node for the last partition.
TEST_F(AmdMachine, APartitionWithoutAMinorIsNamed) {
  for (unsigned part = 0; part < 7; ++part)
    Node(static_cast<int>(2 + part), 0x500 + part, 129 + part, kUnique);
  Pci(kFirst, "current_compute_partition", "CPX\n");
  Pci(kFirst, "available_compute_partition", "SPX, DPX, QPX, CPX\n");
  const auto backend = Opened();
  const auto missing = [&] { return Evidence(*backend, kFirst)["partitions-missing"]; };
  (void)All(*backend);
  EXPECT_EQ(missing(), "") << "a change of the mode may be in progress";
  EXPECT_THAT(missing(),
              AllOf(HasSubstr("1 it has 7 of the 8 partitions of the mode CPX; missing: 7"),
                    HasSubstr("Skip xcp node")));
  Write("class/drm/card0/dev", "226:0\n");
  Drm("bus/pci/devices/" + kFirst, 1, 129);
  for (int card = 2; card < 64; ++card)
    Drm("devices/platform/amdgpu_xcp_" + std::to_string(card), card,
        static_cast<unsigned>(128 + card));
  EXPECT_THAT(missing(), HasSubstr("all 64 minors of DRM are taken, by cards that are not of this "
                                   "driver, too: card0"));
  // A change of the mode: first the file, then the topology.
  Pci(kFirst, "current_compute_partition", "QPX\n");
  EXPECT_EQ(missing(), "");
  std::filesystem::remove_all(folder_ / kNodes);
  Node(2, 0x500, 129, kUnique);
  Generation(2);
  EXPECT_EQ(missing(), "");
  (void)All(*backend);
  EXPECT_EQ(missing(), "");
  for (unsigned part = 0; part < 4; ++part)
    Node(static_cast<int>(2 + part), 0x500 + part, 129 + part, kUnique);
  Generation(3);
  EXPECT_EQ(missing(), "");
  (void)All(*backend);
  for (int reading = 0; reading < 3; ++reading) EXPECT_EQ(missing(), "");
}

TEST_F(AmdMachine, MeasuresWhatItsFilesSay) {
  Node(2, 0x500, 128, kUnique);
  Pci(kFirst, "mem_info_vram_used", "1073741824\n");
  Pci(kFirst, "gpu_busy_percent", "12\n");
  Pci(kFirst, "gpu_metrics", std::string("\x10\x00\x03\x00", 4) + std::string(12, '\1'));
  const auto backend = Opened();
  (void)backend->List();
  const auto sample = *backend->TakeSample(kFirst, Everything());
  EXPECT_THAT(Values(sample),
              ElementsAre(Pair("memory.free", 205084688384u), Pair("memory.total", 206158430208u),
                          Pair("memory.used", 1073741824u), Pair("utilization.gpu", 12u)))
      << "the table has an unknown version";
}

TEST_F(AmdMachine, MeasuresBlocksClocksAndThePciLink) {
  Node(2, 0x500, 128, kUnique);
  Pci(kFirst, "ras/umc_err_count", "ue: 2\nce: 5\nde: 1\n");
  Pci(kFirst, "ras/pcie_bif_err_count", "ue: 0\nce: 7\n");
  Pci(kFirst, "ras/elsewhere_err_count", "ue: 1\nce: 0\n");
  Pci(kFirst, "max_link_speed", "32.0 GT/s PCIe\n");
  Pci(kFirst, "pp_dpm_sclk", "S: 19Mhz\n0: 132Mhz\n1: 2100Mhz *\n");
  std::string table(120, '\xff');
  table.replace(0, 4, std::string("\x78\x00\x01\x03", 4));
  table.replace(24, 8, std::string("\x00\x00\x01\x00\x00\x00\x00\x00", 8));
  table.replace(54, 2, "\xa4\x06");
  Pci(kFirst, "gpu_metrics", table);
  const auto backend = Opened();
  (void)backend->List();
  const auto found = Values(*backend->TakeSample(kFirst, Everything()));
  const auto value = [&found](const std::string& key) {
    const auto one = found.find(key);
    return one == found.end() ? ~0ull : one->second;
  };
  EXPECT_EQ(value("ecc.block.corrected/13"), 5u) << "umc";
  EXPECT_EQ(value("ecc.block.uncorrected/13"), 2u);
  EXPECT_EQ(value("ecc.block.deferred/13"), 1u);
  EXPECT_EQ(value("ecc.block.corrected/4"), 7u) << "pcie_bif";
  EXPECT_EQ(value("ecc.volatile.uncorrected"), 3u) << "of all blocks";
  EXPECT_EQ(value("pcie.speed.max"), 320u);
  EXPECT_EQ(value("clock/0"), 1700u);
  EXPECT_EQ(value("clock.min/0"), 132u) << "not that of deep sleep";
  EXPECT_EQ(value("clock.max/0"), 2100u);
  EXPECT_FALSE(found.contains("clock.max/1")) << "there is one";
  EXPECT_EQ(value("energy"), 1000u);
  EXPECT_EQ(value("energy.micro"), 1'000'000u);
}

// What a reset hides has not gone for good.
TEST_F(AmdMachine, WhatCannotBeReadDuringAResetIsAskedForAgain) {
  Node(2, 0x500, 128, kUnique);
  Pci(kFirst, "ras/umc_err_count", "Query currently inaccessible\n");
  Pci(kFirst, "gpu_metrics", "");
  const auto backend = Opened();
  (void)backend->List();
  const auto sample = *backend->TakeSample(kFirst, Everything());
  const auto never = [&sample](std::string_view key) {
    return std::ranges::any_of(sample.unsupported, [key](device::QuantityId id) {
      return TheQuantities()[id].key == key;
    });
  };
  for (const char* key :
       {"ecc.volatile.corrected", "ecc.block.corrected", "temperature.gpu", "clock"})
    EXPECT_FALSE(never(key)) << key;
  EXPECT_TRUE(never("memory.used"));
}

TEST_F(AmdMachine, APartitionMeasuresItsOwnChiplets) {
  Node(2, 0x500, 128, kUnique);
  Node(3, 0x501, 129, kUnique);
  Pci(kFirst, "current_compute_partition", "CPX\n");
  std::string table(3872, '\xff');
  table.replace(0, 4, std::string("\x20\x0f\x01\x08", 4));
  table.replace(344 + 440, 4, std::string("\x2a\x00\x00\x00", 4));
  Pci(kFirst, "gpu_metrics", table);
  const auto backend = Opened();
  const auto addresses = Addresses(*backend);
  ASSERT_THAT(addresses, SizeIs(3));
  EXPECT_THAT(Values(*backend->TakeSample(addresses[2], Everything())),
              ElementsAre(Pair("busy.compute/0", 42u)));
  EXPECT_THAT(Values(*backend->TakeSample(addresses[1], Everything())), IsEmpty());
  // With its GPU; what is no partition of that is not.
  device::SampleRequest all = Everything();
  for (const std::string& address : {addresses[2], addresses[0], std::string("none/0")}) {
    all.parts.push_back(Everything());
    all.parts.back().address = address;
  }
  const auto together = *backend->TakeSample(addresses[0], all);
  ASSERT_THAT(together.parts, SizeIs(1));
  EXPECT_EQ(together.parts[0].address, addresses[2]);
  EXPECT_THAT(Values(together.parts[0]), ElementsAre(Pair("busy.compute/0", 42u)));
}

TEST_F(AmdMachine, ADriverThatGoesIsMissed) {
  Node(2, 0x500, 128, kUnique);
  const auto backend = Opened();
  std::filesystem::remove_all(folder_ / "module");
  const auto list = backend->List();
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.error().code(), base::Code::kNotFound);
  EXPECT_THAT(Make()->Open().error().message(), HasSubstr("modprobe amdgpu"));
}

// Files that do not act: what the driver answers is in tests/integration/amd_modes_test.py.
TEST_F(AmdMachine, SetsTheComputeModeAndReadsItBack) {
  Node(2, 0x500, 128, kUnique);
  Pci(kFirst, "current_compute_partition", "SPX\n");
  const auto backend = Opened();
  ASSERT_THAT(*backend->List(), ElementsAre(kFirst));
  EXPECT_TRUE(backend->SetMode(kFirst, kComputePartition, "CPX").ok());
  EXPECT_EQ(backend->Describe(kFirst)->modes.front().current, "CPX");
  const auto memory = backend->SetMode(kFirst, kMemoryPartition, "NPS4");
  EXPECT_EQ(memory.error().code(), base::Code::kUnimplemented);
  EXPECT_EQ(backend->SetMode("0000:99:00.0", kComputePartition, "CPX").error().code(),
            base::Code::kNotFound);
}

TEST_F(AmdMachine, SaysWhyAModeCannotBeWritten) {
  Node(2, 0x500, 128, kUnique);
  const auto backend = Opened();
  ASSERT_THAT(*backend->List(), ElementsAre(kFirst));
  const auto none = backend->SetMode(kFirst, kComputePartition, "CPX");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), base::Code::kUnimplemented);
  EXPECT_THAT(none.error().message(), HasSubstr("/sys mounted writable"));
}

TEST_F(AmdMachine, AMemoryModeIsRequestedAndShownAsPending) {
  Node(2, 0x500, 128, kUnique);
  Pci(kFirst, "current_compute_partition", "SPX\n");
  Pci(kFirst, "current_memory_partition", "NPS1\n");
  const auto backend = Make();
  ASSERT_TRUE(backend->Open().ok());
  const auto old = backend->SetMode(kFirst, "memory-partition", "NPS4");
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.error().code(), base::Code::kUnimplemented);
  EXPECT_THAT(old.error().message(), HasSubstr("needs Linux 6.13 or AMD's driver"));
  Pci(kFirst, "available_memory_partition", "NPS1, NPS4\n");
  const auto memory = [&] {
    const device::Facts facts = *backend->Describe(kFirst);
    for (const device::Mode& mode : facts.modes)
      if (mode.name == "memory-partition") return mode;
    return device::Mode{};
  };
  EXPECT_EQ(memory().pending, "NPS1");
  ASSERT_TRUE(backend->SetMode(kFirst, "memory-partition", "NPS4").ok());
  Pci(kFirst, "current_memory_partition", "NPS1\n");  // as the driver shows it
  EXPECT_EQ(memory().current, "NPS1");
  EXPECT_EQ(memory().pending, "NPS4");
  EXPECT_EQ(memory().scope, device::ModeScope::kLinkedDevices);
  EXPECT_FALSE(backend->Read(kFirst)->facts_changed);
  Pci(kFirst, "current_memory_partition", "NPS4\n");
  EXPECT_TRUE(backend->Read(kFirst)->facts_changed) << "the driver was loaded again";
  ASSERT_TRUE(backend->Open().ok());
  Pci(kFirst, "current_memory_partition", "NPS1\n");
  EXPECT_EQ(memory().pending, "NPS1") << "a driver that was loaded again has no requests";
}

}  // namespace
}  // namespace penstock::backend::amd
