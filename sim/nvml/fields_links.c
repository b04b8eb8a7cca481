// NVML's field values of NVLink. Reads the state, changes nothing.
#include "sim/nvml/fields.h"

// Errors of the links: ids for one link or for all of them and, up to Hopper, an id whose scope is
// the link.
static int LinkErrorField(NvFieldValue* field, const SimGpu* gpu) {
  static const struct {
    NvUint first, sixth, total;
    int error;
  } kFields[] = {
      {NV_FI_NVLINK_CRC_FLIT_L0, NV_FI_NVLINK_CRC_FLIT_L6, NV_FI_NVLINK_CRC_FLIT_TOTAL,
       kSimLinkCrcFlit},
      {NV_FI_NVLINK_CRC_DATA_L0, NV_FI_NVLINK_CRC_DATA_L6, NV_FI_NVLINK_CRC_DATA_TOTAL,
       kSimLinkCrcData},
      {NV_FI_NVLINK_REPLAY_L0, NV_FI_NVLINK_REPLAY_L6, NV_FI_NVLINK_REPLAY_TOTAL, kSimLinkReplay},
      {NV_FI_NVLINK_RECOVERY_L0, NV_FI_NVLINK_RECOVERY_L6, NV_FI_NVLINK_RECOVERY_TOTAL,
       kSimLinkRecovery}};
  const NvUint id = field->fieldId;
  const int before_nvlink5 = gpu->architecture < NV_ARCH_BLACKWELL;
  for (unsigned i = 0; i < sizeof kFields / sizeof kFields[0]; i++) {
    uint32_t link = kSimMaxLinks;
    uint64_t total = 0;
    if (id == kFields[i].total) {
      for (uint32_t l = 0; l < kSimMaxLinks; l++) total += gpu->nvlinks[l].errors[kFields[i].error];
      FieldLong(field, before_nvlink5 && ActiveLinks(gpu) > 0, total);
      return 1;
    }
    if (id >= kFields[i].first && id < kFields[i].first + 6) link = id - kFields[i].first;
    if (id >= kFields[i].sixth && id < kFields[i].sixth + 6) link = 6 + id - kFields[i].sixth;
    if (id == NV_FI_NVLINK_DL_REPLAY && kFields[i].error == kSimLinkReplay) link = field->scopeId;
    if (id == NV_FI_NVLINK_DL_RECOVERY && kFields[i].error == kSimLinkRecovery)
      link = field->scopeId;
    if (id == NV_FI_NVLINK_DL_CRC && kFields[i].error == kSimLinkCrcFlit) link = field->scopeId;
    if (link >= kSimMaxLinks) continue;
    FieldLong(field, before_nvlink5 && gpu->nvlinks[link].active,
              gpu->nvlinks[link].errors[kFields[i].error]);
    return 1;
  }
  return 0;
}

// Traffic of the links: KiB up to Hopper, bytes with NVLink 5. The scope is a link, or all of them.
static int LinkTrafficField(NvFieldValue* field, const struct Look* look) {
  const SimGpu* gpu = look->gpu;
  const NvUint id = field->fieldId;
  const int kib = id >= NV_FI_NVLINK_THROUGHPUT_DATA_TX && id <= NV_FI_NVLINK_THROUGHPUT_RAW_RX;
  const int bytes = id >= NV_FI_NVLINK_XMIT_PACKETS && id <= NV_FI_NVLINK_RCV_BYTES;
  if (!kib && !bytes) return 0;
  const int received =
      kib ? (id - NV_FI_NVLINK_THROUGHPUT_DATA_TX) % 2 : id >= NV_FI_NVLINK_RCV_PACKETS;
  const int packets = id == NV_FI_NVLINK_XMIT_PACKETS || id == NV_FI_NVLINK_RCV_PACKETS;
  const int raw = kib && id >= NV_FI_NVLINK_THROUGHPUT_DATA_TX + 2;
  uint64_t count = look->meters.count[received ? kSimNvlinkRx : kSimNvlinkTx];
  if (raw) count += count / 16;  // packet headers
  const int all = field->scopeId == UINT32_MAX;
  if (!all && field->scopeId >= kSimMaxLinks) {
    field->nvmlReturn = NV_INVALID_ARGUMENT;
    return 1;
  }
  const int there = all ? ActiveLinks(gpu) > 0 : gpu->nvlinks[field->scopeId].active != 0;
  const int fits = bytes == (gpu->architecture >= NV_ARCH_BLACKWELL);
  if (!all) count = LinkPart(gpu, field->scopeId, count);
  FieldLong(field, there && fits, kib ? count / 1024 : packets ? count / 256 : count);
  return 1;
}

static int IsStateField(NvUint id) {
  return (id >= NV_FI_NVLINK_GET_SPEED && id <= NV_FI_NVLINK_GET_VERSION) ||
         (id >= NV_FI_NVLINK_SPEED_L0 && id <= NV_FI_NVLINK_SPEED_L5) ||
         (id >= NV_FI_NVLINK_SPEED_L6 && id <= NV_FI_NVLINK_SPEED_L11);
}

static void StateField(NvFieldValue* field, const SimGpu* gpu) {
  uint32_t link = field->scopeId;
  if (field->fieldId <= NV_FI_NVLINK_SPEED_L5)
    link = field->fieldId - NV_FI_NVLINK_SPEED_L0;
  else if (field->fieldId <= NV_FI_NVLINK_SPEED_L11)
    link = 6 + field->fieldId - NV_FI_NVLINK_SPEED_L6;
  const int up = link < gpu->nvlink_count && link < kSimMaxLinks && gpu->nvlinks[link].active;
  switch (field->fieldId) {
    case NV_FI_NVLINK_GET_STATE:
      FieldUint(field, link < gpu->nvlink_count ? (uint32_t)up : SIM_NA);
      break;
    case NV_FI_NVLINK_GET_VERSION: FieldUint(field, up ? gpu->nvlink_version : SIM_NA); break;
    default: FieldUint(field, up ? gpu->nvlink_mbps : SIM_NA); break;
  }
}

// Errors of NVLink 5, whose scope is the link. Errors that penstock-sim can set have their count;
// all others are zero.
static int Link5Field(NvFieldValue* field, const SimGpu* gpu) {
  const NvUint id = field->fieldId;
  const int is_error = id >= NV_FI_NVLINK_MALFORMED && id <= NV_FI_NVLINK_SYMBOL_BER;
  const int is_history = id >= NV_FI_NVLINK_FEC_HISTORY_0 && id <= NV_FI_NVLINK_FEC_HISTORY_15;
  if (!is_error && !is_history) return 0;
  const NvUint link = field->scopeId;
  if (link >= kSimMaxLinks) {
    field->nvmlReturn = NV_INVALID_ARGUMENT;
    return 1;
  }
  const uint64_t* errors = gpu->nvlinks[link].errors;
  uint64_t count = 0;
  if (id == NV_FI_NVLINK_RCV_ERRORS) count = errors[kSimLinkCrcFlit] + errors[kSimLinkCrcData];
  if (id == NV_FI_NVLINK_RECOVERIES || id == NV_FI_NVLINK_RECOVERIES_GOOD)
    count = errors[kSimLinkRecovery];
  FieldLong(field, gpu->architecture >= NV_ARCH_BLACKWELL && gpu->nvlinks[link].active, count);
  return 1;
}

int LinkField(NvFieldValue* field, const struct Look* look) {
  const SimGpu* gpu = look->gpu;
  const NvUint id = field->fieldId;
  if (LinkTrafficField(field, look) || LinkErrorField(field, gpu) || Link5Field(field, gpu))
    return 1;
  if (IsStateField(id)) {
    StateField(field, gpu);
    return 1;
  }
  const NvUint active = ActiveLinks(gpu);
  switch (id) {
    case NV_FI_NVLINK_SPEED_COMMON: FieldUint(field, active ? gpu->nvlink_mbps : SIM_NA); return 1;
    case NV_FI_NVLINK_LINK_COUNT: FieldUint(field, gpu->nvlink_count); return 1;
    case NV_FI_NVSWITCH_CONNECTED_LINK_COUNT:
      FieldUint(field, active && gpu->nvlinks[0].remote_type == NV_LINK_TO_SWITCH ? active : 0);
      return 1;
    case NV_FI_NVLINK_ECC_DATA_TOTAL:
      FieldLong(
          field,
          active && gpu->architecture >= NV_ARCH_AMPERE && gpu->architecture < NV_ARCH_BLACKWELL,
          0);
      return 1;
    default: return 0;
  }
}
