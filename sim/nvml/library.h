// Declarations shared by every file of the simulated library: the session, the entry of a call, and
// small helpers. The library runs inside other programs' processes: it uses libc only, exports only
// nvml*, starts no thread, installs no signal handler, and reads no environment variable but
// PENSTOCK_SIM_STATE.
#ifndef PENSTOCK_SIM_NVML_LIBRARY_H_
#define PENSTOCK_SIM_NVML_LIBRARY_H_

#include <stddef.h>

#include "sim/meters.h"
#include "sim/mig.h"
#include "sim/nvml/nvml_abi.h"
#include "sim/state.h"

#define EXPORT __attribute__((visibility("default")))

// Declares all exports, and a number for each.
#define F(branch, name, parameters) EXPORT NvReturn name parameters;
#define D F
#include "sim/nvml/functions.def"
#undef F
#undef D
EXPORT const char* nvmlErrorString(NvReturn result);

enum Function {
#define F(branch, name, parameters) kFunction_##name,
#define D F
#include "sim/nvml/functions.def"
#undef F
#undef D
  kFunctionCount
};

// The targets of handles. A GPU's index in its table is its slot in the state.
struct SimDevice {
  uint32_t slot;
  uint32_t instance, compute;  // of a MIG device
  uint32_t born;               // SimComputeInstance::born when the handle was made; 0: a GPU
};
struct SimInstanceHandle {
  uint32_t slot, id, born;
};
struct SimComputeHandle {
  uint32_t slot, instance, id, born;
};

// Opens the machine's state, for writing where permitted, and reads the version of this library
// from its file name. Returns -1 with errno; ENOENT if there is no state. Call it under the
// session's lock.
int OpenState(char* version, size_t size, int* writable);
// Returns what open(2) answers for a file of the machine's /dev: 0 or an errno. A simulated device
// file has no driver, so ENXIO counts as success. Call it after OpenState.
int OpenDevice(const char* name);
// Returns the same for reading /dev/nvidia-caps/nvidia-cap<minor>.
int OpenCapability(uint32_t minor_number);
// Returns the parent folder of the machine's dev/ and proc/.
const char* MachineRoot(void);

// Maps the state and starts a session, or returns the error. Sessions are counted, as in NVML.
NvReturn SessionStart(void);
NvReturn SessionEnd(void);

// Returns the session's state, or null before the first session. The state stays mapped after the
// session, because another thread may be inside a call.
SimState* SessionState(void);
// Whether the process may change the state file (on a real machine, only root may change a driver's
// settings).
int SessionMayWrite(void);

// The entry of a call without a device, and of a call with one: checks the session, the driver's
// version, the handle, and applies faults. On NV_SUCCESS `*gpu` is the device; any other result is
// the call's answer.
NvReturn Enter(enum Function function);
NvReturn EnterDevice(enum Function function, NvDevice device, SimGpu** gpu);
// The same for the GPU in a slot, to which another kind of handle leads.
NvReturn EnterSlot(enum Function function, int slot, SimGpu** gpu);

// Whether this session lists the GPU: it exists, and the process could open its device file, as a
// real NVML requires.
int SlotShown(const SimState* state, uint32_t slot);

// Convert a slot to its handle, and back; null and -1 if there is none.
NvDevice HandleOf(uint32_t slot);
int SlotOf(NvDevice device);
// Returns the second device of a call that takes two.
NvReturn OtherDevice(NvDevice device, SimGpu** gpu);

// Copies a string into the caller's buffer. Returns INVALID_ARGUMENT, INSUFFICIENT_SIZE, or
// NOT_SUPPORTED for an empty string.
NvReturn CopyText(const char* text, char* buffer, NvUint length);
// Stores a value that may be SIM_NA (NOT_SUPPORTED).
NvReturn Give(uint32_t value, NvUint* result);
// Stores a reading that may be SIM_NA, or the number with which a fault replaces it (`penstock-sim
// fault GPU nonsense`).
NvReturn GiveReading(const SimGpu* gpu, enum SimReading reading, uint32_t value, NvUint* result);
// Whether a fault replaces the reading; `*value` is then the replacement.
int IsNonsense(const SimGpu* gpu, enum SimReading reading, uint64_t* value);
// Writes "DDDDDDDD:BB:DD.0" or, legacy, "DDDD:BB:DD.0".
void FillPci(NvPciInfo* pci, uint32_t domain, uint32_t bus, uint32_t device, uint32_t id,
             uint32_t subsystem);

// Return all memory in use, in bytes, without the reserved part; by a GPU or a GPU instance.
uint64_t UsedBytes(const SimGpu* gpu);
uint64_t UsedBytesOf(const SimGpu* gpu, uint32_t instance);
// Returns the SM utilization, in percent of the GPU, of the processes on a GPU instance.
uint32_t UseOfInstance(const SimGpu* gpu, uint32_t instance);
// Returns the name of the process with this pid, or null.
const char* ProcessName(const SimState* state, uint32_t pid);
// Copies the process table as it was between two changes, into room for kSimMaxProcesses entries.
// Returns their number.
uint32_t CopyProcesses(const SimGpu* gpu, SimProcess* processes);

// Lock the state file for a change, and end the change. StateLock returns 0 without permission.
int StateLock(void);
void StateUnlock(void);
// Adds an event, during a change.
void AddEvent(const SimGpu* gpu, uint64_t type);

// A GPU's instances as they were between two changes of the state.
struct Instances {
  SimGpuInstance all[kSimGpuInstances];
};
void CopyInstances(const SimGpu* gpu, struct Instances* instances);

// Return the MIG device, GPU instance or compute instance of a handle, or null for any other
// pointer. IsAlive…: whether it still exists.
const struct SimDevice* MigOf(NvDevice device);
const struct SimInstanceHandle* InstanceOf(NvGpuInstance instance);
const struct SimComputeHandle* ComputeOf(NvComputeInstance compute);
int IsAliveCompute(const SimGpu* gpu, uint32_t instance, uint32_t compute, uint32_t born);
// Make handles for what exists in `instances`.
NvDevice MigHandle(const SimGpu* gpu, const struct Instances* instances, uint32_t instance,
                   uint32_t compute);
NvGpuInstance InstanceHandle(const SimGpu* gpu, const struct Instances* instances, uint32_t id);
NvComputeInstance ComputeHandle(const SimGpu* gpu, const struct Instances* instances,
                                uint32_t instance, uint32_t id);
// Enters a call with a GPU instance, and copies the GPU's instances.
NvReturn EnterInstance(enum Function function, NvGpuInstance instance, SimGpu** gpu,
                       const struct SimInstanceHandle** handle, struct Instances* instances);
// Ends a change of instances, `changed` or not: files and events follow.
void EndChange(const SimGpu* gpu, int changed);
// Whether calls with this function answer for MIG devices; all others are not supported for them.
int AnswersForMig(enum Function function);
// Whether the process may query, and change, all instances: it can open the device files of
// NVIDIA's capabilities for that.
int MayMonitor(void);
int MayConfigure(void);
// Finds the MIG device with this UUID, in either of NVIDIA's spellings, or with these bytes.
// Returns null if the process sees no such device.
NvDevice MigByUuid(const char* uuid);
NvDevice MigByBytes(const unsigned char bytes[16]);
// Write a MIG device's names.
NvReturn MigUuid(const SimGpu* gpu, const struct SimDevice* mig, NvText* uuid, NvUint length);
NvReturn MigName(const SimGpu* gpu, const struct SimDevice* mig, NvText* name, NvUint length);
NvReturn MigIndex(const SimGpu* gpu, const struct SimDevice* mig, NvUint* index);
// Returns the bytes of the 32 hexadecimal digits in a UUID.
void UuidBytes(const char* digits, unsigned char bytes[16]);
// Returns the profile of the GPU instance that has this id, or null.
const SimMigProfile* ProfileOfInstance(const SimGpu* gpu, const struct Instances* instances,
                                       uint32_t id);

// Returns the machine's clock, from which meters and the timestamps of samples derive.
uint64_t MachineTime(void);

// A GPU's meters at one moment, as they were between two changes of the state.
struct Meters {
  uint64_t time;  // MachineTime
  uint64_t count[kSimMeters];
  uint64_t rate[kSimMeters];
};
void ReadMeters(const SimGpu* gpu, struct Meters* meters);

// Return the number of NVLinks that are up, and one link's part of a sum over all of them.
NvUint ActiveLinks(const SimGpu* gpu);
uint64_t LinkPart(const SimGpu* gpu, uint32_t link, uint64_t sum);

// Returns the ECC errors of a kind (NV_ERRORS_…) since NV_ECC_VOLATILE or NV_ECC_AGGREGATE: SRAM's
// and DRAM's. NOT_SUPPORTED without ECC.
NvReturn EccErrors(const SimGpu* gpu, NvUint error, NvUint counter, const uint64_t** counts);
// Whether the GPU supports row remapping queries.
int HasRemapper(const SimGpu* gpu);
// Whether the power that NVML reports is a mean over a second: on Ampere and newer, except GA100.
int HasAveragePower(const SimGpu* gpu);

// Returns which parts of this field a fault changes on this GPU; 0 if there is none. A counted
// fault's count decreases.
int FieldFault(const SimGpu* gpu, NvUint field, SimFault* fault);

// Begins a device call: `gpu` is the device from here on.
#define DEVICE_CALL(name)                                           \
  SimGpu* gpu = 0;                                                  \
  {                                                                 \
    NvReturn entered = EnterDevice(kFunction_##name, device, &gpu); \
    if (entered != NV_SUCCESS) return entered;                      \
  }

// Begins a call on a GPU instance: `handle` is what its handle says, `instances` those of `gpu`.
#define INSTANCE_CALL(name)                                                                  \
  SimGpu* gpu = 0;                                                                           \
  const struct SimInstanceHandle* handle;                                                    \
  struct Instances instances;                                                                \
  {                                                                                          \
    NvReturn entered = EnterInstance(kFunction_##name, instance, &gpu, &handle, &instances); \
    if (entered != NV_SUCCESS) return entered;                                               \
  }

#define SYSTEM_CALL(name)                       \
  {                                             \
    NvReturn entered = Enter(kFunction_##name); \
    if (entered != NV_SUCCESS) return entered;  \
  }

#define NEED(pointer) \
  if (!(pointer)) return NV_INVALID_ARGUMENT

#endif  // PENSTOCK_SIM_NVML_LIBRARY_H_
