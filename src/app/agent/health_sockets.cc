#include "app/agent/health_sockets.h"

#include <algorithm>
#include <utility>

#include "backend/all.h"
#include "base/core/strings.h"
#include "base/log.h"

namespace penstock::app {
namespace {

using protocol::metricssvc::DeviceHealth;

/// The end of another server is no event of the folder.
constexpr base::Duration kLookAgain = std::chrono::seconds(30);

/// The devices of a vendor, without their parts: the exporter's health is that of the PCI function.
std::vector<DeviceHealth> HealthOf(std::string_view vendor,
                                   const node::inventory::Snapshot& inventory,
                                   const node::ledger::Snapshot& ledger) {
  std::vector<DeviceHealth> devices;
  for (const node::inventory::Entry& entry : inventory.devices) {
    const device::Facts& facts = *entry.facts;
    if (facts.vendor != vendor || !facts.parent.empty() || !facts.pci) continue;
    DeviceHealth device{.number = device::NumberOf(facts),
                        .id = facts.id,
                        .pci = ToString(*facts.pci),
                        .healthy = entry.health.state == device::HealthState::kHealthy};
    for (const node::ledger::Lease& lease : ledger.leases) {
      const bool holds = std::ranges::any_of(lease.slots, [&](const node::ledger::Slot& slot) {
        const auto* held = inventory.Find(slot.device);
        return slot.device == facts.id || (held != nullptr && held->IsPartOf(facts.id));
      });
      if (holds && !lease.pod.empty())
        device.holders.push_back("pod : " + lease.pod + ", namespace : " + lease.namespace_name +
                                 ", container: " + lease.container);
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace

HealthSockets::~HealthSockets() {
  for (auto& [path, socket] : sockets_) control_.Cancel(socket.retry);
}

void HealthSockets::Follow() {
  const auto inventory = inventory_.published().Get();
  for (const node::inventory::VendorEntry& vendor : inventory->vendors) {
    const std::string path(backend::HealthSocketOf(vendor.vendor));
    if (path.empty()) continue;
    const auto found = sockets_.find(path);
    if (vendor.driver == nullptr && found != sockets_.end()) {
      control_.Cancel(found->second.retry);
      sockets_.erase(found);
    } else if (vendor.driver != nullptr && found == sockets_.end()) {
      Socket& socket = sockets_[path];
      socket.vendor = vendor.vendor;
      socket.watch = std::make_unique<os::PathWatch>(control_, base::FolderOf(path),
                                                     [this, path] { Try(path); });
      Try(path);
    } else if (vendor.driver != nullptr && found->second.server) {
      Publish(found->second);
    }
  }
}

void HealthSockets::Publish(Socket& socket) {
  auto devices = HealthOf(socket.vendor, *inventory_.published().Get(), *ledger_.Get());
  if (devices == socket.devices) return;
  socket.devices = std::move(devices);
  socket.server->Publish(socket.devices);
}

void HealthSockets::Try(const std::string& path) {
  Socket& socket = sockets_.at(path);
  control_.Cancel(std::exchange(socket.retry, 0));
  if (socket.server && socket.server->IsServed()) return;
  socket.server.reset();
  auto started = protocol::metricssvc::HealthServer::Start(path);
  std::string problem;
  if (started.ok()) {
    socket.server = *std::move(started);
    socket.devices.clear();
    Publish(socket);
    base::Log(base::kInfo, "health of devices is served to another device plugin",
              {{"socket", path}});
  } else if (started.error().code() != base::Code::kNotFound) {
    problem = started.error().message();
    socket.retry = control_.PostAfter(kLookAgain, [this, path] { Try(path); });
  }
  const bool expected = !started.ok() && started.error().code() == base::Code::kAlreadyExists;
  if (problem != socket.problem && !problem.empty())
    base::Log(expected ? base::kInfo : base::kWarn,
              "health of devices is not served to another device plugin",
              {{"socket", path}, {"why", problem}});
  socket.problem = std::move(problem);
}

}  // namespace penstock::app
