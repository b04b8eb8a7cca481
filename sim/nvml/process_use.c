// NVML calls for each process's utilization of a device. The driver samples each process in turn
// and keeps the samples for a while.
#include "sim/nvml/library.h"

enum {
  kPeriod = 1000000 / 6,  // µs between two samples of a process
  kBuffer = 100,          // number of samples that the driver keeps, and the buffer size that it
                          // requests
};

// Returns the last time, in µs, at which a process was sampled; the times of the processes differ.
static uint64_t SampledAt(uint32_t index, uint64_t now) {
  const uint64_t phase = index * 37000u % kPeriod;
  return now - (now - phase) % kPeriod;
}

static NvUint UseOrNonsense(const SimGpu* gpu, uint32_t percent) {
  uint64_t instead;
  return IsNonsense(gpu, kSimReadProcessUse, &instead) ? (NvUint)instead : percent;
}

// A process without a utilization of its own has an equal part of the remaining utilization.
static NvProcessUse2 UseOf(const SimGpu* gpu, const SimProcess* all, uint32_t count, uint32_t at) {
  uint32_t sm = gpu->use_gpu, memory = gpu->use_memory, encoder = gpu->use_encoder,
           decoder = gpu->use_decoder, sharers = 0;
  for (uint32_t i = 0; i < count; i++) {
    sharers += !all[i].own_use;
    if (!all[i].own_use) continue;
    sm -= all[i].use_sm < sm ? all[i].use_sm : sm;
    memory -= all[i].use_memory < memory ? all[i].use_memory : memory;
    encoder -= all[i].use_encoder < encoder ? all[i].use_encoder : encoder;
    decoder -= all[i].use_decoder < decoder ? all[i].use_decoder : decoder;
  }
  const SimProcess* process = &all[at];
  if (process->own_use)
    sm = process->use_sm, memory = process->use_memory, encoder = process->use_encoder,
    decoder = process->use_decoder;
  else
    sm /= sharers, memory /= sharers, encoder /= sharers, decoder /= sharers;
  return (NvProcessUse2){.pid = process->pid,
                         .smUtil = UseOrNonsense(gpu, sm),
                         .memUtil = UseOrNonsense(gpu, memory),
                         .encUtil = encoder,
                         .decUtil = decoder};
}

uint32_t UseOfInstance(const SimGpu* gpu, uint32_t instance) {
  SimProcess all[kSimMaxProcesses];
  const uint32_t count = CopyProcesses(gpu, all);
  uint32_t percent = 0;
  for (uint32_t i = 0; i < count; i++)
    if (all[i].gpu_instance == instance) percent += UseOf(gpu, all, count, i).smUtil;
  return percent;
}

// Copies samples newer than `since`, of processes with any utilization, into room for kBuffer
// entries. With the fault that simulates junk samples, junk fills the rest.
static uint32_t Samples(const SimGpu* gpu, uint64_t since, NvProcessUse2* samples) {
  SimProcess all[kSimMaxProcesses];
  const uint32_t count = CopyProcesses(gpu, all);
  const uint64_t now = MachineTime();
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++) {
    NvProcessUse2 use = UseOf(gpu, all, count, i);
    use.timeStamp = SampledAt(i, now);
    if (use.timeStamp > since && (use.smUtil || use.memUtil || use.encUtil || use.decUtil))
      samples[found++] = use;
  }
  while (gpu->junk_process_samples && found < kBuffer) {
    samples[found] =
        (NvProcessUse2){now, 0, 0x6c696e75u + found, 4294967295u, 1073741824u, 2863311530u, 0, 0};
    found++;
  }
  return found;
}

NvReturn nvmlDeviceGetProcessUtilization(NvDevice device, NvProcessUse* uses, NvUint* count,
                                         NvUlong since) {
  NEED(count);
  DEVICE_CALL(nvmlDeviceGetProcessUtilization);
  if (gpu->mig_current == NV_ENABLED) return NV_NOT_SUPPORTED;
  if (!uses) {
    *count = kBuffer;
    return NV_INSUFFICIENT_SIZE;
  }
  NvProcessUse2 samples[kBuffer];
  const uint32_t found = Samples(gpu, since, samples);
  const int fits = *count >= found;
  *count = fits ? found : kBuffer;
  if (found == 0) return NV_NOT_FOUND;
  if (!fits) return NV_INSUFFICIENT_SIZE;
  for (uint32_t i = 0; i < found; i++) {
    const NvProcessUse2* use = &samples[i];
    uses[i] = (NvProcessUse){use->pid,     use->timeStamp, use->smUtil,
                             use->memUtil, use->encUtil,   use->decUtil};
  }
  return NV_SUCCESS;
}

NvReturn nvmlDeviceGetProcessesUtilizationInfo(NvDevice device, NvProcessesUse* uses) {
  NEED(uses);
  DEVICE_CALL(nvmlDeviceGetProcessesUtilizationInfo);
  if (uses->version != NV_STRUCT_VERSION(NvProcessesUse, 1)) return NV_ARGUMENT_VERSION_MISMATCH;
  if (gpu->mig_current == NV_ENABLED) return NV_NOT_SUPPORTED;
  NvProcessUse2 samples[kBuffer];
  const uint32_t found = Samples(gpu, uses->lastSeenTimeStamp, samples);
  const int fits = uses->procUtilArray && uses->processSamplesCount >= found;
  const NvReturn result = !uses->procUtilArray ? NV_INSUFFICIENT_SIZE
                          : found == 0         ? NV_NOT_FOUND
                          : fits               ? NV_SUCCESS
                                               : NV_INSUFFICIENT_SIZE;
  uses->processSamplesCount = result == NV_INSUFFICIENT_SIZE ? kBuffer : found;
  for (uint32_t i = 0; result == NV_SUCCESS && i < found; i++) uses->procUtilArray[i] = samples[i];
  return result;
}
