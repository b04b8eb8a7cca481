// Compares the preferred allocation of AMD's GPUs and partitions, from KFD's files to the answer,
// with the choice that AMD's device plugin documents: ROCm, k8s-device-plugin,
// internal/pkg/allocator (besteffort_policy.go, device.go). Its rules are written down here a
// second time, from these files alone.
#include <algorithm>
#include <climits>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/all.h"
#include "node/allocate/allocate.h"
#include "node/inventory/inventory.h"
#include "node/share/assignment.h"
#include "os/testing/temporary_folder.h"

namespace penstock {
namespace {

constexpr int kXgmi = 11, kPcie = 2, kOther = 16, kNoLink = 0;  // Linux, kfd_crat.h

/// What joins two GPUs, or two partitions of one (a == b): the type of a link in KFD, or kNoLink.
using Joined = std::function<int(int a, int b)>;

struct Shape {
  int gpus = 8;
  int partitions = 1;
  std::function<int(int gpu)> node = [](int gpu) { return gpu / 4; };  // NUMA; -1: none
  Joined joined = [](int, int) { return kXgmi; };
};

struct Pick {
  std::set<int> available, must;  // nodes of KFD
  std::size_t size = 0;
};

/// A machine's files, what the agent makes of them, and what AMD's plugin would.
class Machine {
 public:
  explicit Machine(const Shape& shape) : shape_(shape) {
    WriteFiles();
    ReadFiles();
    Describe();
  }

  /// Numbers of the nodes of KFD that are GPUs or partitions.
  const std::vector<int>& nodes() const { return nodes_; }
  int GpuOf(int node) const { return (node - kFirst) / shape_.partitions; }
  int gpus() const { return shape_.gpus; }
  int partitions() const { return shape_.partitions; }

  std::set<int> Preferred(const Pick& pick) const {
    node::allocate::Preference request{.size = pick.size};
    for (const int node : pick.available) request.available.push_back(id_of_.at(node));
    for (const int node : pick.must) request.must_include.push_back(id_of_.at(node));
    std::set<int> chosen;
    for (const std::string& id :
         node::allocate::Prefer(request, offer_, api::SharePolicy::kDistributed, inventory_, {}))
      for (const auto& [node, its] : id_of_)
        if (its == id) chosen.insert(node);
    return chosen;
  }

  /// The weight of a set, less is better. A pair without a link counts as one with a link of
  /// another type: in the plugin it counts nothing, so that it prefers GPUs that do not reach each
  /// other, which is not what it documents.
  int Weight(const std::set<int>& set) const { return Sum(set, true); }

  /// What the plugin chooses. It takes whole groups of partitions, of one GPU each, those with the
  /// fewest partitions first, and of the last as many as are missing.
  std::set<int> AmdChoice(const Pick& pick) const {
    if (pick.available.size() == pick.size) return pick.available;
    if (pick.must.size() == pick.size) return pick.must;
    std::map<int, std::vector<int>> by_gpu;
    for (const int node : pick.available)
      if (!pick.must.contains(node)) by_gpu[GpuOf(node)].push_back(node);
    std::vector<std::vector<int>> groups;
    for (const auto& [gpu, its] : by_gpu) groups.push_back(its);
    std::ranges::stable_sort(groups, {}, [](const auto& group) { return group.size(); });
    std::set<int> best;
    int least = INT_MAX;
    const std::function<void(std::size_t, std::set<int>)> extend = [&](std::size_t from,
                                                                       const std::set<int>& set) {
      for (std::size_t i = from; i < groups.size(); ++i) {
        std::set<int> with = set;
        for (const int node : groups[i])
          if (with.size() < pick.size) with.insert(node);
        if (with.size() < pick.size)
          extend(i + 1, with);
        else if (const int weight = Sum(with, false); weight < least)
          std::tie(least, best) = std::tuple(weight, with);
      }
    };
    extend(0, pick.must);
    return best;
  }

  /// GPUs of which nothing is held after the set was allocated.
  int Untouched(const Pick& pick, const std::set<int>& set) const {
    std::set<int> touched;
    for (const int node : nodes_)
      if (!pick.available.contains(node) || set.contains(node)) touched.insert(GpuOf(node));
    return shape_.gpus - static_cast<int>(touched.size());
  }

  /// The least weight of any set, and the most GPUs that any set of this weight leaves untouched.
  /// All partitions of a GPU are linked alike here, so that a set is how many it has of each GPU.
  std::pair<int, int> BestOfAll(const Pick& pick) const {
    std::vector<std::vector<int>> free(static_cast<std::size_t>(shape_.gpus));
    for (const int node : pick.available)
      if (!pick.must.contains(node)) free[static_cast<std::size_t>(GpuOf(node))].push_back(node);
    std::pair<int, int> best{INT_MAX, 0};  // weight, GPUs that are touched
    const std::function<void(std::size_t, std::set<int>&, int)> extend =
        [&](std::size_t gpu, std::set<int>& set, int weight) {
          if (weight > best.first) return;
          if (set.size() == pick.size) {
            best = std::min(best, {weight, -Untouched(pick, set)});
            return;
          }
          if (gpu == free.size()) return;
          extend(gpu + 1, set, weight);
          std::vector<int> taken;
          for (const int node : free[gpu]) {
            if (set.size() == pick.size) break;
            for (const int other : set) weight += Of(node, other, true);
            set.insert(node);
            taken.push_back(node);
            extend(gpu + 1, set, weight);
          }
          for (const int node : taken) set.erase(node);
        };
    std::set<int> set = pick.must;
    extend(0, set, Sum(set, true));
    return {best.first, -best.second};
  }

 private:
  static constexpr int kFirst = 2;  // behind two processors
  static constexpr unsigned kFirstMinor = 128;

  static std::string FolderOf(int node) {
    return "class/kfd/kfd/topology/nodes/" + std::to_string(node);
  }
  static std::string Pci(int gpu) {
    constexpr char kDigits[] = "0123456789abcdef";
    return std::string("0000:") + kDigits[1 + gpu] + "5:00.0";
  }

  void WriteFiles() {
    folder_.Write("module/amdgpu/initstate", "live\n");
    folder_.Write("class/kfd/kfd/dev", "511:0\n");
    folder_.Write("class/kfd/kfd/topology/generation_id", "2\n");
    for (int gpu = 0; gpu < shape_.gpus; ++gpu) {
      const std::string pci = "bus/pci/devices/" + Pci(gpu);
      folder_.Write(pci + "/numa_node", std::to_string(shape_.node(gpu)) + "\n");
      folder_.Write(pci + "/mem_info_vram_total", "206158430208\n");
      if (shape_.partitions > 1)
        folder_.Write(pci + "/current_compute_partition", shape_.partitions == 8   ? "CPX\n"
                                                          : shape_.partitions == 4 ? "QPX\n"
                                                                                   : "DPX\n");
    }
    const int count = shape_.gpus * shape_.partitions;
    for (int i = 0; i < count; ++i) WriteNode(i, count);
  }

  void WriteNode(int i, int count) {
    const int gpu = i / shape_.partitions, node = kFirst + i;
    folder_.Write(FolderOf(node) + "/properties",
                  "cpu_cores_count 0\nsimd_count 152\nsimd_per_cu 4\ngfx_target_version 90402\n"
                  "vendor_id 4098\ndevice_id 29857\nlocation_id " +
                      std::to_string(((1 + gpu) * 16 + 5) << 8 | i % shape_.partitions) +
                      "\ndomain 0\ndrm_render_minor " +
                      std::to_string(kFirstMinor + static_cast<unsigned>(i)) + "\nunique_id " +
                      std::to_string(16404946649897475633ull + static_cast<unsigned>(gpu)) + "\n");
    int links = 0;
    for (int other = 0; other < count; ++other) {
      const int type = shape_.joined(std::min(gpu, other / shape_.partitions),
                                     std::max(gpu, other / shape_.partitions));
      if (other == i || type == kNoLink) continue;
      folder_.Write(FolderOf(node) + (type == kXgmi ? "/io_links/" : "/p2p_links/") +
                        std::to_string(links++) + "/properties",
                    "type " + std::to_string(type) + "\nnode_from " + std::to_string(node) +
                        "\nnode_to " + std::to_string(kFirst + other) + "\nweight 15\n");
    }
  }

  /// Reads what the plugin does.
  void ReadFiles() {
    const std::filesystem::path all = folder_ / "class/kfd/kfd/topology/nodes";
    for (const auto& entry : std::filesystem::directory_iterator(all))
      nodes_.push_back(std::stoi(entry.path().filename()));
    std::ranges::sort(nodes_);
    for (const int node : nodes_)
      for (const char* kind : {"/io_links", "/p2p_links"}) {
        const std::filesystem::path links = folder_ / (FolderOf(node) + kind);
        if (!std::filesystem::exists(links)) continue;
        for (const auto& link : std::filesystem::directory_iterator(links)) {
          std::ifstream file(link.path() / "properties");
          std::map<std::string, int> values;
          std::string name;
          for (int value = 0; file >> name >> value;) values[name] = value;
          types_[std::minmax({values["node_from"], values["node_to"]})] = values["type"];
        }
      }
  }

  /// The weight of a pair.
  int Of(int a, int b, bool unlinked_counts) const {
    const auto type = types_.find(std::minmax(a, b));
    if (type == types_.end() && !unlinked_counts) return 0;
    const int kind = type == types_.end()    ? 50
                     : type->second == kXgmi ? 10
                     : type->second == kPcie ? 40
                                             : 50;
    return (GpuOf(a) == GpuOf(b) ? 10 : 20) + kind +
           (shape_.node(GpuOf(a)) == shape_.node(GpuOf(b)) ? 10 : 20);
  }

  int Sum(const std::set<int>& set, bool unlinked_counts) const {
    int sum = 0;
    for (auto a = set.begin(); a != set.end(); ++a)
      for (auto b = std::next(a); b != set.end(); ++b) sum += Of(*a, *b, unlinked_counts);
    return sum;
  }

  void Describe() {
    const auto backend =
        backend::MakeBackend("amd", {.sysfs_root = folder_.path(), .proc_root = "/nonexistent"});
    const auto driver = backend->Open();
    ASSERT_TRUE(driver.ok()) << driver.error().ToString();
    std::vector<device::Facts> all;
    for (const std::string& address : backend->List().value_or({})) {
      all.push_back(*backend->Describe(address));
      const std::vector<std::string> parts = all.back().parts;
      for (const std::string& part : parts) all.push_back(*backend->Describe(part));
    }
    for (const device::Facts& facts : all)
      if (!facts.files.empty())
        id_of_[kFirst + static_cast<int>(facts.files.back().minor - kFirstMinor)] = facts.id;
    node::inventory::Inventory inventory;
    inventory.SetVendor({"amd", std::make_shared<const device::Driver>(*driver), ""});
    inventory.SetFacts("amd", all, "", {});
    for (const device::Facts& facts : all)
      inventory.SetHealth(facts.id, device::HealthState::kHealthy, "", {});
    inventory_ = *inventory.published().Get();
    const auto assigned =
        node::share::ComputeAssignments({}, {"kubelet"}, {}, inventory_, backend::FindDialect);
    const auto offers = node::share::ComputeOffers(assigned.assignments, inventory_, {}, {});
    ASSERT_EQ(offers.size(), 1u);
    offer_ = offers[0];
    ASSERT_EQ(offer_.resource, "amd.com/gpu");
    ASSERT_EQ(offer_.slots.size(), nodes_.size());
    ASSERT_EQ(id_of_.size(), nodes_.size());
  }

  const Shape shape_;
  os::TemporaryFolder folder_;
  std::vector<int> nodes_;
  std::map<std::pair<int, int>, int> types_;  // by nodes, ascending
  std::map<int, std::string> id_of_;          // by node
  node::inventory::Snapshot inventory_;
  node::share::Offer offer_;
};

/// Some nodes of the machine, some of which must be chosen, and a size that is possible.
Pick RandomPick(const Machine& machine, std::mt19937& random) {
  Pick pick;
  const unsigned most = 1 + random() % 8;  // of eight
  for (const int node : machine.nodes())
    if (random() % 8 < most) pick.available.insert(node);
  if (pick.available.empty()) pick.available.insert(machine.nodes().front());
  pick.size = 1 + random() % pick.available.size();
  if (random() % 3 == 0)
    for (const int node : pick.available)
      if (pick.must.size() < pick.size && random() % 6 == 0) pick.must.insert(node);
  return pick;
}

std::string Describe(const Pick& pick, const std::set<int>& chosen) {
  return std::to_string(pick.size) + " of " + testing::PrintToString(pick.available) + ", with " +
         testing::PrintToString(pick.must) + ": " + testing::PrintToString(chosen);
}

/// What holds of any choice.
void ExpectNoWorse(const Machine& machine, const Pick& pick) {
  const std::set<int> chosen = machine.Preferred(pick), amds = machine.AmdChoice(pick);
  ASSERT_EQ(chosen.size(), pick.size) << Describe(pick, chosen);
  ASSERT_EQ(amds.size(), pick.size);
  ASSERT_TRUE(std::ranges::includes(pick.available, chosen)) << Describe(pick, chosen);
  ASSERT_TRUE(std::ranges::includes(chosen, pick.must)) << Describe(pick, chosen);
  ASSERT_LE(machine.Weight(chosen), machine.Weight(amds))
      << Describe(pick, chosen) << "; AMD's: " << testing::PrintToString(amds);
  if (machine.Weight(chosen) == machine.Weight(amds)) {
    ASSERT_GE(machine.Untouched(pick, chosen), machine.Untouched(pick, amds))
        << Describe(pick, chosen) << "; AMD's: " << testing::PrintToString(amds);
  }
}

/// And that of all sets of the least weight none leaves more GPUs untouched.
void ExpectBest(const Machine& machine, const Pick& pick) {
  const std::set<int> chosen = machine.Preferred(pick);
  ASSERT_EQ(std::pair(machine.Weight(chosen), machine.Untouched(pick, chosen)),
            machine.BestOfAll(pick))
      << Describe(pick, chosen);
}

TEST(AmdAllocation, OfEightWholeGpusIsTheBest) {
  const Machine machine({});
  std::mt19937 random(1);
  for (int i = 0; i < 500 && !testing::Test::HasFatalFailure(); ++i) {
    const Pick pick = RandomPick(machine, random);
    ExpectNoWorse(machine, pick);
    ExpectBest(machine, pick);
  }
}

TEST(AmdAllocation, OfSixtyFourPartitionsIsNeverWorseThanAmds) {
  const Machine machine({.partitions = 8});  // 4,000 files of links
  std::mt19937 random(2);
  for (int i = 0; i < 200 && !testing::Test::HasFatalFailure(); ++i)
    ExpectNoWorse(machine, RandomPick(machine, random));
  Pick pick;
  pick.available.insert(machine.nodes().begin(), machine.nodes().end());
  for (pick.size = 1; pick.size <= 64 && !testing::Test::HasFatalFailure(); ++pick.size) {
    ExpectNoWorse(machine, pick);
    const std::set<int> chosen = machine.Preferred(pick);
    EXPECT_EQ(machine.Untouched(pick, chosen), 8 - static_cast<int>((pick.size + 7) / 8));
  }
}

TEST(AmdAllocation, LeavesAsManyGpusWholeAsAnyBestSet) {
  std::mt19937 random(3);
  for (const auto& [gpus, partitions] : {std::pair(4, 8), {8, 2}}) {
    const Machine machine({.gpus = gpus,
                           .partitions = partitions,
                           .node = [half = gpus / 2](int gpu) { return gpu / half; }});
    for (int i = 0; i < 150 && !testing::Test::HasFatalFailure(); ++i) {
      const Pick pick = RandomPick(machine, random);
      ExpectNoWorse(machine, pick);
      ExpectBest(machine, pick);
    }
  }
}

/// Two groups of four that xGMI links, PCIe between them, as of eight MI210; and any other mixture
/// of links, NUMA nodes and holes.
TEST(AmdAllocation, FollowsTheKindsOfLinks) {
  std::mt19937 random(4);
  for (int round = 0; round < 16 && !testing::Test::HasFatalFailure(); ++round) {
    std::map<std::pair<int, int>, int> types;
    std::map<int, int> nodes;
    const bool numa = random() % 4 > 0, holes = random() % 2 == 0;
    for (int a = 0; a < 8; ++a) {
      nodes[a] = numa ? static_cast<int>(random() % 2) : -1;
      for (int b = a; b < 8; ++b) {
        constexpr std::array kTypes{kXgmi, kPcie, kOther, kNoLink};
        types[{a, b}] =
            round == 0 ? (a / 4 == b / 4 ? kXgmi : kPcie) : kTypes[random() % (holes ? 4 : 2)];
      }
    }
    const int partitions = round % 8 == 7 ? 2 : 1;
    const Machine machine({.partitions = partitions,
                           .node = [&](int gpu) { return nodes.at(gpu); },
                           .joined =
                               [&](int a, int b) {
                                 return a == b ? kXgmi : types.at({a, b});
                               }});
    for (int i = 0; i < 80 && !testing::Test::HasFatalFailure(); ++i) {
      const Pick pick = RandomPick(machine, random);
      ExpectNoWorse(machine, pick);
      ExpectBest(machine, pick);
    }
  }
}

}  // namespace
}  // namespace penstock
