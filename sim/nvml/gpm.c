// NVML's GPM calls: samples of counters, and metrics computed from two samples. On Hopper and
// newer.
#include <stdlib.h>

#include "sim/nvml/library.h"

enum { kSampleMagic = 0x4d504753, kVersion = 1 };

struct SimGpmSample {
  uint32_t magic;
  uint32_t taken;
  SimGpu* gpu;
  uint32_t instance;  // SIM_NA: the whole GPU
  double part;        // the instance's part of the GPU's utilization
  struct Meters meters;
};

static int HasGpm(const SimGpu* gpu) {
  return gpu->architecture >= NV_ARCH_HOPPER && gpu->virtualization == 0;
}

NvReturn nvmlGpmQueryDeviceSupport(NvDevice device, NvGpmSupport* support) {
  NEED(support);
  DEVICE_CALL(nvmlGpmQueryDeviceSupport);
  if (support->version != kVersion) return NV_ARGUMENT_VERSION_MISMATCH;
  support->isSupportedDevice = (NvUint)HasGpm(gpu);
  return NV_SUCCESS;
}

NvReturn nvmlGpmSampleAlloc(NvGpmSample* sample) {
  NEED(sample);
  SYSTEM_CALL(nvmlGpmSampleAlloc);
  NvGpmSample made = calloc(1, sizeof *made);
  if (!made) return NV_MEMORY;
  made->magic = kSampleMagic;
  *sample = made;
  return NV_SUCCESS;
}

NvReturn nvmlGpmSampleFree(NvGpmSample sample) {
  const NvReturn result = Enter(kFunction_nvmlGpmSampleFree);
  if (!sample || sample->magic != kSampleMagic)
    return result == NV_SUCCESS ? NV_INVALID_ARGUMENT : result;
  // The sample belongs to the caller and is freed even if the driver is gone.
  sample->magic = 0;
  free(sample);
  return result;
}

// The simulated machine counts per GPU; an instance has the part of its processes at this moment.
static NvReturn Take(SimGpu* gpu, uint32_t instance, NvGpmSample sample) {
  if (!sample || sample->magic != kSampleMagic) return NV_INVALID_ARGUMENT;
  if (!HasGpm(gpu)) return NV_NOT_SUPPORTED;
  sample->taken = 1;
  sample->gpu = gpu;
  sample->instance = instance;
  sample->part = 1;
  if (instance != SIM_NA)
    sample->part = gpu->use_gpu ? (double)UseOfInstance(gpu, instance) / gpu->use_gpu : 0;
  ReadMeters(gpu, &sample->meters);
  return NV_SUCCESS;
}

NvReturn nvmlGpmSampleGet(NvDevice device, NvGpmSample sample) {
  DEVICE_CALL(nvmlGpmSampleGet);
  return Take(gpu, MigOf(device) ? MigOf(device)->instance : SIM_NA, sample);
}

NvReturn nvmlGpmMigSampleGet(NvDevice device, NvUint instance, NvGpmSample sample) {
  DEVICE_CALL(nvmlGpmMigSampleGet);
  if (!sample || sample->magic != kSampleMagic) return NV_INVALID_ARGUMENT;
  if (!HasGpm(gpu) || !SimMigOn(gpu)) return NV_NOT_SUPPORTED;
  struct Instances instances;
  CopyInstances(gpu, &instances);
  return ProfileOfInstance(gpu, &instances, instance) ? Take(gpu, instance, sample)
                                                      : NV_INVALID_ARGUMENT;
}

// The interval between two samples.
struct Span {
  const SimGpu* gpu;
  const struct Meters *from, *to;
  double microseconds;
};

static double Grown(const struct Span* span, int meter) {
  return (double)(int64_t)(span->to->count[meter] - span->from->count[meter]);
}

static void Percent(NvGpmMetric* metric, const struct Span* span, int meter) {
  uint64_t instead;
  static char kUnit[] = "%";
  metric->metricInfo.unit = kUnit;
  metric->value = Grown(span, meter) / span->microseconds;
  if (IsNonsense(span->gpu, kSimReadGpm, &instead)) metric->value = (double)instead;
}

// Computes a rate from `part` of a meter's count, where 1 is the whole.
static void Rate(NvGpmMetric* metric, const struct Span* span, int meter, double part) {
  static char kUnit[] = "MiB/s";
  metric->metricInfo.unit = kUnit;
  metric->value = Grown(span, meter) * part / span->microseconds * 1e6 / 1048576;
}

// Computes the metric of one of several engines of a kind; engines that the GPU lacks are not
// supported.
static void Engine(NvGpmMetric* metric, const struct Span* span, NvUint number, uint32_t engines,
                   int meter) {
  if (number < engines)
    Percent(metric, span, meter);
  else
    metric->nvmlReturn = NV_NOT_SUPPORTED;
}

static void Link(NvGpmMetric* metric, const struct Span* span) {
  const NvUint place = metric->metricId - NV_GPM_NVLINK_L0_RX, link = place / 2;
  if (link >= span->gpu->nvlink_count) {
    metric->nvmlReturn = NV_NOT_SUPPORTED;
    return;
  }
  const double part = span->gpu->nvlinks[link].active ? 1.0 / ActiveLinks(span->gpu) : 0;
  Rate(metric, span, place % 2 ? kSimNvlinkTx : kSimNvlinkRx, part);
}

// Computes totals up to the second sample. One SM cycle is one tick of the SM clock, at its present
// rate.
static int Total(NvGpmMetric* metric, const struct Span* span) {
  // From SM to FP16: elapsed cycles, GPM's percentages as cycles, and PCIe's bytes between them.
  static const int kCycles[] = {kSimUseSm,      kSimUseTensor, kSimUseDmma, kSimUseHmma,
                                kSimUseImma,    kSimUseDfma,   kSimPcieTx,  kSimPcieRx,
                                kSimUseInteger, kSimUseFp64,   kSimUseFp32, kSimUseFp16};
  const NvUint id = metric->metricId;
  const double megahertz = span->gpu->clock_sm;
  const uint64_t* count = span->to->count;
  if (id == NV_GPM_SM_CYCLES_ELAPSED) {
    metric->value = (double)(span->to->time - span->gpu->meters_begun) * megahertz;
  } else if (id == NV_GPM_PCIE_TX_BYTES || id == NV_GPM_PCIE_RX_BYTES) {
    metric->value = (double)count[id == NV_GPM_PCIE_TX_BYTES ? kSimPcieTx : kSimPcieRx];
  } else if (id >= NV_GPM_SM_CYCLES_ACTIVE && id <= NV_GPM_FP16_CYCLES_ACTIVE) {
    metric->value = (double)count[kCycles[id - NV_GPM_SM_CYCLES_ACTIVE]] / 100 * megahertz;
  } else if (id >= NV_GPM_NVLINK_L0_RX_BYTES && id <= NV_GPM_NVLINK_L17_TX_BYTES) {
    const NvUint place = id - NV_GPM_NVLINK_L0_RX_BYTES;
    if (place / 2 >= span->gpu->nvlink_count) metric->nvmlReturn = NV_NOT_SUPPORTED;
    metric->value =
        (double)LinkPart(span->gpu, place / 2, count[place % 2 ? kSimNvlinkTx : kSimNvlinkRx]);
  } else {
    return 0;
  }
  return 1;
}

static void Metric(NvGpmMetric* metric, const struct Span* span) {
  const NvUint id = metric->metricId;
  metric->nvmlReturn = NV_SUCCESS;
  if (id >= NV_GPM_GRAPHICS_UTIL && id <= NV_GPM_FP16_UTIL)
    Percent(metric, span, kSimUseGraphics + (int)(id - NV_GPM_GRAPHICS_UTIL));
  else if (id == NV_GPM_PCIE_TX || id == NV_GPM_PCIE_RX)
    Rate(metric, span, id == NV_GPM_PCIE_TX ? kSimPcieTx : kSimPcieRx, 1);
  else if (id >= NV_GPM_NVDEC_0 && id <= NV_GPM_NVDEC_7)
    Engine(metric, span, id - NV_GPM_NVDEC_0, span->gpu->decoders, kSimUseDecoder);
  else if (id >= NV_GPM_NVJPG_0 && id <= NV_GPM_NVJPG_7)
    Engine(metric, span, id - NV_GPM_NVJPG_0, span->gpu->jpegs, kSimUseJpeg);
  else if (id == NV_GPM_NVOFA_0 || id == NV_GPM_NVOFA_1)
    Engine(metric, span, id - NV_GPM_NVOFA_0, span->gpu->ofas, kSimUseOfa);
  else if ((id == NV_GPM_NVLINK_TOTAL_RX || id == NV_GPM_NVLINK_TOTAL_TX) &&
           span->gpu->nvlink_count)
    Rate(metric, span, id == NV_GPM_NVLINK_TOTAL_RX ? kSimNvlinkRx : kSimNvlinkTx, 1);
  else if (id >= NV_GPM_NVLINK_L0_RX && id <= NV_GPM_NVLINK_L17_TX)
    Link(metric, span);
  else if (!Total(metric, span))
    metric->nvmlReturn = NV_NOT_SUPPORTED;
}

// Returns one more than the largest metric that a branch supports, as in NVIDIA's Python binding.
static NvUint MetricsOf(uint32_t branch) {
  return branch >= 610 ? 477 : branch >= 595 ? 333 : branch >= 575 ? 210 : 98;
}

NvReturn nvmlGpmMetricsGet(NvGpmMetrics* metrics) {
  NEED(metrics);
  SYSTEM_CALL(nvmlGpmMetricsGet);
  if (metrics->version != kVersion) return NV_ARGUMENT_VERSION_MISMATCH;
  const struct SimGpmSample *first = metrics->sample1, *second = metrics->sample2;
  if (!first || !second || first->magic != kSampleMagic || second->magic != kSampleMagic)
    return NV_INVALID_ARGUMENT;
  if (!first->taken || !second->taken || first->gpu != second->gpu ||
      first->instance != second->instance)
    return NV_INVALID_ARGUMENT;
  const struct Span span = {second->gpu, &first->meters, &second->meters,
                            (double)(int64_t)(second->meters.time - first->meters.time)};
  const NvUint known = MetricsOf(SessionState()->driver_branch);
  if (metrics->numMetrics > known) return NV_INVALID_ARGUMENT;
  for (NvUint i = 0; i < metrics->numMetrics; i++) {
    // The array is longer than declared: each caller's header defines its length.
    NvGpmMetric* metric = &((NvGpmMetric*)((char*)metrics + offsetof(NvGpmMetrics, metrics)))[i];
    if (metric->metricId == 0 || metric->metricId >= known)
      metric->nvmlReturn = NV_INVALID_ARGUMENT;
    else
      Metric(metric, &span);
    if (metric->nvmlReturn == NV_SUCCESS && metric->metricId != NV_GPM_SM_CYCLES_ELAPSED)
      metric->value *= second->part;
  }
  return NV_SUCCESS;
}
