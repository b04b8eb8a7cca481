// Limits that the kernel enforces on this process, as a second line of defense behind the program's
// own checks: memory, time, system calls.
#pragma once

namespace penstock::hook {

/// Limits memory and processor time of this process, and disables core files. At the time limit the
/// process ends with a message; at the memory limit std::bad_alloc is thrown.
void LimitSelf();

/// From now on this process can execute no program, open no socket and start no process: hooks need
/// few system calls. Continues without a filter if the kernel does not support it.
void ConfineSelf();

}  // namespace penstock::hook
