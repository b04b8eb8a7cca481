// NVML calls for a device's place in the machine: NUMA, CPUs, PCIe, NVLink, fabric. Reads the
// state, changes nothing.
#include <string.h>

#include "sim/nvml/library.h"

NvReturn nvmlDeviceGetNumaNodeId(NvDevice device, NvUint* node) {
  NEED(node);
  DEVICE_CALL(nvmlDeviceGetNumaNodeId);
  // The node of the GPU's own memory, which only coherent platforms (Grace) have; not the CPU node
  // nearest to it.
  return NV_NOT_SUPPORTED;
}

static void SetBit(NvMask* words, NvUint count, unsigned bit) {
  const unsigned bits = 8 * sizeof(NvMask);
  if (bit / bits < count) words[bit / bits] |= 1UL << (bit % bits);
}

NvReturn nvmlDeviceGetMemoryAffinity(NvDevice device, NvUint words, NvMask* nodes, NvUint scope) {
  if (!nodes || !words || scope > 1) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetMemoryAffinity);
  if (gpu->numa_node < 0) return NV_NOT_SUPPORTED;
  memset(nodes, 0, words * sizeof *nodes);
  SetBit(nodes, words, (unsigned)gpu->numa_node);
  return NV_SUCCESS;
}

static unsigned Number(const char** text) {
  unsigned value = 0;
  for (; **text >= '0' && **text <= '9'; (*text)++) value = value * 10 + (unsigned)(**text - '0');
  return value;
}

// Converts "48-63,176-191" into a bit mask.
static NvReturn CpuMask(const SimGpu* gpu, NvUint words, NvMask* cpus) {
  if (!gpu->cpu_list[0]) return NV_NOT_SUPPORTED;
  memset(cpus, 0, words * sizeof *cpus);
  for (const char* at = gpu->cpu_list; *at;) {
    const unsigned first = Number(&at);
    unsigned last = first;
    if (*at == '-') {
      at++;
      last = Number(&at);
    }
    for (unsigned cpu = first; cpu <= last && cpu < 65536; cpu++) SetBit(cpus, words, cpu);
    if (*at != ',') break;
    at++;
  }
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetCpuAffinityWithinScope(NvDevice device, NvUint words, NvMask* cpus,
                                             NvUint scope) {
  if (!cpus || !words || scope > 1) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetCpuAffinityWithinScope);
  return CpuMask(gpu, words, cpus);
}

NvReturn nvmlDeviceGetCpuAffinity(NvDevice device, NvUint words, NvMask* cpus) {
  if (!cpus || !words) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetCpuAffinity);
  return CpuMask(gpu, words, cpus);
}

NvReturn nvmlDeviceGetTopologyCommonAncestor(NvDevice device, NvDevice other, NvUint* level) {
  NEED(level);
  DEVICE_CALL(nvmlDeviceGetTopologyCommonAncestor);
  SimGpu* second;
  const NvReturn result = OtherDevice(other, &second);
  if (result == NV_SUCCESS) *level = gpu->topology[second - SessionState()->gpus];
  return result;
}

NvReturn nvmlDeviceGetTopologyNearestGpus(NvDevice device, NvUint level, NvUint* count,
                                          NvDevice* devices) {
  NEED(count);
  DEVICE_CALL(nvmlDeviceGetTopologyNearestGpus);
  const SimState* state = SessionState();
  NvUint found = 0;
  for (uint32_t i = 0; i < state->gpu_count; i++) {
    if (&state->gpus[i] == gpu || gpu->topology[i] != level || !SlotShown(state, i)) continue;
    if (devices && found < *count) devices[found] = HandleOf(i);
    found++;
  }
  const int short_of_room = devices && *count < found;
  *count = found;
  return short_of_room ? NV_INSUFFICIENT_SIZE : NV_SUCCESS;
}

NvReturn nvmlDeviceGetP2PStatus(NvDevice device, NvDevice other, NvUint capability,
                                NvUint* status) {
  if (!status || capability > NV_P2P_PCI) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetP2PStatus);
  SimGpu* second;
  const NvReturn result = OtherDevice(other, &second);
  if (result != NV_SUCCESS) return result;
  if (second == gpu) return NV_INVALID_ARGUMENT;
  const size_t at = (size_t)(second - SessionState()->gpus);
  if (gpu->nvlink_to[at])
    *status = capability == NV_P2P_PCI ? NV_P2P_NOT_SUPPORTED : NV_P2P_OK;
  else if (capability == NV_P2P_NVLINK || capability == NV_P2P_ATOMICS ||
           gpu->brand == NV_BRAND_GEFORCE)
    *status = NV_P2P_NOT_SUPPORTED;
  else
    *status =
        gpu->topology[at] <= NV_TOPOLOGY_HOSTBRIDGE ? NV_P2P_OK : NV_P2P_CHIPSET_NOT_SUPPORTED;
  return NV_SUCCESS;
}

// Returns INVALID_ARGUMENT beyond the last link of any GPU, NOT_SUPPORTED beyond the last link of
// this one.
static NvReturn Link(const SimGpu* gpu, NvUint link, const SimNvLink** found) {
  if (link >= NV_MAX_LINKS) return NV_INVALID_ARGUMENT;
  if (link >= gpu->nvlink_count) return NV_NOT_SUPPORTED;
  *found = &gpu->nvlinks[link];
  return NV_SUCCESS;
}

#define LINK_CALL(name)                    \
  const SimNvLink* at = 0;                 \
  DEVICE_CALL(name);                       \
  {                                        \
    NvReturn found = Link(gpu, link, &at); \
    if (found != NV_SUCCESS) return found; \
  }

NvReturn nvmlDeviceGetNvLinkState(NvDevice device, NvUint link, NvUint* active) {
  LINK_CALL(nvmlDeviceGetNvLinkState);
  return Give(at->active, active);
}

NvReturn nvmlDeviceGetNvLinkVersion(NvDevice device, NvUint link, NvUint* version) {
  LINK_CALL(nvmlDeviceGetNvLinkVersion);
  return at->active ? Give(gpu->nvlink_version, version) : NV_NOT_SUPPORTED;
}

NvReturn nvmlDeviceGetNvLinkCapability(NvDevice device, NvUint link, NvUint capability,
                                       NvUint* result) {
  if (capability > NV_LINK_CAP_VALID) return NV_INVALID_ARGUMENT;
  LINK_CALL(nvmlDeviceGetNvLinkCapability);
  return Give(at->active && capability != NV_LINK_CAP_SLI, result);
}

NvReturn nvmlDeviceGetNvLinkErrorCounter(NvDevice device, NvUint link, NvUint counter,
                                         NvUlong* value) {
  if (!value || counter > 4) return NV_INVALID_ARGUMENT;
  // nvmlNvLinkErrorCounter_t: replay, recovery, CRC of flits, CRC of data, ECC of data.
  static const int kOf[] = {kSimLinkReplay, kSimLinkRecovery, kSimLinkCrcFlit, kSimLinkCrcData};
  LINK_CALL(nvmlDeviceGetNvLinkErrorCounter);
  *value = counter < 4 ? at->errors[kOf[counter]] : 0;
  return at->active ? NV_SUCCESS : NV_NOT_SUPPORTED;
}

NvReturn nvmlDeviceGetNvLinkRemotePciInfo(NvDevice device, NvUint link, NvPciInfo* pci) {
  NEED(pci);
  LINK_CALL(nvmlDeviceGetNvLinkRemotePciInfo);
  if (!at->active) return NV_NOT_SUPPORTED;
  NvPciInfo whole;
  FillPci(&whole, at->remote_domain, at->remote_bus, at->remote_device, at->remote_pci_id,
          at->remote_subsystem_id);
  memcpy(pci, &whole, __builtin_offsetof(NvPciInfo, busId));
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetNvLinkRemotePciInfo_v2(NvDevice device, NvUint link, NvPciInfo* pci) {
  NEED(pci);
  LINK_CALL(nvmlDeviceGetNvLinkRemotePciInfo_v2);
  if (!at->active) return NV_NOT_SUPPORTED;
  FillPci(pci, at->remote_domain, at->remote_bus, at->remote_device, at->remote_pci_id,
          at->remote_subsystem_id);
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetNvLinkRemoteDeviceType(NvDevice device, NvUint link, NvUint* type) {
  LINK_CALL(nvmlDeviceGetNvLinkRemoteDeviceType);
  return at->active ? Give(at->remote_type, type) : NV_NOT_SUPPORTED;
}

NvReturn nvmlDeviceGetMaxPcieLinkGeneration(NvDevice device, NvUint* generation) {
  DEVICE_CALL(nvmlDeviceGetMaxPcieLinkGeneration);
  const int host_is_less = gpu->pcie_gen_host != SIM_NA && gpu->pcie_gen_host < gpu->pcie_gen_max;
  return Give(host_is_less ? gpu->pcie_gen_host : gpu->pcie_gen_max, generation);
}

NvReturn nvmlDeviceGetGpuMaxPcieLinkGeneration(NvDevice device, NvUint* generation) {
  DEVICE_CALL(nvmlDeviceGetGpuMaxPcieLinkGeneration);
  return Give(gpu->pcie_gen_max, generation);
}

NvReturn nvmlDeviceGetMaxPcieLinkWidth(NvDevice device, NvUint* width) {
  DEVICE_CALL(nvmlDeviceGetMaxPcieLinkWidth);
  return Give(gpu->pcie_width_max, width);
}

NvReturn nvmlDeviceGetCurrPcieLinkGeneration(NvDevice device, NvUint* generation) {
  DEVICE_CALL(nvmlDeviceGetCurrPcieLinkGeneration);
  return Give(gpu->pcie_gen_current, generation);
}

NvReturn nvmlDeviceGetCurrPcieLinkWidth(NvDevice device, NvUint* width) {
  DEVICE_CALL(nvmlDeviceGetCurrPcieLinkWidth);
  return Give(gpu->pcie_width, width);
}

NvReturn nvmlDeviceGetPcieLinkMaxSpeed(NvDevice device, NvUint* speed) {
  DEVICE_CALL(nvmlDeviceGetPcieLinkMaxSpeed);
  return Give(gpu->pcie_gen_max, speed);  // the values of the enumeration are those of the
                                          // generations
}

NvReturn nvmlDeviceGetPcieSpeed(NvDevice device, NvUint* mbps) {
  static const NvUint kSpeed[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};
  DEVICE_CALL(nvmlDeviceGetPcieSpeed);
  return gpu->pcie_gen_current < 7 ? Give(kSpeed[gpu->pcie_gen_current], mbps) : NV_NOT_SUPPORTED;
}

NvReturn nvmlDeviceGetPcieThroughput(NvDevice device, NvUint counter, NvUint* kib) {
  if (counter > 1) return NV_INVALID_ARGUMENT;
  NEED(kib);
  DEVICE_CALL(nvmlDeviceGetPcieThroughput);
  if (gpu->virtualization) return NV_NOT_SUPPORTED;
  struct Meters meters;
  ReadMeters(gpu, &meters);
  return Give((uint32_t)(meters.rate[counter == 0 ? kSimPcieTx : kSimPcieRx] / 1024), kib);
}

NvReturn nvmlDeviceGetPcieReplayCounter(NvDevice device, NvUint* count) {
  DEVICE_CALL(nvmlDeviceGetPcieReplayCounter);
  return Give(gpu->pcie_replays, count);
}

NvReturn nvmlDeviceGetGpuFabricInfo(NvDevice device, NvFabric* fabric) {
  NEED(fabric);
  DEVICE_CALL(nvmlDeviceGetGpuFabricInfo);
  memset(fabric, 0, sizeof *fabric);
  if (gpu->fabric == SIM_NA) return NV_NOT_SUPPORTED;
  memcpy(fabric->clusterUuid, gpu->fabric_cluster, sizeof fabric->clusterUuid);
  fabric->status = (NvReturn)gpu->fabric_status;
  fabric->cliqueId = gpu->fabric_clique;
  fabric->state = (unsigned char)gpu->fabric;
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetGpuFabricInfoV(NvDevice device, NvFabric3* fabric) {
  NEED(fabric);
  DEVICE_CALL(nvmlDeviceGetGpuFabricInfoV);
  const NvUint version = fabric->version;
  // A caller of version 2 has the shorter struct.
  size_t size = 0;
  if (version == NV_STRUCT_VERSION(NvFabric2, 2)) size = sizeof(NvFabric2);
  if (version == NV_STRUCT_VERSION(NvFabric3, 3) && SessionState()->driver_branch >= 580)
    size = sizeof(NvFabric3);
  if (size == 0) return NV_ARGUMENT_VERSION_MISMATCH;
  if (gpu->fabric == SIM_NA) return NV_NOT_SUPPORTED;
  memset(fabric, 0, size);
  fabric->version = version;
  memcpy(fabric->clusterUuid, gpu->fabric_cluster, sizeof fabric->clusterUuid);
  fabric->status = (NvReturn)gpu->fabric_status;
  fabric->cliqueId = gpu->fabric_clique;
  fabric->state = (unsigned char)gpu->fabric;
  fabric->healthMask = gpu->fabric_health;
  if (size == sizeof(NvFabric3)) fabric->healthSummary = (unsigned char)gpu->fabric_summary;
  return NV_SUCCESS;
}
