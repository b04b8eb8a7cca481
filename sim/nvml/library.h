// What every file of the simulated library shares: the session, the way into a call, and small helpers. Runs inside other people's
// processes: libc only, nothing exported but nvml*, no thread of its own, no signal, no environment variable but PENSTOCK_SIM_STATE.
#ifndef PENSTOCK_SIM_NVML_LIBRARY_H_
#define PENSTOCK_SIM_NVML_LIBRARY_H_

#include <stddef.h>

#include "sim/meters.h"
#include "sim/nvml/nvml_abi.h"
#include "sim/state.h"

#define EXPORT __attribute__((visibility("default")))

// Declarations of all exports, and a number for each.
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

// What a handle points to; its place in the table is the GPU's slot in the state.
struct SimDevice {
  uint32_t slot;
};

// Opens the machine's state, for writing where that may be, and learns the version of this library where its name tells. -1 and errno:
// ENOENT where there is none. Called under the session's lock.
int OpenState(char* version, size_t size, int* writable);
// As open(2) answers for a file of the machine's /dev: 0, or why not. No driver is behind a simulated one, which is ENXIO and fine. After
// OpenState.
int OpenDevice(const char* name);

// Maps the state and starts a session, or says why not. Counted, like NVML's own.
NvReturn SessionStart(void);
NvReturn SessionEnd(void);

// The state of the session; stays mapped when it ends, since another thread may be inside a call. Null before the first.
SimState* SessionState(void);
// Whether the process may change the state file (as only root may change a driver's settings).
int SessionMayWrite(void);

// The way into a call that names no device, or one: checks the session, the driver's age, the handle, and applies faults. On NV_SUCCESS
// `*gpu` is the device; everything but NV_SUCCESS is the answer to give.
NvReturn Enter(enum Function function);
NvReturn EnterDevice(enum Function function, NvDevice device, SimGpu** gpu);

// Whether this session lists the GPU: it is there, and the process could open its device file, as a real NVML asks of it.
int SlotShown(const SimState* state, uint32_t slot);

// Handles: of a slot, and back; null and -1 where there is none.
NvDevice HandleOf(uint32_t slot);
int SlotOf(NvDevice device);
// The other device of a call that names two.
NvReturn OtherDevice(NvDevice device, SimGpu** gpu);

// Copies a string into the caller's buffer: INVALID_ARGUMENT, INSUFFICIENT_SIZE, NOT_SUPPORTED for an empty one.
NvReturn CopyText(const char* text, char* buffer, NvUint length);
// Stores a value that may be SIM_NA (NOT_SUPPORTED).
NvReturn Give(uint32_t value, NvUint* result);
// Likewise for a reading, which a fault may have replaced by any number (`penstock-sim fault GPU nonsense`).
NvReturn GiveReading(const SimGpu* gpu, enum SimReading reading, uint32_t value, NvUint* result);
// Whether a fault has replaced it; then by what.
int IsNonsense(const SimGpu* gpu, enum SimReading reading, uint64_t* value);
// Writes "DDDDDDDD:BB:DD.0" or, legacy, "DDDD:BB:DD.0".
void FillPci(NvPciInfo* pci, uint32_t domain, uint32_t bus, uint32_t device, uint32_t id, uint32_t subsystem);

// All memory in use besides the reserved part, bytes.
uint64_t UsedBytes(const SimGpu* gpu);
// One for every process; a slot's name for a pid, or null.
const char* ProcessName(const SimState* state, uint32_t pid);
// A copy of the process table as it was between two changes; room for kSimMaxProcesses. How many there are.
uint32_t CopyProcesses(const SimGpu* gpu, SimProcess* processes);

// Locks the state file for a change, and ends the change. 0: no permission.
int StateLock(void);
void StateUnlock(void);

// The machine's clock, by which it meters and stamps samples.
uint64_t MachineTime(void);

// A GPU's meters at one moment, as between two changes of the state.
struct Meters {
  uint64_t time;  // MachineTime
  uint64_t count[kSimMeters];
  uint64_t rate[kSimMeters];
};
void ReadMeters(const SimGpu* gpu, struct Meters* meters);

// NVLinks that are up, and the part of a sum over all of them that one carries.
NvUint ActiveLinks(const SimGpu* gpu);
uint64_t LinkPart(const SimGpu* gpu, uint32_t link, uint64_t sum);

// ECC errors of a kind (NV_ERRORS_…) since NV_ECC_VOLATILE or NV_ECC_AGGREGATE: SRAM's and DRAM's. NOT_SUPPORTED without ECC.
NvReturn EccErrors(const SimGpu* gpu, NvUint error, NvUint counter, const uint64_t** counts);
// Whether row remapping can be asked for.
int HasRemapper(const SimGpu* gpu);
// Whether the power that NVML tells is a mean over a second: Ampere and newer, but for GA100.
int HasAveragePower(const SimGpu* gpu);

// What the fault of this field on this GPU changes, if there is one; counted faults lose a strike.
int FieldFault(const SimGpu* gpu, NvUint field, SimFault* fault);

// Opens a device call: `gpu` is the device from here on.
#define DEVICE_CALL(name)                                           \
  SimGpu* gpu = 0;                                                  \
  {                                                                 \
    NvReturn entered = EnterDevice(kFunction_##name, device, &gpu); \
    if (entered != NV_SUCCESS) return entered;                      \
  }

#define SYSTEM_CALL(name)                       \
  {                                             \
    NvReturn entered = Enter(kFunction_##name); \
    if (entered != NV_SUCCESS) return entered;  \
  }

#define NEED(pointer) \
  if (!(pointer)) return NV_INVALID_ARGUMENT

#endif  // PENSTOCK_SIM_NVML_LIBRARY_H_
