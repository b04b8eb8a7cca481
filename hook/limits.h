// The bounds that the kernel keeps for us, where the program's own have a gap: memory, time, system calls.
#pragma once

namespace penstock::hook {

/// Memory and processor time of this process, and no core files. Whoever needs more time is ended with a message;
/// where memory ends, std::bad_alloc is thrown.
void LimitSelf();

/// No program, no socket, no process from now on: the calls that hooks make are few. A kernel without such filters is no reason to stop.
void ConfineSelf();

}  // namespace penstock::hook
