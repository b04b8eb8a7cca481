#include "node/metrics/metrics.h"

#include <cstdlib>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/strings.h"
#include "node/metrics/exposition.h"
#include "os/core/file.h"

namespace penstock::node::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

inventory::Entry Device(int index, device::HealthState state) {
  device::Facts facts;
  facts.id = "GPU-" + std::to_string(index);
  facts.vendor = "nvidia";
  facts.model = "NVIDIA A100-SXM4-40GB";
  facts.index = index;
  facts.pci = device::PciAddress{.bus = 7};
  facts.numa_node = 3;
  facts.memory = base::Mebibytes(40960);
  facts.architecture = "ampere";
  device::Reading reading;
  return {.facts = std::make_shared<device::Facts>(facts),
          .health = {.state = state},
          .reading = std::make_shared<device::Reading>(reading),
          .read_at = base::WallTime(1700000000500ms)};
}

inventory::Snapshot Inventory() {
  inventory::Snapshot snapshot;
  device::Driver driver;
  driver.vendor = "nvidia";
  driver.version = "550.54.15";
  snapshot.vendors = {{.vendor = "nvidia", .driver = std::make_shared<device::Driver>(driver)}, {.vendor = "amd", .reason = "no driver"}};
  snapshot.devices = {Device(0, device::HealthState::kHealthy), Device(1, device::HealthState::kUnhealthy),
                      Device(2, device::HealthState::kGone)};
  device::Reading little;  // an old driver that can tell nothing
  snapshot.devices[1].reading = std::make_shared<device::Reading>(little);
  return snapshot;
}

ledger::Snapshot Ledger() {
  ledger::Snapshot snapshot;
  ledger::Lease pod{.id = "k-1", .door = "kubelet", .slots = {{"GPU-0::1", "GPU-0"}}, .state = ledger::LeaseState::kHeld};
  pod.pod = "train-0";
  pod.namespace_name = "ml";
  pod.container = "main";
  ledger::Lease run{.id = "r-1", .door = "local", .slots = {{"GPU-1", "GPU-1"}}};
  run.user = "ann";
  snapshot.leases = {pod, run};
  snapshot.outside["GPU-2"] = {{.pid = 1}, {.pid = 2}};
  return snapshot;
}

share::OfferedSlot Share(const std::string& device, int share, bool usable) {
  return {.slot = {device + "::" + std::to_string(share), device, "nvidia.com/gpu", {device::Sharing::kMps, 3}},
          .usable = usable,
          .isolation = device::Isolation::kMemoryPerProcess};
}

std::vector<share::Offer> Offered() {
  share::Offer mps{.resource = "nvidia.com/gpu", .door = "kubelet"}, local{.resource = "nvidia.com/gpu", .door = "local"};
  mps.slots = {Share("GPU-0", 0, true), Share("GPU-0", 1, true), Share("GPU-0", 2, false)};
  local.slots = {{.slot = {"GPU-1", "GPU-1", "nvidia.com/gpu"}, .usable = false}};
  return {mps, local};
}

device::SharedDevices Servers() {
  device::SharedDevice server{.set = "nvidia.com/gpu", .ready = true, .isolation = device::Isolation::kMemoryPerProcess};
  server.memory = base::Mebibytes(13653);
  server.compute_percent = 33;
  server.clients = 2;
  return {{"GPU-0", server}, {"GPU-2", {.set = "nvidia.com/gpu", .reason = "the GPU is gone"}}};
}

Figures Figured() {
  return {.version = "0.1.0",
          .queue_length = 4,
          .processes = {{.process = "agent", .resident_bytes = 9000000, .cpu_seconds = 0.25},
                        {.process = "worker", .resident_bytes = 3000000, .cpu_seconds = 1}},
          .evidence = {{.device = "GPU-1", .kind = "xid", .code = 79, .severity = device::Severity::kGone, .count = 2},
                       {.device = "GPU-1", .kind = "xid", .code = -1, .severity = device::Severity::kWarn, .count = 9}},
          .health = {{"GPU-0", {.relapses = 0}}, {"GPU-1", {.probation_until = base::WallTime(1700000060s), .relapses = 3}}},
          .transitions = {{.device = "GPU-1", .to = device::HealthState::kUnhealthy, .count = 4}},
          .resets = {{.device = "GPU-1", .result = "refused", .count = 1}},
          .offers = std::make_shared<const std::vector<share::Offer>>(Offered()),
          .servers = std::make_shared<const device::SharedDevices>(Servers()),
          .reloads = {.applied = 3, .refused = 1, .last_successful = false, .last_applied = base::WallTime(1700000000250ms)},
          .api_requests = ApiRequests{.reads = 5, .writes = 4, .streams = 2, .retries = 1, .failures = 0}};
}

TEST(Metrics, ThePageIsTheGoldenOne) {
  const std::string path = PENSTOCK_SOURCE_DIR "/src/node/metrics/testdata/page.txt";
  const std::string page = Render(Inventory(), Ledger(), Figured());
  if (std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr) { ASSERT_TRUE(os::WriteFileAtomically(path, page).ok()); }
  EXPECT_EQ(page, os::ReadFile(path).value_or("")) << "if this is meant, run with PENSTOCK_UPDATE_GOLDEN=1";
}

// A dashboard of shares sums over the states, so that none may be counted twice.
TEST(Metrics, CountsEachShareOnce) {
  const std::string page = Render(Inventory(), Ledger(), Figured());
  const std::string gpu = "accelerator_shares{device=\"GPU-0\",index=\"0\",model=\"NVIDIA A100-SXM4-40GB\",state=";
  EXPECT_THAT(page, HasSubstr(gpu + "\"held\"} 1\n"));
  EXPECT_THAT(page, HasSubstr(gpu + "\"free\"} 1\n"));
  EXPECT_THAT(page, HasSubstr(gpu + "\"unusable\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("accelerator_shares{device=\"GPU-1\",index=\"1\",model=\"NVIDIA A100-SXM4-40GB\",state=\"held\"} 1\n"));
  EXPECT_THAT(page, Not(HasSubstr("accelerator_shares{device=\"GPU-2\""))) << "offered nowhere";
  EXPECT_THAT(page, HasSubstr("penstock_sharing_server_up{set=\"nvidia.com/gpu\"} 0\n")) << "one of its GPUs is not served";
}

TEST(Metrics, AnEmptyNodeStillTellsAboutItself) {
  const std::string page = Render({}, {}, {.version = "0.1.0"});
  EXPECT_THAT(page, HasSubstr("penstock_build_info{version=\"0.1.0\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("penstock_queue_length 0\n"));
  EXPECT_THAT(page, Not(HasSubstr("accelerator_")));
}

TEST(Metrics, EscapesWhatOthersNamed) {
  EXPECT_EQ(Labels()
                .Add("a", "q\"b\\n\n")
                .Add("b",
                     "\xff"
                     "x")
                .text(),
            R"(a="q\"b\\n\n",b="?x")");
  Exposition page;
  page.Family("x", Exposition::Type::kCounter, "a \"b\" \\ \nc");
  page.Add({}, 1.5);
  page.Add({}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(page.Take(), "# HELP x a \"b\" \\\\ \\nc\n# TYPE x counter\nx 1.5\n");
}

TEST(Metrics, TheReferenceDocumentsEveryFamilyWithItsLabels) {
  const std::string reference = os::ReadFile(PENSTOCK_SOURCE_DIR "/docs/reference/metrics.md").value_or("");
  std::string name;
  for (const std::string& line : base::Split(Render(Inventory(), Ledger(), Figured()), '\n')) {
    const auto words = base::Split(line, ' ');
    if (line.starts_with("# TYPE")) {
      name = words[2];
      EXPECT_THAT(reference, HasSubstr("| `" + name + "` | " + words[3] + " |"));
    }
    if (line.empty() || line.front() == '#' || line.find('{') == std::string::npos) continue;
    const auto row = reference.find("| `" + name + "` |");
    const std::string documented = row == std::string::npos ? "" : reference.substr(row, reference.find('\n', row) - row);
    for (std::size_t at = 0, equals = 0; (equals = line.find("=\"", at)) != std::string::npos; at = equals + 2) {
      const auto begin = line.find_last_of("{,", equals) + 1;
      EXPECT_THAT(documented, HasSubstr("`" + line.substr(begin, equals - begin) + "`")) << line;
    }
  }
}

}  // namespace
}  // namespace penstock::node::metrics
