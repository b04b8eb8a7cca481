// NVML calls for a device's names, numbers and versions. Reads the state, changes nothing.
#include <stdio.h>
#include <string.h>

#include "sim/nvml/library.h"

NvReturn nvmlDeviceGetName(NvDevice device, NvText* name, NvUint length) {
  DEVICE_CALL(nvmlDeviceGetName);
  if (MigOf(device)) return MigName(gpu, MigOf(device), name, length);
  return CopyText(gpu->name, name, length);
}

NvReturn nvmlDeviceGetBrand(NvDevice device, NvUint* brand) {
  DEVICE_CALL(nvmlDeviceGetBrand);
  return Give(gpu->brand, brand);
}

NvReturn nvmlDeviceGetIndex(NvDevice device, NvUint* index) {
  NEED(index);
  DEVICE_CALL(nvmlDeviceGetIndex);
  if (MigOf(device)) return MigIndex(gpu, MigOf(device), index);
  const SimState* state = SessionState();
  *index = 0;
  for (uint32_t i = 0; &state->gpus[i] < gpu; i++) *index += (NvUint)SlotShown(state, i);
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetUUID(NvDevice device, NvText* uuid, NvUint length) {
  DEVICE_CALL(nvmlDeviceGetUUID);
  if (MigOf(device)) return MigUuid(gpu, MigOf(device), uuid, length);
  return CopyText(gpu->uuid, uuid, length);
}

NvReturn nvmlDeviceGetSerial(NvDevice device, NvText* serial, NvUint length) {
  DEVICE_CALL(nvmlDeviceGetSerial);
  return CopyText(gpu->serial, serial, length);
}

NvReturn nvmlDeviceGetMinorNumber(NvDevice device, NvUint* minor) {
  DEVICE_CALL(nvmlDeviceGetMinorNumber);
  return Give(gpu->minor, minor);
}

NvReturn nvmlDeviceGetModuleId(NvDevice device, NvUint* id) {
  DEVICE_CALL(nvmlDeviceGetModuleId);
  return Give(gpu->module_id, id);
}

NvReturn nvmlDeviceGetBoardId(NvDevice device, NvUint* id) {
  DEVICE_CALL(nvmlDeviceGetBoardId);
  return Give(gpu->domain << 16 | gpu->bus << 8 | gpu->device, id);
}

NvReturn nvmlDeviceGetMultiGpuBoard(NvDevice device, NvUint* multi) {
  DEVICE_CALL(nvmlDeviceGetMultiGpuBoard);
  return Give(0, multi);
}

NvReturn nvmlDeviceOnSameBoard(NvDevice device, NvDevice other, int* same) {
  NEED(same);
  DEVICE_CALL(nvmlDeviceOnSameBoard);
  SimGpu* second;
  const NvReturn result = OtherDevice(other, &second);
  if (result == NV_SUCCESS) *same = second == gpu;
  return result;
}

NvReturn nvmlDeviceGetBoardPartNumber(NvDevice device, NvText* part, NvUint length) {
  DEVICE_CALL(nvmlDeviceGetBoardPartNumber);
  return CopyText(gpu->part_number, part, length);
}

NvReturn nvmlDeviceGetVbiosVersion(NvDevice device, NvText* version, NvUint length) {
  DEVICE_CALL(nvmlDeviceGetVbiosVersion);
  return CopyText(gpu->vbios, version, length);
}

NvReturn nvmlDeviceGetInforomVersion(NvDevice device, NvUint object, NvText* version,
                                     NvUint length) {
  DEVICE_CALL(nvmlDeviceGetInforomVersion);
  if (object > NV_INFOROM_POWER) return NV_INVALID_ARGUMENT;
  if (!gpu->inforom_image[0] || object == NV_INFOROM_POWER) return NV_NOT_SUPPORTED;
  return CopyText(object == NV_INFOROM_OEM ? "2.0" : "6.16", version, length);
}

NvReturn nvmlDeviceGetInforomImageVersion(NvDevice device, NvText* version, NvUint length) {
  DEVICE_CALL(nvmlDeviceGetInforomImageVersion);
  return CopyText(gpu->inforom_image, version, length);
}

void FillPci(NvPciInfo* pci, uint32_t domain, uint32_t bus, uint32_t device, uint32_t id,
             uint32_t subsystem) {
  memset(pci, 0, sizeof *pci);
  snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", domain & 0xffff,
           bus & 0xff, device & 0xff);
  snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", domain, bus, device);
  pci->domain = domain;
  pci->bus = bus;
  pci->device = device;
  pci->pciDeviceId = id;
  pci->pciSubSystemId = subsystem;
}

// Callers of the first two versions have a smaller struct: nothing may be written behind its
// subsystem id.
static void FillOldPci(NvPciInfo* pci, const SimGpu* gpu) {
  NvPciInfo whole;
  FillPci(&whole, gpu->domain, gpu->bus, gpu->device, gpu->pci_id, gpu->subsystem_id);
  memcpy(pci, &whole, __builtin_offsetof(NvPciInfo, busId));
}

NvReturn nvmlDeviceGetPciInfo(NvDevice device, NvPciInfo* pci) {
  NEED(pci);
  DEVICE_CALL(nvmlDeviceGetPciInfo);
  FillOldPci(pci, gpu);
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetPciInfo_v2(NvDevice device, NvPciInfo* pci) {
  NEED(pci);
  DEVICE_CALL(nvmlDeviceGetPciInfo_v2);
  FillOldPci(pci, gpu);
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetPciInfo_v3(NvDevice device, NvPciInfo* pci) {
  NEED(pci);
  DEVICE_CALL(nvmlDeviceGetPciInfo_v3);
  FillPci(pci, gpu->domain, gpu->bus, gpu->device, gpu->pci_id, gpu->subsystem_id);
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetPciInfoExt(NvDevice device, NvPciInfoExt* pci) {
  NEED(pci);
  DEVICE_CALL(nvmlDeviceGetPciInfoExt);
  if (pci->version != NV_STRUCT_VERSION(NvPciInfoExt, 1)) return NV_ARGUMENT_VERSION_MISMATCH;
  pci->domain = gpu->domain;
  pci->bus = gpu->bus;
  pci->device = gpu->device;
  pci->pciDeviceId = gpu->pci_id;
  pci->pciSubSystemId = gpu->subsystem_id;
  pci->baseClass = gpu->pci_class >> 16;
  pci->subClass = gpu->pci_class >> 8 & 0xff;
  snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", gpu->domain, gpu->bus, gpu->device);
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetCudaComputeCapability(NvDevice device, int* major, int* minor) {
  if (!major || !minor) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetCudaComputeCapability);
  *major = (int)gpu->cc_major;
  *minor = (int)gpu->cc_minor;
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetArchitecture(NvDevice device, NvUint* architecture) {
  DEVICE_CALL(nvmlDeviceGetArchitecture);
  return Give(gpu->architecture, architecture);
}

NvReturn nvmlDeviceGetNumGpuCores(NvDevice device, NvUint* cores) {
  DEVICE_CALL(nvmlDeviceGetNumGpuCores);
  return Give(gpu->cores, cores);
}

NvReturn nvmlDeviceGetMemoryBusWidth(NvDevice device, NvUint* bits) {
  DEVICE_CALL(nvmlDeviceGetMemoryBusWidth);
  return Give(gpu->memory_bus_bits, bits);
}

NvReturn nvmlDeviceGetBusType(NvDevice device, NvUint* type) {
  DEVICE_CALL(nvmlDeviceGetBusType);
  return Give(2, type);  // PCIe
}

NvReturn nvmlDeviceGetIrqNum(NvDevice device, NvUint* irq) {
  DEVICE_CALL(nvmlDeviceGetIrqNum);
  return Give(200 + gpu->minor, irq);
}

NvReturn nvmlDeviceGetGspFirmwareVersion(NvDevice device, NvText* version) {
  NEED(version);
  DEVICE_CALL(nvmlDeviceGetGspFirmwareVersion);
  if (gpu->gsp_mode != NV_ENABLED) return NV_NOT_SUPPORTED;
  return CopyText(SessionState()->driver_version, version, 0x40);
}

NvReturn nvmlDeviceGetGspFirmwareMode(NvDevice device, NvUint* enabled, NvUint* by_default) {
  if (!enabled || !by_default) return NV_INVALID_ARGUMENT;
  DEVICE_CALL(nvmlDeviceGetGspFirmwareMode);
  *by_default = gpu->gsp_mode == NV_ENABLED;
  return Give(gpu->gsp_mode, enabled);
}

NvReturn nvmlDeviceGetVirtualizationMode(NvDevice device, NvUint* mode) {
  DEVICE_CALL(nvmlDeviceGetVirtualizationMode);
  return Give(gpu->virtualization, mode);
}

// A physical GPU requires no license. The structs of the first three versions lack the expiry.
static NvReturn Licenses(const SimGpu* gpu, NvLicenses* licenses, size_t size_of_one) {
  NEED(licenses);
  licenses->isGridLicenseSupported = gpu->vgpu_licensed != SIM_NA;
  licenses->licensableFeaturesCount = (NvUint)licenses->isGridLicenseSupported;
  if (!licenses->isGridLicenseSupported) return NV_SUCCESS;
  NvLicense license = {
      .featureCode = NV_LICENSE_VGPU, .featureState = gpu->vgpu_licensed, .featureEnabled = 1};
  snprintf(license.productName, sizeof license.productName, "NVIDIA RTX Virtual Workstation");
  if (gpu->vgpu_licensed) license.licenseExpiry = (NvLicenseExpiry){.status = NV_LICENSE_PERMANENT};
  memcpy(licenses->gridLicensableFeatures, &license, size_of_one);
  return NV_SUCCESS;
}

#define LICENSES(name, size)                             \
  NvReturn name(NvDevice device, NvLicenses* licenses) { \
    DEVICE_CALL(name);                                   \
    return Licenses(gpu, licenses, size);                \
  }

LICENSES(nvmlDeviceGetGridLicensableFeatures, offsetof(NvLicense, productName))
LICENSES(nvmlDeviceGetGridLicensableFeatures_v2, offsetof(NvLicense, featureEnabled))
LICENSES(nvmlDeviceGetGridLicensableFeatures_v3, offsetof(NvLicense, licenseExpiry))
LICENSES(nvmlDeviceGetGridLicensableFeatures_v4, sizeof(NvLicense))
